//! What a board is, as its data sheet has it, and what the node has not.

use super::{
    Out,
    arguments::put_text,
    entry,
    handle::Handle,
    layout::{DriverBranch, version},
};
use crate::{machine::Code, model::Model};
use std::ffi::c_char;

entry! {
    fn nvmlDeviceGetMemoryBusWidth(device: Handle, bits: Out<u32>) |call| {
        bits.put(call.measured(device)?.1.product.bus_width.ok_or(Code::NOT_SUPPORTED)?)
    }

    fn nvmlDeviceGetNumGpuCores(device: Handle, cores: Out<u32>) |call| {
        // Not on GPUs in MIG mode (nvml.h).
        let (device, _) = call.unpartitioned(device)?;
        cores.put(device.board.model.cores()?)
    }

    fn nvmlDeviceGetVbiosVersion(device: Handle, text: Out<c_char>, length: u32) |call| {
        let model = call.device(device)?.board.model;
        put_text(text, length, &model.vbios())
    }

    fn nvmlDeviceGetGspFirmwareVersion(device: Handle, text: Out<c_char>) |call| {
        call.parent(device, Code::NOT_SUPPORTED)?;
        // NVML_GSP_FIRMWARE_VERSION_BUF_SIZE; the firmware comes with the driver and has its version.
        put_text(text, 64, call.session.info().driver.as_str())
    }

    fn nvmlDeviceGetGspFirmwareMode(device: Handle, on: Out<u32>, default: Out<u32>) |call| {
        call.parent(device, Code::NOT_SUPPORTED)?;
        on.required()?;
        default.required()?;
        on.put(1)?;
        default.put(1)
    }

    fn nvmlDeviceGetDisplayMode(device: Handle, on: Out<u32>) |call| {
        call.parent(device, Code::NOT_SUPPORTED)?;
        on.put(0)
    }

    fn nvmlDeviceGetDisplayActive(device: Handle, on: Out<u32>) |call| {
        call.parent(device, Code::NOT_SUPPORTED)?;
        on.put(0)
    }

    fn nvmlDeviceOnSameBoard(one: Handle, other: Handle, same: Out<i32>) |call| {
        let (one, other) = (call.device(one)?, call.device(other)?);
        same.put(i32::from(one.gpu == other.gpu))
    }

    fn nvmlSystemGetDriverBranch(info: Out<DriverBranch>, length: u32) |call| {
        if info.cast::<u32>().get()? != version::<DriverBranch>(1) {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        let driver = call.session.info().driver;
        let branch = driver.as_str().split('.').next().unwrap_or_default();
        put_text(info.cast::<u32>().after(), length.min(80), &format!("r{branch}_00"))
    }

    fn nvmlUnitGetCount(count: Out<u32>) |_call| {
        // S-class boxes of the years before 2012.
        count.put(0)
    }

    fn nvmlSystemGetHicVersion(count: Out<u32>, _list: Out<u64>) |_call| {
        // Host interface cards, of those boxes.
        count.put(0)
    }

    fn nvmlGetExcludedDeviceCount(count: Out<u32>) |_call| {
        count.put(0)
    }
}

impl Model {
    /// CUDA cores: as many for each multiprocessor as its kind has.
    fn cores(&self) -> Result<u32, Code> {
        let each = match (self.compute_major, self.compute_minor) {
            (7, _) | (8, 0) => 64,
            _ => 128,
        };
        if self.multiprocessors == 0 { Err(Code::NOT_SUPPORTED) } else { Ok(self.multiprocessors * each) }
    }

    /// A version of the kind's form, made up for the board.
    fn vbios(&self) -> String {
        let first = match self.architecture {
            7 => 0x92,
            9 => 0x96,
            10 => 0x97,
            8 => 0x95,
            _ => 0x90,
        };
        format!("{first:X}.00.00.00.{:02X}", self.board_seed & 0xff)
    }
}
