//! Memory of a GPU or a MIG device.

use super::{
    Call, Out, entry,
    handle::{Device, Handle},
    layout::{Bar1, Memory, Memory2, version},
};
use crate::machine::Code;

const MIB: u64 = 1 << 20;

entry! {
    fn nvmlDeviceGetMemoryInfo(device: Handle, memory: Out<Memory>) |call| {
        let total = total(call, &call.device(device)?)?;
        memory.put(Memory { total, free: total, used: 0 })
    }

    fn nvmlDeviceGetMemoryInfo_v2(device: Handle, memory: Out<Memory2>) |call| {
        let device = call.device(device)?;
        if memory.cast::<u32>().get()? != version::<Memory2>(2) {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        let total = total(call, &device)?;
        memory.put(Memory2 { version: version::<Memory2>(2), gap: 0, total, reserved: 0, free: total, used: 0 })
    }

    fn nvmlDeviceGetBAR1MemoryInfo(device: Handle, memory: Out<Bar1>) |call| {
        call.device(device)?;
        // The table of GPUs does not know the sizes of BAR1.
        memory.put(Bar1 { total: 0, free: 0, used: 0 })
    }
}

/// Bytes of the device: a MIG device has its GPU instance's. The whole of a GPU in MIG mode is for those who
/// may see all its instances (seen as an error of unprivileged programs).
fn total(call: &Call, device: &Device<'_>) -> Result<u64, Code> {
    let mib = match device.mig {
        Some(mig) => device.board.profile_of(device.instances(mig)?.0)?.memory_mib,
        None => {
            if device.board.mig_on(&device.state) {
                call.require_privilege()?;
            }
            device.board.model.memory_mib
        }
    };
    Ok(mib.saturating_mul(MIB))
}
