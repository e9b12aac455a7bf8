//! The folder of a node: where it lies, whose it is, and how it comes to be.
//!
//! ```text
//! none --lock, make state, clients, lib/, bin/--> node --opened by anyone who may--> node
//!                                                  |
//!                       another identity asks --> refused (exit 3), untouched
//! ```
//!
//! ```text
//! FOLDER/state     the mapped node (shared.rs)       FOLDER/lib/libnvidia-ml.so.1  link to our library, or copy (older.rs)
//! FOLDER/clients   who has a GPU open (client.rs)    FOLDER/bin/nvidia-smi         link to the stand-in
//! FOLDER/events    what happened (events.rs)
//! FOLDER/readings  what is measured (readings.rs)
//! FOLDER/faults    what is to go wrong (fault.rs)
//! FOLDER/lock      held while the node is made
//! ```
//!
//! Programs load a library by way of this folder, so a folder that another user could have prepared is
//! refused: it must be a real directory that belongs to the caller and that no one else can write to.

use crate::{client::Clients, notation::Description, older, shared::Shard, trouble::Trouble};
use std::{
    ffi::OsStr,
    fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError},
    io::ErrorKind,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

/// How long one process waits for another that makes the node.
const MAKING_LIMIT: Duration = Duration::from_secs(30);
const MAKING_POLL: Duration = Duration::from_millis(5);
/// Counts the links that this process has put in place: part of their temporary names.
static LINKS: AtomicU32 = AtomicU32::new(0);
/// Longer names of default folders are cut and told apart by their identity.
const NAME_LIMIT: usize = 60;

/// Where the library and the stand-in are linked from.
#[derive(Debug, Clone)]
pub struct Parts {
    /// The built library.
    pub library: PathBuf,
    /// The built `nvidia-smi`.
    pub stand_in: PathBuf,
}

impl Parts {
    /// Looks where this program lies.
    ///
    /// # Errors
    /// [`Trouble::Failed`] names the places looked at.
    pub fn find() -> Result<Parts, Trouble> {
        let program = std::env::current_exe()
            .map_err(|e| Trouble::Failed(format!("cannot find out where this program lies: {e}")))?;
        let beside = program.parent().unwrap_or(Path::new("/"));
        let library = match std::env::var_os("NVML_SIMULATOR_LIBRARY") {
            Some(path) => vec![PathBuf::from(path)],
            None => {
                let names =
                    ["libnvidia_ml.so", "../lib/migd/libnvidia_ml.so", "../lib/migd/libnvidia-ml.so.1"];
                names.iter().map(|name| beside.join(name)).collect()
            }
        };
        let stand_in = vec![beside.join("nvidia-smi"), beside.join("../lib/migd/nvidia-smi")];
        Ok(Parts {
            library: first(library, "the simulator's library; set NVML_SIMULATOR_LIBRARY to its path")?,
            stand_in: first(stand_in, "the stand-in nvidia-smi")?,
        })
    }
}

fn first(places: Vec<PathBuf>, what: &str) -> Result<PathBuf, Trouble> {
    if let Some(found) = places.iter().find(|place| place.is_file()) {
        return fs::canonicalize(found).map_err(|e| Trouble::io("resolve", found, &e));
    }
    let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    Err(Trouble::Failed(format!("cannot find {what} (looked at {})", places.join(", "))))
}

/// Opens the node of a description, making it if it is not there.
///
/// # Errors
/// [`Trouble::Input`] if the folder holds another node or other things; [`Trouble::Failed`] if it cannot be
/// trusted or used.
pub fn open(
    description: &Description,
    state: Option<&Path>,
    shared: bool,
    parts: &Parts,
) -> Result<Shard, Trouble> {
    let folder = match state {
        Some(folder) => absolute(folder)?,
        None => default(description)?,
    };
    make_private(&folder, if shared { 0o755 } else { 0o700 })?;
    if !folder.join("state").exists() {
        let _lock = lock(&folder)?;
        // Another process may have made it meanwhile.
        if !folder.join("state").exists() {
            make(description, &folder, shared)?;
        }
    }
    let shard = Shard::open(&folder)?;
    let there = shard.info();
    if there.identity.as_str() != description.identity() {
        return Err(Trouble::input(format!(
            "{} holds another node ({}, made from another description or by another edition of the simulator); \
             remove the folder or give another with --state",
            folder.display(),
            there.notation.as_str()
        )));
    }
    let missing = older::missing(&description.driver);
    if missing.is_empty() {
        link(&folder, "lib", "libnvidia-ml.so.1", &parts.library)?;
    } else {
        put(&folder, "lib", "libnvidia-ml.so.1", |path, temporary| {
            older::serve(&parts.library, path, temporary, &missing)
        })?;
    }
    link(&folder, "lib", "libnvidia-ml.so", Path::new("libnvidia-ml.so.1"))?;
    link(&folder, "bin", "nvidia-smi", &parts.stand_in)?;
    Ok(shard)
}

fn absolute(path: &Path) -> Result<PathBuf, Trouble> {
    std::path::absolute(path).map_err(|e| Trouble::io("use", path, &e))
}

