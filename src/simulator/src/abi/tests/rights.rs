//! Rights by effective uid. These change the process's, so they want a process each (as nextest gives them) and
//! root to begin with.

use super::*;

/// Any uid but root's.
const NOBODY: u32 = 65534;

struct Unprivileged;

impl Unprivileged {
    /// `None` where the tests do not run as root, which cannot change its uid.
    fn now() -> Option<Unprivileged> {
        // SAFETY: plain system calls.
        unsafe { (libc::geteuid() == 0 && libc::seteuid(NOBODY) == 0).then_some(Unprivileged) }
    }
}

impl Unprivileged {
    /// What root does meanwhile.
    fn as_root(&self, what: impl FnOnce()) {
        // SAFETY: as above.
        unsafe { libc::seteuid(0) };
        what();
        // SAFETY: as above.
        unsafe { libc::seteuid(NOBODY) };
    }
}

impl Drop for Unprivileged {
    fn drop(&mut self) {
        // SAFETY: as above; the real uid is still root's.
        unsafe { libc::seteuid(0) };
    }
}

fn real() -> Info {
    Info { privileges_real: 1, ..info("580.95.05") }
}

#[test]
fn only_root_changes_and_lists_where_rights_are_real() {
    let node = Node::with(&real(), &[a100('A'), geforce()]);
    let (device, without) = (gpu(0), gpu(1));
    let mut found = Handle(0);
    let Some(user) = Unprivileged::now() else { return };
    assert_eq!(nvmlDeviceSetMigMode(device, 1, Out::to(&mut 0)), 4);
    assert_eq!(nvmlDeviceSetMigMode(without, 1, Out::to(&mut 0)), 3);
    // Rights come before the mode.
    assert_eq!(nvmlDeviceCreateGpuInstance(device, 19, Out::to(&mut found)), 4);
    let mut memory = Memory::zero();
    assert_eq!(nvmlDeviceGetMemoryInfo(device, Out::to(&mut memory)), 0);
    user.as_root(|| {
        node.change(0, |board, state| {
            board.force_mode(state, true).unwrap();
        })
    });
    assert_eq!(nvmlDeviceGetMemoryInfo(device, Out::to(&mut memory)), 4);
    let processes =
        || nvmlDeviceGetComputeRunningProcesses_v3(device, Out::to(&mut 0), Out::to(&mut Process::zero()));
    assert_eq!(processes(), 0);
    user.as_root(|| {
        node.change(0, |board, state| {
            board.place(state, 0, 0).unwrap();
        })
    });
    assert_eq!(processes(), 4);
    assert_eq!(number(|out| nvmlDeviceGetGpuInstanceRemainingCapacity(device, 19, out)), Err(4));
    assert_eq!(nvmlDeviceSetPersistenceMode(device, 1), 4);
    let mig = mig_device(device, 0).unwrap();
    assert_eq!(nvmlDeviceGetMemoryInfo(mig, Out::to(&mut memory)), 0);
}

#[test]
fn everyone_may_everything_where_rights_are_ignored() {
    let _node = Node::new(&[a100('A')]);
    let Some(_user) = Unprivileged::now() else { return };
    let device = gpu(0);
    switch_on(device);
    created(device, 19, 0, 1);
}

#[test]
fn only_root_sets_limits_and_clocks_where_rights_are_real() {
    use crate::abi::{accounting::*, clocks::*, ecc::*, gpm::*, power::*};

    let _node = Node::with(&real(), &[h100()]);
    let device = gpu(0);
    let Some(_user) = Unprivileged::now() else { return };
    assert_eq!(nvmlDeviceSetPowerManagementLimit(device, 300_000), 4);
    assert_eq!(nvmlDeviceSetApplicationsClocks(device, 2619, 1980), 4);
    assert_eq!(nvmlDeviceResetApplicationsClocks(device), 4);
    assert_eq!(nvmlDeviceSetGpuLockedClocks(device, 900, 1000), 4);
    assert_eq!(nvmlDeviceSetEccMode(device, 0), 4);
    assert_eq!(nvmlDeviceClearEccErrorCounts(device, 0), 4);
    assert_eq!(nvmlDeviceSetAccountingMode(device, 1), 4);
    assert_eq!(nvmlGpmSetStreamingEnabled(device, 1), 4);
    assert_eq!(number(|out| nvmlDeviceGetPowerUsage(device, out)).err(), None, "all may read");
}
