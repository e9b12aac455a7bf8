//! Figures computed elsewhere, by enumeration of all of a geometry.

use super::*;
use crate::{
    fixtures::{gpu, named, node, with_placed},
    geometry::{Geometry, Placed},
    layout,
    node::InUse,
    target,
};
use std::collections::{BTreeMap, BTreeSet};

const TRANSITIONS: &str = include_str!("../../../tests/data/transitions-7slice.csv");
const MULTISETS: &str = include_str!("../../../tests/data/multisets-7slice.txt");

pub(super) fn states(gpu: &Gpu, shorts: &[&str]) -> Vec<Vec<Placed>> {
    let ids: Vec<u32> = shorts.iter().map(|short| named(&gpu.profiles, short).id).collect();
    Geometry::new(&gpu.profiles, 580).unwrap().states(&ids)
}

/// Wishes for every multiset among the states, the empty one first.
fn multisets(gpu: &Gpu, states: &[Vec<Placed>]) -> Vec<GpuTarget> {
    let mut seen: BTreeSet<BTreeMap<u32, usize>> = BTreeSet::new();
    for state in states {
        let mut counts = BTreeMap::new();
        state.iter().for_each(|placed| *counts.entry(placed.profile_id).or_default() += 1);
        seen.insert(counts);
    }
    let wish = |counts: BTreeMap<u32, usize>| GpuTarget {
        wanted: counts
            .into_iter()
            .map(|(id, count)| {
                let profile = gpu.profile(id).unwrap();
                WantedProfile {
                    profile_id: id,
                    profile: profile.name,
                    instances: vec![vec![profile.slices]; count],
                    loose: vec![],
                    placed: vec![],
                }
            })
            .collect(),
        ..wish(gpu, "")
    };
    seen.into_iter().map(wish).collect()
}

pub(super) fn make_one(node: &Node, wish: &GpuTarget) -> Result<Plan, Vec<Diagnostic>> {
    let target = Target {
        layout: "oracle".into(),
        gpus: vec![wish.clone()],
        blocked: vec![],
        untouched: vec![],
        notes: vec![],
    };
    make(node, &target, &Policy::default())
}

/// A state with what the planner weighs, found without it: how much is creatable beside it, and its instances
/// by (start, profile id).
pub(super) struct Weighed {
    state: Vec<Placed>,
    openness: usize,
    starts: Vec<(u32, u32)>,
}

pub(super) fn weigh(gpu: &Gpu, state: &[Placed]) -> Weighed {
    let geometry = Geometry::new(&gpu.profiles, 580).unwrap();
    let plain = gpu.profiles.iter().filter(|p| p.name.attribute == crate::profile::Attribute::Plain);
    let mut starts: Vec<(u32, u32)> = state.iter().map(|p| (p.placement.start, p.profile_id)).collect();
    starts.sort_unstable();
    Weighed {
        state: state.to_vec(),
        openness: plain.map(|p| geometry.creatable(p.id, state).len()).sum(),
        starts,
    }
}

/// How many are kept and where all lie in the end, by looking at every state of the wanted multiset.
pub(super) fn best_by_force(
    now: &[Placed],
    wish: &GpuTarget,
    states: &[Weighed],
) -> (usize, Vec<(u32, u32)>) {
    let wanted = |state: &[Placed]| {
        wish.wanted.iter().map(|w| w.instances.len()).sum::<usize>() == state.len()
            && wish
                .wanted
                .iter()
                .all(|w| state.iter().filter(|p| p.profile_id == w.profile_id).count() == w.instances.len())
    };
    let kept = |weighed: &Weighed| weighed.state.iter().filter(|placed| now.contains(placed)).count();
    let best = states
        .iter()
        .filter(|weighed| wanted(&weighed.state))
        .min_by_key(|weighed| (std::cmp::Reverse((kept(weighed), weighed.openness)), weighed.starts.clone()))
        .unwrap();
    (kept(best), best.starts.clone())
}

/// All transitions of a geometry: pairs, kept, destroyed, created; then with each instance pinned in turn:
/// triples, reachable.
fn walk(key: &str, shorts: &[&str]) -> ([usize; 4], [usize; 2]) {
    let gpu = gpu(key, 0);
    let states = states(&gpu, shorts);
    let wishes = multisets(&gpu, &states);
    let weighed: Vec<Weighed> = states.iter().map(|state| weigh(&gpu, state)).collect();
    let (mut sums, mut pinned) = ([0; 4], [0; 2]);
    for state in &states {
        let now = node(vec![with_placed(gpu.clone(), state)]);
        for wish in &wishes {
            let plan = make_one(&now, wish).unwrap();
            let faults = super::super::audit(&plan, &now);
            assert!(faults.is_empty(), "{faults:?}");
            let [kept, destroyed, created] = counts(&plan.gpus[0]);
            let mut starts: Vec<(u32, u32)> =
                plan.gpus[0].after.iter().map(|spec| (spec.placement.start, spec.profile_id)).collect();
            starts.sort_unstable();
            assert_eq!((kept, starts), best_by_force(state, wish, &weighed), "{state:?} {wish:?}");
            sums = [sums[0] + 1, sums[1] + kept, sums[2] + destroyed, sums[3] + created];
            for (at, placed) in state.iter().enumerate() {
                let mut busy = now.clone();
                busy.gpus[0].instances[at].in_use = InUse::Yes;
                pinned[0] += 1;
                if let Ok(plan) = make_one(&busy, wish) {
                    assert!(plan.gpus[0].keep.iter().any(|spec| spec.placement == placed.placement));
                    pinned[1] += 1;
                }
            }
        }
    }
    (sums, pinned)
}

