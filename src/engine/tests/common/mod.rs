//! What the integration tests share: simulated nodes, layouts in short, and plans made by hand that the planner
//! would never make.
#![allow(dead_code, reason = "not every test file uses all of it")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod node;

pub(crate) use node::{Simulated, planned};

use migd_core::{
    node::{Gpu, Node},
    plan::{Action, ComputeSpec, FORMAT, GpuPlan, InstanceSpec, Plan, Step, Summary, gpu_fingerprint},
    profile::Placement,
};

/// What a GPU holds, `1g.5gb@0 3g.20gb@4(2+1)`; `*` after an instance that is in use.
pub(crate) fn held(gpu: &Gpu) -> String {
    let instance = |i: &migd_core::node::GpuInstance| {
        let split: Vec<String> = i.split().iter().map(u32::to_string).collect();
        let split =
            if i.split() == [i.profile.slices] { String::new() } else { format!("({})", split.join("+")) };
        let star = if i.in_use.counts() { "*" } else { "" };
        format!("{}@{}{split}{star}", i.profile, i.placement.start)
    };
    gpu.instances.iter().map(instance).collect::<Vec<_>>().join(" ")
}

/// An instance from `3g.20gb@4` or `3g.20gb@4(2+1)` on this GPU.
pub(crate) fn spec(gpu: &Gpu, text: &str) -> InstanceSpec {
    let (text, split) = text.split_once('(').map_or((text, None), |(text, split)| (text, Some(split)));
    let (name, start) = text.split_once('@').unwrap();
    let profile = gpu.profiles.iter().find(|p| p.name.to_string() == name);
    let profile = profile.unwrap_or_else(|| panic!("no {name} on {}", gpu.model));
    let start: u32 = start.parse().unwrap();
    let place = profile.placements.iter().find(|place| place.start == start);
    let placement = *place.unwrap_or_else(|| panic!("no {name} at {start}"));
    let slices: Vec<u32> = match split {
        Some(split) => split.trim_end_matches(')').split('+').map(|n| n.parse().unwrap()).collect(),
        None => vec![profile.slices],
    };
    let mut next = 0;
    let compute = slices.into_iter().map(|slices| {
        let placement = Some(Placement { start: next, size: slices });
        next += slices;
        ComputeSpec { slices, placement }
    });
    InstanceSpec { placement, profile_id: profile.id, profile: profile.name, compute: compute.collect() }
}

/// Instances from words as [`spec`] takes them.
pub(crate) fn specs(gpu: &Gpu, text: &str) -> Vec<InstanceSpec> {
    text.split_whitespace().map(|word| spec(gpu, word)).collect()
}

/// A plan for GPUs by index: `None` turns MIG off, `Some` holds exactly these.
pub(crate) fn plan(node: &Node, wanted: &[(u32, Option<&str>)]) -> Plan {
    let gpus = wanted.iter().map(|(index, wanted)| {
        let gpu = node.gpus.iter().find(|gpu| gpu.index == *index).unwrap();
        gpu_plan(node, gpu, *wanted)
    });
    Plan {
        format: FORMAT.to_owned(),
        layout: "by-hand".to_owned(),
        fingerprint: String::new(),
        summary: Summary::default(),
        gpus: gpus.collect(),
        notes: Vec::new(),
    }
}

fn gpu_plan(node: &Node, gpu: &Gpu, wanted: Option<&str>) -> GpuPlan {
    let after = wanted.map(|text| specs(gpu, text)).unwrap_or_default();
    let has: Vec<InstanceSpec> = gpu
        .instances
        .iter()
        .map(|i| InstanceSpec {
            placement: i.placement,
            profile_id: i.profile_id,
            profile: i.profile,
            compute: i
                .compute
                .iter()
                .map(|c| ComputeSpec { slices: c.slices, placement: c.placement })
                .collect(),
        })
        .collect();
    let stays = |spec: &&InstanceSpec| {
        after.iter().any(|a| a.placement == spec.placement && a.profile_id == spec.profile_id)
    };
    let (keep, destroy): (Vec<_>, Vec<_>) = has.iter().partition(|spec| stays(spec));
    let comes = |spec: &&InstanceSpec| !keep.iter().any(|kept| kept.placement == spec.placement);
    let create: Vec<&InstanceSpec> = after.iter().filter(comes).collect();
    let destroying = destroy.iter().flat_map(|spec| destroying(spec));
    let creating = create.iter().flat_map(|spec| creating(spec));
    let (mut mode_steps, mut instance_steps) = (Vec::new(), Vec::new());
    if gpu.mig_enabled() == wanted.is_some() {
        instance_steps.extend(destroying.chain(creating).map(step));
    } else {
        mode_steps.extend(destroying.map(step));
        mode_steps.push(step(Action::SetMode { enabled: wanted.is_some() }));
        mode_steps.push(step(Action::ResetIfPending));
        instance_steps.extend(creating.map(step));
    }
    let owned = |specs: &[&InstanceSpec]| specs.iter().map(|spec| (*spec).clone()).collect();
    GpuPlan {
        index: gpu.index,
        uuid: gpu.uuid.clone(),
        model: gpu.model.clone(),
        pci: gpu.pci,
        fingerprint: gpu_fingerprint(gpu, &node.driver),
        provisional: false,
        mode_now: gpu.mig,
        mig_after: wanted.is_some(),
        reset: false,
        keep: owned(&keep),
        destroy: owned(&destroy),
        create: owned(&create),
        mode_steps,
        instance_steps,
        after,
    }
}

fn destroying(spec: &InstanceSpec) -> Vec<Action> {
    let instance = spec.placement;
    let compute = |c: &ComputeSpec| Action::DestroyCompute { instance, compute: c.clone() };
    let mut actions: Vec<Action> = spec.compute.iter().map(compute).collect();
    actions.push(Action::DestroyInstance {
        placement: instance,
        profile_id: spec.profile_id,
        profile: spec.profile,
    });
    actions
}

fn creating(spec: &InstanceSpec) -> Vec<Action> {
    destroying(spec).iter().rev().filter_map(Action::undo).collect()
}

pub(crate) fn step(action: Action) -> Step {
    Step { action, limit_ms: 20_000 }
}
