//! What a call meets before its body runs.

use super::{
    Faults, Freezer, Then, When, now,
    rule::{RESET, Rule},
};
use crate::{
    abi::MUTATING,
    machine::Code,
    session::{self, STATE_VARIABLE},
    state::GpuState,
};
use std::{
    cell::Cell,
    fs::OpenOptions,
    os::{fd::AsRawFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicPtr, Ordering},
    time::Duration,
};

/// How often one that hangs looks whether its fault is still there.
const LOOK: Duration = Duration::from_millis(20);

/// A node's faults, and which file they lie in.
struct Opened {
    faults: Faults,
    folder: PathBuf,
    file: (u64, u64),
}

/// This process's view of its node's faults. Replaced only when the node itself was made anew, and then the old
/// one stays mapped: another thread may be reading it, and a lock here would be one more that a fork can break.
static CURRENT: AtomicPtr<Opened> = AtomicPtr::new(std::ptr::null_mut());

/// What changes the answer of the call under way on this thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct Effects {
    /// Nanoseconds for which a change is not seen; 0: it is seen at once.
    pub stale: u64,
    /// SetMigMode's activation status.
    pub activation: Option<Code>,
    /// A MIG index that is empty.
    pub gap: Option<u32>,
    /// A profile id with another instance count.
    pub count: Option<(u32, u32)>,
    /// A profile id at another enumeration value.
    pub slot: Option<(u32, u32)>,
}

thread_local! {
    static EFFECTS: Cell<Effects> = const { Cell::new(Effects { stale: 0, activation: None, gap: None, count: None, slot: None }) };
    static FUNCTION: Cell<&'static str> = const { Cell::new("") };
}

/// Which rules a call is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// As it begins, with the GPU of its first handle.
    Begin(Option<usize>),
    /// As it has found which GPU it is about: those that name this GPU.
    Found(usize),
}

/// The effects on the call under way on this thread.
pub fn effects() -> Effects {
    EFFECTS.get()
}

/// Opens the node's faults, at the process's first nvmlInit and whenever the node is another.
pub fn reopen() {
    let Some(folder) = std::env::var_os(STATE_VARIABLE).map(PathBuf::from) else { return };
    let file = |folder: &Path| {
        let found = std::fs::metadata(folder.join("faults")).ok()?;
        Some((found.dev(), found.ino()))
    };
    if current().is_some_and(|current| file(&folder) == Some(current.file)) {
        return;
    }
    // A node that cannot be opened has no faults either; nvmlInit says what is wrong with it.
    if !folder.join("state").exists() {
        return;
    }
    let Ok(faults) = Faults::open(&folder) else { return };
    if let Some(file) = file(&folder) {
        CURRENT.store(Box::into_raw(Box::new(Opened { faults, folder, file })), Ordering::Release);
    }
}

fn current() -> Option<&'static Opened> {
    // SAFETY: the pointer is null or of a box that `reopen` leaked.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// Whether there is any fault or latency on this node.
pub fn passing() -> bool {
    current().is_none_or(|current| !current.faults.active())
}

/// Runs a call's body under the faults that it meets.
///
/// # Errors
/// What the body answers, or what a fault answers in its stead.
pub fn within(
    name: &'static str,
    gpu: Option<usize>,
    body: impl FnOnce() -> Result<(), Code>,
) -> Result<(), Code> {
    let Some(Opened { faults, folder, .. }) = current() else { return body() };
    FUNCTION.set(name);
    let lose = |gpu: usize| {
        let Ok(session) = session::current() else { return };
        // One that is no GPU of the node has nothing to lose.
        let _ = session.change(gpu, |_, state| {
            state.lost = 1;
            Ok(())
        });
    };
    let met = meet_at(faults, folder, name, Scope::Begin(gpu), &lose);
    let result = met.and_then(|()| {
        let whole = || session::current().is_ok_and(|session| session.info().driver_lock_node != 0);
        delay(faults, folder, name, gpu, whole);
        body()
    });
    EFFECTS.set(Effects::default());
    FUNCTION.set("");
    result
}

/// The call under way has found its GPU by name: what rules for that GPU say.
///
/// # Errors
/// What a fault answers.
pub fn found(gpu: usize, lose: &dyn Fn(usize)) -> Result<(), Code> {
    let name = FUNCTION.get();
    match current() {
        Some(Opened { faults, folder, .. }) if !name.is_empty() => {
            meet_at(faults, folder, name, Scope::Found(gpu), lose)
        }
        _ => Ok(()),
    }
}

