//! Errors of the memory: ECC's mode and counters, rows that were replaced, pages that were retired.

use super::{
    Call, Out,
    arguments::put_list,
    entry,
    handle::{Device, Handle},
    layout::{RowHistogram, Rows, SramErrors, version},
};
use crate::{machine::Code, model::Model, reading::Reading, readings::Setting, sampler::Sampler};

/// NVML_MEMORY_ERROR_TYPE_CORRECTED, _UNCORRECTED; NVML_VOLATILE_ECC, NVML_AGGREGATE_ECC.
const CORRECTED: u32 = 0;
const UNCORRECTED: u32 = 1;
const VOLATILE: u32 = 0;
const AGGREGATE: u32 = 1;
/// NVML_MEMORY_LOCATION_DEVICE_MEMORY, NVML_MEMORY_LOCATION_SRAM, which is the last.
const DRAM: u32 = 2;
const SRAM: u32 = 7;
/// NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS, _DOUBLE_BIT_ECC_ERROR.
const SINGLE_BIT: u32 = 0;
const DOUBLE_BIT: u32 = 1;
/// NVML_FEATURE_ENABLED.
const ENABLED: u32 = 1;
const PAGE: u64 = 0x1_0000;

entry! {
    fn nvmlDeviceGetEccMode(device: Handle, current: Out<u32>, pending: Out<u32>) |call| {
        let (_, sampler) = call.measured(device)?;
        if !sampler.model.has_ecc() {
            return Err(Code::NOT_SUPPORTED);
        }
        current.required()?;
        pending.required()?;
        let on = |off| u32::from(sampler.setting(off) == 0);
        current.put(on(Setting::EccOff))?;
        pending.put(on(Setting::EccOffPending))
    }

    fn nvmlDeviceGetDefaultEccMode(device: Handle, mode: Out<u32>) |call| {
        if !call.measured(device)?.1.model.has_ecc() {
            return Err(Code::NOT_SUPPORTED);
        }
        mode.put(ENABLED)
    }

    fn nvmlDeviceSetEccMode(device: Handle, mode: u32) |call| {
        let device = call.parent(device, Code::NOT_SUPPORTED)?;
        if !device.board.model.has_ecc() {
            return Err(Code::NOT_SUPPORTED);
        }
        call.require_privilege()?;
        if mode > ENABLED {
            return Err(Code::INVALID_ARGUMENT);
        }
        // It holds from the next reset on.
        call.put_settings(&device, &[(Setting::EccOffPending, u64::from(mode == 0))])
    }

    fn nvmlDeviceClearEccErrorCounts(device: Handle, counter: u32) |call| {
        let (device, sampler) = call.measured(device)?;
        sampler.need(Reading::CorrectedVolatile)?;
        let readings: &[Reading] = match counter {
            VOLATILE => &[Reading::CorrectedVolatile, Reading::UncorrectedVolatile, Reading::SramUncorrected],
            AGGREGATE => &[Reading::CorrectedAggregate, Reading::UncorrectedAggregate],
            _ => return Err(Code::INVALID_ARGUMENT),
        };
        call.change_readings(&device, |values| {
            readings.iter().for_each(|reading| values.put_value(0, *reading, None));
        })
    }

    fn nvmlDeviceGetTotalEccErrors(device: Handle, kind: u32, counter: u32, count: Out<u64>) |call| {
        let device = call.device(device)?;
        let dram = call.errors(&device, kind, counter, DRAM);
        let sram = call.errors(&device, kind, counter, SRAM)?;
        // Of a MIG device nothing but errors outside of the memory is known.
        count.put(sram + if device.mig.is_some() { 0 } else { dram? })
    }

    fn nvmlDeviceGetMemoryErrorCounter(
        device: Handle, kind: u32, counter: u32, location: u32, count: Out<u64>,
    ) |call| {
        let device = call.device(device)?;
        count.put(call.errors(&device, kind, counter, location)?)
    }

    fn nvmlDeviceGetSramEccErrorStatus(device: Handle, status: Out<SramErrors>) |call| {
        let (_, sampler) = call.measured(device)?;
        if !sampler.model.remaps_rows() {
            return Err(Code::NOT_SUPPORTED);
        }
        let uncorrected = sampler.need(Reading::SramUncorrected)? as u64;
        if status.cast::<u32>().get()? != version::<SramErrors>(1) {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        status.put(SramErrors {
            version: version::<SramErrors>(1), gap: 0,
            aggregate_parity: 0, aggregate_secded: uncorrected, aggregate_corrected: 0,
            volatile_parity: 0, volatile_secded: uncorrected, volatile_corrected: 0,
            l2: 0, sm: uncorrected, pcie: 0, mcu: 0, other: 0, exceeded: 0, end: 0,
        })
    }

    fn nvmlDeviceGetRemappedRows(
        device: Handle, corrected: Out<u32>, uncorrected: Out<u32>, pending: Out<u32>, failed: Out<u32>,
    ) |call| {
        let rows = call.rows(device)?;
        for place in [corrected, uncorrected, pending, failed] {
            place.required()?;
        }
        corrected.put(rows.corrected)?;
        uncorrected.put(rows.uncorrected)?;
        pending.put(rows.pending)?;
        failed.put(rows.failed)
    }

    fn nvmlDeviceGetRemappedRows_v2(device: Handle, rows: Out<Rows>) |call| {
        rows.put(call.rows(device)?)
    }

    fn nvmlDeviceGetRowRemapperHistogram(device: Handle, histogram: Out<RowHistogram>) |call| {
        let (_, sampler) = call.measured(device)?;
        let replaced = sampler.rows()?;
        let banks = sampler.model.banks().ok_or(Code::NOT_SUPPORTED)?;
        let high = (replaced.corrected + replaced.uncorrected).min(banks);
        histogram.put(RowHistogram { full: banks - high, high, partial: 0, low: 0, none: 0 })
    }

    fn nvmlDeviceGetRetiredPages(device: Handle, cause: u32, count: Out<u32>, pages: Out<u64>) |call| {
        put_list(pages, count, &call.retired(device, cause)?, true)
    }

    fn nvmlDeviceGetRetiredPages_v2(
        device: Handle, cause: u32, count: Out<u32>, pages: Out<u64>, times: Out<u64>,
    ) |call| {
        let retired = call.retired(device, cause)?;
        put_list(pages, count, &retired, true)?;
        if pages.is_null() {
            return Ok(());
        }
        // When it was is not kept.
        (0..retired.len()).try_for_each(|at| times.put_at(at, 0))
    }

    fn nvmlDeviceGetRetiredPagesPendingStatus(device: Handle, pending: Out<u32>) |call| {
        pending.put(call.sensor(device, Reading::RetiredPending)? as u32)
    }
}

impl Call {
    /// A counter. On a GPU in MIG mode volatile ones are not supported; on a MIG device nothing else than
    /// volatile uncorrected errors outside of the memory is (nvml.h).
    fn errors(&self, device: &Device<'_>, kind: u32, counter: u32, location: u32) -> Result<u64, Code> {
        if kind > UNCORRECTED || counter > AGGREGATE || location > SRAM {
            return Err(Code::INVALID_ARGUMENT);
        }
        let sampler = self.sampler(device)?;
        if !sampler.has_ecc() {
            return Err(Code::NOT_SUPPORTED);
        }
        if let Some(mig) = device.mig {
            let (gi, _) = device.instances(mig)?;
            let memory = device.board.profile_of(gi)?.memory_mib;
            let told = kind == UNCORRECTED && counter == VOLATILE && location == SRAM;
            let found = told.then(|| sampler.instance(mig.gi, memory, Reading::SramUncorrected)).flatten();
            return found.map(|count| count as u64).ok_or(Code::NOT_SUPPORTED);
        }
        if counter == VOLATILE && device.board.mig_on(&device.state) {
            return Err(Code::NOT_SUPPORTED);
        }
        sampler.errors(kind, counter, location)
    }

    fn rows(&self, device: Handle) -> Result<Rows, Code> {
        let (device, sampler) = self.measured(device)?;
        require_whole(&device)?;
        sampler.rows()
    }

    fn retired(&self, device: Handle, cause: u32) -> Result<Vec<u64>, Code> {
        let (_, sampler) = self.measured(device)?;
        let (reading, first) = match cause {
            SINGLE_BIT => (Reading::RetiredSingle, 1),
            DOUBLE_BIT => (Reading::RetiredDouble, 0x1_0001),
            _ => return Err(Code::INVALID_ARGUMENT),
        };
        // Pages have no address by themselves: they count from one that differs with the cause. InfoROM has
        // room for 64 (NVIDIA's page retirement guide).
        let count = (sampler.need(reading)? as u64).min(64);
        Ok((0..count).map(|page| (first + page) * PAGE).collect())
    }
}

impl Sampler<'_> {
    /// A whole board's counter.
    pub(super) fn errors(&self, kind: u32, counter: u32, location: u32) -> Result<u64, Code> {
        let reading = match (location, kind, counter) {
            (DRAM, CORRECTED, VOLATILE) => Reading::CorrectedVolatile,
            (DRAM, CORRECTED, _) => Reading::CorrectedAggregate,
            (DRAM, _, VOLATILE) => Reading::UncorrectedVolatile,
            (DRAM, _, _) => Reading::UncorrectedAggregate,
            (SRAM, UNCORRECTED, _) => Reading::SramUncorrected,
            (SRAM, _, _) => return self.need(Reading::SramUncorrected).map(|_| 0),
            // Boards since Turing count all that is no DRAM as SRAM.
            _ => return Err(Code::NOT_SUPPORTED),
        };
        Ok(self.need(reading)? as u64)
    }

    /// What has been replaced.
    pub(super) fn rows(&self) -> Result<Rows, Code> {
        Ok(Rows {
            corrected: self.need(Reading::RemappedCorrectable)? as u32,
            corrected_inactive: 0,
            uncorrected: self.need(Reading::RemappedUncorrectable)? as u32,
            uncorrected_inactive: 0,
            pending: self.need(Reading::RemapPending)? as u32,
            failed: self.need(Reading::RemapFailed)? as u32,
        })
    }
}

impl Model {
    /// Memory banks with rows in reserve, of boards on which they were seen.
    fn banks(&self) -> Option<u32> {
        let name = self.name.as_str();
        if name.contains("A100") {
            Some(640)
        } else if name.contains("H100 80GB HBM3") {
            Some(2560)
        } else {
            None
        }
    }
}

/// Remapped rows are not told of a GPU with instances (nvml.h).
pub(super) fn require_whole(device: &Device<'_>) -> Result<(), Code> {
    let instances = device.board.mig_on(&device.state) && device.state.live_gis().next().is_some();
    if instances { Err(Code::NOT_SUPPORTED) } else { Ok(()) }
}
