use super::*;

#[test]
fn a_program_cuts_a_gpu_and_finds_what_it_made() {
    let _node = Node::new(&[geforce(), a100('A')]);
    let device = gpu(1);
    assert_eq!(number(|out| nvmlDeviceGetMaxMigDeviceCount(device, out)), Ok(0));
    assert_eq!(mig_device(device, 0), Err(6));
    switch_on(device);
    assert_eq!(number(|out| nvmlDeviceGetMaxMigDeviceCount(device, out)), Ok(7));

    let gi = created(device, 9, 4, 4);
    let ci = compute_created(gi, 0);
    let mut info = GiInfo::zero();
    assert_eq!(nvmlGpuInstanceGetInfo(gi, Out::to(&mut info)), 0);
    assert_eq!((info.device, info.id, info.profile), (device, 2, 9));
    assert_eq!((info.placement.start, info.placement.size), (4, 4));

    let mut info = CiInfo::zero();
    assert_eq!(nvmlComputeInstanceGetInfo_v2(ci, Out::to(&mut info)), 0);
    assert_eq!((info.gi, info.id, info.profile), (gi, 0, 0));
    let mig = mig_device(device, 0).unwrap();
    assert_eq!(info.device, mig);
    assert_eq!(mig_device(device, 1), Err(6));
    assert_eq!(mig_device(device, 7), Err(2));

    assert_eq!(text(|b, l| nvmlDeviceGetName(mig, b, l)), "NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb");
    assert_eq!(by_uuid(&uuid(mig)), Ok(mig));
    assert_eq!(by_uuid("MIG-GPU-11111111-2222-3333-4444-555555555555/2/0"), Ok(mig));
    assert_eq!(number(|out| nvmlDeviceGetGpuInstanceId(mig, out)), Ok(2));
    assert_eq!(number(|out| nvmlDeviceGetComputeInstanceId(mig, out)), Ok(0));
    assert_eq!(number(|out| nvmlDeviceGetIndex(mig, out)), Ok(0));
    let mut parent = Handle(0);
    assert_eq!(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig, Out::to(&mut parent)), 0);
    assert_eq!(parent, device);

    let mut memory = Memory::zero();
    assert_eq!(nvmlDeviceGetMemoryInfo(mig, Out::to(&mut memory)), 0);
    assert_eq!(memory.total, (4 * 4864) << 20);
    let mut attributes = Attributes::zero();
    assert_eq!(nvmlDeviceGetAttributes_v2(mig, Out::to(&mut attributes)), 0);
    assert_eq!((attributes.multiprocessors, attributes.gi_slices, attributes.ci_slices), (14, 3, 1));

    assert_eq!(nvmlGpuInstanceDestroy(gi), 19);
    assert_eq!(nvmlComputeInstanceDestroy(ci), 0);
    assert_eq!(nvmlGpuInstanceDestroy(gi), 0);
    assert_eq!(by_uuid("MIG-GPU-11111111-2222-3333-4444-555555555555/2/0"), Err(6));
}

