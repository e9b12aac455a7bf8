use super::*;
use crate::{
    choose,
    fixtures::{gpu, holding, nodes, off},
    node::Node,
};
use rstest::rstest;

const H100: &str = "h100-sxm-80gb";

fn ask(node: &Node, index: usize, profile: &str) -> Explained {
    let gpu = &node.gpus[index];
    explain(gpu, &node.driver, choose::profile(gpu, profile).unwrap()).unwrap()
}

fn one(key: &str, state: &str, profile: &str) -> Explained {
    let mut node = nodes(key, 1);
    node.gpus[0] = holding(node.gpus[0].clone(), state);
    ask(&node, 0, profile)
}

/// `1g@5->2: @4` for each way.
fn ways(explained: &Explained) -> Vec<String> {
    explained
        .ways
        .iter()
        .map(|way| {
            let moves = way.moves.iter().map(|m| format!("{}g@{}->{}", m.profile.slices, m.from, m.to));
            let removes = way.removes.iter().map(|s| format!("-{}g@{}", s.profile.slices, s.start));
            format!("{}: @{}", moves.chain(removes).collect::<Vec<_>>().join(" "), way.start)
        })
        .collect()
}

/// Three 1g scattered over an H100: four compute slices are free, and no 3g finds a place.
#[test]
fn names_who_is_in_the_way_and_the_single_move_that_helps() {
    let mut node = nodes(H100, 4);
    node.gpus[3] = holding(node.gpus[3].clone(), "1g@0 1g@1 1g@5");
    let explained = ask(&node, 3, "3g.40gb");
    assert_eq!((explained.index, explained.creatable, explained.lack.is_none()), (3, false, true));
    let by = |at: usize| explained.blocked[at].by.iter().map(|s| s.start).collect::<Vec<_>>();
    assert_eq!((explained.blocked[0].start, by(0)), (0, vec![0, 1]));
    assert_eq!((explained.blocked[1].start, by(1)), (4, vec![5]));
    let mut found = ways(&explained);
    found.sort();
    assert_eq!(found, ["1g@5->2: @4", "1g@5->3: @4"]);
    let room = |name: &str| {
        explained.profiles.iter().find(|r| r.profile.to_string() == name).unwrap().starts.clone()
    };
    assert_eq!((room("1g.10gb"), room("2g.20gb")), (vec![2, 3, 4, 6], vec![2]));
    assert!(room("3g.40gb").is_empty() && room("4g.40gb").is_empty());
}

#[rstest]
#[case("other_gpu", "a30-24gb", "1g@0 1g@2", "2g", &["1g@0->3: @0", "1g@2->1: @2"])]
#[case("other_gpu", "rtx-pro-6000-blackwell-96gb", "1g@3 1g@6", "2g", &["1g@3->9: @0", "1g@6->0: @6"])]
#[case("other_starts", H100, "1g@2 1g@4", "3g", &["1g@4->0: @4", "1g@4->1: @4", "1g@4->3: @4", "1g@2->5: @0", "1g@2->6: @0"])]
#[case("four_slices", H100, "1g@3 1g@6", "4g", &["1g@3->4: @0", "1g@3->5: @0"])]
fn finds_every_smallest_move(
    #[case] what: &str,
    #[case] key: &str,
    #[case] state: &str,
    #[case] profile: &str,
    #[case] expected: &[&str],
) {
    let mut found = ways(&one(key, state, profile));
    found.sort();
    let mut expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
    expected.sort();
    assert_eq!(found, expected, "{what} {state}");
}

#[test]
fn moves_only_what_is_idle() {
    assert_eq!(ways(&one(H100, "1g@0 1g@1 1g@5*", "3g")), ["1g@0->4 1g@1->6: @0"]);
    let stuck = one(H100, "1g@0* 1g@1 1g@5*", "3g");
    // Nothing idle helps: one of the two in use would have to end.
    assert_eq!(ways(&stuck), ["-1g@5: @4"]);
    assert_eq!(stuck.ways[0].removes[0].in_use, InUse::Yes);
    assert!(stuck.blocked[1].by[0].holder.as_deref().unwrap().contains("pid 4005"));
}

