mod malformed;
mod native;

use super::*;
use crate::diagnostic::Severity;
use rstest::rstest;

const PEER: &str = include_str!("../../tests/data/peer-default-layouts.yaml");

/// A file with one layout of one entry.
fn entry(body: &str) -> String {
    let body: Vec<String> = body.split(';').map(|line| line.trim().to_owned()).collect();
    format!("version: v1\nmig-configs:\n  one:\n  - {}\n", body.join("\n    "))
}

fn rule(body: &str) -> Rule {
    let text = entry(body);
    parse(&text, "t").unwrap_or_else(|faults| panic!("{text}\n{faults:#?}")).layouts[0].rules[0].clone()
}

/// Every fault as `line:column code`.
pub(super) fn faults(text: &str) -> Vec<String> {
    let Err(faults) = parse(text, "t") else { return Vec::new() };
    faults
        .iter()
        .map(|fault| {
            let place = fault.place.as_ref();
            format!("{}:{} {}", place.map_or(0, |p| p.line), place.map_or(0, |p| p.column), fault.reason)
        })
        .collect()
}

#[test]
fn reads_the_whole_file_that_the_peer_ships() {
    let file = parse(PEER, "config.yaml").unwrap();
    assert_eq!(file.layouts.len(), 81);
    assert_eq!(file.layouts.iter().map(|l| l.rules.len()).sum::<usize>(), 94);
    let balanced = file.find("all-balanced").unwrap();
    assert_eq!(balanced.rules.len(), 12);
    assert_eq!(balanced.rules[9].matches.filters.len(), 4);
    assert_eq!(balanced.rules[9].matches.filters[0].to_string(), "0x20B010DE");
    let Wish::On(wanted) = &balanced.rules[9].wish else { panic!() };
    let wanted: Vec<_> = wanted.iter().map(|w| format!("{} x{}", w.name, w.count)).collect();
    assert_eq!(wanted, ["1g.5gb x2", "2g.10gb x1", "3g.20gb x1"]);
    assert_eq!(file.find("all-disabled").unwrap().rules[0].wish, Wish::Off);
    assert_eq!(file.find("all-enabled").unwrap().rules[0].wish, Wish::On(vec![]));
    assert_eq!(file.find("all-enabled").unwrap().notes.len(), 1);
}

#[test]
fn reads_json_as_well() {
    let text = r#"{"version": "v1", "mig-configs": {"one": [{"devices": [0, 2], "mig-enabled": true,
        "device-filter": ["0x20B010DE", "0x20B710DE"], "mig-devices": {"1g.5gb": 7}}]}}"#;
    let file = parse(text, "t").unwrap();
    let rule = &file.layouts[0].rules[0];
    let Some(Indexes::Listed(indexes)) = &rule.matches.indexes else { panic!() };
    assert_eq!(indexes.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(rule.matches.filters.len(), 2);
}

#[rstest]
#[case("true", true)]
#[case("yes", true)]
#[case("Yes", true)]
#[case("on", true)]
#[case("ON", true)]
#[case("True", true)]
#[case("false", false)]
#[case("no", false)]
#[case("off", false)]
#[case("Off", false)]
fn takes_the_booleans_of_yaml_1_1(#[case] word: &str, #[case] on: bool) {
    let devices = if on { "; mig-devices: {}" } else { "" };
    let wish = rule(&format!("devices: all; mig-enabled: {word}{devices}")).wish;
    assert_eq!(wish != Wish::Off, on);
    // In quotes it is a text, as for the peer.
    let quoted = entry(&format!("devices: all; mig-enabled: \"{word}\"{devices}"));
    assert_eq!(faults(&quoted), ["5:18 layout-invalid"]);
}

