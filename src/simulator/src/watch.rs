//! An event set: which events of which GPUs one part of a program waits for, and how far it has read.
//!
//! ```text
//! new --register GPU, kinds--> watching --wait--> event (oldest first) | time is up | GPU lost
//! ```
//!
//! Each set reads all events for itself. Nothing that happened before a GPU was registered is told (the driver
//! queues nothing before that).

use crate::{
    events::{Event, NO_INSTANCE},
    machine::Code,
    shared::Shard,
    state::GpuState,
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// nvmlEventTypeXidCriticalError.
pub const XID: u64 = 0x8;
/// nvmlEventMigConfigChange.
pub const MIG_CHANGE: u64 = 0x100;
/// What programs may register for: single and double bit errors, performance state, XID, clocks, MIG
/// configuration, GPU unavailable, recovery action.
pub const KINDS: u64 = 0x1 | 0x2 | 0x4 | XID | 0x10 | MIG_CHANGE | 0x4000 | 0x8000;

/// How long a waiter sleeps at most before it looks by itself: only news whose teller was killed between
/// telling it and ringing the bell take as long.
const SLICE: Duration = Duration::from_millis(250);

/// An event set.
#[derive(Debug, Default)]
pub struct EventSet(Mutex<Watch>);

#[derive(Debug, Default)]
struct Watch {
    /// The number of the first event not looked at.
    cursor: u64,
    gpus: BTreeMap<usize, Registered>,
}

#[derive(Debug)]
struct Registered {
    kinds: u64,
    /// Events before this one are not for this GPU.
    from: u64,
    /// How many of the GPU's MIG changes have been told.
    changes: u64,
}

impl EventSet {
    /// A set that watches nothing.
    pub fn new(shard: &Shard) -> EventSet {
        EventSet(Mutex::new(Watch { cursor: shard.events.head(), gpus: BTreeMap::new() }))
    }

    /// Watches a GPU for these kinds from now on, besides those it is already watched for.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the node has no such GPU.
    pub fn register(&self, shard: &Shard, gpu: usize, kinds: u64) -> Result<(), Code> {
        let state = shard.read(gpu).ok_or(Code::INVALID_ARGUMENT)?;
        let mut watch = self.watch();
        let from = shard.events.head();
        let one = watch.gpus.entry(gpu).or_insert(Registered { kinds: 0, from, changes: state.changes });
        if one.kinds & MIG_CHANGE == 0 {
            one.changes = state.changes;
        }
        one.kinds |= kinds;
        Ok(())
    }

    /// The oldest event that has not been told, or the next one within `timeout`. `all` says whether events of
    /// instances are told, which the driver reserves to root.
    ///
    /// # Errors
    /// `TIMEOUT`; `GPU_IS_LOST` if nothing is left to tell and one of the GPUs has fallen off the bus.
    pub fn wait(&self, shard: &Shard, timeout: Duration, all: bool) -> Result<Event, Code> {
        let until = Instant::now().checked_add(timeout);
        loop {
            let bell = shard.events.bell();
            if let Some(event) = self.watch().next(shard, all)? {
                return Ok(event);
            }
            let left = match until {
                Some(until) => until.saturating_duration_since(Instant::now()),
                None => SLICE,
            };
            if left.is_zero() {
                return Err(Code::TIMEOUT);
            }
            shard.events.sleep(bell, left.min(SLICE));
        }
    }

    fn watch(&self) -> std::sync::MutexGuard<'_, Watch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    fn next(&mut self, shard: &Shard, all: bool) -> Result<Option<Event>, Code> {
        let head = shard.events.head();
        while self.cursor < head {
            let number = self.cursor;
            self.cursor += 1;
            let Some(event) = shard.events.read(number) else {
                // Overtaken: go on with the oldest that is still kept.
                self.cursor = self.cursor.max(head.saturating_sub(crate::events::KEPT as u64));
                continue;
            };
            let wanted = self.gpus.get(&(event.gpu as usize));
            let wanted = wanted.is_some_and(|gpu| number >= gpu.from && gpu.kinds & event.kind != 0);
            if wanted && (all || event.gi == NO_INSTANCE) {
                return Ok(Some(event));
            }
        }
        let mut lost = false;
        for (gpu, registered) in &mut self.gpus {
            let Some(state) = shard.read(*gpu) else { continue };
            lost |= state.lost != 0;
            if registered.kinds & MIG_CHANGE != 0 && registered.told(&state) {
                return Ok(Some(Event {
                    kind: MIG_CHANGE,
                    data: 0,
                    gpu: *gpu as u32,
                    gi: NO_INSTANCE,
                    ci: NO_INSTANCE,
                }));
            }
        }
        if lost { Err(Code::GPU_IS_LOST) } else { Ok(None) }
    }
}

impl Registered {
    /// Takes one of the GPU's changes as told, if there is one.
    fn told(&mut self, state: &GpuState) -> bool {
        let more = self.changes != state.changes;
        if more {
            self.changes = self.changes.wrapping_add(1);
        }
        more
    }
}

/// The event sets of one process.
#[derive(Debug, Default)]
pub struct EventSets {
    last: AtomicU64,
    sets: Mutex<BTreeMap<u64, Arc<EventSet>>>,
}

impl EventSets {
    /// Keeps a set and answers its number, which is never given again.
    pub fn add(&self, set: EventSet) -> u64 {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.sets().insert(number, Arc::new(set));
        number
    }

    /// The set with this number; whoever has it may go on with it after it is freed.
    pub fn get(&self, number: u64) -> Option<Arc<EventSet>> {
        self.sets().get(&number).map(Arc::clone)
    }

    /// Frees a set; whether there was one.
    pub fn free(&self, number: u64) -> bool {
        self.sets().remove(&number).is_some()
    }

    fn sets(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<EventSet>>> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
