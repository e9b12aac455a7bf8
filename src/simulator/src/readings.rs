//! What is simulated of a node's measurements: loads, values that a person has set, and sums over time.
//!
//! ```text
//! FOLDER/readings:  version | boot | cells[32]        cell:  generation | buffer 0 | buffer 1
//!
//! reader:  its turn; g = generation; copies buffer[g & 1]; the time
//! writer:  its turn; copies, settles sums up to now, changes, writes buffer[(g+1) & 1]; generation = g + 1
//! ```
//!
//! Rates are constant between two changes, so energy and all that is counted is the sum at the last change
//! plus rate times time since: it grows without anyone at work, and never falls. As with the GPUs' state, the
//! generation's store is the one instant of a change, whoever is killed.

use crate::{
    mapped::{Layout, Mapped},
    model::{MAX_GIS, MAX_GPUS, Model},
    reading::Reading,
    sampler,
    shared::{Locked, StateError},
    state::GpuState,
};
use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

/// The whole GPU, then its GPU instances by id.
pub const PLACES: usize = 1 + MAX_GIS;
/// How many sums there are.
pub const SUMS: usize = 8;
/// Readings for which there is room.
const ROOM: usize = 64;

/// Where each kind of word begins.
const SINCE: usize = 0;
const SUM: usize = SINCE + 1;
const LOAD: usize = SUM + SUMS;
const WEIGHT: usize = LOAD + PLACES;
const ACTIVE: usize = WEIGHT + PLACES;
const MASK: usize = ACTIVE + PLACES;
const VALUE: usize = MASK + PLACES;
const WORDS: usize = VALUE + PLACES * ROOM;

/// What a sum adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sum {
    /// mJ.
    Energy,
    /// KB sent over PCIe.
    PcieTx,
    /// KB received over PCIe.
    PcieRx,
    /// KiB sent over NVLink.
    NvlinkTx,
    /// KiB received over NVLink.
    NvlinkRx,
}

/// One GPU's readings at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values(Vec<u64>);

impl Values {
    /// When sums were last settled, in nanoseconds since boot.
    pub fn since(&self) -> u64 {
        self.word(SINCE)
    }

    /// A sum as it was then.
    pub fn settled(&self, sum: Sum) -> f64 {
        self.number(SUM + sum as usize)
    }

    /// The load that is set on a place, 0 to 1.
    pub fn load(&self, place: usize) -> f64 {
        self.number(LOAD + place)
    }

    /// The part of the GPU that a place is, 0 to 1.
    pub fn weight(&self, place: usize) -> f64 {
        self.number(WEIGHT + place)
    }

    /// Seconds of full load on a place, as they were when last settled.
    pub fn active(&self, place: usize) -> f64 {
        self.number(ACTIVE + place)
    }

    /// The value that a person has set.
    pub fn set(&self, place: usize, reading: Reading) -> Option<f64> {
        let is = place < PLACES && self.word(MASK + place) >> reading.place() & 1 != 0;
        is.then(|| self.number(VALUE + place * ROOM + reading.place()))
    }

    /// Sets a load, and what part of the GPU the place is.
    pub fn put_load(&mut self, place: usize, load: f64, weight: f64) {
        self.put(LOAD + place, load);
        self.put(WEIGHT + place, weight);
    }

    /// Sets a value, or gives it back to the simulation.
    pub fn put_value(&mut self, place: usize, reading: Reading, value: Option<f64>) {
        let bit = 1 << reading.place();
        let mask = self.word(MASK + place);
        match value {
            Some(value) => {
                self.put(VALUE + place * ROOM + reading.place(), value);
                self.put_word(MASK + place, mask | bit);
            }
            None => self.put_word(MASK + place, mask & !bit),
        }
    }

    /// Adds up to `now`, at the rates that have held until then.
    fn settle(&mut self, model: &Model, now: u64) {
        let seconds = now.saturating_sub(self.since()) as f64 / 1e9;
        for (index, rate) in sampler::rates(model, self).into_iter().enumerate() {
            self.put(SUM + index, self.number(SUM + index) + rate * seconds);
        }
        for place in 0..PLACES {
            let load = if place == 0 { sampler::load(self) } else { self.load(place) };
            self.put(ACTIVE + place, self.active(place) + load * seconds);
        }
        self.put_word(SINCE, now.max(self.since()));
    }

    /// Takes load and values from instances that are gone.
    fn forget_gone(&mut self, before: &GpuState, after: &GpuState) {
        for (id, (was, is)) in before.gis.iter().zip(&after.gis).enumerate() {
            if was.live != 0 && (is.live == 0 || is.handle != was.handle) {
                self.put_load(1 + id, 0.0, 0.0);
                self.put_word(MASK + 1 + id, 0);
                self.put(ACTIVE + 1 + id, 0.0);
            }
        }
    }

    /// As after the driver has been loaded: nothing runs and nothing has been counted.
    fn restart(&mut self) {
        for index in SUM..MASK {
            self.put_word(index, 0);
        }
    }

