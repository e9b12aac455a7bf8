//! Compute mode, persistence mode and time-slice: what one setting is, and setting it on each GPU that is chosen.
//!
//! The time-slice has no function in NVML's public interface; nvidia-smi alone sets it.

use super::{
    Answer, FAILED, LOST, NO_PERMISSION, NOT_SUPPORTED, Refused, long_address, meet_faults, name_of,
};
use nvidia_ml::{
    folder::effective_uid,
    machine::{Board, Code},
    shared::Shard,
    state::GpuState,
};

/// NVML_COMPUTEMODE_* in its order.
const COMPUTE_MODES: [&str; 4] = ["DEFAULT", "EXCLUSIVE_THREAD", "PROHIBITED", "EXCLUSIVE_PROCESS"];
const PERSISTENCE_MODES: [&str; 2] = ["DISABLED", "ENABLED"];
const TIMESLICES: [&str; 4] = ["DEFAULT", "SHORT", "MEDIUM", "LONG"];

/// Something that is set, to a value of its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setting {
    ComputeMode(u32),
    Persistence(u32),
    Timeslice(u32),
}

impl Setting {
    pub(super) fn compute_mode(text: &str) -> Result<Setting, String> {
        one_of(text, "compute mode", &COMPUTE_MODES).map(Setting::ComputeMode)
    }

    pub(super) fn persistence(text: &str) -> Result<Setting, String> {
        one_of(text, "persistence mode", &PERSISTENCE_MODES).map(Setting::Persistence)
    }

    pub(super) fn timeslice(text: &str) -> Result<Setting, String> {
        one_of(text, "time-slice", &TIMESLICES).map(Setting::Timeslice)
    }

    /// Sets it on each GPU, until one refuses.
    pub(super) fn apply(self, shard: &Shard, chosen: &[usize]) -> Answer {
        if shard.info().privileges_real != 0 && effective_uid() != 0 {
            let text = format!("Unable to set the {}: Insufficient Permissions\n", self.what());
            return Answer(text, NO_PERMISSION);
        }
        let mut out = String::new();
        for gpu in chosen {
            let Some(model) = shard.models().get(*gpu) else { continue };
            let board = Board::new(shard.info(), model);
            let done = meet_faults(shard, *gpu, self.function()).and_then(|()| {
                let set = |state: &mut GpuState| self.set(&board, state).map_err(Refused);
                shard.update(*gpu, set).unwrap_or(Err(Refused(Code::INVALID_ARGUMENT)))
            });
            let address = long_address(model);
            match done {
                Ok(()) => out.push_str(&self.said(&address)),
                Err(Refused(code)) => {
                    let (why, exit) = match code {
                        Code::NOT_SUPPORTED => ("Not Supported".to_owned(), NOT_SUPPORTED),
                        Code::GPU_IS_LOST => ("GPU is lost".to_owned(), LOST),
                        code => (name_of(code), FAILED),
                    };
                    let what = self.what();
                    return Answer(
                        out + &format!("Unable to set the {what} for GPU {address}: {why}\n"),
                        exit,
                    );
                }
            }
        }
        Answer(out + "All done.\n", 0)
    }

    fn set(self, board: &Board<'_>, state: &mut GpuState) -> Result<(), Code> {
        if state.lost != 0 {
            return Err(Code::GPU_IS_LOST);
        }
        match self {
            // Any compute mode is refused while MIG is on, as by nvmlDeviceSetComputeMode.
            Setting::ComputeMode(_) if board.mig_on(state) => return Err(Code::NOT_SUPPORTED),
            Setting::ComputeMode(mode) => state.compute_mode = mode,
            Setting::Persistence(mode) => state.persistence = mode,
            Setting::Timeslice(slice) => state.timeslice = slice,
        }
        Ok(())
    }

    fn what(self) -> &'static str {
        match self {
            Setting::ComputeMode(_) => "compute mode",
            Setting::Persistence(_) => "persistence mode",
            Setting::Timeslice(_) => "timeslice",
        }
    }

    /// The function whose faults and latency count.
    fn function(self) -> &'static str {
        match self {
            Setting::ComputeMode(_) => "nvmlDeviceSetComputeMode",
            Setting::Persistence(_) => "nvmlDeviceSetPersistenceMode",
            Setting::Timeslice(_) => "",
        }
    }

    fn said(self, address: &str) -> String {
        match self {
            Setting::ComputeMode(mode) => {
                format!("Set compute mode to {} for GPU {address}.\n", name(&COMPUTE_MODES, mode))
            }
            Setting::Persistence(0) => format!("Disabled persistence mode for GPU {address}.\n"),
            Setting::Persistence(_) => format!("Enabled persistence mode for GPU {address}.\n"),
            Setting::Timeslice(slice) => {
                format!("Successfully set timeslice to {} for GPU {address}\n", name(&TIMESLICES, slice))
            }
        }
    }
}

/// `compute-policy -l`.
pub(super) fn policies(shard: &Shard, chosen: &[usize]) -> String {
    let mut out = "GPU compute policies:\n".to_owned();
    for gpu in chosen {
        let slice = shard.read(*gpu).map_or(0, |state| state.timeslice);
        out.push_str(&format!("GPU {gpu}: Timeslice {}\n", name(&TIMESLICES, slice)));
    }
    out
}

fn name(names: &[&'static str], value: u32) -> &'static str {
    names.get(value as usize).copied().unwrap_or("unknown")
}

/// A value by number or by name.
fn one_of(text: &str, what: &str, names: &[&str]) -> Result<u32, String> {
    let found = (0u32..)
        .zip(names)
        .find(|(value, name)| name.eq_ignore_ascii_case(text) || text.parse() == Ok(*value));
    found.map(|(value, _)| value).ok_or_else(|| format!("{what} `{text}` (legal are {})", names.join(", ")))
}
