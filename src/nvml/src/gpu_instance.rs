//! GPU instances: creating, finding, destroying.

use crate::{
    compute_instance::ComputeInstance,
    device::Device,
    error::{Error, call},
    library::Library,
};
use migd_core::profile::Placement;
use nvml_wrapper_sys::bindings::{
    nvmlComputeInstance_t, nvmlComputeInstancePlacement_t, nvmlComputeInstanceProfileInfo_t,
    nvmlGpuInstance_t, nvmlGpuInstanceInfo_t, nvmlGpuInstancePlacement_t,
};

/// Room for more instances than a GPU, or a GPU instance, can have: the list calls write as many as there are
/// and are not told how much room there is, and the profile's own instance count is not reliable.
const ROOM: usize = 128;

/// A GPU instance.
#[derive(Debug)]
pub struct GpuInstance<'lib> {
    library: &'lib Library,
    handle: nvmlGpuInstance_t,
}

/// What it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuInstanceInfo {
    /// Its id, unique on the GPU while it lives.
    pub id: u32,
    /// The profile id it was made with.
    pub profile_id: u32,
    /// Where it lies, in memory slices.
    pub placement: Placement,
}

/// A compute instance profile of one GPU instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComputeProfileInfo {
    /// The id that create and list calls take.
    pub id: u32,
    /// Compute slices.
    pub slices: u32,
    /// How many fit in an empty GPU instance.
    pub max_instances: u32,
}

impl<'lib> Device<'lib> {
    /// The instances with this profile id.
    ///
    /// # Errors
    /// The driver's answer; NOT_SUPPORTED while MIG is off, NO_PERMISSION for others than root.
    pub fn gpu_instances(&self, profile_id: u32) -> Result<Vec<GpuInstance<'lib>>, Error> {
        let function = "nvmlDeviceGetGpuInstances";
        let mut handles: [nvmlGpuInstance_t; ROOM] = [std::ptr::null_mut(); ROOM];
        let mut count = 0;
        // SAFETY: the handle is of this library. The call writes one handle for each instance of the profile;
        // a GPU has at most 15 instance ids, an eighth of the room.
        unsafe {
            call!(
                self.library(),
                nvmlDeviceGetGpuInstances(self.handle(), profile_id, handles.as_mut_ptr(), &mut count)
            )
        }?;
        let found = handles.get(..count as usize).ok_or_else(|| too_many(function, count))?;
        found.iter().map(|handle| GpuInstance::new(function, self.library(), *handle)).collect()
    }

    /// The instance with this id.
    ///
    /// # Errors
    /// The driver's answer; NOT_FOUND if there is none.
    pub fn gpu_instance(&self, id: u32) -> Result<GpuInstance<'lib>, Error> {
        let mut handle: nvmlGpuInstance_t = std::ptr::null_mut();
        // SAFETY: the handle is of this library, and the out pointer is valid for an nvmlGpuInstance_t.
        unsafe { call!(self.library(), nvmlDeviceGetGpuInstanceById(self.handle(), id, &mut handle)) }?;
        GpuInstance::new("nvmlDeviceGetGpuInstanceById", self.library(), handle)
    }

    /// Creates an instance at exactly this place.
    ///
    /// # Errors
    /// The driver's answer: INSUFFICIENT_RESOURCES also for a place that is taken; IN_USE for the first instance
    /// on Hopper and later while something computes on the GPU.
    pub fn create_gpu_instance(
        &self,
        profile_id: u32,
        placement: Placement,
    ) -> Result<GpuInstance<'lib>, Error> {
        let place = nvmlGpuInstancePlacement_t { start: placement.start, size: placement.size };
        let mut handle: nvmlGpuInstance_t = std::ptr::null_mut();
        // SAFETY: the handle is of this library; `place` is read during the call, the out pointer is valid.
        unsafe {
            call!(
                self.library(),
                nvmlDeviceCreateGpuInstanceWithPlacement(self.handle(), profile_id, &place, &mut handle)
            )
        }?;
        GpuInstance::new("nvmlDeviceCreateGpuInstanceWithPlacement", self.library(), handle)
    }
}

impl<'lib> GpuInstance<'lib> {
    fn new(function: &'static str, library: &'lib Library, handle: nvmlGpuInstance_t) -> Result<Self, Error> {
        if handle.is_null() {
            return Err(Error::Malformed { function, what: "no handle".to_owned() });
        }
        Ok(GpuInstance { library, handle })
    }

    /// What it is.
    ///
    /// # Errors
    /// The driver's answer; INVALID_ARGUMENT or NOT_FOUND if it is gone.
    pub fn info(&self) -> Result<GpuInstanceInfo, Error> {
        // SAFETY: all-zero is a value of this struct of integers and one pointer.
        let mut info: nvmlGpuInstanceInfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the handle is of this library, and the out pointer is valid for the struct.
        unsafe { call!(self.library, nvmlGpuInstanceGetInfo(self.handle, &mut info)) }?;
        let placement = Placement { start: info.placement.start, size: info.placement.size };
        Ok(GpuInstanceInfo { id: info.id, profile_id: info.profileId, placement })
    }

    /// Destroys it; the handle answers errors from here on.
    ///
    /// # Errors
    /// The driver's answer: IN_USE while it has a compute instance or a client.
    pub fn destroy(&self) -> Result<(), Error> {
        // SAFETY: the handle is of this library; if it is stale, the driver answers an error.
        unsafe { call!(self.library, nvmlGpuInstanceDestroy(self.handle)) }
    }

