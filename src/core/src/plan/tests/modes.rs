//! MIG mode by generation, and what is pending.

use super::*;
use crate::{
    fixtures::{gpu, holding, node, off},
    node::{MigMode, ProfileSource},
    reason::Reason,
};
use rstest::rstest;

fn mode_words(plan: &GpuPlan) -> String {
    let word = |step: &Step| match &step.action {
        Action::SetMode { enabled: true } => "on".to_owned(),
        Action::SetMode { enabled: false } => "off".to_owned(),
        Action::ResetIfPending => "reset".to_owned(),
        Action::DestroyCompute { .. } => "-c".to_owned(),
        Action::DestroyInstance { .. } => "-g".to_owned(),
        other => format!("{other:?}"),
    };
    plan.mode_steps.iter().map(word).collect::<Vec<_>>().join(" ")
}

const AMPERE: &str = "a100-40gb";
const HOPPER: &str = "h100-sxm-80gb";

#[rstest]
// current, pending, wish -> steps
#[case(AMPERE, false, false, "7x1g", "on reset")]
#[case(AMPERE, false, true, "7x1g", "reset")]
#[case(AMPERE, true, false, "7x1g", "on")]
#[case(AMPERE, true, true, "7x1g", "")]
#[case(AMPERE, false, false, "off", "")]
#[case(AMPERE, false, true, "off", "off")]
#[case(AMPERE, true, false, "off", "reset")]
#[case(AMPERE, true, true, "off", "off reset")]
#[case(HOPPER, false, false, "7x1g", "on")]
#[case(HOPPER, true, true, "off", "off")]
#[case(HOPPER, true, true, "7x1g", "")]
#[case(HOPPER, false, true, "7x1g", "on")]
#[case("a30-24gb", false, false, "4x1g", "on reset")]
#[case("rtx-pro-6000-blackwell-96gb", false, false, "4x1g", "on")]
fn changes_the_mode_as_the_generation_does(
    #[case] key: &str,
    #[case] current: bool,
    #[case] pending: bool,
    #[case] wish: &str,
    #[case] steps: &str,
) {
    let gpu = Gpu { mig: Some(MigMode { current, pending }), ..gpu(key, 0) };
    let plan = plan_one(gpu, wish).unwrap();
    assert_eq!(mode_words(&plan), steps);
    assert_eq!(plan.reset, steps.contains("reset"));
    assert_eq!(plan.instance_steps.is_empty(), wish == "off");
}

#[test]
fn goes_off_only_when_empty() {
    let plan = plan_one(holding(gpu(AMPERE, 0), "1g@0:none 3g@4:2c+1c"), "off").unwrap();
    assert_eq!(mode_words(&plan), "-c -c -g -g off reset");
    assert_eq!((counts(&plan), after(&plan).as_str()), ([0, 2, 0], ""));
}

#[test]
fn a_reset_that_is_due_takes_the_instances_with_it() {
    let pending = MigMode { current: true, pending: false };
    let idle = Gpu { mig: Some(pending), ..holding(gpu(AMPERE, 0), "1g@0") };
    assert_eq!(mode_words(&plan_one(idle, "off").unwrap()), "-c -g reset");
    let busy = Gpu { mig: Some(pending), ..holding(gpu(AMPERE, 0), "1g@0*") };
    assert_eq!(plan_one(busy.clone(), "off").unwrap_err().reason, Reason::InstanceInUse);
    // Taking back what is pending touches nothing.
    assert_eq!(counts(&plan_one(busy, "7x1g").unwrap()), [1, 0, 6]);
}

#[test]
fn only_gpus_that_differ_are_reset() {
    let node = node(vec![off(gpu(AMPERE, 0)), holding(gpu(AMPERE, 1), "1g@0* 1g@1 2g@2 3g@4")]);
    let plan = plan(&node, "2x1g 2g 3g").unwrap();
    assert_eq!((plan.summary.mode_changes, plan.summary.resets), (1, 1));
    assert!(!plan.gpus[0].is_empty() && plan.gpus[1].is_empty());
}

#[test]
fn says_where_profiles_are_provisional() {
    let hidden = Gpu { profiles_from: ProfileSource::Table, ..off(gpu(AMPERE, 0)) };
    let node = node(vec![hidden.clone(), gpu(AMPERE, 1)]);
    let mut target = wish(&hidden, "7x1g");
    target.provisional = true;
    let target = Target {
        layout: "x".into(),
        gpus: vec![target, wish(&node.gpus[1], "7x1g")],
        blocked: vec![],
        untouched: vec![],
        notes: vec![],
    };
    let plan = make(&node, &target, &Policy::default()).unwrap();
    assert!(plan.gpus[0].provisional && !plan.gpus[1].provisional);
    assert!(plan.notes[0].message.starts_with("GPU0:"), "{:?}", plan.notes);
}

#[test]
fn refuses_a_gpu_without_mig_and_one_that_has_gone() {
    let none = crate::fixtures::plain_gpu(0);
    assert_eq!(plan_one(none, "").unwrap_err().reason, Reason::MigUnsupported);
    let target = Target {
        layout: "x".into(),
        gpus: vec![wish(&gpu(AMPERE, 5), "7x1g")],
        blocked: vec![],
        untouched: vec![],
        notes: vec![],
    };
    let faults = make(&node(vec![gpu(AMPERE, 0)]), &target, &Policy::default()).unwrap_err();
    assert_eq!((faults[0].reason, faults[0].gpu), (Reason::NodeChanged, Some(5)));
}