#[rstest]
#[case("4g@0 3g@4", "1g", "it needs 1 compute slice, and 0 of 7 are free", &["-3g@4: @4", "-4g@0: @0"])]
#[case("3g@0 2g@4 1g@6", "2g", "it needs 2 compute slices, and 1 of 7 are free", &["-2g@4: @4", "-3g@0: @0"])]
#[case("1g+me@0", "1g+me", "at most 1 x 1g.10gb+me fit", &["-1g@0: @0"])]
#[case("1g@0 1g@1 1g@2 1g@3 1g@4 1g@5 1g@6", "7g", "it needs 7 compute slices, and 0 of 7 are free", &["-1g@0 -1g@1 -1g@2 -1g@3 -1g@4 -1g@5 -1g@6: @0"])]
fn says_what_there_is_not_enough_of(
    #[case] state: &str,
    #[case] profile: &str,
    #[case] lack: &str,
    #[case] expected: &[&str],
) {
    let explained = one(H100, state, profile);
    assert_eq!(explained.lack.as_deref(), Some(lack));
    assert_eq!(ways(&explained), expected);
}

#[test]
fn two_3g_leave_a_compute_slice_and_no_memory_slice() {
    let explained = one(H100, "3g@0 3g@4", "1g");
    assert_eq!(explained.lack, None);
    assert!(explained.blocked.iter().all(|blocked| blocked.by.len() == 1));
    assert_eq!(ways(&explained), ["-3g@0: @0", "-3g@4: @4"]);
}

#[test]
fn old_drivers_lack_4g_beside_3g() {
    let mut node = nodes("a100-40gb", 1);
    node.driver.version = "470.82.01".to_owned();
    node.gpus[0] = holding(node.gpus[0].clone(), "4g@0");
    let explained = ask(&node, 0, "3g");
    assert!(explained.lack.unwrap().contains("before 510"));
    node.driver.version = "510.39.01".to_owned();
    assert_eq!(ask(&node, 0, "3g").starts, [4]);
}

#[test]
fn a_gpu_whose_mig_is_off_is_explained_as_if_it_were_on() {
    let mut node = nodes("a100-40gb", 1);
    node.gpus[0] = off(node.gpus[0].clone());
    let explained = ask(&node, 0, "3g");
    assert_eq!((explained.creatable, explained.mig, explained.starts.clone()), (false, false, vec![0, 4]));
    assert!(text(&explained, &node.gpus[0]).contains("can be created once MIG is on @0, @4"));
}

/// Every answer is true: carried out on paper, each way leaves room, and what is creatable is legal.
#[test]
fn every_way_out_of_every_state_leads_out() {
    for (key, shorts) in
        [("a100-40gb", &["1g", "2g", "3g", "4g", "7g"][..]), ("a30-24gb", &["1g", "2g", "4g", "1g+me"])]
    {
        let gpu = gpu(key, 0);
        let geometry = Geometry::new(&gpu.profiles, 580).unwrap();
        let ids: Vec<u32> = shorts.iter().map(|s| choose::profile(&gpu, s).unwrap().id).collect();
        let (mut blocked, mut by_placement) = (0, 0);
        for state in geometry.states(&ids) {
            let seats: Vec<Seat> = state.iter().map(|p| Seat { placed: *p, movable: true }).collect();
            for id in &ids {
                let found = geometry.explain(*id, &seats).unwrap();
                assert_eq!(found.starts, geometry.creatable(*id, &state));
                if !found.starts.is_empty() {
                    continue;
                }
                blocked += 1;
                by_placement += usize::from(found.ways.first().is_some_and(|w| !w.moves.is_empty()));
                assert!(!found.ways.is_empty(), "{state:?} {id}");
                for way in &found.ways {
                    let mut then = state.clone();
                    then.retain(|p| !way.removes.contains(p) && !way.moves.iter().any(|(m, _)| m == p));
                    then.extend(way.moves.iter().map(|(m, to)| Placed { placement: *to, ..*m }));
                    assert!(geometry.creatable(*id, &then).contains(&way.start), "{state:?} {id} {way:?}");
                }
            }
        }
        if key == "a100-40gb" {
            // Of 1,490 pairs of state and profile, so many are blocked only by placement.
            assert_eq!(by_placement, 291, "of {blocked} that are blocked");
        }
    }
}
