//! The legal states of one GPU, built from what its driver lists and never from constants.
//!
//! A *spot* is one profile at one of its starts; a state is a set of spots. A state is legal if no two of its
//! instances share a memory slice, and if together they need no more than the GPU has: compute slices and
//! engines as its largest profile has them, instances of one profile as the driver counts them. Everything
//! but the memory slices depends only on how many there are of each profile.
//!
//! Here: what is legal, all that is legal, what can still be created, and why something cannot. Not here: which
//! legal state to choose (see [`crate::plan`]).

mod clash;
mod compute;
mod explain;
pub(crate) mod walk;

#[cfg(test)]
mod tests;

pub use clash::Clash;
pub use compute::{compute_places, compute_sizes, compute_starts};
pub use explain::{Explanation, Seat, Way};

use crate::{
    diagnostic::Diagnostic,
    node::{Driver, Gpu},
    profile::{Attribute, GiProfile, Placement, ProfileName},
    reason::Reason,
};
use std::fmt;

/// Memory slices that fit the mask, and profiles that fit [`Usage`].
const MAX_SLICES: u32 = 64;
const MAX_PROFILES: usize = 32;

/// First driver branch that takes 4g and 3g together on GPUs of seven slices (NVIDIA driver 510).
const FOUR_AND_THREE_SINCE: u32 = 510;

/// A GPU instance, as the geometry sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Placed {
    /// Where it lies.
    pub placement: Placement,
    /// The driver's profile id.
    pub profile_id: u32,
    /// The profile's name.
    pub profile: ProfileName,
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} @{}", self.profile, self.placement)
    }
}

/// What a GPU can be cut into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    shapes: Vec<Shape>,
    /// By start, then profile id; so lower indexes are lower starts.
    spots: Vec<Spot>,
    /// Compute slices of the largest profile.
    compute: u32,
    /// For each engine class the most that one profile has.
    engines: [u32; 5],
    /// 4g and 3g exclude each other.
    four_excludes_three: bool,
}

/// A profile. Its index in the geometry is what the rest of this crate counts by.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shape {
    id: u32,
    name: ProfileName,
    slices: u32,
    /// How many the driver allows, where it says.
    most: u32,
    engines: [u32; 5],
    plain: bool,
    /// Memory slices of one instance.
    size: u32,
    /// Indexes of its spots.
    spots: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spot {
    shape: usize,
    placement: Placement,
    memory: u64,
}

/// What a set of instances takes up.
#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    memory: u64,
    compute: u32,
    engines: [u32; 5],
    counts: [u8; MAX_PROFILES],
    fours: u32,
    threes: u32,
}

/// How many of each profile, by the geometry's profile index.
pub(crate) type Counts = [u8; MAX_PROFILES];

impl Geometry {
    /// The geometry of a GPU with these profiles under a driver of this branch (0: unknown).
    ///
    /// # Errors
    /// `driver-error` for a list of profiles that cannot be one: more profiles or slices than any GPU has.
    pub fn new(profiles: &[GiProfile], branch: u32) -> Result<Geometry, Diagnostic> {
        let size = |p: &GiProfile| p.placements.iter().map(|p| p.size).max().unwrap_or(0);
        let end = profiles.iter().flat_map(|p| &p.placements).map(|p| p.end()).max().unwrap_or(0);
        if profiles.len() > MAX_PROFILES || end > MAX_SLICES {
            let message = format!(
                "the driver lists {} profiles in {end} memory slices; at most {MAX_PROFILES} in {MAX_SLICES} \
                 can be handled",
                profiles.len()
            );
            return Err(Diagnostic::error(Reason::DriverError, message));
        }
        let mut shapes: Vec<Shape> = profiles
            .iter()
            .map(|profile| Shape {
                id: profile.id,
                name: profile.name,
                slices: profile.slices,
                most: profile.max_instances,
                engines: profile.engines.as_array(),
                plain: profile.name.attribute == Attribute::Plain,
                size: size(profile),
                spots: Vec::new(),
            })
            .collect();
        let mut spots: Vec<Spot> = profiles
            .iter()
            .enumerate()
            .flat_map(|(shape, profile)| profile.placements.iter().map(move |placement| (shape, *placement)))
            .map(|(shape, placement)| Spot { shape, placement, memory: mask(placement) })
            .collect();
        spots.sort_by_key(|spot| (spot.placement.start, shapes.get(spot.shape).map(|s| s.id)));
        for (index, spot) in spots.iter().enumerate() {
            if let Some(shape) = shapes.get_mut(spot.shape) {
                shape.spots.push(index);
            }
        }
        let compute = shapes.iter().map(|s| s.slices).max().unwrap_or(0);
        let mut engines = [0; 5];
        for shape in &shapes {
            for (most, own) in engines.iter_mut().zip(shape.engines) {
                *most = own.max(*most);
            }
        }
        let four_excludes_three = compute == 7 && (1..FOUR_AND_THREE_SINCE).contains(&branch);
        Ok(Geometry { shapes, spots, compute, engines, four_excludes_three })
    }

