use super::*;
use crate::{fixture, geometry, machine::Board, shared::Shard};
use tempfile::TempDir;

fn cut(text: &str) -> (TempDir, Shard) {
    let folder = tempfile::tempdir().unwrap();
    let (info, model) = (fixture::info("580.95.05"), fixture::a100('A'));
    let state = geometry::parse(&Board::new(&info, &model), text, &fixture::fresh()).unwrap();
    fixture::node(folder.path(), &info, &[(model, state)]);
    let shard = Shard::open(folder.path()).unwrap();
    (folder, shard)
}

fn place(gi: Option<u32>, ci: Option<u32>) -> Target {
    Target { gpu: 0, gi, ci }
}

fn hold(shard: &Shard, place: Target) -> Hold {
    let state = shard.read(0).unwrap();
    shard.holders.hold(&shard.folder, place, &state, Kind::Compute, 1 << 20).unwrap()
}

#[test]
fn a_holder_marks_what_it_holds_as_long_as_it_lives() {
    let (folder, shard) = cut("1g@0 3g@4");
    let other = Shard::open(folder.path()).unwrap();
    let (gi, _) = shard.read(0).unwrap().live_gis().find(|(_, gi)| gi.start == 4).unwrap();
    let held = hold(&shard, place(Some(gi), Some(0)));
    for view in [&shard, &other] {
        let seen = view.seen(0).unwrap();
        assert_eq!(seen.gis[gi as usize].cis[0].busy, HELD);
        assert_eq!(seen.gis.iter().map(|gi| gi.busy).sum::<u32>() + seen.busy, 0);
        let found: Vec<_> = view.holders.of(0, &seen).collect();
        assert_eq!(
            (found.len(), found[0].pid, found[0].place),
            (1, std::process::id(), place(Some(gi), Some(0)))
        );
        assert_eq!(found[0].memory, 1 << 20);
    }
    assert_eq!(shard.read(0).unwrap().gis[gi as usize].cis[0].busy, 0);
    drop(held);
    assert_eq!(other.seen(0), other.read(0));
}

#[test]
fn a_gpu_is_held_whole_without_mig_and_only_open_with_it() {
    let (_folder, shard) = cut("off");
    let _held = hold(&shard, place(None, None));
    assert_eq!(shard.seen(0).unwrap().busy, HELD);
    let (_folder, shard) = cut("1g@0");
    let _held = hold(&shard, place(None, None));
    assert_eq!(shard.seen(0), shard.read(0));
}

#[test]
fn what_was_taken_away_and_made_anew_is_not_held() {
    let (_folder, shard) = cut("7g@0");
    let _held = hold(&shard, place(Some(0), Some(0)));
    let gi = place(Some(0), None);
    let _monitor = hold(&shard, gi);
    assert_eq!(shard.holders.of(0, &shard.read(0).unwrap()).count(), 2);
    crate::handling::set(&shard, 0, "1g@0").unwrap();
    crate::handling::set(&shard, 0, "7g@0").unwrap();
    assert_eq!(shard.holders.of(0, &shard.read(0).unwrap()).count(), 0);
}

#[test]
fn there_is_room_for_256_and_who_has_gone_leaves_it() {
    let (_folder, shard) = cut("off");
    let state = shard.read(0).unwrap();
    let one = || shard.holders.hold(&shard.folder, place(None, None), &state, Kind::Mps, 0);
    let mut all: Vec<Hold> = (0..MOST).map(|_| one().unwrap()).collect();
    assert!(matches!(one(), Err(HoldError::Full)));
    assert_eq!(shard.holders.of(0, &state).count(), MOST);
    all.truncate(MOST - 1);
    all.push(one().unwrap());
    drop(all);
    assert_eq!(shard.holders.of(0, &state).count(), 0);
}
