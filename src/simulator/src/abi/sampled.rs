//! What the functions that measure share: sensors of a handle's GPU, and the codes where there are none.

use super::{
    Call,
    handle::{Device, Handle},
};
use crate::{
    machine::Code,
    reading::Reading,
    readings::{Setting, Values},
    sampler::Sampler,
};
use std::time::SystemTime;

impl Call {
    /// A GPU's sensors now.
    pub(super) fn sampler<'a>(&self, device: &Device<'a>) -> Result<Sampler<'a>, Code> {
        let (values, now) = self.session.shard().readings.read(device.gpu).ok_or(Code::INVALID_ARGUMENT)?;
        Ok(Sampler::new(device.board.model, values, now))
    }

    /// The GPU and its sensors, for what is measured of whole boards only: a MIG device has none of it.
    pub(super) fn measured(&self, handle: Handle) -> Result<(Device<'_>, Sampler<'_>), Code> {
        let device = self.parent(handle, Code::NOT_SUPPORTED)?;
        let sampler = self.sampler(&device)?;
        Ok((device, sampler))
    }

    /// [`Call::measured`], for what a MIG device may have of its GPU: nobody has seen whether it does.
    pub(super) fn sensors(&self, handle: Handle) -> Result<Sampler<'_>, Code> {
        let device = self.device(handle)?;
        if device.mig.is_some() && device.board.unknowns.mig_handle_sensors == 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        self.sampler(&device)
    }

    /// One of these sensors.
    pub(super) fn sensor(&self, handle: Handle, reading: Reading) -> Result<f64, Code> {
        self.sensors(handle)?.need(reading)
    }

    /// [`Call::measured`], for what nobody can tell of a GPU in MIG mode (nvml.h, and seen on hardware).
    pub(super) fn unpartitioned(&self, handle: Handle) -> Result<(Device<'_>, Sampler<'_>), Code> {
        let (device, sampler) = self.measured(handle)?;
        if device.board.mig_on(&device.state) { Err(Code::NOT_SUPPORTED) } else { Ok((device, sampler)) }
    }

    /// Lets a privileged program set something on a GPU.
    pub(super) fn put_settings(&self, device: &Device<'_>, settings: &[(Setting, u64)]) -> Result<(), Code> {
        self.change_readings(device, |values| {
            settings.iter().for_each(|(setting, value)| values.put_setting(*setting, *value));
        })
    }

    /// Lets a privileged program change a GPU's readings.
    pub(super) fn change_readings(
        &self,
        device: &Device<'_>,
        change: impl FnOnce(&mut Values),
    ) -> Result<(), Code> {
        self.require_privilege()?;
        Ok(self.session.shard().readings.change(device.gpu, device.board.model, change)?)
    }
}

impl Sampler<'_> {
    /// A sensor that the call is about.
    pub(super) fn need(&self, reading: Reading) -> Result<f64, Code> {
        self.gpu(reading).ok_or(Code::NOT_SUPPORTED)
    }
}

/// Microseconds since 1970, NVML's time stamps.
pub(super) fn timestamp() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros() as u64
}