#[test]
fn lists_instances_profiles_and_places() {
    let _node = Node::new(&[a100('A')]);
    let device = gpu(0);
    switch_on(device);
    let (a, b) = (created(device, 19, 0, 1), created(device, 19, 5, 1));
    let mut list = [Handle(0); 7];
    let mut count = 0;
    assert_eq!(nvmlDeviceGetGpuInstances(device, 19, Out::to_all(&mut list), Out::to(&mut count)), 0);
    assert_eq!((count, list[0], list[1]), (2, a, b));
    assert_eq!(nvmlDeviceGetGpuInstances(device, 14, Out::to_all(&mut list), Out::to(&mut count)), 0);
    assert_eq!(count, 0);
    assert_eq!(nvmlDeviceGetGpuInstances(device, 1, Out::to_all(&mut list), Out::to(&mut count)), 2);

    let mut found = Handle(0);
    assert_eq!(nvmlDeviceGetGpuInstanceById(device, 12, Out::to(&mut found)), 0);
    assert_eq!(found, b);
    assert_eq!(nvmlDeviceGetGpuInstanceById(device, 1, Out::to(&mut found)), 6);
    assert_eq!(number(|out| nvmlDeviceGetGpuInstanceRemainingCapacity(device, 19, out)), Ok(5));
    assert_eq!(number(|out| nvmlGpuInstanceGetComputeInstanceRemainingCapacity(a, 0, out)), Ok(1));

    let mut places = [Placement::zero(); 8];
    let mut count = 2;
    let placements = nvmlDeviceGetGpuInstancePossiblePlacements_v2;
    assert_eq!(placements(device, 9, Out::null(), Out::to(&mut count)), 0);
    assert_eq!(count, 2);
    assert_eq!(placements(device, 9, Out::to_all(&mut places), Out::to(&mut count)), 0);
    assert_eq!((places[1].start, places[1].size), (4, 4));
    count = 1;
    assert_eq!(placements(device, 9, Out::to_all(&mut places), Out::to(&mut count)), 7);
    assert_eq!(count, 2);
    // The first version knows no size of the caller's array.
    count = 0;
    let first = nvmlDeviceGetGpuInstancePossiblePlacements;
    assert_eq!(first(device, 14, Out::to_all(&mut places), Out::to(&mut count)), 0);
    assert_eq!((count, places[2].start), (3, 4));

    let ci = compute_created(a, 0);
    let mut cis = [Handle(0); 8];
    let compute_instances = nvmlGpuInstanceGetComputeInstances;
    assert_eq!(compute_instances(a, 0, Out::to_all(&mut cis), Out::to(&mut count)), 0);
    assert_eq!((count, cis[0]), (1, ci));
    assert_eq!(nvmlGpuInstanceGetComputeInstanceById(a, 0, Out::to(&mut found)), 0);
    assert_eq!(found, ci);
    assert_eq!(nvmlGpuInstanceGetComputeInstanceById(a, 1, Out::to(&mut found)), 6);
    count = 8;
    let ci_places = nvmlGpuInstanceGetComputeInstancePossiblePlacements;
    assert_eq!(ci_places(a, 0, Out::to_all(&mut places), Out::to(&mut count)), 0);
    assert_eq!((count, places[0].start, places[0].size), (1, 0, 1));
    let place = Placement { start: 0, size: 1 };
    let create = nvmlGpuInstanceCreateComputeInstanceWithPlacement;
    assert_eq!(create(a, 0, In::from(&place), Out::to(&mut found)), 23);
    assert_eq!(create(b, 0, In::from(&place), Out::to(&mut found)), 0);
    let mut first = CiInfo1::zero();
    assert_eq!(nvmlComputeInstanceGetInfo(found, Out::to(&mut first)), 0);
    assert_eq!((first.gi, first.profile), (b, 0));
}

#[test]
fn gives_profiles_in_all_struct_versions() {
    let _node = Node::new(&[a100('A')]);
    let device = gpu(0);
    let mut one = GiProfile::zero();
    assert_eq!(nvmlDeviceGetGpuInstanceProfileInfo(device, 4, Out::to(&mut one)), 0);
    assert_eq!((one.id, one.slices, one.instances, one.p2p), (0, 7, 1, 0));
    assert_eq!(nvmlDeviceGetGpuInstanceProfileInfo(device, 5, Out::to(&mut one)), 3);
    assert_eq!(nvmlDeviceGetGpuInstanceProfileInfo(device, 17, Out::to(&mut one)), 2);

    let versioned = nvmlDeviceGetGpuInstanceProfileInfoV;
    let mut two = GiProfile2 { version: 0x0200_0098, ..GiProfile2::zero() };
    assert_eq!(versioned(device, 2, Out::to(&mut two)), 0);
    assert_eq!((two.id, two.memory_mb, two.name[0] as u8), (9, 4 * 4864, b'3'));
    let mut three = GiProfile3 { version: 0x0300_0098, ..GiProfile3::zero() };
    assert_eq!(versioned(device, 2, Out::to(&mut three).cast()), 0);
    assert_eq!((three.id, three.slices, three.memory_mb, three.name[0] as u8), (9, 3, 4 * 4864, b'3'));
    three = GiProfile3 { version: 0x0300_0098, ..GiProfile3::zero() };
    let by_id = nvmlDeviceGetGpuInstanceProfileInfoByIdV;
    assert_eq!(by_id(device, 19, Out::to(&mut three).cast()), 0);
    assert_eq!(three.slices, 1);
    assert_eq!(by_id(device, 1, Out::to(&mut three).cast()), 2);
    // Another version word is an invalid argument in these calls, not a version mismatch.
    two.version = 0x0100_0098;
    assert_eq!(versioned(device, 2, Out::to(&mut two)), 2);

    switch_on(device);
    let gi = created(device, 9, 0, 4);
    let mut one = CiProfile::zero();
    assert_eq!(nvmlGpuInstanceGetComputeInstanceProfileInfo(gi, 2, 0, Out::to(&mut one)), 0);
    assert_eq!((one.id, one.slices, one.decoder), (2, 3, 2));
    assert_eq!(nvmlGpuInstanceGetComputeInstanceProfileInfo(gi, 2, 1, Out::to(&mut one)), 2);
    assert_eq!(nvmlGpuInstanceGetComputeInstanceProfileInfo(gi, 3, 0, Out::to(&mut one)), 3);
    assert_eq!(nvmlGpuInstanceGetComputeInstanceProfileInfo(gi, 8, 0, Out::to(&mut one)), 2);
    let versioned = nvmlGpuInstanceGetComputeInstanceProfileInfoV;
    let mut two = CiProfile2 { version: 0x0200_0088, ..CiProfile2::zero() };
    assert_eq!(versioned(gi, 0, 0, Out::to(&mut two)), 0);
    assert_eq!((two.info.slices, two.name[0] as u8), (1, b'1'));
    let mut three = CiProfile3 { version: 0x0300_008c, ..CiProfile3::zero() };
    assert_eq!(versioned(gi, 0, 0, Out::to(&mut three).cast()), 0);
    assert_eq!((three.info.slices, three.capabilities), (1, 0));
    two.version = 2;
    assert_eq!(versioned(gi, 0, 0, Out::to(&mut two)), 2);
}