    fn word(&self, index: usize) -> u64 {
        self.0.get(index).copied().unwrap_or_default()
    }

    fn number(&self, index: usize) -> f64 {
        f64::from_bits(self.word(index))
    }

    fn put_word(&mut self, index: usize, word: u64) {
        if let Some(to) = self.0.get_mut(index) {
            *to = word;
        }
    }

    fn put(&mut self, index: usize, number: f64) {
        self.put_word(index, number.to_bits());
    }

    /// Readings of a GPU on which nothing has happened.
    #[cfg(test)]
    pub(crate) fn fresh() -> Values {
        Values(vec![0; WORDS])
    }
}

#[repr(C)]
#[derive(Debug)]
struct Cell {
    generation: AtomicU64,
    buffers: [[AtomicU64; WORDS]; 2],
}

#[repr(C)]
#[derive(Debug)]
struct Board {
    version: AtomicU64,
    /// Hash of the boot in which sums were begun.
    boot: AtomicU64,
    cells: [Cell; MAX_GPUS],
}

// SAFETY: atomics only, legal when zero; the version word is first.
unsafe impl Layout for Board {
    const NAME: &'static str = "readings";
    const VERSION: u64 = 1;

    fn version(&self) -> &AtomicU64 {
        &self.version
    }
}

/// A node's readings, open.
#[derive(Debug)]
pub struct Readings(Mapped<Board>);

impl Readings {
    /// Opens the readings of the node in `folder`, making the file if it is missing.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn open(folder: &Path) -> Result<Readings, StateError> {
        let readings = Readings(Mapped::open(folder)?);
        let board = readings.0.get();
        let boot = boot();
        if board.boot.load(Ordering::Acquire) != boot {
            // The first of this boot: the clock that sums count by has begun anew, and so has the driver.
            let turn = readings.0.turn();
            let turn = turn.map_err(|why| StateError::Io {
                path: folder.join(Board::NAME),
                source: std::io::Error::other(why),
            })?;
            if board.boot.load(Ordering::Acquire) != boot {
                for cell in &board.cells {
                    let mut values = cell.published();
                    values.restart();
                    values.put_word(SINCE, now());
                    cell.publish(&values);
                }
                board.boot.store(boot, Ordering::Release);
            }
            drop(turn);
        }
        Ok(readings)
    }

    /// A GPU's readings and the time at which they hold. In turn with the writers, or a reader would carry an
    /// old rate past the moment at which a writer has settled, and the next reading would be less.
    pub fn read(&self, gpu: usize) -> Option<(Values, u64)> {
        let cell = self.0.get().cells.get(gpu)?;
        // With a writer that does not go on, what it has not published does not count.
        let _turn = self.0.turn().ok();
        Some((cell.published(), now()))
    }

    /// Changes a GPU's readings from now on.
    ///
    /// # Errors
    /// [`Locked`] if another writer does not go on.
    pub fn change(&self, gpu: usize, model: &Model, with: impl FnOnce(&mut Values)) -> Result<(), Locked> {
        let Some(cell) = self.0.get().cells.get(gpu) else { return Ok(()) };
        let _turn = self.0.turn()?;
        let mut values = cell.published();
        values.settle(model, now());
        with(&mut values);
        cell.publish(&values);
        Ok(())
    }

    /// What a change of the GPU's state means for its readings: instances that are gone have no load, and a
    /// reset begins all sums anew.
    ///
    /// # Errors
    /// [`Locked`].
    pub fn follow(
        &self,
        gpu: usize,
        model: &Model,
        before: &GpuState,
        after: &GpuState,
    ) -> Result<(), Locked> {
        if before.resets != after.resets {
            return self.change(gpu, model, |values| {
                values.forget_gone(before, after);
                values.restart();
            });
        }
        if before.changes != after.changes {
            return self.change(gpu, model, |values| values.forget_gone(before, after));
        }
        Ok(())
    }
}

impl Cell {
    fn published(&self) -> Values {
        let generation = self.generation.load(Ordering::Acquire);
        let words = self.buffers.get((generation & 1) as usize).into_iter().flatten();
        Values(words.map(|word| word.load(Ordering::Relaxed)).collect())
    }

    /// For whoever has the turn.
    fn publish(&self, values: &Values) {
        let next = self.generation.load(Ordering::Relaxed).wrapping_add(1);
        let words = self.buffers.get((next & 1) as usize).into_iter().flatten();
        words.zip(&values.0).for_each(|(to, from)| to.store(*from, Ordering::Relaxed));
        self.generation.store(next, Ordering::Release);
    }
}

/// Nanoseconds since boot, time asleep included.
pub fn now() -> u64 {
    // SAFETY: `timespec` is plain data and lives for the call; the clock id is a constant.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time);
        time
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A word that is another after a reboot; never 0.
fn boot() -> u64 {
    let id = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    // FNV-1a.
    let hash = id
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, b| (hash ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
    hash | 1
}

#[cfg(test)]
mod tests;
