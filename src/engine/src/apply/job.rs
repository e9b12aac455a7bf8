//! One GPU's part of an apply: what is known and done so far, and how single steps are done and undone.

use super::shape;
use crate::{
    error::Failure,
    outcome::{GpuOutcome, GpuResult, PhaseTimes},
    progress::{Event, Progress},
    protocol::{Request, Response},
    site::Site,
    workers::{GpuWorker, odd},
};
use migd_core::{
    node::{Driver, Gpu, MigMode},
    plan::{Action, GpuPlan, InstanceSpec},
    reason::{Exit, Reason},
};
use migd_nvml::Code;
use std::time::{Duration, Instant};

/// A worker retries a destruction for a second of its own (a client that has just gone is still counted), so
/// it is given that much more before it counts as hung.
const GRACE: Duration = Duration::from_secs(2);
/// The bound for undoing a step whose own bound is not known.
const UNDO_LIMIT: Duration = Duration::from_secs(60);

/// How a job has ended.
#[derive(Debug)]
pub(super) struct End {
    pub(super) result: GpuResult,
    pub(super) why: Option<Failure>,
    pub(super) cause: Option<Failure>,
}

/// What a job needs beside itself.
pub(super) struct Hands<'a> {
    pub(super) worker: &'a mut GpuWorker,
    pub(super) site: &'a Site,
    pub(super) driver: &'a Driver,
    pub(super) progress: &'a Progress,
}

/// One GPU's part.
#[derive(Debug)]
pub(super) struct Job<'p> {
    pub(super) plan: &'p GpuPlan,
    /// As it was before the first write.
    pub(super) before: Option<Gpu>,
    pub(super) done: Vec<Action>,
    pub(super) undone: Vec<Action>,
    pub(super) failed_step: Option<Action>,
    /// What the driver said when the mode was last set.
    pub(super) activation: Code,
    pub(super) reset: bool,
    pub(super) now: Option<Vec<InstanceSpec>>,
    pub(super) ms: PhaseTimes,
    pub(super) end: Option<End>,
}

