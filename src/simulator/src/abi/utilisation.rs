//! How much of a GPU is at work. None of it is told of a GPU in MIG mode, nor of a MIG device (nvml.h).

use super::{
    Call, Out,
    arguments::put_list,
    entry,
    handle::Handle,
    layout::{Pstate, Pstates, Utilisation, Violation},
    sampled::timestamp,
};
use crate::{machine::Code, reading::Reading};

/// What a sensor looks back on, in microseconds: 1/6 s, the least that nvml.h names.
const PERIOD_US: u32 = 166_667;
/// NVML_PERF_POLICY_POWER, _THERMAL; then four that have no reading, and two more from 10 on.
const POWER: u32 = 0;
const THERMAL: u32 = 1;
const OTHERS: [u32; 6] = [2, 3, 4, 5, 10, 11];
/// NVML_ENCODER_QUERY_H264 … _AV1: the greatest.
const LAST_CODEC: u32 = 2;

entry! {
    fn nvmlDeviceGetUtilizationRates(device: Handle, rates: Out<Utilisation>) |call| {
        let (_, sampler) = call.unpartitioned(device)?;
        rates.put(Utilisation {
            gpu: sampler.need(Reading::Utilisation)? as u32,
            memory: sampler.need(Reading::MemoryUtilisation)? as u32,
        })
    }

    fn nvmlDeviceGetEncoderUtilization(device: Handle, percent: Out<u32>, period_us: Out<u32>) |call| {
        call.engine(device, Reading::Encoder, percent, period_us)
    }

    fn nvmlDeviceGetDecoderUtilization(device: Handle, percent: Out<u32>, period_us: Out<u32>) |call| {
        call.engine(device, Reading::Decoder, percent, period_us)
    }

    fn nvmlDeviceGetJpgUtilization(device: Handle, percent: Out<u32>, period_us: Out<u32>) |call| {
        call.engine(device, Reading::Jpeg, percent, period_us)
    }

    fn nvmlDeviceGetOfaUtilization(device: Handle, percent: Out<u32>, period_us: Out<u32>) |call| {
        call.engine(device, Reading::Ofa, percent, period_us)
    }

    fn nvmlDeviceGetDynamicPstatesInfo(device: Handle, info: Out<Pstates>) |call| {
        let (_, sampler) = call.unpartitioned(device)?;
        let domain = |percent| Pstate { present: 1, percent, more: 0, less: 0 };
        let none = Pstate { present: 0, percent: 0, more: 0, less: 0 };
        let mut all = Pstates { flags: 0, domains: [none; 8] };
        // NVML_GPU_UTILIZATION_DOMAIN_GPU, _FB, _VID.
        let percents = [
            sampler.need(Reading::Utilisation)?,
            sampler.need(Reading::MemoryUtilisation)?,
            sampler.need(Reading::Encoder)?.max(sampler.need(Reading::Decoder)?),
        ];
        all.domains.iter_mut().zip(percents).for_each(|(to, percent)| *to = domain(percent as u32));
        info.put(all)
    }

    fn nvmlDeviceGetViolationStatus(device: Handle, policy: u32, time: Out<Violation>) |call| {
        let (_, sampler) = call.measured(device)?;
        let held = match policy {
            POWER => sampler.need(Reading::ViolationPower)?,
            THERMAL => sampler.need(Reading::ViolationThermal)?,
            other if OTHERS.contains(&other) => 0.0,
            _ => return Err(Code::INVALID_ARGUMENT),
        };
        time.put(Violation { reference_us: timestamp(), held_ns: held as u64 })
    }

    fn nvmlDeviceGetEncoderCapacity(device: Handle, codec: u32, percent: Out<u32>) |call| {
        let (device, sampler) = call.measured(device)?;
        if codec > LAST_CODEC {
            return Err(Code::INVALID_ARGUMENT);
        }
        if !device.board.model.has_encoder() {
            return Err(Code::NOT_SUPPORTED);
        }
        percent.put(100 - sampler.need(Reading::Encoder)? as u32)
    }

    fn nvmlDeviceGetEncoderStats(
        device: Handle, sessions: Out<u32>, frames: Out<u32>, latency_us: Out<u32>,
    ) |call| {
        call.measured(device)?;
        // Encoders have a load here, but no sessions.
        [sessions, frames, latency_us].into_iter().try_for_each(|place| place.put(0))
    }

    fn nvmlDeviceGetEncoderSessions(device: Handle, count: Out<u32>, sessions: Out<u64>) |call| {
        call.measured(device)?;
        put_list(sessions, count, &[], true)
    }

    fn nvmlDeviceGetFBCStats(device: Handle, stats: Out<[u32; 3]>) |call| {
        call.measured(device)?;
        stats.put([0; 3])
    }

    fn nvmlDeviceGetFBCSessions(device: Handle, count: Out<u32>, sessions: Out<u64>) |call| {
        call.measured(device)?;
        put_list(sessions, count, &[], true)
    }
}

impl Call {
    fn engine(
        &self,
        device: Handle,
        engine: Reading,
        percent: Out<u32>,
        period_us: Out<u32>,
    ) -> Result<(), Code> {
        let (_, sampler) = self.unpartitioned(device)?;
        let shown = sampler.need(engine)? as u32;
        percent.required()?;
        period_us.required()?;
        percent.put(shown)?;
        period_us.put(PERIOD_US)
    }
}
