//! Who computes where: those who hold, and marks (`*`), which show as processes that Linux does not have.

use super::{
    Call, Out,
    arguments::put_list,
    entry,
    handle::{Device, Handle},
    layout::{Process, Process1},
    library::FIRST_MARK_PID,
    memory::MIB,
};
use crate::{
    holders::{HELD, Kind},
    machine::Code,
    reading::Reading,
};

/// What stands for no instance id.
const NO_ID: u32 = u32::MAX;
/// Marks of one GPU have ids of their own: 8 for each GPU instance, then one for the whole GPU.
const PIDS_PER_GPU: u32 = 256;
const WHOLE_GPU: u32 = 128;

entry! {
    fn nvmlDeviceGetComputeRunningProcesses(device: Handle, count: Out<u32>, list: Out<Process1>) |call| {
        put_list(list, count, &old(&call.running(device, Kind::Compute)?), false)
    }

    fn nvmlDeviceGetComputeRunningProcesses_v2(device: Handle, count: Out<u32>, list: Out<Process>) |call| {
        put_list(list, count, &call.running(device, Kind::Compute)?, false)
    }

    fn nvmlDeviceGetComputeRunningProcesses_v3(device: Handle, count: Out<u32>, list: Out<Process>) |call| {
        put_list(list, count, &call.running(device, Kind::Compute)?, false)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses(device: Handle, count: Out<u32>, list: Out<Process1>) |call| {
        put_list(list, count, &old(&call.running(device, Kind::Graphics)?), false)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses_v2(device: Handle, count: Out<u32>, list: Out<Process>) |call| {
        put_list(list, count, &call.running(device, Kind::Graphics)?, false)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses_v3(device: Handle, count: Out<u32>, list: Out<Process>) |call| {
        put_list(list, count, &call.running(device, Kind::Graphics)?, false)
    }

    fn nvmlDeviceGetMPSComputeRunningProcesses(device: Handle, count: Out<u32>, list: Out<Process1>) |call| {
        put_list(list, count, &old(&call.running(device, Kind::Mps)?), false)
    }

    fn nvmlDeviceGetMPSComputeRunningProcesses_v2(device: Handle, count: Out<u32>, list: Out<Process>) |call| {
        put_list(list, count, &call.running(device, Kind::Mps)?, false)
    }

    fn nvmlDeviceGetMPSComputeRunningProcesses_v3(device: Handle, count: Out<u32>, list: Out<Process>) |call| {
        put_list(list, count, &call.running(device, Kind::Mps)?, false)
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

    pub(super) fn running(&self, device: Handle, kind: Kind) -> Result<Vec<Process>, Code> {
        let device = self.may_list(device)?;
        let mut found = if kind == Kind::Compute { self.marked(&device)? } else { Vec::new() };
        let on = device.board.mig_on(&device.state);
        for holder in self.session.shard().holders.of(device.gpu, &device.state) {
            let (gi, ci) = (holder.place.gi, holder.place.ci);
            let here = device.mig.is_none_or(|only| gi == Some(only.gi) && ci == Some(only.ci));
            // In MIG mode work is in a compute instance; what else has the GPU open is no work.
            if holder.kind == kind && here && ci.is_some() == on {
                let id = |id: Option<u32>| id.unwrap_or(NO_ID);
                let (pid, memory) = (holder.pid, holder.memory);
                found.push(Process { pid, gap: 0, memory, gi: id(gi), ci: id(ci) });
            }
        }
        Ok(found)
    }

    /// A person's marks.
    fn marked(&self, device: &Device<'_>) -> Result<Vec<Process>, Code> {
        let sampler = self.sampler(device)?;
        let first = FIRST_MARK_PID + device.gpu as u32 * PIDS_PER_GPU;
        let process = |offset, gi, ci, mib: f64| {
            let memory = (mib.max(0.0) as u64).saturating_mul(MIB);
            Process { pid: first + offset, gap: 0, memory, gi, ci }
        };
        let marked = |busy: u32| busy & !HELD != 0;
        let mut found = Vec::new();
        if marked(device.state.busy) && device.mig.is_none() {
            let used = sampler.memory_used(&device.state) - sampler.held(None);
            found.push(process(WHOLE_GPU, NO_ID, NO_ID, used));
        }
        for mig in device.board.mig_devices(&device.state) {
            let (gi, ci) = device.instances(mig)?;
            if marked(ci.busy) && device.mig.is_none_or(|only| only == mig) {
                // What the GPU instance has in use beside its holders, in equal parts.
                let total = device.board.profile_of(gi)?.memory_mib;
                let used = sampler.instance(mig.gi, total, Reading::MemoryUsed).unwrap_or_default();
                let sharers = gi.live_cis().filter(|(_, ci)| marked(ci.busy)).count().max(1);
                let used = (used - sampler.held(Some(mig.gi))) / sharers as f64;
                found.push(process(mig.gi * 8 + mig.ci, mig.gi, mig.ci, used));
            }
        }
        Ok(found)
    }
}

fn old(list: &[Process]) -> Vec<Process1> {
    list.iter().map(|one| Process1 { pid: one.pid, gap: 0, memory: one.memory }).collect()
}
