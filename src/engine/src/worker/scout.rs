//! Finds which GPUs there are. The scout opens every one, so it must be gone before a mode changes.
//!
//! One request per index: should a GPU hang, the main process knows which, and another scout goes on behind it.

use super::Main;
use crate::{
    error::Failure,
    protocol::{Request, Response},
};
use migd_core::{node::Driver, reason::Reason};
use migd_nvml::{Code, Error, Library};
use std::{io, path::Path};

pub(super) fn serve(main: &mut Main, path: Option<&Path>) -> io::Result<()> {
    let mut library = None;
    while let Some(request) = main.next()? {
        let answer =
            open(&mut library, path).map_err(Failure::from).and_then(|library| look(library, &request));
        main.answer(&answer.unwrap_or_else(Response::Failed))?;
    }
    Ok(())
}

fn open<'a>(library: &'a mut Option<Library>, path: Option<&Path>) -> Result<&'a Library, Error> {
    match library {
        Some(library) => Ok(library),
        None => Ok(library.insert(Library::open(path)?)),
    }
}

fn look(library: &Library, request: &Request) -> Result<Response, Failure> {
    match request {
        Request::Count => {
            let driver = Driver { version: library.driver_version()?, nvml: library.nvml_version()? };
            Ok(Response::Counted { driver, count: library.device_count()? })
        }
        Request::Look { index } => {
            let pci = library.device_by_index(*index).and_then(|device| device.pci()).map_err(lost)?;
            Ok(Response::Found(pci.address, pci.id))
        }
        _ => Err(Failure::new(Reason::Internal, "a scout is no GPU's worker")),
    }
}

/// A GPU that has fallen off the bus is still counted and answers GPU_IS_LOST, on some drivers UNKNOWN, when
/// it is opened (k8s-device-plugin#231, dcgm-exporter#604).
fn lost(error: Error) -> Failure {
    let unknown = error.is(Code::UNKNOWN);
    let failure = Failure::from(error);
    if unknown { Failure::new(Reason::GpuLost, failure.message) } else { failure }
}
