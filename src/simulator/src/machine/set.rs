//! What only the simulator's owner can do: put a GPU into a state at once, as if it had come to it.

use super::{
    Board, Code,
    mode::{forget_instances, switch},
    placing::Room,
};
use crate::state::GpuState;

/// Why a GPU cannot be put into a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// It has no MIG (or its board is in display mode).
    #[error("this GPU has no MIG")]
    NoMig,
    /// The profile has no place with that start.
    #[error("the profile cannot start there")]
    NoSuchPlace,
    /// Another instance is in the way, or engines or slices are used up.
    #[error("there is no room left for it there")]
    NoRoom,
    /// No such instance.
    #[error("there is no such instance")]
    NoInstance,
}

impl Board<'_> {
    /// Takes all instances and all marks away; mode stays.
    pub fn clear(&self, state: &mut GpuState) {
        forget_instances(state);
        state.busy = 0;
    }

    /// Mode on or off at once, without instances and marks and with nothing pending.
    ///
    /// # Errors
    /// [`SetError::NoMig`] for on.
    pub fn force_mode(&self, state: &mut GpuState, on: bool) -> Result<(), SetError> {
        if on && !self.has_mig() {
            return Err(SetError::NoMig);
        }
        self.clear(state);
        switch(state, u32::from(on));
        Ok(())
    }

    /// A GPU instance of the profile with this index in the model at this start, with one compute instance as
    /// large as it; mode must be on. Answers both ids.
    ///
    /// # Errors
    /// [`SetError`].
    pub fn place(&self, state: &mut GpuState, profile: u32, start: u32) -> Result<(u32, u32), SetError> {
        if !self.mig_on(state) {
            return Err(SetError::NoMig);
        }
        let (index, found) =
            self.profiles().find(|(index, _)| *index == profile).ok_or(SetError::NoSuchPlace)?;
        let place = found.places().iter().find(|place| place.start == start).ok_or(SetError::NoSuchPlace)?;
        if !Room::new(self, state).fits(index, found, place) {
            return Err(SetError::NoRoom);
        }
        let whole = (0u32..)
            .zip(found.compute())
            .filter(|(_, ci)| ci.slices == found.slices)
            .min_by_key(|(index, ci)| (ci.slot >= self.driver.ci_slots(), *index));
        let (compute, whole) = whole.ok_or(SetError::NoSuchPlace)?;
        let at = whole.places().first().map_or(0, |place| place.start);
        let failed = |_: Code| SetError::NoRoom;
        let gi = self.make_gi(state, index, place).map_err(failed)?;
        let ci = self.make_ci(state, gi, compute, at, whole.slices).map_err(failed)?;
        Ok((gi, ci))
    }

    /// Marks something as in use or idle: the whole GPU, a GPU instance, or a compute instance.
    ///
    /// # Errors
    /// [`SetError::NoInstance`].
    pub fn set_busy(
        &self,
        state: &mut GpuState,
        gi: Option<u32>,
        ci: Option<u32>,
        busy: bool,
    ) -> Result<(), SetError> {
        let mark = u32::from(busy);
        let Some(gi) = gi else {
            state.busy = mark;
            return Ok(());
        };
        let gi = state.gis.get_mut(gi as usize).filter(|gi| gi.live != 0).ok_or(SetError::NoInstance)?;
        match ci {
            None => gi.busy = mark,
            Some(ci) => {
                let ci = gi.cis.get_mut(ci as usize).filter(|ci| ci.live != 0);
                ci.ok_or(SetError::NoInstance)?.busy = mark;
            }
        }
        Ok(())
    }
}
