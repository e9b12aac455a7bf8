//! What each driver branch can do (ages of the API from nvml.h's history).

/// A driver version, and with it the limits of its branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Driver {
    /// 580 of 580.95.05.
    pub branch: u32,
    /// 95 of 580.95.05.
    pub minor: u32,
}

impl Driver {
    /// Reads `580.95.05`; what is no number counts as the newest, so a made-up version hides nothing.
    pub fn new(version: &str) -> Driver {
        let mut parts = version.split('.').map(|part| part.parse().ok());
        let branch = parts.next().flatten().unwrap_or(999);
        Driver { branch, minor: parts.next().flatten().unwrap_or(0) }
    }

    /// NVML_GPU_INSTANCE_PROFILE_COUNT of its header: a greater value is an invalid argument.
    pub fn gi_slots(self) -> u32 {
        match self.branch {
            // +me (7) came with 470.
            ..470 => 7,
            // Double memory (9) and 2g+me (8) with 525.
            470..525 => 8,
            525..570 => 10,
            570..575 => 13,
            575..595 => 17,
            // 0x12 was counted on 596.36.
            595.. => 18,
        }
    }

    /// NVML_COMPUTE_INSTANCE_PROFILE_COUNT of its header.
    pub fn ci_slots(self) -> u32 {
        match self.branch {
            ..525 => 7,
            525..610 => 8,
            610.. => 9,
        }
    }

    /// Whether profiles and placements can be read while MIG is off (not up to 535).
    pub fn lists_profiles_with_mig_off(self) -> bool {
        self.branch > 535
    }

    /// nvmlDeviceCreateGpuInstanceWithPlacement.
    pub fn places_gis(self) -> bool {
        self.branch >= 460
    }

    /// nvmlDeviceGetGpuInstancePossiblePlacements_v2.
    pub fn placements_v2(self) -> bool {
        self.branch >= 470
    }

    /// nvmlDeviceGetGpuInstanceProfileInfoV and the other versioned profile structs.
    pub fn versioned_profiles(self) -> bool {
        self.branch >= 510
    }

    /// Compute instances with a placement, and their list.
    pub fn places_cis(self) -> bool {
        self.branch >= 525
    }

    /// nvmlDeviceGetGpuInstanceProfileInfoByIdV.
    pub fn profiles_by_id(self) -> bool {
        self.branch >= 580
    }

    /// 4g and 3g on one A100.
    pub fn four_beside_three(self) -> bool {
        self.branch >= 510
    }

    /// Field ids from 251 on were numbered anew by 580.82.
    pub fn has_new_field_ids(self) -> bool {
        (self.branch, self.minor) >= (580, 82)
    }

    /// `MIG-<uuid>` rather than `MIG-GPU-<uuid>/<gi>/<ci>`: from 470.42 on.
    pub fn new_mig_uuids(self) -> bool {
        (self.branch, self.minor) >= (470, 42)
    }
}
