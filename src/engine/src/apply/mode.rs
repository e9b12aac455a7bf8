//! The first phase: MIG mode, with the destruction that comes before and the reset that may come after.
//!
//! ```text
//! destroy* --> SetMode --current = pending--> done
//!                 |
//!                 +-- pending only --look again for a while--> worker leaves --> reset tool --> worker back
//!                                                                                    |
//!               in use by others: pending set back, undone, blocked  <---------------+--> mode right: done
//!               cannot be reset here: pending stays, reboot-required <---------------+
//!               no tool: pending stays, reset-required               <---------------+
//!               does not end: left alone, reset-failed               <---------------+--> failed: undone
//! ```

use super::{
    job::{Hands, Job, ms},
    reset::{self, Trouble},
};
use crate::{
    error::Failure,
    outcome::GpuResult,
    protocol::{Request, Response},
    workers::odd,
};
use migd_core::{node::MigMode, plan::Action, reason::Reason};
use migd_nvml::Code;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// How long a mode that was set may still read as before.
const SETTLES: Duration = Duration::from_secs(5);
/// The pause between two readings of it.
const PAUSE: Duration = Duration::from_millis(50);

impl Job<'_> {
    /// Carries out the first phase; how it ended, if it ended here, is in the job.
    pub(super) async fn change_mode(&mut self, hands: &mut Hands<'_>) {
        let plan = self.plan;
        let mut mode = self.before.as_ref().and_then(|gpu| gpu.mig);
        for step in &plan.mode_steps {
            let limit = Duration::from_millis(step.limit_ms);
            if step.action == Action::ResetIfPending {
                self.reset_if_pending(hands, mode, limit).await;
            } else {
                match self.act(hands, &step.action, limit).await {
                    Ok(read) => {
                        mode = read.or(mode);
                        self.done.push(step.action.clone());
                    }
                    Err(failure) => self.fails(hands, Some(&step.action), failure).await,
                }
            }
            if self.end.is_some() {
                return;
            }
        }
    }

    async fn reset_if_pending(&mut self, hands: &mut Hands<'_>, mode: Option<MigMode>, limit: Duration) {
        let step = Action::ResetIfPending;
        let mode = match self.settled(hands, mode, self.plan.mig_after, self.activation).await {
            Ok(mode) => mode,
            Err(failure) => return self.fails(hands, Some(&step), failure).await,
        };
        if mode.current == mode.pending {
            return;
        }
        self.say(hands, format!("resetting the GPU, for its MIG mode to become real (at most {limit:?})"));
        match self.reset(hands, self.plan.mig_after, limit).await {
            Ok(mode) if mode.current == self.plan.mig_after => self.done.push(step),
            Ok(_) => {
                let text = "the GPU was reset, and its MIG mode is not what was set";
                self.fails(hands, Some(&step), Failure::new(Reason::ResetFailed, text)).await;
            }
            Err(Stop::Undo(failure)) => self.fails(hands, Some(&step), failure).await,
            Err(Stop::Leave(result, failure)) => {
                self.failed_step = Some(step);
                self.ends(result, failure);
            }
        }
    }

    /// Brings the mode back as part of an undo.
    pub(super) async fn settle_back(
        &mut self,
        hands: &mut Hands<'_>,
        enabled: bool,
        mode: Option<MigMode>,
    ) -> Result<(), Failure> {
        let mut mode = self.settled(hands, mode, enabled, self.activation).await?;
        if mode.current != mode.pending {
            self.say(hands, "resetting the GPU, for its former MIG mode to become real");
            mode = self.reset(hands, enabled, hands.site.reset_limit).await.map_err(|stop| match stop {
                Stop::Undo(failure) | Stop::Leave(_, failure) => failure,
            })?;
        }
        if mode.current == enabled && mode.pending == enabled {
            // An action may come next, and a worker that is new has not read the GPU.
            return self.read(hands).await.map(drop);
        }
        let word = if enabled { "on" } else { "off" };
        Err(Failure::new(Reason::DriverError, format!("MIG does not turn {word} again")))
    }

    /// The mode, looked at again for a while unless it is what was set, or waits for a reset by what the driver
    /// said when it was set.
    async fn settled(
        &self,
        hands: &mut Hands<'_>,
        mode: Option<MigMode>,
        wanted: bool,
        activation: Code,
    ) -> Result<MigMode, Failure> {
        let begun = Instant::now();
        let mut mode = mode;
        loop {
            match mode {
                Some(mode) if mode.current == wanted && mode.pending == wanted => return Ok(mode),
                Some(mode) if mode.pending == wanted && activation != Code::SUCCESS => return Ok(mode),
                Some(mode) if begun.elapsed() > SETTLES => return Ok(mode),
                Some(_) => sleep(PAUSE).await,
                None => {}
            }
            mode = Some(read_mode(hands).await?);
        }
    }

    /// The worker leaves, the tool runs, the worker comes back and reads the mode.
    async fn reset(&mut self, hands: &mut Hands<'_>, wanted: bool, limit: Duration) -> Result<MigMode, Stop> {
        let begun = Instant::now();
        hands.worker.process.leave().await.map_err(|error| Stop::Undo(error.failure()))?;
        let answer = reset::reset(hands.site, self.plan.pci, limit).await;
        let mode = match answer {
            Ok(()) => {
                self.reset = true;
                self.settled(hands, None, wanted, Code::SUCCESS).await.map_err(Stop::Undo)
            }
            Err(trouble) => Err(self.understand(hands, trouble, limit)),
        };
        self.ms.reset += ms(begun);
        mode
    }

    fn understand(&self, hands: &mut Hands<'_>, trouble: Trouble, limit: Duration) -> Stop {
        let pci = self.plan.pci;
        let word = if self.plan.mig_after { "on" } else { "off" };
        let pending = format!("MIG is set to turn {word} and stays so");
        match trouble {
            Trouble::InUse(said) => {
                let text = format!(
                    "other clients have the GPU open, so its MIG mode cannot change ({said}); stop what \
                     `fuser -v /dev/nvidia*` shows, such as nvidia-persistenced, DCGM or a display server"
                );
                Stop::Undo(Failure::new(Reason::GpuInUse, text))
            }
            Trouble::Unsupported(said) => {
                let text =
                    format!("this GPU cannot be reset here ({said}); {pending}: reboot, then apply again");
                Stop::Leave(GpuResult::PendingReboot, Failure::new(Reason::RebootRequired, text))
            }
            Trouble::NoTool(tool) => {
                let text = format!(
                    "there is no {tool} to reset the GPU with; {pending}: reset {pci} (nvidia-smi -r -i {pci}) \
                     or reboot, then apply again"
                );
                Stop::Leave(GpuResult::PendingReset, Failure::new(Reason::ResetRequired, text))
            }
            // What the driver said before it was tried: seen where a GPU is passed through to a virtual machine.
            Trouble::Failed(said)
                if matches!(self.activation, Code::RESET_REQUIRED | Code::NOT_SUPPORTED) =>
            {
                let text = format!("the reset failed ({said}); {pending}: reboot, then apply again");
                Stop::Leave(GpuResult::PendingReboot, Failure::new(Reason::RebootRequired, text))
            }
            Trouble::Hung(tool) => {
                hands.worker.being_reset = Some(tool);
                let text = format!(
                    "the reset of {pci} has not ended within {limit:?}; it was not killed, and the GPU is left \
                     alone. Look whether it ends, and in the kernel log"
                );
                Stop::Leave(GpuResult::Failed, Failure::new(Reason::ResetFailed, text))
            }
            Trouble::Failed(said) => {
                Stop::Undo(Failure::new(Reason::ResetFailed, format!("the reset failed: {said}")))
            }
        }
    }
}

/// Why a reset has not led to a mode.
enum Stop {
    /// Put back what was.
    Undo(Failure),
    /// Leave it as it is, and say so.
    Leave(GpuResult, Failure),
}

async fn read_mode(hands: &mut Hands<'_>) -> Result<MigMode, Failure> {
    match hands.worker.ask(hands.site, &Request::Mode, hands.site.read_limit).await? {
        Response::Mode(Some(mode)) => Ok(mode),
        Response::Mode(None) => {
            Err(Failure::new(Reason::MigUnsupported, "the GPU says that it has no MIG any more"))
        }
        other => Err(odd(&other).failure()),
    }
}
