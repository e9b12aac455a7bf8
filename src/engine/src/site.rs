//! Where the driver is and how long it may take: everything that differs between this machine's driver and a
//! simulated node.

use std::{ffi::OsString, path::PathBuf, time::Duration};

/// The place that workers work at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The program that becomes a worker when run as one; absent: this one itself.
    pub program: Option<PathBuf>,
    /// The library to load; absent: `libnvidia-ml.so.1` where the loader finds it.
    pub library: Option<PathBuf>,
    /// Set in the environment of workers and of the reset tool, on top of this process's own.
    pub environment: Vec<(OsString, OsString)>,
    /// The program that resets GPUs, called as `TOOL -r -i 00000000:07:00.0`.
    pub reset_tool: PathBuf,
    /// How long reading one GPU may take.
    pub read_limit: Duration,
    /// How long a reset may take before its GPU is given up (the tool is not killed).
    pub reset_limit: Duration,
}

impl Default for Site {
    /// This machine's own driver.
    fn default() -> Site {
        Site {
            program: None,
            library: None,
            environment: Vec::new(),
            reset_tool: PathBuf::from("nvidia-smi"),
            read_limit: Duration::from_secs(10),
            reset_limit: Duration::from_secs(120),
        }
    }
}