#[rstest]
#[case("device-filter: \"\"; ", 0)]
#[case("device-filter: []; ", 0)]
#[case("device-filter: \"0x20B010DE\"; ", 1)]
#[case("device-filter: '0x20b010de:0x134f10de'; ", 1)]
#[case("device-filter: \"548409566\"; ", 1)]
#[case("device-filter: [\"0x20B010DE\", \"0x20B710DE\"]; ", 2)]
#[case("", 0)]
fn takes_the_filters_of_the_peer(#[case] filter: &str, #[case] count: usize) {
    assert_eq!(rule(&format!("{filter}devices: all; mig-enabled: false")).matches.filters.len(), count);
}

#[test]
fn one_compute_slice_of_a_1g_is_the_1g() {
    let Wish::On(wanted) = rule("devices: all; mig-enabled: true; mig-devices: {1c.1g.5gb: 7}").wish else {
        panic!()
    };
    assert_eq!(wanted[0].name.to_string(), "1g.5gb");
}

#[test]
fn drops_a_zero_beside_others_and_says_so() {
    let text = entry("devices: all; mig-enabled: true; mig-devices: {1g.5gb: 0, 2g.10gb: 3}");
    let file = parse(&text, "t").unwrap();
    let Wish::On(wanted) = &file.layouts[0].rules[0].wish else { panic!() };
    assert_eq!(wanted.len(), 1);
    let note = &file.layouts[0].notes[0];
    assert_eq!((note.severity, note.place.as_ref().unwrap().column), (Severity::Warning, 27));
}

#[test]
fn mig_off_takes_an_empty_map() {
    for devices in ["", "; mig-devices: {}", "; mig-devices:"] {
        assert_eq!(rule(&format!("devices: all; mig-enabled: false{devices}")).wish, Wish::Off);
    }
}

#[rstest]
// Filters that the peer matches to nothing.
#[case("device-filter: garbage; devices: all; mig-enabled: false", "4:20 filter-malformed")]
#[case("device-filter: 0x20B010DE; devices: all; mig-enabled: false", "4:20 filter-malformed")]
#[case(
    "device-filter: [\"0x20B010DE\", \"0x20B0\"]; devices: all; mig-enabled: false",
    "4:35 filter-malformed"
)]
#[case("device-filter: [\"\"]; devices: all; mig-enabled: false", "4:21 filter-malformed")]
#[case("device-filter: {}; devices: all; mig-enabled: false", "4:20 filter-malformed")]
// Devices.
#[case("devices: 7; mig-enabled: false", "4:14 layout-invalid")]
#[case("devices: ALL; mig-enabled: false", "4:14 layout-invalid")]
#[case("devices: ; mig-enabled: false", "4:12 layout-invalid")]
#[case("devices: []; mig-enabled: false", "4:14 layout-invalid")]
#[case("devices: [\"0\"]; mig-enabled: false", "4:15 layout-invalid")]
#[case("devices: [-1]; mig-enabled: false", "4:15 layout-invalid")]
#[case("devices: [0, 1, 0]; mig-enabled: false", "4:21 layout-duplicate")]
#[case("devices: [99999999999]; mig-enabled: false", "4:15 layout-invalid")]
#[case("mig-enabled: false", "4:5 layout-invalid")]
// Mode and instances.
#[case("devices: all", "4:5 layout-invalid")]
#[case("devices: all; mig-enabled: true", "4:5 layout-invalid")]
#[case("devices: all; mig-enabled: false; mig-devices: {1g.5gb: 7}", "6:5 layout-invalid")]
#[case("devices: all; mig-enabled: true; mig-devices: []", "6:18 layout-invalid")]
#[case("devices: all; mig-enabled: true; mig-devices: {1g.5gb: -1}", "6:27 layout-invalid")]
#[case("devices: all; mig-enabled: true; mig-devices: {1g.5gb: 1.5}", "6:27 layout-invalid")]
#[case("devices: all; mig-enabled: true; mig-devices: {1g.5gb: two}", "6:27 layout-invalid")]
#[case("devices: all; mig-enabled: true; mig-devices: {1g.5gb: 999999}", "6:27 layout-invalid")]
#[case("devices: all; mig-enabled: true; mig-devices: {1g.5gb: 0, 2g.10gb: 0}", "6:18 layout-invalid")]
// Names.
#[case("devices: all; mig-enabled: true; mig-devices: {0g.0gb: 1}", "6:19 profile-malformed")]
#[case("devices: all; mig-enabled: true; mig-devices: {2c.1g.5gb: 1}", "6:19 profile-malformed")]
#[case("devices: all; mig-enabled: true; mig-devices: {1g.5gb+foo.bar: 1}", "6:19 profile-malformed")]
#[case("devices: all; mig-enabled: true; mig-devices: {01g.5gb: 1}", "6:19 profile-malformed")]
#[case("devices: all; mig-enabled: true; mig-devices: {1g.5gb+ME: 1}", "6:19 profile-malformed")]
#[case("devices: all; mig-enabled: true; mig-devices: {1g.5gb: 1, 1c.1g.5gb: 1}", "6:30 layout-duplicate")]
#[case("devices: all; mig-enabled: true; mig-devices: {1g.5gb: 1, 1g.5gb: 2}", "6:30 layout-duplicate")]
// Keys.
#[case("devices: all; mig-enabled: false; mig-enabled: true", "6:5 layout-duplicate")]
#[case("devices: all; mig-enabled: false; mig_devices: {}", "6:5 layout-invalid")]
fn refuses_with_its_place(#[case] body: &str, #[case] fault: &str) {
    assert_eq!(faults(&entry(body)), [fault], "{}", entry(body));
}

