//! Walks over legal states. Nothing here allocates in its inner loop.

use super::{Clash, Counts, Geometry, Placed, Spot, Usage};

/// The most instances one GPU can hold.
const MAX_INSTANCES: usize = 64;

/// The spots of one state, lowest first.
#[derive(Clone, Copy)]
pub(crate) struct Chosen {
    spots: [u16; MAX_INSTANCES],
    len: usize,
}

impl Chosen {
    pub(crate) fn spots(&self) -> impl Iterator<Item = usize> + '_ {
        self.spots.iter().take(self.len).map(|spot| usize::from(*spot))
    }

    fn push(&mut self, spot: usize) -> bool {
        match (self.spots.get_mut(self.len), u16::try_from(spot)) {
            (Some(slot), Ok(spot)) => {
                *slot = spot;
                self.len += 1;
                true
            }
            _ => false,
        }
    }

    fn pop(&mut self) {
        self.len = self.len.saturating_sub(1);
    }

    /// The same, lowest spot first, so that comparing two compares (start, profile id) in order.
    pub(crate) fn sorted(mut self) -> Chosen {
        if let Some(spots) = self.spots.get_mut(..self.len) {
            spots.sort_unstable();
        }
        self
    }
}

impl Geometry {
    /// Whether the GPU has enough of all that does not depend on the place.
    ///
    /// # Errors
    /// What there is not enough of.
    pub(crate) fn affordable(&self, counts: &Counts) -> Result<(), Clash> {
        let mut usage = Usage::default();
        let mut taken: Vec<Placed> = Vec::new();
        for (index, count) in counts.iter().enumerate() {
            let Some(spot) = self.shapes.get(index).and_then(|s| s.spots.first()) else { continue };
            let (Some(spot), Some(placed)) = (self.spots.get(*spot), self.placed(*spot)) else { continue };
            for _ in 0..*count {
                let nowhere = Spot { memory: 0, ..*spot };
                if !self.fits(&usage, &nowhere) {
                    return Err(self.shortage(&usage, spot.shape, &taken, counts));
                }
                self.take(&mut usage, &nowhere);
                taken.push(placed);
            }
        }
        Ok(())
    }

    /// Calls `visit` with every legal placement of `counts` that contains the spots in `fixed`, until it answers
    /// false; answers whether there was any. `counts` must be affordable.
    pub(crate) fn placements(
        &self,
        counts: &Counts,
        fixed: &[usize],
        mut visit: impl FnMut(&Chosen) -> bool,
    ) -> bool {
        let mut left = *counts;
        let mut chosen = Chosen { spots: [0; MAX_INSTANCES], len: 0 };
        let mut memory = 0;
        for index in fixed {
            let Some(spot) = self.spots.get(*index) else { return false };
            let Some(count) = left.get_mut(spot.shape) else { return false };
            if *count == 0 || memory & spot.memory != 0 || !chosen.push(*index) {
                return false;
            }
            *count -= 1;
            memory |= spot.memory;
        }
        // Large ones first: they have the fewest starts.
        let mut order: Vec<usize> = (0..self.shapes.len()).filter(|s| left.get(*s) > Some(&0)).collect();
        order.sort_by_key(|s| std::cmp::Reverse(self.shapes.get(*s).map(|shape| shape.size)));
        let mut walk = Walk { geometry: self, order: &order, visit: &mut visit, found: false };
        walk.step(&mut left, &mut chosen, memory, 0, 0);
        walk.found
    }

    /// The sum over the plain profiles of the starts at which one could be created beside these.
    pub(crate) fn openness(&self, chosen: &Chosen) -> u32 {
        let mut usage = Usage::default();
        for index in chosen.spots() {
            if let Some(spot) = self.spots.get(index) {
                self.take(&mut usage, spot);
            }
        }
        let plain = |spot: &&Spot| self.shapes.get(spot.shape).is_some_and(|shape| shape.plain);
        let open = self.spots.iter().filter(plain).filter(|spot| self.fits(&usage, spot)).count();
        u32::try_from(open).unwrap_or(u32::MAX)
    }

    /// Every legal state made of the profiles with these ids, the empty one first.
    pub fn states(&self, profile_ids: &[u32]) -> Vec<Vec<Placed>> {
        let allowed: Vec<usize> = (0..self.spots.len())
            .filter(|spot| self.placed(*spot).is_some_and(|p| profile_ids.contains(&p.profile_id)))
            .collect();
        let mut states = vec![Vec::new()];
        self.grow(&allowed, &Usage::default(), &mut Vec::new(), &mut states);
        states
    }

    fn grow(&self, from: &[usize], usage: &Usage, state: &mut Vec<Placed>, states: &mut Vec<Vec<Placed>>) {
        for (at, index) in from.iter().enumerate() {
            let (Some(spot), Some(placed)) = (self.spots.get(*index), self.placed(*index)) else { continue };
            if self.fits(usage, spot) {
                let mut more = *usage;
                self.take(&mut more, spot);
                state.push(placed);
                states.push(state.clone());
                self.grow(from.get(at + 1..).unwrap_or_default(), &more, state, states);
                state.pop();
            }
        }
    }
}

struct Walk<'a, V> {
    geometry: &'a Geometry,
    order: &'a [usize],
    visit: &'a mut V,
    found: bool,
}

impl<V: FnMut(&Chosen) -> bool> Walk<'_, V> {
    /// Places what is left; `at` is the profile in `order` that is being placed, `from` the first of its spots
    /// that may be taken, so that equal instances are not permuted. Answers whether to go on.
    fn step(&mut self, left: &mut Counts, chosen: &mut Chosen, memory: u64, at: usize, from: usize) -> bool {
        let Some(shape_index) = self.order.get(at).copied() else {
            self.found = true;
            return (self.visit)(chosen);
        };
        if left.get(shape_index).is_none_or(|count| *count == 0) {
            return self.step(left, chosen, memory, at + 1, 0);
        }
        let geometry = self.geometry;
        let Some(shape) = geometry.shapes.get(shape_index) else { return true };
        for (nth, index) in shape.spots.iter().enumerate().skip(from) {
            let Some(spot) = geometry.spots.get(*index) else { continue };
            if memory & spot.memory != 0 || !chosen.push(*index) {
                continue;
            }
            if let Some(count) = left.get_mut(shape_index) {
                *count -= 1;
            }
            let go_on = self.step(left, chosen, memory | spot.memory, at, nth + 1);
            if let Some(count) = left.get_mut(shape_index) {
                *count += 1;
            }
            chosen.pop();
            if !go_on {
                return false;
            }
        }
        true
    }
}
