use super::*;
use crate::fixtures::{named, profiles};
use std::collections::BTreeSet;

fn geometry(key: &str, branch: u32) -> (Vec<GiProfile>, Geometry) {
    let profiles = profiles(key);
    let geometry = Geometry::new(&profiles, branch).unwrap();
    (profiles, geometry)
}

fn ids(profiles: &[GiProfile], shorts: &[&str]) -> Vec<u32> {
    shorts.iter().map(|short| named(profiles, short).id).collect()
}

fn at(profiles: &[GiProfile], text: &str) -> Vec<Placed> {
    text.split_whitespace()
        .map(|word| {
            let (short, start) = word.split_once('@').unwrap();
            let profile = named(profiles, short);
            let start = start.parse().unwrap();
            let size = profile.placements[0].size;
            Placed { placement: Placement { start, size }, profile_id: profile.id, profile: profile.name }
        })
        .collect()
}

type Multiset = Vec<u32>;

fn multiset(state: &[Placed]) -> Multiset {
    let mut ids: Multiset = state.iter().map(|placed| placed.profile_id).collect();
    ids.sort_unstable();
    ids
}

/// States; non-empty multisets; maximal placements; multisets among these; inclusion-maximal multisets.
fn figures(geometry: &Geometry, ids: &[u32]) -> [usize; 5] {
    let states = geometry.states(ids);
    let multisets: BTreeSet<Multiset> = states.iter().map(|s| multiset(s)).collect();
    let maximal: Vec<_> = states
        .iter()
        .filter(|state| ids.iter().all(|id| geometry.creatable(*id, state).is_empty()))
        .collect();
    let among: BTreeSet<Multiset> = maximal.iter().map(|s| multiset(s)).collect();
    let contains = |big: &Multiset, small: &Multiset| {
        let mut rest = big.clone();
        small.iter().all(|id| rest.iter().position(|other| other == id).map(|at| rest.remove(at)).is_some())
    };
    let tops = multisets.iter().filter(|m| !multisets.iter().any(|other| other != *m && contains(other, m)));
    [states.len(), multisets.len() - 1, maximal.len(), among.len(), tops.count()]
}

