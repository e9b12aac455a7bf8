//! Faults and latencies at will: what makes a simulated node's bad days.
//!
//! ```text
//! nvml-simulator fault NODE add 'fn=… nth=1 code=19' --> FOLDER/faults (mapped: rules, counters, latencies)
//!                                                          ^
//! any program --NVML C ABI--> abi::traced --> meet(name, GPU) --> a code at once | a wait | an effect on the body
//! ```
//!
//! A rule's counter lies in the mapping, so `nth=3` is the third such call of all processes. Nothing waits here
//! while a GPU's lock is held: a fault that hangs hangs only its caller. Without a rule or a latency a call costs
//! one load.

use crate::{shared::Shard, trouble::Trouble};

mod freezer;
mod latency;
mod meet;
mod rule;
mod table;

pub use freezer::Freezer;
pub use latency::{EXAMPLE, Latency, PROFILES};
pub(crate) use meet::seen;
pub use meet::{Effects, Scope, delay, effects, found, meet_at, passing, reopen, within};
pub use rule::{RESET, Rule, Then, When};
pub use table::{Faults, Listed};

/// Adds faults to a node, all or none, and answers their numbers.
///
/// # Errors
/// [`Trouble::Input`] for a rule that is not legal; [`Trouble::Failed`] for one that cannot be kept on this machine.
pub fn add(shard: &Shard, texts: &[String]) -> Result<Vec<usize>, Trouble> {
    for text in texts {
        let rule = Rule::read(text)?;
        if let Some(gpu) = rule.gpu.filter(|gpu| *gpu >= shard.models().len()) {
            let count = shard.models().len();
            return Err(Trouble::input(format!(
                "fault `{text}`: there is no GPU {gpu}; the node has {count}"
            )));
        }
        if rule.then == Then::Unkillable {
            Freezer::of(&shard.folder)?.usable()?;
        }
    }
    shard.faults.add(texts)
}

/// Takes one fault away, or all; what hangs in them goes on.
///
/// # Errors
/// [`Trouble::Input`] if there is no such fault; [`Trouble::Failed`] if a frozen process cannot be let go.
pub fn clear(shard: &Shard, number: Option<usize>) -> Result<(), Trouble> {
    shard.faults.clear(number)?;
    Freezer::of(&shard.folder)?.release()
}

/// Nanoseconds of a clock that all processes of the machine share and that only grows.
pub(crate) fn now() -> u64 {
    // SAFETY: `timespec` is plain data; the clock id is a constant, and the call cannot fail with it.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time);
        time
    };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests;
