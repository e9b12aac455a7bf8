//! Who computes where. Marks (`*`) show as processes that Linux does not have.

use super::{
    Call, Out,
    arguments::put_list,
    entry,
    handle::{Device, Handle},
    layout::{Process, Process1},
    library::FIRST_MARK_PID,
};
use crate::machine::Code;

/// What stands for no instance id.
const NO_ID: u32 = u32::MAX;
/// NVML_VALUE_NOT_AVAILABLE.
const NOT_AVAILABLE: u64 = u64::MAX;
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
        let first = FIRST_MARK_PID + device.gpu as u32 * PIDS_PER_GPU;
        let process = |offset, gi, ci| Process { pid: first + offset, gap: 0, memory: NOT_AVAILABLE, gi, ci };
        let mut found = Vec::new();
        if device.state.busy != 0 && device.mig.is_none() {
            found.push(process(WHOLE_GPU, NO_ID, NO_ID));
        }
        for mig in device.board.mig_devices(&device.state) {
            let (_, ci) = device.instances(mig)?;
            if ci.busy != 0 && device.mig.is_none_or(|only| only == mig) {
                found.push(process(mig.gi * 8 + mig.ci, mig.gi, mig.ci));
            }
        }
        Ok(found)
    }
}

fn old(list: &[Process]) -> Vec<Process1> {
    list.iter().map(|one| Process1 { pid: one.pid, gap: 0, memory: one.memory }).collect()
}
