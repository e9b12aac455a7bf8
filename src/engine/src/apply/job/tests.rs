use super::*;
use migd_core::{
    node::{Architecture, ProfileSource},
    profile::Placement,
};

fn failure(reason: Reason) -> Failure {
    Failure::new(reason, "why")
}

fn gpu(mig: MigMode) -> Gpu {
    Gpu {
        index: 0,
        uuid: migd_core::id::GpuUuid("GPU-0".to_owned()),
        model: "NVIDIA A30".to_owned(),
        pci: "0000:01:00.0".parse().unwrap(),
        pci_id: migd_core::id::PciId::from_nvml(0x20B7_10DE, 0),
        minor: None,
        architecture: Architecture::Ampere,
        memory_mib: 24576,
        mig: Some(mig),
        profiles: Vec::new(),
        profiles_from: ProfileSource::Nobody,
        instances: Vec::new(),
    }
}

#[test]
fn a_holder_blocks_and_anything_else_is_rolled_back() {
    assert_eq!(verdict(&failure(Reason::GpuInUse), false), (GpuResult::Blocked, failure(Reason::GpuInUse)));
    assert_eq!(verdict(&failure(Reason::InstanceInUse), true).0, GpuResult::Blocked);
    let (result, why) = verdict(&failure(Reason::DriverError), false);
    assert_eq!((result, why.reason), (GpuResult::RolledBack, Reason::RolledBack));
    assert!(why.message.starts_with("why"), "{}", why.message);
}

#[test]
fn a_denial_is_told_as_such_only_if_nothing_was_done() {
    let denied = failure(Reason::PermissionDenied);
    assert_eq!(verdict(&denied, true).1.reason.exit(), Exit::Denied);
    assert_eq!(verdict(&denied, false).1.reason.exit(), Exit::RolledBack);
}

#[test]
fn the_gpu_says_whether_a_step_happened_that_nobody_saw_end() {
    let step = Action::CreateInstance {
        placement: Placement { start: 0, size: 1 },
        profile_id: 14,
        profile: "1g.6gb".parse().unwrap(),
    };
    let mode = MigMode { current: true, pending: true };
    let mut now = gpu(mode);
    assert!(!happened(&step, &[], &now));
    now.instances.push(migd_core::node::GpuInstance {
        id: 3,
        profile_id: 14,
        profile: "1g.6gb".parse().unwrap(),
        placement: Placement { start: 0, size: 1 },
        in_use: migd_core::node::InUse::No,
        processes: Vec::new(),
        compute: Vec::new(),
    });
    assert!(happened(&step, &[], &now));
    let undo = step.undo().unwrap();
    assert!(!happened(&undo, &shape::of(&now), &now));
    let expected = shape::of(&now);
    now.instances.clear();
    assert!(happened(&undo, &expected, &now));
}

#[test]
fn a_mode_that_is_only_pending_has_been_set() {
    let step = Action::SetMode { enabled: true };
    assert!(happened(&step, &[], &gpu(MigMode { current: false, pending: true })));
    assert!(!happened(&step, &[], &gpu(MigMode { current: false, pending: false })));
}

#[test]
fn clearing_a_pending_mode_is_not_undone_by_turning_the_mode() {
    let plan: GpuPlan = serde_json::from_value(serde_json::json!({
        "index": 0, "uuid": "GPU-0", "model": "NVIDIA A30", "pci": "0000:01:00.0", "fingerprint": "",
        "provisional": false, "mode_now": null, "mig_after": true, "reset": false, "keep": [], "destroy": [],
        "create": [], "mode_steps": [], "instance_steps": [], "after": [],
    }))
    .unwrap();
    let mut job = Job::new(&plan);
    let set = Action::SetMode { enabled: true };
    job.before = Some(gpu(MigMode { current: true, pending: false }));
    assert_eq!(job.undoing(&set), None);
    job.before = Some(gpu(MigMode { current: false, pending: false }));
    assert_eq!(job.undoing(&set), Some(Action::SetMode { enabled: false }));
}
