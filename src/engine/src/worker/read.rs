//! Reads one GPU with as few questions as are exact.

use super::{compute, in_use::Users, profiles};
use migd_core::{
    id::{GpuUuid, PciAddress, PciId},
    node::{Architecture, Driver, Gpu, GpuInstance, ProfileSource},
    profile::{Attribute, GiProfile},
    table::Table,
};
use migd_nvml::{Code, Device, Error};
use std::cmp::Reverse;

/// What does not change while a worker lives, so that it is asked once.
#[derive(Debug, Clone)]
pub(super) struct Fixed {
    uuid: GpuUuid,
    model: String,
    architecture: Architecture,
    minor: Option<u32>,
    memory_mib: u64,
    /// Empty until the driver has shown them.
    profiles: Vec<GiProfile>,
    /// What the table has instead; absent until it was needed.
    table: Option<Vec<GiProfile>>,
}

impl Fixed {
    fn read(device: &Device<'_>) -> Result<Fixed, Error> {
        let minor = match device.minor() {
            Ok(minor) => Some(minor),
            Err(error) if error.is_absent() => None,
            Err(error) => return Err(error),
        };
        Ok(Fixed {
            uuid: GpuUuid(device.uuid()?),
            model: device.name()?,
            architecture: device.architecture()?,
            minor,
            memory_mib: device.memory_total()? >> 20,
            profiles: Vec::new(),
            table: None,
        })
    }
}

/// The whole GPU.
pub(super) fn read(
    device: &Device<'_>,
    fixed: &mut Option<Fixed>,
    (index, pci, pci_id): (u32, PciAddress, PciId),
    driver: &Driver,
) -> Result<Gpu, Error> {
    let fixed = match fixed {
        Some(fixed) => fixed,
        None => fixed.insert(Fixed::read(device)?),
    };
    let mig = device.mig_mode()?;
    if mig.is_some() && fixed.profiles.is_empty() {
        fixed.profiles = profiles::read(device, fixed.memory_mib)?;
    }
    let (profiles, profiles_from) = if mig.is_none() {
        (&[][..], ProfileSource::Nobody)
    } else if !fixed.profiles.is_empty() {
        (&fixed.profiles[..], ProfileSource::Driver)
    } else {
        let known = || from_table(pci_id, fixed.memory_mib, driver).unwrap_or_default();
        let table = fixed.table.get_or_insert_with(known);
        let from = if table.is_empty() { ProfileSource::Nobody } else { ProfileSource::Table };
        (&table[..], from)
    };
    let instances = match mig {
        Some(mode) if mode.current => instances(device, profiles)?,
        _ => Vec::new(),
    };
    Ok(Gpu {
        index,
        uuid: fixed.uuid.clone(),
        model: fixed.model.clone(),
        pci,
        pci_id,
        minor: fixed.minor,
        architecture: fixed.architecture,
        memory_mib: fixed.memory_mib,
        mig,
        profiles: profiles.to_vec(),
        profiles_from,
        instances,
    })
}

/// All GPU instances by start.
fn instances(device: &Device<'_>, profiles: &[GiProfile]) -> Result<Vec<GpuInstance>, Error> {
    let mut room = Room::of(profiles);
    let mut handles = Vec::new();
    for profile in in_order(profiles) {
        if !room.could_hold(profile) {
            continue;
        }
        let listed = match device.gpu_instances(profile.id) {
            Ok(listed) => listed,
            Err(error) if error.is(Code::NOT_SUPPORTED) => continue,
            Err(error) => return Err(error),
        };
        for handle in listed {
            let info = handle.info()?;
            room.take(profile.slices, info.placement.size);
            handles.push((handle, info, profile));
        }
    }
    // Processes are asked for only where there is something to hold.
    let users = if handles.is_empty() { Users::default() } else { Users::read(device) };
    let mut instances = Vec::new();
    for (handle, info, profile) in handles {
        instances.push(GpuInstance {
            id: info.id,
            profile_id: info.profile_id,
            profile: profile.name,
            placement: info.placement,
            in_use: users.of_instance(info.id),
            processes: users.pids(info.id),
            compute: compute::read(&handle, info.id, profile.name, profile.slices, &users)?,
        });
    }
    instances.sort_unstable_by_key(|instance| instance.placement);
    Ok(instances)
}

