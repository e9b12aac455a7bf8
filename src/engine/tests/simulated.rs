//! Whole applies on simulated nodes: what ends right, and what is left where something goes wrong.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod common;

use common::{Simulated, held, plan, planned};
use migd_core::{
    node::{InUse, Node},
    plan::Action,
    reason::{Exit, Reason},
};
use migd_engine::{Event, GpuResult, Outcome, Progress, Site, Workers, apply};
use rstest::rstest;
use std::time::{Duration, Instant};

const BALANCED: &str = "{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 2, 2g.10gb: 1, 3g.20gb: 1}}";
const BALANCED_80: &str =
    "{devices: all, mig-enabled: true, mig-devices: {1g.10gb: 2, 2g.20gb: 1, 3g.40gb: 1}}";

async fn open(site: Site) -> (Workers, Node) {
    let mut workers = Workers::open(site).await.unwrap();
    let node = workers.snapshot().await;
    (workers, node)
}

fn results(outcome: &Outcome) -> Vec<GpuResult> {
    outcome.gpus.iter().map(|gpu| gpu.result).collect()
}

fn signal(pid: u32, name: &str) {
    let kill = std::process::Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap();
    assert!(kill.success());
}

#[rstest]
#[case::ampere("2xa100-40gb", BALANCED)]
#[case::hopper("2xh100-sxm-80gb", BALANCED_80)]
#[tokio::test]
async fn goes_from_off_to_a_layout_in_one_apply_and_then_has_nothing_to_do(
    #[case] name: &str,
    #[case] layout: &str,
) {
    let simulated = Simulated::new(name);
    let (mut workers, node) = open(simulated.site()).await;
    assert!(node.gpus.iter().all(|gpu| !gpu.mig_enabled()));
    let outcome = apply(&planned(&node, &[layout]), &mut workers, &Progress::silent()).await;
    assert_eq!(results(&outcome), [GpuResult::Changed; 2], "{outcome:#?}");
    assert_eq!(outcome.exit(), Exit::Done);
    workers.close().await;

    let before = simulated.writes().len();
    let calls = simulated.calls().len();
    let (mut workers, node) = open(simulated.site()).await;
    let plan = planned(&node, &[layout]);
    assert!(plan.is_empty(), "{plan:#?}");
    let outcome = apply(&plan, &mut workers, &Progress::silent()).await;
    assert_eq!(results(&outcome), [GpuResult::Unchanged; 2]);
    workers.close().await;
    assert_eq!(simulated.writes().len(), before, "a second apply writes nothing");
    let calls = simulated.calls().len() - calls;
    assert!(calls <= 2 * 62 + 8, "{calls} driver calls for two GPUs with four instances each");
}

#[tokio::test]
async fn keeps_a_busy_instance_with_its_id_and_uuid() {
    let simulated = Simulated::new("1xa100-40gb");
    simulated.simulate("set", &["0", "1g@0* 1g@1 2g@2 3g@4"]);
    let (mut workers, node) = open(simulated.site()).await;
    let busy = node.gpus[0].instances[0].clone();
    assert_eq!(busy.in_use, InUse::Yes);
    let plan = planned(&node, &["{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}"]);
    let outcome = apply(&plan, &mut workers, &Progress::silent()).await;
    assert_eq!(results(&outcome), [GpuResult::Changed], "{outcome:#?}");
    assert_eq!((outcome.totals.created, outcome.totals.destroyed), (5, 2));
    let node = workers.snapshot().await;
    assert_eq!(node.gpus[0].instances[0], busy);
    assert_eq!(node.gpus[0].instances.len(), 7);
    workers.close().await;
}

#[tokio::test]
async fn a_killed_worker_costs_its_own_gpu_and_the_next_apply_converges() {
    let simulated = Simulated::new("2xa100-40gb");
    for gpu in ["0", "1"] {
        simulated.simulate("set", &[gpu, "on"]);
    }
    let (mut workers, node) = open(simulated.site()).await;
    let plan = planned(&node, &[BALANCED]);
    let victim = workers.pids()[0].1;
    let (progress, mut events) = Progress::channel();
    let killer = async {
        let mut created = 0;
        while let Some(event) = events.recv().await {
            let creates =
                matches!(event, Event::Started { index: 0, action: Action::CreateInstance { .. }, .. });
            created += u32::from(creates);
            if creates && created == 2 {
                signal(victim, "KILL");
            }
        }
    };
    let applying = async {
        let outcome = apply(&plan, &mut workers, &progress).await;
        drop(progress);
        outcome
    };
    let (outcome, ()) = tokio::join!(applying, killer);
    assert_eq!(results(&outcome), [GpuResult::RolledBack, GpuResult::Changed], "{outcome:#?}");
    assert_eq!(outcome.gpus[0].cause.as_ref().unwrap().reason, Reason::WorkerLost);
    assert_eq!(outcome.exit(), Exit::RolledBack);
    let node = workers.snapshot().await;
    assert_eq!(held(&node.gpus[0]), "", "as it was before");

    let outcome = apply(&planned(&node, &[BALANCED]), &mut workers, &Progress::silent()).await;
    assert_eq!(results(&outcome), [GpuResult::Changed, GpuResult::Unchanged], "{outcome:#?}");
    workers.close().await;
}