#[test]
fn an_older_driver_lacks_what_it_did_not_have() {
    let _node = Node::with(&info("470.57.02"), &[a100('A')]);
    let device = gpu(0);
    let mut one = GiProfile::zero();
    assert_eq!(nvmlDeviceGetGpuInstanceProfileInfo(device, 0, Out::to(&mut one)), 3);
    switch_on(device);
    assert_eq!(nvmlDeviceGetGpuInstanceProfileInfo(device, 0, Out::to(&mut one)), 0);
    assert_eq!(nvmlDeviceGetGpuInstanceProfileInfo(device, 9, Out::to(&mut one)), 2);
    let mut two = GiProfile2 { version: 0x0200_0098, ..GiProfile2::zero() };
    assert_eq!(nvmlDeviceGetGpuInstanceProfileInfoV(device, 0, Out::to(&mut two)), 3);
    assert_eq!(nvmlDeviceGetGpuInstanceProfileInfoByIdV(device, 0, Out::to(&mut two)), 3);
    let gi = created(device, 19, 0, 1);
    let (mut ci, place) = (Handle(0), Placement { start: 0, size: 1 });
    let create = nvmlGpuInstanceCreateComputeInstanceWithPlacement;
    assert_eq!(create(gi, 0, In::from(&place), Out::to(&mut ci)), 3);
    compute_created(gi, 0);
}

#[test]
fn mig_off_and_a_gpu_without_mig_answer_differently() {
    let _node = Node::new(&[geforce(), a100('A')]);
    let (without, off) = (gpu(0), gpu(1));
    let (mut list, mut count, mut found) = ([Handle(0); 8], 0, Handle(0));
    let mut instances =
        |device, id| nvmlDeviceGetGpuInstances(device, id, Out::to_all(&mut list), Out::to(&mut count));
    assert_eq!([instances(off, 19), instances(without, 0), instances(without, 19)], [3, 3, 2]);
    let capacity = nvmlDeviceGetGpuInstanceRemainingCapacity;
    assert_eq!(number(|out| capacity(off, 19, out)), Err(3));
    assert_eq!(nvmlDeviceGetGpuInstanceById(off, 0, Out::to(&mut found)), 3);
    assert_eq!(nvmlDeviceGetGpuInstanceById(without, 0, Out::to(&mut found)), 6);
    assert_eq!(nvmlDeviceCreateGpuInstance(off, 19, Out::to(&mut found)), 3);
    let (mut now, mut then) = (9, 9);
    assert_eq!(nvmlDeviceGetMigMode(without, Out::to(&mut now), Out::to(&mut then)), 3);
    assert_eq!(nvmlDeviceGetMigMode(off, Out::to(&mut now), Out::to(&mut then)), 0);
    assert_eq!((now, then), (0, 0));
    assert_eq!(mig_device(without, 0), Err(6));
    assert_eq!(number(|out| nvmlDeviceGetMaxMigDeviceCount(without, out)), Ok(0));
}
