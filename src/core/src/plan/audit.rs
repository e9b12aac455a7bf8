//! Checks a plan against the node by carrying it out on paper. Nothing of `make` is used here, so that a
//! mistake there is found here.
//!
//! ```text
//! node --mode steps--> mode as planned --instance steps--> what the GPU holds  ==  `after`?
//!        only modes, resets and        only instances, never
//!        the destruction before        touching what is in use
//! ```

use super::{Action, ComputeSpec, FORMAT, GpuPlan, InstanceSpec, Plan, fingerprint::gpu_fingerprint};
use crate::{
    diagnostic::Diagnostic,
    node::{Architecture, Gpu, Node},
    profile::Placement,
    reason::Reason,
};
use std::collections::BTreeSet;

/// Checks `plan` against `node`; what it answers are faults, and there should be none.
pub fn audit(plan: &Plan, node: &Node) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    if plan.format != FORMAT {
        faults.push(fault(format!("the plan's format is '{}', not '{FORMAT}'", plan.format)));
    }
    let mut seen = BTreeSet::new();
    for gpu_plan in &plan.gpus {
        if !seen.insert(&gpu_plan.uuid) {
            faults.push(fault("the GPU stands twice in the plan".to_owned()).on_gpu(gpu_plan.index));
        }
        match node.gpus.iter().find(|gpu| gpu.uuid == gpu_plan.uuid) {
            Some(gpu) => {
                let mut paper = Paper::of(gpu, node);
                paper.check(gpu_plan);
                faults.extend(paper.faults.into_iter().map(|f| f.on_gpu(gpu_plan.index)));
            }
            None => {
                let message = format!("{} is not there", gpu_plan.uuid);
                faults.push(Diagnostic::error(Reason::NodeChanged, message).on_gpu(gpu_plan.index));
            }
        }
    }
    totals(plan, &mut faults);
    faults
}

fn fault(message: String) -> Diagnostic {
    Diagnostic::error(Reason::Internal, message)
}

fn totals(plan: &Plan, faults: &mut Vec<Diagnostic>) {
    let mut sums = [0u32; 5];
    for gpu in &plan.gpus {
        let switches = gpu.mode_now.is_some_and(|mode| mode.current != gpu.mig_after);
        let own = [gpu.keep.len(), gpu.destroy.len(), gpu.create.len(), switches.into(), gpu.reset.into()];
        for (sum, own) in sums.iter_mut().zip(own) {
            *sum += u32::try_from(own).unwrap_or(u32::MAX);
        }
    }
    let said = &plan.summary;
    if sums != [said.keep, said.destroy, said.create, said.mode_changes, said.resets] {
        faults.push(fault(format!("the summary {said:?} is not the sum of the GPUs, {sums:?}")));
    }
}

/// A GPU on paper.
struct Paper<'a> {
    gpu: &'a Gpu,
    fingerprint: String,
    current: bool,
    pending: bool,
    resets: u32,
    instances: Vec<Instance>,
    faults: Vec<Diagnostic>,
}

struct Instance {
    placement: Placement,
    profile_id: u32,
    busy: bool,
    compute: Vec<(ComputeSpec, bool)>,
    /// It has been there from the beginning.
    old: bool,
}

