//! A process that SIGKILL does not end: frozen in a cgroup of the v1 freezer, as one in a hung driver call is in
//! state D. What is frozen here is thawed when its fault is cleared.

use crate::trouble::Trouble;
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// How long a thawed process has to leave its cgroup, and how often that is looked at.
const LEAVING_LIMIT: Duration = Duration::from_secs(2);
const LEAVING_POLL: Duration = Duration::from_millis(2);
const ROOT: &str = "/sys/fs/cgroup/freezer";

/// The cgroups of the processes of one node that hang so.
#[derive(Debug)]
pub struct Freezer(PathBuf);

impl Freezer {
    /// The node's, named by its state's inode.
    ///
    /// # Errors
    /// What is missing, and what would help.
    pub fn of(folder: &Path) -> Result<Freezer, Trouble> {
        use std::os::unix::fs::MetadataExt;
        let state = folder.join("state");
        let found = fs::metadata(&state).map_err(|error| Trouble::io("look at", &state, &error))?;
        Ok(Freezer(Path::new(ROOT).join(format!("nvml-simulator-{}-{}", found.dev(), found.ino()))))
    }

    /// Whether processes can be frozen on this machine by this user.
    ///
    /// # Errors
    /// [`Trouble::Failed`] says what is missing.
    pub fn usable(&self) -> Result<(), Trouble> {
        fs::create_dir_all(&self.0).and_then(|()| fs::metadata(self.0.join("freezer.state"))).map(drop).map_err(
            |error| {
                Trouble::Failed(format!(
                    "hang=unkillable needs the v1 freezer at {ROOT} and the right to make cgroups there ({error}); \
                     mount it as root, or use hang=forever"
                ))
            },
        )
    }

    /// Freezes this process until the node's frozen ones are released.
    ///
    /// # Errors
    /// What the system answers.
    pub(super) fn freeze_self(&self) -> io::Result<()> {
        let pid = std::process::id().to_string();
        let home = own_cgroup()?;
        let cell = self.0.join(&pid);
        fs::create_dir_all(&cell)?;
        fs::write(cell.join("cgroup.procs"), &pid)?;
        // This write freezes the writer: it goes on once another writes THAWED.
        fs::write(cell.join("freezer.state"), "FROZEN")?;
        std::thread::yield_now();
        fs::write(home.join("cgroup.procs"), &pid)?;
        fs::remove_dir(&cell)
    }

    /// Lets all frozen processes of the node go on.
    ///
    /// # Errors
    /// [`Trouble::Failed`] if one cannot be thawed.
    pub fn release(&self) -> Result<(), Trouble> {
        let Ok(entries) = fs::read_dir(&self.0) else { return Ok(()) };
        for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
            let state = entry.path().join("freezer.state");
            match fs::write(&state, "THAWED") {
                // It has taken its cgroup away itself.
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Trouble::io("write", &state, &error));
                }
                _ => {}
            }
            // One that lives takes its cgroup away itself; of one that was killed meanwhile it is left here.
            let until = Instant::now() + LEAVING_LIMIT;
            while fs::remove_dir(entry.path()).is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
                && Instant::now() < until
            {
                std::thread::sleep(LEAVING_POLL);
            }
        }
        // It is made anew by the next to freeze.
        let _ = fs::remove_dir(&self.0);
        Ok(())
    }
}

fn own_cgroup() -> io::Result<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup")?;
    let line = text.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|name| name == "freezer").then_some(path)
    });
    let path = line.ok_or_else(|| io::Error::other("this process is in no freezer cgroup"))?;
    Ok(Path::new(ROOT).join(path.trim_start_matches('/')))
}
