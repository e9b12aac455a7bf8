//! The service: what a node is asked, from the question to the true answer.
//!
//! ```text
//! text --core::layout--> LayoutFile --core::target(Node)--> Target --core::plan(Node)--> Plan --engine--> Outcome
//!                                          ^                                                |
//!                                          +---- engine::snapshot, one pass ----------------+ audited before it runs
//! ```
//!
//! `migctl` hosts [`Service`] in its own process; nothing here depends on who asks. A program that hosts it
//! calls [`serve_worker_if_asked`] first in its `main`, since it is run again as a worker for each GPU.
//! Not here: deciding (`migd-core`), doing (`migd-engine`), showing (`migctl`).
#![forbid(unsafe_code)]

mod layouts;
mod service;

pub use layouts::{SearchPath, is_shipped};
pub use migd_engine::{Event, GpuOutcome, GpuResult, Outcome, Progress, Site, Totals};
pub use service::{Applied, Planned, Service};

/// Becomes a worker if this process was started as one, and then returns its exit code when the GPU's owner has
/// gone.
pub fn serve_worker_if_asked() -> Option<std::process::ExitCode> {
    migd_engine::worker::serve_if_asked()
}
