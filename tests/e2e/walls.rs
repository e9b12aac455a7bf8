//! The house's walls: which crate may know which, and where `unsafe` may stand.

use migd_tests::root;
use serde_json::Value;
use std::{collections::BTreeSet, fs, path::Path, process::Command};

/// Package → the packages of ours that it may depend on. What is not named here may depend on none.
const ARROWS: &[(&str, &[&str])] = &[
    ("migd-core", &[]),
    ("migd-nvml", &["migd-core"]),
    ("migd-engine", &["migd-core", "migd-nvml"]),
    ("migd", &["migd-core", "migd-nvml", "migd-engine"]),
    ("migctl", &["migd-core", "migd"]),
    ("nvml-simulator", &[]),
    ("migd-tests", &[]),
];

#[test]
fn crates_know_only_whom_they_may() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let ours: BTreeSet<&str> = packages.iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(
        ours,
        ARROWS.iter().map(|(name, _)| *name).collect(),
        "a crate without a row in ARROWS, or the reverse"
    );
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let allowed = ARROWS.iter().find(|(n, _)| *n == name).unwrap().1;
        for dependency in package["dependencies"].as_array().unwrap() {
            let on = dependency["name"].as_str().unwrap();
            assert!(!ours.contains(on) || allowed.contains(&on), "{name} may not depend on {on}");
        }
    }
}

#[test]
fn unsafe_stands_only_where_it_may() {
    const MAY: [&str; 3] = ["src/nvml/", "src/simulator/", "packaging/slurm/spank/"];
    const KEYWORD: &str = concat!("un", "safe");
    let mut roots = Vec::new();
    let mut seen = 0;
    walk(&root(), &mut |path| {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        let text = fs::read_to_string(path).unwrap();
        seen += 1;
        if MAY.iter().any(|may| name.starts_with(may)) {
            return;
        }
        if name.ends_with("src/lib.rs") || name.ends_with("src/main.rs") {
            roots.push(name.clone());
            assert!(text.contains("#![forbid(unsafe_code)]"), "{name} does not forbid it");
        }
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap();
            let word = code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == KEYWORD);
            assert!(!word, "{name}:{}: {line}", number + 1);
        }
    });
    assert!(seen > 30 && roots.len() >= 4, "looked at {seen} files, {roots:?}");
}

/// Every Rust file that belongs to the house.
fn walk(folder: &Path, look: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                walk(&path, look);
            }
        } else if name.ends_with(".rs") {
            look(&path);
        }
    }
}
