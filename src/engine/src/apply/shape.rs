//! What a GPU holds, as plans speak of it, and how actions change that: for comparing, never for deciding.

use migd_core::{
    node::{ComputeInstance, Gpu},
    plan::{Action, ComputeSpec, InstanceSpec},
};
use std::cmp::Reverse;

/// What this GPU holds, by start.
pub(crate) fn of(gpu: &Gpu) -> Vec<InstanceSpec> {
    let mut shape: Vec<InstanceSpec> = gpu
        .instances
        .iter()
        .map(|instance| {
            let spec = |c: &ComputeInstance| ComputeSpec { slices: c.slices, placement: c.placement };
            InstanceSpec {
                placement: instance.placement,
                profile_id: instance.profile_id,
                profile: instance.profile,
                compute: instance.compute.iter().map(spec).collect(),
            }
        })
        .collect();
    order(&mut shape);
    shape
}

/// What is held after these actions.
pub(crate) fn after<'a>(
    mut shape: Vec<InstanceSpec>,
    actions: impl IntoIterator<Item = &'a Action>,
) -> Vec<InstanceSpec> {
    for action in actions {
        take(&mut shape, action);
    }
    order(&mut shape);
    shape
}

fn take(shape: &mut Vec<InstanceSpec>, action: &Action) {
    match action {
        Action::SetMode { .. } | Action::ResetIfPending => {}
        Action::CreateInstance { placement, profile_id, profile } => shape.push(InstanceSpec {
            placement: *placement,
            profile_id: *profile_id,
            profile: *profile,
            compute: Vec::new(),
        }),
        Action::DestroyInstance { placement, .. } => shape.retain(|spec| spec.placement != *placement),
        Action::CreateCompute { instance, compute } => {
            if let Some(spec) = shape.iter_mut().find(|spec| spec.placement == *instance) {
                spec.compute.push(compute.clone());
            }
        }
        Action::DestroyCompute { instance, compute } => {
            if let Some(spec) = shape.iter_mut().find(|spec| spec.placement == *instance)
                && let Some(at) = spec.compute.iter().position(|has| fits(compute, has))
            {
                spec.compute.remove(at);
            }
        }
    }
}

/// Whether `has` is what is wanted: the same profiles at the same places with the same compute instances, at
/// the same places as far as both say.
pub(crate) fn same(wanted: &[InstanceSpec], has: &[InstanceSpec]) -> bool {
    wanted.len() == has.len()
        && wanted.iter().all(|wanted| {
            has.iter().any(|has| {
                wanted.placement == has.placement
                    && wanted.profile_id == has.profile_id
                    && same_compute(&wanted.compute, &has.compute)
            })
        })
}

fn same_compute(wanted: &[ComputeSpec], has: &[ComputeSpec]) -> bool {
    let mut left: Vec<&ComputeSpec> = has.iter().collect();
    // Those with a place choose first, so that those without do not take what only the former can have.
    let (placed, free): (Vec<_>, Vec<_>) = wanted.iter().partition(|spec| spec.placement.is_some());
    placed.into_iter().chain(free).all(|wanted| {
        let at = left.iter().position(|has| fits(wanted, has));
        at.map(|at| left.remove(at)).is_some()
    }) && left.is_empty()
}

fn fits(wanted: &ComputeSpec, has: &ComputeSpec) -> bool {
    wanted.slices == has.slices && wanted.placement.zip(has.placement).is_none_or(|(a, b)| a == b)
}

/// Whether an instance that exists is one that is meant.
pub(crate) fn fits_instance(wanted: &ComputeSpec, has: &ComputeInstance) -> bool {
    fits(wanted, &ComputeSpec { slices: has.slices, placement: has.placement })
}

fn order(shape: &mut [InstanceSpec]) {
    shape.sort_unstable_by_key(|spec| spec.placement);
    for spec in shape {
        spec.compute.sort_unstable_by_key(|c| (Reverse(c.slices), c.placement));
    }
}

/// For people: `1g.5gb@0 3g.20gb@4(1+1)`.
pub(crate) fn text(shape: &[InstanceSpec]) -> String {
    if shape.is_empty() {
        return "no instances".to_owned();
    }
    let one = |spec: &InstanceSpec| {
        let split: Vec<String> = spec.compute.iter().map(|c| c.slices.to_string()).collect();
        let split = match spec.compute.as_slice() {
            [whole] if whole.slices == spec.profile.slices => String::new(),
            [] => "(no compute instance)".to_owned(),
            _ => format!("({})", split.join("+")),
        };
        format!("{}@{}{split}", spec.profile, spec.placement.start)
    };
    shape.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use migd_core::profile::Placement;

    fn place(start: u32, size: u32) -> Placement {
        Placement { start, size }
    }

    fn instance(
        start: u32,
        size: u32,
        profile_id: u32,
        name: &str,
        compute: &[(u32, Option<u32>)],
    ) -> InstanceSpec {
        let compute = compute.iter().map(|(slices, start)| ComputeSpec {
            slices: *slices,
            placement: start.map(|start| place(start, *slices)),
        });
        InstanceSpec {
            placement: place(start, size),
            profile_id,
            profile: name.parse().unwrap(),
            compute: compute.collect(),
        }
    }

    #[test]
    fn actions_and_their_undo_cancel() {
        let start = vec![instance(4, 4, 9, "3g.20gb", &[(2, Some(0)), (1, Some(2))])];
        let actions = [
            Action::DestroyCompute {
                instance: place(4, 4),
                compute: ComputeSpec { slices: 1, placement: Some(place(2, 1)) },
            },
            Action::DestroyCompute {
                instance: place(4, 4),
                compute: ComputeSpec { slices: 2, placement: None },
            },
            Action::DestroyInstance {
                placement: place(4, 4),
                profile_id: 9,
                profile: "3g.20gb".parse().unwrap(),
            },
            Action::CreateInstance {
                placement: place(0, 1),
                profile_id: 19,
                profile: "1g.5gb".parse().unwrap(),
            },
        ];
        let there = after(start.clone(), &actions);
        assert_eq!(text(&there), "1g.5gb@0(no compute instance)");
        let undo: Vec<Action> = actions.iter().rev().filter_map(Action::undo).collect();
        assert!(same(&after(there, &undo), &start));
    }

    #[test]
    fn a_place_counts_only_where_both_say_it() {
        let exact = [instance(4, 4, 9, "3g.20gb", &[(1, Some(0)), (1, Some(1))])];
        let loose = [instance(4, 4, 9, "3g.20gb", &[(1, None), (1, Some(0))])];
        let other = [instance(4, 4, 9, "3g.20gb", &[(1, Some(2)), (1, Some(1))])];
        assert!(same(&loose, &exact));
        assert!(!same(&exact, &other));
    }

    #[test]
    fn another_profile_place_or_number_is_not_the_same() {
        let one = [instance(0, 1, 19, "1g.5gb", &[(1, None)])];
        assert!(!same(&one, &[instance(1, 1, 19, "1g.5gb", &[(1, None)])]));
        assert!(!same(&one, &[instance(0, 1, 20, "1g.5gb+me", &[(1, None)])]));
        assert!(!same(&one, &[instance(0, 1, 19, "1g.5gb", &[])]));
        assert!(!same(&one, &[]));
        assert!(!same(&[], &one));
    }
}
