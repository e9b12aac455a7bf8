//! A file of fixed size in a node's folder, mapped by all who open the node.
//!
//! All bytes zero are its legal first state, so making it is one open and one ftruncate, which any number of
//! openers may do at once. It holds atomics only. Those who must not write at the same time take turns by a
//! flock on a description of their own: the kernel gives it back when its holder dies at whatever instruction,
//! and there is nothing to repair.

use crate::shared::{Locked, StateError};
use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    marker::PhantomData,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

/// How long anyone waits for its turn. Holders keep it for microseconds; only a stopped one takes longer.
const TURN_LIMIT: Duration = Duration::from_secs(30);
/// Between tries, from the first to the last.
const FIRST_POLL: Duration = Duration::from_micros(20);
const LAST_POLL: Duration = Duration::from_millis(2);

/// What such a file may hold.
///
/// # Safety
/// All bytes zero must be legal, and every field that is reached through a shared reference an atomic or inside
/// one of the type's own cells that reads it atomically. The first field is the version word.
pub(crate) unsafe trait Layout: Sync {
    /// The file's name in the folder.
    const NAME: &'static str;
    /// Counts up whenever the layout changes; a file of another version is refused.
    const VERSION: u64;

    /// The first word.
    fn version(&self) -> &AtomicU64;
}

/// The mapped file.
#[derive(Debug)]
pub(crate) struct Mapped<T: Layout> {
    map: NonNull<T>,
    path: PathBuf,
    kind: PhantomData<T>,
}

// SAFETY: the mapping lives as long as the value, and what lies in it is `Sync` by the contract of `Layout`.
unsafe impl<T: Layout> Send for Mapped<T> {}
// SAFETY: as for Send.
unsafe impl<T: Layout> Sync for Mapped<T> {}

impl<T: Layout> Mapped<T> {
    /// Opens the file in a node's folder, making it if it is missing.
    ///
    /// # Errors
    /// [`StateError`].
    pub(crate) fn open(folder: &Path) -> Result<Mapped<T>, StateError> {
        let path = folder.join(T::NAME);
        let io = |source| StateError::Io { path: path.clone(), source };
        let foreign = |why| StateError::Foreign { path: path.clone(), why };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o666)
            .custom_flags(libc::O_CLOEXEC)
            .open(&path)
            .map_err(io)?;
        crate::client::open_to_all(&file);
        let bytes = size_of::<T>() as u64;
        match file.metadata().map_err(io)?.len() {
            0 => file.set_len(bytes).map_err(io)?,
            length if length == bytes => {}
            _ => return Err(foreign("other size")),
        }
        // SAFETY: a fresh shared mapping of a file of exactly this size; nothing else is at that address.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<T>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io(io::Error::last_os_error()));
        }
        let map: Option<NonNull<T>> = NonNull::new(address.cast());
        let map = map.ok_or_else(|| io(io::Error::other("mapped at address 0")))?;
        let mapped = Mapped { map, path: path.clone(), kind: PhantomData };
        let word = mapped.get().version();
        match word.compare_exchange(0, T::VERSION, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Ok(mapped),
            Err(version) if version == T::VERSION => Ok(mapped),
            Err(_) => Err(foreign("other version")),
        }
    }

    /// What lies in it.
    pub(crate) fn get(&self) -> &T {
        // SAFETY: the mapping is that large, aligned to a page, and lives as long as self; any process may
        // write to it meanwhile, which the contract of `Layout` allows for.
        unsafe { self.map.as_ref() }
    }

    /// Waits for the turn to write.
    ///
    /// # Errors
    /// [`Locked`] if it cannot be had within [`TURN_LIMIT`].
    pub(crate) fn turn(&self) -> Result<Turn, Locked> {
        // A description of one's own: another thread's, or a forked parent's, would be let in beside it.
        let file = File::open(&self.path).map_err(|_| Locked)?;
        let until = Instant::now() + TURN_LIMIT;
        let mut poll = FIRST_POLL;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Turn(file)),
                Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(poll),
                Err(_) => return Err(Locked),
            }
            poll = (poll * 2).min(LAST_POLL);
        }
    }
}

impl<T: Layout> Drop for Mapped<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `open` with this size, and no reference into it outlives self.
        unsafe { libc::munmap(self.map.as_ptr().cast(), size_of::<T>()) };
    }
}

/// The turn to write, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Turn(File);

impl Drop for Turn {
    fn drop(&mut self) {
        // By hand, since a process that another thread forked meanwhile has the description too.
        let _ = self.0.unlock();
    }
}
