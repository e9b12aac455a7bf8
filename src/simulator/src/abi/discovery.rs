//! How many GPUs there are, and from whatever names one to its handle.

use super::{
    Call, Out,
    arguments::{In, Words, require_present},
    entry,
    handle::Handle,
    layout::{Uuid, version},
};
use crate::{fault, machine::Code};

/// NVML_UUID_TYPE_ASCII and NVML_UUID_TYPE_BINARY.
const UUID_TEXT: u32 = 1;
const UUID_BINARY: u32 = 2;

entry! {
    fn nvmlDeviceGetCount(count: Out<u32>) |call| { count.put(call.session.gpus() as u32) }

    fn nvmlDeviceGetCount_v2(count: Out<u32>) |call| { count.put(call.session.gpus() as u32) }

    fn nvmlDeviceGetHandleByIndex(index: u32, device: Out<Handle>) |call| {
        call.open(index as usize, device)
    }

    fn nvmlDeviceGetHandleByIndex_v2(index: u32, device: Out<Handle>) |call| {
        call.open(index as usize, device)
    }

    fn nvmlDeviceGetHandleByPciBusId(bus_id: Words, device: Out<Handle>) |call| {
        call.open_by_bus_id(&bus_id.get()?, device)
    }

    fn nvmlDeviceGetHandleByPciBusId_v2(bus_id: Words, device: Out<Handle>) |call| {
        call.open_by_bus_id(&bus_id.get()?, device)
    }

    fn nvmlDeviceGetHandleBySerial(serial: Words, device: Out<Handle>) |call| {
        let serial = serial.get()?;
        device.required()?;
        let found = call.find(|gpu| {
            let model = call.session.board(gpu).ok()?.model;
            (!serial.is_empty() && model.serial.as_str() == serial).then_some(gpu)
        });
        call.open(found?, device)
    }

    fn nvmlDeviceGetHandleByUUID(uuid: Words, device: Out<Handle>) |call| {
        call.open_by_uuid(&uuid.get()?, device)
    }

    fn nvmlDeviceGetHandleByUUIDV(uuid: In<Uuid>, device: Out<Handle>) |call| {
        let uuid = uuid.get()?;
        if uuid.version != version::<Uuid>(1) {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        match uuid.kind {
            UUID_TEXT => {
                let text = uuid.value.split(|byte| *byte == 0).next().unwrap_or_default();
                call.open_by_uuid(&String::from_utf8_lossy(text), device)
            }
            UUID_BINARY => {
                let hex: String = uuid.value.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
                let part = |from, to| hex.get(from..to).unwrap_or_default();
                let text = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-");
                call.open_by_uuid(&format!("GPU-{text}"), device)
                    .or_else(|_| call.open_by_uuid(&format!("MIG-{text}"), device))
            }
            _ => Err(Code::INVALID_ARGUMENT),
        }
    }
}

impl Call {
    fn find<R>(&self, find: impl Fn(usize) -> Option<R>) -> Result<R, Code> {
        (0..self.session.gpus()).find_map(find).ok_or(Code::NOT_FOUND)
    }

    /// Gives a GPU's handle out, which makes this process a client of it.
    fn open(&self, gpu: usize, device: Out<Handle>) -> Result<(), Code> {
        device.required()?;
        self.session.board(gpu)?;
        self.meet_faults_of(gpu)?;
        let (_, state) = self.session.look(gpu)?;
        require_present(&state)?;
        self.session.enter(gpu);
        device.put(Handle::gpu(gpu))
    }

    /// Faults that are for the GPU which the call has just found.
    fn meet_faults_of(&self, gpu: usize) -> Result<(), Code> {
        fault::found(gpu, &|gpu| {
            // The board exists; a lock that cannot be had leaves the GPU where it is.
            let _ = self.session.change(gpu, |_, state| {
                state.lost = 1;
                Ok(())
            });
        })
    }

    fn open_by_bus_id(&self, text: &str, device: Out<Handle>) -> Result<(), Code> {
        device.required()?;
        let wanted = parse_bus_id(text).ok_or(Code::INVALID_ARGUMENT)?;
        let found = self.find(|gpu| {
            let model = self.session.board(gpu).ok()?.model;
            ((model.domain, model.bus, model.device) == wanted).then_some(gpu)
        });
        self.open(found?, device)
    }

    fn open_by_uuid(&self, uuid: &str, device: Out<Handle>) -> Result<(), Code> {
        device.required()?;
        if uuid.starts_with("MIG-") {
            let (gpu, handle) = self.find(|gpu| {
                let (board, state) = self.session.look(gpu).ok()?;
                let found = board.mig_by_uuid(&state, uuid)?;
                let (_, ci) = board.mig_instances(&state, found).ok()?;
                Some((gpu, Handle::mig(gpu, found, ci)))
            })?;
            self.meet_faults_of(gpu)?;
            self.session.enter(gpu);
            return device.put(handle);
        }
        let found =
            self.find(|gpu| (self.session.board(gpu).ok()?.model.uuid.as_str() == uuid).then_some(gpu));
        self.open(found?, device)
    }
}

/// `0000:07:00.0`, `00000000:07:00.0` or `07:00.0`, in any case.
fn parse_bus_id(text: &str) -> Option<(u32, u32, u32)> {
    let (place, function) = text.split_once('.').unwrap_or((text, "0"));
    if u32::from_str_radix(function, 16).ok()? != 0 {
        return None;
    }
    let mut parts = place.rsplit(':').map(|part| u32::from_str_radix(part, 16).ok());
    let (device, bus) = (parts.next()??, parts.next()??);
    let domain = match parts.next() {
        None => 0,
        Some(domain) => domain?,
    };
    if parts.next().is_some() { None } else { Some((domain, bus, device)) }
}
