//! Carries out one plan, GPU by GPU, and tells the truth about it.
//!
//! ```text
//!            node changed, in use: nothing written anywhere
//!               ^
//! planned --> read again --> modes set, reset --> read again --> instances changed --> read back = plan.after
//!                              |        |             |                |                       |
//!                              |        +-- pending   |                |                     changed
//!                              +------- undo, newest first, read back--+
//!                                             |
//!                     as before (rolled back, blocked, refused) | rollback failed
//! ```
//!
//! In: a [`Plan`] that `plan::audit` found nothing against, and the workers. Out: an [`Outcome`] per GPU.
//! GPUs are worked on side by side, the steps of one strictly in order; one GPU's failure is its own.
//! Decided here is nothing that the plan has not decided. Not here: choosing placements (core::plan), waiting
//! for holders, keeping a journal.

mod job;
mod mode;
mod reset;
mod shape;

use crate::{
    error::Failure,
    join,
    outcome::{GpuResult, Outcome},
    progress::Progress,
    workers::Workers,
};
use job::{End, Hands, Job, ms};
use migd_core::{
    node::{Gpu, GpuInstance, ProfileSource},
    plan::{Action, Plan, gpu_fingerprint},
    reason::Reason,
};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Carries out `plan`. Never fails as a whole: what became of each GPU is in the outcome. A plan with nothing to
/// do asks the driver nothing.
///
/// Dropping the future stops it between steps: what a worker is at is not finished for sure, and nothing is
/// undone. The workers stay usable.
pub async fn apply(plan: &Plan, workers: &mut Workers, progress: &Progress) -> Outcome {
    let begun = Instant::now();
    let mut jobs: Vec<Job<'_>> = plan.gpus.iter().map(Job::new).collect();
    if !plan.is_empty() {
        carry_out(&mut jobs, workers, progress).await;
    }
    Outcome::new(&plan.layout, jobs.into_iter().map(Job::outcome).collect(), ms(begun))
}

