//! Packing compute instances into GPU instances of one profile.

use crate::{geometry::compute_places, target::WantedProfile};

/// The GPU instances of one profile, for each its compute instances, largest first.
pub(super) type Splits = Vec<Vec<u32>>;

/// Every way to hold what is wanted of a profile of `slices` in at most `most` GPU instances, those with the
/// fewest first; none if there is no way.
pub(super) fn packings(wanted: &WantedProfile, slices: u32, most: usize) -> Vec<Splits> {
    let mut found = Vec::new();
    let needed: u32 = wanted.loose.iter().sum();
    let given = wanted.instances.len() + wanted.placed.len();
    let Some(bins) = most.checked_sub(given) else { return found };
    // Also the bound that keeps a wish for a thousand from being tried.
    if u64::from(needed) <= bins as u64 * u64::from(slices) {
        let mut packing = Packing { slices, bins, open: Vec::new(), found: &mut found };
        packing.put(&wanted.loose, 0);
    }
    for splits in &mut found {
        splits.extend(wanted.instances.iter().cloned());
        splits.extend(wanted.placed.iter().map(|(_, split)| split.clone()));
        splits.sort_unstable_by(|a, b| b.cmp(a));
    }
    found.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| b.cmp(a)));
    found.dedup();
    found
}

struct Packing<'a> {
    slices: u32,
    bins: usize,
    open: Splits,
    found: &'a mut Vec<Splits>,
}

impl Packing<'_> {
    /// Puts each of `sizes`, which are largest first, in an open GPU instance or a new one. Of equal sizes a
    /// later one never goes before an earlier one, which leaves out most repetitions.
    fn put(&mut self, sizes: &[u32], from: usize) {
        let Some((size, rest)) = sizes.split_first() else {
            self.found.push(self.open.clone());
            return;
        };
        for bin in from..=self.open.len() {
            match self.open.get_mut(bin) {
                Some(open) => open.push(*size),
                None if bin < self.bins => self.open.push(vec![*size]),
                None => continue,
            }
            let fits = self.open.get(bin).is_some_and(|s| compute_places(self.slices, &[], s).is_some());
            if fits {
                self.put(rest, if rest.first() == Some(size) { bin } else { 0 });
            }
            if let Some(open) = self.open.get_mut(bin) {
                open.pop();
                if open.is_empty() {
                    self.open.pop();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways(slices: u32, instances: &[&[u32]], loose: &[u32], most: usize) -> Vec<String> {
        let wanted = WantedProfile {
            profile_id: 9,
            profile: "3g.20gb".parse().unwrap(),
            instances: instances.iter().map(|i| i.to_vec()).collect(),
            loose: loose.to_vec(),
            placed: vec![],
        };
        packings(&wanted, slices, most).iter().map(|splits| format!("{splits:?}")).collect()
    }

    #[test]
    fn finds_every_packing_once_fewest_first() {
        assert_eq!(ways(3, &[], &[1, 1], 2), ["[[1, 1]]", "[[1], [1]]"]);
        assert_eq!(ways(3, &[], &[2, 2, 1, 1], 2), ["[[2, 1], [2, 1]]"]);
        assert_eq!(ways(3, &[], &[2, 1, 1], 2), ["[[2, 1], [1]]", "[[2], [1, 1]]"]);
        assert_eq!(ways(3, &[&[3]], &[1], 2), ["[[3], [1]]"]);
        assert_eq!(ways(3, &[&[3], &[3]], &[], 2), ["[[3], [3]]"]);
        // Seven single slices: as many ways as seven can be written as a sum.
        assert_eq!(ways(7, &[], &[1; 7], 7).len(), 15);
    }

    #[test]
    fn finds_none_where_there_is_none() {
        for (slices, loose, most) in
            [(3, vec![2, 2], 1), (3, vec![1; 7], 2), (2, vec![1; 1000], 3), (4, vec![3], 1)]
        {
            assert!(ways(slices, &[], &loose, most).is_empty(), "{loose:?}");
        }
        assert!(ways(3, &[&[3], &[3]], &[1], 2).is_empty());
    }
}
