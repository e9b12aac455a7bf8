//! Compute instances of one GPU instance: finding them with few questions, and the profile to make one by.
//!
//! NVML lists compute instances by profile id. Real drivers use the slot as the id, so the slots are asked
//! first, the largest first, until the slices are used up. Where slices are left over (the rest may be free,
//! or an id may differ) the driver's own profiles have the last word.

use super::in_use::Users;
use migd_core::{
    node::ComputeInstance,
    profile::{ProfileName, compute_slices_of_slot},
};
use migd_nvml::{Code, ComputeProfileInfo, Error, GpuInstance};
use std::cmp::Reverse;

/// As many slots as are asked for. Today's headers end at 9.
const MOST_SLOTS: u32 = 16;

/// All compute instances by id.
pub(super) fn read(
    instance: &GpuInstance<'_>,
    id: u32,
    profile: ProfileName,
    slices: u32,
    users: &Users,
) -> Result<Vec<ComputeInstance>, Error> {
    let mut found = Vec::new();
    let mut asked = Vec::new();
    let mut left = slices;
    for (slot, slices) in slots(slices) {
        if left == 0 {
            break;
        }
        asked.push(slot);
        left = left.saturating_sub(list(instance, id, profile, slot, slices, users, &mut found)?);
    }
    if left > 0 {
        for known in profiles(instance)? {
            if !asked.contains(&known.id) {
                asked.push(known.id);
                list(instance, id, profile, known.id, known.slices, users, &mut found)?;
            }
        }
    }
    found.sort_unstable_by_key(|c| c.id);
    Ok(found)
}

/// Appends the compute instances of one profile and gives the slices that they use.
fn list(
    instance: &GpuInstance<'_>,
    id: u32,
    profile: ProfileName,
    profile_id: u32,
    slices: u32,
    users: &Users,
    found: &mut Vec<ComputeInstance>,
) -> Result<u32, Error> {
    let listed = match instance.compute_instances(profile_id) {
        Ok(listed) => listed,
        // Not a profile of this GPU instance.
        Err(error) if error.is_absent() || error.is(Code::INVALID_ARGUMENT) => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut used = 0;
    for compute in listed {
        let info = compute.info()?;
        let uuid = match info.device.map(|device| device.uuid()) {
            Some(Ok(uuid)) => Some(uuid),
            Some(Err(error)) if !error.is_absent() => return Err(error),
            _ => None,
        };
        used += slices;
        found.push(ComputeInstance {
            id: info.id,
            profile_id: info.profile_id,
            profile: profile.with_compute(slices),
            slices,
            placement: info.placement,
            uuid,
            in_use: users.of_compute(id, info.id),
        });
    }
    Ok(used)
}

/// The profile by which a compute instance of so many slices is made.
pub(super) fn profile_of(
    instance: &GpuInstance<'_>,
    slices: u32,
) -> Result<Option<ComputeProfileInfo>, Error> {
    for (slot, of_slot) in slots(slices) {
        if of_slot != slices {
            break;
        }
        match instance.compute_profile(slot).map(|info| with_slices(info, slot)) {
            Ok(info) if info.slices == slices => return Ok(Some(info)),
            Ok(_) => {}
            Err(error) if error.is_absent() || error.is(Code::INVALID_ARGUMENT) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(profiles(instance)?.into_iter().find(|info| info.slices == slices))
}

/// The driver's own profiles for this instance.
fn profiles(instance: &GpuInstance<'_>) -> Result<Vec<ComputeProfileInfo>, Error> {
    let mut profiles = Vec::new();
    for slot in 0..MOST_SLOTS {
        match instance.compute_profile(slot) {
            Ok(info) => profiles.push(with_slices(info, slot)),
            Err(error) if error.is(Code::INVALID_ARGUMENT) => break,
            Err(error) if error.is_absent() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(profiles)
}

/// A driver that does not say the slices says them by the slot.
fn with_slices(info: ComputeProfileInfo, slot: u32) -> ComputeProfileInfo {
    let said = (info.slices > 0).then_some(info.slices);
    ComputeProfileInfo { slices: said.or_else(|| compute_slices_of_slot(slot)).unwrap_or_default(), ..info }
}

/// Slots with their slices, up to `most`, largest first.
fn slots(most: u32) -> Vec<(u32, u32)> {
    let slot = |slot| compute_slices_of_slot(slot).filter(|s| *s <= most).map(|slices| (slot, slices));
    let mut slots: Vec<(u32, u32)> = (0..MOST_SLOTS).filter_map(slot).collect();
    slots.sort_by_key(|(slot, slices)| (Reverse(*slices), *slot));
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_instance_is_asked_for_first() {
        assert_eq!(slots(3), [(2, 3), (1, 2), (0, 1), (7, 1)]);
        assert_eq!(slots(1), [(0, 1), (7, 1)]);
        assert_eq!(slots(7).first(), Some(&(4, 7)));
    }
}
