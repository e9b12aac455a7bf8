//! PCIe: link, traffic, errors.

use super::{Out, entry, handle::Handle};
use crate::{machine::Code, reading::Reading, sampler::Sampler};

/// Every board of the table has 16 lanes.
const LANES: u32 = 16;
/// NVML_PCIE_UTIL_TX_BYTES and _RX_BYTES.
const TX: u32 = 0;
const RX: u32 = 1;
/// NVML_BUS_TYPE_PCIE.
const BUS_PCIE: u32 = 2;

entry! {
    fn nvmlDeviceGetCurrPcieLinkGeneration(device: Handle, generation: Out<u32>) |call| {
        generation.put(call.measured(device)?.1.pcie()?)
    }

    fn nvmlDeviceGetMaxPcieLinkGeneration(device: Handle, generation: Out<u32>) |call| {
        generation.put(call.measured(device)?.1.pcie()?)
    }

    fn nvmlDeviceGetGpuMaxPcieLinkGeneration(device: Handle, generation: Out<u32>) |call| {
        generation.put(call.measured(device)?.1.pcie()?)
    }

    fn nvmlDeviceGetCurrPcieLinkWidth(device: Handle, lanes: Out<u32>) |call| {
        call.measured(device)?.1.pcie()?;
        lanes.put(LANES)
    }

    fn nvmlDeviceGetMaxPcieLinkWidth(device: Handle, lanes: Out<u32>) |call| {
        call.measured(device)?.1.pcie()?;
        lanes.put(LANES)
    }

    fn nvmlDeviceGetPcieSpeed(device: Handle, mbps: Out<u32>) |call| {
        mbps.put(match call.measured(device)?.1.pcie()? {
            1 => 2_500,
            2 => 5_000,
            generation => 8_000 << (generation - 3).min(4),
        })
    }

    fn nvmlDeviceGetPcieLinkMaxSpeed(device: Handle, speed: Out<u32>) |call| {
        // NVML_PCIE_LINK_MAX_SPEED_* counts as the generations do.
        speed.put(call.measured(device)?.1.pcie()?)
    }

    fn nvmlDeviceGetPcieThroughput(device: Handle, counter: u32, kb_per_second: Out<u32>) |call| {
        let (_, sampler) = call.measured(device)?;
        kb_per_second.put(match counter {
            TX => sampler.need(Reading::PcieTx)?,
            RX => sampler.need(Reading::PcieRx)?,
            _ => return Err(Code::INVALID_ARGUMENT),
        } as u32)
    }

    fn nvmlDeviceGetPcieReplayCounter(device: Handle, count: Out<u32>) |call| {
        count.put(call.sensor(device, Reading::PcieReplays)? as u32)
    }

    fn nvmlDeviceGetBusType(device: Handle, kind: Out<u32>) |call| {
        call.parent(device, Code::NOT_SUPPORTED)?;
        kind.put(BUS_PCIE)
    }
}

impl Sampler<'_> {
    fn pcie(&self) -> Result<u32, Code> {
        self.product.pcie.ok_or(Code::NOT_SUPPORTED)
    }
}
