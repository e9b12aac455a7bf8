//! Reads a node into one snapshot and carries out plans on it.
//!
//! ```text
//!  main process (no driver)                     one process a GPU, by re-execution
//!  Workers --spawn--> scout ..................> which GPUs there are; ends
//!     |----- request, answer over a socketpair: worker 0000:07:00.0  (holds the driver for this GPU alone)
//!     |-----------------------------------------worker 0000:0f:00.0
//!     v
//!  snapshot() -> core::Node      apply(Plan) -> Outcome
//! ```
//!
//! Why processes: an NVML session is per process, so only thus can one GPU be reset while another is worked
//! on; a driver that hangs or crashes costs one worker, never the caller.
//!
//! A program that hosts this calls [`worker::serve_if_asked`] first in its `main`, runs the rest on a tokio
//! runtime with I/O and time, and ends with [`Workers::close`], so that whoever comes next finds no client of
//! ours on a GPU.
//! Not here: deciding anything (`migd-core`), who may ask, journal, holders outside NVML.
#![forbid(unsafe_code)]

pub mod apply;
mod error;
mod join;
mod outcome;
mod process;
mod progress;
mod protocol;
mod scout;
mod site;
pub mod worker;
mod workers;

pub use apply::apply;
pub use error::{EngineError, Failure};
pub use outcome::{FORMAT, GpuOutcome, GpuResult, Outcome, PhaseTimes, Totals};
pub use progress::{Event, Progress};
pub use site::Site;
pub use workers::Workers;
