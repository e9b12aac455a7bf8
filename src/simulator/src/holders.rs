//! Who holds a GPU or an instance, as processes that Linux knows.
//!
//! ```text
//! FOLDER/holders:  version | highest | slots[256]         slot:  generation | pid | kind | place | stamp | memory
//!
//! free --its byte of the file locked, fields written, generation odd--> held --the process ends--> free
//! ```
//!
//! A slot counts while its generation is odd and its byte is locked. The lock is of the open file description,
//! so it goes with the process, at whatever instruction that is killed, and a reader needs no look at /proc.
//! Instances are meant by their creation's counter: a holder of one that was taken away by force holds nothing,
//! though another has its place.
//!
//! Holding shows in a [`GpuState`] as the bit [`HELD`] of its marks; what is written to the node never has it.

use crate::{
    client::byte_lock,
    events::NO_INSTANCE,
    mapped::{Layout, Mapped},
    model::Model,
    place::Target,
    shared::{Locked, StateError},
    state::GpuState,
    tree,
    trouble::Trouble,
};
use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::atomic::{AtomicU32, AtomicU64, Ordering, fence},
};

/// How many can hold something on one node at a time.
pub const MOST: usize = 256;
/// A mark of use (`busy`) that comes from a holder; bit 0 is a person's (`*`).
pub const HELD: u32 = 2;

/// What a holder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A CUDA process.
    Compute,
    /// A graphics process.
    Graphics,
    /// A client of MPS.
    Mps,
}

impl Kind {
    /// Every kind with its name.
    pub const NAMES: [(Kind, &str); 3] =
        [(Kind::Compute, "CUDA"), (Kind::Graphics, "graphics"), (Kind::Mps, "MPS")];

    /// As it is written.
    pub fn name(self) -> &'static str {
        Kind::NAMES.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// One that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Its process.
    pub pid: u32,
    /// As what.
    pub kind: Kind,
    /// What.
    pub place: Target,
    /// Bytes of GPU memory.
    pub memory: u64,
    /// The creation counter of what it holds.
    stamp: u32,
}

#[repr(C)]
#[derive(Debug)]
struct Slot {
    generation: AtomicU64,
    pid: AtomicU32,
    kind: AtomicU32,
    gpu: AtomicU32,
    gi: AtomicU32,
    ci: AtomicU32,
    stamp: AtomicU32,
    memory: AtomicU64,
}

#[repr(C)]
#[derive(Debug)]
struct Table {
    version: AtomicU64,
    /// One more than the highest slot that was ever used.
    highest: AtomicU64,
    slots: [Slot; MOST],
}

// SAFETY: atomics only, legal when zero; the version word is first.
unsafe impl Layout for Table {
    const NAME: &'static str = "holders";
    const VERSION: u64 = 1;

    fn version(&self) -> &AtomicU64 {
        &self.version
    }
}

/// A node's holders, open.
#[derive(Debug)]
pub struct Holders {
    map: Mapped<Table>,
    /// By which locks are looked at. It never has one itself.
    file: File,
}

