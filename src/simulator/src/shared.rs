//! A node's state in one mapped file, shared by every process that opens it.
//!
//! ```text
//! state file:  Info | models[32] (fixed at creation) | cells[32]
//! cell (one a GPU):  robust mutex | generation | buffer 0 | buffer 1
//!
//! reader:  g = generation; copy buffer[g & 1]; again if generation != g        (no lock)
//! writer:  lock; copy buffer[g & 1] to buffer[(g+1) & 1]; change that; generation = g + 1; unlock
//! ```
//!
//! The generation's store is the one instant at which a change happens: a writer killed before it leaves the
//! old state, after it the new one, and its lock is recovered by the next (EOWNERDEAD). A mutex that was
//! copied with its file or kept over a reboot would hang for ever, so the file remembers boot and inode, and
//! whoever opens it elsewhere makes the locks anew first.

use crate::{
    events::Events,
    fault::Faults,
    holders::Holders,
    model::{MAX_GPUS, Model, Text},
    readings::Readings,
    state::GpuState,
};
use std::{
    cell::UnsafeCell,
    fs::{File, OpenOptions},
    io,
    mem::size_of,
    os::fd::AsRawFd,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering, fence},
};

/// First word of every state file.
const MAGIC: u64 = 0x6e76_6d6c_7369_6d01;
/// Counts up whenever the layout of the file changes; a file of another version is refused.
const VERSION: u32 = 5;
/// How often a reader tries without the lock while writers overtake it.
const READ_TRIES: u32 = 64;
/// How long anyone waits for a GPU's lock. Holders keep it for microseconds; only a stopped one takes longer.
const LOCK_LIMIT_SECONDS: i64 = 30;

/// What concerns the whole node, fixed when it is made.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Info {
    /// How the node was written: `8xa100-40gb`, a named node, or a file's name.
    pub notation: Text<128>,
    /// Hash of the description: another description in the same folder is another node.
    pub identity: Text<72>,
    /// Driver version, `580.95.05`.
    pub driver: Text<32>,
    /// NVML version, `13.580.95.05`.
    pub nvml: Text<32>,
    /// CUDA version as NVML gives it, 13000.
    pub cuda: u32,
    /// Number of GPUs.
    pub gpu_count: u32,
    /// 1: rights are checked by effective uid, as the driver does; 0: everyone may everything.
    pub privileges_real: u32,
    /// 1: the GPUs are joined by NVSwitch.
    pub nvswitch: u32,
    /// Fabric Manager where there is an NVSwitch: 1 stopped, 2 running.
    pub fabric: u32,
    /// The clique of the GPUs in their NVLink fabric.
    pub clique: u32,
    /// The fabric's cluster UUID; zero within one machine.
    pub cluster: [u8; 16],
    /// 1: writes on different GPUs wait for each other.
    pub driver_lock_node: u32,
    /// Answers that no one has seen on hardware, switchable (see `machine`): one word each.
    pub unknowns: [u32; 32],
}

#[repr(C)]
struct Header {
    magic: u64,
    version: u32,
    bytes: u32,
    boot: Text<40>,
    device: u64,
    inode: u64,
    info: Info,
}

#[repr(C, align(64))]
struct Cell {
    lock: UnsafeCell<libc::pthread_mutex_t>,
    generation: AtomicU64,
    buffers: [UnsafeCell<GpuState>; 2],
}

#[repr(C)]
struct Shared {
    header: UnsafeCell<Header>,
    models: [Model; MAX_GPUS],
    cells: [Cell; MAX_GPUS],
}

/// Why a node's state cannot be opened or made.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A system call failed.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is no state of this version of the simulator.
    #[error("{path}: not a node state of this nvml-simulator ({why}); remove the folder to start anew")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        why: &'static str,
    },
}

/// A GPU's lock could not be had within [`LOCK_LIMIT_SECONDS`], or is beyond repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the GPU's state is locked by a process that does not go on")]
pub struct Locked;

/// An open node.
#[derive(Debug)]
pub struct Shard {
    map: NonNull<Shared>,
    /// The folder it lies in.
    pub folder: PathBuf,
    /// What happened on it.
    pub events: Events,
    /// What its GPUs measure.
    pub readings: Readings,
    /// What is to go wrong on it.
    pub faults: Faults,
    /// Who holds what on it.
    pub holders: Holders,
}