#[tokio::test]
async fn a_hung_gpu_does_not_keep_the_others_waiting() {
    let simulated = Simulated::new("3xa100-40gb");
    let limit = Duration::from_millis(500);
    let (mut workers, node) = open(Site { read_limit: limit, ..simulated.site() }).await;
    assert_eq!(node.gpus.len(), 3);
    signal(workers.pids()[1].1, "STOP");
    let begun = Instant::now();
    let node = workers.snapshot().await;
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    let indexes: Vec<u32> = node.gpus.iter().map(|gpu| gpu.index).collect();
    assert_eq!(indexes, [0, 2]);
    assert_eq!((node.unavailable[0].index, node.unavailable[0].reason), (1, Reason::WorkerHung));
    assert!(node.unavailable[0].uuid.is_some(), "who it is was known before");
    // What was killed has died, so a new worker reads the GPU again.
    assert_eq!(workers.snapshot().await.gpus.len(), 3);
    workers.close().await;
}

#[tokio::test]
async fn a_node_that_changed_since_the_plan_is_not_written_to_anywhere() {
    let simulated = Simulated::new("2xa100-40gb");
    let (mut workers, node) = open(simulated.site()).await;
    let plan = planned(&node, &[BALANCED]);
    simulated.simulate("set", &["1", "3g@4"]);
    let before = simulated.writes().len();
    let outcome = apply(&plan, &mut workers, &Progress::silent()).await;
    assert_eq!(results(&outcome), [GpuResult::NotStarted; 2]);
    assert!(outcome.gpus.iter().all(|gpu| gpu.reason == Some(Reason::NodeChanged)), "{outcome:#?}");
    assert_eq!(simulated.writes().len(), before);
    workers.close().await;
}

#[tokio::test]
async fn an_instance_that_became_busy_since_the_plan_stops_it_before_the_first_write() {
    let simulated = Simulated::new("2xa100-40gb");
    for gpu in ["0", "1"] {
        simulated.simulate("set", &[gpu, "3g@0 3g@4"]);
    }
    let (mut workers, node) = open(simulated.site()).await;
    let plan = planned(&node, &["{devices: all, mig-enabled: true, mig-devices: {7g.40gb: 1}}"]);
    simulated.simulate("set", &["1", "3g@0 3g@4*"]);
    let before = simulated.writes().len();
    let outcome = apply(&plan, &mut workers, &Progress::silent()).await;
    assert_eq!(results(&outcome), [GpuResult::NotStarted, GpuResult::Blocked], "{outcome:#?}");
    assert_eq!(outcome.exit(), Exit::Blocked);
    assert_eq!(simulated.writes().len(), before);
    workers.close().await;
}

/// The planner would never say this: the last instance has no room.
#[rstest]
#[case::instances_alone("3g@0 2g@4", "3g.20gb@4 3g.20gb@0 1g.5gb@0")]
#[case::with_the_mode("off", "3g.20gb@4 3g.20gb@0 1g.5gb@0")]
#[tokio::test]
async fn a_step_that_fails_is_undone_with_all_before_it(#[case] before: &str, #[case] wanted: &str) {
    let simulated = Simulated::new("1xa100-40gb");
    simulated.simulate("set", &["0", before]);
    let (mut workers, node) = open(simulated.site()).await;
    let was = node.gpus[0].clone();
    let outcome = apply(&plan(&node, &[(0, Some(wanted))]), &mut workers, &Progress::silent()).await;
    assert_eq!(results(&outcome), [GpuResult::RolledBack], "{outcome:#?}");
    assert_eq!(outcome.exit(), Exit::RolledBack);
    let gpu = &outcome.gpus[0];
    assert_eq!(gpu.cause.as_ref().unwrap().reason, Reason::DriverError);
    assert!(matches!(gpu.failed_step, Some(Action::CreateInstance { .. })), "{:?}", gpu.failed_step);
    assert_eq!(gpu.undone.len(), gpu.done.iter().filter(|done| done.undo().is_some()).count());
    let node = workers.snapshot().await;
    assert_eq!((held(&node.gpus[0]), node.gpus[0].mig), (held(&was), was.mig));
    workers.close().await;
}

