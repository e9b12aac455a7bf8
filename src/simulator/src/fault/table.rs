//! The mapped file of a node's faults and latencies.
//!
//! Whoever adds or clears takes turns; callers of NVML only read, and count. A rule's text is written while its
//! generation is even and counts once it is odd, so one that was half written when its writer was killed is none.

use super::{
    Rule,
    latency::{Latency, MOST_LATENCIES},
    now,
    rule::LONGEST,
};
use crate::{
    mapped::{Layout, Mapped},
    model::MAX_GPUS,
    shared::StateError,
    state::GpuState,
    trouble::{Trouble, join},
};
use std::{
    mem::size_of,
    path::Path,
    sync::atomic::{AtomicU64, Ordering, fence},
};

/// The most rules of a node.
const MOST_RULES: usize = 64;
const TEXT_WORDS: usize = (LONGEST + 8) / 8;
const LATENCY_WORDS: usize = 10;
const STATE_WORDS: usize = size_of::<GpuState>() / 8;
/// How often a reader tries while a writer overtakes it.
const TRIES: u32 = 64;

#[derive(Debug)]
#[repr(C)]
struct Slot {
    /// Odd: the rule counts.
    generation: AtomicU64,
    /// Calls that the rule was for.
    hits: AtomicU64,
    /// When the first of them was, in nanoseconds; 0 if there was none.
    begun: AtomicU64,
    text: [AtomicU64; TEXT_WORDS],
}

#[derive(Debug)]
#[repr(C)]
struct Delay {
    nanoseconds: AtomicU64,
    pattern: [AtomicU64; LATENCY_WORDS],
}

/// A GPU before its last change, for those who see it stale.
#[derive(Debug)]
#[repr(C)]
struct Past {
    generation: AtomicU64,
    changed: AtomicU64,
    state: [AtomicU64; STATE_WORDS],
}

#[derive(Debug)]
#[repr(C)]
struct Table {
    version: AtomicU64,
    /// Non-zero while there is a rule or a latency: all that other calls look at.
    active: AtomicU64,
    delays_generation: AtomicU64,
    delay_count: AtomicU64,
    rules: [Slot; MOST_RULES],
    delays: [Delay; MOST_LATENCIES],
    pasts: [Past; MAX_GPUS],
}

// SAFETY: atomics only, legal when zero; the version word is first.
unsafe impl Layout for Table {
    const NAME: &'static str = "faults";
    const VERSION: u64 = 1;

    fn version(&self) -> &AtomicU64 {
        &self.version
    }
}

/// A node's faults, opened.
#[derive(Debug)]
pub struct Faults(Mapped<Table>);

/// A rule that is there.
#[derive(Debug)]
pub struct Listed {
    /// By which it is cleared.
    pub number: usize,
    /// As it was written.
    pub text: String,
    /// Calls that it was for until now.
    pub hits: u64,
}

