//! Compute instances: the profiles that a GPU instance offers, and their life.

use super::{Board, Code, placing::overlap};
use crate::{
    model::{ComputeProfile, Place},
    state::{CiState, GiState, GpuState},
};

impl<'a> Board<'a> {
    /// A compute profile of a GPU instance by NVML's enumeration, with its index there.
    ///
    /// # Errors
    /// `NOT_SUPPORTED` for one that this instance lacks, `INVALID_ARGUMENT` past the enumeration's end.
    pub fn ci_profile_by_slot(&self, gi: &GiState, slot: u32) -> Result<(u32, &'a ComputeProfile), Code> {
        if slot >= self.driver.ci_slots() {
            return Err(Code::INVALID_ARGUMENT);
        }
        self.ci_profiles(gi)?.find(|(_, profile)| profile.slot == slot).ok_or(Code::NOT_SUPPORTED)
    }

    /// A compute profile of a GPU instance by the id that create and list take.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an id that no profile of this GPU has; for one that only this instance lacks what
    /// `unknowns.compute_profile_not_in_instance` says.
    pub fn ci_profile_by_id(&self, gi: &GiState, id: u32) -> Result<(u32, &'a ComputeProfile), Code> {
        let elsewhere = || self.profiles().any(|(_, gi)| gi.compute().iter().any(|ci| ci.id == id));
        self.ci_profiles(gi)?.find(|(_, profile)| profile.id == id).ok_or_else(|| {
            if elsewhere() && self.unknowns.compute_profile_not_in_instance == 0 {
                Code::NOT_SUPPORTED
            } else {
                Code::INVALID_ARGUMENT
            }
        })
    }

    /// The compute profile of an existing compute instance.
    ///
    /// # Errors
    /// `UNKNOWN` if the state names none.
    pub fn ci_profile_of(&self, gi: &GiState, ci: &CiState) -> Result<&'a ComputeProfile, Code> {
        self.profile_of(gi)?.compute().get(ci.profile as usize).ok_or(Code::UNKNOWN)
    }

    /// A compute instance that exists.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub fn ci<'s>(&self, gi: &'s GiState, id: u32) -> Result<&'s CiState, Code> {
        gi.cis.get(id as usize).filter(|ci| ci.live != 0).ok_or(Code::NOT_FOUND)
    }

    /// The ids of the compute instances of a profile, ascending.
    ///
    /// # Errors
    /// As [`Board::ci_profile_by_id`].
    pub fn cis_of(&self, gi: &GiState, id: u32) -> Result<Vec<u32>, Code> {
        let (index, _) = self.ci_profile_by_id(gi, id)?;
        Ok(gi.live_cis().filter(|(_, ci)| ci.profile == index).map(|(id, _)| id).collect())
    }

    /// All places of a compute profile, free or not.
    ///
    /// # Errors
    /// As [`Board::ci_profile_by_id`].
    pub fn ci_places(&self, gi: &GiState, id: u32) -> Result<&'a [Place], Code> {
        Ok(self.ci_profile_by_id(gi, id)?.1.places())
    }

    /// How many more compute instances of a profile fit.
    ///
    /// # Errors
    /// As [`Board::ci_profile_by_id`].
    pub fn ci_capacity(&self, gi: &GiState, id: u32) -> Result<u32, Code> {
        let (index, profile) = self.ci_profile_by_id(gi, id)?;
        let mut copy = *gi;
        let mut count = 0;
        while let Some(start) = first_free(&copy, index, profile) {
            let Some(slot) = copy.cis.iter_mut().find(|ci| ci.live == 0) else { break };
            *slot = CiState { live: 1, profile: index, start, size: profile.slices, ..*slot };
            count += 1;
        }
        Ok(count)
    }

    /// Creates a compute instance at a (start, size) or at the lowest free start, and answers its id: the
    /// lowest free one.
    ///
    /// # Errors
    /// As [`Board::gi`] and [`Board::ci_profile_by_id`]; a place not in the profile's list as for GPU instances;
    /// `INSUFFICIENT_RESOURCES` without room.
    pub fn create_ci(
        &self,
        state: &mut GpuState,
        gi_id: u32,
        id: u32,
        at: Option<(u32, u32)>,
    ) -> Result<u32, Code> {
        let gi = self.gi(state, gi_id)?;
        let (index, profile) = self.ci_profile_by_id(gi, id)?;
        let start = match at {
            None => first_free(gi, index, profile),
            Some(at) => {
                let place = profile.places().iter().find(|place| (place.start, place.size) == at);
                let illegal = match self.unknowns.placement_not_in_list {
                    0 => Code::INVALID_ARGUMENT,
                    _ => Code::INSUFFICIENT_RESOURCES,
                };
                let place = place.ok_or(illegal)?;
                fits(gi, index, profile, place).then_some(place.start)
            }
        }
        .ok_or(Code::INSUFFICIENT_RESOURCES)?;
        self.make_ci(state, gi_id, index, start, profile.slices)
    }

    /// Destroys a compute instance.
    ///
    /// # Errors
    /// `IN_USE` while something computes in it.
    pub fn destroy_ci(&self, state: &mut GpuState, gi_id: u32, id: u32) -> Result<(), Code> {
        if self.ci(self.gi(state, gi_id)?, id)?.busy != 0 {
            return Err(Code::IN_USE);
        }
        let gi = state.gis.get_mut(gi_id as usize).ok_or(Code::NOT_FOUND)?;
        let ci = gi.cis.get_mut(id as usize).ok_or(Code::NOT_FOUND)?;
        ci.live = 0;
        state.changes = state.changes.wrapping_add(1);
        Ok(())
    }

    /// Writes a new compute instance into the state; room for it has been made sure of.
    pub(super) fn make_ci(
        &self,
        state: &mut GpuState,
        gi_id: u32,
        index: u32,
        start: u32,
        size: u32,
    ) -> Result<u32, Code> {
        let gi = state.gis.get_mut(gi_id as usize).ok_or(Code::UNKNOWN)?;
        let free = (0u32..).zip(gi.cis.iter_mut()).find(|(_, ci)| ci.live == 0);
        let (id, ci) = free.ok_or(Code::INSUFFICIENT_RESOURCES)?;
        *ci = CiState { live: 1, handle: ci.handle.wrapping_add(1), profile: index, start, size, busy: 0 };
        state.changes = state.changes.wrapping_add(1);
        Ok(id)
    }

    /// The compute profiles of a GPU instance that this driver knows, with their index.
    fn ci_profiles(&self, gi: &GiState) -> Result<impl Iterator<Item = (u32, &'a ComputeProfile)>, Code> {
        let slots = self.driver.ci_slots();
        Ok((0u32..).zip(self.profile_of(gi)?.compute()).filter(move |(_, profile)| profile.slot < slots))
    }
}

fn fits(gi: &GiState, index: u32, profile: &ComputeProfile, place: &Place) -> bool {
    let free = gi.live_cis().all(|(_, ci)| !overlap((place.start, place.size), (ci.start, ci.size)));
    let alike = gi.live_cis().filter(|(_, ci)| ci.profile == index).count();
    free && (profile.max_instances == 0 || alike < profile.max_instances as usize)
}

fn first_free(gi: &GiState, index: u32, profile: &ComputeProfile) -> Option<u32> {
    profile.places().iter().filter(|place| fits(gi, index, profile, place)).map(|place| place.start).min()
}
