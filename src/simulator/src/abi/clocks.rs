//! Clocks, and why they are not higher.

use super::{Call, Out, arguments::put_list, entry, handle::Handle};
use crate::{machine::Code, reading::Reading, readings::Setting, sampler::Sampler};

/// NVML_CLOCK_*.
const GRAPHICS: u32 = 0;
const SM: u32 = 1;
const MEMORY: u32 = 2;
const VIDEO: u32 = 3;
/// NVML_CLOCK_ID_CURRENT, _APP_CLOCK_TARGET, _APP_CLOCK_DEFAULT and _CUSTOMER_BOOST_MAX.
const NOW: u32 = 0;
const TARGET: u32 = 1;
const DEFAULT: u32 = 2;
const BOOST: u32 = 3;
/// What a graphics clock of the list differs from its neighbour, and the least of them, in MHz.
const STEP: u32 = 15;
const LEAST: u32 = 210;
/// Every nvmlClocksEventReason* that there is.
const ALL_REASONS: u64 = 0x1ff;

entry! {
    fn nvmlDeviceGetClockInfo(device: Handle, kind: u32, mhz: Out<u32>) |call| {
        mhz.put(call.sensors(device)?.clock(kind)?)
    }

    fn nvmlDeviceGetMaxClockInfo(device: Handle, kind: u32, mhz: Out<u32>) |call| {
        mhz.put(call.measured(device)?.1.greatest(kind)?)
    }

    fn nvmlDeviceGetApplicationsClock(device: Handle, kind: u32, mhz: Out<u32>) |call| {
        mhz.put(call.measured(device)?.1.application(kind)?)
    }

    fn nvmlDeviceGetDefaultApplicationsClock(device: Handle, kind: u32, mhz: Out<u32>) |call| {
        mhz.put(call.measured(device)?.1.greatest(kind)?)
    }

    fn nvmlDeviceGetMaxCustomerBoostClock(device: Handle, kind: u32, mhz: Out<u32>) |call| {
        mhz.put(call.measured(device)?.1.greatest(kind)?)
    }

    fn nvmlDeviceGetClock(device: Handle, kind: u32, id: u32, mhz: Out<u32>) |call| {
        let (_, sampler) = call.measured(device)?;
        mhz.put(match id {
            NOW => sampler.clock(kind)?,
            TARGET => sampler.application(kind)?,
            DEFAULT | BOOST => sampler.greatest(kind)?,
            _ => return Err(Code::INVALID_ARGUMENT),
        })
    }

    fn nvmlDeviceGetSupportedMemoryClocks(device: Handle, count: Out<u32>, list: Out<u32>) |call| {
        put_list(list, count, &[call.measured(device)?.1.greatest(MEMORY)?], false)
    }

    fn nvmlDeviceGetSupportedGraphicsClocks(device: Handle, memory: u32, count: Out<u32>, list: Out<u32>) |call| {
        let (_, sampler) = call.measured(device)?;
        if memory != sampler.greatest(MEMORY)? {
            return Err(Code::NOT_FOUND);
        }
        put_list(list, count, &sampler.graphics_clocks()?, false)
    }

    fn nvmlDeviceGetMinMaxClockOfPState(device: Handle, kind: u32, state: u32, least: Out<u32>, most: Out<u32>) |call| {
        let (_, sampler) = call.measured(device)?;
        let greatest = sampler.greatest(kind)?;
        if state != 0 {
            return Err(Code::INVALID_ARGUMENT);
        }
        least.required()?;
        most.put(greatest)?;
        least.put(if kind == MEMORY { greatest } else { LEAST })
    }

    fn nvmlDeviceSetApplicationsClocks(device: Handle, memory: u32, graphics: u32) |call| {
        let (device, sampler) = call.measured(device)?;
        let (known, clocks) = (sampler.greatest(MEMORY)?, sampler.graphics_clocks()?);
        call.require_privilege()?;
        if memory != known || !clocks.contains(&graphics) {
            return Err(Code::INVALID_ARGUMENT);
        }
        let set = [(Setting::ApplicationMemory, memory.into()), (Setting::ApplicationGraphics, graphics.into())];
        call.put_settings(&device, &set)
    }

    fn nvmlDeviceResetApplicationsClocks(device: Handle) |call| {
        let (device, sampler) = call.measured(device)?;
        sampler.graphics_clocks()?;
        call.put_settings(&device, &[(Setting::ApplicationMemory, 0), (Setting::ApplicationGraphics, 0)])
    }

    fn nvmlDeviceSetGpuLockedClocks(device: Handle, least: u32, most: u32) |call| {
        call.lock(device, SM, least, most, (Setting::LockedGraphicsLeast, Setting::LockedGraphicsMost))
    }

    fn nvmlDeviceSetMemoryLockedClocks(device: Handle, least: u32, most: u32) |call| {
        call.lock(device, MEMORY, least, most, (Setting::LockedMemoryLeast, Setting::LockedMemoryMost))
    }

    fn nvmlDeviceResetGpuLockedClocks(device: Handle) |call| {
        let (device, sampler) = call.measured(device)?;
        sampler.greatest(SM)?;
        call.put_settings(&device, &[(Setting::LockedGraphicsLeast, 0), (Setting::LockedGraphicsMost, 0)])
    }

    fn nvmlDeviceResetMemoryLockedClocks(device: Handle) |call| {
        let (device, sampler) = call.measured(device)?;
        sampler.greatest(MEMORY)?;
        call.put_settings(&device, &[(Setting::LockedMemoryLeast, 0), (Setting::LockedMemoryMost, 0)])
    }

    fn nvmlDeviceGetCurrentClocksEventReasons(device: Handle, reasons: Out<u64>) |call| {
        reasons.put(call.sensor(device, Reading::ClockReasons)? as u64)
    }

    fn nvmlDeviceGetCurrentClocksThrottleReasons(device: Handle, reasons: Out<u64>) |call| {
        reasons.put(call.sensor(device, Reading::ClockReasons)? as u64)
    }

    fn nvmlDeviceGetSupportedClocksEventReasons(device: Handle, reasons: Out<u64>) |call| {
        call.parent(device, Code::NOT_SUPPORTED)?;
        reasons.put(ALL_REASONS)
    }

    fn nvmlDeviceGetSupportedClocksThrottleReasons(device: Handle, reasons: Out<u64>) |call| {
        call.parent(device, Code::NOT_SUPPORTED)?;
        reasons.put(ALL_REASONS)
    }
}