    /// The geometry of this GPU.
    ///
    /// # Errors
    /// As [`Geometry::new`].
    pub fn of(gpu: &Gpu, driver: &Driver) -> Result<Geometry, Diagnostic> {
        Geometry::new(&gpu.profiles, driver.branch()).map_err(|fault| fault.on_gpu(gpu.index))
    }

    /// Compute slices to share out.
    pub fn compute_slices(&self) -> u32 {
        self.compute
    }

    /// Memory slices that instances can lie in.
    pub fn memory_slices(&self) -> u32 {
        self.spots.iter().map(|spot| spot.placement.end()).max().unwrap_or(0)
    }

    /// Whether these instances can exist together.
    ///
    /// # Errors
    /// The first clash found, naming the instances.
    pub fn legal(&self, state: &[Placed]) -> Result<(), Clash> {
        clash::find(self, state)
    }

    /// The starts at which an instance of this profile can be created beside `state`, lowest first; none where
    /// `state` itself is not legal.
    pub fn creatable(&self, profile_id: u32, state: &[Placed]) -> Vec<u32> {
        let Some(usage) = self.usage(state) else { return Vec::new() };
        let free = self.spots.iter().filter(|spot| self.fits(&usage, spot));
        free.filter(|spot| self.shapes.get(spot.shape).is_some_and(|s| s.id == profile_id))
            .map(|spot| spot.placement.start)
            .collect()
    }

    /// The most instances of this profile that an empty GPU can hold.
    pub fn most(&self, profile_id: u32) -> u32 {
        let Some(shape) = self.shape_of(profile_id) else { return 0 };
        let limit = self.shapes.get(shape).map_or(0, |s| s.spots.len());
        let fits = |count: &usize| {
            let mut counts = [0; MAX_PROFILES];
            if let Some(slot) = counts.get_mut(shape) {
                *slot = u8::try_from(*count).unwrap_or(u8::MAX);
            }
            self.affordable(&counts).is_ok() && self.placements(&counts, &[], |_| false)
        };
        u32::try_from((1..=limit).take_while(fits).last().unwrap_or(0)).unwrap_or(0)
    }

    /// What `state` takes up; `None` if it holds an unknown spot or is not legal.
    fn usage(&self, state: &[Placed]) -> Option<Usage> {
        let mut usage = Usage::default();
        for placed in state {
            let spot = self.spots.get(self.spot_of(placed.profile_id, placed.placement)?)?;
            if !self.fits(&usage, spot) {
                return None;
            }
            self.take(&mut usage, spot);
        }
        Some(usage)
    }

    /// The index of a profile.
    pub(crate) fn shape_of(&self, profile_id: u32) -> Option<usize> {
        self.shapes.iter().position(|shape| shape.id == profile_id)
    }

    /// The index of a profile at a place.
    pub(crate) fn spot_of(&self, profile_id: u32, placement: Placement) -> Option<usize> {
        let shape = self.shape_of(profile_id)?;
        self.spots.iter().position(|spot| spot.shape == shape && spot.placement == placement)
    }

    /// The index of a profile at a start.
    pub(crate) fn spot_at(&self, profile_id: u32, start: u32) -> Option<usize> {
        let shape = self.shape_of(profile_id)?;
        self.spots.iter().position(|spot| spot.shape == shape && spot.placement.start == start)
    }

    /// The instance that lies in a spot.
    pub(crate) fn placed(&self, spot: usize) -> Option<Placed> {
        let spot = self.spots.get(spot)?;
        let shape = self.shapes.get(spot.shape)?;
        Some(Placed { placement: spot.placement, profile_id: shape.id, profile: shape.name })
    }

    /// The profile index of a spot.
    pub(crate) fn shape_at(&self, spot: usize) -> Option<usize> {
        self.spots.get(spot).map(|spot| spot.shape)
    }

    fn fits(&self, usage: &Usage, spot: &Spot) -> bool {
        let Some(shape) = self.shapes.get(spot.shape) else { return false };
        let count = u32::from(usage.counts.get(spot.shape).copied().unwrap_or(0));
        usage.memory & spot.memory == 0
            && usage.compute + shape.slices <= self.compute
            && (shape.most == 0 || count < shape.most)
            && usage.engines.iter().zip(shape.engines).zip(self.engines).all(|((a, b), most)| a + b <= most)
            && !(self.four_excludes_three
                && (shape.slices == 4 && usage.threes > 0 || shape.slices == 3 && usage.fours > 0))
    }

    fn take(&self, usage: &mut Usage, spot: &Spot) {
        usage.memory |= spot.memory;
        let Some(shape) = self.shapes.get(spot.shape) else { return };
        usage.compute += shape.slices;
        for (sum, own) in usage.engines.iter_mut().zip(shape.engines) {
            *sum += own;
        }
        if let Some(count) = usage.counts.get_mut(spot.shape) {
            *count = count.saturating_add(1);
        }
        usage.fours += u32::from(shape.slices == 4);
        usage.threes += u32::from(shape.slices == 3);
    }
}

fn mask(placement: Placement) -> u64 {
    let low = |bits: u32| if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
    low(placement.end()) & !low(placement.start)
}
