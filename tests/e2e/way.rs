//! The way through: mode, reset where due, instances, read back; what stays is untouched.

use migd_tests::{Lab, held, mutating};
use serde_json::Value;

const SEVEN: &str =
    "version: v1\nmig-configs:\n  seven:\n  - {devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}\n";

fn seven(lab: &Lab, word: &str) -> migd_tests::Ended {
    let file = lab.file("seven.yaml", SEVEN);
    lab.run(&[word, "seven", "-f", file.to_str().unwrap(), "--json"])
}

/// Instance by start: (gi, UUID of its first compute instance).
fn identity(status: &Value, start: u64) -> (u64, String) {
    let instances = status["gpus"][0]["instances"].as_array().unwrap();
    let found = instances.iter().find(|i| i["start"] == start).unwrap();
    (found["gi"].as_u64().unwrap(), found["compute"][0]["uuid"].as_str().unwrap().to_owned())
}

#[test]
fn keeps_a_busy_instance_wherever_it_sits() {
    let starts = [
        ("1g@0* 1g@1 2g@2 3g@4", [0, 1]),
        ("1g@0 1g@1* 2g@2 3g@4", [0, 1]),
        ("2g@0 1g@2* 1g@3 3g@4", [2, 3]),
        ("2g@0 1g@2 1g@3* 3g@4", [2, 3]),
        ("3g@0 2g@4 1g@6*", [6, 6]),
    ];
    for (now, kept) in starts {
        let lab = Lab::new("1xa100-40gb");
        lab.simulate("set", &["0", now]).expect(0);
        let before = lab.status();
        let plan = seven(&lab, "plan").expect(2).json();
        let keep = if kept[0] == kept[1] { 1 } else { 2 };
        assert_eq!(plan["summary"]["keep"], keep, "{now}: {plan}");
        assert_eq!(plan["summary"]["destroy"], 2, "{now}");
        assert_eq!(plan["summary"]["create"], 7 - keep, "{now}");
        seven(&lab, "apply").expect(0);
        let after = lab.status();
        for start in kept {
            assert_eq!(identity(&before, start), identity(&after, start), "{now}");
        }
        assert_eq!(after["gpus"][0]["instances"].as_array().unwrap().len(), 7);
        seven(&lab, "plan").expect(0);
    }
}

#[test]
fn refuses_to_destroy_what_is_in_use_before_the_first_write() {
    let lab = Lab::new("1xa100-40gb");
    for now in ["1g@0 1g@1 2g@2* 3g@4", "1g@0 1g@1 2g@2 3g@4*", "7g@0*"] {
        lab.simulate("set", &["0", now]).expect(0);
        lab.trace();
        let failure = seven(&lab, "apply").expect(4).json();
        assert_eq!(failure["format"], "migd-error/1");
        assert_eq!(mutating(&lab.trace()), Vec::<&Value>::new(), "{now}");
    }
}

#[test]
fn refuses_what_can_never_be_held_and_leaves_the_old_layout() {
    let lab = Lab::new("1xa100-40gb");
    lab.simulate("set", &["0", "1g@0 1g@1 2g@2 3g@4"]).expect(0);
    let impossible = ["{1g.5gb: 3, 2g.10gb: 2, 3g.20gb: 1}", "{1g.5gb: 8}", "{4g.20gb: 2}", "{1g.5gb+me: 2}"];
    for wanted in impossible {
        let text = format!(
            "version: v1\nmig-configs:\n  x:\n  - {{devices: all, mig-enabled: true, mig-devices: {wanted}}}\n"
        );
        let file = lab.file("x.yaml", &text);
        lab.trace();
        let failure = lab.run(&["apply", "x", "-f", file.to_str().unwrap(), "--json"]).expect(3).json();
        assert_eq!(failure["reason"], "layout-unplaceable", "{wanted}");
        assert_eq!(mutating(&lab.trace()), Vec::<&Value>::new(), "{wanted}");
        assert_eq!(lab.holds(0), "1g.5gb@0 1g.5gb@1 2g.10gb@2 3g.20gb@4");
    }
}

#[test]
fn goes_from_off_to_a_layout_in_one_apply_and_knows_what_a_reboot_forgets() {
    // Ampere keeps the mode over a reboot and loses the instances; Hopper and later lose both.
    for (node, kept) in
        [("2xa100-40gb", "enabled"), ("1xa30-24gb", "enabled"), ("1xh100-sxm-80gb", "disabled")]
    {
        let lab = Lab::new(node);
        let plan = lab.run(&["plan", "all-balanced", "--json"]).expect(2).json();
        let gpus = plan["gpus"].as_array().unwrap().len();
        let resets = if kept == "enabled" { gpus } else { 0 };
        assert_eq!(plan["summary"]["mode_changes"], gpus, "{node}");
        assert_eq!(plan["summary"]["resets"], resets, "{node}");
        lab.run(&["apply", "all-balanced"]).expect(0);
        let applied = lab.status();
        lab.simulate("reboot", &[]).expect(0);
        let status = lab.status();
        assert_eq!(status["gpus"][0]["mig"]["current"], kept, "{node}");
        assert_eq!(held(&status["gpus"][0]), "", "{node}");
        lab.run(&["apply", "all-balanced"]).expect(0);
        // The same places give the same UUIDs again.
        assert_eq!(lab.status(), applied, "{node}");
        lab.run(&["apply", "all-off"]).expect(0);
        assert_eq!(lab.status()["gpus"][0]["mig"]["current"], "disabled", "{node}");
    }
}

