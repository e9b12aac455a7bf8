//! What can go wrong here, with its reason and what to do.

use migd_core::reason::Reason;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Why the engine cannot answer at all.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A worker process cannot be started.
    #[error("a worker process cannot be started: {0}")]
    Spawn(#[source] std::io::Error),
    /// A worker did not answer in time.
    #[error(
        "the driver did not answer within {} s; its process was abandoned. \
         Look in the kernel log for Xid or RCU messages, then try again",
        .0.as_secs()
    )]
    Hung(Duration),
    /// One that was abandoned earlier has not died yet, so another would hang as well.
    #[error(
        "a process that was abandoned still hangs in the driver; this GPU answers again when that has ended, \
         or after a reboot"
    )]
    StillHung,
    /// A worker ended while it was needed.
    #[error("a worker process ended while it was needed ({0}); see its messages on standard error")]
    Lost(String),
    /// Worker and main process do not understand each other.
    #[error("a worker answered what was not asked: {0}")]
    Protocol(String),
    /// The worker says why it cannot.
    #[error("{0}")]
    Driver(Failure),
}

impl EngineError {
    /// Its reason code.
    pub fn reason(&self) -> Reason {
        match self {
            EngineError::Spawn(_) | EngineError::Protocol(_) => Reason::Internal,
            EngineError::Hung(_) | EngineError::StillHung => Reason::WorkerHung,
            EngineError::Lost(_) => Reason::WorkerLost,
            EngineError::Driver(failure) => failure.reason,
        }
    }

    /// The same as a value that can be kept and sent.
    pub fn failure(&self) -> Failure {
        match self {
            EngineError::Driver(failure) => failure.clone(),
            other => Failure { reason: other.reason(), message: other.to_string() },
        }
    }
}

/// A reason and its sentence for people, which says what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The reason code.
    pub reason: Reason,
    /// One or two sentences for people.
    pub message: String,
}

impl Failure {
    /// Both parts.
    pub fn new(reason: Reason, message: impl Into<String>) -> Failure {
        Failure { reason, message: message.into() }
    }
}

impl From<migd_nvml::Error> for Failure {
    fn from(error: migd_nvml::Error) -> Failure {
        Failure::new(error.reason(), error.to_string())
    }
}
