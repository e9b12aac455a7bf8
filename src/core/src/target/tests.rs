mod native;
mod shipped;

use super::*;
use crate::{
    diagnostic::Severity,
    fixtures::{gpu, lost, node, nodes, off, plain_gpu},
    layout::parse,
    node::{Architecture, Gpu, Node, ProfileSource},
    reason::Reason,
};
use rstest::rstest;

const PEER: &str = include_str!("../../tests/data/peer-default-layouts.yaml");

/// Resolves a layout of these entries, each `devices: …; mig-enabled: …; …`.
fn resolve_entries(entries: &[&str], node: &Node) -> Result<Target, Vec<Diagnostic>> {
    let body: String =
        entries.iter().map(|entry| format!("  - {}\n", entry.replace("; ", "\n    "))).collect();
    let text = format!("version: v1\nmig-configs:\n  one:\n{body}");
    let file = parse(&text, "t").unwrap_or_else(|faults| panic!("{text}{faults:#?}"));
    resolve(file.find("one").unwrap(), node)
}

fn on(devices: &str, instances: &str) -> String {
    format!("devices: {devices}; mig-enabled: true; mig-devices: {{{instances}}}")
}

/// `0:on 2x19 1x9, 1:off`.
fn summary(target: &Target) -> String {
    let gpu = |gpu: &GpuTarget| {
        let wanted = gpu.wanted.iter().map(|wanted| {
            let loose: Vec<String> =
                wanted.loose.iter().map(|c| format!(" {c}c.{}", wanted.profile_id)).collect();
            match wanted.instances.len() {
                0 => loose.concat(),
                count => format!(" {count}x{}{}", wanted.profile_id, loose.concat()),
            }
        });
        format!("{}:{}{}", gpu.index, if gpu.mig { "on" } else { "off" }, wanted.collect::<String>())
    };
    target.gpus.iter().map(gpu).collect::<Vec<_>>().join(", ")
}

fn reasons(faults: &[Diagnostic]) -> Vec<Reason> {
    faults.iter().map(|fault| fault.reason).collect()
}

#[test]
fn the_last_entry_that_matches_wins() {
    let node = nodes("a100-40gb", 4);
    let all = on("all", "\"1g.5gb\": 7");
    let some = on("[1, 3]", "\"3g.20gb\": 2");
    let target = resolve_entries(&[&all, &some, "devices: [3]; mig-enabled: false"], &node).unwrap();
    assert_eq!(summary(&target), "0:on 7x19, 1:on 2x9, 2:on 7x19, 3:off");
    let target = resolve_entries(&[&some, &all], &node).unwrap();
    assert_eq!(summary(&target), "0:on 7x19, 1:on 7x19, 2:on 7x19, 3:on 7x19");
}

#[test]
fn an_overridden_entry_need_not_resolve() {
    let node = nodes("a100-40gb", 2);
    let wrong = on("all", "\"1g.99gb\": 1");
    let right = on("all", "\"1g.5gb\": 7");
    assert!(resolve_entries(&[&wrong, &right], &node).is_ok());
    let faults = resolve_entries(&[&wrong, &on("[0]", "\"1g.5gb\": 7")], &node).unwrap_err();
    assert_eq!((faults.len(), faults[0].gpu), (1, Some(1)));
}

#[test]
fn all_means_those_that_can_do_mig() {
    let node = node(vec![gpu("a100-40gb", 0), plain_gpu(1), off(gpu("a30-24gb", 2))]);
    let target = resolve_entries(&["devices: all; mig-enabled: false"], &node).unwrap();
    assert_eq!(summary(&target), "0:off, 2:off");
    assert_eq!(target.untouched, [1]);
    let faults = resolve_entries(&[&on("[0, 1]", "")], &node).unwrap_err();
    assert_eq!((reasons(&faults), faults[0].gpu), (vec![Reason::MigUnsupported], Some(1)));
    assert_eq!(faults[0].place.as_ref().unwrap().column, 18);
    let target = resolve_entries(&["devices: [0, 1]; mig-enabled: false"], &node).unwrap();
    assert_eq!(summary(&target), "0:off");
    assert!(target.notes.iter().any(|note| note.gpu == Some(1) && note.severity == Severity::Note));
}

