//! Handles: numbers that say what they mean, never addresses.
//!
//! ```text
//! 63      48 47  44 43   38 37   33 32   29 28                 0
//! |  'NV'   | kind |  gpu  |  gi   |  ci   |  creation counter |
//! ```
//!
//! The two high bytes make it no address of user space, so a program that follows one fails at once, and
//! Go's collector never takes one for its own. The counter is that of the instance's place in the table: a
//! handle of an instance that is gone, or that another has replaced, is known as stale.

use super::{
    Call,
    arguments::{require_present, stale},
};
use crate::{
    machine::{Board, Code, MigDevice},
    state::{CiState, GiState, GpuState},
};

const MAGIC: u64 = 0x4e56;
const COUNTER: u64 = (1 << 29) - 1;
const GPU: u64 = 1;
const MIG: u64 = 2;
const GI: u64 = 3;
const CI: u64 = 4;
const SET: u64 = 5;
/// The number of an object of this process takes the place of GPU, instances and counter.
const NUMBER: u64 = (1 << 44) - 1;

/// nvmlDevice_t, nvmlGpuInstance_t, nvmlComputeInstance_t, nvmlEventSet_t or nvmlGpmSample_t.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handle(pub(crate) u64);

/// What a well-formed handle names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    kind: u64,
    /// NVML index of the GPU.
    pub(super) gpu: usize,
    /// GPU instance id.
    pub(super) gi: Option<u32>,
    /// Compute instance id.
    pub(super) ci: Option<u32>,
    counter: u32,
}

/// A device handle's device: a GPU, or a MIG device on one.
pub(super) struct Device<'a> {
    /// NVML index of the GPU.
    pub(super) gpu: usize,
    /// The GPU's rules.
    pub(super) board: Board<'a>,
    /// The GPU's state when the call began.
    pub(super) state: GpuState,
    /// The MIG device, if it is one.
    pub(super) mig: Option<MigDevice>,
}

impl Handle {
    fn new(kind: u64, gpu: usize, gi: u32, ci: u32, counter: u32) -> Handle {
        let place = (kind << 44) | ((gpu as u64 & 63) << 38) | (u64::from(gi & 31) << 33);
        Handle((MAGIC << 48) | place | (u64::from(ci & 15) << 29) | (u64::from(counter) & COUNTER))
    }

    /// A GPU's.
    pub(super) fn gpu(gpu: usize) -> Handle {
        Handle::new(GPU, gpu, 0, 0, 0)
    }

    /// A MIG device's.
    pub(super) fn mig(gpu: usize, device: MigDevice, ci: &CiState) -> Handle {
        // Compute instances' counters outlive their GPU instance, so theirs is enough.
        Handle::new(MIG, gpu, device.gi, device.ci, ci.handle)
    }

    /// A GPU instance's.
    pub(super) fn gi(gpu: usize, id: u32, gi: &GiState) -> Handle {
        Handle::new(GI, gpu, id, 0, gi.handle)
    }

    /// A compute instance's.
    pub(super) fn ci(gpu: usize, gi: u32, id: u32, ci: &CiState) -> Handle {
        Handle::new(CI, gpu, gi, id, ci.handle)
    }

    /// An event set's.
    pub(super) fn set(number: u64) -> Handle {
        Handle((MAGIC << 48) | (SET << 44) | (number & NUMBER))
    }

    /// The event set's number.
    pub(super) fn set_number(self) -> Result<u64, Code> {
        self.number(SET)
    }

    fn number(self, kind: u64) -> Result<u64, Code> {
        let is = self.0 >> 44 == MAGIC << 4 | kind;
        if is { Ok(self.0 & NUMBER) } else { Err(Code::INVALID_ARGUMENT) }
    }

    /// What it names, if it is a handle at all.
    pub(super) fn decode(self) -> Option<Place> {
        let kind = (self.0 >> 44) & 15;
        if self.0 >> 48 != MAGIC || !(GPU..=CI).contains(&kind) {
            return None;
        }
        let gi = (kind != GPU).then_some((self.0 >> 33) as u32 & 31);
        let ci = (kind == MIG || kind == CI).then_some((self.0 >> 29) as u32 & 15);
        let gpu = (self.0 >> 38) as usize & 63;
        Some(Place { kind, gpu, gi, ci, counter: (self.0 & COUNTER) as u32 })
    }

