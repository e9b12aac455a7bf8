//! Which places of a GPU are free for which profile, and which one the driver takes when it is not told.

use super::Board;
use crate::{
    model::{Engines, Place, Profile},
    state::{GiState, GpuState},
};

/// An instance as far as room is concerned: its profile's index and its place.
#[derive(Clone, Copy)]
pub(super) struct Taken<'a> {
    index: u32,
    profile: &'a Profile,
    place: Place,
}

/// Everything on a GPU that takes room.
pub(super) struct Room<'a> {
    taken: Vec<Taken<'a>>,
    most: [u32; 5],
    slices: u32,
    four_beside_three: bool,
}

/// Engine counts by class.
fn classes(engines: &Engines) -> [u32; 5] {
    [engines.copy, engines.decoder, engines.encoder, engines.jpeg, engines.ofa]
}

/// Whether two ranges share a slice.
pub(super) fn overlap(a: (u32, u32), b: (u32, u32)) -> bool {
    a.0 < b.0.saturating_add(b.1) && b.0 < a.0.saturating_add(a.1)
}

impl<'a> Room<'a> {
    /// What is taken now.
    pub(super) fn new(board: &Board<'a>, state: &GpuState) -> Room<'a> {
        let mut most = [0; 5];
        for profile in board.model.profiles() {
            for (most, own) in most.iter_mut().zip(classes(&profile.engines)) {
                *most = own.max(*most);
            }
        }
        let taken = state.live_gis().filter_map(|(id, gi)| Taken::new(board, id, gi)).collect();
        Room {
            taken,
            most,
            slices: board.model.compute_slices,
            four_beside_three: board.driver.four_beside_three(),
        }
    }

    /// The same with one more instance.
    fn with(&self, one: Taken<'a>) -> Room<'a> {
        let mut taken = self.taken.clone();
        taken.push(one);
        Room { taken, most: self.most, slices: self.slices, four_beside_three: self.four_beside_three }
    }

    /// Whether an instance can be made there. Besides memory slices, what limits is how many of a profile
    /// there may be, compute slices, and engines: no class can be given out more often than the GPU's
    /// best-equipped profile has it, so there is one `+me`, and `+me.all` leaves no media engine to others.
    pub(super) fn fits(&self, index: u32, profile: &Profile, place: &Place) -> bool {
        let free = self.taken.iter().all(|other| {
            !overlap((place.start, place.size), (other.place.start, other.place.size))
                && place.gi_id != other.place.gi_id
        });
        let alike = self.taken.iter().filter(|other| other.index == index).count();
        let counted = profile.max_instances == 0 || alike < profile.max_instances as usize;
        let slices: u32 = self.taken.iter().map(|other| other.profile.slices).sum();
        let computing = self.slices == 0 || slices.saturating_add(profile.slices) <= self.slices;
        let mut engines = classes(&profile.engines);
        for other in &self.taken {
            for (sum, more) in engines.iter_mut().zip(classes(&other.profile.engines)) {
                *sum = sum.saturating_add(more);
            }
        }
        let equipped = engines.iter().zip(self.most).all(|(sum, most)| *sum <= most);
        let three_or_four = |a: u32, b: u32| (a, b) == (3, 4) || (a, b) == (4, 3);
        let branch_allows = self.four_beside_three
            || !self.taken.iter().any(|other| three_or_four(other.profile.slices, profile.slices));
        free && counted && computing && equipped && branch_allows
    }

    /// The driver's own choice: the place that takes the fewest (profile, place) pairs away that are still
    /// possible, among equals the one with the lowest GPU instance id. Derived from recorded sequences on
    /// A100, H100, GH200 and RTX PRO 6000; of the recorded ones it misses only double-memory 1g.
    pub(super) fn default_place(&self, board: &Board<'a>, index: u32, profile: &'a Profile) -> Option<Place> {
        let pairs: Vec<(u32, &Profile, &Place)> = board
            .profiles()
            .flat_map(|(index, profile)| profile.places().iter().map(move |place| (index, profile, place)))
            .filter(|(index, profile, place)| self.fits(*index, profile, place))
            .collect();
        profile
            .places()
            .iter()
            .filter(|place| self.fits(index, profile, place))
            .min_by_key(|place| {
                let then = self.with(Taken { index, profile, place: **place });
                let left = pairs.iter().filter(|(index, profile, place)| then.fits(*index, profile, place));
                (pairs.len() - left.count(), place.gi_id)
            })
            .copied()
    }

    /// How many more instances of a profile can be made, each placed as the driver would.
    pub(super) fn capacity(&self, board: &Board<'a>, index: u32, profile: &'a Profile) -> u32 {
        let mut room = self.with_none();
        let mut count = 0;
        while let Some(place) = room.default_place(board, index, profile) {
            room = room.with(Taken { index, profile, place });
            count += 1;
        }
        count
    }

    fn with_none(&self) -> Room<'a> {
        Room {
            taken: self.taken.clone(),
            most: self.most,
            slices: self.slices,
            four_beside_three: self.four_beside_three,
        }
    }
}

impl<'a> Taken<'a> {
    fn new(board: &Board<'a>, id: u32, gi: &GiState) -> Option<Taken<'a>> {
        let profile = board.model.profiles().get(gi.profile as usize)?;
        let place = Place { start: gi.start, size: gi.size, gi_id: id };
        Some(Taken { index: gi.profile, profile, place })
    }
}
