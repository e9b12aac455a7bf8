//! Every call of the door against a simulated driver.
//!
//! The library reads its node from the environment, so each test runs itself again with that set.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use migd_core::{
    node::{Architecture, MigMode},
    profile::Placement,
};
use migd_nvml::{Code, Device, Library, ProcessKind, ProfileVersion};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Set where a test runs again inside a node.
const INSIDE: &str = "MIGD_TEST_INSIDE";

/// Whether the test is to go on here; if not, it has run inside a node named so.
fn inside(test: &str, node: &str, holds: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let programs = programs();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("node");
    let simulate = |verb: &str, arguments: &[&str]| -> String {
        let mut command = Command::new(programs.join("nvml-simulator"));
        let output = command.args([verb, node]).args(arguments).arg("--state").arg(&state).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{verb}: {error}");
        String::from_utf8(output.stdout).unwrap()
    };
    simulate("set", &["0", holds]);
    let environment = simulate("env", &[]);
    let pairs = environment.lines().filter_map(|line| {
        let (key, value) = line.trim_start_matches("export ").split_once('=')?;
        Some((key, value.trim_matches(['\'', '"'])))
    });
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", test, "--nocapture"]).envs(pairs).env(INSIDE, "1");
    let output = again.output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    false
}

/// Where cargo puts programs, with the simulator built: a test of this package alone does not build it.
fn programs() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let programs = test.parent().and_then(Path::parent).unwrap().to_owned();
    // `make test` has built everything before and says so.
    if std::env::var_os("MIGD_BUILT").is_none() {
        let profile = match programs.file_name().unwrap().to_str().unwrap() {
            "debug" => "dev",
            other => other,
        };
        let status = Command::new(env!("CARGO"))
            .args(["build", "--workspace", "-q", "--offline", "--profile", profile])
            .env("CARGO_TARGET_DIR", programs.parent().unwrap())
            .status()
            .unwrap();
        assert!(status.success(), "the workspace does not build");
    }
    programs
}

fn place(start: u32, size: u32) -> Placement {
    Placement { start, size }
}

#[test]
fn reads_what_a_gpu_is() {
    if !inside("reads_what_a_gpu_is", "2xa100-40gb", "off") {
        return;
    }
    let library = Library::open(None).unwrap();
    assert!(library.nvml_version().unwrap().ends_with(&library.driver_version().unwrap()));
    assert_eq!(library.device_count().unwrap(), 2);
    let first = library.device_by_index(1).unwrap();
    let pci = first.pci().unwrap();
    let same = library.device_by_pci(pci.address).unwrap();
    assert_eq!(same.uuid().unwrap(), first.uuid().unwrap());
    assert!(same.uuid().unwrap().starts_with("GPU-"));
    assert_eq!((pci.id.vendor, pci.id.device), (0x10DE, 0x20B0));
    assert_eq!(same.architecture().unwrap(), Architecture::Ampere);
    assert_eq!(same.memory_total().unwrap() >> 20, 40960);
    assert!(same.name().unwrap().contains("A100"));
    same.minor().unwrap();
    assert_eq!(same.mig_mode().unwrap(), Some(MigMode { current: false, pending: false }));
    assert!(same.mig_ids().unwrap_err().is(Code::INVALID_ARGUMENT));
    let nowhere = library.device_by_pci("0000:ff:00.0".parse().unwrap()).unwrap_err();
    assert!(nowhere.is(Code::NOT_FOUND), "{nowhere}");
    assert!(library.device_by_index(2).unwrap_err().is(Code::INVALID_ARGUMENT));
}

#[test]
fn every_version_of_a_profile_says_the_same() {
    if !inside("every_version_of_a_profile_says_the_same", "1xa100-40gb", "on") {
        return;
    }
    let library = Library::open(None).unwrap();
    let gpu = library.device_by_index(0).unwrap();
    let [v3, v2, v1] = ProfileVersion::NEWEST_FIRST.map(|version| gpu.profile_info(2, version).unwrap());
    assert_eq!((v3.id, v3.slices, v3.name.unwrap().to_string().as_str()), (9, 3, "3g.20gb"));
    assert_eq!(v2, v3);
    assert_eq!(migd_nvml::ProfileInfo { name: v3.name, ..v1 }, v3);
    assert_eq!(gpu.profile_info_by_id(9).unwrap(), v3);
    assert_eq!(gpu.possible_placements(9).unwrap(), [place(0, 4), place(4, 4)]);
    assert_eq!(gpu.possible_placements(19).unwrap().len(), 7);
    assert!(gpu.possible_placements(99).unwrap_err().is(Code::INVALID_ARGUMENT));
    let past_the_end = gpu.profile_info(31, ProfileVersion::V1).unwrap_err();
    assert!(past_the_end.is(Code::INVALID_ARGUMENT) && past_the_end.may_be_version());
    assert!(gpu.profile_info(6, ProfileVersion::V3).unwrap_err().is(Code::NOT_SUPPORTED));
    assert_eq!(gpu.remaining_capacity(9).unwrap(), 2);
}

