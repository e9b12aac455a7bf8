//! A GPU, or the MIG device that is part of one.

use crate::{
    error::{Error, call},
    library::Library,
};
use migd_core::{
    id::{PciAddress, PciId},
    node::Architecture,
};
use nvml_wrapper_sys::bindings::{
    NVML_DEVICE_ARCH_AMPERE, NVML_DEVICE_ARCH_HOPPER, NVML_DEVICE_ARCH_UNKNOWN, nvmlDevice_t, nvmlMemory_t,
    nvmlMemory_v2_t,
};

/// A device that is open.
#[derive(Debug)]
pub struct Device<'lib> {
    library: &'lib Library,
    inner: nvml_wrapper::Device<'lib>,
}

/// Where a GPU sits and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pci {
    /// Its address.
    pub address: PciAddress,
    /// Its ids.
    pub id: PciId,
}

impl<'lib> Device<'lib> {
    pub(crate) fn new(library: &'lib Library, inner: nvml_wrapper::Device<'lib>) -> Device<'lib> {
        Device { library, inner }
    }

    /// # Safety
    /// `handle` must come from this library, which is what keeps it valid.
    pub(crate) unsafe fn of_handle(library: &'lib Library, handle: nvmlDevice_t) -> Option<Device<'lib>> {
        if handle.is_null() {
            return None;
        }
        // SAFETY: the caller vouches for the handle, and `inner` borrows the library.
        let inner = unsafe { nvml_wrapper::Device::new(handle, library.nvml()) };
        Some(Device { library, inner })
    }

    pub(crate) fn library(&self) -> &'lib Library {
        self.library
    }

    pub(crate) fn handle(&self) -> nvmlDevice_t {
        // SAFETY: the handle is only passed to functions of the library that `self` borrows.
        unsafe { self.inner.handle() }
    }

    /// `GPU-…`, or `MIG-…` for a MIG device.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn uuid(&self) -> Result<String, Error> {
        self.inner.uuid().map_err(|e| Error::of_wrapper("nvmlDeviceGetUUID", e))
    }

    /// The product's name.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn name(&self) -> Result<String, Error> {
        self.inner.name().map_err(|e| Error::of_wrapper("nvmlDeviceGetName", e))
    }

    /// N in /dev/nvidiaN, which is not the index.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn minor(&self) -> Result<u32, Error> {
        self.inner.minor_number().map_err(|e| Error::of_wrapper("nvmlDeviceGetMinorNumber", e))
    }

    /// Address and ids.
    ///
    /// # Errors
    /// The driver's answer, or an address that is none.
    pub fn pci(&self) -> Result<Pci, Error> {
        let function = "nvmlDeviceGetPciInfo_v3";
        let info = self.inner.pci_info().map_err(|e| Error::of_wrapper(function, e))?;
        let address = info
            .bus_id
            .parse()
            .map_err(|_| Error::Malformed { function, what: format!("'{}'", info.bus_id) })?;
        let id = PciId::from_nvml(info.pci_device_id, info.pci_sub_system_id.unwrap_or_default());
        Ok(Pci { address, id })
    }

    /// The generation. A number that this knows nothing of is taken for a later one than it knows.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn architecture(&self) -> Result<Architecture, Error> {
        let mut number = 0;
        // SAFETY: the handle is of this library, and the out pointer is valid for an nvmlDeviceArchitecture_t.
        unsafe { call!(self.library, nvmlDeviceGetArchitecture(self.handle(), &mut number)) }?;
        Ok(match number {
            NVML_DEVICE_ARCH_AMPERE => Architecture::Ampere,
            NVML_DEVICE_ARCH_UNKNOWN => Architecture::WithoutMig,
            number if number >= NVML_DEVICE_ARCH_HOPPER => Architecture::HopperOrLater,
            _ => Architecture::WithoutMig,
        })
    }

    /// All its memory in bytes: by the second form of the call, or by the first on drivers that have no other.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn memory_total(&self) -> Result<u64, Error> {
        // SAFETY: all-zero is a value of this struct of integers.
        let mut info: nvmlMemory_v2_t = unsafe { std::mem::zeroed() };
        info.version = version_word::<nvmlMemory_v2_t>(2);
        // SAFETY: the handle is of this library, and the struct carries the version word of its own layout.
        match unsafe { call!(self.library, nvmlDeviceGetMemoryInfo_v2(self.handle(), &mut info)) } {
            Ok(()) => return Ok(info.total),
            Err(error) if error.is_absent() => {}
            Err(error) => return Err(error),
        }
        let mut info = nvmlMemory_t { total: 0, free: 0, used: 0 };
        // SAFETY: the handle is of this library, and the out pointer is valid for an nvmlMemory_t.
        unsafe { call!(self.library, nvmlDeviceGetMemoryInfo(self.handle(), &mut info)) }?;
        Ok(info.total)
    }

    /// How many MIG devices this GPU can have at most; 0 without MIG.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn max_mig_devices(&self) -> Result<u32, Error> {
        let mut count = 0;
        // SAFETY: the handle is of this library, and the out pointer is valid for a c_uint.
        unsafe { call!(self.library, nvmlDeviceGetMaxMigDeviceCount(self.handle(), &mut count)) }?;
        Ok(count)
    }

    /// The MIG device with this index in the GPU.
    ///
    /// # Errors
    /// The driver's answer; NOT_FOUND where there is none.
    pub fn mig_device(&self, index: u32) -> Result<Device<'lib>, Error> {
        let function = "nvmlDeviceGetMigDeviceHandleByIndex";
        let mut handle: nvmlDevice_t = std::ptr::null_mut();
        // SAFETY: the handle is of this library, and the out pointer is valid for an nvmlDevice_t.
        unsafe {
            call!(self.library, nvmlDeviceGetMigDeviceHandleByIndex(self.handle(), index, &mut handle))
        }?;
        // SAFETY: the handle comes from this library.
        let device = unsafe { Device::of_handle(self.library, handle) };
        device.ok_or_else(|| Error::Malformed { function, what: "no handle".to_owned() })
    }

    /// A MIG device's GPU instance and compute instance, by id.
    ///
    /// # Errors
    /// The driver's answer; INVALID_ARGUMENT for a whole GPU.
    pub fn mig_ids(&self) -> Result<(u32, u32), Error> {
        let (mut gpu_instance, mut compute_instance) = (0, 0);
        // SAFETY: the handle is of this library, and both out pointers are valid for a c_uint.
        unsafe {
            call!(self.library, nvmlDeviceGetGpuInstanceId(self.handle(), &mut gpu_instance))?;
            call!(self.library, nvmlDeviceGetComputeInstanceId(self.handle(), &mut compute_instance))?;
        }
        Ok((gpu_instance, compute_instance))
    }
}

/// NVML_STRUCT_VERSION of nvml.h: the size of the struct and the version in the top byte.
pub(crate) fn version_word<T>(version: u32) -> u32 {
    // No struct of NVML's comes near 16 MiB.
    u32::try_from(size_of::<T>()).unwrap_or_default() | version << 24
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvml_wrapper_sys::bindings::{
        nvmlComputeInstanceProfileInfo_v2_t, nvmlGpuInstanceProfileInfo_v2_t, nvmlGpuInstanceProfileInfo_v3_t,
    };

    #[test]
    fn version_words_are_those_of_the_header() {
        assert_eq!(version_word::<nvmlMemory_v2_t>(2), 0x0200_0028);
        assert_eq!(version_word::<nvmlGpuInstanceProfileInfo_v2_t>(2), 0x0200_0098);
        assert_eq!(version_word::<nvmlGpuInstanceProfileInfo_v3_t>(3), 0x0300_0098);
        assert_eq!(version_word::<nvmlComputeInstanceProfileInfo_v2_t>(2), 0x0200_0088);
    }
}
