use super::*;

#[test]
fn refuses_instances_while_mig_is_off() {
    let model = a100('A');
    let board = board(&model);
    assert_eq!(board.create_gi(&mut fresh(), 19, None), Err(Code::NOT_SUPPORTED));
    assert_eq!(board.gis_of(&fresh(), 19), Err(Code::NOT_SUPPORTED));
    assert_eq!(board.gi_capacity(&fresh(), 19), Err(Code::NOT_SUPPORTED));
    assert_eq!(board.gi(&fresh(), 0).err(), Some(Code::NOT_SUPPORTED));
}

#[test]
fn takes_ids_not_slots_and_places_of_the_list_only() {
    let model = a100('A');
    let mut board = board(&model);
    let mut state = mig_on();
    assert_eq!(board.create_gi(&mut state, 1, None), Err(Code::INVALID_ARGUMENT));
    assert_eq!(board.create_gi(&mut state, 9, Some((2, 4))), Err(Code::INVALID_ARGUMENT));
    assert_eq!(board.create_gi(&mut state, 9, Some((4, 3))), Err(Code::INVALID_ARGUMENT));
    board.unknowns.placement_not_in_list = 1;
    assert_eq!(board.create_gi(&mut state, 9, Some((2, 4))), Err(Code::INSUFFICIENT_RESOURCES));
    assert_eq!(board.create_gi(&mut state, 9, Some((4, 4))), Ok(2));
    assert_eq!(board.create_gi(&mut state, 9, Some((4, 4))), Err(Code::INSUFFICIENT_RESOURCES));
}

#[test]
fn gives_one_me_and_leaves_no_media_beside_all_of_it() {
    let model = a100('A');
    let a100 = board(&model);
    let mut state = mig_on();
    a100.create_gi(&mut state, 20, None).unwrap();
    assert_eq!(a100.create_gi(&mut state, 20, None), Err(Code::INSUFFICIENT_RESOURCES));
    assert_eq!(a100.gi_capacity(&state, 20), Ok(0));
    assert_eq!(a100.gi_capacity(&state, 19), Ok(6));

    let model = pro_6000();
    let pro = board(&model);
    let mut state = mig_on();
    pro.create_gi(&mut state, 65, None).unwrap();
    assert_eq!(pro.create_gi(&mut state, 14, None), Err(Code::INSUFFICIENT_RESOURCES));
    assert_eq!(pro.create_gi(&mut state, 21, None), Err(Code::INSUFFICIENT_RESOURCES));
    assert!(pro.create_gi(&mut state, 67, None).is_ok());
}

#[test]
fn refuses_4g_beside_3g_below_510() {
    let model = a100('A');
    for (driver, fits) in [("470.57", false), ("510.39", true)] {
        let board = board_with(&model, driver);
        for order in [[5, 9], [9, 5]] {
            let mut state = mig_on();
            board.create_gi(&mut state, order[0], None).unwrap();
            assert_eq!(board.create_gi(&mut state, order[1], None).is_ok(), fits, "{driver} {order:?}");
        }
    }
}

#[test]
fn counts_what_still_fits() {
    let model = a100('A');
    let board = board(&model);
    let mut state = mig_on();
    let fits = |state: &GpuState| [19, 14, 9, 5, 0].map(|id| board.gi_capacity(state, id).unwrap());
    assert_eq!(fits(&state), [7, 3, 2, 1, 1]);
    board.create_gi(&mut state, 19, Some((1, 1))).unwrap();
    assert_eq!(fits(&state), [6, 2, 1, 0, 0]);
    assert_eq!(board.gi_capacity(&state, 4711), Err(Code::INVALID_ARGUMENT));
}

#[test]
fn destroys_compute_before_gpu_instance_and_nothing_in_use() {
    let model = a100('A');
    let board = board(&model);
    let mut state = mig_on();
    let gi = board.create_gi(&mut state, 9, None).unwrap();
    let ci = board.create_ci(&mut state, gi, 2, None).unwrap();
    assert_eq!(board.destroy_gi(&mut state, gi), Err(Code::IN_USE));
    board.set_busy(&mut state, Some(gi), Some(ci), true).unwrap();
    assert_eq!(board.destroy_ci(&mut state, gi, ci), Err(Code::IN_USE));
    board.set_busy(&mut state, Some(gi), Some(ci), false).unwrap();
    board.destroy_ci(&mut state, gi, ci).unwrap();
    assert_eq!(board.destroy_ci(&mut state, gi, ci), Err(Code::NOT_FOUND));
    board.set_busy(&mut state, Some(gi), None, true).unwrap();
    assert_eq!(board.destroy_gi(&mut state, gi), Err(Code::IN_USE));
    board.set_busy(&mut state, Some(gi), None, false).unwrap();
    board.destroy_gi(&mut state, gi).unwrap();
    assert_eq!(board.destroy_gi(&mut state, gi), Err(Code::NOT_FOUND));
}

