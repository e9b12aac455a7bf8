//! GPU instances: profiles, places, creation, destruction.

use super::{
    Call, Out,
    arguments::{In, put_all, put_list, require_present, text_field},
    entry,
    handle::{Device, Handle},
    layout::{GiInfo, GiProfile, GiProfile2, GiProfile3, Placement, version},
};
use crate::{
    fault,
    machine::{Board, Code},
    model::{Place, Profile},
};

/// NVML_GPU_INSTANCE_PROFILE_CAPS_P2P.
const CAPABILITY_P2P: u32 = 1;

entry! {
    fn nvmlDeviceGetGpuInstanceProfileInfo(device: Handle, profile: u32, info: Out<GiProfile>) |call| {
        let device = call.parent(device, Code::INVALID_ARGUMENT)?;
        info.required()?;
        let profile = profile_at(&device, profile)?;
        info.put(profile_info(profile))
    }

    fn nvmlDeviceGetGpuInstanceProfileInfoV(device: Handle, profile: u32, info: Out<GiProfile2>) |call| {
        let device = call.parent(device, Code::INVALID_ARGUMENT)?;
        info.required()?;
        if !device.board.driver.versioned_profiles() {
            return Err(Code::NOT_SUPPORTED);
        }
        let third = third_version(info)?;
        let profile = profile_at(&device, profile)?;
        put_versioned(info, third, &device.board, profile)
    }

    fn nvmlDeviceGetGpuInstanceProfileInfoByIdV(device: Handle, id: u32, info: Out<GiProfile2>) |call| {
        let device = call.parent(device, Code::INVALID_ARGUMENT)?;
        info.required()?;
        if !device.board.driver.profiles_by_id() || !device.board.has_mig() {
            return Err(Code::NOT_SUPPORTED);
        }
        let third = third_version(info)?;
        let (_, profile) = device.board.gi_profile_by_id(id)?;
        put_versioned(info, third, &device.board, profile)
    }

    fn nvmlDeviceGetGpuInstancePossiblePlacements(
        device: Handle, id: u32, placements: Out<Placement>, count: Out<u32>,
    ) |call| {
        let places = call.places(device, id, count)?;
        count.put(places.len() as u32)?;
        if placements.is_null() { Ok(()) } else { put_all(placements, &places) }
    }

    fn nvmlDeviceGetGpuInstancePossiblePlacements_v2(
        device: Handle, id: u32, placements: Out<Placement>, count: Out<u32>,
    ) |call| {
        if !call.parent(device, Code::INVALID_ARGUMENT)?.board.driver.placements_v2() {
            return Err(Code::NOT_SUPPORTED);
        }
        put_list(placements, count, &call.places(device, id, count)?, true)
    }

    fn nvmlDeviceGetGpuInstanceRemainingCapacity(device: Handle, id: u32, count: Out<u32>) |call| {
        let device = call.parent(device, Code::INVALID_ARGUMENT)?;
        count.required()?;
        call.require_privilege()?;
        count.put(device.board.gi_capacity(&device.state, id)?)
    }

    fn nvmlDeviceCreateGpuInstance(device: Handle, id: u32, instance: Out<Handle>) |call| {
        call.create_gi(device, id, None, instance)
    }

    fn nvmlDeviceCreateGpuInstanceWithPlacement(
        device: Handle, id: u32, placement: In<Placement>, instance: Out<Handle>,
    ) |call| {
        if !call.parent(device, Code::INVALID_ARGUMENT)?.board.driver.places_gis() {
            return Err(Code::NOT_SUPPORTED);
        }
        let place = placement.get()?;
        call.create_gi(device, id, Some((place.start, place.size)), instance)
    }

    fn nvmlGpuInstanceDestroy(instance: Handle) |call| {
        let device = call.gpu_of(instance)?;
        call.require_privilege()?;
        call.session.change(device.gpu, |board, state| {
            require_present(state)?;
            let id = instance.gi_in(board, state)?;
            board.destroy_gi(state, id)
        })
    }

    fn nvmlDeviceGetGpuInstances(device: Handle, id: u32, instances: Out<Handle>, count: Out<u32>) |call| {
        let device = call.parent(device, Code::INVALID_ARGUMENT)?;
        count.required()?;
        instances.required()?;
        call.require_privilege()?;
        let ids = device.board.gis_of(&device.state, id)?;
        let handle = |id: &u32| Ok(Handle::gi(device.gpu, *id, device.board.gi(&device.state, *id)?));
        let handles = ids.iter().map(handle).collect::<Result<Vec<_>, Code>>()?;
        // The caller's array has room for the profile's instance count; `count` is only written.
        count.put(handles.len() as u32)?;
        put_all(instances, &handles)
    }

    fn nvmlDeviceGetGpuInstanceById(device: Handle, gi: u32, instance: Out<Handle>) |call| {
        let device = call.parent(device, Code::INVALID_ARGUMENT)?;
        instance.required()?;
        call.require_privilege()?;
        // Seen on a GeForce: without MIG no instance is found, rather than nothing supported.
        if !device.board.has_mig() {
            return Err(Code::NOT_FOUND);
        }
        let found = device.board.gi(&device.state, gi)?;
        instance.put(Handle::gi(device.gpu, gi, found))
    }

    fn nvmlGpuInstanceGetInfo(instance: Handle, info: Out<GiInfo>) |call| {
        let device = call.gpu_of(instance)?;
        info.required()?;
        let id = instance.gi_in(&device.board, &device.state)?;
        let gi = device.board.gi(&device.state, id)?;
        info.put(GiInfo {
            device: Handle::gpu(device.gpu),
            id,
            profile: device.board.profile_of(gi)?.id,
            placement: Placement { start: gi.start, size: gi.size },
        })
    }
}

