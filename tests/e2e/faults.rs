//! Faults as a program meets them: each kind at each function through NVIDIA's Python binding, and what our own
//! workers make of those that change a GPU.

use migd_tests::{Lab, built, program, root, table};
use std::process::Command;

/// The functions that the library exports. nvmlErrorString returns no code.
fn functions() -> Vec<String> {
    let nm = migd_tests::run(Command::new("nm").arg("-D").arg(built().join("libnvidia_ml.so"))).expect(0);
    let names = nm.out.lines().filter_map(|line| line.split(" T ").nth(1));
    let mut names: Vec<String> = names
        .filter(|name| name.starts_with("nvml") && *name != "nvmlErrorString")
        .map(str::to_owned)
        .collect();
    names.sort();
    names
}

#[test]
fn every_kind_of_fault_is_met_at_every_function() {
    let lab = Lab::new("1xa100-40gb");
    lab.simulated("set", &["0", "1g@0 1g@1"]).expect(0);
    let names = functions();
    assert!(names.len() > 400, "{}", names.len());
    let names = lab.file("names", &names.join("\n"));
    let (simulator, state) = (program("nvml-simulator"), lab.path("state"));
    let words = [simulator.to_str().unwrap(), lab.node(), state.to_str().unwrap(), names.to_str().unwrap()];
    let found = lab.python("faults.py", &words).expect(0);
    table("faults.txt", &found.out);
}

/// Calls that change a GPU, and the state from which `apply all-balanced` comes to them.
const CHANGING: [(&str, &str); 9] = [
    ("nvmlDeviceSetMigMode", "off"),
    ("nvmlGpuInstanceDestroy", "7g@0"),
    ("nvmlComputeInstanceDestroy", "7g@0"),
    ("nvmlDeviceCreateGpuInstanceWithPlacement", "7g@0"),
    ("nvmlGpuInstanceCreateComputeInstance", "7g@0"),
    // What is there for other programs: none of ours calls them.
    ("nvmlDeviceCreateGpuInstance", "7g@0"),
    ("nvmlGpuInstanceCreateComputeInstanceWithPlacement", "7g@0"),
    ("nvmlDeviceSetComputeMode", "7g@0"),
    ("nvmlDeviceSetPersistenceMode", "7g@0"),
];

const KINDS: [&str; 8] = [
    "nth=1 code=IN_USE",
    "nth=1 code=UNKNOWN",
    "code=UNKNOWN",
    "nth=2 code=INSUFFICIENT_RESOURCES",
    "nth=1 lost",
    "hang=200ms",
    "nth=1 hang=forever",
    "nth=1 hang=unkillable",
];

/// One apply under one fault: exit code, what it says of the GPU, and what the GPU holds once the fault is gone.
fn meet(function: &str, from: &str, kind: &str) -> String {
    let lab = Lab::new("1xa100-40gb");
    lab.simulated("set", &["0", from]).expect(0);
    let laid = lab.simulated("fault", &["add", &format!("fn={function} {kind}")]);
    if laid.code() == 1 && kind.ends_with("unkillable") {
        // A machine without the v1 freezer must say so when the fault is laid; the row is then taken as written.
        assert!(laid.err.contains("freezer"), "{}", laid.err);
        let written = std::fs::read_to_string(root().join("tests/tables/apply-under-faults.txt")).unwrap();
        let row = written.lines().find_map(|row| row.strip_prefix(&format!("{function} {kind}: ")));
        return row.unwrap().to_owned();
    }
    laid.expect(0);
    let applied = migd_tests::run_within(lab.migctl().args(["apply", "all-balanced", "--json"]), SLOW);
    let met = lab.simulated("fault", &["list", "--json"]).expect(0).json()[0]["calls"].as_u64().unwrap();
    lab.simulated("fault", &["clear"]).expect(0);
    if met == 0 {
        assert_eq!(applied.code(), 0);
        return "not called".to_owned();
    }
    let gpu = &applied.json()["gpus"][0];
    let reason = gpu["reason"].as_str().map(|reason| format!(" {reason}")).unwrap_or_default();
    let shown = lab.simulated("show", &["--json"]).expect(0).json();
    let gpu_now = &shown["gpus"][0];
    let now = if gpu_now["lost"] == true {
        "lost".to_owned()
    } else if gpu_now["mig"]["current"] == "disabled" {
        "off".to_owned()
    } else {
        let held = gpu_now["instances"].as_array().unwrap().iter();
        held.map(|i| format!("{}@{}", i["profile"].as_str().unwrap(), i["start"]))
            .collect::<Vec<_>>()
            .join(" ")
    };
    format!("exit {} {}{reason}; now {now}", applied.code(), gpu["result"].as_str().unwrap())
}

