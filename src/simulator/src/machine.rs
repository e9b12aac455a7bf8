//! What the driver would do: pure functions over one GPU's model and state. No I/O, no clock, no locks.
//!
//! ```text
//!            set_mode(on)                        reset
//! MIG off ----------------> MIG on, no instances <---- MIG on, pending off   (Ampere, others have it open)
//!    ^                        |            ^
//!    |  set_mode(off)     create_gi    destroy_gi
//!    +--------------------    v            |
//!                          GPU instance  --+
//!                             |            ^
//!                         create_ci    destroy_ci
//!                             v            |
//!                          compute instance: a MIG device
//! ```
//!
//! A [`Board`] is what never changes (the node's [`Info`] and the GPU's [`Model`]); what changes is the
//! [`GpuState`] that each function is given. Functions that change it leave it as it was when they answer an
//! error. Rights are not looked at here, nor who has the GPU open: callers say `others`.

mod code;
mod compute_instance;
mod driver;
mod gpu_instance;
mod mig;
mod mode;
mod placing;
mod set;
mod unknowns;

pub use code::Code;
pub use driver::Driver;
pub use mig::{Attributes, MigDevice};
pub use set::SetError;
pub use unknowns::Unknowns;

use crate::{
    model::{Family, Model, Profile},
    shared::Info,
    state::GpuState,
    topology::Fabric,
};

/// One GPU as its driver sees it: all that never changes.
#[derive(Clone, Copy)]
pub struct Board<'a> {
    /// The GPU's model.
    pub model: &'a Model,
    /// What this driver version can do.
    pub driver: Driver,
    /// Answers that nobody has seen on hardware.
    pub unknowns: Unknowns,
    /// Fabric Manager of the node's NVSwitches.
    pub fabric: Fabric,
}

impl<'a> Board<'a> {
    /// The board of a GPU on a node.
    pub fn new(info: &Info, model: &'a Model) -> Board<'a> {
        Board {
            model,
            driver: Driver::new(info.driver.as_str()),
            unknowns: Unknowns::new(info),
            fabric: Fabric::of(info),
        }
    }

    /// A profile's name as the versioned profile infos give it.
    pub fn profile_name(&self, name: &str) -> String {
        let prefix = if self.unknowns.profile_name_prefix == 0 { "" } else { "MIG " };
        format!("{prefix}{name}")
    }

    /// Whether MIG exists here at all. A workstation board in display mode has none (MIG User Guide).
    pub fn has_mig(&self) -> bool {
        self.model.family() != Family::WithoutMig
            && self.model.display_mode == 0
            && self.model.profile_count > 0
    }

    /// MIG is on: instances can exist.
    pub fn mig_on(&self, state: &GpuState) -> bool {
        self.has_mig() && state.mig_current != 0
    }

    /// The GPU instance profiles that this driver knows, with their index in the model.
    pub fn profiles(&self) -> impl Iterator<Item = (u32, &'a Profile)> + use<'a> {
        let driver = self.driver;
        (0u32..).zip(self.model.profiles()).filter(move |(_, profile)| profile.slot < driver.gi_slots())
    }

    /// Whether something computes on the GPU or in one of its instances (a mark, not a mere reader).
    pub fn busy(&self, state: &GpuState) -> bool {
        state.busy != 0
            || state.live_gis().any(|(_, gi)| gi.busy != 0 || gi.live_cis().any(|(_, ci)| ci.busy != 0))
    }
}

#[cfg(test)]
mod tests;
