//! What lies between GPUs, and what of the machine is near them.

use super::{
    Out,
    arguments::put_list,
    entry,
    handle::{Device, Handle},
    layout::{Fabric1, Fabric2, Fabric3, version},
};
use crate::{
    machine::Code,
    topology::{self, Fabric, LEVELS, Way},
};

/// NVML_P2P_CAPS_INDEX_*.
const NVLINK: u32 = 2;
const ATOMICS: u32 = 3;
const PCIE: u32 = 4;
/// NVML_P2P_STATUS_OK and _NOT_SUPPORTED.
const REACHES: u32 = 0;
const DOES_NOT: u32 = 5;

/// NVML_DEVICE_ARCH_HOPPER: older GPUs know of no fabric.
const HOPPER: u32 = 9;
/// NVML_GPU_FABRIC_STATE_*.
const NO_FABRIC: u32 = 0;
const NOT_STARTED: u32 = 1;
const COMPLETED: u32 = 3;
/// Two bits each of NVML_GPU_FABRIC_HEALTH_MASK_*, all saying that nothing is wrong; and its summary.
const NOTHING_WRONG: u32 = 2 | 2 << 2 | 2 << 4 | 2 << 6 | 1 << 8;
const HEALTHY: u8 = 1;

entry! {
    fn nvmlDeviceGetTopologyCommonAncestor(one: Handle, other: Handle, level: Out<u32>) |call| {
        let (one, other) = (call.parent(one, Code::NOT_SUPPORTED)?, call.parent(other, Code::NOT_SUPPORTED)?);
        level.put(topology::level((one.gpu, one.board.model), (other.gpu, other.board.model)))
    }

    fn nvmlDeviceGetTopologyNearestGpus(device: Handle, level: u32, count: Out<u32>, list: Out<Handle>) |call| {
        let device = call.parent(device, Code::NOT_SUPPORTED)?;
        if !LEVELS.contains(&level) {
            return Err(Code::INVALID_ARGUMENT);
        }
        let models = (0..).zip(call.session.shard().models());
        let near = models.filter(|(gpu, model)| {
            *gpu != device.gpu && topology::level((device.gpu, device.board.model), (*gpu, model)) == level
        });
        put_list(list, count, &near.map(|(gpu, _)| Handle::gpu(gpu)).collect::<Vec<_>>(), true)
    }

    fn nvmlSystemGetTopologyGpuSet(cpu: u32, count: Out<u32>, list: Out<Handle>) |call| {
        let machine = topology::machine_cpus();
        let models = (0..).zip(call.session.shard().models());
        let near: Vec<Handle> = models
            .filter(|(_, model)| model.cpus().as_ref().unwrap_or(&machine).contains(&cpu))
            .map(|(gpu, _)| Handle::gpu(gpu))
            .collect();
        if near.is_empty() && !machine.contains(&cpu) {
            return Err(Code::INVALID_ARGUMENT);
        }
        put_list(list, count, &near, true)
    }

    fn nvmlDeviceGetP2PStatus(one: Handle, other: Handle, index: u32, status: Out<u32>) |call| {
        let (one, other) = (call.device(one)?, call.device(other)?);
        let way = match index {
            NVLINK | ATOMICS => Way::NvLink,
            PCIE => Way::Pcie,
            ..NVLINK => Way::Any,
            _ => return Err(Code::INVALID_ARGUMENT),
        };
        let whole = one.mig.is_none() && other.mig.is_none();
        let (one, other) = ((one.gpu, &one.board, &one.state), (other.gpu, &other.board, &other.state));
        status.put(if whole && topology::reaches(one, other, way) { REACHES } else { DOES_NOT })
    }

    fn nvmlDeviceGetGpuFabricInfo(device: Handle, info: Out<Fabric1>) |call| {
        let device = call.parent(device, Code::NOT_SUPPORTED)?;
        info.required()?;
        let all = fabric(&device, call.session.info())?;
        info.put(Fabric1 { cluster: all.cluster, status: 0, clique: all.clique, state: all.state })
    }

    fn nvmlDeviceGetGpuFabricInfoV(device: Handle, info: Out<Fabric3>) |call| {
        let device = call.parent(device, Code::NOT_SUPPORTED)?;
        let asked = info.cast::<u32>().get()?;
        let (second, third) = (version::<Fabric2>(2), version::<Fabric3>(3));
        if asked != second && asked != third {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        let all = fabric(&device, call.session.info())?;
        if asked == second {
            return info.cast::<Fabric2>().put(Fabric2 {
                version: second, cluster: all.cluster, status: 0, clique: all.clique, state: all.state,
                health: all.health,
            });
        }
        info.put(all)
    }
}

/// A GPU's registration with the fabric. MIG suspends it (open-gpu-kernel-modules).
fn fabric(device: &Device<'_>, info: &crate::shared::Info) -> Result<Fabric3, Code> {
    if device.board.model.architecture < HOPPER {
        return Err(Code::NOT_SUPPORTED);
    }
    let state = match device.board.fabric {
        Fabric::None => NO_FABRIC,
        _ if device.board.mig_on(&device.state) => NOT_STARTED,
        Fabric::Stopped => NOT_STARTED,
        Fabric::Running => COMPLETED,
    };
    let done = state == COMPLETED;
    Ok(Fabric3 {
        version: version::<Fabric3>(3),
        cluster: if done { info.cluster } else { [0; 16] },
        status: 0,
        clique: if done { info.clique } else { 0 },
        state,
        health: if done { NOTHING_WRONG } else { 0 },
        summary: if done { HEALTHY } else { 0 },
        gap: [0; 3],
    })
}
