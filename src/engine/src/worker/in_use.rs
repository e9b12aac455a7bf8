//! Who is in which instance, by the GPU's own lists of processes.

use migd_core::node::InUse;
use migd_nvml::{Device, Process, ProcessKind};

/// What the lists say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Users {
    /// A list could not be read, so that no instance is known to be free.
    unknown: bool,
    processes: Vec<Process>,
}

impl Users {
    /// Reads the lists. One that this GPU does not have says nothing; one that may not be read, or fails,
    /// leaves every instance unknown.
    pub(super) fn read(device: &Device<'_>) -> Users {
        let mut users = Users::default();
        for kind in ProcessKind::ALL {
            match device.processes(kind) {
                Ok(mut found) => users.processes.append(&mut found),
                Err(error) if error.is_absent() => {}
                Err(_) => users.unknown = true,
            }
        }
        users
    }

    /// Whether a GPU instance is in use, by itself or by any of its compute instances.
    pub(super) fn of_instance(&self, gpu_instance: u32) -> InUse {
        self.any(|process| in_instance(process, gpu_instance))
    }

    /// Whether a compute instance is.
    pub(super) fn of_compute(&self, gpu_instance: u32, compute_instance: u32) -> InUse {
        self.any(|process| {
            in_instance(process, gpu_instance)
                && process.compute_instance.is_none_or(|id| id == compute_instance)
        })
    }

    /// The processes in a GPU instance, each once.
    pub(super) fn pids(&self, gpu_instance: u32) -> Vec<u32> {
        let inside = self.processes.iter().filter(|process| in_instance(process, gpu_instance));
        let mut pids: Vec<u32> = inside.map(|process| process.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    fn any(&self, holds: impl Fn(&Process) -> bool) -> InUse {
        match (self.processes.iter().any(holds), self.unknown) {
            (true, _) => InUse::Yes,
            (false, true) => InUse::Unknown,
            (false, false) => InUse::No,
        }
    }
}

/// A process without an instance holds the whole GPU.
fn in_instance(process: &Process, gpu_instance: u32) -> bool {
    process.gpu_instance.is_none_or(|id| id == gpu_instance)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, gpu_instance: Option<u32>, compute_instance: Option<u32>) -> Process {
        Process { pid, gpu_instance, compute_instance }
    }

    #[test]
    fn a_process_holds_its_own_instance_and_no_other() {
        let users = Users { unknown: false, processes: vec![process(7, Some(3), Some(1))] };
        assert_eq!(users.of_instance(3), InUse::Yes);
        assert_eq!(users.of_instance(4), InUse::No);
        assert_eq!(users.of_compute(3, 1), InUse::Yes);
        assert_eq!(users.of_compute(3, 0), InUse::No);
    }

    #[test]
    fn a_process_without_instance_holds_them_all() {
        let users = Users { unknown: false, processes: vec![process(7, None, None)] };
        assert_eq!(users.of_compute(5, 2), InUse::Yes);
        assert_eq!(users.pids(5), [7]);
    }

    #[test]
    fn an_unreadable_list_leaves_no_instance_free() {
        let users = Users { unknown: true, processes: vec![process(7, Some(3), Some(0))] };
        assert_eq!(users.of_instance(3), InUse::Yes);
        assert_eq!(users.of_instance(4), InUse::Unknown);
    }
}