async fn carry_out(jobs: &mut [Job<'_>], workers: &mut Workers, progress: &Progress) {
    on_each(jobs, workers, progress, Phase::LookBefore).await;
    if refused_as_a_whole(jobs) {
        return;
    }
    let with_mode = jobs.iter().any(|job| job.end.is_none() && !job.plan.mode_steps.is_empty());
    if with_mode {
        on_each(jobs, workers, progress, Phase::ChangeMode).await;
        // Indexes and minors may be others now. If this cannot be told, the addresses still are what they were.
        drop(workers.scout_again().await);
        on_each(jobs, workers, progress, Phase::LookBetween).await;
    }
    on_each(jobs, workers, progress, Phase::ChangeInstances).await;
    on_each(jobs, workers, progress, Phase::LookAfter).await;
}

/// What all GPUs go through, one after another.
#[derive(Debug, Clone, Copy)]
enum Phase {
    LookBefore,
    ChangeMode,
    LookBetween,
    ChangeInstances,
    LookAfter,
}

impl Phase {
    async fn run(self, job: &mut Job<'_>, mut hands: Hands<'_>) {
        let hands = &mut hands;
        match self {
            Phase::LookBefore => job.look_before(hands).await,
            Phase::ChangeMode => job.change_mode(hands).await,
            Phase::LookBetween => job.look_between(hands).await,
            Phase::ChangeInstances => job.change_instances(hands).await,
            Phase::LookAfter => job.look_after(hands).await,
        }
    }
}

/// Does one thing for all jobs that have not ended, side by side.
async fn on_each(jobs: &mut [Job<'_>], workers: &mut Workers, progress: &Progress, phase: Phase) {
    let (site, driver, gpus) = workers.hands();
    let mut gpus: BTreeMap<_, _> = gpus.iter_mut().collect();
    let mut side_by_side = Vec::new();
    for job in jobs.iter_mut().filter(|job| job.end.is_none()) {
        match gpus.remove(&job.plan.pci) {
            Some(worker) => side_by_side.push(phase.run(job, Hands { worker, site, driver, progress })),
            None => {
                let text = format!("there is no GPU at {} any more; plan again", job.plan.pci);
                let untouched = job.done.is_empty();
                let result = if untouched { GpuResult::NotStarted } else { GpuResult::Failed };
                job.ends(result, Failure::new(Reason::NodeChanged, text));
            }
        }
    }
    join::all(side_by_side).await;
}

/// A node that is not what was planned on, holders in the way, or a lack of rights refuse the whole plan before the first write.
fn refused_as_a_whole(jobs: &mut [Job<'_>]) -> bool {
    let stops = |job: &&Job<'_>| {
        let why = job.end.as_ref().and_then(|end| end.why.as_ref());
        let whole = [Reason::NodeChanged, Reason::InstanceInUse, Reason::PermissionDenied];
        why.is_some_and(|why| whole.contains(&why.reason))
    };
    let Some(first) = jobs.iter().find(stops) else { return false };
    let index = first.plan.index;
    let reason =
        first.end.as_ref().and_then(|end| end.why.as_ref()).map_or(Reason::NodeChanged, |why| why.reason);
    for job in jobs.iter_mut().filter(|job| job.end.is_none() && !job.plan.is_empty()) {
        let text = format!("nothing was written, because of GPU {index}");
        job.ends(GpuResult::NotStarted, Failure::new(reason, text));
    }
    true
}

impl Job<'_> {
    /// Reads the GPU and compares it with what was planned on; looks again who holds what is to go.
    async fn look_before(&mut self, hands: &mut Hands<'_>) {
        let gpu = match self.read(hands).await {
            Ok(gpu) => gpu,
            Err(failure) => return self.ends(GpuResult::NotStarted, failure),
        };
        if gpu_fingerprint(&gpu, hands.driver) != self.plan.fingerprint {
            let text = format!(
                "GPU {} is not what it was when the plan was made (it holds {}); plan again",
                self.plan.index,
                shape::text(&shape::of(&gpu))
            );
            return self.ends(GpuResult::NotStarted, Failure::new(Reason::NodeChanged, text));
        }
        if let Some(instance) = self.in_the_way(&gpu) {
            let pids: Vec<String> = instance.processes.iter().map(u32::to_string).collect();
            let by = match pids.as_slice() {
                [] => "something".to_owned(),
                pids => format!("process {}", pids.join(", ")),
            };
            let text = format!(
                "{} at {} is in use by {by}; stop it, or keep the instance",
                instance.profile, instance.placement
            );
            return self.ends(GpuResult::Blocked, Failure::new(Reason::InstanceInUse, text));
        }
        self.before = Some(gpu);
    }

    /// An instance that the plan destroys, or takes a compute instance of, and that is in use.
    fn in_the_way<'g>(&self, gpu: &'g Gpu) -> Option<&'g GpuInstance> {
        let steps = || self.plan.mode_steps.iter().chain(&self.plan.instance_steps).map(|step| &step.action);
        gpu.instances.iter().find(|has| {
            steps().any(|action| match action {
                Action::DestroyInstance { placement, .. } => {
                    has.placement == *placement && has.in_use.counts()
                }
                Action::DestroyCompute { instance, compute } if has.placement == *instance => {
                    let mut fitting = has.compute.iter().filter(|c| shape::fits_instance(compute, c));
                    fitting.all(|c| c.in_use.counts())
                }
                _ => false,
            })
        })
    }

    /// Reads the GPU between the phases: it must be what the first one was to make of it.
    async fn look_between(&mut self, hands: &mut Hands<'_>) {
        let gpu = match self.read(hands).await {
            Ok(gpu) => gpu,
            Err(failure) => return self.fails(hands, None, failure).await,
        };
        let Some(mode) = gpu.mig.or(self.plan.mode_now) else { return };
        if mode.current != mode.pending {
            let text = "the MIG mode is set and waits for a reset of the GPU; reset it, then apply again";
            return self.ends(GpuResult::PendingReset, Failure::new(Reason::ResetRequired, text));
        }
        let wrong = if mode.current != self.plan.mig_after {
            Some(Failure::new(Reason::VerifyFailed, "the MIG mode is not what was set"))
        } else if !shape::same(&self.expected(), &shape::of(&gpu)) {
            let text = format!("it holds {} that nobody planned on", shape::text(&shape::of(&gpu)));
            Some(Failure::new(Reason::NodeChanged, text))
        } else if self.plan.provisional {
            self.differs_from_table(&gpu)
        } else {
            None
        };
        if let Some(failure) = wrong {
            self.fails(hands, None, failure).await;
        }
    }

    /// Whether the driver, now that it shows its profiles, lacks what the plan took from the table.
    fn differs_from_table(&self, gpu: &Gpu) -> Option<Failure> {
        if gpu.profiles_from != ProfileSource::Driver {
            let text = "the driver hides its profiles with MIG on too, so the plan cannot be checked";
            return Some(Failure::new(Reason::ProvisionalWrong, text));
        }
        self.plan.instance_steps.iter().find_map(|step| {
            let Action::CreateInstance { placement, profile_id, profile } = &step.action else { return None };
            let driver = gpu.profile(*profile_id);
            let found = driver.is_some_and(|p| p.name == *profile && p.placements.contains(placement));
            let has: Vec<String> = gpu.profiles.iter().map(|p| p.name.to_string()).collect();
            let text = format!(
                "the plan took {profile} (profile {profile_id}) at {placement} from the table, and the driver \
                 does not have it; it has {}",
                has.join(", ")
            );
            (!found).then(|| Failure::new(Reason::ProvisionalWrong, text))
        })
    }

    /// The second phase.
    async fn change_instances(&mut self, hands: &mut Hands<'_>) {
        let plan = self.plan;
        for step in &plan.instance_steps {
            match self.act(hands, &step.action, Duration::from_millis(step.limit_ms)).await {
                Ok(_) => self.done.push(step.action.clone()),
                Err(failure) => return self.fails(hands, Some(&step.action), failure).await,
            }
        }
    }

    /// Reads back: only this makes a success.
    async fn look_after(&mut self, hands: &mut Hands<'_>) {
        if self.done.is_empty() {
            self.end = Some(End { result: GpuResult::Unchanged, why: None, cause: None });
            return;
        }
        let gpu = match self.read(hands).await {
            Ok(gpu) => gpu,
            Err(failure) => {
                let text = format!("all was done, and the GPU cannot be read back: {}", failure.message);
                return self.ends(GpuResult::Failed, Failure::new(failure.reason, text));
            }
        };
        let has = shape::of(&gpu);
        if gpu.mig_enabled() == self.plan.mig_after && shape::same(&self.plan.after, &has) {
            self.end = Some(End { result: GpuResult::Changed, why: None, cause: None });
            return;
        }
        let text = format!(
            "all was done, and the GPU holds {} instead of {}",
            shape::text(&has),
            shape::text(&self.plan.after)
        );
        self.ends(GpuResult::Failed, Failure::new(Reason::VerifyFailed, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Site;

    /// D-Bus objects may hold it across awaits on any thread.
    #[test]
    fn an_apply_may_move_between_threads() {
        fn sendable<T: Send>(_: &T) {}
        async fn whole() {
            let Ok(mut workers) = Workers::open(Site::default()).await else { return };
            workers.snapshot().await;
            let plan: Plan = serde_json::from_str("{}").unwrap();
            apply(&plan, &mut workers, &Progress::silent()).await;
            workers.close().await;
        }
        sendable(&whole());
    }
}
