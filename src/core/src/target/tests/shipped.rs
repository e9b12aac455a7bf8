//! The layouts that ship: right on every GPU of the table, the peer's labels meaning what they mean there.

use super::*;
use crate::{check::fits, layout::LayoutFile, table::Table};
use std::collections::BTreeMap;

const OWN: &str = include_str!("../../../../../profiles/layouts.d/migd.yaml");
const ALIASES: &str = include_str!("../../../../../profiles/layouts.d/mig-parted.yaml");

/// Whether MIG is on, and how many of each profile.
type Held = (bool, BTreeMap<String, usize>);

fn models() -> Vec<String> {
    let table = Table::shipped().unwrap();
    table.gpus().iter().filter(|gpu| !gpu.profiles.is_empty()).map(|gpu| gpu.key.clone()).collect()
}

fn shipped(text: &str) -> LayoutFile {
    parse(text, "t").unwrap_or_else(|faults| panic!("{faults:#?}"))
}

/// What a layout asks of each GPU.
fn means(file: &LayoutFile, layout: &str, node: &Node) -> Result<Vec<Held>, Reason> {
    let target = resolve(file.find(layout).unwrap(), node).map_err(|faults| faults[0].reason)?;
    let count = |w: &WantedProfile| (w.profile.to_string(), w.instances.len());
    Ok(target.gpus.iter().map(|gpu| (gpu.mig, gpu.wanted.iter().map(count).collect())).collect())
}

#[test]
fn every_own_layout_can_be_had_on_every_gpu_that_has_its_profiles() {
    let file = shipped(OWN);
    let names: Vec<&str> = file.layouts.iter().map(|layout| layout.name.as_str()).collect();
    let all = ["all-off", "all-balanced", "all-1g", "all-2g", "all-3g", "all-largest", "half-balanced"];
    assert_eq!(names, all);
    for key in models() {
        let node = nodes(&key, 2);
        let has = |slices| node.gpus[0].profiles.iter().any(|profile| profile.slices == slices);
        for layout in &file.layouts {
            let can = match layout.name.as_str() {
                "all-3g" => has(3),
                "all-2g" => has(2),
                _ => true,
            };
            let found = fits(layout, &node);
            assert_eq!(found.is_ok(), can, "{key} {}: {found:?}", layout.name);
        }
        let one = |layout: &str| means(&file, layout, &node).map(|all| all[1].1.values().sum::<usize>());
        // Seven slices or four.
        let seven = has(7);
        assert_eq!(one("all-1g"), Ok(if seven { 7 } else { 4 }), "{key}");
        assert_eq!(one("all-2g"), Ok(if seven { 3 } else { 2 }), "{key}");
        assert_eq!(one("all-balanced"), Ok(if seven { 4 } else { 3 }), "{key}");
        assert_eq!(one("all-largest"), Ok(1), "{key}");
        assert_eq!(one("all-3g"), if seven { Ok(2) } else { Err(Reason::ProfileUnknown) }, "{key}");
        let half = means(&file, "half-balanced", &node).unwrap();
        assert_eq!((half[0].0, half[1].0), (false, true), "{key}");
    }
}

#[test]
fn each_of_the_peers_labels_means_what_it_means_there() {
    let (own, aliases, peer) = (shipped(OWN), shipped(ALIASES), shipped(PEER));
    let (mut meant, mut refused) = (0, 0);
    for key in models() {
        let node = nodes(&key, 1);
        for layout in &peer.layouts {
            let file = if layout.name == "all-balanced" { &own } else { &aliases };
            match (means(&peer, &layout.name, &node), means(file, &layout.name, &node)) {
                (Ok(there), Ok(here)) => {
                    assert_eq!(here, there, "{key} {}", layout.name);
                    meant += 1;
                }
                (Err(_), Err(reason)) => {
                    assert_eq!(reason, Reason::ProfileUnknown, "{key} {}", layout.name);
                    refused += 1;
                }
                // Its filter leaves out GPUs that have the profile.
                (Err(Reason::NoGpuMatched), Ok(here)) => {
                    assert!(here[0].1.values().all(|count| *count > 0), "{key} {}: {here:?}", layout.name);
                }
                // It names no such GPU, or one of another memory by the same PCI id.
                (Err(Reason::ProfileUnknown), Ok(_)) if layout.name == "all-balanced" => {}
                (there, here) => panic!("{key} {}: {there:?}, {here:?}", layout.name),
            }
        }
    }
    assert_eq!(aliases.layouts.len() + 1, peer.layouts.len());
    assert!(meant > 180 && refused > 1_000, "{meant} {refused}");
}