impl<'p> Job<'p> {
    pub(super) fn new(plan: &'p GpuPlan) -> Job<'p> {
        Job {
            plan,
            before: None,
            done: Vec::new(),
            undone: Vec::new(),
            failed_step: None,
            activation: Code::SUCCESS,
            reset: false,
            now: None,
            ms: PhaseTimes::default(),
            end: None,
        }
    }

    /// What the GPU should hold now.
    pub(super) fn expected(&self) -> Vec<InstanceSpec> {
        let before = self.before.as_ref().map(shape::of).unwrap_or_default();
        shape::after(before, &self.done)
    }

    pub(super) fn ends(&mut self, result: GpuResult, why: Failure) {
        self.end = Some(End { result, why: Some(why), cause: None });
    }

    pub(super) fn outcome(self) -> GpuOutcome {
        let end = self.end.unwrap_or(End { result: GpuResult::Unchanged, why: None, cause: None });
        GpuOutcome {
            index: self.plan.index,
            uuid: self.plan.uuid.clone(),
            model: self.plan.model.clone(),
            pci: self.plan.pci,
            result: end.result,
            reason: end.why.as_ref().map(|why| why.reason),
            message: end.why.map(|why| why.message),
            cause: end.cause,
            failed_step: self.failed_step,
            done: self.done,
            undone: self.undone,
            reset: self.reset,
            now: self.now,
            ms: self.ms,
        }
    }

    pub(super) fn say(&self, hands: &Hands<'_>, text: impl Into<String>) {
        let (index, gpu) = (self.plan.index, self.plan.uuid.clone());
        hands.progress.tell(Event::Said { index, gpu, text: text.into() });
    }

    /// Reads the GPU.
    pub(super) async fn read(&mut self, hands: &mut Hands<'_>) -> Result<Gpu, Failure> {
        let begun = Instant::now();
        let reading = hands.worker.read(hands.site, hands.driver).await;
        self.ms.verify += ms(begun);
        let gpu = reading?;
        if gpu.uuid != self.plan.uuid {
            let text = format!("at {} there is {} instead of {}", self.plan.pci, gpu.uuid, self.plan.uuid);
            return Err(Failure::new(Reason::NodeChanged, text));
        }
        self.now = Some(shape::of(&gpu));
        Ok(gpu)
    }

    /// Does one step other than a reset, and keeps account of it. The modes, if it was a change of mode.
    pub(super) async fn act(
        &mut self,
        hands: &mut Hands<'_>,
        action: &Action,
        limit: Duration,
    ) -> Result<Option<MigMode>, Failure> {
        let (index, gpu) = (self.plan.index, self.plan.uuid.clone());
        hands.progress.tell(Event::Started { index, gpu: gpu.clone(), action: action.clone() });
        let begun = Instant::now();
        let answer = hands.worker.ask(hands.site, &Request::Do(action.clone()), limit + GRACE).await;
        let took = ms(begun);
        *self.account(action) += took;
        let mode = match answer? {
            Response::Done => None,
            Response::ModeSet { activation, mode } => {
                self.activation = Code(activation);
                mode
            }
            other => return Err(odd(&other).failure()),
        };
        hands.progress.tell(Event::Finished { index, gpu, action: action.clone(), ms: took });
        Ok(mode)
    }

    fn account(&mut self, action: &Action) -> &mut u64 {
        match action {
            Action::SetMode { .. } => &mut self.ms.mode,
            Action::ResetIfPending => &mut self.ms.reset,
            Action::DestroyCompute { .. } | Action::DestroyInstance { .. } => &mut self.ms.destroy,
            Action::CreateInstance { .. } => &mut self.ms.create_gi,
            Action::CreateCompute { .. } => &mut self.ms.create_ci,
        }
    }

    /// A step failed: undoes what was done, newest first, and says how it ended.
    pub(super) async fn fails(&mut self, hands: &mut Hands<'_>, step: Option<&Action>, cause: Failure) {
        if step.is_none() && self.done.is_empty() {
            return self.ends(GpuResult::NotStarted, cause);
        }
        self.failed_step = step.cloned();
        let what = step.map(|step| format!("{step}: ")).unwrap_or_default();
        let cause = Failure::new(cause.reason, format!("{what}{}", cause.message));
        self.say(hands, format!("{}; undoing", cause.message));
        let nothing_done = self.done.is_empty();
        let begun = Instant::now();
        let undone = self.undo(hands, step, &cause).await;
        self.ms.undo += ms(begun);
        if let Err(failure) = undone {
            let left = self.now.as_deref().map_or_else(|| "unknown".to_owned(), shape::text);
            let text = format!(
                "{}; and it could not be undone: {}. When last read, the GPU held {left}; plan again to see \
                 what is there now",
                cause.message, failure.message
            );
            let why = Failure::new(Reason::RollbackFailed, text);
            self.end = Some(End { result: GpuResult::Failed, why: Some(why), cause: Some(cause) });
            return;
        }
        let (result, why) = verdict(&cause, nothing_done);
        self.end = Some(End { result, why: Some(why), cause: Some(cause) });
    }

    /// What undoes an action here. Setting the mode that is, to clear a pending one, is not undone: it would
    /// turn the GPU's mode, where before it was only going to turn.
    fn undoing(&self, action: &Action) -> Option<Action> {
        let was = self.before.as_ref().and_then(|gpu| gpu.mig).map(|mode| mode.current);
        match action {
            Action::SetMode { enabled } if was == Some(*enabled) => None,
            action => action.undo(),
        }
    }

    async fn undo(
        &mut self,
        hands: &mut Hands<'_>,
        step: Option<&Action>,
        cause: &Failure,
    ) -> Result<(), Failure> {
        if matches!(cause.reason, Reason::WorkerLost | Reason::WorkerHung) {
            // Nobody has seen how the step ended: the GPU says.
            let gpu = self.read(hands).await?;
            if let Some(step) = step
                && happened(step, &self.expected(), &gpu)
            {
                self.done.push(step.clone());
            }
        }
        for action in self.done.clone().iter().rev() {
            let Some(undo) = self.undoing(action) else { continue };
            let mode = self.act(hands, &undo, UNDO_LIMIT).await?;
            if let Action::SetMode { enabled } = undo {
                self.settle_back(hands, enabled, mode).await?;
            }
            self.undone.push(undo);
        }
        let Some(before) = self.before.clone() else { return Ok(()) };
        let gpu = self.read(hands).await?;
        // A mode that was pending before may have been cleared; that it is not real is what counts.
        let mode = gpu.mig.zip(before.mig).is_none_or(|(now, before)| {
            now.current == before.current && [before.current, before.pending].contains(&now.pending)
        });
        if mode && shape::same(&shape::of(&before), &shape::of(&gpu)) {
            return Ok(());
        }
        let text = format!("afterwards it held {}", shape::text(&shape::of(&gpu)));
        Err(Failure::new(Reason::VerifyFailed, text))
    }
}

/// What a failure that was wholly undone comes to.
fn verdict(cause: &Failure, nothing_done: bool) -> (GpuResult, Failure) {
    match cause.reason {
        reason if reason.exit() == Exit::Blocked => (GpuResult::Blocked, cause.clone()),
        Reason::ProvisionalWrong => (GpuResult::Refused, cause.clone()),
        Reason::PermissionDenied if nothing_done => (GpuResult::NotStarted, cause.clone()),
        _ => {
            let text = format!("{}; the GPU is as it was before", cause.message);
            (GpuResult::RolledBack, Failure::new(Reason::RolledBack, text))
        }
    }
}

/// Whether a step whose end nobody saw has been done, by what the GPU holds now.
fn happened(step: &Action, expected: &[InstanceSpec], gpu: &Gpu) -> bool {
    if let Action::SetMode { enabled } = step {
        return gpu.mig.is_some_and(|mode| mode.pending == *enabled);
    }
    let has = shape::of(gpu);
    !shape::same(expected, &has) && shape::same(&shape::after(expected.to_vec(), [step]), &has)
}

pub(super) fn ms(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
