//! A node recorded through its driver is the same node to migctl.

use migd_tests::{Lab, program, run};
use std::process::Command;

#[test]
fn a_recorded_node_has_the_same_status() {
    let lab = Lab::new("mixed");
    lab.simulate("set", &["0", "1g@0* 2g@2 3g@4[1c,1c]"]).expect(0);
    lab.simulate("set", &["1", "1g@0 2g@2"]).expect(0);
    let file = lab.path("recorded.yaml");
    let migctl = program("migctl");
    let words = ["--", migctl.to_str().unwrap(), "simulate", "record", "-o", file.to_str().unwrap()];
    lab.simulate("run", &words).expect(0);
    let replayed = Lab::new(file.to_str().unwrap());
    let (mut first, mut second) = (lab.status(), replayed.status());
    for status in [&mut first, &mut second] {
        // MIG UUIDs are not in the file; the stand-ins of marked processes are numbered alike.
        for gpu in status["gpus"].as_array_mut().unwrap() {
            strip(gpu);
        }
    }
    assert_eq!(first["gpus"], second["gpus"]);
    assert_eq!(lab.holds(0), replayed.holds(0));
}

/// Takes UUIDs of MIG devices out.
fn strip(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(map) => {
            map.retain(|_, value| !value.as_str().is_some_and(|text| text.starts_with("MIG-")));
            map.values_mut().for_each(strip);
        }
        serde_json::Value::Array(all) => all.iter_mut().for_each(strip),
        _ => {}
    }
}

#[test]
fn without_a_driver_there_is_nothing_to_record() {
    let mut command = Command::new(program("migctl"));
    command.args(["simulate", "record", "--library", "/no/such.so"]);
    let ended = run(&mut command).expect(1);
    assert!(ended.err.contains("no driver to read"), "{}", ended.err);
}