/// Above the longest limit of a step, that of a change of mode.
const SLOW: std::time::Duration = std::time::Duration::from_secs(120);

#[test]
fn what_apply_makes_of_each_fault_at_each_change() {
    let cells: Vec<(usize, usize)> =
        (0..CHANGING.len()).flat_map(|row| (0..KINDS.len()).map(move |column| (row, column))).collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let found = std::sync::Mutex::new(std::collections::BTreeMap::new());
    std::thread::scope(|scope| {
        // Most of the time nothing is done but waiting for a limit.
        for _ in 0..12 {
            scope.spawn(|| {
                while let Some(cell) = cells.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    let ((function, from), kind) = (CHANGING[cell.0], KINDS[cell.1]);
                    let text = meet(function, from, kind);
                    found.lock().unwrap().insert(*cell, format!("{function} {kind}: {text}"));
                }
            });
        }
    });
    let lines: Vec<String> = found.into_inner().unwrap().into_values().collect();
    table("apply-under-faults.txt", &(lines.join("\n") + "\n"));
}

#[test]
fn answers_can_be_late_wrong_and_sparse() {
    let lab = Lab::new("1xh100-sxm-80gb");
    lab.simulated("show", &[]).expect(0);
    let (simulator, state) = (program("nvml-simulator"), lab.path("state"));
    lab.python("effects.py", &[simulator.to_str().unwrap(), lab.node(), state.to_str().unwrap()]).expect(0);
}

#[test]
fn apply_waits_for_a_mode_that_reads_as_before() {
    for activation in ["SUCCESS", "RESET_REQUIRED"] {
        let lab = Lab::new("1xa100-40gb");
        let rules = [
            "add",
            "fn=nvmlDeviceGetMigMode stale=2s",
            &format!("fn=nvmlDeviceSetMigMode activation={activation}"),
        ];
        lab.simulated("fault", &rules[..if activation == "SUCCESS" { 2 } else { 3 }]).expect(0);
        let outcome = lab.run(&["apply", "all-balanced", "--json"]).expect(0).json();
        assert_eq!(outcome["gpus"][0]["result"], "changed", "{outcome}");
    }
}

#[test]
fn a_reset_fails_hangs_or_is_not_supported_as_said() {
    let pending = "fn=nvmlDeviceSetMigMode nth=1 activation=RESET_REQUIRED";
    for (reset, code, result) in [
        ("fn=reset code=NOT_SUPPORTED", 5, "pending-reboot"),
        ("fn=reset code=UNKNOWN", 5, "pending-reboot"),
        ("fn=reset nth=1 code=IN_USE", 4, "blocked"),
        ("fn=reset hang=300ms", 0, "changed"),
    ] {
        let lab = Lab::new("1xa100-40gb");
        lab.simulated("fault", &["add", reset, pending]).expect(0);
        let outcome = lab.run(&["apply", "all-balanced", "--json"]).expect(code).json();
        assert_eq!(outcome["gpus"][0]["result"], result, "{reset}: {outcome}");
    }
}

#[test]
fn an_older_driver_lacks_what_it_did_not_have() {
    for (driver, lacks, has) in [
        ("470.57", "nvmlDeviceGetGpuInstanceProfileInfoV", "nvmlDeviceGetGpuInstancePossiblePlacements_v2"),
        ("450.80.02", "nvmlDeviceCreateGpuInstanceWithPlacement", "nvmlDeviceCreateGpuInstance"),
        ("580.95.05", "nvmlNoSuchFunction", "nvmlDeviceGetGpuInstanceProfileInfoByIdV"),
    ] {
        let lab = Lab::described(&format!("driver: \"{driver}\"\ngpus: [{{gpu: a100-40gb}}]\n"));
        let script = format!(
            "import pynvml as n\nn.nvmlInit()\nassert n.nvmlSystemGetDriverVersion() == '{driver}'\n\
             n._nvmlGetFunctionPointer('{has}')\n\
             try: n._nvmlGetFunctionPointer('{lacks}'); raise SystemExit(1)\n\
             except n.NVMLError_FunctionNotFound: pass\n"
        );
        let file = lab.file("look.py", &script);
        let mut command = lab.simulator("run", &["--"]);
        migd_tests::run(command.arg(migd_tests::python()).arg(file)).expect(0);
        let outcome = lab.run(&["apply", "all-balanced", "--json"]).json();
        let gpu = &outcome["gpus"][0];
        let told = (gpu["result"].as_str().unwrap(), gpu["cause"]["reason"].as_str());
        let right = if driver.starts_with("450") {
            ("rolled-back", Some("driver-too-old"))
        } else {
            ("changed", None)
        };
        assert_eq!(told, right, "{driver}: {outcome}");
    }
}
