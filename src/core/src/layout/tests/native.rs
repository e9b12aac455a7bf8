//! migd's own form: what it takes, and every fault at its place.

use super::{super::*, faults};
use rstest::rstest;

fn rule(body: &str) -> String {
    format!("layouts:\n  one:\n    gpus:\n    - {body}\n")
}

#[rstest]
#[case("{match: all, mig: off}")]
#[case("{match: all, mig: Off}")]
#[case("{match: all, mig: OFF}")]
#[case("{match: all, mig: false}")]
#[case("{match: all, mig: \"off\"}")]
fn off_is_off_in_every_spelling(#[case] body: &str) {
    assert_eq!(parse(&rule(body), "t").unwrap().layouts[0].rules[0].wish, Wish::Off);
}

#[rstest]
#[case("balanced", "balanced")]
#[case("7x 1g", "7 1g")]
#[case("7x1g.5gb", "7 1g.5gb")]
#[case("max 1g+me", "max 1g+me")]
#[case("[3g, 2x 2g]", "1 3g, 2 2g")]
#[case("{3g.20gb: 1, 1g.double: max}", "1 3g.20gb, max 1g.double")]
#[case("{3g@4: [1c, 2c]}", "1 3g@4 [2, 1]")]
#[case("[{1c.3g: 2}, 2g]", "2 1c.3g, 1 2g")]
#[case("none", "")]
fn reads_instances_in_every_form(#[case] instances: &str, #[case] means: &str) {
    let file = parse(&rule(&format!("{{match: all, instances: {instances}}}")), "t").unwrap();
    let said = match &file.layouts[0].rules[0].wish {
        Wish::Symbolic(symbol) => symbol.word().to_owned(),
        Wish::Off => "off".to_owned(),
        Wish::On(wanted) => {
            let one = |w: &Wanted| {
                let start = w.start.map(|s| format!("@{s}")).unwrap_or_default();
                let split = w.split.as_ref().map(|s| format!(" {s:?}")).unwrap_or_default();
                format!("{} {}{start}{split}", w.count, w.name)
            };
            wanted.iter().map(one).collect::<Vec<_>>().join(", ")
        }
    };
    assert_eq!(said, means);
}

#[rstest]
#[case("{match: al, mig: off}", "filter-malformed")]
#[case("{match: 0, mig: off}", "filter-malformed")]
#[case("{match: {}, mig: off}", "filter-malformed")]
#[case("{match: {index: [0, 0]}, mig: off}", "layout-duplicate")]
#[case("{match: {index: -1}, mig: off}", "filter-malformed")]
#[case("{match: {index: first}, mig: off}", "filter-malformed")]
#[case("{match: {modell: A100}, mig: off}", "layout-invalid")]
#[case("{match: {uuid: abc}, mig: off}", "filter-malformed")]
#[case("{match: {pci: 0x20B010DE}, mig: off}", "filter-malformed")]
#[case("{match: {profile: 3G}, mig: off}", "profile-malformed")]
#[case("{mig: off}", "layout-invalid")]
#[case("{match: all}", "layout-invalid")]
#[case("{match: all, mig: on}", "layout-invalid")]
#[case("{match: all, mig: maybe}", "layout-invalid")]
#[case("{match: all, mig: off, instances: 1g}", "layout-invalid")]
#[case("{match: all, instances: {}}", "layout-invalid")]
#[case("{match: all, instances: []}", "layout-invalid")]
#[case("{match: all, instances: off}", "layout-invalid")]
#[case("{match: all, instances: balnced}", "layout-invalid")]
#[case("{match: all, instances: 0x 1g}", "layout-invalid")]
#[case("{match: all, instances: {1g: 0}}", "layout-invalid")]
#[case("{match: all, instances: [1g, 1g]}", "layout-duplicate")]
#[case("{match: all, instances: 2x 3g@0}", "layout-invalid")]
#[case("{match: all, instances: [3g@0, 2g@0]}", "layout-duplicate")]
#[case("{match: all, instances: 3g@x}", "layout-invalid")]
#[case("{match: all, instances: {3g: [2c, 2c]}}", "layout-invalid")]
#[case("{match: all, instances: {3g: [2]}}", "layout-invalid")]
#[case("{match: all, instances: [max 1g, max 2g]}", "layout-invalid")]
#[case("{match: all, mig: off, pool: {profiles: [1g]}}", "layout-invalid")]
#[case("{match: all, instances: none, pool: {profiles: [1g], on-release: drop}}", "layout-invalid")]
#[case("{match: all, instances: 1g, sharing: mps}", "layout-invalid")]
#[case("{match: all, instances: 1g, sharing: {mps: {}, time-slicing: {replicas: 2}}}", "layout-invalid")]
#[case("{match: all, instances: 1g, sharing: {timeSlicing: {replicas: 4}}}", "layout-invalid")]
#[case("{match: all, instances: 1g, sharing: {time-slicing: {replicas: 1}}}", "layout-invalid")]
#[case(
    "{match: all, instances: 1g, sharing: {time-slicing: {renameByDefault: true, replicas: 4}}}",
    "layout-invalid"
)]
fn refuses_with_place_and_what_is_allowed(#[case] body: &str, #[case] reason: &str) {
    let text = rule(body);
    let found = parse(&text, "t").unwrap_err();
    let found: Vec<_> = found.iter().filter(|fault| fault.severity == Severity::Error).collect();
    assert_eq!(found.len(), 1, "{text}{found:#?}");
    assert_eq!(found[0].reason.code(), reason, "{found:#?}");
    assert!(found[0].place.is_some() && (found[0].help.is_some() || !found[0].near.is_empty()), "{found:#?}");
}

#[rstest]
#[case("version: v1\nlayouts: {}\n", "1:1 layout-invalid")]
#[case("layouts:\n", "1:1 layout-invalid")]
#[case("layout: {}\n", "1:1 layout-invalid")]
#[case("layouts: {a b: {gpus: [{match: all, mig: off}]}}\n", "1:11 layout-invalid")]
#[case("layouts: {a: [{match: all, mig: off}]}\n", "1:14 layout-invalid")]
#[case("layouts: {a: {gpus: {match: all, mig: off}}}\n", "1:21 layout-invalid")]
#[case("layouts: {a: {gpus: [{match: all, mig: off}], unlisted: kep}}\n", "1:57 layout-invalid")]
#[case("layouts: {a: {gpus: [{match: all, mig: off}]}, a: {}}\n", "1:48 layout-duplicate")]
fn refuses_a_file_with_its_place(#[case] text: &str, #[case] fault: &str) {
    assert_eq!(faults(text).first().map(String::as_str), Some(fault), "{text}");
}

#[test]
fn a_rule_after_all_and_too_many_replicas_are_warned_of() {
    let text = "layouts: {a: {gpus: [{match: all, mig: off}, {match: {model: A30}, instances: 1g, sharing: \
                {time-slicing: {replicas: 16384}}}]}}";
    let file = parse(text, "t").unwrap();
    let warnings: Vec<_> = file.layouts[0].notes.iter().map(|n| n.severity).collect();
    assert_eq!(warnings, [Severity::Warning; 2]);
}
