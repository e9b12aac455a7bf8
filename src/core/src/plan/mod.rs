//! What is to be done to a node, as data: immutable, serialisable, and exact enough that carrying it out
//! needs no further choice.
//!
//! ```text
//! Target + Node --make--> Plan --audit(Node)--> notes     (audit shares no code with make)
//!                           |
//!                           +--engine::apply--> Outcome
//! ```
//!
//! A plan names each GPU by UUID and each instance by placement, says what it keeps, destroys, creates and
//! resets, and carries per GPU a fingerprint of what it was made from. Steps of one GPU are strictly ordered;
//! GPUs do not depend on each other.

mod audit;
mod fingerprint;
mod make;
mod pack;
mod refuse;
mod search;
mod split;
mod step;

#[cfg(test)]
mod tests;

pub use audit::audit;
pub use fingerprint::gpu_fingerprint;
pub use make::{Policy, make};
pub(crate) use refuse::{holder, pins};
pub use step::{Action, ComputeSpec, InstanceSpec, Step};

use crate::{
    diagnostic::Diagnostic,
    id::{GpuUuid, PciAddress},
    node::MigMode,
};
use serde::{Deserialize, Serialize};

/// The format word that every plan carries.
pub const FORMAT: &str = "migd-plan/1";

/// A plan for one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// [`FORMAT`].
    pub format: String,
    /// The layout's name.
    pub layout: String,
    /// Hash over the fingerprints of the GPUs: changes when anything does that the plan rests on.
    pub fingerprint: String,
    /// The totals.
    pub summary: Summary,
    /// One entry for each GPU that the layout names, by index; those with nothing to do too.
    pub gpus: Vec<GpuPlan>,
    /// What else the reader should know: entries that match no GPU, GPUs not covered, empty MIG.
    pub notes: Vec<Diagnostic>,
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.gpus.iter().all(GpuPlan::is_empty)
    }
}

/// Totals of a plan, in GPU instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Instances that stay untouched (with a changed split of compute instances they still count here).
    pub keep: u32,
    /// Instances to be destroyed.
    pub destroy: u32,
    /// Instances to be created.
    pub create: u32,
    /// GPUs whose MIG mode changes.
    pub mode_changes: u32,
    /// GPUs that are reset, be it by the driver itself or by the reset tool.
    pub resets: u32,
}

/// What is to be done to one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuPlan {
    /// NVML's index when the plan was made: for people.
    pub index: u32,
    /// Which GPU.
    pub uuid: GpuUuid,
    /// The product's name: for people.
    pub model: String,
    /// Where it sits: the worker opens it by this.
    pub pci: PciAddress,
    /// Hash of what this part of the plan rests on: identity, driver, modes, profiles, instances with their
    /// compute instances. Not who holds them: that is looked at again before each step.
    pub fingerprint: String,
    /// Whether the profiles came from the table, to be checked against the driver once MIG is on.
    pub provisional: bool,
    /// MIG mode now; absent where the GPU has none.
    pub mode_now: Option<MigMode>,
    /// Whether MIG is on afterwards.
    pub mig_after: bool,
    /// Whether the GPU is reset.
    pub reset: bool,
    /// Instances that stay, with their compute instances as they are afterwards.
    pub keep: Vec<InstanceSpec>,
    /// Instances that go, with their compute instances as they are now.
    pub destroy: Vec<InstanceSpec>,
    /// Instances that come.
    pub create: Vec<InstanceSpec>,
    /// The node-wide first phase: mode and reset, with the destruction that must come before.
    pub mode_steps: Vec<Step>,
    /// The second phase, after everything was read again.
    pub instance_steps: Vec<Step>,
    /// Exactly what the GPU holds afterwards, by start.
    pub after: Vec<InstanceSpec>,
}

impl GpuPlan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.mode_steps.is_empty() && self.instance_steps.is_empty()
    }
}