#[test]
fn filters_choose_among_models() {
    let node = node(vec![gpu("a100-40gb", 0), gpu("a30-24gb", 1), gpu("h100-sxm-80gb", 2)]);
    let entry = |filter: &str, devices: &str, name: &str| {
        format!("device-filter: {filter}; {}", on(devices, &format!("\"{name}\": 1")))
    };
    let target = resolve_entries(
        &[
            &entry("\"0x20B710DE\"", "all", "4g.24gb"),
            &entry("[\"0x20B010DE\", \"0x233110DE\"]", "all", "7g.40gb"),
            &entry("\"0x233010DE:0x16C010DE\"", "[0, 2]", "7g.80gb"),
        ],
        &node,
    )
    .unwrap();
    assert_eq!(summary(&target), "0:on 1x0, 1:on 1x0, 2:on 1x0");
    let target = resolve_entries(
        &[&entry("\"0x233010DE:0x999910DE\"", "all", "7g.80gb"), "devices: [1]; mig-enabled: false"],
        &node,
    )
    .unwrap();
    assert_eq!((summary(&target).as_str(), target.untouched.as_slice()), ("1:off", &[0, 2][..]));
    let notes: Vec<&str> = target.notes.iter().map(|note| note.message.as_str()).collect();
    assert_eq!(
        notes,
        [
            "this entry matches no GPU: none is 0x233010DE:0x999910DE",
            "GPU0, 2 are not covered by the layout: unchanged",
        ]
    );
}

#[test]
fn an_index_that_is_not_there_is_a_fault_with_its_place() {
    let node = nodes("a100-40gb", 2);
    let faults = resolve_entries(&["devices: [0, 2, 99]; mig-enabled: false"], &node).unwrap_err();
    assert_eq!(reasons(&faults), [Reason::IndexOutOfRange; 2]);
    assert_eq!(faults[0].place.as_ref().unwrap().column, 18);
    assert_eq!(faults[0].help.as_deref(), Some("its GPUs are 0 to 1"));
}

#[test]
fn a_lost_gpu_blocks_only_itself() {
    let mut node = nodes("a100-40gb", 3);
    node.gpus.remove(1);
    node.unavailable.push(lost(1));
    for devices in ["all", "[0, 1]"] {
        let target = resolve_entries(&[&on(devices, "\"1g.5gb\": 7")], &node).unwrap();
        assert_eq!(target.blocked.len(), 1);
        assert_eq!((target.blocked[0].index, target.blocked[0].diagnostic.reason), (1, Reason::GpuLost));
        assert!(target.gpus.iter().any(|gpu| gpu.index == 0));
    }
    let target = resolve_entries(&["devices: [0, 2]; mig-enabled: false"], &node).unwrap();
    assert!(target.blocked.is_empty());
}

#[test]
fn a_layout_that_matches_nothing_is_refused() {
    let node = nodes("a100-40gb", 8);
    let file = parse(PEER, "config.yaml").unwrap();
    let faults = resolve(file.find("all-1g.35gb").unwrap(), &node).unwrap_err();
    assert_eq!(reasons(&faults), [Reason::NoGpuMatched]);
    assert!(faults[0].help.as_ref().unwrap().contains("A100-SXM4-40GB"), "{faults:?}");
    let none = crate::fixtures::node(vec![plain_gpu(0)]);
    let faults = resolve_entries(&["devices: all; mig-enabled: false"], &none).unwrap_err();
    assert_eq!(reasons(&faults), [Reason::NoGpuMatched]);
}

/// All labels of the peer's file on 8 x A100-SXM4-40GB: where the peer says 81 times that it is done, ten are.
#[test]
fn the_peers_layouts_on_eight_a100() {
    let node = nodes("a100-40gb", 8);
    let file = parse(PEER, "config.yaml").unwrap();
    let mut right = Vec::new();
    let (mut unknown, mut unmatched) = (0, 0);
    for layout in &file.layouts {
        match resolve(layout, &node) {
            Ok(_) => right.push(layout.name.as_str()),
            Err(faults) if faults.iter().all(|f| f.reason == Reason::ProfileUnknown) => {
                assert_eq!(faults.len(), 1, "one for eight like GPUs: {faults:#?}");
                assert!(faults[0].message.starts_with("GPU0-7 (A100-SXM4-40GB) have no profile"));
                assert!(!faults[0].near.is_empty() && faults[0].place.is_some());
                unknown += 1;
            }
            Err(faults) => {
                assert_eq!(reasons(&faults), [Reason::NoGpuMatched]);
                unmatched += 1;
            }
        }
    }
    assert_eq!(
        right,
        [
            "all-disabled",
            "all-enabled",
            "all-1g.5gb",
            "all-1g.5gb.me",
            "all-2g.10gb",
            "all-3g.20gb",
            "all-4g.20gb",
            "all-7g.40gb",
            "all-1g.10gb",
            "all-balanced",
        ]
    );
    assert_eq!((unknown, unmatched), (70, 1));
}

