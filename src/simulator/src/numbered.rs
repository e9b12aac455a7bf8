//! Objects of one process that programs know by a number (event sets, GPM samples).

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// The objects of one kind.
#[derive(Debug)]
pub struct Numbered<T> {
    last: AtomicU64,
    all: Mutex<BTreeMap<u64, Arc<T>>>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Numbered<T> {
        Numbered { last: AtomicU64::new(0), all: Mutex::default() }
    }
}

impl<T> Numbered<T> {
    /// Keeps an object and answers its number, which is never given again.
    pub fn add(&self, object: T) -> u64 {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.all().insert(number, Arc::new(object));
        number
    }

    /// The object with this number; whoever has it may go on with it after it is freed.
    pub fn get(&self, number: u64) -> Option<Arc<T>> {
        self.all().get(&number).map(Arc::clone)
    }

    /// Frees an object; whether there was one.
    pub fn free(&self, number: u64) -> bool {
        self.all().remove(&number).is_some()
    }

    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<T>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
