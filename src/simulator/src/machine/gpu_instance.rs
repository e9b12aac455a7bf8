//! GPU instances: their profiles, places, and life.

use super::{Board, Code, placing::Room};
use crate::{
    model::{Place, Profile},
    state::{CiState, GiState, GpuState},
};

impl<'a> Board<'a> {
    /// The profile of one value of NVML's enumeration, with its index in the model.
    ///
    /// # Errors
    /// `NOT_SUPPORTED` for one that this chip lacks (callers go on) and, up to driver 535, for all while MIG
    /// is off; `INVALID_ARGUMENT` past the enumeration's end (callers stop).
    pub fn gi_profile_by_slot(&self, state: &GpuState, slot: u32) -> Result<(u32, &'a Profile), Code> {
        if self.has_mig() && !self.profiles_readable(state) {
            return Err(Code::NOT_SUPPORTED);
        }
        if slot >= self.driver.gi_slots() {
            return Err(Code::INVALID_ARGUMENT);
        }
        let found = self.profiles().find(|(_, profile)| profile.slot == slot);
        if self.has_mig() { found.ok_or(Code::NOT_SUPPORTED) } else { Err(Code::NOT_SUPPORTED) }
    }

    /// The profile with the id that create and list take, with its index in the model.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an unknown one.
    pub fn gi_profile_by_id(&self, id: u32) -> Result<(u32, &'a Profile), Code> {
        self.profiles().find(|(_, profile)| profile.id == id).ok_or(Code::INVALID_ARGUMENT)
    }

    /// A GPU instance that exists.
    ///
    /// # Errors
    /// `NOT_SUPPORTED` while MIG is off, `NOT_FOUND` for one that does not exist.
    pub fn gi<'s>(&self, state: &'s GpuState, id: u32) -> Result<&'s GiState, Code> {
        self.require_on(state)?;
        state.gis.get(id as usize).filter(|gi| gi.live != 0).ok_or(Code::NOT_FOUND)
    }

    /// A GPU instance's profile.
    ///
    /// # Errors
    /// `UNKNOWN` if the state names none of this GPU's.
    pub fn profile_of(&self, gi: &GiState) -> Result<&'a Profile, Code> {
        self.model.profiles().get(gi.profile as usize).ok_or(Code::UNKNOWN)
    }

    /// The ids of the GPU instances of a profile, ascending.
    ///
    /// # Errors
    /// `NOT_SUPPORTED` while MIG is off, `INVALID_ARGUMENT` for an unknown profile id.
    pub fn gis_of(&self, state: &GpuState, id: u32) -> Result<Vec<u32>, Code> {
        self.require_on_for(state, id)?;
        let (index, _) = self.gi_profile_by_id(id)?;
        Ok(state.live_gis().filter(|(_, gi)| gi.profile == index).map(|(id, _)| id).collect())
    }

    /// All places of a profile, free or not.
    ///
    /// # Errors
    /// As [`Board::gi_profile_by_slot`] and [`Board::gi_profile_by_id`].
    pub fn gi_places(&self, state: &GpuState, id: u32) -> Result<&'a [Place], Code> {
        if !self.has_mig() {
            return Err(without_mig(id));
        }
        if !self.profiles_readable(state) {
            return Err(Code::NOT_SUPPORTED);
        }
        Ok(self.gi_profile_by_id(id)?.1.places())
    }

    /// How many more GPU instances of a profile fit.
    ///
    /// # Errors
    /// `NOT_SUPPORTED` while MIG is off, `INVALID_ARGUMENT` for an unknown profile id.
    pub fn gi_capacity(&self, state: &GpuState, id: u32) -> Result<u32, Code> {
        self.require_on_for(state, id)?;
        let (index, profile) = self.gi_profile_by_id(id)?;
        Ok(Room::new(self, state).capacity(self, index, profile))
    }

    /// Creates a GPU instance of the profile with this id, at a (start, size) or where the driver chooses, and
    /// answers its id.
    ///
    /// # Errors
    /// `NOT_SUPPORTED` while MIG is off, `INVALID_ARGUMENT` for an unknown profile or a place that it does not
    /// have, `IN_USE` for the first instance on Hopper and later while something computes on the GPU,
    /// `INSUFFICIENT_RESOURCES` without room.
    pub fn create_gi(&self, state: &mut GpuState, id: u32, at: Option<(u32, u32)>) -> Result<u32, Code> {
        self.require_on(state)?;
        let (index, profile) = self.gi_profile_by_id(id)?;
        let wanted = match at {
            None => None,
            Some(at) => Some(self.place_in_list(profile, at)?),
        };
        // MIG hardware is switched on with the first instance, which work on the whole GPU stands against
        // (seen on GH200 and RTX PRO 6000).
        if state.busy != 0 && state.live_gis().next().is_none() {
            return Err(Code::IN_USE);
        }
        let room = Room::new(self, state);
        let place = match wanted {
            Some(place) => room.fits(index, profile, place).then_some(*place),
            None => room.default_place(self, index, profile),
        }
        .ok_or(Code::INSUFFICIENT_RESOURCES)?;
        self.make_gi(state, index, &place)
    }

    /// Destroys a GPU instance.
    ///
    /// # Errors
    /// `IN_USE` while it has compute instances or somebody holds it.
    pub fn destroy_gi(&self, state: &mut GpuState, id: u32) -> Result<(), Code> {
        let gi = self.gi(state, id)?;
        if gi.busy != 0 || gi.live_cis().next().is_some() {
            return Err(Code::IN_USE);
        }
        if let Some(gi) = state.gis.get_mut(id as usize) {
            gi.live = 0;
            state.changes = state.changes.wrapping_add(1);
        }
        Ok(())
    }

    /// The GPU has MIG and it is on.
    pub(super) fn require_on(&self, state: &GpuState) -> Result<(), Code> {
        if self.mig_on(state) { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
    }

    /// Writes a new instance into the state; room for it has been made sure of.
    pub(super) fn make_gi(&self, state: &mut GpuState, index: u32, place: &Place) -> Result<u32, Code> {
        let gi = state.gis.get_mut(place.gi_id as usize).ok_or(Code::UNKNOWN)?;
        // The counters of the compute instances that once were here go on counting.
        let cis = gi.cis.map(|ci| CiState { live: 0, busy: 0, ..ci });
        *gi = GiState {
            live: 1,
            handle: gi.handle.wrapping_add(1),
            profile: index,
            start: place.start,
            size: place.size,
            busy: 0,
            cis,
        };
        state.changes = state.changes.wrapping_add(1);
        Ok(place.gi_id)
    }

    fn profiles_readable(&self, state: &GpuState) -> bool {
        state.mig_current != 0 || self.driver.lists_profiles_with_mig_off()
    }

    fn require_on_for(&self, state: &GpuState, id: u32) -> Result<(), Code> {
        if self.has_mig() { self.require_on(state) } else { Err(without_mig(id)) }
    }

    fn place_in_list<'p>(&self, profile: &'p Profile, at: (u32, u32)) -> Result<&'p Place, Code> {
        let code = match self.unknowns.placement_not_in_list {
            0 => Code::INVALID_ARGUMENT,
            _ => Code::INSUFFICIENT_RESOURCES,
        };
        profile.places().iter().find(|place| (place.start, place.size) == at).ok_or(code)
    }
}

/// Without MIG at all, a profile id that is unknown there is found out first (seen on a GeForce: 3 for id 0, else 2).
fn without_mig(id: u32) -> Code {
    if id == 0 { Code::NOT_SUPPORTED } else { Code::INVALID_ARGUMENT }
}
