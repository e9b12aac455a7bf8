//! What changes on a simulated GPU: plain data, small enough to be copied whole at each read.

use crate::model::{MAX_CIS, MAX_GIS};

/// A compute instance's place in the table of its GPU instance; its index there is its id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct CiState {
    /// 1 while it exists.
    pub live: u32,
    /// Counts up at each creation here: handles carry it, so a stale one is known.
    pub handle: u32,
    /// Index into the compute profiles of the GPU instance's profile.
    pub profile: u32,
    /// First compute slice in the GPU instance.
    pub start: u32,
    /// Number of compute slices.
    pub size: u32,
    /// 1 while marked as in use (`*`).
    pub busy: u32,
}

/// A GPU instance's place in the GPU's table; its index there is its id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct GiState {
    /// 1 while it exists.
    pub live: u32,
    /// Counts up at each creation here.
    pub handle: u32,
    /// Index into the model's profiles.
    pub profile: u32,
    /// First memory slice.
    pub start: u32,
    /// Number of memory slices.
    pub size: u32,
    /// 1 while marked as in use although it has no compute instance (a monitor that holds it).
    pub busy: u32,
    /// Its compute instances.
    pub cis: [CiState; MAX_CIS],
}

impl GiState {
    /// The ids of its compute instances, ascending.
    pub fn live_cis(&self) -> impl Iterator<Item = (u32, &CiState)> {
        (0u32..).zip(self.cis.iter()).filter(|(_, ci)| ci.live != 0)
    }
}

/// One GPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct GpuState {
    /// 1 while MIG is on.
    pub mig_current: u32,
    /// What it will be after the next reset.
    pub mig_pending: u32,
    /// NVML_FEATURE_ENABLED for persistence mode.
    pub persistence: u32,
    /// NVML_COMPUTEMODE_*.
    pub compute_mode: u32,
    /// How long one process computes before the next: 0 default, 1 short, 2 medium, 3 long.
    pub timeslice: u32,
    /// Keeps the words together.
    pub gap: u32,
    /// 1 while something computes on the whole GPU (`off*`, `on*`).
    pub busy: u32,
    /// 1 once it has fallen off the bus.
    pub lost: u32,
    /// Counts instance and mode changes; what MIG configuration events are made from.
    pub changes: u64,
    /// Counts resets, driver reloads and reboots.
    pub resets: u64,
    /// GPU instances by id.
    pub gis: [GiState; MAX_GIS],
}

impl GpuState {
    /// The ids of its GPU instances, ascending.
    pub fn live_gis(&self) -> impl Iterator<Item = (u32, &GiState)> {
        (0u32..).zip(self.gis.iter()).filter(|(_, gi)| gi.live != 0)
    }
}
