//! GPU instance profiles: what a GPU can be cut into, as its driver says.

use crate::{
    device::{Device, version_word},
    error::{Code, Error, call},
    text,
};
use migd_core::profile::{Engines, Placement, ProfileName};
use nvml_wrapper_sys::bindings::{
    nvmlGpuInstancePlacement_t, nvmlGpuInstanceProfileInfo_t, nvmlGpuInstanceProfileInfo_v2_t,
    nvmlGpuInstanceProfileInfo_v3_t,
};

/// Room for the placements of one profile; today's boards have at most seven.
const ROOM: usize = 256;

/// Which struct the driver's profile information comes in. Newer ones carry the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProfileVersion {
    /// nvmlGpuInstanceProfileInfo_t, every driver with MIG.
    V1,
    /// nvmlGpuInstanceProfileInfo_v2_t.
    V2,
    /// nvmlGpuInstanceProfileInfo_v3_t.
    V3,
}

impl ProfileVersion {
    /// From the one with most to the one that every driver has.
    pub const NEWEST_FIRST: [ProfileVersion; 3] =
        [ProfileVersion::V3, ProfileVersion::V2, ProfileVersion::V1];
}

/// A profile as the driver describes it; zero where it does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileInfo {
    /// The id that create, list and capacity calls take; not the slot.
    pub id: u32,
    /// Compute slices.
    pub slices: u32,
    /// How many fit on an empty GPU, as the driver says.
    pub max_instances: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Engines of its own.
    pub engines: Engines,
    /// The driver's name, if it gives one that can be read.
    pub name: Option<ProfileName>,
}

/// Reads a name as drivers write it: `1g.5gb`, `MIG 1g.5gb`.
pub fn parse_profile_name(text: &str) -> Option<ProfileName> {
    let text = text.trim();
    text.strip_prefix("MIG ").unwrap_or(text).trim().parse().ok()
}

impl Device<'_> {
    /// The profile in this slot (NVML_GPU_INSTANCE_PROFILE_*), by one version of the struct.
    ///
    /// # Errors
    /// INVALID_ARGUMENT past the driver's last slot, and from some drivers for a struct version that they do
    /// not know (others answer ARGUMENT_VERSION_MISMATCH); NOT_SUPPORTED for a slot that this GPU lacks, and for
    /// all of them from drivers up to 535 while MIG is off.
    pub fn profile_info(&self, slot: u32, version: ProfileVersion) -> Result<ProfileInfo, Error> {
        match version {
            ProfileVersion::V3 => {
                // SAFETY: all-zero is a value of this struct of integers.
                let mut info: nvmlGpuInstanceProfileInfo_v3_t = unsafe { std::mem::zeroed() };
                info.version = version_word::<nvmlGpuInstanceProfileInfo_v3_t>(3);
                let into = (&raw mut info).cast::<nvmlGpuInstanceProfileInfo_v2_t>();
                // SAFETY: the handle is of this library. The version word tells the driver which layout the
                // pointer has; v3 is exactly as large as v2, and the driver writes by the version word.
                unsafe {
                    call!(self.library(), nvmlDeviceGetGpuInstanceProfileInfoV(self.handle(), slot, into))
                }?;
                Ok(of_v3(&info))
            }
            ProfileVersion::V2 => {
                // SAFETY: all-zero is a value of this struct of integers.
                let mut info: nvmlGpuInstanceProfileInfo_v2_t = unsafe { std::mem::zeroed() };
                info.version = version_word::<nvmlGpuInstanceProfileInfo_v2_t>(2);
                // SAFETY: the handle is of this library, and the struct carries its own version word.
                unsafe {
                    call!(
                        self.library(),
                        nvmlDeviceGetGpuInstanceProfileInfoV(self.handle(), slot, &mut info)
                    )
                }?;
                Ok(of_v2(&info))
            }
            ProfileVersion::V1 => {
                // SAFETY: all-zero is a value of this struct of integers.
                let mut info: nvmlGpuInstanceProfileInfo_t = unsafe { std::mem::zeroed() };
                // SAFETY: the handle is of this library, and this call takes no other layout.
                unsafe {
                    call!(self.library(), nvmlDeviceGetGpuInstanceProfileInfo(self.handle(), slot, &mut info))
                }?;
                Ok(of_v1(&info))
            }
        }
    }

    /// The profile with this id, on drivers that can be asked so (R580 and later).
    ///
    /// # Errors
    /// [`Error::Missing`] on older drivers; else the driver's answer.
    pub fn profile_info_by_id(&self, id: u32) -> Result<ProfileInfo, Error> {
        // SAFETY: all-zero is a value of this struct of integers.
        let mut info: nvmlGpuInstanceProfileInfo_v3_t = unsafe { std::mem::zeroed() };
        info.version = version_word::<nvmlGpuInstanceProfileInfo_v3_t>(3);
        let into = (&raw mut info).cast::<nvmlGpuInstanceProfileInfo_v2_t>();
        // SAFETY: the handle is of this library; the version word tells the driver the pointer's layout, which
        // is exactly as large as the declared one.
        unsafe { call!(self.library(), nvmlDeviceGetGpuInstanceProfileInfoByIdV(self.handle(), id, into)) }?;
        Ok(of_v3(&info))
    }

    /// Where instances of a profile may lie, in memory slices: on an empty GPU, whatever is there now.
    ///
    /// # Errors
    /// The driver's answer; NO_PERMISSION for others than root.
    pub fn possible_placements(&self, profile_id: u32) -> Result<Vec<Placement>, Error> {
        let function = "nvmlDeviceGetGpuInstancePossiblePlacements_v2";
        let mut buffer = [nvmlGpuInstancePlacement_t { start: 0, size: 0 }; ROOM];
        let mut count = u32::try_from(ROOM).unwrap_or_default();
        let (library, handle, into) = (self.library(), self.handle(), buffer.as_mut_ptr());
        // SAFETY: the handle is of this library. The call writes every placement of the profile and takes the
        // room for granted; there is room for far more than the kernel's own structure holds (8). Asking for
        // the count first, as the header offers, would double the calls and prove no more.
        let newest = unsafe {
            call!(
                library,
                nvmlDeviceGetGpuInstancePossiblePlacements_v2(handle, profile_id, into, &mut count)
            )
        };
        match newest {
            // SAFETY: as above; the older call differs only in that it cannot be asked for the count.
            Err(error) if error.is_absent() => unsafe {
                call!(
                    library,
                    nvmlDeviceGetGpuInstancePossiblePlacements(handle, profile_id, into, &mut count)
                )
            },
            answer => answer,
        }?;
        let found = buffer
            .get(..count as usize)
            .ok_or_else(|| Error::Malformed { function, what: format!("a count of {count} placements") })?;
        let placement = |p: &nvmlGpuInstancePlacement_t| Placement { start: p.start, size: p.size };
        Ok(found.iter().map(placement).collect())
    }

    /// How many instances of a profile could be created now.
    ///
    /// # Errors
    /// The driver's answer; NOT_SUPPORTED while MIG is off.
    pub fn remaining_capacity(&self, profile_id: u32) -> Result<u32, Error> {
        let mut count = 0;
        // SAFETY: the handle is of this library, and the out pointer is valid for a c_uint.
        unsafe {
            call!(
                self.library(),
                nvmlDeviceGetGpuInstanceRemainingCapacity(self.handle(), profile_id, &mut count)
            )
        }?;
        Ok(count)
    }
}