impl Faults {
    /// Opens the faults of the node in `folder`, making the file if it is missing.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn open(folder: &Path) -> Result<Faults, StateError> {
        Mapped::open(folder).map(Faults)
    }

    fn table(&self) -> &Table {
        self.0.get()
    }

    /// Whether there is anything to meet.
    pub fn active(&self) -> bool {
        self.table().active.load(Ordering::Relaxed) != 0
    }

    /// Adds rules, all or none, and answers their numbers.
    ///
    /// # Errors
    /// [`Trouble::Input`] if one is not legal or there are too many.
    pub fn add(&self, texts: &[String]) -> Result<Vec<usize>, Trouble> {
        let texts: Vec<String> = texts.iter().map(|text| join(text.split_whitespace(), " ")).collect();
        texts.iter().try_for_each(|text| Rule::read(text).map(drop))?;
        let _turn = self.0.turn()?;
        let slots = self.table().rules.iter().enumerate();
        let free: Vec<_> =
            slots.filter(|(_, slot)| slot.generation.load(Ordering::Relaxed) & 1 == 0).collect();
        if free.len() < texts.len() {
            let kept = MOST_RULES - free.len();
            return Err(Trouble::input(format!(
                "a node has at most {MOST_RULES} faults, and {kept} are there; `fault NODE clear` some first"
            )));
        }
        let added = texts.iter().zip(free).map(|(text, (number, slot))| {
            slot.hits.store(0, Ordering::Relaxed);
            slot.begun.store(0, Ordering::Relaxed);
            put(&slot.text, text.as_bytes());
            slot.generation.fetch_add(1, Ordering::Release);
            number
        });
        let added = added.collect();
        self.count();
        Ok(added)
    }

    /// Takes a rule away, or all; whoever hangs in one goes on.
    ///
    /// # Errors
    /// [`Trouble::Input`] if there is no such rule.
    pub fn clear(&self, number: Option<usize>) -> Result<(), Trouble> {
        let _turn = self.0.turn()?;
        let live = |slot: &Slot| slot.generation.load(Ordering::Relaxed) & 1 == 1;
        let mut cleared = 0;
        for (at, slot) in self.table().rules.iter().enumerate() {
            if live(slot) && number.is_none_or(|number| number == at) {
                slot.generation.fetch_add(1, Ordering::Release);
                cleared += 1;
            }
        }
        self.count();
        match number.filter(|_| cleared == 0) {
            Some(number) => Err(Trouble::input(format!(
                "there is no fault {number}; `fault NODE list` shows those there are"
            ))),
            None => Ok(()),
        }
    }

    /// The rules there are.
    pub fn list(&self) -> Vec<Listed> {
        let slots = self.table().rules.iter().enumerate();
        slots
            .filter_map(|(number, slot)| {
                let text = slot.text()?;
                Some(Listed { number, text, hits: slot.hits.load(Ordering::Relaxed) })
            })
            .collect()
    }

    /// Replaces the latencies.
    ///
    /// # Errors
    /// [`Trouble::Failed`] if another writer does not go on.
    pub fn set_latencies(&self, latencies: &[Latency]) -> Result<(), Trouble> {
        let _turn = self.0.turn()?;
        let table = self.table();
        table.delays_generation.fetch_add(1, Ordering::AcqRel);
        let some = latencies.iter().take(MOST_LATENCIES);
        for (delay, latency) in table.delays.iter().zip(some) {
            delay.nanoseconds.store(latency.time.as_nanos() as u64, Ordering::Relaxed);
            put(&delay.pattern, latency.function.as_bytes());
        }
        table.delay_count.store(latencies.len().min(MOST_LATENCIES) as u64, Ordering::Relaxed);
        table.delays_generation.fetch_add(1, Ordering::Release);
        self.count();
        Ok(())
    }

    /// How long a call of this function takes: the first latency that is for it.
    pub(super) fn latency(&self, function: &str) -> u64 {
        let table = self.table();
        for _ in 0..TRIES {
            let generation = table.delays_generation.load(Ordering::Acquire);
            let count = table.delay_count.load(Ordering::Relaxed) as usize;
            let delays = table.delays.iter().take(count);
            let found = delays
                .filter(|delay| super::rule::glob(get(&delay.pattern).as_bytes(), function.as_bytes()))
                .map(|delay| delay.nanoseconds.load(Ordering::Relaxed))
                .next();
            fence(Ordering::Acquire);
            if generation & 1 == 0 && table.delays_generation.load(Ordering::Relaxed) == generation {
                return found.unwrap_or(0);
            }
        }
        0
    }

    /// The rules that count now, each with the number of this call among those it is for.
    pub(super) fn met(&self, function: &str, is_for: impl Fn(&Rule) -> bool) -> Vec<(usize, Rule, u64, u64)> {
        let mut met = Vec::new();
        for (number, slot) in self.table().rules.iter().enumerate() {
            let Some(text) = slot.text().filter(|text| Rule::may_be_for(text, function)) else { continue };
            let Ok(rule) = Rule::read(&text) else { continue };
            if is_for(&rule) {
                let hit = slot.hits.fetch_add(1, Ordering::Relaxed) + 1;
                let begun = match slot.begun.compare_exchange(0, now(), Ordering::Relaxed, Ordering::Relaxed)
                {
                    Ok(_) => slot.begun.load(Ordering::Relaxed),
                    Err(begun) => begun,
                };
                met.push((number, rule, hit, begun));
            }
        }
        met
    }

    /// A number by which a waiter knows that its rule still counts.
    pub(super) fn generation(&self, number: usize) -> u64 {
        self.table().rules.get(number).map_or(0, |slot| slot.generation.load(Ordering::Acquire))
    }

    /// Remembers a GPU as it was before a change. Its lock is held, so there is one writer.
    pub(crate) fn remember(&self, gpu: usize, before: &GpuState) {
        let Some(past) = self.table().pasts.get(gpu) else { return };
        // A writer that was killed left it odd.
        let generation = past.generation.load(Ordering::Relaxed) | 1;
        past.generation.store(generation, Ordering::Relaxed);
        fence(Ordering::Release);
        past.changed.store(now(), Ordering::Relaxed);
        // SAFETY: GpuState is whole words without padding (asserted in shared.rs), so all bytes are initialised.
        let words = unsafe { std::mem::transmute::<GpuState, [u64; STATE_WORDS]>(*before) };
        past.state.iter().zip(words).for_each(|(to, word)| to.store(word, Ordering::Relaxed));
        past.generation.store(generation.wrapping_add(1), Ordering::Release);
    }

    /// The GPU as it was, if it changed less than so many nanoseconds ago.
    pub(crate) fn recall(&self, gpu: usize, within: u64) -> Option<GpuState> {
        let past = self.table().pasts.get(gpu)?;
        for _ in 0..TRIES {
            let generation = past.generation.load(Ordering::Acquire);
            let changed = past.changed.load(Ordering::Relaxed);
            if generation == 0 || now().saturating_sub(changed) >= within {
                return None;
            }
            let mut words = [0u64; STATE_WORDS];
            past.state.iter().zip(&mut words).for_each(|(from, word)| *word = from.load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            if generation & 1 == 0 && past.generation.load(Ordering::Relaxed) == generation {
                // SAFETY: same size; GpuState is plain integers, for which all bytes are legal.
                return Some(unsafe { std::mem::transmute::<[u64; STATE_WORDS], GpuState>(words) });
            }
        }
        None
    }

    fn count(&self) {
        let table = self.table();
        let rules =
            table.rules.iter().filter(|slot| slot.generation.load(Ordering::Relaxed) & 1 == 1).count();
        let delays = table.delay_count.load(Ordering::Relaxed);
        table.active.store(rules as u64 + delays, Ordering::Release);
    }
}

impl Slot {
    /// The rule's text, if it counts.
    fn text(&self) -> Option<String> {
        for _ in 0..TRIES {
            let generation = self.generation.load(Ordering::Acquire);
            if generation & 1 == 0 {
                return None;
            }
            let text = get(&self.text);
            fence(Ordering::Acquire);
            if self.generation.load(Ordering::Relaxed) == generation {
                return Some(text);
            }
        }
        None
    }
}

fn put(words: &[AtomicU64], text: &[u8]) {
    let mut bytes = text.chunks(8);
    for word in words {
        let mut eight = [0; 8];
        eight.iter_mut().zip(bytes.next().unwrap_or_default()).for_each(|(to, from)| *to = *from);
        word.store(u64::from_le_bytes(eight), Ordering::Relaxed);
    }
}

fn get(words: &[AtomicU64]) -> String {
    let bytes = words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes());
    let text: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    String::from_utf8(text).unwrap_or_default()
}
