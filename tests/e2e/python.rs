//! NVIDIA's own Python binding against the simulated driver: it finds on each GPU of the table what the table
//! states, and what it makes `migctl` sees.

use migd_tests::{Lab, root};

#[test]
fn finds_on_every_gpu_what_the_table_states() {
    let lab = Lab::new("1xa100-40gb");
    let table = root().join("profiles/gpus.yaml");
    let keys = lab.python("table.py", &["keys", table.to_str().unwrap()]).expect(0).json();
    let keys = keys.as_array().unwrap();
    assert_eq!(keys.len(), 22, "24 GPUs, two of them without known placements");
    for key in keys {
        let key = key.as_str().unwrap();
        let lab = Lab::new(&format!("1x{key}"));
        lab.python("table.py", &["check", table.to_str().unwrap(), key]).expect(0);
    }
}

#[test]
fn creates_and_destroys_what_status_then_shows() {
    let lab = Lab::new("1xa100-40gb");
    lab.python("change.py", &["on"]).expect(0);
    assert_eq!(lab.status()["gpus"][0]["mig"]["current"], "enabled");
    lab.python("change.py", &["create", "9:4", "14:2", "19:0"]).expect(0);
    assert_eq!(lab.holds(0), "1g.5gb@0 2g.10gb@2 3g.20gb@4");
    lab.python("change.py", &["destroy", "14:2"]).expect(0);
    assert_eq!(lab.holds(0), "1g.5gb@0 3g.20gb@4");
    lab.run(&["apply", "all-balanced"]).expect(0);
    lab.python("change.py", &["clear"]).expect(0);
    assert_eq!(lab.holds(0), "");
}

#[test]
fn every_mig_function_answers_as_the_driver_does() {
    for node in ["1xa100-40gb", "1xh100-sxm-80gb", "1xa30-24gb", "1xrtx-pro-6000-blackwell-96gb"] {
        Lab::new(node).python("walk.py", &[]).expect(0);
    }
}
