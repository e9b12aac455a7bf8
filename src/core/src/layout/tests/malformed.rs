//! Malformed files: each is refused with place, reason and what to do, none in more than its budget.

use super::super::*;
use crate::reason::Exit;
use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// A bound against hanging; the benchmark measures.
const LIMIT: Duration = Duration::from_secs(5);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/malformed")
}

fn refused(text: &str, origin: &str) -> Vec<Diagnostic> {
    let begin = Instant::now();
    let faults = parse(text, origin).map(|_| ()).expect_err(origin);
    assert!(begin.elapsed() < LIMIT, "{origin}");
    let errors: Vec<Diagnostic> =
        faults.into_iter().filter(|fault| fault.severity == Severity::Error).collect();
    assert!(!errors.is_empty(), "{origin}");
    assert!(errors.len() <= MAX_FAULTS, "{origin}");
    for error in &errors {
        assert!(error.message.len() < 1_000, "{origin}");
        assert_eq!(error.reason.exit(), Exit::Invalid, "{origin}: {error:?}");
        let place = error.place.as_ref().unwrap_or_else(|| panic!("{origin}: {error:?}"));
        let line = usize::try_from(place.line).unwrap();
        assert!(place.column >= 1 && (1..=text.lines().count() + 1).contains(&line), "{origin}: {error:?}");
        assert!(error.help.as_ref().is_some_and(|help| !help.is_empty()), "{origin}: {error:?}");
    }
    errors
}

#[test]
fn every_malformed_file_is_refused_with_place_reason_and_suggestion() {
    let expected = std::fs::read_to_string(folder().join("expected.txt")).unwrap();
    let mut seen = 0;
    for row in expected.lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = row.split_once(' ').unwrap();
        let text = std::fs::read_to_string(folder().join(format!("{name}.yaml"))).unwrap();
        let first = &refused(&text, name)[0];
        let place = first.place.as_ref().unwrap();
        let near = first.near.first().map_or("-", String::as_str);
        assert_eq!(format!("{}:{} {} {near}", place.line, place.column, first.reason), rest, "{name}");
        seen += 1;
    }
    let files = std::fs::read_dir(folder()).unwrap().count() - 1;
    assert_eq!(seen, files, "a file without its row, or the reverse");
    assert!(seen >= 50, "{seen}");
}

#[test]
fn what_grows_beyond_its_budget_is_refused() {
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = format!("*a{}, ", level - 1).repeat(10);
        laughs.push_str(&format!("a{level}: &a{level} [{}]\n", below.trim_end_matches(", ")));
    }
    laughs.push_str("layouts: *a11\n");
    let deep = |open: &str, close: &str| format!("layouts: {}{}\n", open.repeat(5_000), close.repeat(5_000));
    let indented = |most: usize| (0..most).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    let entry = "\n    - {match: all, mig: off}";
    let merges = "layouts: &l {a: &a {gpus: [{match: all, mig: off}]}}\nx: {<<: [*l, *l], ".to_owned()
        + &"<<: *a, ".repeat(3_000)
        + "}\n";
    for (name, text) in [
        ("billion laughs", laughs),
        ("5,000 lists", deep("[", "]")),
        ("5,000 maps", deep("{a: ", "}")),
        ("5,000 lists left open", deep("[", "")),
        ("5,000 indented", indented(5_000)),
        ("1,000 indented", indented(1_000)),
        ("2,000 misspelt keys", (0..2_000).map(|n| format!("layout{n}: 1\n")).collect()),
        ("a long key", format!("{}: 1\n", "k".repeat(500_000))),
        (
            "a long profile",
            format!("layouts: {{a: {{gpus: [{{match: all, instances: {}g}}]}}}}", "1".repeat(500_000)),
        ),
        ("30,000 rules", format!("layouts:\n  one:\n    gpus:{}", entry.repeat(30_000))),
        ("100,000 keys", (0..100_000).map(|n| format!("k{n}: 1\n")).collect()),
        ("many merges", merges),
        ("2 MiB of comment", "#".repeat(2 << 20)),
        ("a long scalar", format!("layouts: {}", "x".repeat(2 << 20))),
        ("an alias of itself", "layouts: &a [*a]\n".to_owned()),
    ] {
        refused(&text, name);
    }
}

#[test]
fn a_large_honest_file_is_within_the_budget() {
    let one = |n: usize| {
        format!(
            "  layout-{n}: {{gpus: [{{match: {{index: [0, 1]}}, mig: off}}, {{match: all, instances: [3g, 2x 2g]}}]}}\n"
        )
    };
    let text: String = "layouts:\n".to_owned() + &(0..500).map(one).collect::<String>();
    assert_eq!(parse(&text, "t").unwrap().layouts.len(), 500);
}