    /// The compute profile in this slot (NVML_COMPUTE_INSTANCE_PROFILE_*), with shared engines.
    ///
    /// # Errors
    /// The driver's answer; NOT_SUPPORTED for a slot that this instance lacks, INVALID_ARGUMENT past the last.
    pub fn compute_profile(&self, slot: u32) -> Result<ComputeProfileInfo, Error> {
        // SAFETY: all-zero is a value of this struct of integers.
        let mut info: nvmlComputeInstanceProfileInfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the handle is of this library, and the out pointer is valid for the struct. 0 is
        // NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, the only engine profile there is.
        unsafe {
            call!(self.library, nvmlGpuInstanceGetComputeInstanceProfileInfo(self.handle, slot, 0, &mut info))
        }?;
        Ok(ComputeProfileInfo { id: info.id, slices: info.sliceCount, max_instances: info.instanceCount })
    }

    /// Where compute instances of a profile may lie, in compute slices of this instance.
    ///
    /// # Errors
    /// [`Error::Missing`] before R525; else the driver's answer.
    pub fn compute_placements(&self, profile_id: u32) -> Result<Vec<Placement>, Error> {
        let function = "nvmlGpuInstanceGetComputeInstancePossiblePlacements";
        let mut count = 0;
        // SAFETY: the handle is of this library; NULL asks for the count alone (nvml.h).
        unsafe {
            call!(
                self.library,
                nvmlGpuInstanceGetComputeInstancePossiblePlacements(
                    self.handle,
                    profile_id,
                    std::ptr::null_mut(),
                    &mut count
                )
            )
        }?;
        if count as usize > ROOM {
            return Err(too_many(function, count));
        }
        let mut buffer = [nvmlComputeInstancePlacement_t { start: 0, size: 0 }; ROOM];
        // SAFETY: as above; the buffer has room for more than the driver just counted.
        unsafe {
            call!(
                self.library,
                nvmlGpuInstanceGetComputeInstancePossiblePlacements(
                    self.handle,
                    profile_id,
                    buffer.as_mut_ptr(),
                    &mut count
                )
            )
        }?;
        let placement = |p: &nvmlComputeInstancePlacement_t| Placement { start: p.start, size: p.size };
        Ok(buffer.iter().take(count as usize).map(placement).collect())
    }

    /// The compute instances with this profile id.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn compute_instances(&self, profile_id: u32) -> Result<Vec<ComputeInstance<'lib>>, Error> {
        let function = "nvmlGpuInstanceGetComputeInstances";
        let mut handles: [nvmlComputeInstance_t; ROOM] = [std::ptr::null_mut(); ROOM];
        let mut count = 0;
        // SAFETY: the handle is of this library. The call writes one handle for each compute instance of the
        // profile; an instance has at most 8, a sixteenth of the room.
        unsafe {
            call!(
                self.library,
                nvmlGpuInstanceGetComputeInstances(self.handle, profile_id, handles.as_mut_ptr(), &mut count)
            )
        }?;
        let found = handles.get(..count as usize).ok_or_else(|| too_many(function, count))?;
        found.iter().map(|handle| ComputeInstance::new(function, self.library, *handle)).collect()
    }

    /// The compute instance with this id.
    ///
    /// # Errors
    /// The driver's answer; NOT_FOUND if there is none.
    pub fn compute_instance(&self, id: u32) -> Result<ComputeInstance<'lib>, Error> {
        let mut handle: nvmlComputeInstance_t = std::ptr::null_mut();
        // SAFETY: the handle is of this library, and the out pointer is valid for an nvmlComputeInstance_t.
        unsafe { call!(self.library, nvmlGpuInstanceGetComputeInstanceById(self.handle, id, &mut handle)) }?;
        ComputeInstance::new("nvmlGpuInstanceGetComputeInstanceById", self.library, handle)
    }

    /// How many compute instances of a profile could be created now.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn remaining_compute_capacity(&self, profile_id: u32) -> Result<u32, Error> {
        let mut count = 0;
        // SAFETY: the handle is of this library, and the out pointer is valid for a c_uint.
        unsafe {
            call!(
                self.library,
                nvmlGpuInstanceGetComputeInstanceRemainingCapacity(self.handle, profile_id, &mut count)
            )
        }?;
        Ok(count)
    }

    /// Creates a compute instance: at exactly this place, in compute slices, or where the driver likes.
    ///
    /// # Errors
    /// [`Error::Missing`] for a place on drivers before R525; else the driver's answer.
    pub fn create_compute_instance(
        &self,
        profile_id: u32,
        placement: Option<Placement>,
    ) -> Result<ComputeInstance<'lib>, Error> {
        let mut handle: nvmlComputeInstance_t = std::ptr::null_mut();
        let Some(placement) = placement else {
            // SAFETY: the handle is of this library, and the out pointer is valid.
            unsafe {
                call!(
                    self.library,
                    nvmlGpuInstanceCreateComputeInstance(self.handle, profile_id, &mut handle)
                )
            }?;
            return ComputeInstance::new("nvmlGpuInstanceCreateComputeInstance", self.library, handle);
        };
        let place = nvmlComputeInstancePlacement_t { start: placement.start, size: placement.size };
        // SAFETY: the handle is of this library; `place` is read during the call, the out pointer is valid.
        unsafe {
            call!(
                self.library,
                nvmlGpuInstanceCreateComputeInstanceWithPlacement(
                    self.handle,
                    profile_id,
                    &place,
                    &mut handle
                )
            )
        }?;
        ComputeInstance::new("nvmlGpuInstanceCreateComputeInstanceWithPlacement", self.library, handle)
    }
}

fn too_many(function: &'static str, count: u32) -> Error {
    Error::Malformed { function, what: format!("a count of {count}") }
}
