//! The peer's shipped file, unchanged in content, on 8 × A100-SXM4-40GB (0x20B010DE): what does not exist there
//! is refused before the first write, what exists is made.

use migd_tests::{Lab, mutating, root};
use serde_json::Value;
use std::path::PathBuf;

fn file() -> PathBuf {
    root().join("src/core/tests/data/peer-default-layouts.yaml")
}

/// The labels that an A100-SXM4-40GB has; everywhere else the peer wiped the GPU and printed success.
const HAS: [&str; 10] = [
    "all-disabled",
    "all-enabled",
    "all-1g.5gb",
    "all-1g.5gb.me",
    "all-1g.10gb",
    "all-2g.10gb",
    "all-3g.20gb",
    "all-4g.20gb",
    "all-7g.40gb",
    "all-balanced",
];

fn labels(lab: &Lab) -> Vec<String> {
    let list = lab.run(&["layouts", "--json", "-f", file().to_str().unwrap()]).expect(0).json();
    let names = list["layouts"].as_array().unwrap().iter().map(|l| l["name"].as_str().unwrap().to_owned());
    names.collect()
}

#[test]
fn applies_the_ten_that_exist_and_reads_them_back_through_the_python_binding() {
    let lab = Lab::new("8xa100-40gb");
    let file = file();
    for label in HAS {
        lab.run(&["apply", label, "-f", file.to_str().unwrap()]).expect(0);
        let seen = lab.python("holds.py", &[]).expect(0).json();
        let wanted: Vec<(&str, usize)> = match label {
            "all-disabled" | "all-enabled" => vec![],
            "all-1g.5gb" => vec![("1g.5gb", 7)],
            "all-1g.5gb.me" => vec![("1g.5gb+me", 1)],
            "all-1g.10gb" => vec![("1g.10gb", 4)],
            "all-2g.10gb" => vec![("2g.10gb", 3)],
            "all-3g.20gb" => vec![("3g.20gb", 2)],
            "all-4g.20gb" => vec![("4g.20gb", 1)],
            "all-7g.40gb" => vec![("7g.40gb", 1)],
            _ => vec![("1g.5gb", 2), ("2g.10gb", 1), ("3g.20gb", 1)],
        };
        let mut wanted: Vec<&str> =
            wanted.iter().flat_map(|(name, n)| std::iter::repeat_n(*name, *n)).collect();
        wanted.sort_unstable();
        let gpus = seen.as_array().unwrap();
        assert_eq!(gpus.len(), 8);
        for gpu in gpus {
            assert_eq!(gpu["mig"], label != "all-disabled", "{label}: {gpu}");
            let mut names: Vec<&str> =
                gpu["devices"].as_array().unwrap().iter().map(|d| d.as_str().unwrap()).collect();
            names.sort_unstable();
            assert_eq!(names, wanted, "{label}: {gpu}");
        }
    }
}

#[test]
fn refuses_the_other_seventy_one_with_not_one_mutating_call() {
    let lab = Lab::new("8xa100-40gb");
    lab.run(&["apply", "all-1g.5gb", "-f", file().to_str().unwrap()]).expect(0);
    let before = lab.status();
    lab.trace();
    let all = labels(&lab);
    assert_eq!(all.len(), 81);
    let (mut unknown, mut unmatched) = (0, Vec::new());
    for label in all.iter().filter(|label| !HAS.contains(&label.as_str())) {
        let failure = lab.run(&["apply", label, "-f", file().to_str().unwrap(), "--json"]).expect(3).json();
        assert_eq!(failure["format"], "migd-error/1");
        match failure["reason"].as_str().unwrap() {
            "profile-unknown" => {
                unknown += 1;
                let detail = &failure["details"][0];
                assert!(detail["near"].as_array().is_some_and(|near| !near.is_empty()), "{label}: {failure}");
                assert!(
                    detail["help"].as_str().unwrap().contains("1g.5gb+me"),
                    "the GPU's own names: {failure}"
                );
                assert!(detail["place"]["line"].as_u64().is_some(), "{failure}");
            }
            "no-gpu-matched" => unmatched.push(label.as_str()),
            other => panic!("{label}: {other}"),
        }
    }
    assert_eq!((unknown, unmatched), (70, vec!["all-1g.35gb"]));
    let trace = lab.trace();
    assert!(!trace.is_empty());
    assert_eq!(mutating(&trace), Vec::<&Value>::new());
    assert_eq!(lab.status(), before);
}