/// The folder of a node for which none is given.
fn default(description: &Description) -> Result<PathBuf, Trouble> {
    let base = match std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| Path::new(dir).is_absolute()) {
        Some(runtime) if Path::new(&runtime).is_dir() => Path::new(&runtime).join("nvml-simulator"),
        _ => PathBuf::from(format!("/tmp/nvml-simulator-{}", effective_uid())),
    };
    make_private(&base, 0o700)?;
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.,+".contains(c) { c } else { '_' };
    let mut name: String = description.folder_name.chars().map(plain).collect();
    if name.len() > NAME_LIMIT || name.starts_with('.') {
        let identity = description.identity();
        name = format!(
            "{}-{}",
            name.get(..NAME_LIMIT.min(name.len())).unwrap_or(""),
            identity.get(..12).unwrap_or("")
        );
        name = name.trim_start_matches('.').to_owned();
    }
    Ok(base.join(name))
}

/// Makes a directory, or checks that the one there is the caller's and no one else can write to it.
fn make_private(folder: &Path, mode: u32) -> Result<(), Trouble> {
    match DirBuilder::new().mode(mode).create(folder) {
        Ok(()) => {
            // The umask may have taken more than asked; the owner's rights are needed.
            return fs::set_permissions(folder, Permissions::from_mode(mode))
                .map_err(|e| Trouble::io("set the mode of", folder, &e));
        }
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
        Err(e) => return Err(Trouble::io("make", folder, &e)),
    }
    let found = fs::symlink_metadata(folder).map_err(|e| Trouble::io("look at", folder, &e))?;
    let refuse = |why: &str| Err(Trouble::Failed(format!("{} is not used: {why}", folder.display())));
    if found.file_type().is_symlink() {
        return refuse("it is a symbolic link; name the folder itself");
    }
    if !found.is_dir() {
        return refuse("it is no folder");
    }
    if found.mode() & 0o022 != 0 {
        return refuse("others can write to it; `chmod go-w` it, or remove it");
    }
    // A shared node may be opened by others, who take what its owner links there; root's is root's to share.
    let made_to_share = found.mode() & 0o055 == 0o055 && folder.join("state").exists();
    if found.uid() != effective_uid() && !made_to_share {
        return refuse("it belongs to another user");
    }
    Ok(())
}

/// Waits its turn to make the node.
fn lock(folder: &Path) -> Result<File, Trouble> {
    let path = folder.join("lock");
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(|e| Trouble::io("open", &path, &e))?;
    let until = Instant::now() + MAKING_LIMIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(e)) => return Err(Trouble::io("lock", &path, &e)),
            Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(MAKING_POLL),
            Err(TryLockError::WouldBlock) => {
                return Err(Trouble::Failed(format!(
                    "another process has been making the node in {} for {} s",
                    folder.display(),
                    MAKING_LIMIT.as_secs()
                )));
            }
        }
    }
}

fn make(description: &Description, folder: &Path, shared: bool) -> Result<(), Trouble> {
    let entries = fs::read_dir(folder).map_err(|e| Trouble::io("read", folder, &e))?;
    for entry in entries {
        let name = entry.map_err(|e| Trouble::io("read", folder, &e))?.file_name();
        let ours = ["lock", "clients", "events", "readings", "faults", "lib", "bin"]
            .iter()
            .any(|ours| name == OsStr::new(ours))
            || name.to_string_lossy().starts_with("state.new.");
        if !ours {
            return Err(Trouble::input(format!(
                "{} holds other things ({}) and no node; give an empty or new folder",
                folder.display(),
                name.to_string_lossy()
            )));
        }
    }
    let (info, gpus) = description.make()?;
    let mode = Permissions::from_mode(if shared { 0o666 } else { 0o600 });
    let clients = folder.join("clients");
    Clients::open(folder).map_err(|e| Trouble::io("make", &clients, &e))?;
    fs::set_permissions(&clients, mode.clone()).map_err(|e| Trouble::io("set the mode of", &clients, &e))?;
    Shard::create(folder, &info, &gpus)?;
    ["events", "readings", "faults", "state"].iter().try_for_each(|name| {
        let path = folder.join(name);
        fs::set_permissions(&path, mode.clone()).map_err(|e| Trouble::io("set the mode of", &path, &e))
    })
}

/// Keeps `folder/sub/name` a link to `target`; put in place at one instant, as programs may be starting.
fn link(folder: &Path, sub: &str, name: &str, target: &Path) -> Result<(), Trouble> {
    put(folder, sub, name, |path, temporary| {
        if fs::read_link(path).is_ok_and(|there| there == target) {
            return Ok(());
        }
        let made = symlink(target, temporary).and_then(|()| fs::rename(temporary, path));
        made.map_err(|e| Trouble::io("link", path, &e))
    })
}

/// Puts something at `folder/sub/name`, by way of a temporary name of its own.
fn put(
    folder: &Path,
    sub: &str,
    name: &str,
    make: impl FnOnce(&Path, &Path) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let dir = folder.join(sub);
    let path = dir.join(name);
    let found = fs::metadata(folder);
    if found.as_ref().is_ok_and(|found| found.uid() != effective_uid()) && path.exists() {
        // Someone else's shared node: what programs load there is its owner's choice.
        return Ok(());
    }
    match DirBuilder::new().mode(found.map_or(0o700, |found| found.mode() & 0o777)).create(&dir) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(Trouble::io("make", &dir, &e)),
        _ => {}
    }
    // Threads of one process may be at it too.
    let turn = LINKS.fetch_add(1, Ordering::Relaxed);
    make(&path, &dir.join(format!(".{name}.{}.{turn}", std::process::id())))
}

/// The user on whose rights this process acts.
pub fn effective_uid() -> u32 {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests;
