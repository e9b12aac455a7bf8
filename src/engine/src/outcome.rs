//! What an apply has come to, per GPU: data, for people and programs alike.

use crate::error::Failure;
use migd_core::{
    id::{GpuUuid, PciAddress},
    plan::{Action, InstanceSpec},
    reason::{Exit, Reason},
};
use serde::{Deserialize, Serialize};

/// The format word that every outcome carries.
pub const FORMAT: &str = "migd-outcome/1";

/// What became of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// [`FORMAT`].
    pub format: String,
    /// The layout's name.
    pub layout: String,
    /// One entry for each GPU of the plan, in its order.
    pub gpus: Vec<GpuOutcome>,
    /// The totals.
    pub totals: Totals,
}

impl Outcome {
    pub(crate) fn new(layout: &str, gpus: Vec<GpuOutcome>, ms: u64) -> Outcome {
        let mut totals = Totals { ms, ..Totals::default() };
        for gpu in &gpus {
            match gpu.result {
                GpuResult::Unchanged => totals.unchanged += 1,
                GpuResult::Changed => totals.changed += 1,
                _ => totals.failed += 1,
            }
            for action in &gpu.done {
                match action {
                    Action::CreateInstance { .. } => totals.created += 1,
                    Action::DestroyInstance { .. } => totals.destroyed += 1,
                    Action::SetMode { .. } => totals.mode_changes += 1,
                    _ => {}
                }
            }
            totals.resets += u32::from(gpu.reset);
        }
        Outcome { format: FORMAT.to_owned(), layout: layout.to_owned(), gpus, totals }
    }

    /// The exit code that tells it.
    pub fn exit(&self) -> Exit {
        Exit::of_all(self.gpus.iter().map(GpuOutcome::exit))
    }
}

/// Sums over the GPUs. Instances that were undone again still count as created or destroyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// GPUs that were right already.
    pub unchanged: u32,
    /// GPUs that are now as planned.
    pub changed: u32,
    /// All others.
    pub failed: u32,
    /// GPU instances created.
    pub created: u32,
    /// GPU instances destroyed.
    pub destroyed: u32,
    /// MIG modes set.
    pub mode_changes: u32,
    /// Resets by the reset tool.
    pub resets: u32,
    /// Wall time of the whole in milliseconds.
    pub ms: u64,
}

/// How it ended on one GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GpuResult {
    /// It was right already and nothing was written.
    Unchanged,
    /// It is as planned: read back.
    Changed,
    /// Nothing was written to it, because of what was found on it or on another GPU.
    NotStarted,
    /// The mode is set and waits for a reset.
    PendingReset,
    /// The mode is set and waits for a reboot.
    PendingReboot,
    /// A holder stands in the way; it is as it was before.
    Blocked,
    /// What was asked cannot be on this GPU; it is as it was before.
    Refused,
    /// A step failed; it is as it was before.
    RolledBack,
    /// It is neither as planned nor as before, or nobody can tell.
    Failed,
}

/// What became of one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuOutcome {
    /// NVML's index when the plan was made: for people.
    pub index: u32,
    /// Which GPU.
    pub uuid: GpuUuid,
    /// The product's name.
    pub model: String,
    /// Where it sits.
    pub pci: PciAddress,
    /// How it ended.
    pub result: GpuResult,
    /// Why, unless it is unchanged or changed.
    pub reason: Option<Reason>,
    /// The same for people, with what to do.
    pub message: Option<String>,
    /// What was first in the way, where `reason` says what came of it (`rolled-back`, `rollback-failed`).
    pub cause: Option<Failure>,
    /// The step that failed.
    pub failed_step: Option<Action>,
    /// The steps that were done, in order; also those that were undone again.
    pub done: Vec<Action>,
    /// Those undone again, in order.
    pub undone: Vec<Action>,
    /// Whether the reset tool has reset it.
    pub reset: bool,
    /// What it holds by the last reading; absent if it was not read after a write.
    pub now: Option<Vec<InstanceSpec>>,
    /// Where the time went.
    pub ms: PhaseTimes,
}

impl GpuOutcome {
    /// The exit code that this GPU alone would give.
    pub fn exit(&self) -> Exit {
        match self.result {
            GpuResult::Unchanged | GpuResult::Changed => Exit::Done,
            _ => self.reason.map_or(Exit::Failed, Reason::exit),
        }
    }
}

/// Milliseconds spent on one GPU by kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PhaseTimes {
    /// Setting MIG mode.
    pub mode: u64,
    /// In the reset tool, with leaving and coming back.
    pub reset: u64,
    /// Destroying instances of both kinds.
    pub destroy: u64,
    /// Creating GPU instances.
    pub create_gi: u64,
    /// Creating compute instances.
    pub create_ci: u64,
    /// Reading before, between and after.
    pub verify: u64,
    /// Undoing.
    pub undo: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(index: u32, result: GpuResult, reason: Option<Reason>) -> GpuOutcome {
        GpuOutcome {
            index,
            uuid: GpuUuid(format!("GPU-{index}")),
            model: "NVIDIA A30".to_owned(),
            pci: "0000:01:00.0".parse().unwrap(),
            result,
            reason,
            message: None,
            cause: None,
            failed_step: None,
            done: vec![Action::SetMode { enabled: true }],
            undone: Vec::new(),
            reset: result == GpuResult::Changed,
            now: None,
            ms: PhaseTimes::default(),
        }
    }

    #[test]
    fn the_gravest_gpu_decides_the_exit_code() {
        let right = gpu(0, GpuResult::Changed, None);
        let back = gpu(1, GpuResult::RolledBack, Some(Reason::RolledBack));
        let left = gpu(2, GpuResult::Failed, Some(Reason::RollbackFailed));
        let exit = |gpus: &[&GpuOutcome]| {
            Outcome::new("x", gpus.iter().map(|gpu| (*gpu).clone()).collect(), 0).exit()
        };
        assert_eq!(exit(&[]), Exit::Done);
        assert_eq!(exit(&[&right]), Exit::Done);
        assert_eq!(exit(&[&right, &back]), Exit::RolledBack);
        assert_eq!(exit(&[&back, &left, &right]), Exit::NotRolledBack);
        assert_eq!(gpu(0, GpuResult::PendingReset, Some(Reason::ResetRequired)).exit(), Exit::NeedsReset);
    }

    #[test]
    fn totals_count_gpus_by_how_they_ended() {
        let gpus = vec![gpu(0, GpuResult::Changed, None), gpu(1, GpuResult::Blocked, Some(Reason::GpuInUse))];
        let outcome = Outcome::new("x", gpus, 7);
        let wanted = Totals { changed: 1, failed: 1, mode_changes: 2, resets: 1, ms: 7, ..Totals::default() };
        assert_eq!(outcome.totals, wanted);
        let json = serde_json::to_value(&outcome).unwrap();
        assert_eq!(json["format"], "migd-outcome/1");
        assert_eq!(json["gpus"][1]["result"], "blocked");
        assert_eq!(json["gpus"][1]["reason"], "gpu-in-use");
    }
}
