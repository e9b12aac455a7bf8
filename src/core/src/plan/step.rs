//! The steps of a plan: one driver call each (a reset apart), with what undoes it and how long it may take.

use crate::profile::{Placement, ProfileName};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A compute instance as a plan speaks of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ComputeSpec {
    /// Compute slices.
    pub slices: u32,
    /// Where in the GPU instance, in compute slices; absent: wherever the driver puts it.
    pub placement: Option<Placement>,
}

/// A GPU instance with its compute instances as a plan speaks of it: by profile and place, not by id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InstanceSpec {
    /// Where it lies.
    pub placement: Placement,
    /// The driver's profile id.
    pub profile_id: u32,
    /// The profile's name.
    pub profile: ProfileName,
    /// Its compute instances, largest first.
    pub compute: Vec<ComputeSpec>,
}

/// One thing to do to one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Action {
    /// Set MIG mode. Before: no instance exists when it goes off. After: the pending mode is `enabled`; the
    /// current one too, unless a reset is due.
    SetMode {
        /// On or off.
        enabled: bool,
    },
    /// Reset the GPU if its pending mode still differs from its current one, else nothing. After: they agree.
    ResetIfPending,
    /// Destroy one compute instance.
    DestroyCompute {
        /// The GPU instance that it is in.
        instance: Placement,
        /// Which, by size and place.
        compute: ComputeSpec,
    },
    /// Destroy one GPU instance, which has no compute instance any more.
    DestroyInstance {
        /// Where it lies.
        placement: Placement,
        /// Its profile id.
        profile_id: u32,
        /// Its profile's name.
        profile: ProfileName,
    },
    /// Create one GPU instance, without compute instances.
    CreateInstance {
        /// Where.
        placement: Placement,
        /// The profile id.
        profile_id: u32,
        /// The profile's name.
        profile: ProfileName,
    },
    /// Create one compute instance.
    CreateCompute {
        /// The GPU instance that it goes in.
        instance: Placement,
        /// Size and place.
        compute: ComputeSpec,
    },
}

impl Action {
    /// What undoes it; nothing undoes a reset.
    pub fn undo(&self) -> Option<Action> {
        Some(match self.clone() {
            Action::SetMode { enabled } => Action::SetMode { enabled: !enabled },
            Action::ResetIfPending => return None,
            Action::DestroyCompute { instance, compute } => Action::CreateCompute { instance, compute },
            Action::CreateCompute { instance, compute } => Action::DestroyCompute { instance, compute },
            Action::DestroyInstance { placement, profile_id, profile } => {
                Action::CreateInstance { placement, profile_id, profile }
            }
            Action::CreateInstance { placement, profile_id, profile } => {
                Action::DestroyInstance { placement, profile_id, profile }
            }
        })
    }
}

/// What is being done, in words: `creating 3g.20gb at 4:4`.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::SetMode { enabled: true } => f.write_str("turning MIG on"),
            Action::SetMode { enabled: false } => f.write_str("turning MIG off"),
            Action::ResetIfPending => f.write_str("resetting the GPU"),
            Action::DestroyCompute { instance, compute } => {
                write!(f, "destroying a compute instance of {} slices at {instance}", compute.slices)
            }
            Action::CreateCompute { instance, compute } => {
                write!(f, "creating a compute instance of {} slices at {instance}", compute.slices)
            }
            Action::DestroyInstance { placement, profile, .. } => {
                write!(f, "destroying {profile} at {placement}")
            }
            Action::CreateInstance { placement, profile, .. } => {
                write!(f, "creating {profile} at {placement}")
            }
        }
    }
}

/// One step: what, and how long it may take before the worker counts as hung.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What to do.
    #[serde(flatten)]
    pub action: Action,
    /// The bound in milliseconds.
    pub limit_ms: u64,
}