impl Call {
    fn lock(
        &self,
        device: Handle,
        kind: u32,
        least: u32,
        most: u32,
        at: (Setting, Setting),
    ) -> Result<(), Code> {
        let (device, sampler) = self.measured(device)?;
        sampler.greatest(kind)?;
        self.require_privilege()?;
        if least > most || most == 0 {
            return Err(Code::INVALID_ARGUMENT);
        }
        self.put_settings(&device, &[(at.0, least.into()), (at.1, most.into())])
    }
}

impl Sampler<'_> {
    /// The clock now.
    fn clock(&self, kind: u32) -> Result<u32, Code> {
        let reading = match kind {
            GRAPHICS | SM => Reading::SmClock,
            MEMORY => Reading::MemoryClock,
            VIDEO => Reading::VideoClock,
            _ => return Err(Code::INVALID_ARGUMENT),
        };
        Ok(self.need(reading)? as u32)
    }

    /// The greatest clock; what is not published of a board, such as the video engines', it does not say.
    fn greatest(&self, kind: u32) -> Result<u32, Code> {
        let published = match kind {
            GRAPHICS | SM => self.product.sm_clock,
            MEMORY => self.product.memory_clock,
            VIDEO => None,
            _ => return Err(Code::INVALID_ARGUMENT),
        };
        published.ok_or(Code::NOT_SUPPORTED)
    }

    fn application(&self, kind: u32) -> Result<u32, Code> {
        let greatest = self.greatest(kind)?;
        let set = match kind {
            MEMORY => Setting::ApplicationMemory,
            _ => Setting::ApplicationGraphics,
        };
        match self.setting(set) {
            0 => Ok(greatest),
            set => Ok(u32::try_from(set).unwrap_or(greatest)),
        }
    }

    /// Greatest first, as NVML lists them.
    fn graphics_clocks(&self) -> Result<Vec<u32>, Code> {
        let greatest = self.greatest(GRAPHICS)?;
        Ok((0..)
            .map_while(|step| greatest.checked_sub(step * STEP))
            .take_while(|mhz| *mhz >= LEAST)
            .collect())
    }
}
