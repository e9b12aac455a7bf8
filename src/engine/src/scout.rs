//! The main process's side of the scout: which GPUs there are, whatever one of them does.

use crate::{
    error::{EngineError, Failure},
    process::Process,
    protocol::{Request, Response, SCOUT_ARGUMENT},
    site::Site,
    workers::odd,
};
use migd_core::{
    id::{PciAddress, PciId},
    node::Driver,
};

/// As many GPUs as a node is believed to have: the driver numbers its capabilities for 32.
const MOST_GPUS: u32 = 64;

/// What was found.
#[derive(Debug)]
pub(crate) struct Scouted {
    /// The driver.
    pub(crate) driver: Driver,
    /// Every index there is.
    pub(crate) found: Vec<Found>,
}

/// What is known of one index.
#[derive(Debug)]
pub(crate) struct Found {
    /// NVML's index.
    pub(crate) index: u32,
    /// Where it sits and what it is, or why that cannot be told.
    pub(crate) gpu: Result<(PciAddress, PciId), Failure>,
}

/// Looks at every index. When this returns, the scout has gone and is no client of any GPU, except where it
/// hangs in the driver and cannot go.
pub(crate) async fn look(site: &Site) -> Result<Scouted, EngineError> {
    let mut process = Process::new(SCOUT_ARGUMENT);
    let answer = process.ask(site, &Request::Count, site.read_limit).await;
    let (driver, count) = match answer {
        Ok(Response::Counted { driver, count }) => (driver, count),
        other => {
            drop(process.leave().await);
            return Err(match other {
                Ok(Response::Failed(failure)) => EngineError::Driver(failure),
                Ok(other) => odd(&other),
                Err(error) => error,
            });
        }
    };
    let mut found = Vec::new();
    for index in 0..count.min(MOST_GPUS) {
        let gpu = match process.ask(site, &Request::Look { index }, site.read_limit).await {
            Ok(Response::Found(pci, id)) => Ok((pci, id)),
            Ok(Response::Failed(failure)) => Err(failure),
            Ok(other) => Err(odd(&other).failure()),
            Err(error) => {
                // This GPU hangs or crashes whoever looks at it: another scout goes on behind it.
                process = Process::new(SCOUT_ARGUMENT);
                Err(error.failure())
            }
        };
        found.push(Found { index, gpu });
    }
    // A scout that does not go was given up with SIGKILL; what it holds is told when it stands in the way.
    drop(process.leave().await);
    Ok(Scouted { driver, found })
}