#[test]
fn creates_finds_and_destroys_instances() {
    if !inside("creates_finds_and_destroys_instances", "1xa100-40gb", "on") {
        return;
    }
    let library = Library::open(None).unwrap();
    let gpu = library.device_by_index(0).unwrap();
    let made = gpu.create_gpu_instance(9, place(4, 4)).unwrap();
    let info = made.info().unwrap();
    assert_eq!((info.profile_id, info.placement), (9, place(4, 4)));
    let taken = gpu.create_gpu_instance(19, place(5, 1)).unwrap_err();
    assert!(taken.is(Code::INSUFFICIENT_RESOURCES), "{taken}");
    assert_eq!(gpu.gpu_instances(9).unwrap().len(), 1);
    assert!(gpu.gpu_instances(19).unwrap().is_empty());
    assert_eq!(gpu.gpu_instance(info.id).unwrap().info().unwrap(), info);
    assert_eq!(gpu.max_mig_devices().unwrap(), 7);
    assert!(gpu.mig_device(0).unwrap_err().is(Code::NOT_FOUND), "an instance alone is no MIG device");

    let profile = made.compute_profile(1).unwrap();
    assert_eq!((profile.slices, profile.max_instances), (2, 1));
    assert_eq!(made.remaining_compute_capacity(profile.id).unwrap(), 1);
    let places = made.compute_placements(profile.id).unwrap();
    let compute = made.create_compute_instance(profile.id, Some(places[0])).unwrap();
    let seen = compute.info().unwrap();
    assert_eq!((seen.profile_id, seen.placement), (profile.id, Some(places[0])));
    let device: Device<'_> = seen.device.unwrap();
    assert!(device.uuid().unwrap().starts_with("MIG-"));
    assert_eq!(device.mig_ids().unwrap(), (info.id, seen.id));
    assert_eq!(gpu.mig_device(0).unwrap().uuid().unwrap(), device.uuid().unwrap());
    made.create_compute_instance(made.compute_profile(0).unwrap().id, None).unwrap();
    assert_eq!(made.compute_instances(profile.id).unwrap().len(), 1);

    assert!(made.destroy().unwrap_err().is(Code::IN_USE), "it has compute instances");
    for slot in [0, 1] {
        for compute in made.compute_instances(slot).unwrap() {
            compute.destroy().unwrap();
        }
    }
    assert!(made.compute_instance(seen.id).unwrap_err().is(Code::NOT_FOUND));
    made.destroy().unwrap();
    assert!(gpu.gpu_instance(info.id).unwrap_err().is(Code::NOT_FOUND));
    assert!(made.info().is_err() && compute.info().is_err(), "handles of what is gone answer errors");
}

#[test]
fn says_who_is_in_which_instance() {
    if !inside("says_who_is_in_which_instance", "1xa100-40gb", "1g@0* 3g@4") {
        return;
    }
    let library = Library::open(None).unwrap();
    let gpu = library.device_by_index(0).unwrap();
    let busy = gpu.gpu_instances(19).unwrap()[0].info().unwrap();
    let processes = gpu.processes(ProcessKind::Compute).unwrap();
    assert!(!processes.is_empty());
    assert!(processes.iter().all(|process| process.gpu_instance == Some(busy.id)), "{processes:?}");
    for kind in [ProcessKind::Graphics, ProcessKind::Mps] {
        match gpu.processes(kind) {
            Ok(none) => assert!(none.is_empty(), "{none:?}"),
            Err(error) => assert!(error.is_absent(), "{error}"),
        }
    }
}

#[test]
fn never_loses_the_activation_status_of_a_mode() {
    if !inside("never_loses_the_activation_status_of_a_mode", "1xa100-40gb", "off") {
        return;
    }
    // Another client: this program once more, that opens the GPU and waits for its end.
    if std::env::var_os("MIGD_TEST_CLIENT").is_some() {
        let library = Library::open(None).unwrap();
        let _gpu = library.device_by_index(0).unwrap();
        println!("open");
        std::io::stdin().read_line(&mut String::new()).unwrap();
        return;
    }
    let mut client = Command::new(std::env::current_exe().unwrap());
    client.args(["--exact", "never_loses_the_activation_status_of_a_mode", "--nocapture"]);
    client.env("MIGD_TEST_CLIENT", "1").stdin(std::process::Stdio::piped());
    let mut client = client.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut said = std::io::BufReader::new(client.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("open") {
        assert_ne!(std::io::BufRead::read_line(&mut said, &mut line).unwrap(), 0, "{line}");
    }
    let library = Library::open(None).unwrap();
    let gpu = library.device_by_index(0).unwrap();
    let status = gpu.set_mig_mode(true).unwrap();
    assert!(!status.is_active() && status.0 == Code::IN_USE, "{status:?}");
    assert_eq!(gpu.mig_mode().unwrap(), Some(MigMode { current: false, pending: true }));
    drop(client.stdin.take());
    assert!(client.wait().unwrap().success());
    assert!(gpu.set_mig_mode(true).unwrap().is_active());
    assert_eq!(gpu.mig_mode().unwrap(), Some(MigMode { current: true, pending: true }));
}