/// Meets a node's faults; `lose` takes a GPU off the bus.
///
/// # Errors
/// What a fault answers.
pub fn meet_at(
    faults: &Faults,
    folder: &Path,
    name: &str,
    scope: Scope,
    lose: &dyn Fn(usize),
) -> Result<(), Code> {
    let is_for = |rule: &Rule| {
        // What loses a GPU waits until the call knows which.
        let waits = rule.then == Then::Lost;
        match scope {
            Scope::Begin(gpu) => rule.gpu.map_or(gpu.is_some() || !waits, |wanted| gpu == Some(wanted)),
            Scope::Found(gpu) => rule.gpu.map_or(waits, |wanted| wanted == gpu),
        }
    };
    let gpu = match scope {
        Scope::Begin(gpu) => gpu,
        Scope::Found(gpu) => Some(gpu),
    };
    for (number, rule, hit, begun) in faults.met(name, is_for) {
        let due = match rule.when {
            When::Every => true,
            When::Nth(nth) => hit == nth,
            When::Rate { rate, seed } => chance(seed, hit) < rate,
            When::For(time) => u128::from(now().saturating_sub(begun)) < time.as_nanos(),
        };
        if due {
            happen(faults, folder, number, rule.then, gpu, lose)?;
        }
    }
    Ok(())
}

fn happen(
    faults: &Faults,
    folder: &Path,
    number: usize,
    then: Then,
    gpu: Option<usize>,
    lose: &dyn Fn(usize),
) -> Result<(), Code> {
    let mut effects = EFFECTS.get();
    match then {
        Then::Code(Code::SUCCESS) => {}
        Then::Code(code) => return Err(code),
        Then::Hang(time) => hang(faults, number, time),
        Then::Unkillable => {
            let frozen = Freezer::of(folder).ok().map(|freezer| freezer.freeze_self());
            // Where it cannot be frozen it hangs all the same; adding the fault said that it can.
            if !matches!(frozen, Some(Ok(()))) {
                hang(faults, number, None);
            }
        }
        Then::Lost => {
            if let Some(gpu) = gpu {
                lose(gpu);
            }
            return Err(Code::GPU_IS_LOST);
        }
        Then::Stale(time) => effects.stale = time.as_nanos() as u64,
        Then::Activation(code) => effects.activation = Some(code),
        Then::Gap(index) => effects.gap = Some(index),
        Then::Count(id, count) => effects.count = Some((id, count)),
        Then::Slot(id, slot) => effects.slot = Some((id, slot)),
    }
    EFFECTS.set(effects);
    Ok(())
}

/// Waits, while the fault is there.
fn hang(faults: &Faults, number: usize, time: Option<Duration>) {
    let (generation, begin) = (faults.generation(number), now());
    while faults.generation(number) == generation {
        let gone = now().saturating_sub(begin);
        let left = time.map(|time| time.saturating_sub(Duration::from_nanos(gone)));
        match left {
            Some(left) if left.is_zero() => return,
            left => std::thread::sleep(left.unwrap_or(LOOK).min(LOOK)),
        }
    }
}

/// Takes the time that a call of this function takes. Writes wait for each other: on one GPU, or where the node's
/// driver has one lock, on all.
pub fn delay(faults: &Faults, folder: &Path, name: &str, gpu: Option<usize>, whole: impl FnOnce() -> bool) {
    let time = faults.latency(name);
    if time == 0 {
        return;
    }
    let writes = MUTATING.contains(&name) || name == RESET;
    let _turn = gpu.filter(|_| writes).and_then(|gpu| Turn::take(folder, gpu, whole()));
    std::thread::sleep(Duration::from_nanos(time));
}

/// The driver's lock, as long as it lives: a lock on a byte of its own in the clients file, through a description
/// of its own, so that threads of one process wait for each other too. It goes with its process.
struct Turn(#[expect(dead_code, reason = "the lock lives as long as the description")] std::fs::File);

impl Turn {
    fn take(folder: &Path, gpu: usize, whole: bool) -> Option<Turn> {
        let file = OpenOptions::new().read(true).write(true).open(folder.join("clients")).ok()?;
        // SAFETY: `flock` is plain data, legal when all bytes are zero.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = libc::F_WRLCK as libc::c_short;
        lock.l_whence = libc::SEEK_SET as libc::c_short;
        // Clients lock the bytes of their GPUs, which are fewer than these.
        lock.l_start = 4096 + if whole { 0 } else { 1 + gpu as libc::off_t };
        lock.l_len = 1;
        // SAFETY: the descriptor is open, and `lock` is a valid flock that the kernel reads.
        let taken = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLKW, &mut lock) };
        (taken == 0).then_some(Turn(file))
    }
}

/// A number from 0 to 1 that follows from the seed and the call's number (splitmix64).
fn chance(seed: u64, hit: u64) -> f64 {
    let mut z = seed.wrapping_add(hit.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// The state of a GPU as the call under way is to see it.
pub(crate) fn seen(faults: &Faults, gpu: usize, state: GpuState) -> GpuState {
    match EFFECTS.get().stale {
        0 => state,
        time => faults.recall(gpu, time).unwrap_or(state),
    }
}
