//! Whatever is asked in whatever order, a GPU stays one that could exist.

use super::*;
use crate::model::Family;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Op {
    CreateGi(usize, Option<usize>),
    DestroyGi(u32),
    CreateCi(u32, u32, Option<u32>),
    DestroyCi(u32, u32),
    Mode(u32, bool),
    Busy(Option<u32>, Option<u32>, bool),
    Place(u32, u32),
    Reset(bool),
    Reboot,
}

fn op() -> impl Strategy<Value = Op> {
    let id = 0..15u32;
    prop_oneof![
        8 => (0..8usize, prop::option::of(0..8usize)).prop_map(|(p, at)| Op::CreateGi(p, at)),
        3 => id.clone().prop_map(Op::DestroyGi),
        8 => (id.clone(), 0..9u32, prop::option::of(0..8u32)).prop_map(|(g, p, at)| Op::CreateCi(g, p, at)),
        4 => (id.clone(), 0..8u32).prop_map(|(g, c)| Op::DestroyCi(g, c)),
        2 => (0..3u32, any::<bool>()).prop_map(|(m, o)| Op::Mode(m, o)),
        2 => (prop::option::of(id), prop::option::of(0..8u32), any::<bool>())
            .prop_map(|(g, c, b)| Op::Busy(g, c, b)),
        2 => (0..8u32, 0..12u32).prop_map(|(p, s)| Op::Place(p, s)),
        1 => any::<bool>().prop_map(Op::Reset),
        1 => Just(Op::Reboot),
    ]
}

/// What an op answered, as far as the test looks at it.
fn run(board: &Board<'_>, state: &mut GpuState, op: &Op) -> bool {
    let profile = |index: usize| board.model.profiles().get(index);
    match *op {
        Op::CreateGi(index, at) => profile(index).is_some_and(|profile| {
            let at = at.map(|at| profile.places()[at % profile.places().len()]);
            board.create_gi(state, profile.id, at.map(|place| (place.start, place.size))).is_ok()
        }),
        Op::DestroyGi(id) => board.destroy_gi(state, id).is_ok(),
        Op::CreateCi(gi, id, start) => {
            let size = [1, 2, 3, 4, 7].get(id as usize).copied().unwrap_or(1);
            board.create_ci(state, gi, id, start.map(|start| (start, size))).is_ok()
        }
        Op::DestroyCi(gi, ci) => board.destroy_ci(state, gi, ci).is_ok(),
        Op::Mode(mode, others) => board.set_mode(state, mode, others).is_ok(),
        Op::Busy(gi, ci, busy) => board.set_busy(state, gi, ci, busy).is_ok(),
        Op::Place(profile, start) => board.place(state, profile, start).is_ok(),
        Op::Reset(others) => board.reset(state, others).is_ok(),
        Op::Reboot => {
            board.reboot(state);
            true
        }
    }
}

/// Written from the rules, not from the code that keeps them.
fn assert_legal(board: &Board<'_>, state: &GpuState) {
    let live: Vec<_> = state.live_gis().collect();
    assert!(live.is_empty() || state.mig_current == 1, "instances without MIG");
    let family = board.model.family();
    assert!(family == Family::Ampere || state.mig_current == state.mig_pending);
    let mut slices = [0; 12];
    for (id, gi) in &live {
        let profile = &board.model.profiles()[gi.profile as usize];
        let place = profile.places().iter().find(|place| place.start == gi.start).expect("a listed place");
        assert_eq!((place.size, place.gi_id), (gi.size, *id));
        for slice in &mut slices[gi.start as usize..(gi.start + gi.size) as usize] {
            *slice += 1;
        }
        let alike = live.iter().filter(|(_, other)| other.profile == gi.profile).count();
        assert!(alike <= profile.max_instances as usize, "too many {}", profile.name.as_str());
        let mut computing = [0; 8];
        for (_, ci) in gi.live_cis() {
            let compute = &profile.compute()[ci.profile as usize];
            assert_eq!(compute.slices, ci.size);
            assert!(compute.places().iter().any(|place| place.start == ci.start));
            for slice in &mut computing[ci.start as usize..(ci.start + ci.size) as usize] {
                *slice += 1;
            }
        }
        assert!(computing.iter().all(|taken| *taken <= 1), "compute instances overlap");
        assert!(computing[profile.slices as usize..].iter().all(|taken| *taken == 0));
    }
    assert!(slices.iter().all(|taken| *taken <= 1), "GPU instances overlap");
    let profile = |gi: &crate::state::GiState| &board.model.profiles()[gi.profile as usize];
    assert!(live.iter().map(|(_, gi)| profile(gi).slices).sum::<u32>() <= board.model.compute_slices);
    let ofa: u32 = live.iter().map(|(_, gi)| profile(gi).engines.ofa).sum();
    assert!(ofa <= 1, "optical flow given out twice");
    let devices = board.mig_devices(state);
    assert!(devices.is_sorted_by_key(|one| (one.gi, one.ci)));
    assert!(devices.len() <= board.max_mig_devices(state) as usize);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_calls_leaves_a_legal_gpu(
        which in 0..4usize,
        ops in prop::collection::vec(op(), 1..80),
    ) {
        let model = [a100('A'), a100('B'), h100(), pro_6000()][which];
        let board = board(&model);
        let mut state = mig_on();
        for op in &ops {
            let before = state;
            let ok = run(&board, &mut state, op);
            if !ok {
                prop_assert_eq!(before, state, "{:?} was refused and yet changed something", op);
            }
            assert_legal(&board, &state);
            for (now, was) in state.gis.iter().zip(&before.gis) {
                prop_assert!(now.live == 0 || was.live != 0 || now.handle != was.handle);
            }
        }
    }

    #[test]
    fn what_is_in_use_is_not_destroyed(ops in prop::collection::vec(op(), 1..60)) {
        let model = a100('A');
        let board = board(&model);
        let mut state = mig_on();
        let (gi, ci) = board.place(&mut state, 0, 2).unwrap();
        board.set_busy(&mut state, Some(gi), Some(ci), true).unwrap();
        let kept = state.gis[gi as usize];
        for op in ops.iter().filter(|op| !matches!(op, Op::Busy(..) | Op::Reboot)) {
            run(&board, &mut state, op);
            prop_assert_eq!(&kept, &state.gis[gi as usize]);
        }
    }

    #[test]
    fn capacity_is_what_creation_then_allows(ops in prop::collection::vec(op(), 1..30), index in 0..7usize) {
        let model = a100('A');
        let board = board(&model);
        let mut state = mig_on();
        for op in &ops {
            run(&board, &mut state, op);
        }
        state.busy = 0;
        let id = model.profiles()[index].id;
        if let Ok(capacity) = board.gi_capacity(&state, id) {
            for _ in 0..capacity {
                prop_assert!(board.create_gi(&mut state, id, None).is_ok());
            }
            prop_assert_eq!(board.create_gi(&mut state, id, None), Err(Code::INSUFFICIENT_RESOURCES));
        }
    }
}
