//! What one process has of a node: whether NVML is initialised, the open state, and which GPUs it has open.
//!
//! ```text
//! none --init--> open (count 1) --init--> open (count 2) ...
//!   ^                |  first handle on a GPU: a client of it, until
//!   +----shutdown----+  the last shutdown or the process's end
//! ```
//!
//! The C ABI has no place for a context, so this is the library's one global. It holds nothing of the node's
//! state: a process may be killed at any instruction.

use crate::{
    client::Clients,
    fault,
    machine::{Board, Code},
    model::MAX_GPUS,
    shared::{Info, Shard},
    state::GpuState,
    watch::EventSets,
};
use std::{
    cell::RefCell,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, Once, PoisonError, RwLock, RwLockWriteGuard,
        atomic::{AtomicU32, Ordering},
    },
};

/// The folder of the node that programs see; without it there is no driver.
pub const STATE_VARIABLE: &str = "NVML_SIMULATOR_STATE";

static CURRENT: RwLock<Option<Open>> = RwLock::new(None);

struct Open {
    count: u64,
    session: Arc<Session>,
}

/// One process's open node.
pub struct Session {
    shard: Shard,
    clients: Mutex<Entered>,
    /// One bit for each GPU that this process is a client of: asked without the lock.
    seen: AtomicU32,
    /// Its event sets.
    pub sets: EventSets,
}

struct Entered {
    clients: Clients,
    gpus: u32,
    /// The process that opened `clients`: a forked child has the same description and needs its own.
    pid: u32,
}

/// nvmlInit: opens the node that the environment names, or counts one user more.
///
/// # Errors
/// `DRIVER_NOT_LOADED` if there is none that can be read.
pub fn init() -> Result<(), Code> {
    let folder = std::env::var_os(STATE_VARIABLE).map(PathBuf::from);
    init_at(folder.as_deref())
}

/// [`init`] with the folder given.
///
/// # Errors
/// `DRIVER_NOT_LOADED`.
pub fn init_at(folder: Option<&Path>) -> Result<(), Code> {
    hold_over_forks();
    let mut current = CURRENT.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(open) = current.as_mut() {
        open.count += 1;
        return Ok(());
    }
    let folder = folder.ok_or(Code::DRIVER_NOT_LOADED)?;
    let session = Session::open(folder).ok_or(Code::DRIVER_NOT_LOADED)?;
    *current = Some(Open { count: 1, session: Arc::new(session) });
    Ok(())
}

/// nvmlShutdown: the last one closes everything.
///
/// # Errors
/// `UNINITIALIZED` if there was no init.
pub fn shutdown() -> Result<(), Code> {
    let mut current = CURRENT.write().unwrap_or_else(PoisonError::into_inner);
    let open = current.as_mut().ok_or(Code::UNINITIALIZED)?;
    open.count -= 1;
    if open.count == 0 {
        let last = current.take();
        drop(current);
        if let Some(open) = last {
            open.session.leave_all();
        }
    }
    Ok(())
}

/// The open session; calls that are under way keep it alive over another thread's shutdown.
///
/// # Errors
/// `UNINITIALIZED`.
pub fn current() -> Result<Arc<Session>, Code> {
    let current = CURRENT.read().unwrap_or_else(PoisonError::into_inner);
    current.as_ref().map(|open| Arc::clone(&open.session)).ok_or(Code::UNINITIALIZED)
}

impl Session {
    fn open(folder: &Path) -> Option<Session> {
        let shard = Shard::open(folder).ok()?;
        let clients = Clients::open(folder).ok()?;
        let entered = Entered { clients, gpus: 0, pid: std::process::id() };
        Some(Session {
            shard,
            clients: Mutex::new(entered),
            seen: AtomicU32::new(0),
            sets: EventSets::default(),
        })
    }

    /// The node.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// What concerns the whole node.
    pub fn info(&self) -> &Info {
        self.shard.info()
    }

    /// Number of GPUs.
    pub fn gpus(&self) -> usize {
        self.shard.models().len()
    }

