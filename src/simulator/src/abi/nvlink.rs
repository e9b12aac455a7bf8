//! NVLink: the links of a board, what leads where, traffic errors.

use super::{
    Call, Out,
    device::{pci_at, pci_of},
    entry,
    handle::Handle,
    layout::{Pci, Pci1},
};
use crate::{
    machine::Code,
    reading::Reading,
    sampler::Sampler,
    topology::{End, Switch, switches},
};

/// NVML_NVLINK_CAP_VALID is the last of the capabilities, NVML_NVLINK_CAP_SLI_BRIDGE the one that none has.
const LAST_CAPABILITY: u32 = 5;
const SLI_BRIDGE: u32 = 4;
/// NVML_NVLINK_DEVICE_TYPE_GPU and _SWITCH.
const TO_GPU: u32 = 0;
const TO_SWITCH: u32 = 2;
/// NVML_DEVICE_ARCH_BLACKWELL.
const BLACKWELL: u32 = 10;

entry! {
    fn nvmlDeviceGetNvLinkState(device: Handle, link: u32, active: Out<u32>) |call| {
        call.link(device, link)?;
        let device = call.parent(device, Code::NOT_SUPPORTED)?;
        active.put(u32::from(device.board.link_active(&device.state, link)))
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
        kind.put(match call.end_of_link(device, link)? {
            End::Gpu(_) => TO_GPU,
            End::Switch(_) => TO_SWITCH,
        })
    }

    fn nvmlDeviceGetNvLinkRemotePciInfo(device: Handle, link: u32, pci: Out<Pci1>) |call| {
        let whole = call.far_device(device, link)?;
        pci.put(Pci1 {
            legacy: whole.legacy, domain: whole.domain, bus: whole.bus, device: whole.device, id: whole.id,
        })
    }

    fn nvmlDeviceGetNvLinkRemotePciInfo_v2(device: Handle, link: u32, pci: Out<Pci>) |call| {
        pci.put(call.far_device(device, link)?)
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

    /// What is wired to a link, be it up or not.
    fn end_of_link(&self, device: Handle, link: u32) -> Result<End, Code> {
        self.link(device, link)?.model.link_end(link).ok_or(Code::NOT_SUPPORTED)
    }

    fn far_device(&self, device: Handle, link: u32) -> Result<Pci, Code> {
        match self.end_of_link(device, link)? {
            End::Gpu(gpu) => Ok(pci_of(self.session.board(gpu)?.model)),
            End::Switch(number) => {
                let all = switches(self.link(device, link)?.model.architecture);
                let Switch { address, id } = all.get(number as usize).ok_or(Code::NOT_SUPPORTED)?;
                Ok(pci_at(*address, *id, 0))
            }
        }
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
