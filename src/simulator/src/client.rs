//! Who has a GPU open, as the driver's reset and Ampere's mode switch see it.
//!
//! A process is a client of a GPU from its first handle on it until NVML shutdown or its death. Each keeps a
//! shared open-file-description lock on the GPU's byte of one file; asking for the exclusive lock tells whether
//! anyone else is there. Such a lock goes with the description, so a child that inherited it keeps the GPU
//! open too, as an inherited /dev/nvidia0 would.

use std::{
    fs::{File, OpenOptions, Permissions},
    io,
    os::fd::AsRawFd,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

/// One process's view of the clients file of a node.
#[derive(Debug)]
pub struct Clients {
    file: File,
}

impl Clients {
    /// Opens the clients file of a node, `<folder>/clients`, making it if it is missing.
    ///
    /// # Errors
    /// What open(2) answers.
    pub fn open(folder: &Path) -> io::Result<Clients> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o666)
            .custom_flags(libc::O_CLOEXEC)
            .open(folder.join("clients"))?;
        open_to_all(&file);
        Ok(Clients { file })
    }

    /// Becomes a client of a GPU; again is no change.
    ///
    /// # Errors
    /// What fcntl(2) answers.
    pub fn enter(&self, gpu: usize) -> io::Result<()> {
        self.lock(gpu, libc::F_RDLCK, libc::F_OFD_SETLK).map(|_| ())
    }

    /// Is no client any more.
    ///
    /// # Errors
    /// What fcntl(2) answers.
    pub fn leave(&self, gpu: usize) -> io::Result<()> {
        self.lock(gpu, libc::F_UNLCK, libc::F_OFD_SETLK).map(|_| ())
    }

    /// Whether anyone but this process is a client of the GPU.
    ///
    /// # Errors
    /// What fcntl(2) answers.
    pub fn others(&self, gpu: usize) -> io::Result<bool> {
        // Asking for the exclusive lock: this description's own lock never stands in its way.
        let answer = self.lock(gpu, libc::F_WRLCK, libc::F_OFD_GETLK)?;
        Ok(i32::from(answer.l_type) != libc::F_UNLCK)
    }

    fn lock(&self, gpu: usize, kind: i32, command: i32) -> io::Result<libc::flock> {
        byte_lock(&self.file, gpu as u32, kind, command)
    }
}

/// Sets, gives back or looks at an open-file-description lock on one byte of a file.
///
/// # Errors
/// What fcntl(2) answers.
pub(crate) fn byte_lock(file: &File, at: u32, kind: i32, command: i32) -> io::Result<libc::flock> {
    // SAFETY: `flock` is plain data, legal when all bytes are zero.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = at.into();
    lock.l_len = 1;
    // SAFETY: the descriptor is open as long as `file` lives, and `lock` is a valid flock that the kernel reads
    // and, for F_OFD_GETLK, writes.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, &mut lock) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(lock) }
}

/// Makes a file of a node readable and writable whatever the umask of who made it: a node that is shared is
/// shared wholly, and a private one is so by its folder. Others than the owner may not, and need not.
pub(crate) fn open_to_all(file: &File) {
    let _ = file.set_permissions(Permissions::from_mode(0o666));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_others_and_not_itself() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (Clients::open(folder.path()).unwrap(), Clients::open(folder.path()).unwrap());
        a.enter(3).unwrap();
        assert!(!a.others(3).unwrap());
        assert!(b.others(3).unwrap());
        assert!(!b.others(2).unwrap());
        b.enter(3).unwrap();
        a.leave(3).unwrap();
        assert!(!b.others(3).unwrap());
        assert!(a.others(3).unwrap());
        drop(b);
        assert!(!a.others(3).unwrap());
    }
}
