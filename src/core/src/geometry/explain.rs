//! Why an instance cannot be created now, and what would let it be.
//!
//! In: a profile, and the instances as they sit, each with whether it may be moved. Out: its free starts; what
//! the GPU has not enough of; who lies where it could begin; and the smallest ways out. A way moves the fewest
//! instances to other places; only where no moving helps does it remove some, and only where the removal of
//! idle ones does not help does it name some that are in use.

use super::{Clash, Counts, Geometry, MAX_PROFILES, Placed, Spot, Usage, mask};
use crate::profile::Placement;

/// As many ways as are told, all equally small.
const MOST_WAYS: usize = 16;
/// Instances of which every set may be tried; more than any GPU of today holds.
const MOST_SEATS: usize = 16;

/// An instance as it sits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    /// What and where.
    pub placed: Placed,
    /// Whether it may be moved or removed: nobody uses it.
    pub movable: bool,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Explanation {
    /// Where it can be created now, lowest first. If there is any, the rest is empty.
    pub starts: Vec<u32>,
    /// What there is not enough of, wherever it begins.
    pub lack: Option<Clash>,
    /// Each start that the profile has, with those that lie in its slices.
    pub blocked: Vec<(u32, Vec<Placed>)>,
    /// The smallest ways out, best first; none where nothing helps.
    pub ways: Vec<Way>,
}

/// One way to make room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// Instances that go to another place.
    pub moves: Vec<(Placed, Placement)>,
    /// Instances that go for good.
    pub removes: Vec<Placed>,
    /// Where the instance can then be created.
    pub start: u32,
}

impl Geometry {
    /// Why an instance of `profile_id` can or cannot be created beside `seats`; `None` if there is no such
    /// profile.
    pub fn explain(&self, profile_id: u32, seats: &[Seat]) -> Option<Explanation> {
        let index = self.shape_of(profile_id)?;
        let shape = self.shapes.get(index)?;
        let usage = self.usage_of(seats);
        let spots = || shape.spots.iter().filter_map(|spot| self.spots.get(*spot));
        let starts: Vec<u32> =
            spots().filter(|spot| self.fits(&usage, spot)).map(|spot| spot.placement.start).collect();
        if !starts.is_empty() {
            return Some(Explanation { starts, ..Explanation::default() });
        }
        let lies_there = |spot: &Spot| {
            let there = seats.iter().filter(|seat| seat.placed.placement.overlaps(spot.placement));
            (spot.placement.start, there.map(|seat| seat.placed).collect())
        };
        let mut ways = self.by_moving(index, seats);
        if ways.is_empty() {
            ways = self.by_removing(index, seats, |seat| seat.movable);
        }
        if ways.is_empty() {
            ways = self.by_removing(index, seats, |_| true);
        }
        Some(Explanation {
            starts,
            lack: self.lack(index, &usage, seats),
            blocked: spots().map(lies_there).collect(),
            ways,
        })
    }

