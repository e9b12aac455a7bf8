use super::*;
use proptest::prelude::*;

#[test]
fn a_handle_of_a_replaced_instance_is_stale() {
    let _node = Node::new(&[a100('A')]);
    let device = gpu(0);
    switch_on(device);
    let gi = created(device, 19, 0, 1);
    let ci = compute_created(gi, 0);
    let mig = mig_device(device, 0).unwrap();
    let name = uuid(mig);
    assert_eq!(nvmlComputeInstanceDestroy(ci), 0);
    assert_eq!(nvmlComputeInstanceDestroy(ci), 2);
    let again = compute_created(gi, 0);
    assert_ne!(again, ci);
    assert_eq!(number(|out| nvmlDeviceGetIndex(mig, out)), Err(2));
    assert_eq!(nvmlComputeInstanceDestroy(ci), 2);
    // The same place has the same UUID, and a handle of its own.
    assert_eq!(uuid(mig_device(device, 0).unwrap()), name);
    assert_eq!(nvmlComputeInstanceDestroy(again), 0);
    assert_eq!(nvmlGpuInstanceDestroy(gi), 0);
    created(device, 19, 0, 1);
    assert_eq!(nvmlGpuInstanceDestroy(gi), 2);
    assert_eq!(nvmlGpuInstanceGetInfo(gi, Out::to(&mut GiInfo::zero())), 2);
}

#[test]
fn asks_the_parent_and_the_mig_device_each_what_is_theirs() {
    let _node = Node::new(&[a100('A')]);
    let device = gpu(0);
    switch_on(device);
    compute_created(created(device, 19, 0, 1), 0);
    let mig = mig_device(device, 0).unwrap();
    let (mut attributes, mut parent, mut now, mut then) = (Attributes::zero(), Handle(0), 0, 0);
    assert_eq!(nvmlDeviceGetAttributes_v2(device, Out::to(&mut attributes)), 3);
    assert_eq!(number(|out| nvmlDeviceGetGpuInstanceId(device, out)), Err(2));
    assert_eq!(number(|out| nvmlDeviceGetComputeInstanceId(device, out)), Err(2));
    assert_eq!(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device, Out::to(&mut parent)), 2);
    assert_eq!(number(|out| nvmlDeviceIsMigDeviceHandle(device, out)), Ok(0));
    assert_eq!(number(|out| nvmlDeviceIsMigDeviceHandle(mig, out)), Ok(1));
    assert_eq!(nvmlDeviceGetMigMode(mig, Out::to(&mut now), Out::to(&mut then)), 3);
    assert_eq!(number(|out| nvmlDeviceGetMinorNumber(mig, out)), Err(3));
    assert_eq!(number(|out| nvmlDeviceGetComputeMode(mig, out)), Ok(0));
    assert_eq!(nvmlDeviceSetComputeMode(mig, 0), 3);
    let mut pci = Pci::zero();
    assert_eq!(nvmlDeviceGetPciInfo_v3(mig, Out::to(&mut pci)), 0);
    assert_eq!(pci.bus, 7);
    assert_eq!(mig_device(mig, 0), Err(2));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn garbage_is_an_invalid_argument_and_changes_nothing(bits in prop::collection::vec(any::<u64>(), 32)) {
        let node = Node::new(&[a100('A')]);
        node.change(0, |board, state| {
            board.force_mode(state, true).unwrap();
            board.place(state, 0, 0).unwrap();
        });
        let mut found = Handle(0);
        for bits in bits {
            // Wholly random, and random behind the mark of a handle.
            for handle in [Handle(bits), Handle((0x4e56 << 48) | (bits >> 16))] {
                let known = number(|out| nvmlDeviceIsMigDeviceHandle(handle, out)).is_ok();
                if !known {
                    prop_assert_eq!(nvmlDeviceCreateGpuInstance(handle, 19, Out::to(&mut found)), 2);
                    prop_assert_eq!(nvmlDeviceSetMigMode(handle, 0, Out::to(&mut 0)), 2);
                }
                let (gi, ci) = (nvmlGpuInstanceDestroy(handle), nvmlComputeInstanceDestroy(handle));
                prop_assert!(gi == 2 || gi == 19, "{gi}");
                // A lucky guess of the one live handle is no garbage.
                prop_assert!(ci == 2 || ci == 0, "{ci}");
            }
        }
    }
}

#[test]
fn null_handles_are_invalid_arguments() {
    let _node = Node::new(&[a100('A')]);
    assert_eq!(nvmlDeviceGetUUID(Handle(0), Out::to(&mut (0 as c_char)), 1), 2);
    assert_eq!(nvmlGpuInstanceDestroy(Handle(0)), 2);
    assert_eq!(nvmlComputeInstanceDestroy(Handle(0)), 2);
    assert_eq!(nvmlDeviceSetMigMode(gpu(0), 1, Out::null()), 2);
    assert_eq!(nvmlDeviceSetMigMode(gpu(0), 2, Out::to(&mut 0)), 2);
}