impl<'a> Paper<'a> {
    fn of(gpu: &'a Gpu, node: &Node) -> Paper<'a> {
        let instances = gpu.instances.iter().map(|instance| Instance {
            placement: instance.placement,
            profile_id: instance.profile_id,
            busy: instance.in_use.counts(),
            compute: instance
                .compute
                .iter()
                .map(|c| (ComputeSpec { slices: c.slices, placement: c.placement }, c.in_use.counts()))
                .collect(),
            old: true,
        });
        Paper {
            gpu,
            fingerprint: gpu_fingerprint(gpu, &node.driver),
            current: gpu.mig.is_some_and(|mode| mode.current),
            pending: gpu.mig.is_some_and(|mode| mode.pending),
            resets: 0,
            instances: instances.collect(),
            faults: Vec::new(),
        }
    }

    fn wrong(&mut self, message: impl Into<String>) {
        self.faults.push(fault(message.into()));
    }

    fn check(&mut self, plan: &GpuPlan) {
        if plan.fingerprint != self.fingerprint {
            let message = "the GPU is not as it was when the plan was made";
            self.faults.push(Diagnostic::error(Reason::NodeChanged, message));
        }
        if plan.pci != self.gpu.pci || plan.mode_now != self.gpu.mig {
            self.wrong("the plan has another address or mode than the GPU");
        }
        if self.gpu.mig.is_none() {
            self.wrong("the plan is for a GPU without MIG");
        }
        for step in &plan.mode_steps {
            if matches!(step.action, Action::CreateInstance { .. } | Action::CreateCompute { .. }) {
                self.wrong("an instance is created before the modes are settled");
            }
            self.step(&step.action, step.limit_ms);
        }
        for step in &plan.instance_steps {
            if matches!(step.action, Action::SetMode { .. } | Action::ResetIfPending) {
                self.wrong("a mode is changed among the instances");
            }
            self.step(&step.action, step.limit_ms);
        }
        self.compare(plan);
    }

    fn step(&mut self, action: &Action, limit_ms: u64) {
        if limit_ms == 0 {
            self.wrong(format!("{action:?} has no time"));
        }
        match action {
            Action::SetMode { enabled } => self.set_mode(*enabled),
            Action::ResetIfPending => self.reset(),
            Action::DestroyCompute { instance, compute } => self.destroy_compute(*instance, compute),
            Action::DestroyInstance { placement, profile_id, .. } => {
                self.destroy_instance(*placement, *profile_id);
            }
            Action::CreateInstance { placement, profile_id, .. } => {
                self.create_instance(*placement, *profile_id);
            }
            Action::CreateCompute { instance, compute } => self.create_compute(*instance, compute),
        }
    }

    fn set_mode(&mut self, enabled: bool) {
        if !enabled && !self.instances.is_empty() {
            self.wrong("MIG goes off while instances exist");
        }
        self.pending = enabled;
        if self.gpu.architecture != Architecture::Ampere {
            self.current = enabled;
        }
    }

    fn reset(&mut self) {
        self.resets += 1;
        if self.current != self.pending {
            if !self.instances.is_empty() {
                self.wrong("a reset loses instances that the plan did not destroy");
            }
            self.current = self.pending;
        }
    }

    fn destroy_compute(&mut self, at: Placement, spec: &ComputeSpec) {
        let Some(instance) = self.instances.iter_mut().find(|i| i.placement == at) else {
            return self.wrong(format!("there is no instance @{at} to destroy a compute instance in"));
        };
        let Some(found) = instance.compute.iter().position(|(compute, _)| compute == spec) else {
            return self.wrong(format!("there is no {spec:?} in @{at}"));
        };
        let (_, busy) = instance.compute.remove(found);
        if busy {
            self.wrong(format!("{spec:?} in @{at} is in use"));
        }
    }

    fn destroy_instance(&mut self, at: Placement, profile_id: u32) {
        let found = self.instances.iter().position(|i| i.placement == at && i.profile_id == profile_id);
        let Some(found) = found else {
            return self.wrong(format!("there is no instance of profile {profile_id} @{at}"));
        };
        let gone = self.instances.remove(found);
        if gone.busy {
            self.wrong(format!("the instance @{at} is in use"));
        }
        if !gone.compute.is_empty() {
            self.wrong(format!("the instance @{at} still has compute instances"));
        }
    }

    fn create_instance(&mut self, at: Placement, profile_id: u32) {
        if !self.current || !self.pending {
            self.wrong("an instance is created while MIG is off");
        }
        let Some(profile) = self.gpu.profile(profile_id) else {
            return self.wrong(format!("the GPU has no profile {profile_id}"));
        };
        let slices_of = |id: u32| self.gpu.profile(id).map_or(0, |profile| profile.slices);
        let largest = self.gpu.profiles.iter().map(|p| p.slices).max().unwrap_or(0);
        let used: u32 = self.instances.iter().map(|i| slices_of(i.profile_id)).sum();
        let same = self.instances.iter().filter(|i| i.profile_id == profile_id).count();
        if !profile.placements.contains(&at) {
            self.wrong(format!("{} cannot lie @{at}", profile.name));
        } else if self.instances.iter().any(|other| other.placement.overlaps(at)) {
            self.wrong(format!("{} @{at} overlaps an instance", profile.name));
        } else if used + profile.slices > largest {
            self.wrong(format!("no compute slices are left for {} @{at}", profile.name));
        } else if profile.max_instances > 0 && same >= profile.max_instances as usize {
            self.wrong(format!("there are already {same} of {}", profile.name));
        }
        self.instances.push(Instance { placement: at, profile_id, busy: false, compute: vec![], old: false });
    }

    fn create_compute(&mut self, at: Placement, spec: &ComputeSpec) {
        let Some(instance) = self.instances.iter_mut().find(|i| i.placement == at) else {
            return self.wrong(format!("there is no instance @{at} to create a compute instance in"));
        };
        let slices = self.gpu.profile(instance.profile_id).map_or(0, |profile| profile.slices);
        let used: u32 = instance.compute.iter().map(|(compute, _)| compute.slices).sum();
        let clash = spec.placement.is_some_and(|place| {
            let others = instance.compute.iter().filter_map(|(compute, _)| compute.placement);
            place.size != spec.slices || place.end() > slices || others.into_iter().any(|o| o.overlaps(place))
        });
        let full = used + spec.slices > slices;
        instance.compute.push((spec.clone(), false));
        if spec.slices == 0 || full || clash {
            self.wrong(format!("{spec:?} does not fit in the instance @{at}"));
        }
    }

    /// What is on paper now against what the plan says of itself.
    fn compare(&mut self, plan: &GpuPlan) {
        if (self.current, self.pending) != (plan.mig_after, plan.mig_after) {
            self.wrong("the mode afterwards is not the planned one");
        }
        if plan.reset != (self.resets > 0) || self.resets > 1 {
            self.wrong(format!("{} resets, said is {}", self.resets, plan.reset));
        }
        let mut after: Vec<Plain> = self.instances.iter().map(|i| plain_now(i.placement, i)).collect();
        after.sort_unstable();
        let mut said: Vec<Plain> = plan.after.iter().map(plain).collect();
        said.sort_unstable();
        if after != said {
            self.wrong(format!("the GPU holds {after:?} afterwards, said is {said:?}"));
        }
        let (old, new): (Vec<&Instance>, Vec<&Instance>) = self.instances.iter().partition(|i| i.old);
        let same = |instances: Vec<&Instance>, specs: &[InstanceSpec]| {
            let mut now: Vec<Plain> = instances.into_iter().map(|i| plain_now(i.placement, i)).collect();
            let mut said: Vec<Plain> = specs.iter().map(plain).collect();
            now.sort_unstable();
            said.sort_unstable();
            now == said
        };
        let (kept, created) = (same(old, &plan.keep), same(new, &plan.create));
        if !kept || !created {
            self.wrong("what stays or comes is not what the plan says");
        }
        let stays = |placement: Placement| plan.keep.iter().any(|spec| spec.placement == placement);
        let mut gone: Vec<(Placement, u32)> = self
            .gpu
            .instances
            .iter()
            .filter(|instance| !stays(instance.placement))
            .map(|instance| (instance.placement, instance.profile_id))
            .collect();
        let mut destroyed: Vec<(Placement, u32)> =
            plan.destroy.iter().map(|spec| (spec.placement, spec.profile_id)).collect();
        gone.sort_unstable();
        destroyed.sort_unstable();
        if gone != destroyed {
            self.wrong("what goes is not what the plan says");
        }
    }
}

/// An instance without its name and the order of its compute instances.
type Plain = (Placement, u32, Vec<(u32, Option<Placement>)>);

fn plain(spec: &InstanceSpec) -> Plain {
    let mut compute: Vec<_> = spec.compute.iter().map(|c| (c.slices, c.placement)).collect();
    compute.sort_unstable();
    (spec.placement, spec.profile_id, compute)
}

fn plain_now(placement: Placement, instance: &Instance) -> Plain {
    let mut compute: Vec<_> = instance.compute.iter().map(|(c, _)| (c.slices, c.placement)).collect();
    compute.sort_unstable();
    (placement, instance.profile_id, compute)
}
