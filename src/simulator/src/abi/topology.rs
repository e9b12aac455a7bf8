//! How GPUs lie to each other and to the CPUs. Simulated nodes know NUMA nodes and NVSwitches; what is nearer
//! than a NUMA node they do not.

use super::{
    Call, Out,
    arguments::put_list,
    entry,
    handle::{Device, Handle},
};
use crate::machine::Code;

/// NVML_TOPOLOGY_INTERNAL, _NODE, _SYSTEM, and all there are.
const INTERNAL: u32 = 0;
const NODE: u32 = 40;
const SYSTEM: u32 = 50;
const LEVELS: [u32; 6] = [INTERNAL, 10, 20, 30, NODE, SYSTEM];
/// NVML_P2P_CAPS_INDEX_NVLINK and the greatest that says something.
const BY_NVLINK: u32 = 2;
const LAST_INDEX: u32 = 4;
/// NVML_P2P_STATUS_OK, _NOT_SUPPORTED.
const STATUS_OK: u32 = 0;
const STATUS_NOT_SUPPORTED: u32 = 5;

entry! {
    fn nvmlDeviceGetTopologyCommonAncestor(one: Handle, other: Handle, level: Out<u32>) |call| {
        let one = call.parent(one, Code::NOT_SUPPORTED)?;
        let other = call.parent(other, Code::NOT_SUPPORTED)?;
        level.put(common(&one, &other))
    }

    fn nvmlDeviceGetTopologyNearestGpus(device: Handle, level: u32, count: Out<u32>, list: Out<Handle>) |call| {
        let device = call.parent(device, Code::NOT_SUPPORTED)?;
        if !LEVELS.contains(&level) {
            return Err(Code::INVALID_ARGUMENT);
        }
        let others = call.gpus().filter(|gpu| *gpu != device.gpu);
        let near = others.filter(|gpu| {
            call.parent(Handle::gpu(*gpu), Code::UNKNOWN).is_ok_and(|other| common(&device, &other) == level)
        });
        put_list(list, count, &near.map(Handle::gpu).collect::<Vec<_>>(), true)
    }

    fn nvmlSystemGetTopologyGpuSet(cpu: u32, count: Out<u32>, list: Out<Handle>) |call| {
        // Every GPU is near to every CPU of the machine below, as their affinity says.
        if !super::device::cpus().contains(&cpu) {
            return Err(Code::INVALID_ARGUMENT);
        }
        put_list(list, count, &call.gpus().map(Handle::gpu).collect::<Vec<_>>(), true)
    }

    fn nvmlDeviceGetP2PStatus(one: Handle, other: Handle, index: u32, status: Out<u32>) |call| {
        let (one, other) = (call.device(one)?, call.device(other)?);
        if index > LAST_INDEX {
            return Err(Code::INVALID_ARGUMENT);
        }
        // None from or to a GPU in MIG mode (MIG User Guide).
        let whole = |device: &Device<'_>| device.mig.is_none() && !device.board.mig_on(&device.state);
        let linked = |device: &Device<'_>| index != BY_NVLINK || device.board.model.links > 0;
        let can = [&one, &other].into_iter().all(|device| whole(device) && linked(device));
        status.put(if can { STATUS_OK } else { STATUS_NOT_SUPPORTED })
    }
}

impl Call {
    fn gpus(&self) -> impl Iterator<Item = usize> {
        0..self.session.gpus()
    }
}

fn common(one: &Device<'_>, other: &Device<'_>) -> u32 {
    if one.gpu == other.gpu {
        INTERNAL
    } else if one.board.model.numa_node == other.board.model.numa_node {
        NODE
    } else {
        SYSTEM
    }
}
