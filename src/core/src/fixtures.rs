//! Nodes for tests, built from the table of GPUs.

use crate::{
    geometry::{Placed, compute_places},
    id::{GpuUuid, PciAddress, PciId},
    node::{
        Architecture, ComputeInstance, Driver, Gpu, GpuInstance, InUse, MigMode, Node, ProfileSource,
        UnavailableGpu,
    },
    profile::{GiProfile, ProfileName},
    reason::Reason,
    table::{NVIDIA, Table},
};
use std::sync::LazyLock;

/// Read once: some tests build thousands of GPUs.
static TABLE: LazyLock<Table> = LazyLock::new(|| Table::shipped().unwrap());

/// The profiles of a model of the table.
pub(crate) fn profiles(key: &str) -> Vec<GiProfile> {
    TABLE.by_key(key).unwrap().profiles.clone()
}

/// A GPU of a model of the table: MIG on and empty.
pub(crate) fn gpu(key: &str, index: u32) -> Gpu {
    let model = TABLE.by_key(key).unwrap();
    let (device, subsystems) = model.pci[0].clone();
    Gpu {
        index,
        uuid: GpuUuid(format!("GPU-00000000-0000-0000-0000-0000000000{index:02x}")),
        model: model.product_names[0].clone(),
        pci: PciAddress { domain: 0, bus: 7 + 8 * index as u8, device: 0, function: 0 },
        pci_id: PciId {
            device,
            vendor: NVIDIA,
            subsystem_device: subsystems.first().copied().unwrap_or(0),
            subsystem_vendor: NVIDIA,
        },
        minor: Some(index),
        architecture: model.architecture,
        memory_mib: model.memory_mib,
        mig: Some(MigMode { current: true, pending: true }),
        profiles: model.profiles.clone(),
        profiles_from: ProfileSource::Driver,
        instances: Vec::new(),
    }
}

/// A GPU without MIG.
pub(crate) fn plain_gpu(index: u32) -> Gpu {
    Gpu {
        model: "NVIDIA T4".to_owned(),
        pci_id: PciId { device: 0x1EB8, ..gpu("a100-40gb", index).pci_id },
        architecture: Architecture::WithoutMig,
        mig: None,
        profiles: Vec::new(),
        profiles_from: ProfileSource::Nobody,
        ..gpu("a100-40gb", index)
    }
}

/// The same GPU with MIG off.
pub(crate) fn off(gpu: Gpu) -> Gpu {
    Gpu { mig: Some(MigMode { current: false, pending: false }), instances: Vec::new(), ..gpu }
}

/// A node of these GPUs under driver 580.
pub(crate) fn node(gpus: Vec<Gpu>) -> Node {
    let driver = Driver { version: "580.95.05".to_owned(), nvml: "13.580.95.05".to_owned() };
    Node { driver, gpus, unavailable: Vec::new() }
}

/// `count` GPUs of one model.
pub(crate) fn nodes(key: &str, count: u32) -> Node {
    let one = gpu(key, 0);
    let all = (0..count).map(|index| Gpu {
        index,
        uuid: GpuUuid(format!("GPU-00000000-0000-0000-0000-0000000000{index:02x}")),
        pci: PciAddress { bus: 7 + 8 * index as u8, ..one.pci },
        minor: Some(index),
        ..one.clone()
    });
    node(all.collect())
}

/// A GPU that has fallen off the bus.
pub(crate) fn lost(index: u32) -> UnavailableGpu {
    UnavailableGpu {
        index,
        pci: None,
        uuid: None,
        reason: Reason::GpuLost,
        message: "has fallen off the bus".to_owned(),
    }
}

/// The same GPU holding the instances of `state`: `1g@0* 2g@2 3g@4:2c+1c* 1g+me@1:none`. A profile is named by
/// its beginning, up to `.`, with its attribute; `*` is in use; after `:` come the compute instances.
pub(crate) fn holding(mut gpu: Gpu, state: &str) -> Gpu {
    gpu.instances = state.split_whitespace().map(|word| instance(&gpu, word)).collect();
    gpu.instances.sort_by_key(|i| i.placement);
    for (at, instance) in gpu.instances.iter_mut().enumerate() {
        instance.id = at as u32 + 1;
    }
    gpu
}

/// The profile of that short name: `3g`, `1g+me`, `1g2` for the double-memory 1g.
pub(crate) fn named<'a>(profiles: &'a [GiProfile], short: &str) -> &'a GiProfile {
    let double = |p: &GiProfile| p.slot == 9;
    let matches = |p: &&GiProfile| {
        let name = format!("{}g{}{}", p.slices, if double(p) { "2" } else { "" }, p.name.attribute.suffix());
        name == short
    };
    profiles.iter().find(matches).unwrap_or_else(|| panic!("no profile {short}"))
}

fn instance(gpu: &Gpu, word: &str) -> GpuInstance {
    let (place, split) = word.split_once(':').unwrap_or((word, ""));
    let busy = place.ends_with('*');
    let (short, start) = place.trim_end_matches('*').split_once('@').unwrap();
    let profile = named(&gpu.profiles, short);
    let start: u32 = start.parse().unwrap();
    let placement = *profile.placements.iter().find(|p| p.start == start).unwrap();
    let parts: Vec<(u32, bool)> = match split {
        "" => vec![(profile.slices, busy)],
        "none" => vec![],
        split => {
            let part = |part: &str| {
                (part.trim_end_matches('*').trim_end_matches('c').parse().unwrap(), part.ends_with('*'))
            };
            split.split('+').map(part).collect()
        }
    };
    let sizes: Vec<u32> = parts.iter().map(|(size, _)| *size).collect();
    let places = compute_places(profile.slices, &[], &sizes).unwrap();
    let used = |busy| if busy { InUse::Yes } else { InUse::No };
    let compute = parts.iter().zip(places).enumerate().map(|(at, ((slices, busy), place))| ComputeInstance {
        id: at as u32,
        profile_id: *slices,
        profile: profile.name.with_compute(*slices),
        slices: *slices,
        placement: Some(place),
        uuid: Some(format!("MIG-{}-{start}-{at}", gpu.index)),
        in_use: used(*busy),
    });
    let compute: Vec<_> = compute.collect();
    GpuInstance {
        id: 0,
        profile_id: profile.id,
        profile: profile.name,
        placement,
        in_use: used(busy || compute.iter().any(|c| c.in_use.counts())),
        processes: if busy { vec![4000 + start] } else { vec![] },
        compute,
    }
}

/// The same as instances without anybody in them.
pub(crate) fn with_placed(mut gpu: Gpu, state: &[Placed]) -> Gpu {
    gpu.instances = state
        .iter()
        .enumerate()
        .map(|(at, placed)| GpuInstance {
            id: at as u32 + 1,
            profile_id: placed.profile_id,
            profile: placed.profile,
            placement: placed.placement,
            in_use: InUse::No,
            processes: vec![],
            compute: vec![whole(placed.profile)],
        })
        .collect();
    gpu
}

fn whole(profile: ProfileName) -> ComputeInstance {
    ComputeInstance {
        id: 0,
        profile_id: profile.slices,
        profile,
        slices: profile.slices,
        placement: Some(crate::profile::Placement { start: 0, size: profile.slices }),
        uuid: None,
        in_use: InUse::No,
    }
}
