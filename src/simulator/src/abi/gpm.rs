//! GPM: samples of a GPU, a GPU instance or a MIG device, and metrics between two of them.

use super::{
    Call, Out, entry,
    handle::{Device, Handle},
    layout::{GpmHead, GpmMetric, GpmSupport},
};
use crate::{
    gpm::{self, Slot, Taken},
    machine::Code,
    readings::Setting,
    state::GiState,
};
use std::{ptr, sync::Arc};

/// NVML_GPM_SUPPORT_VERSION and NVML_GPM_METRICS_GET_VERSION: bare numbers, without a size.
const VERSION: u32 = 1;
/// More metrics than any header has room for.
const MOST: u32 = 4096;

entry! {
    fn nvmlGpmQueryDeviceSupport(device: Handle, support: Out<GpmSupport>) |call| {
        let device = call.device(device)?;
        if support.cast::<u32>().get()? != VERSION {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        support.put(GpmSupport { version: VERSION, supported: u32::from(device.board.model.has_gpm()) })
    }

    fn nvmlGpmSampleAlloc(sample: Out<Handle>) |call| {
        sample.required()?;
        sample.put(Handle::sample(call.session.gpm.add(Slot::default())))
    }

    fn nvmlGpmSampleFree(sample: Handle) |call| {
        if call.session.gpm.free(sample.sample_number()?) { Ok(()) } else { Err(Code::INVALID_ARGUMENT) }
    }

    fn nvmlGpmSampleGet(device: Handle, sample: Handle) |call| {
        let device = call.device(device)?;
        let gi = device.mig.map(|mig| mig.gi);
        call.take(&device, gi, sample)
    }

    fn nvmlGpmMigSampleGet(device: Handle, gi: u32, sample: Handle) |call| {
        let device = call.parent(device, Code::INVALID_ARGUMENT)?;
        if !device.board.mig_on(&device.state) {
            return Err(Code::NOT_SUPPORTED);
        }
        call.take(&device, Some(gi), sample)
    }

    fn nvmlGpmMetricsGet(metrics: Out<GpmHead>) |call| {
        let head = metrics.get()?;
        if head.version != VERSION {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        if head.count > MOST {
            return Err(Code::INVALID_ARGUMENT);
        }
        let (first, second) = (call.sample(head.first)?.get(), call.sample(head.second)?.get());
        let (first, second) = (first.ok_or(Code::NO_DATA)?, second.ok_or(Code::NO_DATA)?);
        let of = |taken: &Taken| (taken.gpu, taken.instance.map(|(gi, _)| gi));
        if of(&first) != of(&second) {
            return Err(Code::INVALID_ARGUMENT);
        }
        let model = call.session.board(first.gpu)?.model;
        // Headers differ in how many metrics there is room for; `count` alone says how many are asked for.
        let list = metrics.after::<GpmMetric>();
        for index in 0..head.count as usize {
            let asked = list.get_at(index)?;
            let mut answer = GpmMetric { short: ptr::null(), long: ptr::null(), unit: ptr::null(), ..asked };
            if let Some(name) = gpm::name(asked.id) {
                (answer.short, answer.long, answer.unit) =
                    (name.short.as_ptr(), name.long.as_ptr(), name.unit.as_ptr());
            }
            match gpm::metric(model, &first, &second, asked.id) {
                Ok(value) => (answer.result, answer.value) = (Code::SUCCESS.0, value),
                Err(code) => answer.result = code.0,
            }
            list.put_at(index, answer)?;
        }
        Ok(())
    }

    fn nvmlGpmQueryIfStreamingEnabled(device: Handle, state: Out<u32>) |call| {
        let (device, sampler) = call.measured(device)?;
        require_gpm(&device)?;
        state.put(u32::from(sampler.setting(Setting::GpmStreaming) != 0))
    }

    fn nvmlGpmSetStreamingEnabled(device: Handle, state: u32) |call| {
        let device = call.parent(device, Code::NOT_SUPPORTED)?;
        require_gpm(&device)?;
        if state > 1 {
            return Err(Code::INVALID_ARGUMENT);
        }
        call.put_settings(&device, &[(Setting::GpmStreaming, state.into())])
    }
}

impl Call {
    fn sample(&self, sample: Handle) -> Result<Arc<Slot>, Code> {
        self.session.gpm.get(sample.sample_number()?).ok_or(Code::INVALID_ARGUMENT)
    }

    fn take(&self, device: &Device<'_>, gi: Option<u32>, sample: Handle) -> Result<(), Code> {
        require_gpm(device)?;
        let slot = self.sample(sample)?;
        let instance = match gi {
            None => None,
            Some(id) => {
                let gi = device.state.gis.get(id as usize).filter(|gi| gi.live != 0);
                Some((id, device.board.profile_of(counted(gi)?)?.engines))
            }
        };
        let read = self.session.shard().readings.read(device.gpu);
        let (values, now) = read.ok_or(Code::INVALID_ARGUMENT)?;
        slot.put(Taken { gpu: device.gpu, instance, values, now });
        Ok(())
    }
}

/// A GPU instance's counters are the sum over its compute instances: without any there is nothing to sum.
fn counted(gi: Option<&GiState>) -> Result<&GiState, Code> {
    let gi = gi.ok_or(Code::NOT_FOUND)?;
    if gi.live_cis().next().is_some() { Ok(gi) } else { Err(Code::NO_DATA) }
}

fn require_gpm(device: &Device<'_>) -> Result<(), Code> {
    if device.board.model.has_gpm() { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
}
