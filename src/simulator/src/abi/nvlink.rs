//! NVLink: the links of a board, what leads where, traffic errors.

use super::{
    Call, Out,
    arguments::text_field,
    entry,
    handle::Handle,
    layout::{Pci, Pci1},
};
use crate::{machine::Code, model::Model, reading::Reading, sampler::Sampler};

/// NVML_NVLINK_CAP_VALID is the last of the capabilities, NVML_NVLINK_CAP_SLI_BRIDGE the one that none has.
const LAST_CAPABILITY: u32 = 5;
const SLI_BRIDGE: u32 = 4;
/// NVML_NVLINK_DEVICE_TYPE_SWITCH.
const TO_SWITCH: u32 = 2;
/// Where the NVSwitches of a simulated node sit: on buses from this one on.
const FIRST_SWITCH_BUS: u32 = 0xf0;
/// PCI ids of NVSwitches: of A100 and of H100 nodes.
const AMPERE_SWITCH: u32 = 0x1af1_10de;
const HOPPER_SWITCH: u32 = 0x22a3_10de;
/// NVML_DEVICE_ARCH_HOPPER and _BLACKWELL.
const HOPPER: u32 = 9;
const BLACKWELL: u32 = 10;

entry! {
    fn nvmlDeviceGetNvLinkState(device: Handle, link: u32, active: Out<u32>) |call| {
        let sampler = call.link(device, link)?;
        active.put(u32::from(link < sampler.model.links))
    }

    fn nvmlDeviceGetNvLinkVersion(device: Handle, link: u32, version: Out<u32>) |call| {
        version.put(call.link(device, link)?.model.nvlink_version())
    }

    fn nvmlDeviceGetNvLinkCapability(device: Handle, link: u32, capability: u32, has: Out<u32>) |call| {
        call.link(device, link)?;
        if capability > LAST_CAPABILITY {
            return Err(Code::INVALID_ARGUMENT);
        }
        has.put(u32::from(capability != SLI_BRIDGE))
    }

    fn nvmlDeviceGetNvLinkRemoteDeviceType(device: Handle, link: u32, kind: Out<u32>) |call| {
        call.active_link(device, link)?;
        kind.put(TO_SWITCH)
    }

    fn nvmlDeviceGetNvLinkRemotePciInfo(device: Handle, link: u32, pci: Out<Pci1>) |call| {
        let whole = switch(call.active_link(device, link)?.model, link)?;
        pci.put(Pci1 {
            legacy: whole.legacy, domain: whole.domain, bus: whole.bus, device: whole.device, id: whole.id,
        })
    }

    fn nvmlDeviceGetNvLinkRemotePciInfo_v2(device: Handle, link: u32, pci: Out<Pci>) |call| {
        pci.put(switch(call.active_link(device, link)?.model, link)?)
    }

    fn nvmlDeviceGetNvLinkErrorCounter(device: Handle, link: u32, counter: u32, count: Out<u64>) |call| {
        let sampler = call.link(device, link)?;
        count.put(sampler.link_errors(link, counter)?)
    }

    fn nvmlDeviceResetNvLinkErrorCounters(device: Handle, link: u32) |call| {
        call.link(device, link)?;
        let device = call.parent(device, Code::NOT_SUPPORTED)?;
        call.change_readings(&device, |values| {
            for reading in ERRORS.iter().filter(|_| link == 0) {
                values.put_value(0, *reading, None);
            }
        })
    }
}

/// By NVML_NVLINK_ERROR_DL_*.
const ERRORS: [Reading; 4] =
    [Reading::NvlinkReplays, Reading::NvlinkRecoveries, Reading::NvlinkCrcFlit, Reading::NvlinkCrcData];

impl Call {
    /// The sensors of a board that has this link.
    fn link(&self, device: Handle, link: u32) -> Result<Sampler<'_>, Code> {
        let (_, sampler) = self.measured(device)?;
        if sampler.product.links == 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        if link < sampler.product.links { Ok(sampler) } else { Err(Code::INVALID_ARGUMENT) }
    }

    fn active_link(&self, device: Handle, link: u32) -> Result<Sampler<'_>, Code> {
        let sampler = self.link(device, link)?;
        if link < sampler.model.links { Ok(sampler) } else { Err(Code::NOT_SUPPORTED) }
    }
}

impl Sampler<'_> {
    /// Errors of one link. NVLink 5 counts otherwise (seen: these are not supported there).
    pub(super) fn link_errors(&self, link: u32, counter: u32) -> Result<u64, Code> {
        if self.model.architecture >= BLACKWELL {
            return Err(Code::NOT_SUPPORTED);
        }
        let reading = ERRORS.get(counter as usize).ok_or(match counter {
            // NVML_NVLINK_ERROR_DL_ECC_DATA, which none of the boards counts.
            4 => Code::NOT_SUPPORTED,
            _ => Code::INVALID_ARGUMENT,
        })?;
        let counted = self.need(*reading)?;
        Ok(if link == 0 { counted as u64 } else { 0 })
    }
}

/// The switch at the far end of a link.
fn switch(model: &Model, link: u32) -> Result<Pci, Code> {
    let (switches, id) = match model.architecture {
        BLACKWELL.. => return Err(Code::NOT_SUPPORTED),
        HOPPER => (4, HOPPER_SWITCH),
        _ => (6, AMPERE_SWITCH),
    };
    let bus = FIRST_SWITCH_BUS + link % switches;
    Ok(Pci {
        legacy: text_field(&format!("0000:{bus:02X}:00.0")),
        domain: 0,
        bus,
        device: 0,
        id,
        subsystem: 0,
        bus_id: text_field(&format!("00000000:{bus:02X}:00.0")),
    })
}