#[rstest]
#[case("a100-80gb", "2g.10gb", "2g.20gb")]
#[case("a100-40gb", "3g.39gb", "3g.20gb")]
#[case("a30-24gb", "1g.5gb+me", "1g.6gb+me")]
#[case("h100-sxm-80gb", "1c.3g.39gb", "1c.3g.40gb")]
#[case("rtx-pro-6000-blackwell-96gb", "1g.24gb+me.al", "")]
#[case("gb200-186gb", "1g.24gb", "1g.23gb")]
fn suggests_the_names_that_the_gpu_has(#[case] key: &str, #[case] name: &str, #[case] near: &str) {
    if name.parse::<crate::profile::ProfileName>().is_err() {
        return;
    }
    let faults = resolve_entries(&[&on("all", &format!("\"{name}\": 3"))], &nodes(key, 1)).unwrap_err();
    assert_eq!(reasons(&faults), [Reason::ProfileUnknown]);
    assert_eq!(faults[0].near[0], near);
    assert!(faults[0].help.as_ref().unwrap().starts_with("its profiles are 1g."));
}

#[test]
fn each_kind_of_gpu_gets_its_own_fault() {
    let node = node(vec![gpu("a100-40gb", 0), gpu("a30-24gb", 1), gpu("a100-40gb", 2)]);
    let faults = resolve_entries(&[&on("all", "\"1g.10gb\": 1, \"9g.9gb\": 1")], &node).unwrap_err();
    let messages: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "GPU1 (A30) has no profile 1g.10gb",
            "GPU0, 2 (A100-SXM4-40GB) have no profile 9g.9gb",
            "GPU1 (A30) has no profile 9g.9gb",
        ]
    );
}

#[test]
fn compute_instances_are_counted_to_be_packed() {
    let node = nodes("a100-40gb", 1);
    let wish = on("all", "\"1c.3g.20gb\": 2, \"2c.3g.20gb\": 1, \"3g.20gb\": 1, \"1c.1g.5gb\": 1");
    assert_eq!(summary(&resolve_entries(&[&wish], &node).unwrap()), "0:on 1x9 2c.9 1c.9 1c.9 1x19");
    let faults = resolve_entries(&[&on("all", "\"3c.4g.20gb\": 1")], &node).unwrap_err();
    assert_eq!(reasons(&faults), [Reason::ProfileUnknown]);
    let help = faults[0].help.as_deref();
    assert_eq!(help, Some("an instance of 4g.20gb is split into 1c.4g.20gb, 2c.4g.20gb, 4g.20gb"));
}

#[test]
fn profiles_from_the_table_make_it_provisional() {
    let hidden = Gpu { profiles_from: ProfileSource::Table, ..off(gpu("a100-40gb", 0)) };
    let target = resolve_entries(&[&on("all", "\"1g.5gb\": 7")], &node(vec![hidden.clone()])).unwrap();
    assert!(target.gpus[0].provisional);
    let target = resolve_entries(&[&on("all", "")], &node(vec![hidden.clone()])).unwrap();
    assert!(!target.gpus[0].provisional, "nothing is to be checked");
    let nobody = Gpu { profiles: vec![], profiles_from: ProfileSource::Nobody, ..hidden };
    assert!(resolve_entries(&[&on("all", "")], &node(vec![nobody.clone()])).is_ok());
    let faults = resolve_entries(&[&on("all", "\"1g.5gb\": 7")], &node(vec![nobody])).unwrap_err();
    assert_eq!((reasons(&faults), faults[0].gpu), (vec![Reason::DriverTooOld], Some(0)));
}

#[test]
fn gpus_not_covered_are_told_and_left() {
    let target = resolve_entries(&[&on("[4, 5, 6, 7]", "\"1g.5gb\": 7")], &nodes("a100-40gb", 8)).unwrap();
    assert_eq!(target.untouched, [0, 1, 2, 3]);
    assert_eq!(target.notes[0].message, "GPU0-3 are not covered by the layout: unchanged");
    let target = resolve_entries(&["devices: [1]; mig-enabled: false"], &nodes("a100-40gb", 2)).unwrap();
    assert_eq!(target.notes[0].message, "GPU0 is not covered by the layout: unchanged");
    let target = resolve_entries(&["devices: all; mig-enabled: false"], &nodes("a100-40gb", 2)).unwrap();
    assert!(target.notes.is_empty());
}

#[test]
fn a_board_that_could_do_mig_but_does_not_offer_it_is_no_part_of_all() {
    let workstation = Gpu { mig: None, ..gpu("rtx-pro-6000-blackwell-96gb", 0) };
    assert_eq!(workstation.architecture, Architecture::HopperOrLater);
    let faults = resolve_entries(&[&on("[0]", "")], &node(vec![workstation])).unwrap_err();
    assert_eq!(reasons(&faults), [Reason::MigUnsupported]);
}