impl Call {
    fn places(&self, device: Handle, id: u32, count: Out<u32>) -> Result<Vec<Placement>, Code> {
        let device = self.parent(device, Code::INVALID_ARGUMENT)?;
        count.required()?;
        self.require_privilege()?;
        Ok(device.board.gi_places(&device.state, id)?.iter().map(placement).collect())
    }

    fn create_gi(
        &self,
        device: Handle,
        id: u32,
        at: Option<(u32, u32)>,
        instance: Out<Handle>,
    ) -> Result<(), Code> {
        let gpu = self.parent(device, Code::INVALID_ARGUMENT)?.gpu;
        instance.required()?;
        self.require_privilege()?;
        let handle = self.session.change(gpu, |board, state| {
            require_present(state)?;
            let id = board.create_gi(state, id, at)?;
            Ok(Handle::gi(gpu, id, board.gi(state, id)?))
        })?;
        instance.put(handle)
    }
}

/// NVML's form of a place.
pub(super) fn placement(place: &Place) -> Placement {
    Placement { start: place.start, size: place.size }
}

/// The profile at an enumeration value, where a fault may have moved one.
fn profile_at<'a>(device: &Device<'a>, slot: u32) -> Result<&'a Profile, Code> {
    let (board, state) = (&device.board, &device.state);
    let moved = fault::effects().slot.and_then(|(id, to)| Some((board.gi_profile_by_id(id).ok()?.1, to)));
    match moved {
        Some((profile, to)) if slot == to => {
            // Where profiles cannot be listed, this one cannot either.
            board.gi_profile_by_slot(state, profile.slot)?;
            Ok(profile)
        }
        Some((profile, _)) if slot == profile.slot => Err(Code::NOT_SUPPORTED),
        _ => Ok(board.gi_profile_by_slot(state, slot)?.1),
    }
}

fn profile_info(profile: &Profile) -> GiProfile {
    let count = fault::effects().count.filter(|(id, _)| *id == profile.id);
    let engines = &profile.engines;
    GiProfile {
        id: profile.id,
        p2p: profile.capabilities & CAPABILITY_P2P,
        slices: profile.slices,
        instances: count.map_or(profile.max_instances, |(_, count)| count),
        multiprocessors: profile.multiprocessors,
        copy: engines.copy,
        decoder: engines.decoder,
        encoder: engines.encoder,
        jpeg: engines.jpeg,
        ofa: engines.ofa,
        memory_mb: profile.memory_mib,
    }
}

/// Which of the two versioned structs the caller gave; another word is an invalid argument here, although newer
/// structs answer a version mismatch (seen on driver 596).
fn third_version(info: Out<GiProfile2>) -> Result<bool, Code> {
    match info.cast::<u32>().get()? {
        word if word == version::<GiProfile2>(2) => Ok(false),
        word if word == version::<GiProfile3>(3) => Ok(true),
        _ => Err(Code::INVALID_ARGUMENT),
    }
}

fn put_versioned(
    info: Out<GiProfile2>,
    third: bool,
    board: &Board<'_>,
    profile: &Profile,
) -> Result<(), Code> {
    let GiProfile {
        id,
        p2p,
        slices,
        instances,
        multiprocessors,
        copy,
        decoder,
        encoder,
        jpeg,
        ofa,
        memory_mb,
    } = profile_info(profile);
    let name = text_field(&board.profile_name(profile.name.as_str()));
    if third {
        return info.cast().put(GiProfile3 {
            version: version::<GiProfile3>(3),
            id,
            slices,
            instances,
            multiprocessors,
            copy,
            decoder,
            encoder,
            jpeg,
            ofa,
            memory_mb,
            name,
            capabilities: profile.capabilities,
            gap: 0,
        });
    }
    info.put(GiProfile2 {
        version: version::<GiProfile2>(2),
        id,
        p2p,
        slices,
        instances,
        multiprocessors,
        copy,
        decoder,
        encoder,
        jpeg,
        ofa,
        gap: 0,
        memory_mb,
        name,
    })
}
