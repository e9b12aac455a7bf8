//! Compute instances: profiles, places, creation, destruction.

use super::{
    Call, Out,
    arguments::{In, put_all, put_list, require_present, text_field},
    entry,
    gpu_instance::placement,
    handle::Handle,
    layout::{CiInfo, CiInfo1, CiProfile, CiProfile2, CiProfile3, Placement, version},
};
use crate::{
    machine::Code,
    model::{ComputeProfile, Engines},
};

/// NVML_COMPUTE_INSTANCE_PROFILE_CAPS_GFX, and the bit it comes from in the GPU instance's capabilities.
const CAPABILITY_GFX: u32 = 1;
const GI_CAPABILITY_GFX: u32 = 2;

entry! {
    fn nvmlGpuInstanceGetComputeInstanceProfileInfo(
        instance: Handle, profile: u32, engines: u32, info: Out<CiProfile>,
    ) |call| {
        info.required()?;
        let found = call.ci_profile(instance, profile, engines)?;
        info.put(found.info)
    }

    fn nvmlGpuInstanceGetComputeInstanceProfileInfoV(
        instance: Handle, profile: u32, engines: u32, info: Out<CiProfile2>,
    ) |call| {
        info.required()?;
        if !call.gpu_of(instance)?.board.driver.versioned_profiles() {
            return Err(Code::NOT_SUPPORTED);
        }
        let third = match info.cast::<u32>().get()? {
            word if word == version::<CiProfile2>(2) => false,
            word if word == version::<CiProfile3>(3) => true,
            _ => return Err(Code::INVALID_ARGUMENT),
        };
        let Found { info: found, name, capabilities } = call.ci_profile(instance, profile, engines)?;
        if third {
            let version = version::<CiProfile3>(3);
            return info.cast().put(CiProfile3 { version, info: found, name, capabilities });
        }
        info.put(CiProfile2 { version: version::<CiProfile2>(2), info: found, name })
    }

    fn nvmlGpuInstanceGetComputeInstanceRemainingCapacity(instance: Handle, id: u32, count: Out<u32>) |call| {
        let device = call.gpu_of(instance)?;
        count.required()?;
        call.require_privilege()?;
        let gi = device.board.gi(&device.state, instance.gi_in(&device.board, &device.state)?)?;
        count.put(device.board.ci_capacity(gi, id)?)
    }

    fn nvmlGpuInstanceGetComputeInstancePossiblePlacements(
        instance: Handle, id: u32, placements: Out<Placement>, count: Out<u32>,
    ) |call| {
        let device = call.gpu_of(instance)?;
        count.required()?;
        if !device.board.driver.places_cis() {
            return Err(Code::NOT_SUPPORTED);
        }
        call.require_privilege()?;
        let gi = device.board.gi(&device.state, instance.gi_in(&device.board, &device.state)?)?;
        let places: Vec<_> = device.board.ci_places(gi, id)?.iter().map(placement).collect();
        put_list(placements, count, &places, true)
    }

    fn nvmlGpuInstanceCreateComputeInstance(instance: Handle, id: u32, compute_instance: Out<Handle>) |call| {
        call.create_ci(instance, id, None, compute_instance)
    }

    fn nvmlGpuInstanceCreateComputeInstanceWithPlacement(
        instance: Handle, id: u32, placement: In<Placement>, compute_instance: Out<Handle>,
    ) |call| {
        if !call.gpu_of(instance)?.board.driver.places_cis() {
            return Err(Code::NOT_SUPPORTED);
        }
        let place = placement.get()?;
        call.create_ci(instance, id, Some((place.start, place.size)), compute_instance)
    }

    fn nvmlComputeInstanceDestroy(compute_instance: Handle) |call| {
        let device = call.gpu_of(compute_instance)?;
        call.require_privilege()?;
        call.session.change(device.gpu, |board, state| {
            require_present(state)?;
            let found = compute_instance.ci_in(board, state)?;
            board.destroy_ci(state, found.gi, found.ci)
        })
    }

    fn nvmlGpuInstanceGetComputeInstances(
        instance: Handle, id: u32, compute_instances: Out<Handle>, count: Out<u32>,
    ) |call| {
        let device = call.gpu_of(instance)?;
        count.required()?;
        compute_instances.required()?;
        call.require_privilege()?;
        let gi_id = instance.gi_in(&device.board, &device.state)?;
        let gi = device.board.gi(&device.state, gi_id)?;
        let ids = device.board.cis_of(gi, id)?;
        let handle = |id: &u32| Ok(Handle::ci(device.gpu, gi_id, *id, device.board.ci(gi, *id)?));
        let handles = ids.iter().map(handle).collect::<Result<Vec<_>, Code>>()?;
        count.put(handles.len() as u32)?;
        put_all(compute_instances, &handles)
    }

    fn nvmlGpuInstanceGetComputeInstanceById(instance: Handle, ci: u32, compute_instance: Out<Handle>) |call| {
        let device = call.gpu_of(instance)?;
        compute_instance.required()?;
        call.require_privilege()?;
        let gi_id = instance.gi_in(&device.board, &device.state)?;
        let found = device.board.ci(device.board.gi(&device.state, gi_id)?, ci)?;
        compute_instance.put(Handle::ci(device.gpu, gi_id, ci, found))
    }

    fn nvmlComputeInstanceGetInfo(compute_instance: Handle, info: Out<CiInfo1>) |call| {
        info.required()?;
        let CiInfo { device, gi, id, profile, .. } = call.ci_info(compute_instance)?;
        info.put(CiInfo1 { device, gi, id, profile })
    }

    fn nvmlComputeInstanceGetInfo_v2(compute_instance: Handle, info: Out<CiInfo>) |call| {
        info.required()?;
        info.put(call.ci_info(compute_instance)?)
    }
}

