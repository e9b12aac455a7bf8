//! What the built library exports.

use nvidia_ml::abi::SYMBOLS;
use std::{collections::BTreeSet, process::Command};

#[test]
fn exports_every_function_of_nvml_and_its_soname() {
    // The library is built now, where these tests are: a test run alone builds no cdylib, or leaves an old one.
    let exe = std::env::current_exe().unwrap();
    let profile = exe.ancestors().nth(2).unwrap();
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    build.args(["build", "--quiet", "--offline", "--package", "nvml-simulator", "--lib"]);
    if profile.ends_with("release") {
        build.arg("--release");
    }
    build.env("CARGO_TARGET_DIR", profile.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR"));
    assert!(build.status().unwrap().success());

    let library = profile.join("libnvidia_ml.so");
    let run = |program: &str, flags: &[&str]| {
        let output = Command::new(program).args(flags).arg(&library).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let names = run("nm", &["-D", "--defined-only"]);
    let exported: BTreeSet<&str> = names
        .lines()
        .filter_map(|line| line.split_once(" T ").map(|(_, name)| name))
        .filter(|name| name.starts_with("nvml"))
        .collect();
    assert_eq!(exported, SYMBOLS.iter().copied().collect());
    assert!(run("readelf", &["-d"]).contains("[libnvidia-ml.so.1]"));
}