// SAFETY: all that is reached through `map` is either fixed after creation (header, models) or guarded by the
// cell's process-shared mutex and generation (buffers); the mapping lives as long as the value.
unsafe impl Send for Shard {}
// SAFETY: as for Send.
unsafe impl Sync for Shard {}

impl Shard {
    /// Makes a node's state file at `<folder>/state`, with each GPU in its given first state. The file appears
    /// whole or not at all.
    ///
    /// # Errors
    /// [`StateError::Io`].
    pub fn create(folder: &Path, info: &Info, gpus: &[(Model, GpuState)]) -> Result<(), StateError> {
        let path = folder.join("state");
        let temporary = folder.join(format!("state.new.{}", std::process::id()));
        let io = |source| StateError::Io { path: temporary.clone(), source };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o666)
            .open(&temporary)
            .map_err(io)?;
        crate::client::open_to_all(&file);
        file.set_len(size_of::<Shared>() as u64).map_err(io)?;
        let shard = Shard::map(&file, folder)?;
        let shared = shard.map.as_ptr();
        // SAFETY: the file is new and unnamed to others, so this process alone reaches the mapping; it is
        // zero-filled, which is a legal `Shared`, and each field written is in bounds.
        unsafe {
            let header = (*shared).header.get();
            (*header).magic = MAGIC;
            (*header).version = VERSION;
            (*header).bytes = size_of::<Shared>() as u32;
            (*header).info = *info;
            (*header).info.gpu_count = gpus.len().min(MAX_GPUS) as u32;
            for (index, (model, state)) in gpus.iter().take(MAX_GPUS).enumerate() {
                let models = &raw mut (*shared).models;
                models.cast::<Model>().add(index).write(*model);
                if let Some(cell) = (*shared).cells.get(index) {
                    cell.buffers[0].get().write(*state);
                    cell.buffers[1].get().write(*state);
                }
            }
        }
        // The locks are made by the first opener, which knows the file's final inode and the boot.
        std::fs::rename(&temporary, &path).map_err(|source| StateError::Io { path, source })
    }

    /// Opens the node in `folder`.
    ///
    /// # Errors
    /// [`StateError`] if there is none, or one that this version does not read.
    pub fn open(folder: &Path) -> Result<Shard, StateError> {
        let path = folder.join("state");
        let io = |source| StateError::Io { path: path.clone(), source };
        let foreign = |why| StateError::Foreign { path: path.clone(), why };
        let file = OpenOptions::new().read(true).write(true).open(&path).map_err(io)?;
        let found = file.metadata().map_err(io)?;
        if found.len() != size_of::<Shared>() as u64 {
            return Err(foreign("other size"));
        }
        let shard = Shard::map(&file, folder)?;
        // One opener at a time looks at boot and inode, so locks are made anew only while nobody uses them. The
        // flock is given back by hand: the mapping keeps the file's description, and with it the flock, alive.
        let _flock = Flock::exclusive(&file).map_err(io)?;
        let header = shard.map.as_ptr();
        // SAFETY: the header is written only here, under flock, and in `create` before the file had its name.
        let header = unsafe { &mut *(*header).header.get() };
        if header.magic != MAGIC {
            return Err(foreign("no state file"));
        }
        if header.version != VERSION || header.bytes as usize != size_of::<Shared>() {
            return Err(foreign("other version"));
        }
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let same = header.boot.as_str() == boot.trim()
            && (header.device, header.inode) == (found.dev(), found.ino());
        if !same {
            shard.make_locks().map_err(io)?;
            header.boot = Text::new(boot.trim());
            header.device = found.dev();
            header.inode = found.ino();
        }
        Ok(shard)
    }

    fn map(file: &File, folder: &Path) -> Result<Shard, StateError> {
        let io = |source| StateError::Io { path: folder.join("state"), source };
        // SAFETY: a fresh shared mapping of a file of exactly this size; nothing else is at that address.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Shared>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io(io::Error::last_os_error()));
        }
        let map = NonNull::new(address.cast()).ok_or_else(|| io(io::Error::other("mapped at address 0")))?;
        let parts = Events::open(folder).and_then(|events| {
            Ok((events, Readings::open(folder)?, Faults::open(folder)?, Holders::open(folder)?))
        });
        let (events, readings, faults, holders) = parts.inspect_err(|_| {
            // SAFETY: the mapping was made above with this size and nothing refers to it.
            unsafe { libc::munmap(address, size_of::<Shared>()) };
        })?;
        Ok(Shard { map, folder: folder.to_owned(), events, readings, faults, holders })
    }

    fn make_locks(&self) -> io::Result<()> {
        for cell in self.cells() {
            // SAFETY: the attribute lives on this stack for the four calls; the mutex lies in the mapping, and
            // the caller holds the flock, with nobody of this boot and inode using it yet.
            let result = unsafe {
                let mut attributes: libc::pthread_mutexattr_t = std::mem::zeroed();
                libc::pthread_mutexattr_init(&mut attributes);
                libc::pthread_mutexattr_setpshared(&mut attributes, libc::PTHREAD_PROCESS_SHARED);
                libc::pthread_mutexattr_setrobust(&mut attributes, libc::PTHREAD_MUTEX_ROBUST);
                cell.lock.get().write(std::mem::zeroed());
                let result = libc::pthread_mutex_init(cell.lock.get(), &attributes);
                libc::pthread_mutexattr_destroy(&mut attributes);
                result
            };
            if result != 0 {
                return Err(io::Error::from_raw_os_error(result));
            }
        }
        Ok(())
    }

    fn cells(&self) -> &[Cell; MAX_GPUS] {
        // SAFETY: the mapping is that large and lives as long as self; cells are only changed through their
        // own interior mutability.
        unsafe { &(*self.map.as_ptr()).cells }
    }

    /// What concerns the whole node.
    pub fn info(&self) -> &Info {
        // SAFETY: `info` is fixed once the file has its name; boot, device and inode beside it are other fields.
        unsafe { &(*(*self.map.as_ptr()).header.get()).info }
    }

    /// The GPUs, in the order of NVML's index.
    pub fn models(&self) -> &[Model] {
        // SAFETY: fixed once the file has its name.
        let models = unsafe { &(*self.map.as_ptr()).models };
        models.get(..self.info().gpu_count as usize).unwrap_or_default()
    }

    /// A GPU's state at one instant, with marks where someone holds it; `None` if the node has no such GPU.
    pub fn seen(&self, gpu: usize) -> Option<GpuState> {
        let mut state = self.read(gpu)?;
        self.holders.mark(gpu, &mut state);
        Some(state)
    }

    /// A GPU's state at one instant, as it was written; `None` if the node has no such GPU.
    pub fn read(&self, gpu: usize) -> Option<GpuState> {
        self.models().get(gpu)?;
        let cell = self.cells().get(gpu)?;
        for _ in 0..READ_TRIES {
            let generation = cell.generation.load(Ordering::Acquire);
            let copy = copy_out(cell.published(generation));
            fence(Ordering::Acquire);
            if cell.generation.load(Ordering::Relaxed) == generation {
                return Some(copy);
            }
        }
        // Writers overtook it again and again: stand in their line. A lock that cannot be had still leaves the
        // published buffer, which no writer touches while its holder does not go on.
        let _guard = cell.lock().ok();
        let generation = cell.generation.load(Ordering::Acquire);
        Some(copy_out(cell.published(generation)))
    }

    /// Changes a GPU's state: `change` sees the newest state, and what it leaves is published at one instant if
    /// it answers `Ok`, and forgotten if it answers an error or panics. Nothing else that takes time belongs in
    /// it (waits and sleeps stay outside the lock).
    ///
    /// # Errors
    /// What `change` answers, or [`Locked`] by `From`; `None` if the node has no such GPU.
    pub fn update<R, E: From<Locked>>(
        &self,
        gpu: usize,
        change: impl FnOnce(&mut GpuState) -> Result<R, E>,
    ) -> Option<Result<R, E>> {
        let model = self.models().get(gpu)?;
        let cell = self.cells().get(gpu)?;
        let mut published = None;
        let done = (|| {
            let _guard = cell.lock()?;
            let generation = cell.generation.load(Ordering::Relaxed);
            let mut state = copy_out(cell.published(generation));
            let before = state;
            let result = change(&mut state)?;
            if state != before {
                if self.faults.active() {
                    self.faults.remember(gpu, &before);
                }
                copy_in(cell.published(generation.wrapping_add(1)), &state);
                cell.generation.store(generation.wrapping_add(1), Ordering::Release);
                published = Some((before, state));
            }
            Ok(result)
        })();
        // Not under the lock, since these take system calls, and before the caller hears of the change.
        if let Some((before, after)) = published {
            if before.changes != after.changes {
                crate::tree::follow(self);
            }
            // A writer of readings that does not go on must not undo what has been published.
            let _ = self.readings.follow(gpu, model, &before, &after);
            self.events.ring();
        }
        Some(done)
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map` with this size, and no reference into it outlives self.
        unsafe { libc::munmap(self.map.as_ptr().cast(), size_of::<Shared>()) };
    }
}

/// An exclusive flock for as long as it lives.
struct Flock<'a>(&'a File);

impl<'a> Flock<'a> {
    fn exclusive(file: &'a File) -> io::Result<Flock<'a>> {
        // SAFETY: flock on a descriptor that `file` keeps open.
        match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } {
            0 => Ok(Flock(file)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Flock<'_> {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { libc::flock(self.0.as_raw_fd(), libc::LOCK_UN) };
    }
}

const WORDS: usize = size_of::<GpuState>() / size_of::<u64>();
const _: () = assert!(size_of::<GpuState>() == WORDS * size_of::<u64>() && align_of::<GpuState>() == 8);

/// Copies a buffer word by word, atomically each: a writer may be at it, and the caller then tries again.
fn copy_out(buffer: &UnsafeCell<GpuState>) -> GpuState {
    let words = buffer.get().cast::<AtomicU64>();
    let mut copy = [0u64; WORDS];
    for (index, word) in copy.iter_mut().enumerate() {
        // SAFETY: `index` is within the buffer, which is aligned to 8 and a whole number of words; all access
        // to it is by atomics of the same size.
        *word = unsafe { (*words.add(index)).load(Ordering::Relaxed) };
    }
    // SAFETY: same size; GpuState is plain integers, for which all bytes are legal.
    unsafe { std::mem::transmute::<[u64; WORDS], GpuState>(copy) }
}

/// The counterpart of [`copy_out`], for the lock's holder.
fn copy_in(buffer: &UnsafeCell<GpuState>, state: &GpuState) {
    // SAFETY: same size; GpuState has no padding (asserted by its size), so every byte is initialised.
    let copy = unsafe { std::mem::transmute::<GpuState, [u64; WORDS]>(*state) };
    let words = buffer.get().cast::<AtomicU64>();
    for (index, word) in copy.iter().enumerate() {
        // SAFETY: as in `copy_out`.
        unsafe { (*words.add(index)).store(*word, Ordering::Relaxed) };
    }
}

struct Guard<'a>(&'a Cell);

impl Cell {
    /// The buffer that counts in this generation.
    fn published(&self, generation: u64) -> &UnsafeCell<GpuState> {
        let [even, odd] = &self.buffers;
        if generation & 1 == 0 { even } else { odd }
    }

    fn lock(&self) -> Result<Guard<'_>, Locked> {
        // SAFETY: `timespec` is plain data; the clock id is a constant.
        let until = unsafe {
            let mut now: libc::timespec = std::mem::zeroed();
            libc::clock_gettime(libc::CLOCK_REALTIME, &mut now);
            now.tv_sec += LOCK_LIMIT_SECONDS;
            now
        };
        // SAFETY: the mutex was initialised by `make_locks` before any opener got this far.
        match unsafe { libc::pthread_mutex_timedlock(self.lock.get(), &until) } {
            0 => Ok(Guard(self)),
            libc::EOWNERDEAD => {
                // The owner was killed: what it had published counts, what it had begun lies in the other
                // buffer and is overwritten.
                // SAFETY: this thread holds the lock in its inconsistent state.
                unsafe { libc::pthread_mutex_consistent(self.lock.get()) };
                Ok(Guard(self))
            }
            _ => Err(Locked),
        }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // SAFETY: this thread holds the lock.
        unsafe { libc::pthread_mutex_unlock(self.0.lock.get()) };
    }
}

#[cfg(test)]
mod tests;
