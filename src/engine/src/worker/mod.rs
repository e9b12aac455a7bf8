//! The worker's side: a process that holds the driver for one GPU, or the scout that only counts them.
//!
//! ```text
//! started by re-execution --> waits --request--> opens library, then GPU --> answers --> waits
//!                               |  \_____________________________________________________/
//!                               +-- end of file (main process gone, or wants the GPU free) --> nvmlShutdown, exit
//! ```
//!
//! One request after another, in order; no thread, no timer: the main process bounds its own waiting and
//! gives up a worker that does not answer. The socket is standard input; nothing is written to standard output.

mod act;
mod compute;
mod in_use;
mod profiles;
mod read;
mod scout;

use crate::{
    error::Failure,
    protocol::{self, Request, Response, SCOUT_ARGUMENT, WORKER_ARGUMENT},
};
use act::Worker;
use migd_core::{id::PciAddress, reason::Reason};
use migd_nvml::Library;
use std::{
    ffi::OsStr,
    io::{self, Read, Write},
    os::{fd::AsFd, unix::net::UnixStream},
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Serves as a worker if this process was started as one, and returns its exit code when the main process has
/// gone. Called first in `main` of every program that hosts the engine; absent: go on as usual.
pub fn serve_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != WORKER_ARGUMENT {
        return None;
    }
    let role = arguments.next().unwrap_or_default();
    let library = arguments.next().map(PathBuf::from);
    Some(match serve(&role, library.as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed standard error leaves no one to tell.
            let _ = writeln!(io::stderr(), "migd worker {}: {error}", role.display());
            ExitCode::FAILURE
        }
    })
}

fn serve(role: &OsStr, library: Option<&Path>) -> io::Result<()> {
    let mut main = Main::of_stdin()?;
    if role == SCOUT_ARGUMENT {
        return scout::serve(&mut main, library);
    }
    let text = role.to_string_lossy();
    let pci: PciAddress = text.parse().map_err(io::Error::other)?;
    serve_gpu(&mut main, pci, library)
}

/// Opens library and GPU at the first request that needs them; what fails is tried again at the next one.
fn serve_gpu(main: &mut Main, pci: PciAddress, path: Option<&Path>) -> io::Result<()> {
    let Some(mut request) = main.next()? else { return Ok(()) };
    let library = loop {
        match Library::open(path) {
            Ok(library) => break library,
            Err(error) => main.answer(&Response::Failed(error.into()))?,
        }
        let Some(next) = main.next()? else { return Ok(()) };
        request = next;
    };
    let device = loop {
        match library.device_by_pci(pci) {
            Ok(device) => break device,
            Err(error) => main.answer(&Response::Failed(error.into()))?,
        }
        let Some(next) = main.next()? else { return Ok(()) };
        request = next;
    };
    let mut worker = Worker::new(&library, device, pci);
    loop {
        main.answer(&worker.answer(request))?;
        let Some(next) = main.next()? else { return Ok(()) };
        request = next;
    }
}

/// The main process, as a worker sees it.
struct Main {
    stream: UnixStream,
}

impl Main {
    fn of_stdin() -> io::Result<Main> {
        let socket = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(Main { stream: UnixStream::from(socket) })
    }

    /// The next request; absent when the main process has closed its end.
    fn next(&mut self) -> io::Result<Option<Request>> {
        let mut head = [0; 4];
        match self.stream.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if gone(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
        let mut body = vec![0; protocol::length_of(head)?];
        match self.stream.read_exact(&mut body) {
            Ok(()) => protocol::of_body(&body).map(Some),
            Err(error) if gone(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn answer(&mut self, response: &Response) -> io::Result<()> {
        let frame = protocol::to_frame(response).or_else(|error| {
            protocol::to_frame(&Response::Failed(Failure::new(Reason::Internal, error.to_string())))
        })?;
        match self.stream.write_all(&frame) {
            // Nobody is there to hear it; the next request will not come either.
            Err(error) if gone(&error) => Ok(()),
            answer => answer,
        }
    }
}

fn gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | BrokenPipe)
}
