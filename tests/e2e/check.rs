//! `check` and `layouts`: what is wrong with files, without a GPU, and what a node can have.

use migd_tests::{Ended, Lab, program, run};
use serde_json::Value;
use std::process::{Command, Stdio};

fn check(words: &[&str]) -> Ended {
    run(Command::new(program("migctl")).env("MIGD_LAYOUT_PATH", "").arg("check").args(words))
}

const GOOD: &str = "layouts:\n  good: {gpus: [{match: all, instances: [3g, 2x 2g]}]}\n";
const SEVERAL: &str = "layouts:\n  a: {gpus: [{match: al, instances: 7x 1g}]}\n  \
                       b: {gpus: [{match: all, instances: balnced}], unlisted: kep}\n";

#[test]
fn all_faults_of_all_files_are_told_at_once_with_their_places() {
    let lab = Lab::new("1xa100-40gb");
    let (good, bad) = (lab.file("good.yaml", GOOD), lab.file("bad.yaml", SEVERAL));
    let (good, bad) = (good.to_str().unwrap(), bad.to_str().unwrap());
    check(&[good]).expect(0);
    let told = check(&[good, bad]).expect(3);
    for place in ["bad.yaml:2:22", "bad.yaml:3:38", "bad.yaml:3:59"] {
        assert!(told.err.contains(place), "{place}: {}", told.err);
    }
    for near in ["did you mean all?", "did you mean balanced?", "did you mean keep?"] {
        assert!(told.err.contains(near), "{near}: {}", told.err);
    }
    let checked = check(&["--json", bad]).expect(3).json();
    assert_eq!(checked["format"], "migd-check/1");
    assert_eq!(checked["faults"].as_array().unwrap().len(), 3);
    let mut missing = check(&["/nonexistent/x.yaml", good, "--json"]).expect(3).json();
    assert_eq!(missing["faults"][0]["reason"].take(), "file-unreadable");
    assert_eq!(missing["layouts"][0]["name"], "good");
}

#[test]
fn every_malformed_file_is_told_with_place_reason_and_suggestion_and_ends_with_3() {
    let folder = migd_tests::root().join("src/core/tests/data/malformed");
    let expected = std::fs::read_to_string(folder.join("expected.txt")).unwrap();
    let mut seen = 0;
    for row in expected.lines().skip(1) {
        let [name, place, reason, ..] = row.split(' ').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let path = folder.join(format!("{name}.yaml"));
        let told = check(&[path.to_str().unwrap()]).expect(3);
        for part in [format!("{name}.yaml:{place}\n"), format!("error[{reason}]: "), "  = help: ".to_owned()]
        {
            assert!(told.err.contains(&part), "{part}: {}", told.err);
        }
        seen += 1;
    }
    assert!(seen >= 50, "{seen}");
}

#[test]
fn reads_standard_input() {
    let mut child = Command::new(program("migctl"))
        .args(["check", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), SEVERAL.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("<stdin>:2:22"));
}

#[test]
fn says_for_a_node_that_is_not_here_what_can_be_placed() {
    let lab = Lab::new("1xa100-40gb");
    let file = lab.file("good.yaml", GOOD);
    let node = lab.file("node.yaml", "driver: 535.54.03\ngpus: [{gpu: a30-24gb, count: 2}]\n");
    let file = file.to_str().unwrap();
    let told = check(&[file, "--for", "8xh100-sxm-80gb"]).expect(0);
    assert!(told.out.contains("good  can be placed on 8xh100-sxm-80gb"), "{told:?}");
    let checked = check(&[file, "--for", node.to_str().unwrap(), "--json"]).expect(3).json();
    assert_eq!(checked["layouts"][0]["fits"], false);
    assert_eq!(checked["layouts"][0]["details"][0]["reason"], "profile-unknown");
    let failure = check(&[file, "--for", "8xh100", "--json"]).expect(3).json();
    assert_eq!(failure["reason"], "node-invalid");
    // The node at hand.
    lab.run(&["check", file, "--for", "this"]).expect(0);
}

#[test]
fn every_shipped_layout_is_right_and_those_for_other_gpus_are_no_fault() {
    for node in ["8xa100-40gb", "a30x4", "rtx-pro-6000x8", "mixed", "gb200", "4xh100-sxm-64gb"] {
        let told = check(&["--for", node]).expect(0);
        assert!(told.out.contains("all-balanced"), "{node}: {told:?}");
    }
}

#[test]
fn layouts_are_listed_with_their_file_and_whether_this_node_can_have_them() {
    let lab = Lab::new("2xa30-24gb");
    std::fs::create_dir(lab.path("layouts.d")).unwrap();
    lab.file("layouts.d/site.yaml", GOOD);
    lab.file("layouts.d/wrong.yaml", "layouts: [");
    let listed = lab.run(&["layouts", "--json"]).expect(0).json();
    let find = |name: &str| -> Value {
        listed["layouts"].as_array().unwrap().iter().find(|l| l["name"] == name).unwrap().clone()
    };
    assert_eq!(find("good")["fits"], false);
    assert!(find("good")["file"].as_str().unwrap().ends_with("layouts.d/site.yaml"));
    assert_eq!(find("good")["details"][0]["reason"], "profile-unknown");
    assert_eq!(find("all-balanced")["fits"], true);
    assert_eq!(listed["faults"][0]["reason"], "layout-syntax");
    // A wrong file spoils no other's layouts.
    let told = lab.run(&["apply", "all-balanced"]).expect(0);
    assert!(told.err.contains("1 error in other layout files; `migctl check` shows them"), "{told:?}");
    let failure = lab.run(&["apply", "wrong", "--json"]).expect(3).json();
    let reasons: Vec<&str> =
        failure["details"].as_array().unwrap().iter().map(|d| d["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["layout-unknown", "layout-syntax"]);
}

#[test]
fn sharing_is_checked_and_shown_and_refused_by_apply_before_the_first_write() {
    let lab = Lab::new("1xa100-40gb");
    let text = "layouts: {s: {gpus: [{match: all, instances: 1g, sharing: {mps: {}}}]}}\n";
    let file = lab.file("s.yaml", text);
    let file = file.to_str().unwrap();
    check(&[file, "--for", "1xa100-40gb"]).expect(0);
    assert!(lab.run(&["plan", "s", "-f", file]).expect(2).err.contains("sharing-unavailable"));
    lab.trace();
    let failure = lab.run(&["apply", "s", "-f", file, "--json"]).expect(3).json();
    assert_eq!(failure["reason"], "sharing-unavailable");
    assert!(migd_tests::mutating(&lab.trace()).is_empty());
}