    /// What these take up, whether they can exist together or not: they do.
    fn usage_of<'a>(&self, seats: impl IntoIterator<Item = &'a Seat>) -> Usage {
        let mut usage = Usage::default();
        for Seat { placed, .. } in seats {
            match self.spot_of(placed.profile_id, placed.placement).and_then(|spot| self.spots.get(spot)) {
                Some(spot) => self.take(&mut usage, spot),
                None => {
                    usage.memory |= mask(placed.placement);
                    usage.compute += placed.profile.slices;
                }
            }
        }
        usage
    }

    /// What is short for one more of a profile, but for the memory slices.
    fn lack(&self, shape: usize, usage: &Usage, seats: &[Seat]) -> Option<Clash> {
        let spot = self.shapes.get(shape).and_then(|s| s.spots.first()).and_then(|s| self.spots.get(*s))?;
        if self.fits(usage, &Spot { memory: 0, ..*spot }) {
            return None;
        }
        let taken: Vec<Placed> = seats.iter().map(|seat| seat.placed).collect();
        let mut counts = self.counts(seats)?;
        *counts.get_mut(shape)? += 1;
        Some(self.shortage(usage, shape, &taken, &counts))
    }

    fn counts(&self, seats: &[Seat]) -> Option<Counts> {
        let mut counts: Counts = [0; MAX_PROFILES];
        for seat in seats {
            let count = counts.get_mut(self.shape_of(seat.placed.profile_id)?)?;
            *count = count.saturating_add(1);
        }
        Some(counts)
    }

    /// Every way with the fewest moves.
    fn by_moving(&self, shape: usize, seats: &[Seat]) -> Vec<Way> {
        let spot = |seat: &Seat| self.spot_of(seat.placed.profile_id, seat.placed.placement);
        let Some(now) = seats.iter().map(spot).collect::<Option<Vec<usize>>>() else { return Vec::new() };
        let Some(mut counts) = self.counts(seats) else { return Vec::new() };
        if let Some(count) = counts.get_mut(shape) {
            *count = count.saturating_add(1);
        }
        if self.affordable(&counts).is_err() {
            return Vec::new();
        }
        let fixed: Vec<usize> =
            now.iter().zip(seats).filter(|(_, seat)| !seat.movable).map(|(spot, _)| *spot).collect();
        let mut fewest = usize::MAX;
        let mut found = Vec::new();
        self.placements(&counts, &fixed, |chosen| {
            let stays = |spot: &usize| chosen.spots().any(|other| other == *spot);
            let moves = now.iter().filter(|spot| !stays(spot)).count();
            if moves < fewest {
                fewest = moves;
                found.clear();
            }
            if moves == fewest {
                let chosen = chosen.sorted();
                let openness = std::cmp::Reverse(self.openness(&chosen));
                found.push((openness, chosen.spots().collect::<Vec<usize>>()));
            }
            true
        });
        found.sort();
        let way = |(_, chosen): (_, Vec<usize>)| self.way(shape, seats, &now, chosen);
        found.into_iter().filter_map(way).take(MOST_WAYS).collect()
    }

    /// From what is to what is chosen. With the fewest moves no instance of the profile itself moves: the new
    /// one could as well take its new place.
    fn way(&self, shape: usize, seats: &[Seat], now: &[usize], mut chosen: Vec<usize>) -> Option<Way> {
        let mut leaving = Vec::new();
        for (spot, seat) in now.iter().zip(seats) {
            match chosen.iter().position(|other| other == spot) {
                Some(at) => drop(chosen.remove(at)),
                None => leaving.push((*spot, seat.placed)),
            }
        }
        let mut moves = Vec::new();
        for (spot, placed) in leaving {
            let at = chosen.iter().position(|other| self.shape_at(*other) == self.shape_at(spot))?;
            moves.push((placed, self.spots.get(chosen.remove(at))?.placement));
        }
        let new = chosen.into_iter().find(|spot| self.shape_at(*spot) == Some(shape))?;
        Some(Way { moves, removes: Vec::new(), start: self.spots.get(new)?.placement.start })
    }

    /// Every way that removes the fewest of those that may go, and moves none.
    fn by_removing(&self, shape: usize, seats: &[Seat], may: impl Fn(&Seat) -> bool) -> Vec<Way> {
        let Some(shape) = self.shapes.get(shape).filter(|_| seats.len() <= MOST_SEATS) else {
            return Vec::new();
        };
        let goes = |set: u32, at: usize| set >> at & 1 == 1;
        let mut fewest = u32::MAX;
        let mut found = Vec::new();
        for set in 1u32..1 << seats.len() {
            let legal = seats.iter().enumerate().all(|(at, seat)| !goes(set, at) || may(seat));
            if !legal || set.count_ones() > fewest {
                continue;
            }
            let stay = seats.iter().enumerate().filter(|(at, _)| !goes(set, *at)).map(|(_, seat)| seat);
            let usage = self.usage_of(stay);
            let spots = shape.spots.iter().filter_map(|spot| self.spots.get(*spot));
            let Some(spot) = spots.into_iter().find(|spot| self.fits(&usage, spot)) else { continue };
            if set.count_ones() < fewest {
                fewest = set.count_ones();
                found.clear();
            }
            let gone = seats.iter().enumerate().filter(|(at, _)| goes(set, *at));
            let removes: Vec<Placed> = gone.map(|(_, seat)| seat.placed).collect();
            // Among equals the one that costs the least compute.
            let cost: u32 = removes.iter().map(|placed| placed.profile.slices).sum();
            found.push((cost, removes, spot.placement.start));
        }
        found.sort();
        found.truncate(MOST_WAYS);
        let way = |(_, removes, start)| Way { moves: Vec::new(), removes, start };
        found.into_iter().map(way).collect()
    }
}