    fn decode_as(self, kinds: &[u64]) -> Result<Place, Code> {
        self.decode().filter(|place| kinds.contains(&place.kind)).ok_or(Code::INVALID_ARGUMENT)
    }

    /// The GPU that an instance's handle lies on.
    pub(super) fn gpu_index(self) -> Result<usize, Code> {
        Ok(self.decode_as(&[GI, CI])?.gpu)
    }

    /// The GPU instance's id, if it still exists.
    pub(super) fn gi_in(self, board: &Board<'_>, state: &GpuState) -> Result<u32, Code> {
        let place = self.decode_as(&[GI])?;
        let id = place.gi.unwrap_or_default();
        let gi = state.gis.get(id as usize).filter(|gi| gi.live != 0);
        match gi {
            Some(gi) if u64::from(gi.handle) & COUNTER == u64::from(place.counter) => Ok(id),
            _ => Err(stale(board.unknowns.stale_instance_handle)),
        }
    }

    /// The compute instance's ids, if it still exists; also of a MIG device.
    pub(super) fn ci_in(self, board: &Board<'_>, state: &GpuState) -> Result<MigDevice, Code> {
        self.live_ci(&[CI], board, state)
    }

    fn live_ci(self, kinds: &[u64], board: &Board<'_>, state: &GpuState) -> Result<MigDevice, Code> {
        let place = self.decode_as(kinds)?;
        let device = MigDevice { gi: place.gi.unwrap_or_default(), ci: place.ci.unwrap_or_default() };
        match board.mig_instances(state, device) {
            Ok((_, ci)) if u64::from(ci.handle) & COUNTER == u64::from(place.counter) => Ok(device),
            _ => Err(stale(board.unknowns.stale_instance_handle)),
        }
    }
}

impl Call {
    /// The device of a handle, for what the library knows without asking the hardware (name, UUID, index).
    pub(super) fn facts(&self, handle: Handle) -> Result<Device<'_>, Code> {
        let place = handle.decode_as(&[GPU, MIG])?;
        let (board, state) = self.session.look(place.gpu)?;
        if board.unknowns.lost_facts != 0 {
            require_present(&state)?;
        }
        let mig = match place.kind {
            MIG => Some(handle.live_ci(&[MIG], &board, &state)?),
            _ => None,
        };
        Ok(Device { gpu: place.gpu, board, state, mig })
    }

    /// The device of a handle.
    pub(super) fn device(&self, handle: Handle) -> Result<Device<'_>, Code> {
        let device = self.facts(handle)?;
        require_present(&device.state)?;
        Ok(device)
    }

    /// The GPU of a handle; `otherwise` is what the call answers for a MIG device.
    pub(super) fn parent(&self, handle: Handle, otherwise: Code) -> Result<Device<'_>, Code> {
        let device = self.device(handle)?;
        if device.mig.is_some() { Err(otherwise) } else { Ok(device) }
    }

    /// The GPU that an instance's handle lies on, if it is there to be asked.
    pub(super) fn gpu_of(&self, handle: Handle) -> Result<Device<'_>, Code> {
        let gpu = handle.gpu_index()?;
        let (board, state) = self.session.look(gpu)?;
        require_present(&state)?;
        Ok(Device { gpu, board, state, mig: None })
    }

    /// Refuses what the driver reserves to root.
    pub(super) fn require_privilege(&self) -> Result<(), Code> {
        if self.session.privileged() { Ok(()) } else { Err(Code::NO_PERMISSION) }
    }
}

impl Device<'_> {
    /// The MIG device, for calls that take nothing else.
    pub(super) fn require_mig(&self, otherwise: Code) -> Result<MigDevice, Code> {
        self.mig.ok_or(otherwise)
    }

    /// The MIG device's GPU instance and compute instance.
    pub(super) fn instances(&self, device: MigDevice) -> Result<(&GiState, &CiState), Code> {
        self.board.mig_instances(&self.state, device)
    }
}
