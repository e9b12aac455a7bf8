//! MIG mode and MIG devices.

use super::{Out, arguments::require_present, entry, handle::Handle, layout::Attributes};
use crate::{fault, machine::Code};

entry! {
    fn nvmlDeviceGetMigMode(device: Handle, current: Out<u32>, pending: Out<u32>) |call| {
        let device = call.device(device)?;
        if device.mig.is_some() && device.board.unknowns.mig_handle_mode == 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        current.required()?;
        pending.required()?;
        let (now, then) = device.board.mode(&device.state)?;
        current.put(now)?;
        pending.put(then)
    }

    fn nvmlDeviceSetMigMode(device: Handle, mode: u32, activation: Out<u32>) |call| {
        let device = call.parent(device, Code::INVALID_ARGUMENT)?;
        activation.required()?;
        if mode > 1 {
            return Err(Code::INVALID_ARGUMENT);
        }
        device.board.mode(&device.state)?;
        call.require_privilege()?;
        // Asked before the lock is taken: a system call is nothing to do under it.
        let others = call.session.others(device.gpu);
        let status = call.session.change(device.gpu, |board, state| {
            require_present(state)?;
            if let Some(status) = fault::effects().activation.filter(|_| state.mig_current != mode) {
                state.mig_pending = mode;
                return Ok(status);
            }
            board.set_mode(state, mode, others)
        })?;
        activation.put(status.0)
    }

    fn nvmlDeviceIsMigDeviceHandle(device: Handle, is_mig: Out<u32>) |call| {
        is_mig.put(u32::from(call.facts(device)?.mig.is_some()))
    }

    fn nvmlDeviceGetMaxMigDeviceCount(device: Handle, count: Out<u32>) |call| {
        let device = call.parent(device, Code::NOT_SUPPORTED)?;
        count.put(device.board.max_mig_devices(&device.state))
    }

    fn nvmlDeviceGetMigDeviceHandleByIndex(device: Handle, index: u32, mig_device: Out<Handle>) |call| {
        let device = call.parent(device, Code::INVALID_ARGUMENT)?;
        mig_device.required()?;
        let (board, state) = (&device.board, &device.state);
        if board.mig_on(state)
            && index >= board.max_mig_devices(state)
            && board.unknowns.mig_index_past_maximum == 0
        {
            return Err(Code::INVALID_ARGUMENT);
        }
        let index = match fault::effects().gap {
            Some(gap) if index == gap => return Err(Code::NOT_FOUND),
            Some(gap) if index > gap => index - 1,
            _ => index,
        };
        let found = board.mig_devices(state).get(index as usize).copied().ok_or(Code::NOT_FOUND)?;
        let (_, ci) = device.instances(found)?;
        mig_device.put(Handle::mig(device.gpu, found, ci))
    }

    fn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig_device: Handle, device: Out<Handle>) |call| {
        let found = call.facts(mig_device)?;
        found.require_mig(Code::INVALID_ARGUMENT)?;
        device.put(Handle::gpu(found.gpu))
    }

    fn nvmlDeviceGetGpuInstanceId(device: Handle, id: Out<u32>) |call| {
        id.put(call.facts(device)?.require_mig(Code::INVALID_ARGUMENT)?.gi)
    }

    fn nvmlDeviceGetComputeInstanceId(device: Handle, id: Out<u32>) |call| {
        id.put(call.facts(device)?.require_mig(Code::INVALID_ARGUMENT)?.ci)
    }

    fn nvmlDeviceGetAttributes(device: Handle, attributes: Out<Attributes>) |call| {
        attributes.put(attributes_of(call, device)?)
    }

    fn nvmlDeviceGetAttributes_v2(device: Handle, attributes: Out<Attributes>) |call| {
        attributes.put(attributes_of(call, device)?)
    }
}

fn attributes_of(call: &super::Call, device: Handle) -> Result<Attributes, Code> {
    let device = call.device(device)?;
    let (gi, ci) = device.instances(device.require_mig(Code::NOT_SUPPORTED)?)?;
    let found = device.board.attributes(gi, ci)?;
    let [copy, decoder, encoder, jpeg, ofa] = found.engines;
    Ok(Attributes {
        multiprocessors: found.multiprocessors,
        copy,
        decoder,
        encoder,
        jpeg,
        ofa,
        gi_slices: found.gi_slices,
        ci_slices: found.ci_slices,
        memory_mb: found.memory_mib,
    })
}
