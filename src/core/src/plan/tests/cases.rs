//! Cases that people reported, with their neighbours.

use super::*;
use crate::{
    fixtures::{gpu, holding, node, nodes},
    node::InUse,
    reason::Reason,
};
use rstest::rstest;

const A100: &str = "a100-40gb";

/// What is not there is created, what is there stays.
#[rstest]
#[case("1g@0* 1g@1 2g@2 3g@4", "7x1g", [2, 2, 5])]
#[case("1g@0 1g@1* 2g@2 3g@4", "7x1g", [2, 2, 5])]
#[case("1g@6* 1g@1 2g@2", "7x1g", [2, 1, 5])]
#[case("1g@0* 1g@1 2g@2 3g@4", "2x1g 2g 3g", [4, 0, 0])]
#[case("1g@0* 1g@1 2g@2 3g@4", "3g 1g", [2, 2, 0])]
#[case("1g@0 1g@1 2g@2 3g@4", "4g 2g 1g", [0, 4, 3])]
#[case("7g@0", "7x1g", [0, 1, 7])]
#[case("", "2x1g 2g 3g", [0, 0, 4])]
#[case("1g@0 1g@1", "", [0, 2, 0])]
fn keeps_what_can_stay(#[case] now: &str, #[case] wish: &str, #[case] expected: [usize; 3]) {
    let plan = plan_one(holding(gpu(A100, 0), now), wish).unwrap();
    assert_eq!(counts(&plan), expected);
}

#[test]
fn a_busy_instance_stays_wherever_it_sits() {
    for (key, starts, more) in [("a30-24gb", 0..4, 4), ("a100-40gb", 0..7, 7), ("h100-sxm-80gb", 0..7, 7)] {
        let empty = gpu(key, 0);
        for start in starts {
            for count in 1..=more {
                let gpu = holding(empty.clone(), &format!("1g@{start}*"));
                let plan = plan_one(gpu, &format!("{count}x1g")).unwrap();
                assert_eq!(counts(&plan), [1, 0, count - 1], "{key} @{start} {count}");
                assert_eq!(plan.keep[0].placement.start, start);
            }
        }
    }
    for start in [0, 3, 6, 9] {
        let gpu = holding(gpu("rtx-pro-6000-blackwell-96gb", 0), &format!("1g@{start}*"));
        assert_eq!(counts(&plan_one(gpu, "2x1g 1g+gfx").unwrap()), [1, 0, 2]);
    }
}

#[rstest]
#[case("1g@0* 1g@1 2g@2 3g@4", "7g", Reason::InstanceInUse, "1g.5gb @0:1 (in use by pid 4000)")]
#[case("2g@0*", "7x1g", Reason::InstanceInUse, "2g.10gb @0:2")]
#[case("3g@0*", "4g 3g", Reason::PinnedUnplaceable, "3g.20gb @0:4")]
#[case("1g@4*", "2x3g 1g", Reason::LayoutUnplaceable, "")]
#[case("1g@2*", "3x2g 1g", Reason::PinnedUnplaceable, "1g.5gb @2:1")]
#[case("1g@0* 1g@1*", "1g 3g", Reason::InstanceInUse, "1g.5gb @0:1")]
#[case("3g@4:2c*+1c", "3g", Reason::InstanceInUse, "3g.20gb @4:4")]
#[case("1g@0*", "off", Reason::InstanceInUse, "cannot leave MIG mode: 1g.5gb @0:1")]
fn names_what_is_in_the_way(
    #[case] now: &str,
    #[case] wish: &str,
    #[case] reason: Reason,
    #[case] names: &str,
) {
    let fault = plan_one(holding(gpu(A100, 3), now), wish).unwrap_err();
    assert_eq!(fault.reason, reason, "{fault:?}");
    assert!(fault.message.contains(names), "{fault:?}");
    assert_eq!((fault.gpu, fault.place.is_some(), fault.help.is_some()), (Some(3), true, true));
}

#[test]
fn blames_only_the_instance_that_is_in_the_way() {
    let fault = plan_one(holding(gpu(A100, 0), "1g@2* 1g@6*"), "2x1g 2x2g").map(|plan| after(&plan));
    assert_eq!(fault.unwrap(), "2g@0 1g@2 2g@4 1g@6");
    let fault = plan_one(holding(gpu(A100, 0), "1g@2* 1g@6*"), "1g 3x2g").unwrap_err();
    // Two are in use and one is wanted: neither can be blamed alone, and that is said of both.
    assert!(fault.message.contains("@2:1"), "{fault:?}");
    let fault = plan_one(holding(gpu(A100, 0), "1g@5* 3g@0*"), "1g 3g 4g").unwrap_err();
    assert_eq!(fault.reason, Reason::LayoutUnplaceable, "{fault:?}");
    let fault = plan_one(holding(gpu(A100, 0), "1g@5* 1g@0*"), "2x1g 1g 4g").unwrap_err();
    assert!(fault.message.contains("@0:1") && !fault.message.contains("@5:1"), "{fault:?}");
}

