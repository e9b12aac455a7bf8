//! The parent of an enclosed program: does what the kernel would do when a PCI device's `reset` is written, and
//! ends as the program ends.
//!
//! ```text
//! program --writes 1 to /sys/bus/pci/devices/ADDRESS/reset--> tree's file --inotify--> reset, file emptied
//! program ends --SIGCHLD--> what was written before is still done --> same exit code, or the same signal
//! ```
//!
//! Unlike the kernel's, the write does not wait for the reset: the file is empty again when it is done.
//! Signals for the parent are the program's; a parent that is killed takes the program with it.

use crate::{
    handling::{self, address_of},
    shared::Shard,
    trouble::Trouble,
};
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor},
        prctl,
        signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, raise, sigaction},
        signalfd::{SfdFlags, SignalFd},
    },
    unistd::{Pid, getpid, getppid},
};
use std::{
    fs::{self, File},
    io,
    os::{
        fd::AsFd,
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
};

/// Passed on to the program if a process sent them; a terminal sends its own to the program too.
const PASSED_ON: [Signal; 6] =
    [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];

/// Runs a program to its end, and resets GPUs whose `reset` below `tree` is written meanwhile. `report` is told of
/// a reset that failed.
///
/// # Errors
/// [`Trouble::Failed`] if the program does not start or the tree cannot be watched.
pub fn run(
    command: &mut Command,
    shard: &Shard,
    tree: &Path,
    report: impl Fn(Trouble),
) -> Result<ExitStatus, Trouble> {
    let failed = |e: nix::Error| Trouble::Failed(format!("cannot watch the program: {e}"));
    let resets = Resets::watch(shard, tree)?;
    let mut signals = SigSet::from_iter(PASSED_ON);
    signals.add(Signal::SIGCHLD);
    let before = signals.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK).map_err(failed)?;
    let signals =
        SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map_err(failed)?;
    let parent = getpid();
    // SAFETY: between fork and exec only system calls are made, on values that were there before.
    unsafe {
        command.pre_exec(move || {
            before.thread_set_mask()?;
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            // The parent may have been killed before that was asked for.
            if getppid() == parent { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
        });
    }
    let name = command.get_program().to_owned();
    let mut child = command
        .spawn()
        .map_err(|e| Trouble::Failed(format!("cannot run {}: {e}", name.to_string_lossy())))?;
    let status = loop {
        let mut waiting = [
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(resets.events.as_fd(), PollFlags::POLLIN),
        ];
        // The program's own time: whoever started it ends it.
        match poll(&mut waiting, PollTimeout::NONE) {
            Err(nix::Error::EINTR) | Ok(_) => {}
            Err(e) => return Err(failed(e)),
        }
        resets.carry_out(&report);
        pass_on(&signals, &child).map_err(failed)?;
        let ended = child.try_wait().map_err(|e| Trouble::Failed(format!("cannot wait: {e}")))?;
        if let Some(status) = ended {
            break status;
        }
    };
    resets.carry_out(&report);
    Ok(status)
}

/// Ends this process as another did.
pub fn end_as(status: ExitStatus) -> u8 {
    let Some(number) = status.signal() else {
        return u8::try_from(status.code().unwrap_or(1)).unwrap_or(1);
    };
    if let Ok(signal) = Signal::try_from(number) {
        let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        // SAFETY: the default action is no code of ours.
        let _ = unsafe { sigaction(signal, &default) };
        let _ = SigSet::from_iter([signal]).thread_unblock();
        let _ = raise(signal);
    }
    // A signal that does not end a process by itself.
    128u8.saturating_add(u8::try_from(number).unwrap_or(u8::MAX))
}

fn pass_on(signals: &SignalFd, child: &Child) -> nix::Result<()> {
    let child = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
    while let Some(got) = signals.read_signal()? {
        let signal = Signal::try_from(got.ssi_signo as i32)?;
        if PASSED_ON.contains(&signal) && got.ssi_code != libc::SI_KERNEL {
            // It may have ended meanwhile.
            let _ = kill(child, signal);
        }
    }
    Ok(())
}

/// The `reset` files of a tree's PCI devices.
struct Resets<'a> {
    shard: &'a Shard,
    events: Inotify,
    files: Vec<(WatchDescriptor, usize, PathBuf)>,
}

impl<'a> Resets<'a> {
    fn watch(shard: &'a Shard, tree: &Path) -> Result<Resets<'a>, Trouble> {
        let failed = |path: &Path, e: nix::Error| Trouble::io("watch", path, &e.into());
        let flags = InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK;
        let events = Inotify::init(flags).map_err(|e| failed(tree, e))?;
        let mut files = Vec::new();
        for (gpu, model) in shard.models().iter().enumerate() {
            let file = tree.join(format!("sys/bus/pci/devices/{}/reset", address_of(model)));
            let watch = events.add_watch(&file, AddWatchFlags::IN_MODIFY).map_err(|e| failed(&file, e))?;
            files.push((watch, gpu, file));
        }
        Ok(Resets { shard, events, files })
    }

    /// Does what has been asked for so far.
    fn carry_out(&self, report: &impl Fn(Trouble)) {
        // EAGAIN: nothing has.
        let Ok(events) = self.events.read_events() else { return };
        for (watch, gpu, file) in &self.files {
            if !events.iter().any(|event| event.wd == *watch) {
                continue;
            }
            let text = fs::read_to_string(file).unwrap_or_default();
            // Emptied by us, or opened to be written just now.
            if text.is_empty() {
                continue;
            }
            // Anything else the kernel refuses; here the file's being emptied has to say it.
            if text.trim() == "1"
                && let Err(trouble) = handling::reset(self.shard, *gpu)
            {
                report(trouble);
            }
            if let Err(e) = File::options().write(true).truncate(true).open(file) {
                report(Trouble::io("empty", file, &e));
            }
        }
    }
}
