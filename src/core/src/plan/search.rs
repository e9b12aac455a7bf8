//! Finds the cheapest way from what one GPU holds to what it is to hold.
//!
//! Of all legal placements of the wanted instances, in every packing of the compute instances that are free to
//! be packed, the best in this order:
//!
//! 1. it leaves alone what is in use, GPU instances and compute instances;
//! 2. it destroys the fewest GPU instances, and so keeps the most;
//! 3. it keeps the most compute instances in those;
//! 4. it leaves the most plain profiles creatable afterwards, counted in starts, which also means that it
//!    packs compute instances in as few GPU instances as it can;
//! 5. its instances begin lowest.
//!
//! The search is exact: a 7-slice GPU has at most some hundred placements of one multiset.

use super::{
    ComputeSpec,
    pack::{Splits, packings},
    split::{self, Change, Existing},
};
use crate::{
    geometry::{Clash, Counts, Geometry, Placed, walk::Chosen},
    target::WantedProfile,
};
use std::cmp::Reverse;

/// A GPU instance that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Present {
    pub(super) placed: Placed,
    /// By place.
    pub(super) compute: Vec<Existing>,
    /// It must stay, be it only for one of its compute instances.
    pub(super) pinned: bool,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Choice {
    /// By index in what is present.
    pub(super) keep: Vec<(usize, Change)>,
    /// By index in what is present.
    pub(super) destroy: Vec<usize>,
    /// By start.
    pub(super) create: Vec<(Placed, Vec<ComputeSpec>)>,
}

/// Why there is nothing to choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Too much of something.
    Clash(Clash),
    /// So many compute instances of this profile do not fit in the GPU instances that do.
    Compute(WantedProfile, u32),
    /// Whichever starts are chosen, two overlap.
    NoArrangement,
    /// It would fit, but for what is in use.
    Pinned,
}

/// One way to cut the wanted instances: for each wanted profile its index and its splits.
struct Cut<'a> {
    profiles: Vec<(usize, &'a Splits)>,
    counts: Counts,
}

/// Finds the best choice.
///
/// # Errors
/// Why there is none.
pub(super) fn cheapest(
    geometry: &Geometry,
    present: &[Present],
    wanted: &[WantedProfile],
) -> Result<Choice, Refusal> {
    if matches_already(present, wanted) {
        let keep = |(at, present): (usize, &Present)| {
            let keep = present.compute.iter().map(|existing| existing.spec.clone()).collect();
            (at, Change { keep, ..Change::default() })
        };
        return Ok(Choice { keep: present.iter().enumerate().map(keep).collect(), ..Choice::default() });
    }
    let mut ways: Vec<(usize, Vec<Splits>)> = Vec::with_capacity(wanted.len());
    for profile in wanted {
        let shape = geometry.shape_of(profile.profile_id).ok_or(Refusal::NoArrangement)?;
        if profile.loose.is_empty() {
            let written = profile.placed.iter().map(|(_, split)| split.clone());
            let mut splits: Splits = profile.instances.iter().cloned().chain(written).collect();
            splits.sort_unstable_by(|a, b| b.cmp(a));
            ways.push((shape, vec![splits]));
            continue;
        }
        let most = geometry.most(profile.profile_id);
        let packings = packings(profile, profile.profile.slices, most as usize);
        if packings.is_empty() {
            return Err(Refusal::Compute(profile.clone(), most));
        }
        ways.push((shape, packings));
    }

    let spots: Vec<Option<usize>> =
        present.iter().map(|p| geometry.spot_of(p.placed.profile_id, p.placed.placement)).collect();
    let written = written(geometry, wanted).ok_or(Refusal::NoArrangement)?;
    let starts: Vec<usize> = written.iter().map(|(spot, _)| *spot).collect();
    let pinned: Option<Vec<usize>> =
        present.iter().zip(&spots).filter(|(p, _)| p.pinned).map(|(_, spot)| *spot).collect();
    let pinned = pinned.map(|pinned| {
        let others = starts.iter().filter(|spot| !pinned.contains(spot)).copied();
        pinned.iter().copied().chain(others).collect::<Vec<usize>>()
    });
    let mut search = Search { geometry, present, spots: &spots, written: &written, best: None };
    let mut refusal = None;
    for cut in cuts(&ways) {
        if let Err(clash) = geometry.affordable(&cut.counts) {
            refusal = refusal.or(Some(Refusal::Clash(clash)));
            continue;
        }
        let some = match &pinned {
            Some(pinned) => geometry.placements(&cut.counts, pinned, |chosen| {
                search.judge(chosen, &cut);
                true
            }),
            None => false,
        };
        if !some && !geometry.placements(&cut.counts, &starts, |_| false) {
            refusal = refusal.or(Some(Refusal::NoArrangement));
        } else {
            // It fits an empty GPU; if it is not chosen in the end, what is in use prevents it.
            refusal = Some(Refusal::Pinned);
        }
    }
    match search.best {
        Some(best) => Ok(best.choice),
        None => Err(refusal.unwrap_or(Refusal::NoArrangement)),
    }
}

