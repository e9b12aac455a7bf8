//! Finds which GPUs there are. The scout opens every one, so it must be gone before a mode changes.

use crate::{
    error::Failure,
    protocol::{Found, Response, Scouted},
};
use migd_core::{node::Driver, reason::Reason};
use migd_nvml::{Code, Error, Library};
use std::path::Path;

/// As many GPUs as a node can have: minors of the driver's capabilities end at 32.
const MOST_GPUS: u32 = 64;

pub(super) fn scout(path: Option<&Path>) -> Response {
    match look(path) {
        Ok(scouted) => Response::Scouted(scouted),
        Err(error) => Response::Failed(error.into()),
    }
}

fn look(path: Option<&Path>) -> Result<Scouted, Error> {
    let library = Library::open(path)?;
    let driver = Driver { version: library.driver_version()?, nvml: library.nvml_version()? };
    let found = (0..library.device_count()?.min(MOST_GPUS)).map(|index| {
        let pci = library.device_by_index(index).and_then(|device| device.pci());
        Found { index, gpu: pci.map(|pci| (pci.address, pci.id)).map_err(lost) }
    });
    Ok(Scouted { driver, found: found.collect() })
}

/// A GPU that has fallen off the bus is still counted and answers GPU_IS_LOST, on some drivers UNKNOWN, when
/// it is opened (k8s-device-plugin#231, dcgm-exporter#604).
fn lost(error: Error) -> Failure {
    let mut failure = Failure::from(error.clone());
    if error.is(Code::UNKNOWN) {
        failure.reason = Reason::GpuLost;
    }
    failure
}
