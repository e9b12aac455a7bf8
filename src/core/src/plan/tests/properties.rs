//! What holds for every plan.

use super::*;
use crate::{
    fixtures::{gpu, node, nodes},
    node::{InUse, MigMode},
};
use proptest::prelude::*;

const MODELS: [&str; 4] = ["a100-40gb", "a30-24gb", "h100-sxm-80gb", "rtx-pro-6000-blackwell-96gb"];

/// A GPU in a random legal state: instances from a random walk over what is creatable, each with a random
/// split and use.
fn random_gpu(key: &str, seed: &[u8], mode: MigMode) -> Gpu {
    let mut gpu = Gpu { mig: Some(mode), ..gpu(key, 0) };
    if !mode.current {
        return gpu;
    }
    let geometry = crate::geometry::Geometry::new(&gpu.profiles, 580).unwrap();
    let mut state = Vec::new();
    let mut instances = Vec::new();
    for bytes in seed.chunks_exact(3) {
        let profile = &gpu.profiles[usize::from(bytes[0]) % gpu.profiles.len()];
        let starts = geometry.creatable(profile.id, &state);
        let Some(start) = starts.get(usize::from(bytes[1]) % starts.len().max(1)) else { continue };
        let placement = *profile.placements.iter().find(|p| p.start == *start).unwrap();
        state.push(crate::geometry::Placed { placement, profile_id: profile.id, profile: profile.name });
        let sizes: Vec<u32> = match bytes[2] % 4 {
            0 => vec![profile.slices],
            1 => vec![1],
            2 => vec![1; profile.slices as usize],
            _ => vec![],
        };
        let places = crate::geometry::compute_places(profile.slices, &[], &sizes).unwrap();
        let in_use = if bytes[2] > 200 { InUse::Yes } else { InUse::No };
        instances.push(crate::node::GpuInstance {
            id: instances.len() as u32,
            profile_id: profile.id,
            profile: profile.name,
            placement,
            in_use,
            processes: vec![],
            compute: sizes
                .iter()
                .zip(places)
                .enumerate()
                .map(|(at, (slices, place))| crate::node::ComputeInstance {
                    id: at as u32,
                    profile_id: *slices,
                    profile: profile.name.with_compute(*slices),
                    slices: *slices,
                    placement: Some(place),
                    uuid: None,
                    in_use,
                })
                .collect(),
        });
    }
    instances.sort_by_key(|instance| instance.placement);
    gpu.instances = instances;
    gpu
}

/// A random wish, most of them placeable.
fn random_wish(gpu: &Gpu, seed: &[u8]) -> String {
    let mut words = vec![];
    for bytes in seed.chunks_exact(2) {
        let profile = &gpu.profiles[usize::from(bytes[0]) % gpu.profiles.len()];
        let short = format!(
            "{}g{}{}",
            profile.slices,
            if profile.slot == 9 { "2" } else { "" },
            profile.name.attribute.suffix()
        );
        match bytes[1] % 4 {
            0 if profile.slices > 1 => words.push(format!("1c.{short}")),
            1 => words.push(format!("2x{short}")),
            _ => words.push(short),
        }
    }
    words.join(" ")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6_000, ..ProptestConfig::default() })]

    #[test]
    fn carried_out_it_is_the_target_and_nothing_is_left_to_do(
        model in 0usize..4,
        seed in proptest::collection::vec(any::<u8>(), 0..24),
        wish_seed in proptest::collection::vec(any::<u8>(), 0..8),
        current in any::<bool>(),
        pending in any::<bool>(),
        off in 0u8..8,
    ) {
        let before = random_gpu(MODELS[model], &seed, MigMode { current, pending });
        let text = if off == 0 { "off".to_owned() } else { random_wish(&before, &wish_seed) };
        // `plan_one` audits.
        let Ok(plan) = plan_one(before.clone(), &text) else { return Ok(()) };
        let again = plan_one(before.clone(), &text).unwrap();
        prop_assert_eq!(serde_json::to_string(&plan).unwrap(), serde_json::to_string(&again).unwrap());

        // As many GPU and compute instances of each profile as wanted.
        for wanted in wish(&before, &text).wanted {
            let of: Vec<&InstanceSpec> =
                plan.after.iter().filter(|spec| spec.profile_id == wanted.profile_id).collect();
            let mut have: Vec<u32> = of.iter().flat_map(|spec| &spec.compute).map(|c| c.slices).collect();
            let mut want: Vec<u32> =
                wanted.instances.iter().flatten().chain(&wanted.loose).copied().collect();
            have.sort_unstable();
            want.sort_unstable();
            prop_assert_eq!(have, want);
            prop_assert!(of.len() >= wanted.instances.len());
        }
        let after = carried_out(&before, &plan);
        prop_assert!(plan_one(after, &text).unwrap().is_empty());

        // What was in use is still there.
        for instance in before.instances.iter().filter(|instance| instance.in_use.counts()) {
            let kept = plan.keep.iter().find(|spec| spec.placement == instance.placement);
            for compute in &instance.compute {
                let spec = ComputeSpec { slices: compute.slices, placement: compute.placement };
                prop_assert!(kept.unwrap().compute.contains(&spec));
            }
        }
    }
}

#[test]
fn a_plan_survives_json() {
    let plan = plan(&nodes("a100-40gb", 2), "2x1g 2g 1c.3g").unwrap();
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    assert!(text.starts_with(r#"{"format":"migd-plan/1","layout":"#));
}

#[test]
fn the_fingerprint_changes_with_what_the_plan_rests_on_and_nothing_else() {
    let node = node(vec![crate::fixtures::holding(gpu("a100-40gb", 0), "1g@0 3g@4:2c+1c")]);
    let print = |change: &dyn Fn(&mut Node)| {
        let mut node = node.clone();
        change(&mut node);
        gpu_fingerprint(&node.gpus[0], &node.driver)
    };
    let base = print(&|_| {});
    assert_eq!(base.len(), 64);
    let same: [&dyn Fn(&mut Node); 4] = [
        &|n| n.gpus[0].index = 7,
        &|n| n.gpus[0].minor = None,
        &|n| n.gpus[0].instances[0].in_use = InUse::Yes,
        &|n| n.gpus[0].instances[1].compute.reverse(),
    ];
    for change in same {
        assert_eq!(print(change), base);
    }
    let other: [&dyn Fn(&mut Node); 7] = [
        &|n| n.driver.version = "570.1".into(),
        &|n| n.gpus[0].uuid.0.push('x'),
        &|n| n.gpus[0].pci.bus += 1,
        &|n| n.gpus[0].mig = Some(MigMode { current: true, pending: false }),
        &|n| {
            n.gpus[0].profiles.pop();
        },
        &|n| {
            n.gpus[0].instances.pop();
        },
        &|n| {
            n.gpus[0].instances[1].compute.pop();
        },
    ];
    for change in other {
        assert_ne!(print(change), base);
    }
}
