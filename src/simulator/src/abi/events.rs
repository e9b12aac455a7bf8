//! Event sets: what happened on a GPU, told to those who wait.

use super::{
    Call, Out, entry,
    handle::Handle,
    layout::{EventData, EventData1},
};
use crate::{
    events::Event,
    machine::{Board, Code},
    watch::{EventSet, KINDS, MIG_CHANGE},
};
use std::{sync::Arc, time::Duration};

entry! {
    fn nvmlEventSetCreate(set: Out<Handle>) |call| {
        set.required()?;
        let number = call.session.sets.add(EventSet::new(call.session.shard()));
        set.put(Handle::set(number))
    }

    fn nvmlEventSetFree(set: Handle) |call| {
        if call.session.sets.free(set.set_number()?) { Ok(()) } else { Err(Code::INVALID_ARGUMENT) }
    }

    fn nvmlDeviceGetSupportedEventTypes(device: Handle, kinds: Out<u64>) |call| {
        // Events of MIG devices come with their GPU's (nvml.h; asked of the GPU by every program seen).
        kinds.put(supported(&call.parent(device, Code::NOT_SUPPORTED)?.board))
    }

    fn nvmlDeviceRegisterEvents(device: Handle, kinds: u64, set: Handle) |call| {
        let set = call.set(set)?;
        let device = call.parent(device, Code::NOT_SUPPORTED)?;
        if kinds & !supported(&device.board) != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        set.register(call.session.shard(), device.gpu, kinds)
    }

    fn nvmlEventSetWait(set: Handle, data: Out<EventData1>, timeout: u32) |call| {
        data.required()?;
        let event = call.next(set, timeout)?;
        let device = Handle::gpu(event.gpu as usize);
        data.put(EventData1 { device, kind: event.kind, data: event.data })
    }

    fn nvmlEventSetWait_v2(set: Handle, data: Out<EventData>, timeout: u32) |call| {
        data.required()?;
        let event = call.next(set, timeout)?;
        let device = Handle::gpu(event.gpu as usize);
        data.put(EventData { device, kind: event.kind, data: event.data, gi: event.gi, ci: event.ci })
    }
}

impl Call {
    fn set(&self, set: Handle) -> Result<Arc<EventSet>, Code> {
        self.session.sets.get(set.set_number()?).ok_or(Code::INVALID_ARGUMENT)
    }

    fn next(&self, set: Handle, timeout_ms: u32) -> Result<Event, Code> {
        let timeout = Duration::from_millis(timeout_ms.into());
        self.set(set)?.wait(self.session.shard(), timeout, self.session.privileged())
    }
}

/// Which events the GPU can tell.
fn supported(board: &Board<'_>) -> u64 {
    if board.has_mig() { KINDS } else { KINDS & !MIG_CHANGE }
}
