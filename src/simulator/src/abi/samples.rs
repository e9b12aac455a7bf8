//! Samples of the near past, and what each process uses. Not told of a GPU in MIG mode (nvml.h).

use super::{
    Call, Out,
    arguments::put_list,
    entry,
    handle::{Device, Handle},
    layout::{ProcessSample, ProcessSample1, ProcessSamples, Sample, version},
    sampled::timestamp,
};
use crate::{holders::Kind, machine::Code, reading::Reading, sampler::Sampler};

/// NVML_VALUE_TYPE_UNSIGNED_INT.
const UNSIGNED_INT: u32 = 1;
/// A sample is taken so often, and so many are kept.
const PERIOD_US: u64 = 20_000;
const KEPT: u64 = 120;
/// NVML_TOTAL_POWER_SAMPLES and on.
const KINDS: [Option<Reading>; 10] = [
    Some(Reading::Power),
    Some(Reading::Utilisation),
    Some(Reading::MemoryUtilisation),
    Some(Reading::Encoder),
    Some(Reading::Decoder),
    Some(Reading::SmClock),
    Some(Reading::MemoryClock),
    // NVML_MODULE_POWER_SAMPLES: modules are not simulated.
    None,
    Some(Reading::Jpeg),
    Some(Reading::Ofa),
];
/// Kinds that a GPU in MIG mode tells all the same.
const WHOLE: [usize; 3] = [0, 5, 6];

entry! {
    fn nvmlDeviceGetSamples(
        device: Handle, kind: u32, seen: u64, value_kind: Out<u32>, count: Out<u32>, samples: Out<Sample>,
    ) |call| {
        let (device, sampler) = call.measured(device)?;
        let reading = KINDS.get(kind as usize).ok_or(Code::INVALID_ARGUMENT)?.ok_or(Code::NOT_SUPPORTED)?;
        if device.board.mig_on(&device.state) && !WHOLE.contains(&(kind as usize)) {
            return Err(Code::NOT_SUPPORTED);
        }
        value_kind.required()?;
        let value = sampler.need(reading)? as u32;
        let times = sampler.times(seen);
        if times.is_empty() {
            return Err(Code::NOT_FOUND);
        }
        value_kind.put(UNSIGNED_INT)?;
        if samples.is_null() {
            return count.put(times.len() as u32);
        }
        // Since the caller asked for the number, more may have come: those that fit, the oldest first.
        let times = times.get(..(count.get()? as usize).min(times.len())).unwrap_or_default();
        count.put(times.len() as u32)?;
        times.iter().enumerate().try_for_each(|(at, time)| {
            samples.put_at(at, Sample { time_us: *time, value: value.into() })
        })
    }

    fn nvmlDeviceGetProcessUtilization(
        device: Handle, samples: Out<ProcessSample>, count: Out<u32>, seen: u64,
    ) |call| {
        let found = call.processes(device, seen)?;
        put_list(samples, count, &found, false)
    }

    fn nvmlDeviceGetProcessesUtilizationInfo(device: Handle, info: Out<ProcessSamples>) |call| {
        call.unpartitioned(device)?;
        let asked = info.get()?;
        if asked.version != version::<ProcessSamples>(1) {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        let found: Vec<ProcessSample1> = call.processes(device, asked.seen_us)?.iter().map(newer).collect();
        let room = asked.count as usize;
        info.put(ProcessSamples { count: found.len() as u32, ..asked })?;
        if room < found.len() || asked.list.is_null() {
            return Err(Code::INSUFFICIENT_SIZE);
        }
        found.iter().enumerate().try_for_each(|(at, one)| asked.list.put_at(at, *one))
    }
}

impl Call {
    /// What each process on the GPU uses, if that is newer than `seen`.
    fn processes(&self, handle: Handle, seen: u64) -> Result<Vec<ProcessSample>, Code> {
        let (device, sampler) = self.unpartitioned(handle)?;
        let now = timestamp();
        let pids = if now > seen { self.pids(&device) } else { Vec::new() };
        if pids.is_empty() {
            return Err(Code::NOT_FOUND);
        }
        // The load is the GPU's; each process has its part of it.
        let part = |reading| Ok::<u32, Code>((sampler.need(reading)? / pids.len() as f64) as u32);
        let one = ProcessSample {
            pid: 0,
            gap: 0,
            time_us: now,
            sm: part(Reading::Utilisation)?,
            memory: part(Reading::MemoryUtilisation)?,
            encoder: part(Reading::Encoder)?,
            decoder: part(Reading::Decoder)?,
        };
        Ok(pids.into_iter().map(|pid| ProcessSample { pid, ..one }).collect())
    }

    /// Who computes on a GPU.
    pub(super) fn pids(&self, device: &Device<'_>) -> Vec<u32> {
        let all = self.running(Handle::gpu(device.gpu), Kind::Compute).unwrap_or_default();
        all.iter().map(|process| process.pid).collect()
    }
}

impl Sampler<'_> {
    /// When the samples that are kept were taken, those after `seen`. What they show has held since the last
    /// change; what was before is not kept.
    fn times(&self, seen: u64) -> Vec<u64> {
        let now = timestamp();
        let held = self.now().saturating_sub(self.since()) / 1000;
        let newest = now / PERIOD_US;
        let oldest = (now.saturating_sub(held).max(seen.saturating_add(1))).div_ceil(PERIOD_US);
        let oldest = oldest.max(newest.saturating_sub(KEPT - 1));
        if oldest > newest && now > seen && held < PERIOD_US {
            // A load that has only begun shows at once.
            return vec![now];
        }
        (oldest..=newest).map(|step| step * PERIOD_US).collect()
    }
}

fn newer(one: &ProcessSample) -> ProcessSample1 {
    let ProcessSample { pid, time_us, sm, memory, encoder, decoder, .. } = *one;
    ProcessSample1 { time_us, pid, sm, memory, encoder, decoder, jpeg: 0, ofa: 0, gap: 0 }
}
