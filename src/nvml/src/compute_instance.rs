//! Compute instances, each of which is, with its GPU instance, a MIG device.

use crate::{
    device::Device,
    error::{Error, call},
    library::Library,
};
use migd_core::profile::Placement;
use nvml_wrapper_sys::bindings::{nvmlComputeInstance_t, nvmlComputeInstanceInfo_t};

/// A compute instance.
#[derive(Debug)]
pub struct ComputeInstance<'lib> {
    library: &'lib Library,
    handle: nvmlComputeInstance_t,
}

/// What it is.
#[derive(Debug)]
pub struct ComputeInstanceInfo<'lib> {
    /// Its id, unique in the GPU instance while it lives.
    pub id: u32,
    /// The compute profile id it was made with.
    pub profile_id: u32,
    /// Where it lies, in compute slices of its GPU instance; absent where the driver leaves it empty.
    pub placement: Option<Placement>,
    /// The MIG device.
    pub device: Option<Device<'lib>>,
}

impl<'lib> ComputeInstance<'lib> {
    pub(crate) fn new(
        function: &'static str,
        library: &'lib Library,
        handle: nvmlComputeInstance_t,
    ) -> Result<Self, Error> {
        if handle.is_null() {
            return Err(Error::Malformed { function, what: "no handle".to_owned() });
        }
        Ok(ComputeInstance { library, handle })
    }

    /// What it is.
    ///
    /// # Errors
    /// The driver's answer; INVALID_ARGUMENT or NOT_FOUND if it is gone.
    pub fn info(&self) -> Result<ComputeInstanceInfo<'lib>, Error> {
        // SAFETY: all-zero is a value of this struct of integers and two pointers.
        let mut info: nvmlComputeInstanceInfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the handle is of this library, and the out pointer is valid for the struct.
        unsafe { call!(self.library, nvmlComputeInstanceGetInfo_v2(self.handle, &mut info)) }?;
        let placement = Placement { start: info.placement.start, size: info.placement.size };
        Ok(ComputeInstanceInfo {
            id: info.id,
            profile_id: info.profileId,
            placement: (placement.size > 0).then_some(placement),
            // SAFETY: the device comes from this library; it is the MIG device's handle (NVIDIA's DRA driver
            // relies on it).
            device: unsafe { Device::of_handle(self.library, info.device) },
        })
    }

    /// Destroys it; the handle answers errors from here on.
    ///
    /// # Errors
    /// The driver's answer: IN_USE while a process is in it.
    pub fn destroy(&self) -> Result<(), Error> {
        // SAFETY: the handle is of this library; if it is stale, the driver answers an error.
        unsafe { call!(self.library, nvmlComputeInstanceDestroy(self.handle)) }
    }
}
