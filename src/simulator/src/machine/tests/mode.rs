use super::*;

#[test]
fn ampere_resets_itself_when_alone_and_waits_otherwise() {
    let model = a100('A');
    let board = board(&model);
    let mut state = fresh();
    assert_eq!(board.set_mode(&mut state, 1, true), Ok(Code::IN_USE));
    assert_eq!(board.mode(&state), Ok((0, 1)));
    assert_eq!(board.reset(&mut state, true), Err(Code::IN_USE));
    board.reset(&mut state, false).unwrap();
    assert_eq!(board.mode(&state), Ok((1, 1)));
    assert_eq!(board.set_mode(&mut state, 0, false), Ok(Code::SUCCESS));
    assert_eq!(board.mode(&state), Ok((0, 0)));
    assert_eq!(state.resets, 2);
}

#[test]
fn asking_for_the_current_mode_clears_the_pending_one() {
    let model = a100('A');
    let mut board = board(&model);
    let mut state = fresh();
    board.set_mode(&mut state, 1, true).unwrap();
    board.unknowns.current_mode_keeps_pending = 1;
    assert_eq!(board.set_mode(&mut state, 0, true), Ok(Code::SUCCESS));
    assert_eq!(board.mode(&state), Ok((0, 1)));
    board.unknowns.current_mode_keeps_pending = 0;
    assert_eq!(board.set_mode(&mut state, 0, true), Ok(Code::SUCCESS));
    assert_eq!(board.mode(&state), Ok((0, 0)));
}

#[test]
fn hopper_switches_at_once_and_refuses_the_first_instance_under_work() {
    let model = h100();
    let board = board(&model);
    let mut state = fresh();
    board.set_busy(&mut state, None, None, true).unwrap();
    assert_eq!(board.set_mode(&mut state, 1, true), Ok(Code::SUCCESS));
    assert_eq!(board.mode(&state), Ok((1, 1)));
    assert_eq!(board.create_gi(&mut state, 19, None), Err(Code::IN_USE));
    assert_eq!(board.set_mode(&mut state, 0, false), Err(Code::IN_USE));
    board.set_busy(&mut state, None, None, false).unwrap();
    let gi = board.create_gi(&mut state, 19, None).unwrap();
    assert_eq!(board.set_mode(&mut state, 0, false), Err(Code::IN_USE));
    assert_eq!(board.mode(&state), Ok((1, 1)));
    board.destroy_gi(&mut state, gi).unwrap();
    assert_eq!(board.set_mode(&mut state, 0, true), Ok(Code::SUCCESS));
}

#[test]
fn refuses_to_switch_off_over_instances() {
    let model = a100('A');
    let mut board = board(&model);
    let mut state = mig_on();
    board.create_gi(&mut state, 19, None).unwrap();
    let before = state;
    assert_eq!(board.set_mode(&mut state, 0, false), Err(Code::IN_USE));
    assert_eq!(state, before);
    board.unknowns.ampere_disable_with_instances = 1;
    assert_eq!(board.set_mode(&mut state, 0, false), Ok(Code::IN_USE));
    assert_eq!(board.mode(&state), Ok((1, 0)));
}

#[test]
fn knows_no_mode_without_mig_or_in_display_mode() {
    let none = geforce();
    let mut workstation = pro_6000();
    workstation.display_mode = 1;
    for model in [&none, &workstation] {
        let board = board(model);
        assert_eq!(board.mode(&fresh()), Err(Code::NOT_SUPPORTED));
        assert_eq!(board.set_mode(&mut fresh(), 1, false), Err(Code::NOT_SUPPORTED));
        assert_eq!(board.gi_profile_by_slot(&fresh(), 0).err(), Some(Code::NOT_SUPPORTED));
        assert_eq!(board.gi_profile_by_slot(&fresh(), 18).err(), Some(Code::INVALID_ARGUMENT));
        assert_eq!(board.max_mig_devices(&fresh()), 0);
    }
    assert_eq!(board(&a100('A')).set_mode(&mut fresh(), 2, false), Err(Code::INVALID_ARGUMENT));
}

#[test]
fn forgets_what_real_boards_forget() {
    for (model, kept) in [(a100('A'), 1), (h100(), 0)] {
        let board = board(&model);
        for what in [Board::reset_now, Board::reload_driver, Board::reboot] {
            let mut state = mig_on();
            state.persistence = 1;
            state.lost = 1;
            board.place(&mut state, 0, 3).unwrap();
            board.set_busy(&mut state, Some(10), Some(0), true).unwrap();
            what(&board, &mut state);
            assert_eq!(board.mode(&state), Ok((kept, kept)));
            assert_eq!(state.live_gis().count(), 0);
            assert!(!board.busy(&state));
            assert_eq!(state.resets, 1);
        }
        let mut state = GpuState { persistence: 1, lost: 1, ..mig_on() };
        board.reset_now(&mut state);
        assert_eq!((state.persistence, state.lost), (1, 1));
        board.reload_driver(&mut state);
        assert_eq!((state.persistence, state.lost), (0, 1));
        board.reboot(&mut state);
        assert_eq!(state.lost, 0);
    }
}

#[test]
fn refuses_a_reset_under_work_and_of_a_lost_gpu() {
    let model = a100('A');
    let board = board(&model);
    let mut state = mig_on();
    board.place(&mut state, 0, 0).unwrap();
    board.set_busy(&mut state, Some(7), Some(0), true).unwrap();
    assert_eq!(board.reset(&mut state, false), Err(Code::IN_USE));
    state.lost = 1;
    assert_eq!(board.reset(&mut state, false), Err(Code::GPU_IS_LOST));
}