#[test]
fn works_on_the_gpus_that_the_layout_names_and_on_no_other() {
    let lab = Lab::new("4xa100-40gb");
    lab.simulate("set", &["0", "7g@0*"]).expect(0);
    lab.simulate("set", &["3", "1g@0"]).expect(0);
    let file = lab.file(
        "one.yaml",
        "version: v1\nmig-configs:\n  one:\n  - {devices: [1], mig-enabled: true, mig-devices: {3g.20gb: 2}}\n",
    );
    lab.run(&["apply", "one", "-f", file.to_str().unwrap()]).expect(0);
    let touched: std::collections::BTreeSet<String> =
        mutating(&lab.trace()).iter().map(|call| call["args"]["gpu"].to_string()).collect();
    assert_eq!(touched.into_iter().collect::<Vec<_>>(), ["1"]);
    assert_eq!(lab.holds(0), "7g.40gb@0*");
    assert_eq!(lab.holds(1), "3g.20gb@0 3g.20gb@4");
    assert_eq!(lab.holds(3), "1g.5gb@0");
}

#[test]
fn one_gpu_of_a_layout_is_changed_and_no_other() {
    let lab = Lab::new("3xa100-40gb");
    let plan = lab.run(&["plan", "all-balanced", "--gpu", "1", "--json"]).expect(2).json();
    assert_eq!((plan["gpus"].as_array().unwrap().len(), &plan["gpus"][0]["index"]), (1, &Value::from(1)));
    lab.run(&["apply", "all-balanced", "--gpu", "1"]).expect(0);
    let modes = lab.status()["gpus"]
        .as_array()
        .unwrap()
        .iter()
        .map(|g| g["mig"]["current"] == "enabled")
        .collect::<Vec<_>>();
    assert_eq!(modes, [false, true, false]);
    lab.run(&["plan", "all-balanced", "--gpu", "0000:0f:00.0"]).expect(0);
    let failure = lab.run(&["apply", "all-balanced", "--gpu", "7", "--json"]).expect(3).json();
    assert_eq!(failure["reason"], "gpu-unknown");
}

#[test]
fn a_mode_change_blocked_by_another_client_is_taken_back() {
    let lab = Lab::new("2xa100-40gb");
    let mut holder = std::process::Command::new(migd_tests::program("migctl"));
    holder.args(["simulate", "run", "--state"]).arg(lab.path("state")).args([lab.node(), "--"]);
    holder.arg(migd_tests::python()).arg("-c").arg(
        "import pynvml as n, sys\nn.nvmlInit(); n.nvmlDeviceGetHandleByIndex(1); print('held', flush=True); sys.stdin.read()",
    );
    let mut holder =
        holder.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = [0u8; 5];
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut line).unwrap();
    let outcome = lab.run(&["apply", "all-balanced", "--json"]).expect(4).json();
    assert_eq!(outcome["gpus"][0]["result"], "changed", "{outcome}");
    assert_eq!(outcome["gpus"][1]["result"], "blocked", "{outcome}");
    assert_eq!(outcome["gpus"][1]["reason"], "gpu-in-use", "{outcome}");
    let status = lab.status();
    assert_eq!(status["gpus"][1]["mig"]["pending"], "disabled", "nothing is left pending");
    drop(holder.stdin.take());
    holder.wait().unwrap();
    lab.run(&["apply", "all-balanced"]).expect(0);
    assert_eq!(lab.holds(1), lab.holds(0));
}

#[test]
fn a_driver_that_hides_profiles_is_planned_by_the_table_and_checked_after() {
    let lab = Lab::described("driver: \"535.104.05\"\ngpus: [{gpu: a100-40gb}, {gpu: h100-sxm-80gb}]\n");
    let plan = lab.run(&["plan", "all-balanced", "--json"]).expect(2).json();
    assert!(plan["gpus"].as_array().unwrap().iter().all(|gpu| gpu["provisional"] == true), "{plan}");
    lab.run(&["apply", "all-balanced"]).expect(0);
    let again = lab.run(&["plan", "all-balanced", "--json"]).expect(0).json();
    assert!(again["gpus"].as_array().unwrap().iter().all(|gpu| gpu["provisional"] == false), "{again}");
}

#[test]
fn a_mixed_node_is_cut_where_it_can_be_and_converges() {
    let lab = Lab::new("mixed");
    lab.run(&["apply", "all-balanced"]).expect(0);
    lab.trace();
    lab.run(&["apply", "all-balanced"]).expect(0);
    assert_eq!(mutating(&lab.trace()), Vec::<&Value>::new());
}

#[test]
fn the_shipped_layouts_fit_every_gpu_of_the_table() {
    let list = migd_tests::run(std::process::Command::new(migd_tests::program("nvml-simulator")).arg("list"))
        .expect(0)
        .out;
    let table: serde_json::Value = serde_yaml::from_str(
        &std::fs::read_to_string(migd_tests::root().join("profiles/gpus.yaml")).unwrap(),
    )
    .unwrap();
    let mut tried = 0;
    for gpu in table["gpus"].as_array().unwrap() {
        let key = gpu["key"].as_str().unwrap();
        // Without known placements they cannot be simulated; and one PCI id that two boards share names neither.
        if gpu["geometry"].is_null() || key == "h100-sxm-64gb" {
            continue;
        }
        assert!(list.contains(key), "{key} cannot be simulated");
        let lab = Lab::new(&format!("1x{key}"));
        for layout in ["all-balanced", "all-1g", "all-2g", "all-largest", "all-off"] {
            lab.run(&["apply", layout]).expect(0);
            lab.run(&["plan", layout]).expect(0);
        }
        tried += 1;
    }
    assert_eq!(tried, 21);
}