#[test]
fn what_cannot_be_told_counts_as_in_use() {
    let mut unknown = holding(gpu(A100, 0), "1g@0 2g@2");
    unknown.instances[1].compute[0].in_use = InUse::Unknown;
    let fault = plan_one(unknown.clone(), "7x1g").unwrap_err();
    assert_eq!(fault.reason, Reason::InstanceInUse);
    assert!(fault.message.contains("2g.10gb @2:2 (cannot tell whether it is in use)"), "{fault:?}");
    assert_eq!(counts(&plan_one(unknown, "3x2g").unwrap()), [1, 1, 2]);
}

#[rstest]
#[case("3x3g", "cannot hold 3 x 3g.20gb: at most 2 x 3g.20gb fit")]
#[case("8x1g", "8 x 1g.5gb: at most 7 x 1g.5gb fit")]
#[case("2x4g", "at most 1 x 4g.20gb fit")]
#[case("2x1g+me", "at most 1 x 1g.5gb+me fit")]
#[case("4g 2x2g", "they need 8 compute slices, the GPU has 7")]
#[case("2x3g 1g", "whichever starts are chosen, two share memory slices")]
#[case("7x1c.3g", "do not fit in the 2 x 3g.20gb that it takes")]
#[case("4x2c.3g", "do not fit in the 2 x 3g.20gb that it takes")]
#[case("200x1c.2g", "do not fit in the 3 x 2g.10gb that it takes")]
#[case("200x1g", "cannot hold 200 x 1g.5gb: at most 7 x 1g.5gb fit")]
fn says_why_a_layout_can_never_fit(#[case] wish: &str, #[case] says: &str) {
    for now in ["", "1g@0*"] {
        let fault = plan_one(holding(gpu(A100, 0), now), wish).unwrap_err();
        assert_eq!(fault.reason, Reason::LayoutUnplaceable, "{fault:?}");
        assert!(fault.message.contains(says), "{}", fault.message);
        assert!(fault.help.unwrap().contains("room for"));
    }
}

#[rstest]
#[case("3g@4", "1c.3g", "3g@4:1c", [1, 0, 0])]
#[case("3g@4:1c+1c", "2x1c.3g", "3g@4:1c+1c", [1, 0, 0])]
#[case("3g@0:1c 3g@4:1c", "2x1c.3g", "3g@0:1c 3g@4:1c", [2, 0, 0])]
#[case("", "2x1c.3g", "3g@4:1c+1c", [0, 0, 1])]
#[case("", "2x2c.3g 2x1c.3g", "3g@0:2c+1c 3g@4:2c+1c", [0, 0, 2])]
#[case("3g@0:none", "3g", "3g@0", [1, 0, 0])]
#[case("3g@0:none 1g@4", "1g", "1g@4", [1, 1, 0])]
#[case("3g@4:1c*+2c", "1c.3g", "3g@4:1c", [1, 0, 0])]
#[case("3g@0:2c+1c 3g@4", "3g 2c.3g 1c.3g", "3g@0:2c+1c 3g@4", [2, 0, 0])]
#[case("", "3g:2c+1c", "3g@4:2c+1c", [0, 0, 1])]
// Two slices only begin at 0, where one sits: a second instance spares it.
#[case("3g@4:1c", "2c.3g 1c.3g", "3g@0:2c 3g@4:1c", [1, 0, 1])]
#[case("3g@0:1c+1c+1c 3g@4:1c", "3g:1c+1c", "3g@0:1c+1c", [1, 1, 0])]
#[case("3g@0:1c 3g@4:2c", "3g:2c+1c 3g:1c", "3g@0:1c 3g@4:2c+1c", [2, 0, 0])]
#[case("3g@0:2c+1c 3g@4:none", "3g:2c+1c", "3g@0:2c+1c", [1, 1, 0])]
fn compute_instances_change_without_touching_the_instance(
    #[case] now: &str,
    #[case] wish: &str,
    #[case] then: &str,
    #[case] expected: [usize; 3],
) {
    let plan = plan_one(holding(gpu(A100, 0), now), wish).unwrap();
    assert_eq!((after(&plan).as_str(), counts(&plan)), (then, expected));
}

#[test]
fn a_changed_split_is_steps_but_no_change_of_instances() {
    let plan = plan_one(holding(gpu(A100, 0), "3g@4"), "2c.3g 1c.3g").unwrap();
    assert_eq!(counts(&plan), [1, 0, 0]);
    let steps: Vec<&Action> = plan.instance_steps.iter().map(|step| &step.action).collect();
    let place = |start, size| Some(crate::profile::Placement { start, size });
    let instance = crate::profile::Placement { start: 4, size: 4 };
    let spec = |slices, placement| ComputeSpec { slices, placement };
    assert_eq!(
        steps,
        [
            &Action::DestroyCompute { instance, compute: spec(3, place(0, 3)) },
            &Action::CreateCompute { instance, compute: spec(2, place(0, 2)) },
            &Action::CreateCompute { instance, compute: spec(1, place(2, 1)) },
        ]
    );
}

