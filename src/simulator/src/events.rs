//! What happened on a node, in the order in which it happened, for all who wait for it.
//!
//! ```text
//! FOLDER/events:  version | bell | head | slots[65536]
//!
//! writer:  its turn; slot[head % N] = event, marked with its number; head + 1; bell + 1, wake all
//! waiter:  own cursor; reads slots up to head; sleeps on the bell (futex) until it changes or time is up
//! ```
//!
//! The store of `head` is the instant at which an event is there: a writer killed before it has said nothing,
//! and its slot is the next one's; killed after it but before the bell, the event is found when the waiters'
//! slice ends. Waiters write nothing, so none can leave anything behind. Whoever falls more than [`KEPT`]
//! events behind has lost the oldest, as with the driver's own bounded queue.
//!
//! Changes of MIG mode and instances are not kept here but counted in the GPU's state, at the same instant as
//! the change itself; they only ring the bell.

use crate::{
    mapped::{Layout, Mapped},
    shared::{Locked, StateError},
};
use std::{
    path::Path,
    sync::atomic::{AtomicU32, AtomicU64, Ordering, fence},
    time::Duration,
};

/// How many events are kept for those who have not read them.
pub const KEPT: usize = 1 << 16;
/// NVML's id of no instance.
pub const NO_INSTANCE: u32 = u32::MAX;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// One of nvmlEventType*.
    pub kind: u64,
    /// For an XID its number.
    pub data: u64,
    /// NVML index of the GPU.
    pub gpu: u32,
    /// GPU instance, or [`NO_INSTANCE`].
    pub gi: u32,
    /// Compute instance, or [`NO_INSTANCE`].
    pub ci: u32,
}

#[repr(C)]
#[derive(Debug)]
struct Slot {
    /// The number of the event that lies here, plus one; 0 while one is written.
    mark: AtomicU64,
    kind: AtomicU64,
    data: AtomicU64,
    gpu: AtomicU64,
    instances: AtomicU64,
}

#[repr(C)]
#[derive(Debug)]
struct Ring {
    version: AtomicU64,
    head: AtomicU64,
    bell: AtomicU32,
    gap: AtomicU32,
    slots: [Slot; KEPT],
}

// SAFETY: atomics only, legal when zero; the version word is first.
unsafe impl Layout for Ring {
    const NAME: &'static str = "events";
    const VERSION: u64 = 1;

    fn version(&self) -> &AtomicU64 {
        &self.version
    }
}

/// A node's events, open.
#[derive(Debug)]
pub struct Events(Mapped<Ring>);

/// The bell's state when it was looked at: sleeping on it ends at once if it has rung since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bell(u32);

impl Events {
    /// Opens the events of the node in `folder`, making the file if it is missing.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn open(folder: &Path) -> Result<Events, StateError> {
        Mapped::open(folder).map(Events)
    }

    /// The number that the next event will have.
    pub fn head(&self) -> u64 {
        self.0.get().head.load(Ordering::Acquire)
    }

    /// Tells an event to all who wait.
    ///
    /// # Errors
    /// [`Locked`] if another writer does not go on.
    pub fn post(&self, event: &Event) -> Result<(), Locked> {
        let ring = self.0.get();
        {
            let _turn = self.0.turn()?;
            let number = ring.head.load(Ordering::Relaxed);
            let Some(slot) = slot(ring, number) else { return Err(Locked) };
            slot.mark.store(0, Ordering::Relaxed);
            fence(Ordering::Release);
            slot.kind.store(event.kind, Ordering::Relaxed);
            slot.data.store(event.data, Ordering::Relaxed);
            slot.gpu.store(event.gpu.into(), Ordering::Relaxed);
            slot.instances.store(u64::from(event.gi) << 32 | u64::from(event.ci), Ordering::Relaxed);
            slot.mark.store(number.wrapping_add(1), Ordering::Release);
            ring.head.store(number.wrapping_add(1), Ordering::Release);
        }
        self.ring();
        Ok(())
    }

    /// The event with this number, if it has happened and is still kept.
    pub fn read(&self, number: u64) -> Option<Event> {
        let slot = slot(self.0.get(), number)?;
        let mark = number.wrapping_add(1);
        if slot.mark.load(Ordering::Acquire) != mark {
            return None;
        }
        let instances = slot.instances.load(Ordering::Relaxed);
        let event = Event {
            kind: slot.kind.load(Ordering::Relaxed),
            data: slot.data.load(Ordering::Relaxed),
            gpu: slot.gpu.load(Ordering::Relaxed) as u32,
            gi: (instances >> 32) as u32,
            ci: instances as u32,
        };
        fence(Ordering::Acquire);
        (slot.mark.load(Ordering::Relaxed) == mark).then_some(event)
    }

    /// Wakes all who wait: something has changed.
    pub fn ring(&self) {
        let bell = &self.0.get().bell;
        bell.fetch_add(1, Ordering::Release);
        // SAFETY: the word lies in a mapping that lives as long as self; waking looks at its address only.
        unsafe { libc::syscall(libc::SYS_futex, bell.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
    }

    /// The bell now; look at it before looking for news.
    pub fn bell(&self) -> Bell {
        Bell(self.0.get().bell.load(Ordering::Acquire))
    }

    /// Sleeps until the bell has rung since `since`, or the time is up, or for no reason.
    pub fn sleep(&self, since: Bell, most: Duration) {
        let timeout = libc::timespec {
            tv_sec: most.as_secs() as libc::time_t,
            tv_nsec: most.subsec_nanos() as libc::c_long,
        };
        let bell = &self.0.get().bell;
        // SAFETY: the word lies in a mapping that lives as long as self, the time is a live local; without the
        // private flag, since the waker is another process.
        unsafe { libc::syscall(libc::SYS_futex, bell.as_ptr(), libc::FUTEX_WAIT, since.0, &timeout) };
    }
}

fn slot(ring: &Ring, number: u64) -> Option<&Slot> {
    ring.slots.get((number % KEPT as u64) as usize)
}

#[cfg(test)]
mod tests;
