//! MIG mode.

use crate::{
    device::Device,
    error::{Code, Error, call},
};
use migd_core::node::MigMode;

/// What setting a mode came to beside its return value: whether the mode is real now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activation(pub Code);

impl Activation {
    /// It is; but only reading the mode back is proof.
    pub fn is_active(self) -> bool {
        self.0 == Code::SUCCESS
    }
}

impl Device<'_> {
    /// The current and the pending mode; absent on a GPU without MIG.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn mig_mode(&self) -> Result<Option<MigMode>, Error> {
        let (mut current, mut pending) = (0, 0);
        // SAFETY: the handle is of this library, and both out pointers are valid for a c_uint.
        let answer =
            unsafe { call!(self.library(), nvmlDeviceGetMigMode(self.handle(), &mut current, &mut pending)) };
        match answer {
            Ok(()) => Ok(Some(MigMode { current: current != 0, pending: pending != 0 })),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Asks for a mode. On Ampere the driver tries a reset of its own; that this failed is told only by the
    /// activation status while the call succeeds (nvml.h, nvmlDeviceSetMigMode).
    ///
    /// # Errors
    /// The driver's answer: NO_PERMISSION, NOT_SUPPORTED, and on Hopper and later IN_USE.
    pub fn set_mig_mode(&self, enabled: bool) -> Result<Activation, Error> {
        let mut status = 0;
        // SAFETY: the handle is of this library, and the out pointer is valid for an nvmlReturn_t.
        unsafe {
            call!(self.library(), nvmlDeviceSetMigMode(self.handle(), u32::from(enabled), &mut status))
        }?;
        Ok(Activation(Code(status)))
    }
}
