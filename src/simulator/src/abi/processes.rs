//! Who computes where. Marks (`*`) show as processes that Linux does not have.

use super::{
    Call, Out,
    arguments::put_list,
    entry,
    handle::{Device, Handle},
    layout::{Process, Process1},
    library::FIRST_MARK_PID,
    memory::MIB,
};
use crate::{machine::Code, reading::Reading};

/// What stands for no instance id.
const NO_ID: u32 = u32::MAX;
/// Marks of one GPU have ids of their own: 8 for each GPU instance, then one for the whole GPU.
const PIDS_PER_GPU: u32 = 256;
const WHOLE_GPU: u32 = 128;

entry! {
    fn nvmlDeviceGetComputeRunningProcesses(device: Handle, count: Out<u32>, list: Out<Process1>) |call| {
        put_list(list, count, &old(&call.computing(device)?), false)
    }

    fn nvmlDeviceGetComputeRunningProcesses_v2(device: Handle, count: Out<u32>, list: Out<Process>) |call| {
        put_list(list, count, &call.computing(device)?, false)
    }

    fn nvmlDeviceGetComputeRunningProcesses_v3(device: Handle, count: Out<u32>, list: Out<Process>) |call| {
        put_list(list, count, &call.computing(device)?, false)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses(device: Handle, count: Out<u32>, list: Out<Process1>) |call| {
        put_list(list, count, &old(&call.none_of(device)?), false)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses_v2(device: Handle, count: Out<u32>, list: Out<Process>) |call| {
        put_list(list, count, &call.none_of(device)?, false)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses_v3(device: Handle, count: Out<u32>, list: Out<Process>) |call| {
        put_list(list, count, &call.none_of(device)?, false)
    }

    fn nvmlDeviceGetMPSComputeRunningProcesses(device: Handle, count: Out<u32>, list: Out<Process1>) |call| {
        put_list(list, count, &old(&call.none_of(device)?), false)
    }

    fn nvmlDeviceGetMPSComputeRunningProcesses_v2(device: Handle, count: Out<u32>, list: Out<Process>) |call| {
        put_list(list, count, &call.none_of(device)?, false)
    }

    fn nvmlDeviceGetMPSComputeRunningProcesses_v3(device: Handle, count: Out<u32>, list: Out<Process>) |call| {
        put_list(list, count, &call.none_of(device)?, false)
    }
}

impl Call {
    /// The device, if this process may see who is on it: a GPU with instances shows that to root only.
    fn may_list(&self, device: Handle) -> Result<Device<'_>, Code> {
        let device = self.device(device)?;
        let instances = device.board.mig_on(&device.state) && device.state.live_gis().next().is_some();
        if device.mig.is_none() && instances {
            self.require_privilege()?;
        }
        Ok(device)
    }

    fn none_of(&self, device: Handle) -> Result<Vec<Process>, Code> {
        self.may_list(device).map(|_| Vec::new())
    }

    pub(super) fn computing(&self, device: Handle) -> Result<Vec<Process>, Code> {
        let device = self.may_list(device)?;
        let sampler = self.sampler(&device)?;
        let first = FIRST_MARK_PID + device.gpu as u32 * PIDS_PER_GPU;
        let process = |offset, gi, ci, mib: f64| {
            let memory = (mib as u64).saturating_mul(MIB);
            Process { pid: first + offset, gap: 0, memory, gi, ci }
        };
        let mut found = Vec::new();
        if device.state.busy != 0 && device.mig.is_none() {
            found.push(process(WHOLE_GPU, NO_ID, NO_ID, sampler.memory_used(&device.state)));
        }
        for mig in device.board.mig_devices(&device.state) {
            let (gi, ci) = device.instances(mig)?;
            if ci.busy != 0 && device.mig.is_none_or(|only| only == mig) {
                // What the GPU instance has in use, in equal parts.
                let total = device.board.profile_of(gi)?.memory_mib;
                let used = sampler.instance(mig.gi, total, Reading::MemoryUsed).unwrap_or_default();
                let sharers = gi.live_cis().filter(|(_, ci)| ci.busy != 0).count().max(1);
                found.push(process(mig.gi * 8 + mig.ci, mig.gi, mig.ci, used / sharers as f64));
            }
        }
        Ok(found)
    }
}

fn old(list: &[Process]) -> Vec<Process1> {
    list.iter().map(|one| Process1 { pid: one.pid, gap: 0, memory: one.memory }).collect()
}
