//! What a plan rests on, as one word.

use crate::node::{Driver, Gpu, MigMode, ProfileSource};
use crate::{
    id::{GpuUuid, PciAddress, PciId},
    profile::{GiProfile, Placement},
};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// Everything of one GPU that a plan rests on. Not its index and minor (they are no identity), not the ids of
/// instances (they follow from the place) and not who holds them (that is looked at again before each step).
#[derive(Serialize)]
struct Basis<'a> {
    driver: &'a str,
    nvml: &'a str,
    uuid: &'a GpuUuid,
    pci: PciAddress,
    pci_id: PciId,
    memory_mib: u64,
    mig: Option<MigMode>,
    profiles_from: ProfileSource,
    profiles: &'a [GiProfile],
    instances: Vec<Held>,
}

/// Profile id, place, and for each compute instance its slices and place.
type Held = (u32, Placement, Vec<(u32, Option<Placement>)>);

/// The fingerprint of one GPU: identity, driver, modes, profiles, and instances with their compute instances.
pub fn gpu_fingerprint(gpu: &Gpu, driver: &Driver) -> String {
    let mut instances: Vec<Held> = gpu
        .instances
        .iter()
        .map(|instance| {
            let mut compute: Vec<_> = instance.compute.iter().map(|c| (c.slices, c.placement)).collect();
            compute.sort_unstable();
            (instance.profile_id, instance.placement, compute)
        })
        .collect();
    instances.sort_unstable();
    hash(&Basis {
        driver: &driver.version,
        nvml: &driver.nvml,
        uuid: &gpu.uuid,
        pci: gpu.pci,
        pci_id: gpu.pci_id,
        memory_mib: gpu.memory_mib,
        mig: gpu.mig,
        profiles_from: gpu.profiles_from,
        profiles: &gpu.profiles,
        instances,
    })
}

/// SHA-256 over the JSON of `value`, in hexadecimal.
pub(super) fn hash(value: &impl Serialize) -> String {
    use std::fmt::Write;
    // A struct of numbers and texts always has a JSON form; if not, the empty text still compares.
    let json = serde_json::to_vec(value).unwrap_or_default();
    Sha256::digest(&json).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
