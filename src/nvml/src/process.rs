//! Processes on a GPU, with the instances they are in.

use crate::{
    device::Device,
    error::{Code, Error, call},
};
use nvml_wrapper_sys::bindings::nvmlProcessInfo_t;

/// First try: enough for most GPUs, so that one call does.
const ENTRIES: usize = 64;
/// As large as a list may become before it is taken for nonsense.
const MOST_ENTRIES: usize = 65_536;
/// NVML's word for "no instance".
const NO_INSTANCE: u32 = u32::MAX;

/// Which of NVML's three lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProcessKind {
    /// CUDA.
    Compute,
    /// OpenGL, Vulkan and the like.
    Graphics,
    /// CUDA by way of MPS.
    Mps,
}

impl ProcessKind {
    /// All lists.
    pub const ALL: [ProcessKind; 3] = [ProcessKind::Compute, ProcessKind::Graphics, ProcessKind::Mps];
}

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Its id, as the driver sees it.
    pub pid: u32,
    /// Its GPU instance; absent: the whole GPU.
    pub gpu_instance: Option<u32>,
    /// Its compute instance; absent: the whole GPU instance.
    pub compute_instance: Option<u32>,
}

impl Device<'_> {
    /// One of the lists of processes, by `_v3` or, on older drivers, `_v2`, which has the same struct.
    ///
    /// # Errors
    /// The driver's answer; NO_PERMISSION for others than root once a GPU instance exists.
    pub fn processes(&self, kind: ProcessKind) -> Result<Vec<Process>, Error> {
        let mut entries = ENTRIES;
        loop {
            // SAFETY: all-zero is a value of this struct of integers.
            let empty: nvmlProcessInfo_t = unsafe { std::mem::zeroed() };
            let mut buffer = vec![empty; entries];
            let mut count = u32::try_from(entries).unwrap_or(u32::MAX);
            match self.processes_into(kind, &mut count, &mut buffer) {
                Ok(()) => {
                    let some = |id: u32| (id != NO_INSTANCE).then_some(id);
                    let process = |info: &nvmlProcessInfo_t| Process {
                        pid: info.pid,
                        gpu_instance: some(info.gpuInstanceId),
                        compute_instance: some(info.computeInstanceId),
                    };
                    return Ok(buffer.iter().take(count as usize).map(process).collect());
                }
                // The list may have grown since the driver counted it: leave room.
                Err(error) if error.is(Code::INSUFFICIENT_SIZE) && entries < MOST_ENTRIES => {
                    entries = (entries * 2).max(count as usize + ENTRIES).min(MOST_ENTRIES);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn processes_into(
        &self,
        kind: ProcessKind,
        count: &mut u32,
        buffer: &mut [nvmlProcessInfo_t],
    ) -> Result<(), Error> {
        let (library, handle, into) = (self.library(), self.handle(), buffer.as_mut_ptr());
        // SAFETY: the handle is of this library; `count` says how many entries `into` has room for, and the
        // struct of _v2 is the same as that of _v3 (nvml.h).
        unsafe {
            let newest = match kind {
                ProcessKind::Compute => {
                    call!(library, nvmlDeviceGetComputeRunningProcesses_v3(handle, count, into))
                }
                ProcessKind::Graphics => {
                    call!(library, nvmlDeviceGetGraphicsRunningProcesses_v3(handle, count, into))
                }
                ProcessKind::Mps => {
                    call!(library, nvmlDeviceGetMPSComputeRunningProcesses_v3(handle, count, into))
                }
            };
            match (newest, kind) {
                (Err(error), ProcessKind::Compute) if error.is_absent() => {
                    call!(library, nvmlDeviceGetComputeRunningProcesses_v2(handle, count, into))
                }
                (Err(error), ProcessKind::Graphics) if error.is_absent() => {
                    call!(library, nvmlDeviceGetGraphicsRunningProcesses_v2(handle, count, into))
                }
                (Err(error), ProcessKind::Mps) if error.is_absent() => {
                    call!(library, nvmlDeviceGetMPSComputeRunningProcesses_v2(handle, count, into))
                }
                (answer, _) => answer,
            }
        }
    }
}
