//! The examples of docs/simulator.md, and the simulator installed alone.

use migd_tests::{Lab, built, python, root, run};
use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
};

fn example(name: &str) -> std::path::PathBuf {
    root().join("src/simulator/examples").join(name)
}

#[test]
fn the_one_in_python_cuts_a_gpu() {
    let lab = Lab::new("1xa100-40gb");
    let found = run(lab.simulator("run", &["--"]).arg(python()).arg(example("cut.py"))).expect(0);
    assert_eq!(found.out, "NVIDIA A100-SXM4-40GB MIG 3g.20gb 19968 MiB\n".repeat(2));
    assert_eq!(lab.holds(0), "3g.20gb@0 3g.20gb@4");
}

#[test]
fn the_one_in_c_is_told_an_xid() {
    let lab = Lab::new("1xh100-sxm-80gb");
    let program = lab.path("xid");
    run(Command::new("cc")
        .arg("-Wall")
        .arg("-Werror")
        .arg(example("xid.c"))
        .arg("-o")
        .arg(&program)
        .arg("-ldl"))
    .expect(0);
    let mut watcher = lab.simulator("run", &["--"]).arg(&program).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(watcher.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "watching\n");
    lab.simulated("xid", &["0", "79"]).expect(0);
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "XID 79\n");
    assert!(watcher.wait().unwrap().success());
}

#[test]
fn the_one_in_rust_meets_a_gpu_that_falls_off() {
    let lab = Lab::new("1xa100-40gb");
    lab.simulated("fault", &["add", "fn=nvmlDeviceGetName nth=2 lost"]).expect(0);
    let found = run(lab.simulator("run", &["--"]).arg(built().join("examples/fall"))).expect(0);
    // Its name is known to the driver even then.
    assert_eq!(found.out, "NVIDIA A100-SXM4-40GB: [0, 0, 0, 15, 0, 0]\n");
}

#[test]
fn the_simulator_works_where_it_is_installed_alone() {
    let lab = Lab::new("1xa30-24gb");
    let prefix = lab.path("prefix");
    run(Command::new(root().join("scripts/install-simulator")).arg(built()).arg(&prefix)).expect(0);
    let mut installed = Command::new(prefix.join("bin/nvml-simulator"));
    installed.args(["run", lab.node(), "--state"]).arg(lab.path("state")).args(["--", "nvidia-smi", "-L"]);
    assert!(run(&mut installed).expect(0).out.starts_with("GPU 0: NVIDIA A30 (UUID: GPU-"));
}
