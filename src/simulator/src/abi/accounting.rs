//! What processes have used, while accounting is on. It is off, and stays so, in MIG mode (nvml.h).

use super::{
    Call, Out,
    arguments::put_list,
    entry,
    handle::{Device, Handle},
    layout::Accounted,
};
use crate::{machine::Code, reading::Reading, readings::Setting, sampler::Sampler};

/// How many processes a board remembers.
const ROOM: u32 = 4000;
/// NVML_VALUE_NOT_AVAILABLE.
const NOT_AVAILABLE: u64 = u64::MAX;

entry! {
    fn nvmlDeviceGetAccountingMode(device: Handle, mode: Out<u32>) |call| {
        let (device, sampler) = call.measured(device)?;
        mode.put(u32::from(accounts(&device, &sampler)))
    }

    fn nvmlDeviceSetAccountingMode(device: Handle, mode: u32) |call| {
        let device = call.parent(device, Code::NOT_SUPPORTED)?;
        if device.board.mig_on(&device.state) {
            return Err(Code::NOT_SUPPORTED);
        }
        call.require_privilege()?;
        if mode > 1 {
            return Err(Code::INVALID_ARGUMENT);
        }
        call.put_settings(&device, &[(Setting::Accounting, mode.into())])
    }

    fn nvmlDeviceGetAccountingBufferSize(device: Handle, processes: Out<u32>) |call| {
        call.parent(device, Code::NOT_SUPPORTED)?;
        processes.put(ROOM)
    }

    fn nvmlDeviceGetAccountingPids(device: Handle, count: Out<u32>, pids: Out<u32>) |call| {
        let (device, _) = call.accounting(device)?;
        put_list(pids, count, &call.pids(&device), true)
    }

    fn nvmlDeviceClearAccountingPids(device: Handle) |call| {
        call.accounting(device)?;
        // Those that still run are kept, and no others are.
        call.require_privilege()
    }

    fn nvmlDeviceGetAccountingStats(device: Handle, pid: u32, stats: Out<Accounted>) |call| {
        stats.put(call.accounted(device, pid)?)
    }

    fn nvmlDeviceGetAccountingStats_v2(device: Handle, pid: u32, stats: Out<Accounted>) |call| {
        stats.put(call.accounted(device, pid)?)
    }
}

impl Call {
    fn accounting(&self, handle: Handle) -> Result<(Device<'_>, Sampler<'_>), Code> {
        let (device, sampler) = self.measured(handle)?;
        if accounts(&device, &sampler) { Ok((device, sampler)) } else { Err(Code::NOT_SUPPORTED) }
    }

    fn accounted(&self, handle: Handle, pid: u32) -> Result<Accounted, Code> {
        let (device, sampler) = self.accounting(handle)?;
        if !self.pids(&device).contains(&pid) {
            return Err(Code::NOT_FOUND);
        }
        Ok(Accounted {
            gpu: sampler.need(Reading::Utilisation)? as u32,
            memory: sampler.need(Reading::MemoryUtilisation)? as u32,
            most_memory: NOT_AVAILABLE,
            // Nothing is known of its beginning; 0 is the time of one that still runs.
            time_ms: 0,
            start_us: 0,
            running: 1,
            gap: [0; 5],
        })
    }
}

fn accounts(device: &Device<'_>, sampler: &Sampler<'_>) -> bool {
    !device.board.mig_on(&device.state) && sampler.setting(Setting::Accounting) != 0
}
