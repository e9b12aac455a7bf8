//! What a simulated GPU is, fixed when its node is made: plain data in the mapped state.
//!
//! Everything is `repr(C)`, has no padding that matters, no pointers, and is legal when all bytes are zero.
//! A figure that the table does not know is 0 here and has its bit in `unknown`.

/// The most GPUs on one node (as the minors of MIG capabilities allow).
pub const MAX_GPUS: usize = 32;
/// The most GPU instance profiles of one GPU: one for each value of NVML's enumeration.
pub const MAX_PROFILES: usize = 18;
/// The most compute instance profiles in one GPU instance profile.
pub const MAX_COMPUTE_PROFILES: usize = 9;
/// The most places of one profile.
pub const MAX_PLACES: usize = 8;
/// GPU instance ids are 0 to 14.
pub const MAX_GIS: usize = 15;
/// Compute instance ids are 0 to 7.
pub const MAX_CIS: usize = 8;

/// A text of at most `N` bytes, zero-filled.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Text<const N: usize>([u8; N]);

impl<const N: usize> Text<N> {
    /// The text, cut at `N - 1` bytes if it is longer.
    pub fn new(text: &str) -> Text<N> {
        let mut bytes = [0; N];
        for (to, from) in bytes.iter_mut().take(N.saturating_sub(1)).zip(text.bytes()) {
            *to = from;
        }
        Text(bytes)
    }

    /// The text up to the first zero; damaged text reads as empty.
    pub fn as_str(&self) -> &str {
        let bytes = self.0.split(|b| *b == 0).next().unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

/// One legal place of a profile. For GPU instances in memory slices, for compute instances in compute slices.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Place {
    /// First slice.
    pub start: u32,
    /// Number of slices.
    pub size: u32,
    /// The id that a GPU instance gets here on this board (variants A and B number alike boards
    /// differently); unused for compute instances.
    pub gi_id: u32,
}

/// Engine counts.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Engines {
    /// Copy engines.
    pub copy: u32,
    /// NVDEC.
    pub decoder: u32,
    /// NVENC.
    pub encoder: u32,
    /// JPEG.
    pub jpeg: u32,
    /// Optical flow.
    pub ofa: u32,
}

/// A compute instance profile within a GPU instance profile.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ComputeProfile {
    /// NVML's enumeration value.
    pub slot: u32,
    /// The id that create and list take.
    pub id: u32,
    /// Compute slices.
    pub slices: u32,
    /// How many fit in one empty GPU instance.
    pub max_instances: u32,
    /// Streaming multiprocessors; 0 where unknown.
    pub multiprocessors: u32,
    /// Number of `places` that count.
    pub place_count: u32,
    /// Where it may lie in the GPU instance.
    pub places: [Place; MAX_PLACES],
    /// The name of a MIG device of it, `1c.3g.20gb`.
    pub name: Text<32>,
}

/// A GPU instance profile.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Profile {
    /// NVML's enumeration value.
    pub slot: u32,
    /// The id that create and list take.
    pub id: u32,
    /// Compute slices.
    pub slices: u32,
    /// How many fit on an empty GPU.
    pub max_instances: u32,
    /// Streaming multiprocessors; 0 where unknown.
    pub multiprocessors: u32,
    /// NVML's capability bits (P2P 1, GFX 2).
    pub capabilities: u32,
    /// Memory in MiB; 0 where unknown.
    pub memory_mib: u64,
    /// Engines of its own.
    pub engines: Engines,
    /// Number of `places` that count.
    pub place_count: u32,
    /// Where it may lie.
    pub places: [Place; MAX_PLACES],
    /// Number of `compute` that count.
    pub compute_count: u32,
    /// Non-zero where the table does not know the memory.
    pub memory_unknown: u32,
    /// Compute instance profiles.
    pub compute: [ComputeProfile; MAX_COMPUTE_PROFILES],
    /// The name, `1g.5gb+me`.
    pub name: Text<32>,
}

/// GPU generations by their rules of MIG mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// No MIG at all.
    WithoutMig,
    /// Mode needs a reset; mode is kept over reset and reboot.
    Ampere,
    /// Mode needs no reset; mode is lost by reset and reboot.
    HopperOrLater,
}

/// One GPU of a node.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Model {
    /// Product name as NVML gives it.
    pub name: Text<96>,
    /// Key in the table of GPUs.
    pub key: Text<48>,
    /// `GPU-…`.
    pub uuid: Text<48>,
    /// Board serial number.
    pub serial: Text<32>,
    /// PCI domain.
    pub domain: u32,
    /// PCI bus.
    pub bus: u32,
    /// PCI device.
    pub device: u32,
    /// NVML's pciDeviceId: device id << 16 | 0x10DE.
    pub pci_device_id: u32,
    /// NVML's pciSubSystemId.
    pub pci_subsystem_id: u32,
    /// N of /dev/nvidiaN.
    pub minor: u32,
    /// See [`Family`]: 0 without MIG, 1 Ampere, 2 Hopper and later.
    pub family: u32,
    /// NVML_DEVICE_ARCH_*.
    pub architecture: u32,
    /// NVML_BRAND_*.
    pub brand: u32,
    /// CUDA compute capability, major.
    pub compute_major: u32,
    /// CUDA compute capability, minor.
    pub compute_minor: u32,
    /// Non-zero: a workstation board whose MIG reads NOT_SUPPORTED until it is switched to compute mode.
    pub display_mode: u32,
    /// Streaming multiprocessors of the whole GPU; 0 where unknown.
    pub multiprocessors: u32,
    /// Compute slices of the whole GPU.
    pub compute_slices: u32,
    /// All memory in MiB.
    pub memory_mib: u64,
    /// Seed of MIG UUIDs: stands for the chip id and the board's PDI.
    pub board_seed: u64,
    /// NUMA node.
    pub numa_node: u32,
    /// Number of `profiles` that count.
    pub profile_count: u32,
    /// NVLinks that lead to an NVSwitch.
    pub links: u32,
    /// Keeps what follows aligned.
    pub gap: u32,
    /// GPU instance profiles, by slot.
    pub profiles: [Profile; MAX_PROFILES],
}

impl Model {
    /// How MIG mode behaves here.
    pub fn family(&self) -> Family {
        match self.family {
            1 => Family::Ampere,
            2 => Family::HopperOrLater,
            _ => Family::WithoutMig,
        }
    }

    /// The profiles that count.
    pub fn profiles(&self) -> &[Profile] {
        self.profiles.get(..self.profile_count as usize).unwrap_or_default()
    }
}

impl Profile {
    /// The places that count.
    pub fn places(&self) -> &[Place] {
        self.places.get(..self.place_count as usize).unwrap_or_default()
    }

    /// The compute profiles that count.
    pub fn compute(&self) -> &[ComputeProfile] {
        self.compute.get(..self.compute_count as usize).unwrap_or_default()
    }
}

impl ComputeProfile {
    /// The places that count.
    pub fn places(&self) -> &[Place] {
        self.places.get(..self.place_count as usize).unwrap_or_default()
    }
}