#[test]
fn creates_the_largest_first_each_with_its_compute_instances() {
    let plan = plan_one(holding(gpu(A100, 0), "7g@0"), "2x1g 2g 3g").unwrap();
    let words: Vec<String> = plan
        .instance_steps
        .iter()
        .map(|step| match &step.action {
            Action::CreateInstance { placement, profile, .. } => {
                format!("+{}g@{}", profile.slices, placement.start)
            }
            Action::CreateCompute { compute, .. } => format!("+{}c", compute.slices),
            Action::DestroyCompute { compute, .. } => format!("-{}c", compute.slices),
            Action::DestroyInstance { profile, .. } => format!("-{}g", profile.slices),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(words[..4], ["-7c", "-7g", "+3g@4", "+3c"]);
    assert_eq!(words[4][..3], *"+2g");
    assert_eq!(words.len(), 10);
}

#[test]
fn four_and_three_follow_the_driver() {
    let mut old = nodes(A100, 1);
    old.driver.version = "470.82.01".to_owned();
    let fault = plan(&old, "4g 3g").unwrap_err().remove(0);
    assert_eq!(fault.reason, Reason::LayoutUnplaceable);
    assert!(fault.message.contains("4g.20gb and 3g.20gb cannot exist together"), "{fault:?}");
    assert_eq!(plan(&nodes(A100, 1), "4g 3g").unwrap().summary.create, 2);
    // Where it is there already, it stays: nothing is to be done.
    old.gpus[0] = holding(old.gpus[0].clone(), "4g@0 3g@4");
    assert!(plan(&old, "4g 3g").unwrap().is_empty());
}

#[test]
fn every_gpu_is_refused_for_itself_and_all_are_told() {
    let node = node(vec![
        holding(gpu(A100, 0), "2g@0*"),
        holding(gpu(A100, 1), "1g@0*"),
        holding(gpu(A100, 2), "3g@4*"),
    ]);
    let faults = plan(&node, "7x1g").unwrap_err();
    assert_eq!(faults.iter().map(|f| f.gpu).collect::<Vec<_>>(), [Some(0), Some(2)]);
}

#[test]
fn an_unknown_instance_goes_if_idle_and_blocks_if_not() {
    let mut odd = holding(gpu(A100, 0), "3g@4");
    odd.instances[0].profile_id = 77;
    assert_eq!(counts(&plan_one(odd.clone(), "7x1g").unwrap()), [0, 1, 7]);
    odd.instances[0].in_use = InUse::Yes;
    assert_eq!(plan_one(odd, "7x1g").unwrap_err().reason, Reason::InstanceInUse);
}

#[test]
fn totals_are_those_of_all_gpus() {
    let mut node = nodes(A100, 8);
    node.gpus[0] = holding(node.gpus[0].clone(), "1g@0* 1g@1 2g@2 3g@4");
    let plan = plan(&node, "7x1g").unwrap();
    let expected = Summary { keep: 2, destroy: 2, create: 54, mode_changes: 0, resets: 0 };
    assert_eq!(plan.summary, expected);
}

/// Spellings after which the peer rebuilds a GPU at each run.
#[rstest]
#[case("\"1g.5gb\": 0, \"2g.10gb\": 3")]
#[case("\"1c.1g.5gb\": 7")]
#[case("\"1c.3g.20gb\": 2, \"2c.3g.20gb\": 1")]
#[case("")]
fn a_second_run_has_nothing_to_do(#[case] devices: &str) {
    let text = format!(
        "version: v1\nmig-configs:\n  one:\n  - devices: all\n    mig-enabled: true\n    mig-devices: {{{devices}}}\n"
    );
    let file = crate::layout::parse(&text, "t").unwrap();
    let mut node = node(vec![gpu(A100, 0), crate::fixtures::plain_gpu(1), gpu(A100, 2)]);
    for done in [false, true] {
        let target = crate::target::resolve(file.find("one").unwrap(), &node).unwrap();
        let plan = make(&node, &target, &Policy::default()).unwrap();
        assert_eq!(plan.is_empty(), done || devices.is_empty());
        for gpu_plan in &plan.gpus {
            let gpu = node.gpus.iter_mut().find(|gpu| gpu.uuid == gpu_plan.uuid).unwrap();
            *gpu = carried_out(gpu, gpu_plan);
        }
    }
}

/// An instance without compute instances is no device, and is not passed over.
#[test]
fn an_instance_without_compute_instances_is_seen() {
    let half = holding(gpu(A100, 0), "1g@0:none 2g@2:none");
    let plan = plan_one(half.clone(), "7x1g").unwrap();
    assert_eq!(counts(&plan), [1, 1, 6]);
    assert_eq!(after(&plan), "1g@0 1g@1 1g@2 1g@3 1g@4 1g@5 1g@6");
    assert_eq!(counts(&plan_one(half, "").unwrap()), [0, 2, 0]);
}
