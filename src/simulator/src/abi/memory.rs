//! Memory of a GPU or a MIG device.

use super::{
    Call, Out, entry,
    handle::{Device, Handle},
    layout::{Bar1, Memory, Memory2, version},
};
use crate::{machine::Code, model::Model, reading::Reading};

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
        let device = call.device(device)?;
        let whole = device.board.model.bar1_mib();
        let mib = match device.mig {
            None => whole,
            Some(mig) => {
                // A GPU instance has its part of it, less 1 MiB (seen: 32767 MiB for 3g on an A100 of 40 GB).
                let gi = device.instances(mig)?.0;
                let slices = device.board.model.memory_slices().max(1);
                (whole * u64::from(gi.size) / u64::from(slices)).saturating_sub(1)
            }
        };
        let total = mib * MIB;
        memory.put(Bar1 { total, free: total, used: 0 })
    }
}

impl Model {
    /// The window through which the CPU sees the memory: as large as that, rounded up to a power of two (seen on
    /// boards from A30 to H200), but for Turing, where it is 256 MiB.
    fn bar1_mib(&self) -> u64 {
        const TURING: u32 = 6;
        if self.architecture <= TURING { 256 } else { self.memory_mib.next_power_of_two() }
    }

    /// Memory slices of the whole board.
    fn memory_slices(&self) -> u32 {
        let places = self.profiles().iter().flat_map(|profile| profile.places());
        places.map(|place| place.start + place.size).max().unwrap_or(0)
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
