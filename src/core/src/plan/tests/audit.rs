//! The audit finds each kind of mistake.

use super::*;
use crate::{
    fixtures::{gpu, holding, node, off},
    node::InUse,
    profile::Placement,
};
use rstest::rstest;

/// Spoils the plan from `1g@0 1g@1 2g@2 3g@4` to 7 x 1g; answers what the audit says.
fn spoiled(spoil: impl Fn(&mut Plan, &mut Node)) -> Vec<String> {
    let mut node = node(vec![holding(gpu("a100-40gb", 0), "1g@0 1g@1 2g@2 3g@4")]);
    let mut plan = plan(&node, "7x1g").unwrap();
    spoil(&mut plan, &mut node);
    crate::plan::audit(&plan, &node).into_iter().map(|fault| fault.message).collect()
}

fn place(start: u32, size: u32) -> Placement {
    Placement { start, size }
}

type Spoil = fn(&mut Plan, &mut Node);

#[rstest]
#[case("format", |p: &mut Plan, _: &mut Node| p.format = "x".into())]
#[case("summary", |p: &mut Plan, _: &mut Node| p.summary.keep += 1)]
#[case("stands twice", |p: &mut Plan, _: &mut Node| { let g = p.gpus[0].clone(); p.gpus.push(g); })]
#[case("is not there", |_: &mut Plan, n: &mut Node| n.gpus.clear())]
#[case("as it was", |p: &mut Plan, _: &mut Node| p.gpus[0].fingerprint.clear())]
#[case("another address", |p: &mut Plan, _: &mut Node| p.gpus[0].pci.bus += 1)]
#[case("is in use", |_: &mut Plan, n: &mut Node| n.gpus[0].instances[2].in_use = InUse::Yes)]
#[case("is in use", |_: &mut Plan, n: &mut Node| n.gpus[0].instances[3].compute[0].in_use = InUse::Unknown)]
#[case("still has compute instances", |p: &mut Plan, _: &mut Node| { p.gpus[0].instance_steps.remove(0); })]
#[case("overlaps an instance", |p: &mut Plan, _: &mut Node| p.gpus[0].instance_steps.retain(|s| !matches!(s.action, Action::DestroyInstance { .. })))]
#[case("there is no", |p: &mut Plan, _: &mut Node| { let s = p.gpus[0].instance_steps[0].clone(); p.gpus[0].instance_steps.insert(0, s); })]
#[case("holds", |p: &mut Plan, _: &mut Node| { p.gpus[0].instance_steps.pop(); })]
#[case("holds", |p: &mut Plan, _: &mut Node| { p.gpus[0].after.pop(); })]
#[case("stays or comes", |p: &mut Plan, _: &mut Node| { p.gpus[0].create.pop(); })]
#[case("what goes", |p: &mut Plan, _: &mut Node| { p.gpus[0].destroy.pop(); })]
#[case("resets", |p: &mut Plan, _: &mut Node| p.gpus[0].reset = true)]
#[case("mode afterwards", |p: &mut Plan, _: &mut Node| p.gpus[0].mig_after = false)]
#[case("has no time", |p: &mut Plan, _: &mut Node| p.gpus[0].instance_steps[0].limit_ms = 0)]
#[case("among the instances", |p: &mut Plan, _: &mut Node| p.gpus[0].instance_steps.push(Step { action: Action::SetMode { enabled: true }, limit_ms: 1 }))]
#[case("before the modes are settled", |p: &mut Plan, _: &mut Node| { let s = p.gpus[0].instance_steps.pop().unwrap(); p.gpus[0].mode_steps.push(s); })]
#[case("while instances exist", |p: &mut Plan, _: &mut Node| p.gpus[0].mode_steps.push(Step { action: Action::SetMode { enabled: false }, limit_ms: 1 }))]
#[case("cannot lie", |p: &mut Plan, _: &mut Node| for s in &mut p.gpus[0].instance_steps { if let Action::CreateInstance { placement, .. } = &mut s.action { *placement = place(7, 1); } })]
#[case("has no profile", |p: &mut Plan, _: &mut Node| for s in &mut p.gpus[0].instance_steps { if let Action::CreateInstance { profile_id, .. } = &mut s.action { *profile_id = 99; } })]
#[case("does not fit", |p: &mut Plan, _: &mut Node| for s in &mut p.gpus[0].instance_steps { if let Action::CreateCompute { compute, .. } = &mut s.action { compute.slices = 2; } })]
#[case("without MIG", |_: &mut Plan, n: &mut Node| n.gpus[0].mig = None)]
fn finds(#[case] says: &str, #[case] spoil: Spoil) {
    let found = spoiled(spoil);
    assert!(found.iter().any(|message| message.contains(says)), "{says}: {found:#?}");
}

#[test]
fn finds_an_instance_created_while_mig_is_off() {
    let node = node(vec![off(gpu("a100-40gb", 0))]);
    let mut plan = plan(&node, "7x1g").unwrap();
    plan.gpus[0].mode_steps.retain(|step| step.action != Action::ResetIfPending);
    let found: Vec<String> = crate::plan::audit(&plan, &node).into_iter().map(|f| f.message).collect();
    assert!(found.iter().any(|message| message.contains("while MIG is off")), "{found:#?}");
}

#[test]
fn finds_a_reset_that_would_lose_instances() {
    let node = node(vec![holding(gpu("a100-40gb", 0), "1g@0")]);
    let mut plan = plan(&node, "off").unwrap();
    plan.gpus[0]
        .mode_steps
        .retain(|step| matches!(step.action, Action::SetMode { .. } | Action::ResetIfPending));
    let found: Vec<String> = crate::plan::audit(&plan, &node).into_iter().map(|f| f.message).collect();
    assert!(found.iter().any(|message| message.contains("a reset loses instances")), "{found:#?}");
}

#[test]
fn finds_too_many_slices_and_too_many_of_a_profile() {
    let node = node(vec![gpu("a100-40gb", 0)]);
    let mut plan = plan(&node, "1g+me 1g 4g").unwrap();
    for step in &mut plan.gpus[0].instance_steps {
        if let Action::CreateInstance { profile_id, placement, .. } = &mut step.action
            && *profile_id == 19
        {
            (*profile_id, *placement) = (20, place(6, 1));
        }
    }
    let found: Vec<String> = crate::plan::audit(&plan, &node).into_iter().map(|f| f.message).collect();
    assert!(found.iter().any(|message| message.contains("already 1 of 1g.5gb+me")), "{found:#?}");
}
