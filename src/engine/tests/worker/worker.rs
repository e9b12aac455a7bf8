//! A program that is a worker and nothing else, for the integration tests: their own binary is libtest's.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    migd_engine::worker::serve_if_asked().unwrap_or(ExitCode::FAILURE)
}
