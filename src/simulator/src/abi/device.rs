//! What a device is: names, numbers, places. None of it changes.

use super::{
    Out,
    arguments::{put_text, text_field},
    entry,
    handle::{Device, Handle},
    layout::{Pci, Pci1, Pci2, PciExt, version},
};
use crate::{fault, machine::Code, model::Model};
use std::ffi::c_char;

/// PCI class of a 3D controller.
const PCI_BASE_CLASS_DISPLAY: u32 = 3;
const PCI_SUB_CLASS_3D: u32 = 2;

entry! {
    fn nvmlDeviceGetIndex(device: Handle, index: Out<u32>) |call| {
        let device = call.facts(device)?;
        let Some(mig) = device.mig else { return index.put(device.gpu as u32) };
        let devices = device.board.mig_devices(&device.state);
        let found = devices.iter().position(|one| *one == mig).ok_or(Code::NOT_FOUND)?;
        let moved = fault::effects().gap.is_some_and(|gap| found as u32 >= gap);
        index.put(found as u32 + u32::from(moved))
    }

    fn nvmlDeviceGetMinorNumber(device: Handle, minor: Out<u32>) |call| {
        let device = call.facts(device)?;
        if device.mig.is_some() && device.board.unknowns.mig_handle_minor == 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        minor.put(device.board.model.minor)
    }

    fn nvmlDeviceGetName(device: Handle, name: Out<c_char>, length: u32) |call| {
        let device = call.facts(device)?;
        let Some(mig) = device.mig else {
            return put_text(name, length, device.board.model.name.as_str());
        };
        let (gi, ci) = device.instances(mig)?;
        put_text(name, length, &device.board.mig_name(gi, ci)?)
    }

    fn nvmlDeviceGetUUID(device: Handle, uuid: Out<c_char>, length: u32) |call| {
        let device = call.facts(device)?;
        let Some(mig) = device.mig else {
            return put_text(uuid, length, device.board.model.uuid.as_str());
        };
        let (_, ci) = device.instances(mig)?;
        put_text(uuid, length, &device.board.mig_uuid(mig, ci))
    }

    fn nvmlDeviceGetPciInfo(device: Handle, pci: Out<Pci1>) |call| {
        let whole = pci_info(&call.facts(device)?)?;
        pci.put(Pci1 {
            legacy: whole.legacy, domain: whole.domain, bus: whole.bus, device: whole.device, id: whole.id,
        })
    }

    fn nvmlDeviceGetPciInfo_v2(device: Handle, pci: Out<Pci2>) |call| {
        let whole = pci_info(&call.facts(device)?)?;
        pci.put(Pci2 {
            legacy: whole.legacy, domain: whole.domain, bus: whole.bus, device: whole.device, id: whole.id,
            subsystem: whole.subsystem,
        })
    }

    fn nvmlDeviceGetPciInfo_v3(device: Handle, pci: Out<Pci>) |call| {
        pci.put(pci_info(&call.facts(device)?)?)
    }

    fn nvmlDeviceGetPciInfoExt(device: Handle, pci: Out<PciExt>) |call| {
        let device = call.facts(device)?;
        if pci.cast::<u32>().get()? != version::<PciExt>(1) {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        let whole = pci_info(&device)?;
        pci.put(PciExt {
            version: version::<PciExt>(1),
            domain: whole.domain, bus: whole.bus, device: whole.device,
            id: whole.id, subsystem: whole.subsystem,
            base_class: PCI_BASE_CLASS_DISPLAY, sub_class: PCI_SUB_CLASS_3D,
            bus_id: whole.bus_id,
        })
    }

    fn nvmlDeviceGetBrand(device: Handle, brand: Out<u32>) |call| {
        brand.put(call.device(device)?.board.model.brand)
    }

    fn nvmlDeviceGetArchitecture(device: Handle, architecture: Out<u32>) |call| {
        architecture.put(call.device(device)?.board.model.architecture)
    }

    fn nvmlDeviceGetCudaComputeCapability(device: Handle, major: Out<i32>, minor: Out<i32>) |call| {
        let model = call.device(device)?.board.model;
        major.required()?;
        minor.required()?;
        major.put(model.compute_major as i32)?;
        minor.put(model.compute_minor as i32)
    }

    fn nvmlDeviceGetSerial(device: Handle, serial: Out<c_char>, length: u32) |call| {
        let model = call.device(device)?.board.model;
        if model.serial.as_str().is_empty() {
            return Err(Code::NOT_SUPPORTED);
        }
        put_text(serial, length, model.serial.as_str())
    }

    fn nvmlDeviceGetBoardId(device: Handle, id: Out<u32>) |call| {
        let model = call.device(device)?.board.model;
        id.put((model.domain << 16) | (model.bus << 8) | model.device)
    }

    fn nvmlDeviceGetMultiGpuBoard(device: Handle, several: Out<u32>) |call| {
        call.device(device)?;
        several.put(0)
    }

    fn nvmlDeviceGetVirtualizationMode(device: Handle, mode: Out<u32>) |call| {
        call.device(device)?;
        // NVML_GPU_VIRTUALIZATION_MODE_NONE: simulated nodes are bare metal.
        mode.put(0)
    }

    fn nvmlDeviceGetCpuAffinity(device: Handle, words: u32, set: Out<u64>) |call| {
        call.device(device)?;
        put_cpus(words, set)
    }

    fn nvmlDeviceGetCpuAffinityWithinScope(device: Handle, words: u32, set: Out<u64>, scope: u32) |call| {
        call.device(device)?;
        require_scope(scope)?;
        put_cpus(words, set)
    }

    fn nvmlDeviceGetMemoryAffinity(device: Handle, words: u32, set: Out<u64>, scope: u32) |call| {
        let node = call.device(device)?.board.model.numa_node;
        require_scope(scope)?;
        put_set(words, set, &[node])
    }
}

impl Model {
    /// The bus id with a domain of 8 digits, or of 4 as older programs know it.
    fn bus_id(&self, legacy: bool) -> String {
        if legacy {
            format!("{:04X}:{:02X}:{:02X}.0", self.domain & 0xffff, self.bus, self.device)
        } else {
            format!("{:08X}:{:02X}:{:02X}.0", self.domain, self.bus, self.device)
        }
    }
}

fn pci_info(device: &Device<'_>) -> Result<Pci, Code> {
    if device.mig.is_some() && device.board.unknowns.mig_handle_pci != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    let model = device.board.model;
    Ok(Pci {
        legacy: text_field(&model.bus_id(true)),
        domain: model.domain,
        bus: model.bus,
        device: model.device,
        id: model.pci_device_id,
        subsystem: model.pci_subsystem_id,
        bus_id: text_field(&model.bus_id(false)),
    })
}

/// NVML_AFFINITY_SCOPE_NODE and NVML_AFFINITY_SCOPE_SOCKET.
fn require_scope(scope: u32) -> Result<(), Code> {
    if scope <= 1 { Ok(()) } else { Err(Code::INVALID_ARGUMENT) }
}

/// All CPUs of this machine: a set that is empty or names others would stop slurmd.
fn put_cpus(words: u32, set: Out<u64>) -> Result<(), Code> {
    let listed = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let mut cpus = parse_cpus(listed.trim());
    if cpus.is_empty() {
        cpus.push(0);
    }
    put_set(words, set, &cpus)
}

/// Reads `0-3,6`.
fn parse_cpus(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.parse::<u32>().ok()?..=to.parse::<u32>().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// Writes a set of bits; those that do not fit are left out.
fn put_set(words: u32, set: Out<u64>, bits: &[u32]) -> Result<(), Code> {
    set.required()?;
    if words == 0 {
        return Err(Code::INVALID_ARGUMENT);
    }
    for index in 0..words {
        let word = bits.iter().filter(|bit| **bit / 64 == index).fold(0, |word, bit| word | 1 << (bit % 64));
        set.put_at(index as usize, word)?;
    }
    Ok(())
}
