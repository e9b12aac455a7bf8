//! Power, energy and their limits; performance states.

use super::{
    Call, Out,
    arguments::In,
    entry,
    handle::{Device, Handle},
    layout::{PowerValue, version},
};
use crate::{machine::Code, reading::Reading, readings::Setting, sampler::Sampler};

/// NVML_POWER_SCOPE_GPU.
const SCOPE_GPU: u32 = 0;
/// The greatest of NVML's power scopes (GPU, module, memory).
const LAST_SCOPE: u32 = 2;
/// NVML_POWER_SOURCE_AC.
const SOURCE_AC: u32 = 0;
/// NVML_FEATURE_ENABLED.
const ENABLED: u32 = 1;
/// The most states that nvmlDeviceGetSupportedPerformanceStates names, and what fills the rest.
const STATES: u32 = 16;
const NO_STATE: u32 = 32;

entry! {
    fn nvmlDeviceGetPowerUsage(device: Handle, milliwatts: Out<u32>) |call| {
        milliwatts.put(call.sensor(device, Reading::Power)? as u32)
    }

    fn nvmlDeviceGetTotalEnergyConsumption(device: Handle, millijoules: Out<u64>) |call| {
        millijoules.put(call.sensor(device, Reading::Energy)? as u64)
    }

    fn nvmlDeviceGetPowerManagementMode(device: Handle, mode: Out<u32>) |call| {
        call.parent(device, Code::NOT_SUPPORTED)?;
        mode.put(ENABLED)
    }

    fn nvmlDeviceGetPowerManagementLimit(device: Handle, milliwatts: Out<u32>) |call| {
        milliwatts.put(call.measured(device)?.1.power_limit()?)
    }

    fn nvmlDeviceGetEnforcedPowerLimit(device: Handle, milliwatts: Out<u32>) |call| {
        milliwatts.put(call.measured(device)?.1.power_limit()?)
    }

    fn nvmlDeviceGetPowerManagementDefaultLimit(device: Handle, milliwatts: Out<u32>) |call| {
        milliwatts.put(call.measured(device)?.1.power_limits()?.1)
    }

    fn nvmlDeviceGetPowerManagementLimitConstraints(device: Handle, least: Out<u32>, most: Out<u32>) |call| {
        let (low, high) = call.measured(device)?.1.power_limits()?;
        least.required()?;
        most.required()?;
        least.put(low.ok_or(Code::NOT_SUPPORTED)?)?;
        most.put(high)
    }

    fn nvmlDeviceSetPowerManagementLimit(device: Handle, milliwatts: u32) |call| {
        call.limit_power(&call.parent(device, Code::NOT_SUPPORTED)?, milliwatts)
    }

    fn nvmlDeviceSetPowerManagementLimit_v2(device: Handle, limit: In<PowerValue>) |call| {
        let device = call.parent(device, Code::NOT_SUPPORTED)?;
        let limit = limit.get()?;
        if limit.version != version::<PowerValue>(2) {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        match limit.scope {
            SCOPE_GPU => call.limit_power(&device, limit.milliwatts),
            // Modules and memory have no limit of their own here.
            scope if scope <= LAST_SCOPE => Err(Code::NOT_SUPPORTED),
            _ => Err(Code::INVALID_ARGUMENT),
        }
    }

    fn nvmlDeviceGetPowerSource(device: Handle, source: Out<u32>) |call| {
        call.parent(device, Code::NOT_SUPPORTED)?;
        source.put(SOURCE_AC)
    }

    fn nvmlDeviceGetPerformanceState(device: Handle, state: Out<u32>) |call| {
        state.put(call.sensor(device, Reading::PerformanceState)? as u32)
    }

    fn nvmlDeviceGetPowerState(device: Handle, state: Out<u32>) |call| {
        state.put(call.sensor(device, Reading::PerformanceState)? as u32)
    }

    fn nvmlDeviceGetSupportedPerformanceStates(device: Handle, states: Out<u32>, bytes: u32) |call| {
        call.parent(device, Code::NOT_SUPPORTED)?;
        states.required()?;
        if bytes < STATES * 4 {
            return Err(Code::INSUFFICIENT_SIZE);
        }
        // Server boards stay in P0.
        (0..STATES).try_for_each(|at| states.put_at(at as usize, if at == 0 { 0 } else { NO_STATE }))
    }
}

impl Call {
    fn limit_power(&self, device: &Device<'_>, milliwatts: u32) -> Result<(), Code> {
        let (least, most) = self.sampler(device)?.power_limits()?;
        let least = least.ok_or(Code::NOT_SUPPORTED)?;
        self.require_privilege()?;
        if !(least..=most).contains(&milliwatts) {
            return Err(Code::INVALID_ARGUMENT);
        }
        let set = if milliwatts == most { 0 } else { milliwatts.into() };
        self.put_settings(device, &[(Setting::PowerLimit, set)])
    }
}

impl Sampler<'_> {
    /// The least limit and the greatest, which is the default, in mW; boards whose figures are not published
    /// have none.
    pub(super) fn power_limits(&self) -> Result<(Option<u32>, u32), Code> {
        let most = self.product.power.ok_or(Code::NOT_SUPPORTED)?;
        Ok((self.product.least_power.map(|watts| watts * 1000), most * 1000))
    }

    /// The limit that holds, in mW.
    pub(super) fn power_limit(&self) -> Result<u32, Code> {
        let (_, most) = self.power_limits()?;
        match self.setting(Setting::PowerLimit) {
            0 => Ok(most),
            set => Ok(u32::try_from(set).unwrap_or(most)),
        }
    }
}
