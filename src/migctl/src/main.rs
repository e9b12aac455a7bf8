//! `migctl`: the command line of migd.
//!
//! Reads its arguments, asks the service, prints the answer for people or with `--json` as one document, and
//! ends with the exit code that tells it. Decides nothing.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod layouts;
mod output;
mod simulate;
mod written;

use clap::Parser;
use migd_core::{diagnostic::Diagnostic, document::Failure, reason::Reason};
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = migd::serve_worker_if_asked() {
        return code;
    }
    match args::Args::try_parse() {
        Ok(args) => ExitCode::from(commands::run(args).code()),
        Err(error) => ExitCode::from(usage(&error)),
    }
}

/// Tells a usage error, with `--json` as a document like any other failure; help and version are no errors.
fn usage(error: &clap::Error) -> u8 {
    if !error.use_stderr() {
        output::print(&error.to_string());
        return 0;
    }
    if std::env::args_os().any(|argument| argument == "--json") {
        let text = error.to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text).trim().to_owned();
        let failure = Failure::of(vec![Diagnostic::error(Reason::UsageInvalid, text)]);
        output::document(&failure);
    } else {
        output::say(&error.to_string());
    }
    Reason::UsageInvalid.exit().code()
}
