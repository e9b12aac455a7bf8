use super::*;
use crate::fixture::*;

mod life;
mod mode;
mod observed;
mod random;

#[test]
fn hides_what_older_drivers_did_not_have() {
    let model = a100('A');
    let slots = |driver| -> Vec<u32> {
        board_with(&model, driver).profiles().map(|(_, profile)| profile.slot).collect()
    };
    assert_eq!(slots("460.32"), [0, 1, 2, 3, 4]);
    assert_eq!(slots("470.57"), [0, 7, 1, 2, 3, 4]);
    assert_eq!(slots("525.60"), [0, 7, 9, 1, 2, 3, 4]);
}

#[test]
fn tells_a_slot_the_chip_lacks_from_one_past_the_end() {
    let model = a100('A');
    let (board, on) = (board(&model), mig_on());
    assert_eq!(board.gi_profile_by_slot(&on, 5).err(), Some(Code::NOT_SUPPORTED));
    assert_eq!(board.gi_profile_by_slot(&on, 17).err(), Some(Code::INVALID_ARGUMENT));
    assert_eq!(board_with(&model, "596.36").gi_profile_by_slot(&on, 17).err(), Some(Code::NOT_SUPPORTED));
    assert_eq!(board_with(&model, "596.36").gi_profile_by_slot(&on, 18).err(), Some(Code::INVALID_ARGUMENT));
    assert_eq!(board.gi_profile_by_slot(&on, 4).unwrap().1.id, 0);
}

#[test]
fn shows_profiles_with_mig_off_only_after_535() {
    let model = a100('A');
    let old = board_with(&model, "535.86.10");
    assert_eq!(old.gi_profile_by_slot(&fresh(), 0).err(), Some(Code::NOT_SUPPORTED));
    assert_eq!(old.gi_profile_by_slot(&fresh(), 99).err(), Some(Code::NOT_SUPPORTED));
    assert_eq!(old.gi_places(&fresh(), 19).err(), Some(Code::NOT_SUPPORTED));
    assert!(old.gi_profile_by_slot(&mig_on(), 0).is_ok());
    assert_eq!(board(&model).gi_places(&fresh(), 19).unwrap().len(), 7);
}

#[test]
fn repeats_the_uuid_of_a_place_and_of_no_other() {
    let model = a100('A');
    let board = board(&model);
    let uuid = |id, start, size| {
        let mut state = mig_on();
        let gi = board.create_gi(&mut state, id, Some((start, size))).unwrap();
        let first = board.gi_profile_by_id(id).unwrap().1.compute().last().unwrap().id;
        let ci = board.create_ci(&mut state, gi, first, None).unwrap();
        let device = MigDevice { gi, ci };
        board.mig_uuid(device, board.mig_instances(&state, device).unwrap().1)
    };
    assert_eq!(uuid(19, 3, 1), uuid(19, 3, 1));
    // Another profile at the same GPU instance id and engine.
    assert_eq!(uuid(19, 3, 1), uuid(20, 3, 1));
    assert_ne!(uuid(19, 3, 1), uuid(19, 4, 1));
    let text = uuid(9, 4, 4);
    assert_eq!(text.len(), 40);
    assert!(text.starts_with("MIG-"));
    assert_eq!(text.as_bytes()[18], b'5');
    assert!(b"89ab".contains(&text.as_bytes()[23]));
}

#[test]
fn forms_the_old_uuid_before_470_42() {
    let model = a100('A');
    let device = MigDevice { gi: 9, ci: 0 };
    let ci = fresh().gis[0].cis[0];
    let old = "MIG-GPU-11111111-2222-3333-4444-555555555555/9/0";
    assert_eq!(board_with(&model, "470.41").mig_uuid(device, &ci), old);
    assert_ne!(board_with(&model, "470.42").mig_uuid(device, &ci), old);
}