#[test]
fn counts_every_legal_state_of_seven_slice_gpus() {
    let basic = ["1g", "2g", "3g", "4g", "7g"];
    let with = |more: &[&'static str]| [&basic[..], more].concat();
    for key in ["a100-40gb", "a100-80gb", "h100-sxm-80gb", "h200-141gb", "b200-180gb", "gb300-278gb"] {
        let (profiles, geometry) = geometry(key, 580);
        let of = |shorts: &[&str]| figures(&geometry, &ids(&profiles, shorts));
        assert_eq!(of(&basic), [298, 37, 19, 14, 12], "{key}");
        assert_eq!(of(&with(&["1g2"])), [723, 77, 78, 38, 28], "{key}");
        assert_eq!(of(&with(&["1g+me"])), [1089, 63, 67, 24, 20], "{key}");
        assert_eq!(of(&with(&["1g2", "1g+me"])), [2319, 127, 239, 64, 44], "{key}");
    }
}

#[test]
fn counts_every_legal_state_of_four_slice_gpus() {
    let (a30, geometry_a30) = geometry("a30-24gb", 580);
    assert_eq!(figures(&geometry_a30, &ids(&a30, &["1g", "2g", "4g"])), [26, 9, 5, 4, 4]);
    let all = ids(&a30, &["1g", "2g", "4g", "1g+me", "2g+me"]);
    assert_eq!(figures(&geometry_a30, &all), [76, 19, 17, 8, 8]);
    let (rtx, geometry_rtx) = geometry("rtx-pro-6000-blackwell-96gb", 580);
    assert_eq!(figures(&geometry_rtx, &ids(&rtx, &["1g", "2g", "4g"])), [26, 9, 5, 4, 4]);
}

#[test]
fn each_multiset_has_its_number_of_placements() {
    let (profiles, geometry) = geometry("a100-40gb", 580);
    let states = geometry.states(&ids(&profiles, &["1g", "2g", "3g", "4g", "7g"]));
    let count = |want: &str| {
        let want: Multiset = {
            let mut ids: Vec<u32> = want.split('+').map(|short| named(&profiles, short).id).collect();
            ids.sort_unstable();
            ids
        };
        states.iter().filter(|state| multiset(state) == want).count()
    };
    for (want, placements) in [
        ("1g+1g+1g", 35),
        ("1g+1g+1g+1g", 35),
        ("1g+1g+1g+1g+1g+2g", 3),
        ("1g+1g+2g", 30),
        ("1g+2g+2g", 9),
        ("2g+2g+2g", 1),
        ("1g+3g", 7),
        ("1g+1g+2g+3g", 2),
        ("1g+1g+1g+1g+3g", 1),
        ("3g+4g", 1),
        ("1g+1g+1g+1g+1g+1g+1g", 1),
    ] {
        assert_eq!(count(want), placements, "{want}");
    }
}

#[test]
fn four_beside_three_needs_driver_510() {
    let (profiles, old) = geometry("a100-40gb", 470);
    let both = at(&profiles, "4g@0 3g@4");
    assert!(matches!(old.legal(&both), Err(Clash::FourAndThree { .. })));
    assert!(old.creatable(9, &at(&profiles, "4g@0")).is_empty());
    for branch in [0, 510, 580] {
        assert_eq!(Geometry::new(&profiles, branch).unwrap().legal(&both), Ok(()), "{branch}");
    }
    // Without the pair one state fewer: of the 298 only 4g@0 3g@4 holds both.
    assert_eq!(old.states(&ids(&profiles, &["1g", "2g", "3g", "4g", "7g"])).len(), 297);
}

#[test]
fn names_the_two_that_clash() {
    let (profiles, geometry) = geometry("a100-40gb", 580);
    let says = |state: &str| geometry.legal(&at(&profiles, state)).unwrap_err().to_string();
    assert_eq!(says("1g@6 3g@4"), "1g.5gb @6:1 and 3g.20gb @4:4 share memory slices");
    assert_eq!(says("2g@1"), "2g.10gb @1:2 is not a place that this GPU has for this profile");
    assert_eq!(
        says("4g@0 1g@4 1g@5 1g@6 1g@7"),
        "1g.5gb @7:1 is not a place that this GPU has for this profile"
    );
    assert_eq!(says("1g+me@0 1g+me@1"), "at most 1 x 1g.5gb+me fit");
    assert_eq!(says("1g@0 1g@1 1g@2 1g@3 3g@4 7g@0"), "1g.5gb @0:1 and 7g.40gb @0:8 share memory slices");
}

#[test]
fn all_media_engines_exclude_other_media() {
    let (profiles, geometry) = geometry("rtx-pro-6000-blackwell-96gb", 580);
    let legal = |state: &str| geometry.legal(&at(&profiles, state));
    assert_eq!(legal("1g+me.all@0 1g-me@3 1g-me@6 1g-me@9"), Ok(()));
    assert_eq!(legal("1g+gfx@0 1g+me@3 1g@6 1g-me@9"), Ok(()));
    for state in ["1g+me.all@0 1g@3", "1g+me.all@0 1g+me@3", "1g+me.all@0 2g+gfx@6", "2g+me.all@0 2g@6"] {
        assert!(matches!(legal(state), Err(Clash::Engine { .. })), "{state}");
    }
    for state in ["1g+me.all@0 1g@3", "1g-me@0 1g+me.all@3 1g@6"] {
        let said = legal(state).unwrap_err().to_string();
        assert_eq!(said, "1g.24gb and 1g.24gb+me.all cannot exist together: they need the same decoder");
    }
}

#[test]
fn lists_the_starts_that_are_left() {
    let (profiles, geometry) = geometry("a100-40gb", 580);
    let state = at(&profiles, "1g@0 2g@2");
    let starts = |short: &str| geometry.creatable(named(&profiles, short).id, &state);
    assert_eq!(starts("1g"), [1, 4, 5, 6]);
    assert_eq!(starts("2g"), [4]);
    assert_eq!(starts("3g"), [4]);
    assert_eq!(starts("1g2"), [4, 6]);
    assert!(starts("4g").is_empty());
    assert_eq!(geometry.creatable(99, &state), Vec::<u32>::new());
}

#[test]
fn most_instances_are_those_that_really_fit() {
    for (key, most) in [
        ("a100-40gb", vec![("1g", 7), ("1g2", 4), ("2g", 3), ("3g", 2), ("4g", 1), ("7g", 1), ("1g+me", 1)]),
        ("a30-24gb", vec![("1g", 4), ("2g", 2), ("2g+me", 1), ("4g", 1)]),
        ("rtx-pro-6000-blackwell-96gb", vec![("1g-me", 4), ("1g+me.all", 1), ("2g+gfx", 2), ("4g+gfx", 1)]),
    ] {
        let (mut profiles, _) = geometry(key, 580);
        for (short, count) in &most {
            let geometry = Geometry::new(&profiles, 580).unwrap();
            assert_eq!(geometry.most(named(&profiles, short).id), *count, "{key} {short}");
        }
        // A driver that does not say how many fit leaves the memory and compute slices to decide.
        profiles.iter_mut().for_each(|p| p.max_instances = 0);
        let plain = most.iter().filter(|(short, _)| !short.contains(['+', '-']));
        for (short, count) in plain {
            let geometry = Geometry::new(&profiles, 580).unwrap();
            assert_eq!(geometry.most(named(&profiles, short).id), *count, "{key} {short}");
        }
    }
}

#[test]
fn compute_places_agree_with_the_table_of_splits() {
    assert_eq!(compute_sizes(7).collect::<Vec<_>>(), [1, 2, 3, 4, 7]);
    assert_eq!(compute_sizes(4).collect::<Vec<_>>(), [1, 2, 4]);
    assert_eq!(compute_sizes(3).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(compute_sizes(2).collect::<Vec<_>>(), [1, 2]);
    for (size, slices, starts) in [
        (1, 3, vec![0, 1, 2]),
        (2, 3, vec![0]),
        (2, 4, vec![0, 2]),
        (2, 7, vec![0, 2, 4]),
        (3, 7, vec![0, 4]),
        (4, 7, vec![0]),
        (7, 7, vec![0]),
        (3, 3, vec![0]),
    ] {
        assert_eq!(compute_starts(size, slices).collect::<Vec<_>>(), starts, "{size}c in {slices}g");
    }
}

#[test]
fn packs_compute_instances_that_first_fit_would_not() {
    let places = |slices, sizes: &[u32]| {
        compute_places(slices, &[], sizes).map(|p| p.iter().map(|p| p.start).collect::<Vec<_>>())
    };
    assert_eq!(places(7, &[3, 2, 2]), Some(vec![4, 0, 2]));
    assert_eq!(places(7, &[4, 3]), Some(vec![0, 4]));
    assert_eq!(places(7, &[3, 3, 1]), Some(vec![0, 4, 3]));
    assert_eq!(places(3, &[2, 1]), Some(vec![0, 2]));
    assert_eq!(places(3, &[2, 2]), None);
    assert_eq!(places(4, &[3]), None);
    assert_eq!(places(7, &[4, 2, 1, 1]), None);
}

#[test]
fn refuses_a_list_of_profiles_that_no_gpu_has() {
    let mut far = profiles("a100-40gb");
    far[0].placements.push(Placement { start: u32::MAX, size: 1 });
    assert_eq!(Geometry::new(&far, 580).unwrap_err().reason, Reason::DriverError);
    let many: Vec<GiProfile> = std::iter::repeat_n(far[1].clone(), 33).collect();
    assert!(Geometry::new(&many, 580).is_err());
}

/// A planner that ignores where memory slices lie publishes geometries that no GPU can hold.
#[test]
fn names_the_clash_in_each_illegal_geometry_of_a_published_planner() {
    let (profiles, geometry) = geometry("a100-80gb", 580);
    let mut illegal = Vec::new();
    let scenarios = include_str!("../../tests/data/parvagpu-placements.txt");
    for scenario in scenarios.lines().filter(|line| !line.starts_with('#')) {
        let clashes: Vec<Clash> =
            scenario.split(" | ").filter_map(|gpu| geometry.legal(&at(&profiles, gpu)).err()).collect();
        for clash in &clashes {
            assert!(matches!(clash, Clash::Overlap(..) | Clash::NoSuchPlace(_)), "{clash}");
        }
        illegal.push((scenario.split(" | ").count(), clashes.len()));
    }
    assert_eq!(illegal, [(2, 0), (3, 1), (5, 4), (7, 5), (13, 11), (16, 11)]);
}
