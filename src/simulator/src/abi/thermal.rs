//! Temperatures and fans.

use super::{
    Call, Out, entry,
    handle::Handle,
    layout::{FanSpeed, Temperature, ThermalSensor, ThermalSettings, version},
};
use crate::{machine::Code, reading::Reading};

/// NVML_TEMPERATURE_GPU, the one sensor that these functions know.
const SENSOR_GPU: u32 = 0;
/// NVML_THERMAL_CONTROLLER_GPU_INTERNAL, NVML_THERMAL_TARGET_GPU and _ALL.
const CONTROLLER_GPU: i32 = 1;
const TARGET_GPU: i32 = 1;
const TARGET_ALL: u32 = 15;
/// What drives the fans: the board, by the temperature (NVML_FAN_POLICY_TEMPERATURE_CONTINOUS_SW).
const POLICY_TEMPERATURE: u32 = 0;

entry! {
    fn nvmlDeviceGetTemperature(device: Handle, sensor: u32, celsius: Out<u32>) |call| {
        let shown = call.sensor(device, Reading::Temperature)?;
        require_gpu(sensor)?;
        celsius.put(shown as i32 as u32)
    }

    fn nvmlDeviceGetTemperatureV(device: Handle, temperature: Out<Temperature>) |call| {
        let shown = call.sensor(device, Reading::Temperature)?;
        let asked = temperature.get()?;
        if asked.version != version::<Temperature>(1) {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        require_gpu(asked.sensor)?;
        temperature.put(Temperature { celsius: shown as i32, ..asked })
    }

    fn nvmlDeviceGetThermalSettings(device: Handle, sensor: u32, settings: Out<ThermalSettings>) |call| {
        let shown = call.sensor(device, Reading::Temperature)?;
        if sensor != 0 && sensor != TARGET_ALL {
            return Err(Code::INVALID_ARGUMENT);
        }
        let none = ThermalSensor { controller: 0, least: 0, most: 0, celsius: 0, target: 0 };
        let one = ThermalSensor { controller: CONTROLLER_GPU, celsius: shown as i32, target: TARGET_GPU, ..none };
        settings.put(ThermalSettings { count: 1, sensors: [one, none, none] })
    }

    fn nvmlDeviceGetNumFans(device: Handle, count: Out<u32>) |call| {
        count.put(call.measured(device)?.1.product.fans)
    }

    fn nvmlDeviceGetFanSpeed(device: Handle, percent: Out<u32>) |call| {
        percent.put(call.fan(device, 0)?)
    }

    fn nvmlDeviceGetFanSpeed_v2(device: Handle, fan: u32, percent: Out<u32>) |call| {
        percent.put(call.fan(device, fan)?)
    }

    fn nvmlDeviceGetTargetFanSpeed(device: Handle, fan: u32, percent: Out<u32>) |call| {
        percent.put(call.fan(device, fan)?)
    }

    fn nvmlDeviceGetFanControlPolicy_v2(device: Handle, fan: u32, policy: Out<u32>) |call| {
        call.fan(device, fan)?;
        policy.put(POLICY_TEMPERATURE)
    }

    fn nvmlDeviceGetFanSpeedRPM(device: Handle, speed: Out<FanSpeed>) |call| {
        call.sensor(device, Reading::Fan)?;
        let asked = speed.get()?;
        if asked.version != version::<FanSpeed>(1) {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        // What a per cent of a fan is in revolutions is not published.
        Err(Code::NOT_SUPPORTED)
    }
}

impl Call {
    fn fan(&self, device: Handle, fan: u32) -> Result<u32, Code> {
        let (_, sampler) = self.measured(device)?;
        let percent = sampler.need(Reading::Fan)?;
        if fan < sampler.product.fans { Ok(percent as u32) } else { Err(Code::INVALID_ARGUMENT) }
    }
}

fn require_gpu(sensor: u32) -> Result<(), Code> {
    if sensor == SENSOR_GPU { Ok(()) } else { Err(Code::INVALID_ARGUMENT) }
}
