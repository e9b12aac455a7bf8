//! Files that appear whole: made beside the tree's own, then moved into place by one rename.

use std::{
    ffi::CString,
    fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError},
    io::{self, ErrorKind},
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

/// How long one process waits for another that writes the tree; it needs less than a millisecond.
const LOCK_LIMIT: Duration = Duration::from_secs(10);
const LOCK_POLL: Duration = Duration::from_micros(200);
/// Where things are made before they are moved into place; only the lock's holder is at it.
const WORKSHOP: &str = ".new";

/// The right to write a node's trees, given back by hand: a forked child has the description too.
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Waits for the right to write a node's trees.
pub(super) fn lock(folder: &Path) -> io::Result<Lock> {
    let path = folder.join("tree.lock");
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    let until = Instant::now() + LOCK_LIMIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Lock(file)),
            Err(TryLockError::Error(e)) => return Err(e),
            Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(LOCK_POLL),
            Err(TryLockError::WouldBlock) => return Err(ErrorKind::TimedOut.into()),
        }
    }
}

/// Replaces a file at one instant.
pub(super) fn replace(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}", std::process::id()));
    put(Path::new(&temporary), text, mode)?;
    fs::rename(&temporary, path)
}

/// A file with this mode whatever the umask.
fn put(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    fs::write(path, text)?;
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Writes below one root.
pub(super) struct Writer {
    root: PathBuf,
    workshop: PathBuf,
}

impl Writer {
    /// Makes the root if it is missing, and clears away what a killed writer left.
    pub(super) fn new(root: &Path) -> io::Result<Writer> {
        folders(root)?;
        let workshop = root.join(WORKSHOP);
        remove(&workshop)?;
        folders(&workshop)?;
        Ok(Writer { root: root.to_owned(), workshop })
    }

    /// The tree is written.
    pub(super) fn finish(self) {
        // What stays is cleared away by the next writer.
        let _ = remove(&self.workshop);
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.root.join(name).symlink_metadata().is_ok()
    }

    pub(super) fn folder(&self, name: &str) -> io::Result<()> {
        folders(&self.root.join(name))
    }

    /// A file that appears, or is replaced, at one instant.
    pub(super) fn file(&self, name: &str, text: &str, mode: u32) -> io::Result<()> {
        let made = self.workshop.join("file");
        put(&made, text, mode)?;
        self.move_in(&made, name)
    }

    /// A symbolic link.
    pub(super) fn link(&self, name: &str, target: &str) -> io::Result<()> {
        let made = self.workshop.join("link");
        std::os::unix::fs::symlink(target, &made)?;
        self.move_in(&made, name)
    }

    /// A folder that appears at one instant with all that `fill` puts into it.
    pub(super) fn folder_at_once(
        &self,
        name: &str,
        fill: impl FnOnce(&Inside) -> io::Result<()>,
    ) -> io::Result<()> {
        let made = self.workshop.join("folder");
        remove(&made)?;
        folders(&made)?;
        fill(&Inside(&made))?;
        self.move_in(&made, name)
    }

    /// A character device, or a plain file where this process may not make one.
    pub(super) fn device(&self, name: &str, major: u32, minor: u32, mode: u32) -> io::Result<()> {
        let made = self.workshop.join("device");
        remove(&made)?;
        let path = CString::new(made.as_os_str().as_bytes())?;
        // SAFETY: mknod reads a path that ends with a zero and lives over the call.
        let result = unsafe { libc::mknod(path.as_ptr(), libc::S_IFCHR | mode, libc::makedev(major, minor)) };
        if result == 0 {
            fs::set_permissions(&made, Permissions::from_mode(mode))?;
        } else {
            match io::Error::last_os_error().kind() {
                ErrorKind::PermissionDenied => put(&made, "", mode)?,
                _ => return Err(io::Error::last_os_error()),
            }
        }
        self.move_in(&made, name)
    }

    /// Removes what `stays` does not want in a folder, each at one instant.
    pub(super) fn remove_others(&self, folder: &str, stays: impl Fn(&str) -> bool) -> io::Result<()> {
        let folder = self.root.join(folder);
        let entries = match fs::read_dir(&folder) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        for entry in entries {
            let name = entry?.file_name();
            if name.to_str().is_some_and(|name| !stays(name)) {
                let gone = self.workshop.join("gone");
                remove(&gone)?;
                fs::rename(folder.join(&name), &gone)?;
                remove(&gone)?;
            }
        }
        Ok(())
    }

    fn move_in(&self, made: &Path, name: &str) -> io::Result<()> {
        let place = self.root.join(name);
        match fs::rename(made, &place) {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                folders(place.parent().unwrap_or(&self.root))?;
                fs::rename(made, &place)
            }
            other => other,
        }
    }
}

/// A folder that is not in place yet.
pub(super) struct Inside<'a>(&'a Path);

impl Inside<'_> {
    pub(super) fn file(&self, name: &str, text: &str, mode: u32) -> io::Result<()> {
        let path = self.0.join(name);
        folders(path.parent().unwrap_or(self.0))?;
        put(&path, text, mode)
    }
}

/// A folder with all above it, open to read for everyone: programs may give up root's rights.
fn folders(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent() {
        folders(above)?;
    }
    match DirBuilder::new().mode(0o755).create(path) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(e),
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(0o755)),
    }
}

/// Removes whatever is there, if anything is.
fn remove(path: &Path) -> io::Result<()> {
    let result = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(e) => Err(e),
    };
    match result {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