/// A compute profile in NVML's form.
struct Found {
    info: CiProfile,
    name: [std::ffi::c_char; 96],
    capabilities: u32,
}

impl Call {
    fn ci_profile(&self, instance: Handle, slot: u32, engine_profile: u32) -> Result<Found, Code> {
        let device = self.gpu_of(instance)?;
        let gi = device.board.gi(&device.state, instance.gi_in(&device.board, &device.state)?)?;
        self.require_privilege()?;
        // NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED is the only one there is.
        if engine_profile != 0 {
            return Err(Code::INVALID_ARGUMENT);
        }
        let (_, profile) = device.board.ci_profile_by_slot(gi, slot)?;
        let whole = device.board.profile_of(gi)?;
        let gfx = whole.capabilities & GI_CAPABILITY_GFX != 0;
        Ok(Found {
            info: info(profile, &whole.engines),
            name: text_field(&format!("MIG {}", profile.name.as_str())),
            capabilities: if gfx { CAPABILITY_GFX } else { 0 },
        })
    }

    fn create_ci(
        &self,
        instance: Handle,
        id: u32,
        at: Option<(u32, u32)>,
        out: Out<Handle>,
    ) -> Result<(), Code> {
        let gpu = self.gpu_of(instance)?.gpu;
        out.required()?;
        self.require_privilege()?;
        let handle = self.session.change(gpu, |board, state| {
            require_present(state)?;
            let gi = instance.gi_in(board, state)?;
            let ci = board.create_ci(state, gi, id, at)?;
            Ok(Handle::ci(gpu, gi, ci, board.ci(board.gi(state, gi)?, ci)?))
        })?;
        out.put(handle)
    }

    fn ci_info(&self, compute_instance: Handle) -> Result<CiInfo, Code> {
        let device = self.gpu_of(compute_instance)?;
        let found = compute_instance.ci_in(&device.board, &device.state)?;
        let (gi, ci) = device.instances(found)?;
        Ok(CiInfo {
            // Not the GPU's handle but the MIG device's, whatever nvml.h calls it: clients ask it for its UUID.
            device: Handle::mig(device.gpu, found, ci),
            gi: Handle::gi(device.gpu, found.gi, gi),
            id: found.ci,
            profile: device.board.ci_profile_of(gi, ci)?.id,
            placement: Placement { start: ci.start, size: ci.size },
        })
    }
}

fn info(profile: &ComputeProfile, engines: &Engines) -> CiProfile {
    CiProfile {
        id: profile.id,
        slices: profile.slices,
        instances: profile.max_instances,
        multiprocessors: profile.multiprocessors,
        copy: engines.copy,
        decoder: engines.decoder,
        encoder: engines.encoder,
        jpeg: engines.jpeg,
        ofa: engines.ofa,
    }
}