/// The spots of the instances whose start is written, with the split of each; `None` if a start is none.
fn written<'a>(geometry: &Geometry, wanted: &'a [WantedProfile]) -> Option<Vec<(usize, &'a Vec<u32>)>> {
    let each = wanted.iter().flat_map(|profile| profile.placed.iter().map(move |placed| (profile, placed)));
    each.map(|(profile, (start, split))| Some((geometry.spot_at(profile.profile_id, *start)?, split)))
        .collect()
}

/// Whether what is wanted is there, wherever it lies and however loose compute instances are packed. Then
/// nothing is to be done, even where the geometry is stricter than the driver was.
fn matches_already(present: &[Present], wanted: &[WantedProfile]) -> bool {
    let mut covered = 0;
    for profile in wanted {
        let mut splits: Splits = present
            .iter()
            .filter(|present| present.placed.profile_id == profile.profile_id)
            .map(split_of)
            .collect();
        covered += splits.len();
        for (start, split) in &profile.placed {
            let there = |p: &Present| {
                p.placed.profile_id == profile.profile_id
                    && p.placed.placement.start == *start
                    && split_of(p) == *split
            };
            if !present.iter().any(there) {
                return false;
            }
        }
        for instance in profile.instances.iter().chain(profile.placed.iter().map(|(_, split)| split)) {
            let Some(at) = splits.iter().position(|split| split == instance) else { return false };
            splits.swap_remove(at);
        }
        if splits.iter().any(Vec::is_empty) {
            return false;
        }
        let mut rest: Vec<u32> = splits.into_iter().flatten().collect();
        rest.sort_unstable_by(|a, b| b.cmp(a));
        if rest != profile.loose {
            return false;
        }
    }
    covered == present.len()
}

/// The slice counts of its compute instances, largest first.
fn split_of(present: &Present) -> Vec<u32> {
    let mut split: Vec<u32> = present.compute.iter().map(|compute| compute.spec.slices).collect();
    split.sort_unstable_by(|a, b| b.cmp(a));
    split
}

/// Every combination of one packing per profile.
fn cuts(ways: &[(usize, Vec<Splits>)]) -> Vec<Cut<'_>> {
    let mut cuts = vec![Cut { profiles: Vec::new(), counts: Counts::default() }];
    for (shape, packings) in ways {
        let mut more = Vec::with_capacity(cuts.len() * packings.len());
        for cut in &cuts {
            for splits in packings {
                let mut profiles = cut.profiles.clone();
                profiles.push((*shape, splits));
                let mut counts = cut.counts;
                if let Some(count) = counts.get_mut(*shape) {
                    *count = u8::try_from(splits.len()).unwrap_or(u8::MAX);
                }
                more.push(Cut { profiles, counts });
            }
        }
        cuts = more;
    }
    cuts
}

struct Search<'a> {
    geometry: &'a Geometry,
    present: &'a [Present],
    spots: &'a [Option<usize>],
    /// Spots that must be taken, with their splits.
    written: &'a [(usize, &'a Vec<u32>)],
    best: Option<Best>,
}

struct Best {
    cost: Cost,
    chosen: Vec<usize>,
    choice: Choice,
}

/// Less is better, field by field.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    kept: Reverse<usize>,
    compute_kept: Reverse<usize>,
    openness: Reverse<u32>,
}

