//! Makes the plan: per GPU what stays, goes and comes, and the steps in their order.

use super::{
    Action, ComputeSpec, FORMAT, GpuPlan, InstanceSpec, Plan, Step, Summary,
    fingerprint::{gpu_fingerprint, hash},
    refuse,
    search::{Choice, Present, cheapest},
    split::Existing,
};
use crate::{
    diagnostic::Diagnostic,
    geometry::{Geometry, Placed},
    node::{Architecture, Driver, Gpu, MigMode, Node},
    reason::Reason,
    target::{GpuTarget, Target, indexes},
};

/// How long each step may take, in milliseconds, before its worker counts as hung: some ten times what was
/// measured on real boards (mode change 6.5 s, reset 10 s, an instance 0.4 s, its end 1 s).
const SET_MODE_MS: u64 = 60_000;
const RESET_MS: u64 = 120_000;
const DESTROY_MS: u64 = 30_000;
const CREATE_MS: u64 = 30_000;

/// What the caller allows. There is nothing yet that could be allowed: what is in use stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {}

/// Finds the cheapest way from `node` to `target`. GPUs that are blocked in the target are left out.
///
/// # Errors
/// Every refusal, each with its GPU: `layout-unplaceable` where the GPU can never hold what is wanted;
/// `instance-in-use` and `pinned-unplaceable` where only instances in use prevent it; `node-changed` if the
/// target is of another node.
pub fn make(node: &Node, target: &Target, _policy: &Policy) -> Result<Plan, Vec<Diagnostic>> {
    let mut gpus = Vec::with_capacity(target.gpus.len());
    let mut faults = Vec::new();
    for wanted in &target.gpus {
        let Some(gpu) = node.gpus.iter().find(|gpu| gpu.uuid == wanted.uuid) else {
            let message = format!("{} is no longer there", wanted.uuid);
            faults.push(Diagnostic::error(Reason::NodeChanged, message).on_gpu(wanted.index));
            continue;
        };
        match plan_gpu(gpu, &node.driver, wanted) {
            Ok(plan) => gpus.push(plan),
            Err(fault) => faults.push(fault),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    gpus.sort_by_key(|gpu| gpu.index);
    let mut notes = target.notes.clone();
    notes.extend(provisional(&gpus));
    let fingerprints: Vec<&str> = gpus.iter().map(|gpu| gpu.fingerprint.as_str()).collect();
    Ok(Plan {
        format: FORMAT.to_owned(),
        layout: target.layout.clone(),
        fingerprint: hash(&fingerprints),
        summary: summary(&gpus),
        gpus,
        notes,
    })
}

fn provisional(gpus: &[GpuPlan]) -> Option<Diagnostic> {
    let all: Vec<u32> = gpus.iter().filter(|gpu| gpu.provisional).map(|gpu| gpu.index).collect();
    (!all.is_empty()).then(|| {
        let message = format!(
            "{}: this driver hides the profiles while MIG is off, so they are taken from the table; they are \
             checked once MIG is on, before anything is created",
            indexes(all)
        );
        Diagnostic::note(Reason::DriverTooOld, message)
    })
}

fn summary(gpus: &[GpuPlan]) -> Summary {
    let count =
        |of: fn(&GpuPlan) -> usize| u32::try_from(gpus.iter().map(of).sum::<usize>()).unwrap_or(u32::MAX);
    Summary {
        keep: count(|gpu| gpu.keep.len()),
        destroy: count(|gpu| gpu.destroy.len()),
        create: count(|gpu| gpu.create.len()),
        mode_changes: count(|gpu| usize::from(gpu.mode_now.is_some_and(|now| now.current != gpu.mig_after))),
        resets: count(|gpu| usize::from(gpu.reset)),
    }
}

fn plan_gpu(gpu: &Gpu, driver: &Driver, target: &GpuTarget) -> Result<GpuPlan, Diagnostic> {
    let Some(mode) = gpu.mig else {
        let message = "it cannot do MIG";
        return Err(Diagnostic::error(Reason::MigUnsupported, message).on_gpu(gpu.index));
    };
    let change = mode_change(mode, target.mig, gpu.architecture);
    let mut plan = GpuPlan {
        index: gpu.index,
        uuid: gpu.uuid.clone(),
        model: gpu.model.clone(),
        pci: gpu.pci,
        fingerprint: gpu_fingerprint(gpu, driver),
        provisional: target.provisional,
        mode_now: Some(mode),
        mig_after: target.mig,
        reset: change.contains(&Action::ResetIfPending),
        keep: Vec::new(),
        destroy: Vec::new(),
        create: Vec::new(),
        mode_steps: Vec::new(),
        instance_steps: Vec::new(),
        after: Vec::new(),
    };
    // Going off and being reset both lose every instance.
    let cleared = !target.mig || plan.reset;
    if cleared && let Some(fault) = refuse::in_use(gpu, target) {
        return Err(fault);
    }
    let present: Vec<Present> = gpu.instances.iter().map(present).collect();
    if cleared {
        plan.destroy = present.iter().map(spec_now).collect();
        plan.mode_steps = teardown(&plan.destroy);
    }
    plan.mode_steps.extend(change.into_iter().map(step));
    if target.mig {
        let left = if cleared { &[][..] } else { &present[..] };
        let geometry = Geometry::of(gpu, driver)?;
        let choice = cheapest(&geometry, left, &target.wanted)
            .map_err(|why| refuse::refusal(&geometry, gpu, left, target, &why))?;
        fill(&mut plan, left, choice);
    }
    Ok(plan)
}

/// What brings the mode about.
fn mode_change(mode: MigMode, want: bool, architecture: Architecture) -> Vec<Action> {
    let by_reset = architecture == Architecture::Ampere;
    match (mode.current == want, mode.pending == want) {
        (true, true) => vec![],
        // What is pending is taken back; what is stays.
        (true, false) => vec![Action::SetMode { enabled: want }],
        (false, true) if by_reset => vec![Action::ResetIfPending],
        (false, _) if by_reset => vec![Action::SetMode { enabled: want }, Action::ResetIfPending],
        (false, _) => vec![Action::SetMode { enabled: want }],
    }
}

/// Turns the choice into specs and steps: compute instances go first, then GPU instances, then new compute
/// instances come in those kept, then new GPU instances, largest first, each with its own.
fn fill(plan: &mut GpuPlan, present: &[Present], choice: Choice) {
    let mut steps = Vec::new();
    for (at, change) in &choice.keep {
        let Some(kept) = present.get(*at) else { continue };
        let instance = kept.placed.placement;
        let destroy = change.destroy.iter().cloned();
        steps.extend(destroy.map(|compute| step(Action::DestroyCompute { instance, compute })));
    }
    let gone: Vec<InstanceSpec> =
        choice.destroy.iter().filter_map(|at| present.get(*at)).map(spec_now).collect();
    steps.extend(teardown(&gone));
    plan.destroy.extend(gone);
    for (at, change) in &choice.keep {
        let Some(kept) = present.get(*at) else { continue };
        let instance = kept.placed.placement;
        let create = change.create.iter().cloned();
        steps.extend(create.map(|compute| step(Action::CreateCompute { instance, compute })));
        plan.keep.push(spec(kept.placed, change.keep.iter().chain(&change.create).cloned().collect()));
    }
    let mut largest_first: Vec<&(Placed, Vec<ComputeSpec>)> = choice.create.iter().collect();
    largest_first
        .sort_by_key(|(placed, _)| (std::cmp::Reverse(placed.placement.size), placed.placement.start));
    for (placed, compute) in largest_first {
        let Placed { placement, profile_id, profile } = *placed;
        steps.push(step(Action::CreateInstance { placement, profile_id, profile }));
        let compute = compute.iter().cloned();
        steps.extend(compute.map(|compute| step(Action::CreateCompute { instance: placement, compute })));
    }
    plan.create = choice.create.into_iter().map(|(placed, compute)| spec(placed, compute)).collect();
    plan.instance_steps = steps;
    plan.after = plan.keep.iter().chain(&plan.create).cloned().collect();
    plan.after.sort_unstable();
}

/// The steps that destroy these: all compute instances, then all GPU instances.
fn teardown(gone: &[InstanceSpec]) -> Vec<Step> {
    let compute = gone.iter().flat_map(|spec| {
        let instance = spec.placement;
        spec.compute.iter().map(move |compute| Action::DestroyCompute { instance, compute: compute.clone() })
    });
    let instances = gone.iter().map(|spec| Action::DestroyInstance {
        placement: spec.placement,
        profile_id: spec.profile_id,
        profile: spec.profile,
    });
    compute.chain(instances).map(step).collect()
}

fn step(action: Action) -> Step {
    let limit_ms = match action {
        Action::SetMode { .. } => SET_MODE_MS,
        Action::ResetIfPending => RESET_MS,
        Action::DestroyCompute { .. } | Action::DestroyInstance { .. } => DESTROY_MS,
        Action::CreateInstance { .. } | Action::CreateCompute { .. } => CREATE_MS,
    };
    Step { action, limit_ms }
}

fn present(instance: &crate::node::GpuInstance) -> Present {
    let mut compute: Vec<Existing> = instance
        .compute
        .iter()
        .map(|compute| Existing {
            spec: ComputeSpec { slices: compute.slices, placement: compute.placement },
            pinned: compute.in_use.counts(),
        })
        .collect();
    compute.sort_by_key(|existing| (existing.spec.placement, existing.spec.slices));
    let placed = Placed {
        placement: instance.placement,
        profile_id: instance.profile_id,
        profile: instance.profile.whole(),
    };
    Present { placed, compute, pinned: refuse::pins(instance) }
}

fn spec_now(present: &Present) -> InstanceSpec {
    spec(present.placed, present.compute.iter().map(|existing| existing.spec.clone()).collect())
}

fn spec(placed: Placed, mut compute: Vec<ComputeSpec>) -> InstanceSpec {
    compute.sort_by_key(|compute| (std::cmp::Reverse(compute.slices), compute.placement));
    InstanceSpec {
        placement: placed.placement,
        profile_id: placed.profile_id,
        profile: placed.profile,
        compute,
    }
}