#[rstest]
#[case("", "1:1 layout-invalid")]
#[case("version: v1\n---\nversion: v1\n", "3:1 layout-duplicate")]
#[case("version: v2\nmig-configs: {}\n", "1:10 layout-invalid")]
#[case("version: 1\nmig-configs: {}\n", "1:10 layout-invalid")]
#[case("mig-configs: {one: [{devices: all, mig-enabled: false}]}\n", "1:1 layout-invalid")]
#[case("- version: v1\n", "1:1 layout-invalid")]
#[case("version: v1\nmig-config: {}\n", "2:1 layout-invalid")]
#[case("version: v1\nmig-configs: []\n", "2:14 layout-invalid")]
#[case("version: v1\nmig-configs: {}\n", "2:1 layout-invalid")]
#[case("version: v1\nmig-configs:\n", "2:12 layout-invalid")]
#[case("version: v1\nmig-configs:\n  one: []\n", "3:8 layout-invalid")]
#[case("version: v1\nmig-configs:\n  one:\n  two:\n", "3:6 layout-invalid")]
#[case("version: v1\nmig-configs:\n  7:\n  - devices: all\n", "3:3 layout-invalid")]
#[case("version: v1\nmig-configs:\n  one: [x]\n", "3:9 layout-invalid")]
#[case("version: v1\nversion: v1\nmig-configs: {}\n", "2:1 layout-duplicate")]
fn refuses_a_file_with_its_place(#[case] text: &str, #[case] fault: &str) {
    assert_eq!(faults(text).first().map(String::as_str), Some(fault), "{text}");
}

#[rstest]
#[case("version: [\n")]
#[case("version: v1\n  mig-configs: {}\n")]
#[case("version: v1\nmig-configs: {one: [}\n")]
#[case("version: *nothing\n")]
#[case("version: a: b\n")]
#[case("{\"version\": \"v1\"")]
fn says_where_the_text_is_no_yaml(#[case] text: &str) {
    let faults = parse(text, "t").unwrap_err();
    assert_eq!((faults.len(), faults[0].reason), (1, Reason::LayoutSyntax), "{faults:?}");
    assert!(faults[0].place.is_some(), "{faults:?}");
    assert!(!faults[0].message.contains("line"), "the place is told once: {faults:?}");
}