impl Error {
    /// Whether this may mean that the driver does not know the struct version that was used, so that an older
    /// one is to be tried. It may mean as well that the driver does not know the slot, or the GPU lacks it.
    pub fn may_be_version(&self) -> bool {
        self.is_absent() || self.is(Code::INVALID_ARGUMENT) || self.is(Code::ARGUMENT_VERSION_MISMATCH)
    }
}

fn of_v1(info: &nvmlGpuInstanceProfileInfo_t) -> ProfileInfo {
    ProfileInfo {
        id: info.id,
        slices: info.sliceCount,
        max_instances: info.instanceCount,
        memory_mib: info.memorySizeMB,
        multiprocessors: info.multiprocessorCount,
        engines: Engines {
            copy: info.copyEngineCount,
            decoder: info.decoderCount,
            encoder: info.encoderCount,
            jpeg: info.jpegCount,
            ofa: info.ofaCount,
        },
        name: None,
    }
}

fn of_v2(info: &nvmlGpuInstanceProfileInfo_v2_t) -> ProfileInfo {
    ProfileInfo {
        id: info.id,
        slices: info.sliceCount,
        max_instances: info.instanceCount,
        memory_mib: info.memorySizeMB,
        multiprocessors: info.multiprocessorCount,
        engines: Engines {
            copy: info.copyEngineCount,
            decoder: info.decoderCount,
            encoder: info.encoderCount,
            jpeg: info.jpegCount,
            ofa: info.ofaCount,
        },
        name: text::of_buffer(&info.name).as_deref().and_then(parse_profile_name),
    }
}

fn of_v3(info: &nvmlGpuInstanceProfileInfo_v3_t) -> ProfileInfo {
    ProfileInfo {
        id: info.id,
        slices: info.sliceCount,
        max_instances: info.instanceCount,
        memory_mib: info.memorySizeMB,
        multiprocessors: info.multiprocessorCount,
        engines: Engines {
            copy: info.copyEngineCount,
            decoder: info.decoderCount,
            encoder: info.encoderCount,
            jpeg: info.jpegCount,
            ofa: info.ofaCount,
        },
        name: text::of_buffer(&info.name).as_deref().and_then(parse_profile_name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_with_and_without_the_word_mig() {
        for text in ["1g.5gb+me", "MIG 1g.5gb+me", " MIG 1g.5gb+me "] {
            assert_eq!(parse_profile_name(text).unwrap().to_string(), "1g.5gb+me");
        }
        assert_eq!(parse_profile_name(""), None);
        assert_eq!(parse_profile_name("something new"), None);
    }
}
