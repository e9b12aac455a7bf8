//! Why instances cannot exist together, naming them.

use super::{Counts, Geometry, Placed, Usage};
use crate::profile::ProfileName;

const ENGINES: [&str; 5] = ["copy engine", "decoder", "encoder", "JPEG engine", "optical flow accelerator"];

/// Why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Clash {
    /// The GPU has no such profile, or not at that place.
    #[error("{0} is not a place that this GPU has for this profile")]
    NoSuchPlace(Placed),
    /// Two share a memory slice.
    #[error("{0} and {1} share memory slices")]
    Overlap(Placed, Placed),
    /// More of one profile than the driver allows.
    #[error("at most {most} x {profile} fit")]
    TooMany {
        /// The profile.
        profile: ProfileName,
        /// How many there may be.
        most: u32,
    },
    /// Too many compute slices.
    #[error("they need {needed} compute slices, the GPU has {available}")]
    Compute {
        /// The sum of all.
        needed: u32,
        /// What there is.
        available: u32,
    },
    /// Two need an engine of which there is not enough for both.
    #[error("{first} and {second} cannot exist together: they need the same {engine}")]
    Engine {
        /// One.
        first: ProfileName,
        /// The other.
        second: ProfileName,
        /// The engine.
        engine: &'static str,
    },
    /// The driver is too old for 4g beside 3g.
    #[error("{four} and {three} cannot exist together under drivers before 510")]
    FourAndThree {
        /// The 4g.
        four: ProfileName,
        /// The 3g.
        three: ProfileName,
    },
}

pub(super) fn find(geometry: &Geometry, state: &[Placed]) -> Result<(), Clash> {
    for (at, placed) in state.iter().enumerate() {
        if geometry.spot_of(placed.profile_id, placed.placement).is_none() {
            return Err(Clash::NoSuchPlace(*placed));
        }
        if let Some(other) = state.iter().take(at).find(|other| other.placement.overlaps(placed.placement)) {
            return Err(Clash::Overlap(*other, *placed));
        }
    }
    let mut counts: Counts = Default::default();
    for placed in state {
        let shape = geometry.shape_of(placed.profile_id);
        if let Some(count) = shape.and_then(|shape| counts.get_mut(shape)) {
            *count = count.saturating_add(1);
        }
    }
    geometry.affordable(&counts)
}

impl Geometry {
    /// Why one more of `shape` does not fit beside `taken`, which takes up `usage`, on the way to `counts`.
    pub(super) fn shortage(&self, usage: &Usage, shape: usize, taken: &[Placed], counts: &Counts) -> Clash {
        let sum = |counts: &Counts| -> u32 {
            self.shapes.iter().zip(counts).map(|(shape, count)| shape.slices * u32::from(*count)).sum()
        };
        let compute = Clash::Compute { needed: sum(counts), available: self.compute };
        let Some(shape) = self.shapes.get(shape) else { return compute };
        let used = taken.iter().filter(|placed| placed.profile_id == shape.id).count();
        if shape.most > 0 && used >= shape.most as usize {
            return Clash::TooMany { profile: shape.name, most: shape.most };
        }
        if sum(counts) > self.compute {
            return compute;
        }
        let of_slices = |slices| taken.iter().find(|placed| placed.profile.slices == slices);
        if self.four_excludes_three {
            match (shape.slices, of_slices(3), of_slices(4)) {
                (4, Some(three), _) => {
                    return Clash::FourAndThree { four: shape.name, three: three.profile };
                }
                (3, _, Some(four)) => {
                    return Clash::FourAndThree { four: four.profile, three: shape.name };
                }
                _ => {}
            }
        }
        let classes = usage.engines.iter().zip(shape.engines).zip(self.engines).zip(ENGINES).enumerate();
        for (class, (((used, own), most), engine)) in classes {
            if used + own > most {
                // The one that has most of it is to blame.
                let user = taken.iter().max_by_key(|placed| {
                    let other = self.shape_of(placed.profile_id).and_then(|s| self.shapes.get(s));
                    other.and_then(|other| other.engines.get(class)).copied()
                });
                if let Some(user) = user {
                    return Clash::Engine { first: user.profile, second: shape.name, engine };
                }
            }
        }
        compute
    }
}