/// Holds as long as it lives.
#[derive(Debug)]
pub struct Hold(#[expect(dead_code, reason = "the lock lives as long as the description")] File);

/// Why something cannot be held.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// There are too many.
    #[error("{MOST} processes hold something on this node; no more can")]
    Full,
    /// The system does not give the lock.
    #[error("cannot hold: {0}")]
    Io(#[from] io::Error),
    /// Another who begins to hold does not go on.
    #[error(transparent)]
    Locked(#[from] Locked),
}

impl Holders {
    /// Opens the holders of the node in `folder`, making the file if it is missing.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn open(folder: &Path) -> Result<Holders, StateError> {
        let map = Mapped::open(folder)?;
        let path = folder.join(Table::NAME);
        let file = open(&path).map_err(|source| StateError::Io { path, source })?;
        Ok(Holders { map, file })
    }

    /// This process holds from now on, until the answer is dropped or it ends. The place must exist: look again
    /// afterwards whether it still does.
    ///
    /// # Errors
    /// [`HoldError`].
    pub fn hold(
        &self,
        folder: &Path,
        place: Target,
        state: &GpuState,
        kind: Kind,
        memory: u64,
    ) -> Result<Hold, HoldError> {
        let table = self.map.get();
        let _turn = self.map.turn()?;
        let file = open(&folder.join(Table::NAME))?;
        let free = (0..)
            .zip(&table.slots)
            .find(|(at, slot)| slot.generation.load(Ordering::Relaxed) & 1 == 0 || !self.locked(*at));
        let (at, slot) = free.ok_or(HoldError::Full)?;
        // Even from here on: a reader that saw the one before knows that it has gone.
        let generation = (slot.generation.load(Ordering::Relaxed) + 1) & !1;
        slot.generation.store(generation, Ordering::SeqCst);
        byte_lock(&file, at, libc::F_WRLCK, libc::F_OFD_SETLK)?;
        slot.pid.store(std::process::id(), Ordering::Relaxed);
        slot.kind.store(kind as u32, Ordering::Relaxed);
        slot.gpu.store(place.gpu as u32, Ordering::Relaxed);
        slot.gi.store(place.gi.unwrap_or(NO_INSTANCE), Ordering::Relaxed);
        slot.ci.store(place.ci.unwrap_or(NO_INSTANCE), Ordering::Relaxed);
        slot.stamp.store(stamp(place, state).unwrap_or(0), Ordering::Relaxed);
        slot.memory.store(memory, Ordering::Relaxed);
        table.highest.fetch_max(u64::from(at) + 1, Ordering::Relaxed);
        slot.generation.store(generation + 1, Ordering::SeqCst);
        Ok(Hold(file))
    }

    /// Those who hold something of a GPU that is there.
    pub fn of<'a>(&'a self, gpu: usize, state: &'a GpuState) -> impl Iterator<Item = Holder> + 'a {
        let used = self.map.get().highest.load(Ordering::Acquire) as usize;
        let slots = (0u32..).zip(&self.map.get().slots).take(used);
        slots
            .filter(move |(_, slot)| slot.gpu.load(Ordering::Relaxed) as usize == gpu)
            .filter_map(|(at, slot)| self.read(at, slot))
            .filter(move |holder| holder.place.gpu == gpu && stamp(holder.place, state) == Some(holder.stamp))
    }

    /// Marks in a GPU's state what is held.
    pub fn mark(&self, gpu: usize, state: &mut GpuState) {
        if self.map.get().highest.load(Ordering::Acquire) == 0 {
            return;
        }
        let before = *state;
        for holder in self.of(gpu, &before) {
            let Target { gi, ci, .. } = holder.place;
            let instance = gi.and_then(|gi| state.gis.get_mut(gi as usize));
            match (instance, ci) {
                // What has the GPU open while it has instances is a client of it and no more.
                (None, _) => state.busy |= if before.mig_current == 0 { HELD } else { 0 },
                (Some(gi), None) => gi.busy |= HELD,
                (Some(gi), Some(ci)) => {
                    if let Some(ci) = gi.cis.get_mut(ci as usize) {
                        ci.busy |= HELD;
                    }
                }
            }
        }
    }

    fn read(&self, at: u32, slot: &Slot) -> Option<Holder> {
        let generation = slot.generation.load(Ordering::SeqCst);
        if generation & 1 == 0 {
            return None;
        }
        let id = |word: &AtomicU32| Some(word.load(Ordering::Relaxed)).filter(|id| *id != NO_INSTANCE);
        let kind = slot.kind.load(Ordering::Relaxed);
        let holder = Holder {
            pid: slot.pid.load(Ordering::Relaxed),
            kind: Kind::NAMES.iter().map(|(kind, _)| *kind).find(|known| *known as u32 == kind)?,
            place: Target {
                gpu: slot.gpu.load(Ordering::Relaxed) as usize,
                gi: id(&slot.gi),
                ci: id(&slot.ci),
            },
            memory: slot.memory.load(Ordering::Relaxed),
            stamp: slot.stamp.load(Ordering::Relaxed),
        };
        let locked = self.locked(at);
        fence(Ordering::SeqCst);
        (locked && slot.generation.load(Ordering::SeqCst) == generation).then_some(holder)
    }

    fn locked(&self, at: u32) -> bool {
        // What cannot be known counts as held.
        byte_lock(&self.file, at, libc::F_WRLCK, libc::F_OFD_GETLK)
            .map_or(true, |answer| i32::from(answer.l_type) != libc::F_UNLCK)
    }
}

/// Takes the marks of holders out of a state, before it is written.
pub fn unmark(state: &mut GpuState) {
    state.busy &= !HELD;
    for gi in &mut state.gis {
        gi.busy &= !HELD;
        gi.cis.iter_mut().for_each(|ci| ci.busy &= !HELD);
    }
}

/// The creation counter of a place that is there.
fn stamp(place: Target, state: &GpuState) -> Option<u32> {
    let Some(gi) = place.gi else { return Some(0) };
    let gi = state.gis.get(gi as usize).filter(|gi| gi.live != 0)?;
    let Some(ci) = place.ci else { return Some(gi.handle) };
    gi.cis.get(ci as usize).filter(|ci| ci.live != 0).map(|ci| ci.handle)
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_CLOEXEC).open(path)
}

/// The device files that a CUDA process there has open, below a root: the GPU's, and those of its instances'
/// capabilities. Where no driver is behind them they are opened by name alone (O_PATH), by which those who look for
/// holders still find them.
///
/// # Errors
/// What open(2) answers, with the path.
pub fn open_devices(root: &Path, model: &Model, place: Target) -> Result<Vec<File>, Trouble> {
    let mut names = vec!["nvidiactl".to_owned(), format!("nvidia{}", model.minor)];
    if let Some(gi) = place.gi {
        names.push(format!("nvidia-caps/nvidia-cap{}", tree::gi_minor(model.minor, gi)));
        if let Some(ci) = place.ci {
            names.push(format!("nvidia-caps/nvidia-cap{}", tree::ci_minor(model.minor, gi, ci)));
        }
    }
    let open = |name: &String| {
        let path = root.join("dev").join(name);
        open_device(&path).map_err(|error| Trouble::io("open", &path, &error))
    };
    names.iter().map(open).collect()
}

fn open_device(path: &Path) -> io::Result<File> {
    let plain = OpenOptions::new().read(true).write(true).open(path);
    match plain {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV)) => {
            OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path)
        }
        opened => opened,
    }
}

#[cfg(test)]
mod tests;