#[test]
fn tells_every_fault_at_once_and_also_of_layouts_not_selected() {
    let text = "version: v1\nmig-configs:\n  a:\n  - devices: 7\n    mig-enabled: maybe\n    color: red\n  b:\n  \
                - devices: all\n    mig-enabled: true\n    mig-devices: {1G.5GB: 1, 9g.x: -3}\n  a: []\n";
    assert_eq!(
        faults(text),
        [
            "4:14 layout-invalid",
            "5:18 layout-invalid",
            "6:5 layout-invalid",
            "10:19 profile-malformed",
            "10:30 profile-malformed",
            "10:36 layout-invalid",
            "11:3 layout-duplicate",
        ]
    );
}

#[rstest]
#[case("1G.5GB", "1g.5gb")]
#[case("1g.5gb.me", "1g.5gb+me")]
#[case("1g.24gb.me.all", "1g.24gb+me.all")]
#[case("01g.5gb", "1g.5gb")]
#[case("1g.5gb+ME", "1g.5gb+me")]
#[case("1g.5gb+foo", "1g.5gb")]
fn suggests_what_a_malformed_name_probably_means(#[case] text: &str, #[case] near: &str) {
    let text = entry(&format!("devices: all; mig-enabled: true; mig-devices: {{{text}: 1}}"));
    assert_eq!(parse(&text, "t").unwrap_err()[0].near, [near]);
}

#[test]
fn a_layout_at_the_wrong_depth_is_told_where_it_belongs() {
    let text = "version: v1\nmig-configs:\n  all-off:\n  - devices: all\n    mig-enabled: false\n\
                custom:\n- devices: [1, 2]\n  mig-enabled: true\n  mig-devices: {4g.20gb: 1, 3g.20gb: 1}\n";
    let faults = parse(text, "t").unwrap_err();
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].place.as_ref().unwrap().line, 6);
    assert!(faults[0].help.as_ref().unwrap().contains("mig-configs"));
}

#[test]
fn an_unknown_layout_is_answered_with_those_there_are() {
    let fault = parse(PEER, "config.yaml").unwrap().find("all-balnced").unwrap_err();
    assert_eq!(fault.reason, Reason::LayoutUnknown);
    assert_eq!(fault.near[0], "all-balanced");
    assert!(fault.help.unwrap().contains("all-1g.5gb.me"));
    let empty = parse("version: v1\n", "t").unwrap().find("x").unwrap_err();
    assert_eq!(empty.help.unwrap(), "the file has no layouts");
}

#[test]
fn anchors_work_as_with_the_peer() {
    let text = "version: v1\nmig-configs:\n  one: &e\n  - devices: all\n    mig-enabled: false\n  two: *e\n";
    assert_eq!(parse(text, "t").unwrap().layouts.len(), 2);
}

#[test]
fn hostile_texts_are_refused_by_budget() {
    let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..10 {
        let uses = vec![format!("*a{}", level - 1); 10].join(", ");
        laughs.push_str(&format!("a{level}: &a{level} [{uses}]\n"));
    }
    let deep = format!("version: {}{}", "[".repeat(5000), "]".repeat(5000));
    let deep_blocks: String = (0..1000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    let long = "x".repeat(5 << 20);
    for text in [laughs, deep, deep_blocks, long] {
        let start = std::time::Instant::now();
        let faults = parse(&text, "t").unwrap_err();
        assert_eq!(faults[0].reason, Reason::LayoutSyntax, "{:?}", faults[0]);
        assert!(faults[0].message.contains("a layout file"), "{:?}", faults[0]);
        assert!(start.elapsed().as_secs() < 2, "{:?} {:?}", start.elapsed(), faults[0]);
    }
}

proptest::proptest! {
    #[test]
    fn never_panics(text in "(version: v1\nmig-configs:\n  one:\n  - )?[-a-z0-9:{}\\[\\],.\"'&*#\n ]{0,80}") {
        let _ = parse(&text, "t");
    }
}
