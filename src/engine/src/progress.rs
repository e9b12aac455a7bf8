//! What an apply is doing now, for whoever wants to show it.

use migd_core::{id::GpuUuid, plan::Action};
use tokio::sync::mpsc;

/// One thing that has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A step begins.
    Started {
        /// NVML's index when the plan was made.
        index: u32,
        /// Which GPU.
        gpu: GpuUuid,
        /// What is done.
        action: Action,
    },
    /// It is done.
    Finished {
        /// NVML's index when the plan was made.
        index: u32,
        /// Which GPU.
        gpu: GpuUuid,
        /// What was done.
        action: Action,
        /// How long it took.
        ms: u64,
    },
    /// A line about one GPU: a reset begins, a step failed and is undone.
    Said {
        /// NVML's index when the plan was made.
        index: u32,
        /// Which GPU.
        gpu: GpuUuid,
        /// For people.
        text: String,
    },
}

/// Where events go. Nobody need listen.
#[derive(Debug, Clone, Default)]
pub struct Progress(Option<mpsc::UnboundedSender<Event>>);

impl Progress {
    /// Tells nobody.
    pub fn silent() -> Progress {
        Progress(None)
    }

    /// Tells the receiver, which ends when the last clone of this is gone.
    pub fn channel() -> (Progress, mpsc::UnboundedReceiver<Event>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Progress(Some(sender)), receiver)
    }

    pub(crate) fn tell(&self, event: Event) {
        if let Some(sender) = &self.0 {
            // A listener that has gone is no reason to stop.
            drop(sender.send(event));
        }
    }
}
