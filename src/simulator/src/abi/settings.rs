//! Modes that are no MIG mode.

use super::{Out, entry, handle::Handle};
use crate::machine::Code;

/// The greatest NVML_COMPUTEMODE_*.
const LAST_COMPUTE_MODE: u32 = 3;

entry! {
    fn nvmlDeviceGetPersistenceMode(device: Handle, mode: Out<u32>) |call| {
        mode.put(call.parent(device, Code::NOT_SUPPORTED)?.state.persistence)
    }

    fn nvmlDeviceSetPersistenceMode(device: Handle, mode: u32) |call| {
        let device = call.parent(device, Code::NOT_SUPPORTED)?;
        if mode > 1 {
            return Err(Code::INVALID_ARGUMENT);
        }
        call.require_privilege()?;
        call.session.change(device.gpu, |_, state| {
            state.persistence = mode;
            Ok(())
        })
    }

    fn nvmlDeviceGetComputeMode(device: Handle, mode: Out<u32>) |call| {
        let device = call.device(device)?;
        if device.mig.is_some() && device.board.unknowns.mig_handle_compute_mode != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        mode.put(device.state.compute_mode)
    }

    fn nvmlDeviceSetComputeMode(device: Handle, mode: u32) |call| {
        let device = call.parent(device, Code::NOT_SUPPORTED)?;
        if mode > LAST_COMPUTE_MODE {
            return Err(Code::INVALID_ARGUMENT);
        }
        call.require_privilege()?;
        call.session.change(device.gpu, |board, state| {
            // Any mode, DEFAULT included, is refused while MIG is on (open-gpu-kernel-modules).
            if board.mig_on(state) {
                return Err(Code::NOT_SUPPORTED);
            }
            state.compute_mode = mode;
            Ok(())
        })
    }
}
