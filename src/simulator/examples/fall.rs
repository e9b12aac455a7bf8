//! How a program in Rust meets a GPU that falls off the bus: the bindings of nvml-wrapper-sys, on whatever
//! libnvidia-ml.so.1 the loader finds.
//!
//! ```console
//! $ nvml-simulator fault 1xa100-40gb add 'fn=nvmlDeviceGetName nth=2 lost'
//! $ nvml-simulator run 1xa100-40gb -- target/debug/examples/fall
//! ```

use nvml_wrapper_sys::bindings::{NvmlLib, nvmlDevice_t};
use std::{ffi::CStr, io::Write, process::ExitCode};

fn main() -> ExitCode {
    // SAFETY: the library is NVIDIA's or stands for it; loading it runs no code of ours.
    let Ok(nvml) = (unsafe { NvmlLib::new("libnvidia-ml.so.1") }) else { return ExitCode::FAILURE };
    let mut device: nvmlDevice_t = std::ptr::null_mut();
    let mut name = [0; 96];
    // SAFETY: NVML's own functions, with a handle and a buffer that outlive the calls.
    let codes = unsafe {
        let begin = [nvml.nvmlInit_v2(), nvml.nvmlDeviceGetHandleByIndex_v2(0, &mut device)];
        let read = [(); 3].map(|()| nvml.nvmlDeviceGetName(device, name.as_mut_ptr(), 96));
        [begin.as_slice(), read.as_slice(), &[nvml.nvmlShutdown()]].concat()
    };
    // SAFETY: NVML ends the text with a zero, and a buffer that it did not write is all zeros.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
    // A closed standard output leaves no one to tell.
    let _ = writeln!(std::io::stdout(), "{name}: {codes:?}");
    ExitCode::SUCCESS
}
