//! The main process's side of one worker: starts it, asks it, gives it up.
//!
//! ```text
//!            ask                answer
//!  absent --spawn--> idle --request--> busy --answer--> idle
//!     ^               |                  |
//!     |               leave              +-- end of file: lost (told with its signal) --> absent
//!     |               v                  +-- limit passed, or the asker went away:
//!     +------------ exited                   SIGKILL, abandoned; absent once the kernel lets it die
//! ```
//! No wait here is without a bound, and none is for a process that SIGKILL does not end.

use crate::{
    error::EngineError,
    protocol::{self, Request, Response, WORKER_ARGUMENT},
    site::Site,
};
use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read, Seek},
    os::{
        fd::OwnedFd,
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    process::{Child, Command},
    time::timeout,
};

/// This program, also after its file was replaced by an upgrade.
const SELF: &str = "/proc/self/exe";
/// How long a worker may take to exit after its socket was closed: it shuts NVML down.
const LEAVING: Duration = Duration::from_secs(10);
/// How long to wait for the end of a worker that was killed, or whose socket has ended by itself.
const DYING: Duration = Duration::from_millis(500);
/// How much of its last words is told, in bytes.
const MOST_WORDS: u64 = 2048;

/// A worker process, running or not.
#[derive(Debug)]
pub(crate) struct Process {
    /// `scout` or a PCI address.
    role: OsString,
    running: Option<Running>,
    /// Given up, and not dead yet when last seen.
    abandoned: Option<Child>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    stream: UnixStream,
    /// Its standard error. A file rather than ours: a worker that hangs in the driver outlives us, and whoever
    /// reads our standard error to its end must not wait for it.
    said: Option<File>,
    /// A request was sent and its answer not read: whoever asked has gone, and the next answer is not ours.
    busy: bool,
}

impl Process {
    pub(crate) fn new(role: impl Into<OsString>) -> Process {
        Process { role: role.into(), running: None, abandoned: None }
    }

    /// Asks and waits at most so long for the answer.
    pub(crate) async fn ask(
        &mut self,
        site: &Site,
        request: &Request,
        limit: Duration,
    ) -> Result<Response, EngineError> {
        if self.running.as_ref().is_some_and(|running| running.busy) {
            self.abandon().await;
        }
        if let Some(child) = &mut self.abandoned {
            match child.try_wait() {
                Ok(None) => return Err(EngineError::StillHung),
                Ok(Some(_)) | Err(_) => self.abandoned = None,
            }
        }
        let running = match &mut self.running {
            Some(running) => running,
            None => self.running.insert(spawn(&self.role, site).map_err(EngineError::Spawn)?),
        };
        running.busy = true;
        match timeout(limit, exchange(&mut running.stream, request)).await {
            Ok(Ok(response)) => {
                running.busy = false;
                Ok(response)
            }
            Ok(Err(error)) => Err(self.lost(&error).await),
            Err(_) => {
                self.abandon().await;
                Err(EngineError::Hung(limit))
            }
        }
    }

    /// Lets it go and waits until it has gone, so that it is no client of its GPU any more. Given up if it
    /// does not go.
    pub(crate) async fn leave(&mut self) -> Result<(), EngineError> {
        let Some(Running { mut child, stream, .. }) = self.running.take() else { return Ok(()) };
        drop(stream);
        if timeout(LEAVING, child.wait()).await.is_ok() {
            return Ok(());
        }
        self.give_up(child).await;
        Err(EngineError::Hung(LEAVING))
    }

    /// Its process id, while it runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.running.as_ref().and_then(|running| running.child.id())
    }

    async fn lost(&mut self, error: &io::Error) -> EngineError {
        let Some(Running { mut child, stream, said, .. }) = self.running.take() else {
            return EngineError::Lost(error.to_string());
        };
        drop(stream);
        match timeout(DYING, child.wait()).await {
            Ok(Ok(status)) => EngineError::Lost(ending(status) + &last_words(said)),
            _ => {
                self.give_up(child).await;
                EngineError::Lost(error.to_string())
            }
        }
    }

    async fn abandon(&mut self) {
        if let Some(Running { child, .. }) = self.running.take() {
            self.give_up(child).await;
        }
    }

    /// Kills it; most die of that at once, one that hangs in the driver does not.
    async fn give_up(&mut self, mut child: Child) {
        // It may be dead already; then there is nothing to kill.
        drop(child.start_kill());
        if timeout(DYING, child.wait()).await.is_err() {
            self.abandoned = Some(child);
        }
    }
}

fn spawn(role: &OsStr, site: &Site) -> io::Result<Running> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let program = match &site.program {
        Some(program) => program.clone(),
        None if Path::new(SELF).exists() => SELF.into(),
        None => std::env::current_exe()?,
    };
    let mut name = OsString::from("migd: worker ");
    name.push(role);
    let mut command = std::process::Command::new(program);
    command.arg0(name).arg(WORKER_ARGUMENT).arg(role);
    if let Some(library) = &site.library {
        command.arg(library);
    }
    // A changed PATH is for the reset tool; here it would only keep the process from being spawned the fast way.
    let environment = site.environment.iter().filter(|(key, _)| key != "PATH");
    command.envs(environment.map(|(key, value)| (key, value)));
    command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null());
    // Without room for its words it works all the same.
    let said = tempfile::tempfile().ok();
    command.stderr(match said.as_ref().map(File::try_clone) {
        Some(Ok(file)) => Stdio::from(file),
        _ => Stdio::null(),
    });
    // A group of its own: Ctrl-C is for the main process, which lets workers finish what they are at.
    command.process_group(0);
    let stream = UnixStream::from_std(ours)?;
    Ok(Running { child: Command::from(command).spawn()?, stream, said, busy: false })
}

/// What it said at its end, if anything.
fn last_words(said: Option<File>) -> String {
    let mut text = Vec::new();
    let read = said.and_then(|mut said| {
        said.rewind().ok()?;
        said.take(MOST_WORDS).read_to_end(&mut text).ok()
    });
    let words = String::from_utf8_lossy(&text).split_whitespace().collect::<Vec<_>>().join(" ");
    if read.is_none() || words.is_empty() { String::new() } else { format!(" ({words})") }
}

async fn exchange(stream: &mut UnixStream, request: &Request) -> io::Result<Response> {
    stream.write_all(&protocol::to_frame(request)?).await?;
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let mut body = vec![0; protocol::length_of(head)?];
    stream.read_exact(&mut body).await?;
    protocol::of_body(&body)
}

fn ending(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("killed by signal {signal}"),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "ended".to_owned(),
    }
}
