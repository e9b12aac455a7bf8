//! What is typed wrongly, missing or broken gets its exit code and its reason, with `--json` as one document.

use migd_tests::{Lab, program, run};
use std::process::{Command, Stdio};

#[test]
fn usage_errors_are_3_and_help_is_0() {
    let migctl = || Command::new(program("migctl"));
    run(&mut migctl()).expect(3);
    run(migctl().arg("frobnicate")).expect(3);
    run(migctl().args(["apply"])).expect(3);
    run(migctl().args(["status", "--nonsense"])).expect(3);
    run(migctl().args(["status", "--state", "/nonexistent"])).expect(3);
    let help = run(migctl().arg("--help")).expect(0);
    assert!(help.out.contains("apply") && help.out.contains("Exit codes"), "{help:?}");
    run(migctl().arg("--version")).expect(0);
    let failure = run(migctl().args(["frobnicate", "--json"])).expect(3).json();
    assert_eq!(failure["reason"], "usage-invalid");
}

#[test]
fn an_unknown_layout_names_the_nearest() {
    let lab = Lab::new("1xa100-40gb");
    let failure = lab.run(&["apply", "all-balenced", "--json"]).expect(3).json();
    assert_eq!(failure["reason"], "layout-unknown");
    assert_eq!(failure["details"][0]["near"][0], "all-balanced");
    let told = lab.run(&["apply", "all-balenced"]).expect(3);
    assert!(told.err.contains("all-balanced") && told.out.is_empty(), "{told:?}");
}

#[test]
fn an_unreadable_file_is_said_by_name() {
    let lab = Lab::new("1xa100-40gb");
    for path in ["/nonexistent/x.yaml", "/"] {
        let failure = lab.run(&["plan", "x", "-f", path, "--json"]).expect(3).json();
        assert_eq!(failure["reason"], "file-unreadable");
        assert!(failure["message"].as_str().unwrap().contains(path), "{failure}");
    }
    let broken = lab.file("broken.yaml", "version: v1\nmig-configs:\n  x: [\n");
    let told = lab.run(&["plan", "x", "-f", broken.to_str().unwrap()]).expect(3);
    assert!(told.err.contains("broken.yaml:"), "{told:?}");
}

#[test]
fn an_unknown_node_is_invalid_and_a_folder_of_another_node_too() {
    let lab = Lab::new("8xa100-400gb");
    let failure = lab.run(&["status", "--json"]).expect(3).json();
    assert_eq!(failure["reason"], "node-invalid");
    let lab = Lab::new("1xa100-40gb");
    lab.run(&["status"]).expect(0);
    let mut other = Command::new(program("migctl"));
    other.args(["--simulate", "2xa100-40gb", "--state"]).arg(lab.path("state")).args(["status", "--json"]);
    assert_eq!(run(&mut other).expect(3).json()["reason"], "node-invalid");
}

#[test]
fn a_machine_without_a_driver_says_so() {
    let failure = run(Command::new(program("migctl")).args(["status", "--json"])).expect(8).json();
    assert_eq!(failure["reason"], "driver-missing");
    let told = run(Command::new(program("migctl")).arg("status")).expect(8);
    assert!(told.err.starts_with("error[driver-missing]"), "{told:?}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let lab = Lab::new("8xa100-40gb");
    let mut child = lab.migctl().arg("status").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn an_apply_whose_readers_went_away_goes_on_to_its_end() {
    let lab = Lab::new("2xa100-40gb");
    let mut child =
        lab.migctl().args(["apply", "all-1g"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(lab.run(&["plan", "all-1g"]).code(), 0);
}

#[test]
fn status_json_has_its_promised_shape() {
    let lab = Lab::new("1xa100-40gb");
    lab.simulate("set", &["0", "3g@4 1g@0*"]).expect(0);
    let status = lab.status();
    let gpu = &status["gpus"][0];
    assert_eq!(status["format"], "migd-status/1");
    assert_eq!(
        (&gpu["index"], &gpu["mig"]["current"], &gpu["mig"]["pending"]),
        (&0.into(), &"enabled".into(), &"enabled".into())
    );
    assert!(gpu["uuid"].as_str().unwrap().starts_with("GPU-"));
    let three = gpu["instances"].as_array().unwrap().iter().find(|i| i["profile"] == "3g.20gb").unwrap();
    assert_eq!(
        (&three["profile_id"], &three["start"], &three["size"], &three["in_use"]),
        (&9.into(), &4.into(), &4.into(), &false.into())
    );
    assert_eq!((&three["compute"][0]["profile"], &three["compute"][0]["ci"]), (&"3g.20gb".into(), &0.into()));
    assert!(three["compute"][0]["uuid"].as_str().unwrap().starts_with("MIG-"));
    let one = gpu["instances"].as_array().unwrap().iter().find(|i| i["profile"] == "1g.5gb").unwrap();
    assert_eq!((&one["in_use"], &one["compute"][0]["in_use"]), (&true.into(), &true.into()));
}
