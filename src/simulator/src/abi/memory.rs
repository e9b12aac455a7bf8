//! Memory of a GPU or a MIG device.

use super::{
    Call, Out, entry,
    handle::{Device, Handle},
    layout::{Bar1, Memory, Memory2, version},
};
use crate::{machine::Code, reading::Reading};

pub(super) const MIB: u64 = 1 << 20;

entry! {
    fn nvmlDeviceGetMemoryInfo(device: Handle, memory: Out<Memory>) |call| {
        let found = Found::of(call, &call.device(device)?)?;
        // Here what the driver keeps counts as used, so that used and free make up the total (nvml.h).
        let used = found.used.saturating_add(found.reserved);
        memory.put(Memory { total: found.total, free: found.total.saturating_sub(used), used })
    }

    fn nvmlDeviceGetMemoryInfo_v2(device: Handle, memory: Out<Memory2>) |call| {
        let device = call.device(device)?;
        if memory.cast::<u32>().get()? != version::<Memory2>(2) {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        let Found { total, used, reserved } = Found::of(call, &device)?;
        let free = total.saturating_sub(used.saturating_add(reserved));
        memory.put(Memory2 { version: version::<Memory2>(2), gap: 0, total, reserved, free, used })
    }

    fn nvmlDeviceGetBAR1MemoryInfo(device: Handle, memory: Out<Bar1>) |call| {
        call.device(device)?;
        // The table of GPUs does not know the sizes of BAR1.
        memory.put(Bar1 { total: 0, free: 0, used: 0 })
    }
}

/// A device's memory in bytes.
struct Found {
    total: u64,
    used: u64,
    reserved: u64,
}

impl Found {
    /// A MIG device has its GPU instance's. The whole of a GPU in MIG mode is for those who may see all its
    /// instances (seen as an error of unprivileged programs).
    fn of(call: &Call, device: &Device<'_>) -> Result<Found, Code> {
        let sampler = call.sampler(device)?;
        let (total, used, reserved) = match device.mig {
            Some(mig) => {
                let total = device.board.profile_of(device.instances(mig)?.0)?.memory_mib;
                let used = sampler.instance(mig.gi, total, Reading::MemoryUsed).unwrap_or_default();
                (total, used, 0.0)
            }
            None => {
                if device.board.mig_on(&device.state) {
                    call.require_privilege()?;
                }
                let reserved = sampler.gpu(Reading::MemoryReserved).unwrap_or_default();
                (device.board.model.memory_mib, sampler.memory_used(&device.state), reserved)
            }
        };
        let bytes = |mib: u64| mib.saturating_mul(MIB);
        Ok(Found { total: bytes(total), used: bytes(used as u64), reserved: bytes(reserved as u64) })
    }
}