    /// A GPU's rules and its state at this instant.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the node has no such GPU.
    pub fn look(&self, gpu: usize) -> Result<(Board<'_>, GpuState), Code> {
        let state = self.shard.read(gpu).ok_or(Code::INVALID_ARGUMENT)?;
        Ok((self.board(gpu)?, fault::seen(&self.shard.faults, gpu, state)))
    }

    /// A GPU's rules.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the node has no such GPU.
    pub fn board(&self, gpu: usize) -> Result<Board<'_>, Code> {
        let model = self.shard.models().get(gpu).ok_or(Code::INVALID_ARGUMENT)?;
        Ok(Board::new(self.info(), model))
    }

    /// Changes a GPU's state as `change` says, or leaves it if that answers an error. Nothing that waits may
    /// happen in it: the GPU's lock is held.
    ///
    /// # Errors
    /// What `change` answers; `INVALID_ARGUMENT` if the node has no such GPU.
    pub fn change<R>(
        &self,
        gpu: usize,
        change: impl FnOnce(&Board<'_>, &mut GpuState) -> Result<R, Code>,
    ) -> Result<R, Code> {
        let board = self.board(gpu)?;
        self.shard.update(gpu, |state| change(&board, state)).ok_or(Code::INVALID_ARGUMENT)?
    }

    /// Becomes a client of a GPU.
    pub fn enter(&self, gpu: usize) {
        let bit = bit(gpu);
        if self.seen.load(Ordering::Relaxed) & bit == bit {
            return;
        }
        let mut entered = self.entered();
        // A lock that cannot be had (no memory in the kernel) leaves this process unseen; it is tried again.
        if entered.clients.enter(gpu).is_ok() {
            entered.gpus |= bit;
            self.seen.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Whether another process is a client of the GPU.
    pub fn others(&self, gpu: usize) -> bool {
        // What cannot be known counts as used.
        self.entered().clients.others(gpu).unwrap_or(true)
    }

    /// Whether this process may do what the driver reserves to root. `CAP_SYS_ADMIN` is taken by effective uid.
    pub fn privileged(&self) -> bool {
        // SAFETY: geteuid has no preconditions and cannot fail.
        self.info().privileges_real == 0 || unsafe { libc::geteuid() } == 0
    }

    fn leave_all(&self) {
        let entered = self.entered();
        for gpu in (0..MAX_GPUS).filter(|gpu| entered.gpus & bit(*gpu) != 0) {
            let _ = entered.clients.leave(gpu);
        }
        self.seen.store(0, Ordering::Relaxed);
    }

    /// The clients file, opened anew in a forked child: with its parent's description it would not see the
    /// parent, and its shutdown would take the parent's locks away.
    fn entered(&self) -> std::sync::MutexGuard<'_, Entered> {
        let mut entered = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if entered.pid != std::process::id()
            && let Ok(clients) = Clients::open(&self.shard.folder)
        {
            for gpu in (0..MAX_GPUS).filter(|gpu| entered.gpus & bit(*gpu) != 0) {
                let _ = clients.enter(gpu);
            }
            entered.clients = clients;
            entered.pid = std::process::id();
        }
        entered
    }
}

fn bit(gpu: usize) -> u32 {
    u32::try_from(gpu).ok().and_then(|gpu| 1u32.checked_shl(gpu)).unwrap_or(0)
}

thread_local! {
    static FORKING: RefCell<Option<RwLockWriteGuard<'static, Option<Open>>>> = const { RefCell::new(None) };
}

/// A fork while another thread has the lock would leave the child with one that nobody gives back; so the
/// forking thread takes it first, and both sides give it back.
fn hold_over_forks() {
    static ONCE: Once = Once::new();

    extern "C" fn prepare() {
        let guard = CURRENT.write().unwrap_or_else(PoisonError::into_inner);
        let _ = FORKING.try_with(|slot| slot.replace(Some(guard)));
    }

    extern "C" fn release() {
        let _ = FORKING.try_with(|slot| slot.replace(None));
    }

    ONCE.call_once(|| {
        // SAFETY: the three functions live as long as the library, which glibc knows when it unloads it.
        unsafe { libc::pthread_atfork(Some(prepare), Some(release), Some(release)) };
    });
}

#[cfg(test)]
mod tests;