#[test]
fn all_transitions_of_seven_slices() {
    let (sums, pinned) = walk("a100-40gb", &["1g", "2g", "3g", "4g", "7g"]);
    assert_eq!(sums, [11_324, 15_060, 23_130, 19_806]);
    assert_eq!(pinned, [38_190, 20_092]);
}

#[test]
fn all_transitions_of_four_slices() {
    let a30 = walk("a30-24gb", &["1g", "2g", "4g"]);
    let rtx = walk("rtx-pro-6000-blackwell-96gb", &["1g", "2g", "4g"]);
    assert_eq!(a30, rtx);
    assert_eq!(a30, ([260, 223, 287, 271], [510, 281]));
}

#[test]
fn the_published_sample_row_by_row() {
    let gpu = gpu("a100-40gb", 0);
    let mut rows = 0;
    for row in TRANSITIONS.lines().skip(1) {
        let [from, to, figures @ ..] = &row.split(',').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let from = if *from == "empty" { String::new() } else { from.replace('|', " ") };
        let to = if *to == "empty" { String::new() } else { to.replace('+', " ") };
        let plan = plan_one(fixtures::holding(gpu.clone(), &from), &to).unwrap();
        let figures: Vec<usize> = figures.iter().map(|figure| figure.parse().unwrap()).collect();
        assert_eq!(counts(&plan).to_vec(), figures, "{row}");
        rows += 1;
    }
    assert_eq!(rows, 3_800);
}

/// From the text of a layout to a verdict, for each multiset that the peer's own tests use.
#[test]
fn the_peers_multisets_are_judged_right() {
    let node = node(vec![gpu("a100-40gb", 0)]);
    let (mut rows, mut placeable) = (0, 0);
    for row in MULTISETS.lines().filter(|line| !line.starts_with('#')) {
        let mut words = row.split_whitespace();
        let expected = words.next() == Some("yes");
        let devices: Vec<String> = words
            .map(|word| {
                let (count, name) = word.split_once('x').unwrap();
                format!("{name}: {count}")
            })
            .collect();
        let text = format!(
            "version: v1\nmig-configs:\n  one:\n  - devices: all\n    mig-enabled: true\n    mig-devices: {{{}}}\n",
            devices.join(", ")
        );
        let file = layout::parse(&text, "t").unwrap();
        let target = target::resolve(file.find("one").unwrap(), &node).unwrap();
        // Written in migd's form it is the same.
        let native = layout::write::native(&file.layouts);
        let again = layout::parse(&native, "t").unwrap_or_else(|faults| panic!("{native}{faults:#?}"));
        let own = target::resolve(again.find("one").unwrap(), &node).unwrap();
        assert_eq!(own.gpus[0].wanted, target.gpus[0].wanted, "{row}");
        match make(&node, &target, &Policy::default()) {
            Ok(plan) => {
                assert!(expected, "{row}: {}", after(&plan.gpus[0]));
                let faults = super::super::audit(&plan, &node);
                assert!(faults.is_empty(), "{row}: {faults:?}");
            }
            Err(faults) => {
                assert!(!expected, "{row}: {faults:?}");
                assert_eq!(faults[0].reason, crate::reason::Reason::LayoutUnplaceable, "{row}");
            }
        }
        rows += 1;
        placeable += usize::from(expected);
    }
    assert_eq!((rows, placeable), (377, 192));
}

/// Instances that can be kept between the usual layouts, the same from every placement of the first.
#[test]
fn what_stays_between_the_usual_layouts() {
    let layouts = ["7x1g", "3x2g 1g", "2x3g", "4g 3g", "2x1g 2g 3g", "2x2g 3g", "4g 2g 1g", "7g"];
    let kept = [
        [7, 1, 0, 0, 2, 0, 1, 0],
        [1, 4, 0, 0, 1, 2, 2, 0],
        [0, 0, 2, 1, 1, 1, 0, 0],
        [0, 0, 1, 2, 1, 1, 1, 0],
        [2, 1, 1, 1, 4, 2, 0, 0],
        [0, 2, 1, 1, 2, 3, 0, 0],
        [1, 2, 0, 1, 0, 0, 3, 0],
    ];
    let empty = gpu("a100-40gb", 0);
    for (from, row) in layouts.iter().zip(kept) {
        let first = carried_out(&empty, &plan_one(empty.clone(), from).unwrap());
        for (to, expected) in layouts.iter().zip(row) {
            assert_eq!(counts(&plan_one(first.clone(), to).unwrap())[0], expected, "{from} -> {to}");
        }
    }
}
