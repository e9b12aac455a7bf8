//! Written starts against brute force: where all are written there is nothing to choose, where one is the rest is
//! chosen as ever among the states that have it.

use super::{
    oracles::{Weighed, best_by_force, make_one, states, weigh},
    *,
};
use crate::{
    fixtures::{gpu, node, with_placed},
    geometry::Placed,
    node::InUse,
};

/// What a GPU is to hold: these instances, of which those for which `written` answers true begin where they lie.
fn wanted(gpu: &Gpu, state: &[Placed], written: impl Fn(usize) -> bool) -> GpuTarget {
    let mut target = wish(gpu, "");
    for (at, placed) in state.iter().enumerate() {
        let slices = placed.profile.slices;
        let known = target.wanted.iter().position(|wanted| wanted.profile_id == placed.profile_id);
        let known = known.unwrap_or_else(|| {
            target.wanted.push(WantedProfile {
                profile_id: placed.profile_id,
                profile: placed.profile,
                instances: vec![],
                loose: vec![],
                placed: vec![],
            });
            target.wanted.len() - 1
        });
        if written(at) {
            target.wanted[known].placed.push((placed.placement.start, vec![slices]));
        } else {
            target.wanted[known].instances.push(vec![slices]);
        }
    }
    target
}

fn starts(plan: &GpuPlan) -> Vec<(u32, u32)> {
    let mut starts: Vec<(u32, u32)> =
        plan.after.iter().map(|spec| (spec.placement.start, spec.profile_id)).collect();
    starts.sort_unstable();
    starts
}

fn sorted(state: &[Placed]) -> Vec<(u32, u32)> {
    let mut starts: Vec<(u32, u32)> = state.iter().map(|p| (p.placement.start, p.profile_id)).collect();
    starts.sort_unstable();
    starts
}

#[test]
fn where_all_starts_are_written_exactly_those_come_about_and_what_is_right_stays() {
    for (key, shorts, step) in
        [("a100-40gb", &["1g", "2g", "3g", "4g", "7g"][..], 13), ("a30-24gb", &["1g", "2g", "4g"], 1)]
    {
        let gpu = gpu(key, 0);
        let states = states(&gpu, shorts);
        for state in states.iter().step_by(step) {
            let now = node(vec![with_placed(gpu.clone(), state)]);
            for target in &states {
                let plan = make_one(&now, &wanted(&gpu, target, |_| true)).unwrap();
                assert!(crate::plan::audit(&plan, &now).is_empty());
                let common = state.iter().filter(|placed| target.contains(placed)).count();
                assert_eq!(counts(&plan.gpus[0]), [common, state.len() - common, target.len() - common]);
                assert_eq!(starts(&plan.gpus[0]), sorted(target));
            }
        }
    }
}

#[test]
fn where_one_start_is_written_the_rest_is_the_best_that_goes_with_it() {
    let gpu = gpu("a100-40gb", 0);
    let states = states(&gpu, &["1g", "2g", "3g", "4g", "7g"]);
    let mut seen = 0;
    for state in states.iter().step_by(29) {
        let now = node(vec![with_placed(gpu.clone(), state)]);
        for target in states.iter().step_by(3) {
            for (at, placed) in target.iter().enumerate() {
                let with: Vec<Weighed> = (states.iter())
                    .filter(|other| other.contains(placed))
                    .map(|other| weigh(&gpu, other))
                    .collect();
                let plan = make_one(&now, &wanted(&gpu, target, |other| other == at)).unwrap();
                let free = wanted(&gpu, target, |_| false);
                let [kept, ..] = counts(&plan.gpus[0]);
                assert_eq!(
                    (kept, starts(&plan.gpus[0])),
                    best_by_force(state, &free, &with),
                    "{state:?} {placed}"
                );
                seen += 1;
            }
        }
    }
    assert!(seen > 3_000, "{seen}");
}

#[test]
fn a_written_start_that_is_taken_by_what_is_in_use_is_blocked_and_names_it() {
    let gpu = fixtures::holding(gpu("a100-40gb", 0), "2g@4* 1g@0");
    let threes: Vec<Placed> =
        states(&gpu, &["3g"]).into_iter().filter(|state| state.len() == 1).flatten().collect();
    let at = |start: u32| threes.iter().find(|placed| placed.placement.start == start).copied().unwrap();
    let node = node(vec![gpu.clone()]);
    let faults = make_one(&node, &wanted(&gpu, &[at(4)], |_| true)).unwrap_err();
    assert_eq!(faults[0].reason.exit(), crate::reason::Exit::Blocked);
    assert!(faults[0].message.contains("2g.10gb"), "{faults:?}");
    // The busy one may stay where it is wanted.
    let mut both = wanted(&gpu, &[at(0)], |_| true);
    both.wanted.extend(wish(&gpu, "2g").wanted);
    let plan = make_one(&node, &both).unwrap();
    assert_eq!(after(&plan.gpus[0]), "3g@0 2g@4");
    assert_eq!(gpu.instances[1].in_use, InUse::Yes);
}
