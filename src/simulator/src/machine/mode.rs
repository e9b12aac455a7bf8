//! MIG mode, and who forgets what (nvml.h, MIG User Guide, open-gpu-kernel-modules kernel_mig_manager.c).

use super::{Board, Code};
use crate::{model::Family, state::GpuState};

/// NVML_COMPUTEMODE_DEFAULT.
const COMPUTE_MODE_DEFAULT: u32 = 0;

impl Board<'_> {
    /// Current and pending mode, 1 for enabled.
    ///
    /// # Errors
    /// `NOT_SUPPORTED` without MIG.
    pub fn mode(&self, state: &GpuState) -> Result<(u32, u32), Code> {
        if self.has_mig() { Ok((state.mig_current, state.mig_pending)) } else { Err(Code::NOT_SUPPORTED) }
    }

    /// nvmlDeviceSetMigMode: the answer is the activation status. `others`: another process has the GPU open.
    ///
    /// # Errors
    /// `NOT_SUPPORTED` without MIG, `INVALID_ARGUMENT` for a mode that is neither 0 nor 1, `IN_USE` for a
    /// disable that instances (or, on Hopper and later, work) stand against.
    pub fn set_mode(&self, state: &mut GpuState, mode: u32, others: bool) -> Result<Code, Code> {
        if !self.has_mig() {
            return Err(Code::NOT_SUPPORTED);
        }
        if mode > 1 {
            return Err(Code::INVALID_ARGUMENT);
        }
        let instances = state.live_gis().next().is_some();
        if mode == state.mig_current {
            if instances && mode == 1 && self.unknowns.enable_again_with_instances == 1 {
                return Err(Code::IN_USE);
            }
            if self.unknowns.current_mode_keeps_pending == 0 {
                state.mig_pending = mode;
            }
            return Ok(Code::SUCCESS);
        }
        match self.model.family() {
            Family::WithoutMig => Err(Code::NOT_SUPPORTED),
            Family::HopperOrLater => {
                let readers = others && self.unknowns.hopper_disable_with_readers == 1;
                if mode == 0 && (instances || self.busy(state) || readers) {
                    return Err(Code::IN_USE);
                }
                switch(state, mode);
                Ok(Code::SUCCESS)
            }
            Family::Ampere => {
                if instances && self.unknowns.ampere_disable_with_instances == 0 {
                    return Err(Code::IN_USE);
                }
                state.mig_pending = mode;
                if instances || others || self.busy(state) {
                    return Ok(Code::IN_USE);
                }
                if !self.resets_alone() {
                    return Ok(Code::RESET_REQUIRED);
                }
                // Nobody else is there: the driver resets the GPU itself.
                self.reset_now(state);
                Ok(Code::SUCCESS)
            }
        }
    }

    /// A GPU reset, as `nvidia-smi --gpu-reset` asks for it.
    ///
    /// # Errors
    /// `IN_USE` while anyone has the GPU open or computes on it, `GPU_IS_LOST` once it is off the bus.
    pub fn reset(&self, state: &mut GpuState, others: bool) -> Result<(), Code> {
        if state.lost != 0 {
            return Err(Code::GPU_IS_LOST);
        }
        if others || self.busy(state) {
            return Err(Code::IN_USE);
        }
        self.reset_now(state);
        Ok(())
    }

    /// A GPU reset whoever is there: Ampere takes the pending mode, Hopper and later forget the mode; all
    /// instances are gone, and with them their work.
    pub fn reset_now(&self, state: &mut GpuState) {
        forget_instances(state);
        let mode = if self.model.family() == Family::Ampere { state.mig_pending } else { 0 };
        switch(state, mode);
        state.busy = 0;
        state.compute_mode = COMPUTE_MODE_DEFAULT;
        state.timeslice = 0;
        state.resets = state.resets.wrapping_add(1);
    }

    /// The kernel module goes and comes: as a reset, and persistence mode is forgotten as well.
    pub fn reload_driver(&self, state: &mut GpuState) {
        self.reset_now(state);
        state.persistence = 0;
    }

    /// The machine reboots: as a driver reload, and a lost GPU is found again.
    pub fn reboot(&self, state: &mut GpuState) {
        self.reload_driver(state);
        state.lost = 0;
    }
}

/// Sets the mode, current and pending.
pub(super) fn switch(state: &mut GpuState, mode: u32) {
    if state.mig_current != mode {
        state.changes = state.changes.wrapping_add(1);
        // MIG knows no other compute mode.
        state.compute_mode = COMPUTE_MODE_DEFAULT;
    }
    state.mig_current = mode;
    state.mig_pending = mode;
}

/// Takes all instances away. Their handle counters stay, so that old handles are known as stale.
pub(super) fn forget_instances(state: &mut GpuState) {
    for gi in state.gis.iter_mut().filter(|gi| gi.live != 0) {
        gi.live = 0;
        gi.busy = 0;
        for ci in &mut gi.cis {
            ci.live = 0;
            ci.busy = 0;
        }
        state.changes = state.changes.wrapping_add(1);
    }
}