/// Profiles in the order in which they are asked for: the largest first, since they use up the GPU soonest;
/// among equals the plain one first, since it is the likeliest.
fn in_order(profiles: &[GiProfile]) -> Vec<&GiProfile> {
    let mut order: Vec<&GiProfile> = profiles.iter().collect();
    let extra = |profile: &GiProfile| (profile.name.attribute != Attribute::Plain, profile.memory_mib);
    order.sort_by_key(|profile| (Reverse(profile.slices), extra(profile), profile.slot));
    order
}

/// What is left of a GPU while its instances are being found.
struct Room {
    compute: u32,
    memory: u32,
}

impl Room {
    fn of(profiles: &[GiProfile]) -> Room {
        let end = |p: &GiProfile| p.placements.iter().map(|place| place.end()).max();
        // Where the places of one profile are not told, nobody knows how far the memory reaches.
        let ends: Option<Vec<u32>> = profiles.iter().map(end).collect();
        Room {
            compute: profiles.iter().map(|p| p.slices).max().unwrap_or_default(),
            memory: ends.and_then(|ends| ends.into_iter().max()).unwrap_or(u32::MAX),
        }
    }

    /// Whether an instance of this profile could be among those not found yet.
    fn could_hold(&self, profile: &GiProfile) -> bool {
        let memory = profile.placements.iter().map(|place| place.size).min().unwrap_or_default();
        profile.slices <= self.compute && memory <= self.memory
    }

    fn take(&mut self, compute: u32, memory: u32) {
        self.compute = self.compute.saturating_sub(compute);
        self.memory = self.memory.saturating_sub(memory);
    }
}

/// What the table of GPUs has for one that hides its profiles. The table is part of this program and is read
/// by its own tests, so a fault in it is as good as no table here.
fn from_table(pci_id: PciId, memory_mib: u64, driver: &Driver) -> Option<Vec<GiProfile>> {
    Table::shipped().ok()?.profiles_for(pci_id, memory_mib, driver.branch())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a100() -> Vec<GiProfile> {
        let table = Table::shipped().unwrap();
        table.by_key("a100-40gb").unwrap().profiles.clone()
    }

    #[test]
    fn the_largest_profiles_are_asked_for_first() {
        let profiles = a100();
        let names: Vec<String> = in_order(&profiles).iter().map(|p| p.name.to_string()).collect();
        assert_eq!(names, ["7g.40gb", "4g.20gb", "3g.20gb", "2g.10gb", "1g.5gb", "1g.10gb", "1g.5gb+me"]);
    }

    #[test]
    fn nothing_more_is_asked_once_slices_of_either_kind_are_used_up() {
        let profiles = a100();
        let could = |taken: &[(u32, u32)]| {
            let mut room = Room::of(&profiles);
            for (compute, memory) in taken {
                room.take(*compute, *memory);
            }
            profiles.iter().any(|profile| room.could_hold(profile))
        };
        assert!(could(&[]));
        assert!(could(&[(3, 4), (2, 2), (1, 1)]));
        assert!(!could(&[(3, 4), (2, 2), (1, 1), (1, 1)]));
        // Two 3g leave a compute slice and no memory.
        assert!(!could(&[(3, 4), (3, 4)]));
        let mut unsure = profiles.clone();
        unsure[0].placements.clear();
        let mut room = Room::of(&unsure);
        room.take(6, 8);
        assert!(unsure.iter().any(|profile| room.could_hold(profile)));
    }
}