#[tokio::test]
async fn another_client_blocks_the_mode_of_ampere_and_no_pending_mode_is_left() {
    let simulated = Simulated::new("1xa100-40gb");
    let (mut workers, node) = open(simulated.site()).await;
    // Another program of ours that has the GPU open.
    let (other, _) = open(simulated.site()).await;
    let plan = planned(&node, &[BALANCED]);
    let outcome = apply(&plan, &mut workers, &Progress::silent()).await;
    assert_eq!(results(&outcome), [GpuResult::Blocked], "{outcome:#?}");
    assert_eq!(outcome.gpus[0].reason, Some(Reason::GpuInUse));
    assert_eq!(outcome.exit(), Exit::Blocked);
    let node = workers.snapshot().await;
    let mode = node.gpus[0].mig.unwrap();
    assert!(!mode.current && !mode.pending, "{mode:?}");
    other.close().await;
    let outcome = apply(&plan, &mut workers, &Progress::silent()).await;
    assert_eq!(results(&outcome), [GpuResult::Changed], "{outcome:#?}");
    workers.close().await;
}

#[tokio::test]
async fn compute_instances_are_split_as_planned() {
    let simulated = Simulated::new("1xa100-40gb");
    let (mut workers, node) = open(simulated.site()).await;
    let wanted = "3g.20gb@4(2+1) 2g.10gb@0(1+1) 1g.5gb@2";
    let outcome = apply(&plan(&node, &[(0, Some(wanted))]), &mut workers, &Progress::silent()).await;
    assert_eq!(results(&outcome), [GpuResult::Changed], "{outcome:#?}");
    let node = workers.snapshot().await;
    assert_eq!(held(&node.gpus[0]), "2g.10gb@0(1+1) 1g.5gb@2 3g.20gb@4(2+1)");
    let names: Vec<String> =
        node.gpus[0].instances[2].compute.iter().map(|c| c.profile.to_string()).collect();
    assert!(names.contains(&"2c.3g.20gb".to_owned()), "{names:?}");
    workers.close().await;
}

#[tokio::test]
async fn a_mode_that_cannot_become_real_stays_pending_and_the_next_apply_resets_only() {
    use std::os::unix::fs::PermissionsExt;
    let simulated = Simulated::new("2xa100-40gb");
    let folder = tempfile::tempdir().unwrap();
    let tool = folder.path().join("nvidia-smi");
    std::fs::write(&tool, "#!/bin/sh\necho Resetting GPU $3 is not supported.; exit 3\n").unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (mut workers, node) = open(Site { reset_tool: tool, ..simulated.site() }).await;
    let (other, _) = open(simulated.site()).await;
    let rule = "{devices: [1], mig-enabled: true, mig-devices: {3g.20gb: 2}}";
    let outcome = apply(&planned(&node, &[rule]), &mut workers, &Progress::silent()).await;
    assert_eq!(results(&outcome), [GpuResult::PendingReboot], "{outcome:#?}");
    assert_eq!((outcome.gpus[0].reason, outcome.exit()), (Some(Reason::RebootRequired), Exit::NeedsReset));
    workers.close().await;
    other.close().await;

    let (mut workers, node) = open(simulated.site()).await;
    let mode = node.gpus[1].mig.unwrap();
    assert!(!mode.current && mode.pending, "{mode:?}");
    let outcome = apply(&planned(&node, &[rule]), &mut workers, &Progress::silent()).await;
    assert_eq!(results(&outcome), [GpuResult::Changed], "{outcome:#?}");
    assert!(outcome.gpus[0].reset && outcome.totals.resets == 1, "{outcome:#?}");
    assert_eq!(outcome.gpus[0].done[0], Action::ResetIfPending);
    let node = workers.snapshot().await;
    assert_eq!(held(&node.gpus[1]), "3g.20gb@0 3g.20gb@4");
    assert!(!node.gpus[0].mig_enabled(), "the other GPU is left alone");
    workers.close().await;
}
