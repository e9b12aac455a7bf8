//! Loading and initialising the library; what can be asked without a GPU.

use crate::{device::Device, error::Error};
use migd_core::id::PciAddress;
use nvml_wrapper::{Nvml, error::NvmlError};
use nvml_wrapper_sys::bindings::NvmlLib;
use std::path::{Path, PathBuf};

/// What the dynamic loader looks for; `.so` alone would need a development package.
const NAME: &str = "libnvidia-ml.so.1";

/// NVML, loaded and initialised once; dropped, shut down.
#[derive(Debug)]
pub struct Library {
    nvml: Nvml,
}

impl Library {
    /// Loads the library and calls nvmlInit. No path: where the loader finds `libnvidia-ml.so.1`.
    ///
    /// # Errors
    /// [`Error::NoLibrary`] if it cannot be loaded; else the driver's answer, of which DRIVER_NOT_LOADED,
    /// LIB_RM_VERSION_MISMATCH and NO_PERMISSION say what to do.
    pub fn open(path: Option<&Path>) -> Result<Library, Error> {
        let path = path.map_or_else(|| PathBuf::from(NAME), Path::to_owned);
        match Nvml::builder().lib_path(path.as_os_str()).init() {
            Ok(nvml) => Ok(Library { nvml }),
            Err(NvmlError::LibloadingError(error)) => Err(Error::NoLibrary { path, why: error.to_string() }),
            // The library is there and its own parts are not: the same for whoever has to act on it.
            Err(NvmlError::LibraryNotFound) => {
                Err(Error::NoLibrary { path, why: "nvmlInit_v2 answered LIBRARY_NOT_FOUND (12)".to_owned() })
            }
            Err(error) => Err(Error::of_wrapper("nvmlInit_v2", error)),
        }
    }

    /// The driver's version, `580.95.05`.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn driver_version(&self) -> Result<String, Error> {
        let function = "nvmlSystemGetDriverVersion";
        self.nvml.sys_driver_version().map_err(|e| Error::of_wrapper(function, e))
    }

    /// NVML's version, `13.580.95.05`.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn nvml_version(&self) -> Result<String, Error> {
        let function = "nvmlSystemGetNVMLVersion";
        self.nvml.sys_nvml_version().map_err(|e| Error::of_wrapper(function, e))
    }

    /// How many GPUs there are, lost ones included.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn device_count(&self) -> Result<u32, Error> {
        self.nvml.device_count().map_err(|e| Error::of_wrapper("nvmlDeviceGetCount_v2", e))
    }

    /// The GPU with this index, opened: from here on this process is a client of it.
    ///
    /// # Errors
    /// The driver's answer; GPU_IS_LOST or UNKNOWN for one that has fallen off the bus.
    pub fn device_by_index(&self, index: u32) -> Result<Device<'_>, Error> {
        let function = "nvmlDeviceGetHandleByIndex_v2";
        let device = self.nvml.device_by_index(index).map_err(|e| Error::of_wrapper(function, e))?;
        Ok(Device::new(self, device))
    }

    /// The GPU at this address, opened: from here on this process is a client of it.
    ///
    /// # Errors
    /// The driver's answer; NOT_FOUND if no GPU of NVIDIA's sits there.
    pub fn device_by_pci(&self, pci: PciAddress) -> Result<Device<'_>, Error> {
        let function = "nvmlDeviceGetHandleByPciBusId_v2";
        let device =
            self.nvml.device_by_pci_bus_id(pci.to_string()).map_err(|e| Error::of_wrapper(function, e))?;
        Ok(Device::new(self, device))
    }

    pub(crate) fn nvml(&self) -> &Nvml {
        &self.nvml
    }

    /// The symbols.
    pub(crate) fn raw(&self) -> &NvmlLib {
        self.nvml.lib()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use migd_core::reason::Reason;

    #[test]
    fn no_library_is_driver_missing_and_names_what_was_looked_for() {
        let error = Library::open(Some(Path::new("/nonexistent/libnvidia-ml.so.1"))).unwrap_err();
        assert_eq!(error.reason(), Reason::DriverMissing);
        assert!(error.to_string().contains("/nonexistent/libnvidia-ml.so.1"), "{error}");
    }

    #[test]
    fn a_library_that_is_not_nvml_is_an_error_and_no_crash() {
        let error = Library::open(Some(Path::new("libm.so.6"))).unwrap_err();
        assert_eq!(error, Error::Missing { function: "nvmlInit_v2" });
        assert_eq!(error.code(), None);
    }
}
