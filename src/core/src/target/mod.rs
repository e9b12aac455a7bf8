//! A layout resolved against a node: what each of its GPUs is to hold.
//!
//! In: a [`crate::layout::Layout`] and the [`crate::node::Node`]. Out: a [`Target`] in the driver's own profile ids, or
//! everything in the layout that this node cannot mean.
//! Not here: whether it fits, and what must go for it (see [`crate::plan`]).

mod resolve;
mod select;
mod unknown;
mod wanted;

#[cfg(test)]
mod tests;

pub use resolve::resolve;
pub(crate) use resolve::{indexes, models, short_model};
pub(crate) use wanted::symbolic;

use crate::{
    diagnostic::{Diagnostic, Place},
    id::GpuUuid,
    node::Gpu,
    profile::ProfileName,
    reason::Reason,
};

/// What a node is to become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The layout's name.
    pub layout: String,
    /// The GPUs that the layout decides about, by index.
    pub gpus: Vec<GpuTarget>,
    /// GPUs that the layout names and that cannot be worked on, with the error of each. Whether the others
    /// go ahead without them is the caller's decision.
    pub blocked: Vec<Blocked>,
    /// GPUs that no rule selects, by index: left as they are.
    pub untouched: Vec<u32>,
    /// What the reader should know: rules that match no GPU, GPUs not covered, the layout's own notes.
    pub notes: Vec<Diagnostic>,
}

impl Target {
    /// Leaves all GPUs but this one as they are.
    ///
    /// # Errors
    /// `no-gpu-matched` if the layout decides nothing about it.
    pub fn narrow(&mut self, gpu: &Gpu) -> Result<(), Diagnostic> {
        self.blocked.clear();
        let (wanted, others): (Vec<GpuTarget>, Vec<GpuTarget>) =
            std::mem::take(&mut self.gpus).into_iter().partition(|target| target.uuid == gpu.uuid);
        self.gpus = wanted;
        self.untouched.extend(others.iter().map(|target| target.index));
        self.untouched.sort_unstable();
        // What the layout says of others is of no concern.
        self.notes.retain(|note| note.gpu == Some(gpu.index));
        if self.gpus.is_empty() {
            let message = format!("'{}' decides nothing about this GPU", self.layout);
            return Err(Diagnostic::error(Reason::NoGpuMatched, message).on_gpu(gpu.index));
        }
        Ok(())
    }
}

/// A GPU that a layout names and that cannot be worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// NVML's index.
    pub index: u32,
    /// Why, as an error.
    pub diagnostic: Diagnostic,
}

/// What one GPU is to become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuTarget {
    /// NVML's index in the node that was resolved against.
    pub index: u32,
    /// Which GPU.
    pub uuid: GpuUuid,
    /// Where the rule stands that decides about it.
    pub place: Place,
    /// Whether MIG is to be on.
    pub mig: bool,
    /// What it is to hold, by profile id; empty where MIG is off.
    pub wanted: Vec<WantedProfile>,
    /// Whether the profiles came from the table, to be checked against the driver once MIG is on.
    pub provisional: bool,
}

/// What is wanted of one GPU instance profile.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WantedProfile {
    /// The driver's profile id.
    pub profile_id: u32,
    /// Its name on this GPU.
    pub profile: ProfileName,
    /// GPU instances whose compute instances are given: for each the slice counts, largest first. One whole
    /// compute instance is `[slices]`.
    pub instances: Vec<Vec<u32>>,
    /// Compute instances that go into further GPU instances of this profile, packed as the planner finds best:
    /// slice counts, largest first.
    pub loose: Vec<u32>,
    /// GPU instances whose start is written: the memory slice that each begins at, and its compute instances as
    /// in `instances`.
    pub placed: Vec<(u32, Vec<u32>)>,
}
