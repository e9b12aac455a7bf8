//! From the compute instances that a GPU instance has to those that it is to have.

use super::ComputeSpec;
use crate::{geometry::compute_places, profile::Placement};

/// A compute instance that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Existing {
    pub(super) spec: ComputeSpec,
    pub(super) pinned: bool,
}

/// What happens to the compute instances of one GPU instance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Change {
    pub(super) keep: Vec<ComputeSpec>,
    pub(super) destroy: Vec<ComputeSpec>,
    pub(super) create: Vec<ComputeSpec>,
}

/// The change that destroys fewest: pinned ones stay where they are, the rest as far as the wanted ones still
/// find their places; of equal changes the one that keeps the lowest. `None` if what is pinned prevents it.
///
/// `now` is by place, `wanted` largest first.
pub(super) fn change(now: &[Existing], wanted: &[u32], slices: u32) -> Option<Change> {
    let mut sizes: Vec<u32> = now.iter().map(|existing| existing.spec.slices).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    if sizes == wanted {
        let keep = now.iter().map(|existing| existing.spec.clone()).collect();
        return Some(Change { keep, ..Change::default() });
    }
    // A GPU instance has at most eight compute instances.
    let sets = 1u32.checked_shl(u32::try_from(now.len()).ok()?).filter(|sets| *sets <= 1 << 16)?;
    (0..sets)
        .filter_map(|set| {
            let change = keeping(now, set, wanted, slices)?;
            Some((change.destroy.len(), set, change))
        })
        .min_by_key(|(destroyed, set, _)| (*destroyed, *set))
        .map(|(.., change)| change)
}

/// The change that keeps exactly those of `now` whose bit is in `set`.
fn keeping(now: &[Existing], set: u32, wanted: &[u32], slices: u32) -> Option<Change> {
    let mut change = Change::default();
    let mut left = wanted.to_vec();
    for (at, existing) in now.iter().enumerate() {
        if set >> at & 1 == 1 {
            let found = left.iter().position(|size| *size == existing.spec.slices)?;
            left.remove(found);
            change.keep.push(existing.spec.clone());
        } else if existing.pinned {
            return None;
        } else {
            change.destroy.push(existing.spec.clone());
        }
    }
    change.create = placed(&change.keep, &left, slices)?;
    Some(change)
}

/// Places for compute instances of `sizes`, largest first, beside `taken`. Where the driver does not say how
/// those lie, it is left to it.
fn placed(taken: &[ComputeSpec], sizes: &[u32], slices: u32) -> Option<Vec<ComputeSpec>> {
    let known: Option<Vec<Placement>> = taken.iter().map(|spec| spec.placement).collect();
    let Some(known) = known else {
        let sum: u32 = taken.iter().map(|spec| spec.slices).chain(sizes.iter().copied()).sum();
        let unplaced = sizes.iter().map(|size| ComputeSpec { slices: *size, placement: None });
        return (sum <= slices).then(|| unplaced.collect());
    };
    let places = compute_places(slices, &known, sizes)?;
    let spec = |(size, place): (&u32, Placement)| ComputeSpec { slices: *size, placement: Some(place) };
    Some(sizes.iter().zip(places).map(spec).collect())
}

/// Places in a new GPU instance.
pub(super) fn fresh(wanted: &[u32], slices: u32) -> Option<Vec<ComputeSpec>> {
    placed(&[], wanted, slices)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn existing(text: &str) -> Vec<Existing> {
        let one = |word: &str| {
            let (size, start) = word.trim_end_matches('*').split_once('@').unwrap();
            let slices = size.parse().unwrap();
            let placement = start.parse().ok().map(|start| Placement { start, size: slices });
            Existing { spec: ComputeSpec { slices, placement }, pinned: word.ends_with('*') }
        };
        text.split_whitespace().map(one).collect()
    }

    fn says(now: &str, wanted: &[u32], slices: u32) -> Option<String> {
        let change = change(&existing(now), wanted, slices)?;
        let list = |specs: &[ComputeSpec]| {
            let one = |spec: &ComputeSpec| {
                let start = spec.placement.map_or("?".to_owned(), |p| p.start.to_string());
                format!("{}@{start}", spec.slices)
            };
            specs.iter().map(one).collect::<Vec<_>>().join(" ")
        };
        Some(format!("={} -{} +{}", list(&change.keep), list(&change.destroy), list(&change.create)))
    }

    #[test]
    fn destroys_no_more_than_it_must() {
        let says = |now, wanted: &[u32], slices| says(now, wanted, slices).unwrap();
        assert_eq!(says("", &[3], 3), "= - +3@0");
        assert_eq!(says("3@0", &[3], 3), "=3@0 - +");
        assert_eq!(says("3@0", &[2, 1], 3), "= -3@0 +2@0 1@2");
        assert_eq!(says("1@0 1@1 1@2", &[1], 3), "=1@0 -1@1 1@2 +");
        // The middle and the last must not both stay: only 0 takes two slices.
        assert_eq!(says("1@0 1@1 1@2", &[2, 1], 3), "=1@2 -1@0 1@1 +2@0");
        assert_eq!(says("1@0 2@2", &[4, 2, 1], 7), "= -1@0 2@2 +4@0 2@4 1@6");
    }

    #[test]
    fn pinned_ones_stay_or_prevent_it() {
        assert_eq!(says("1@0* 1@1", &[1], 3).unwrap(), "=1@0 -1@1 +");
        assert_eq!(says("1@0 1@1*", &[1], 3).unwrap(), "=1@1 -1@0 +");
        assert_eq!(says("1@1*", &[2, 1], 3), None);
        assert_eq!(says("1@0*", &[3], 3), None);
    }

    #[test]
    fn unknown_places_are_left_to_the_driver() {
        assert_eq!(says("1@?", &[1, 1], 3).unwrap(), "=1@? - +1@?");
        assert_eq!(says("2@?", &[1, 1, 1], 3).unwrap(), "= -2@? +1@0 1@1 1@2");
    }
}
