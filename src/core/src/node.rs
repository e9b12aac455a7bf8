//! One immutable snapshot of all that matters here: the driver, the GPUs, their instances, and what could
//! not be read. Taken in one pass by `migd-engine`; nothing that plans asks the driver a question.

use crate::{
    id::{GpuUuid, PciAddress, PciId},
    profile::{GiProfile, Placement, ProfileName},
    reason::Reason,
};
use serde::{Deserialize, Serialize};

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// The driver.
    pub driver: Driver,
    /// The GPUs that answered, by NVML index.
    pub gpus: Vec<Gpu>,
    /// The GPUs that did not, by NVML index.
    pub unavailable: Vec<UnavailableGpu>,
}

/// What the driver says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driver {
    /// The driver's version, `580.95.05`.
    pub version: String,
    /// NVML's version, `13.580.95.05`.
    pub nvml: String,
}

impl Driver {
    /// The driver's branch: the number before the first dot; 0 if it has none.
    pub fn branch(&self) -> u32 {
        self.version.split('.').next().and_then(|n| n.parse().ok()).unwrap_or(0)
    }
}

/// A GPU that is there but cannot be read or worked on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnavailableGpu {
    /// NVML's index.
    pub index: u32,
    /// Its address, if anything knows it.
    pub pci: Option<PciAddress>,
    /// Its UUID, if anything knows it.
    pub uuid: Option<GpuUuid>,
    /// Why.
    pub reason: Reason,
    /// The same for a person.
    pub message: String,
}

/// GPU generations, as far as MIG behaves differently on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Architecture {
    /// A30, A100, A800: a change of MIG mode needs a GPU reset, and the mode survives a reboot.
    Ampere,
    /// Before Ampere, or Ada: no MIG.
    WithoutMig,
    /// Hopper and later: mode changes without a reset, and is lost by a reset or reboot.
    HopperOrLater,
}

/// A GPU that answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// NVML's index at the time of the snapshot: for people, never an identity.
    pub index: u32,
    /// Who it is.
    pub uuid: GpuUuid,
    /// The product's name.
    pub model: String,
    /// Where it sits.
    pub pci: PciAddress,
    /// What it is.
    pub pci_id: PciId,
    /// N in /dev/nvidiaN; not the index.
    pub minor: Option<u32>,
    /// The generation.
    pub architecture: Architecture,
    /// All its memory in MiB.
    pub memory_mib: u64,
    /// MIG mode; absent where the GPU has no MIG.
    pub mig: Option<MigMode>,
    /// The profiles it can be cut into, by slot; empty where it has no MIG.
    pub profiles: Vec<GiProfile>,
    /// Who says so.
    pub profiles_from: ProfileSource,
    /// Its GPU instances, by start; empty while MIG is off.
    pub instances: Vec<GpuInstance>,
}

impl Gpu {
    /// The profile with this id.
    pub fn profile(&self, id: u32) -> Option<&GiProfile> {
        self.profiles.iter().find(|p| p.id == id)
    }

    /// Whether instances can exist now.
    pub fn mig_enabled(&self) -> bool {
        self.mig.is_some_and(|m| m.current)
    }
}

/// Where a GPU's profiles were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileSource {
    /// The driver listed them.
    Driver,
    /// The driver hides them while MIG is off (535 and older); the table has the GPU. What follows is
    /// provisional and is checked again after MIG is on.
    Table,
    /// Neither knows any.
    Nobody,
}

/// MIG mode: `true` is enabled. The two differ only between a change and the reset that realises it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigMode {
    /// What is.
    pub current: bool,
    /// What will be after the next reset.
    pub pending: bool,
}

/// Whether something keeps an instance open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Option<bool>", into = "Option<bool>")]
pub enum InUse {
    /// Nothing does.
    No,
    /// Something does.
    Yes,
    /// Cannot tell; treated as in use.
    Unknown,
}

impl InUse {
    /// Whether it must be left alone.
    pub fn counts(self) -> bool {
        self != InUse::No
    }
}

impl From<Option<bool>> for InUse {
    fn from(value: Option<bool>) -> InUse {
        match value {
            Some(true) => InUse::Yes,
            Some(false) => InUse::No,
            None => InUse::Unknown,
        }
    }
}

impl From<InUse> for Option<bool> {
    fn from(value: InUse) -> Option<bool> {
        match value {
            InUse::Yes => Some(true),
            InUse::No => Some(false),
            InUse::Unknown => None,
        }
    }
}

/// A GPU instance that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuInstance {
    /// The driver's id, unique on the GPU while it lives; says nothing of the start.
    pub id: u32,
    /// The profile id it was made with.
    pub profile_id: u32,
    /// That profile's name.
    pub profile: ProfileName,
    /// Where it lies.
    pub placement: Placement,
    /// Whether anything keeps it or a compute instance in it open.
    pub in_use: InUse,
    /// Processes in it, as NVML lists them; empty also where that cannot be told.
    pub processes: Vec<u32>,
    /// Its compute instances, by id.
    pub compute: Vec<ComputeInstance>,
}

impl GpuInstance {
    /// The slice counts of its compute instances, largest first.
    pub fn split(&self) -> Vec<u32> {
        let mut split: Vec<u32> = self.compute.iter().map(|c| c.slices).collect();
        split.sort_unstable_by(|a, b| b.cmp(a));
        split
    }
}

/// A compute instance that exists: with its GPU instance, a MIG device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComputeInstance {
    /// The driver's id, unique in the GPU instance while it lives.
    pub id: u32,
    /// The compute profile's id.
    pub profile_id: u32,
    /// The MIG device's profile name.
    pub profile: ProfileName,
    /// Compute slices.
    pub slices: u32,
    /// Where in the GPU instance, in compute slices; absent on drivers that do not say.
    pub placement: Option<Placement>,
    /// The MIG device's UUID. It repeats when the same place is cut again, so it identifies nothing over time.
    pub uuid: Option<String>,
    /// Whether anything keeps it open.
    pub in_use: InUse,
}