impl Search<'_> {
    fn present_in(&self, spot: usize) -> Option<(usize, &Present)> {
        let at = self.spots.iter().position(|other| *other == Some(spot))?;
        Some((at, self.present.get(at)?))
    }

    fn judge(&mut self, chosen: &Chosen, cut: &Cut<'_>) {
        let kept = Reverse(chosen.spots().filter(|spot| self.spots.contains(&Some(*spot))).count());
        if self.best.as_ref().is_some_and(|best| kept > best.cost.kept) {
            return;
        }
        let chosen = chosen.sorted();
        let Some(choice) = self.assign(&chosen, cut) else { return };
        let cost = Cost {
            kept,
            compute_kept: Reverse(choice.keep.iter().map(|(_, change)| change.keep.len()).sum()),
            openness: Reverse(self.geometry.openness(&chosen)),
        };
        let better = match &self.best {
            None => true,
            Some(best) => {
                let starts = || chosen.spots().cmp(best.chosen.iter().copied());
                cost.cmp(&best.cost).then_with(starts).is_lt()
            }
        };
        if better {
            self.best = Some(Best { cost, chosen: chosen.spots().collect(), choice });
        }
    }

    /// Gives each chosen spot its compute instances, those that are kept the ones that change them least.
    fn assign(&self, chosen: &Chosen, cut: &Cut<'_>) -> Option<Choice> {
        let mut choice = Choice::default();
        for (shape, splits) in &cut.profiles {
            let mut left = (*splits).clone();
            let own = chosen.spots().filter(|spot| self.geometry.shape_at(*spot) == Some(*shape));
            let (fixed, own): (Vec<usize>, Vec<usize>) =
                own.partition(|spot| self.written.iter().any(|(written, _)| written == spot));
            for spot in fixed {
                let (_, split) = self.written.iter().find(|(written, _)| *written == spot)?;
                left.remove(left.iter().position(|other| other == *split)?);
                let slices = self.geometry.placed(spot)?.profile.slices;
                match self.present_in(spot) {
                    Some((at, present)) => {
                        choice.keep.push((at, split::change(&present.compute, split, slices)?))
                    }
                    None => choice.create.push((self.geometry.placed(spot)?, split::fresh(split, slices)?)),
                }
            }
            let own = own.into_iter();
            let (kept, fresh): (Vec<usize>, Vec<usize>) =
                own.partition(|spot| self.present_in(*spot).is_some());
            let kept: Vec<(usize, &Present)> = kept.into_iter().filter_map(|s| self.present_in(s)).collect();
            choice.keep.extend(match_splits(&kept, &mut left)?.changes);
            for spot in fresh {
                let placed = self.geometry.placed(spot)?;
                let split = if left.is_empty() { return None } else { left.remove(0) };
                choice.create.push((placed, split::fresh(&split, placed.profile.slices)?));
            }
        }
        choice.keep.sort_unstable_by_key(|(at, _)| *at);
        choice.create.sort_unstable_by_key(|(placed, _)| *placed);
        let stays = |at: &usize| choice.keep.iter().any(|(kept, _)| kept == at);
        choice.destroy = (0..self.present.len()).filter(|at| !stays(at)).collect();
        Some(choice)
    }
}

#[derive(Default)]
struct Matching {
    changes: Vec<(usize, Change)>,
    kept: usize,
}

/// Distributes splits over kept instances so that the most compute instances stay; takes those used out of
/// `left`. `None` if what is in use prevents every distribution.
fn match_splits(kept: &[(usize, &Present)], left: &mut Splits) -> Option<Matching> {
    let Some(((at, present), rest)) = kept.split_first() else { return Some(Matching::default()) };
    let mut best: Option<(Matching, Splits)> = None;
    let mut tried: Option<&Vec<u32>> = None;
    // Equal splits stand together.
    for (nth, split) in left.iter().enumerate() {
        if tried == Some(split) {
            continue;
        }
        tried = Some(split);
        let Some(change) = split::change(&present.compute, split, present.placed.profile.slices) else {
            continue;
        };
        let mut without = left.clone();
        without.remove(nth);
        let Some(mut matching) = match_splits(rest, &mut without) else { continue };
        matching.kept += change.keep.len();
        matching.changes.push((*at, change));
        if best.as_ref().is_none_or(|(other, _)| matching.kept > other.kept) {
            best = Some((matching, without));
        }
    }
    let (matching, without) = best?;
    *left = without;
    Some(matching)
}