#[test]
fn numbers_compute_instances_lowest_free_first() {
    let model = a100('A');
    let board = board(&model);
    let mut state = mig_on();
    let gi = board.create_gi(&mut state, 0, None).unwrap();
    let starts = |state: &GpuState| -> Vec<(u32, u32)> {
        board.gi(state, gi).unwrap().live_cis().map(|(id, ci)| (id, ci.start)).collect()
    };
    board.create_ci(&mut state, gi, 0, None).unwrap();
    board.create_ci(&mut state, gi, 1, None).unwrap();
    assert_eq!(starts(&state), [(0, 0), (1, 2)]);
    board.destroy_ci(&mut state, gi, 0).unwrap();
    assert_eq!(board.create_ci(&mut state, gi, 2, None), Ok(0));
    assert_eq!(starts(&state), [(0, 4), (1, 2)]);
    assert_eq!(board.create_ci(&mut state, gi, 4, None), Err(Code::INSUFFICIENT_RESOURCES));
    assert_eq!(board.create_ci(&mut state, gi, 0, Some((1, 1))), Ok(2));
    assert_eq!(board.create_ci(&mut state, gi, 0, Some((1, 1))), Err(Code::INSUFFICIENT_RESOURCES));
    assert_eq!(board.create_ci(&mut state, gi, 0, Some((7, 1))), Err(Code::INVALID_ARGUMENT));
    assert_eq!(board.ci_capacity(board.gi(&state, gi).unwrap(), 0), Ok(1));
}

#[test]
fn tells_a_compute_profile_of_another_instance_from_none() {
    let model = a100('A');
    let board = board(&model);
    let mut state = mig_on();
    let gi = board.create_gi(&mut state, 19, None).unwrap();
    assert_eq!(board.create_ci(&mut state, gi, 2, None), Err(Code::NOT_SUPPORTED));
    assert_eq!(board.create_ci(&mut state, gi, 77, None), Err(Code::INVALID_ARGUMENT));
    let gi = *board.gi(&state, gi).unwrap();
    assert_eq!(board.ci_profile_by_slot(&gi, 2).err(), Some(Code::NOT_SUPPORTED));
    assert_eq!(board.ci_profile_by_slot(&gi, 8).err(), Some(Code::INVALID_ARGUMENT));
}

#[test]
fn lists_mig_devices_densely_by_gpu_instance() {
    let model = a100('A');
    let board = board(&model);
    let mut state = mig_on();
    for start in [5, 0, 2] {
        board.place(&mut state, 0, start).unwrap();
    }
    let empty = board.create_gi(&mut state, 19, Some((3, 1))).unwrap();
    let ids = |state: &GpuState| -> Vec<u32> { board.mig_devices(state).iter().map(|one| one.gi).collect() };
    assert_eq!(ids(&state), [7, 9, 12]);
    assert!(!ids(&state).contains(&empty));
    board.destroy_ci(&mut state, 7, 0).unwrap();
    assert_eq!(ids(&state), [9, 12]);
}

#[test]
fn counts_handles_up_whenever_an_instance_is_made_again() {
    let model = a100('A');
    let board = board(&model);
    let mut state = mig_on();
    let (gi, _) = board.place(&mut state, 0, 0).unwrap();
    let handles = |state: &GpuState| {
        let gi = &state.gis[gi as usize];
        (gi.handle, gi.cis[0].handle)
    };
    let first = handles(&state);
    board.clear(&mut state);
    assert_eq!(board.place(&mut state, 1, 0), Ok((gi, 0)));
    let second = handles(&state);
    assert!(second.0 > first.0 && second.1 > first.1);
}

#[test]
fn places_by_hand_only_where_there_is_room() {
    let model = a100('A');
    let board = board(&model);
    assert_eq!(board.place(&mut fresh(), 0, 0), Err(SetError::NoMig));
    let mut state = fresh();
    board.force_mode(&mut state, true).unwrap();
    assert_eq!(board.place(&mut state, 4, 2), Err(SetError::NoSuchPlace));
    assert_eq!(board.place(&mut state, 99, 0), Err(SetError::NoSuchPlace));
    board.place(&mut state, 4, 4).unwrap();
    assert_eq!(board.place(&mut state, 0, 5), Err(SetError::NoRoom));
    assert_eq!(board.set_busy(&mut state, Some(0), None, true), Err(SetError::NoInstance));
    board.force_mode(&mut state, false).unwrap();
    assert_eq!(state.live_gis().count(), 0);
    assert_eq!(crate::fixture::board(&geforce()).force_mode(&mut fresh(), true), Err(SetError::NoMig));
}
