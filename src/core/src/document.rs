//! The documents that programs read: status, layouts, errors. A plan is its own document.

use crate::{
    diagnostic::Diagnostic,
    id::{GpuUuid, PciAddress},
    layout::LayoutFile,
    node::{Driver, Gpu, InUse, MigMode, Node, UnavailableGpu},
    profile::ProfileName,
    reason::Reason,
};
use serde::{Deserialize, Serialize};

/// The format word of [`Status`].
pub const STATUS: &str = "migd-status/1";
/// The format word of [`Layouts`].
pub const LAYOUTS: &str = "migd-layouts/1";
/// The format word of [`Failure`].
pub const ERROR: &str = "migd-error/1";

/// A node as `status --json` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// [`STATUS`].
    pub format: String,
    /// The driver.
    pub driver: Driver,
    /// The GPUs that answered, by NVML index.
    pub gpus: Vec<StatusGpu>,
    /// The GPUs that did not.
    pub unavailable: Vec<UnavailableGpu>,
}

/// One GPU of [`Status`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusGpu {
    /// NVML's index.
    pub index: u32,
    /// Which GPU.
    pub uuid: GpuUuid,
    /// The product's name.
    pub model: String,
    /// Where it sits.
    pub pci: PciAddress,
    /// N in /dev/nvidiaN.
    pub minor: Option<u32>,
    /// All its memory in MiB.
    pub memory_mib: u64,
    /// MIG mode; null where the GPU has no MIG.
    pub mig: Option<StatusMode>,
    /// The profiles that the GPU can be cut into, by name.
    pub profiles: Vec<ProfileName>,
    /// Its GPU instances, by start.
    pub instances: Vec<StatusInstance>,
}

/// MIG mode in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusMode {
    /// `enabled` or `disabled`.
    pub current: String,
    /// The same, after the next reset.
    pub pending: String,
}

/// A GPU instance of [`StatusGpu`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusInstance {
    /// The profile's name.
    pub profile: ProfileName,
    /// Its id.
    pub profile_id: u32,
    /// The GPU instance's id.
    pub gi: u32,
    /// First memory slice.
    pub start: u32,
    /// Memory slices.
    pub size: u32,
    /// Whether anything keeps it open; null: cannot tell, which counts as in use.
    pub in_use: InUse,
    /// Processes in it.
    pub processes: Vec<u32>,
    /// Its compute instances, by id.
    pub compute: Vec<StatusCompute>,
}

/// A compute instance of [`StatusInstance`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusCompute {
    /// The MIG device's profile name.
    pub profile: ProfileName,
    /// The compute instance's id.
    pub ci: u32,
    /// Compute slices.
    pub slices: u32,
    /// The MIG device's UUID.
    pub uuid: Option<String>,
    /// As for the GPU instance.
    pub in_use: InUse,
}

impl From<MigMode> for StatusMode {
    fn from(mode: MigMode) -> StatusMode {
        let word = |on| if on { "enabled" } else { "disabled" }.to_owned();
        StatusMode { current: word(mode.current), pending: word(mode.pending) }
    }
}

impl From<&Gpu> for StatusGpu {
    fn from(gpu: &Gpu) -> StatusGpu {
        let instances = gpu.instances.iter().map(|instance| StatusInstance {
            profile: instance.profile,
            profile_id: instance.profile_id,
            gi: instance.id,
            start: instance.placement.start,
            size: instance.placement.size,
            in_use: instance.in_use,
            processes: instance.processes.clone(),
            compute: instance
                .compute
                .iter()
                .map(|compute| StatusCompute {
                    profile: compute.profile,
                    ci: compute.id,
                    slices: compute.slices,
                    uuid: compute.uuid.clone(),
                    in_use: compute.in_use,
                })
                .collect(),
        });
        StatusGpu {
            index: gpu.index,
            uuid: gpu.uuid.clone(),
            model: gpu.model.clone(),
            pci: gpu.pci,
            minor: gpu.minor,
            memory_mib: gpu.memory_mib,
            mig: gpu.mig.map(StatusMode::from),
            profiles: gpu.profiles.iter().map(|p| p.name).collect(),
            instances: instances.collect(),
        }
    }
}

impl Status {
    /// The document of this node.
    pub fn of(node: &Node) -> Status {
        Status {
            format: STATUS.to_owned(),
            driver: node.driver.clone(),
            gpus: node.gpus.iter().map(StatusGpu::from).collect(),
            unavailable: node.unavailable.clone(),
        }
    }
}

/// The layouts of a file as `layouts --json` shows them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layouts {
    /// [`LAYOUTS`].
    pub format: String,
    /// The layouts, in the order of the file.
    pub layouts: Vec<ListedLayout>,
}

/// One layout of [`Layouts`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedLayout {
    /// Its name.
    pub name: String,
    /// The file that it stands in.
    pub file: String,
    /// The line of its name.
    pub line: u64,
    /// The number of its rules.
    pub rules: usize,
}

impl Layouts {
    /// The document of this file.
    pub fn of(file: &LayoutFile) -> Layouts {
        let layouts = file.layouts.iter().map(|layout| ListedLayout {
            name: layout.name.clone(),
            file: layout.place.file.clone(),
            line: layout.place.line,
            rules: layout.rules.len(),
        });
        Layouts { format: LAYOUTS.to_owned(), layouts: layouts.collect() }
    }
}

/// An error as every command with `--json` gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// [`ERROR`].
    pub format: String,
    /// The reason that decides the exit code.
    pub reason: Reason,
    /// The same for a person.
    pub message: String,
    /// Every fault found.
    pub details: Vec<Diagnostic>,
}

impl Failure {
    /// The document of these faults: the reason is that of the first error among the gravest.
    pub fn of(details: Vec<Diagnostic>) -> Failure {
        let errors = || details.iter().filter(|d| d.severity == crate::diagnostic::Severity::Error);
        let exit = crate::reason::Exit::of_all(errors().map(|d| d.reason.exit()));
        let first = errors().find(|d| d.reason.exit() == exit);
        let (reason, message) = first
            .map(|d| (d.reason, d.message.clone()))
            .unwrap_or((Reason::Internal, "failed without a reason".to_owned()));
        Failure { format: ERROR.to_owned(), reason, message, details }
    }
}
