//! The planner's rules. Every plan made here is audited.

mod audit;
mod cases;
mod modes;
mod oracles;
mod properties;
mod written;

use super::*;
use crate::{
    diagnostic::Diagnostic,
    fixtures,
    node::{Gpu, Node},
    target::{GpuTarget, Target, WantedProfile},
};

/// What `gpu` is to hold: `2x1g 3g` by the short names of the fixtures; `off`; `3g:2c+1c` for a split, `1c.3g`
/// for a compute instance to be packed.
fn wish(gpu: &Gpu, text: &str) -> GpuTarget {
    let mut wanted: Vec<WantedProfile> = Vec::new();
    let words = if text == "off" { "" } else { text };
    for word in words.split_whitespace() {
        // An `x` may also stand in `+gfx`.
        let counted = word.split_once('x').and_then(|(count, rest)| Some((count.parse().ok()?, rest)));
        let (count, word) = counted.unwrap_or((1, word));
        let (loose, word) = match word.split_once("c.") {
            Some((size, rest)) => (Some(size.parse::<u32>().unwrap()), rest),
            None => (None, word),
        };
        let (short, split) = word.split_once(':').unwrap_or((word, ""));
        let profile = fixtures::named(&gpu.profiles, short);
        let split: Vec<u32> = match split {
            "" => vec![profile.slices],
            split => split.split('+').map(|part| part.trim_end_matches('c').parse().unwrap()).collect(),
        };
        let at = wanted.iter().position(|w| w.profile_id == profile.id).unwrap_or_else(|| {
            wanted.push(WantedProfile {
                profile_id: profile.id,
                profile: profile.name,
                instances: vec![],
                loose: vec![],
                placed: vec![],
            });
            wanted.len() - 1
        });
        for _ in 0..count {
            match loose {
                Some(size) => wanted[at].loose.push(size),
                None => wanted[at].instances.push(split.clone()),
            }
        }
        wanted[at].loose.sort_unstable_by(|a, b| b.cmp(a));
    }
    GpuTarget {
        index: gpu.index,
        uuid: gpu.uuid.clone(),
        place: crate::diagnostic::Place { file: "t".into(), line: 4, column: 5 },
        mig: text != "off",
        wanted,
        provisional: false,
    }
}

/// Plans all GPUs of `node` to the same wish, audits the plan and checks that it is its own fixed point.
fn plan(node: &Node, text: &str) -> Result<Plan, Vec<Diagnostic>> {
    let target = Target {
        layout: text.to_owned(),
        gpus: node.gpus.iter().map(|gpu| wish(gpu, text)).collect(),
        blocked: vec![],
        untouched: vec![],
        notes: vec![],
    };
    let plan = make(node, &target, &Policy::default())?;
    let faults = super::audit(&plan, node);
    assert!(faults.is_empty(), "{text}: {faults:#?}\n{plan:#?}");
    Ok(plan)
}

/// Plans one GPU.
fn plan_one(gpu: Gpu, text: &str) -> Result<GpuPlan, Diagnostic> {
    let plan = plan(&fixtures::node(vec![gpu]), text).map_err(|mut faults| faults.remove(0))?;
    Ok(plan.gpus[0].clone())
}

/// `kept destroyed created`.
fn counts(plan: &GpuPlan) -> [usize; 3] {
    [plan.keep.len(), plan.destroy.len(), plan.create.len()]
}

/// `2g@0 3g@4:2c+1c`, by start.
fn after(plan: &GpuPlan) -> String {
    let one = |spec: &InstanceSpec| {
        let split: Vec<String> = spec.compute.iter().map(|c| format!("{}c", c.slices)).collect();
        let split = match spec.compute.as_slice() {
            [one] if one.slices == spec.profile.slices => String::new(),
            _ => format!(":{}", split.join("+")),
        };
        format!("{}g@{}{split}", spec.profile.slices, spec.placement.start)
    };
    plan.after.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// The GPU as it is when the plan is carried out.
fn carried_out(gpu: &Gpu, plan: &GpuPlan) -> Gpu {
    let mut done = gpu.clone();
    done.mig = Some(crate::node::MigMode { current: plan.mig_after, pending: plan.mig_after });
    done.instances = plan
        .after
        .iter()
        .enumerate()
        .map(|(at, spec)| crate::node::GpuInstance {
            id: at as u32,
            profile_id: spec.profile_id,
            profile: spec.profile,
            placement: spec.placement,
            in_use: crate::node::InUse::No,
            processes: vec![],
            compute: spec
                .compute
                .iter()
                .enumerate()
                .map(|(at, compute)| crate::node::ComputeInstance {
                    id: at as u32,
                    profile_id: compute.slices,
                    profile: spec.profile.with_compute(compute.slices),
                    slices: compute.slices,
                    placement: compute.placement,
                    uuid: None,
                    in_use: crate::node::InUse::No,
                })
                .collect(),
        })
        .collect();
    done
}
