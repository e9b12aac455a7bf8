//! migd's own form on nodes: rules, names, symbols, starts and splits.

use super::*;
use crate::{
    fixtures::holding,
    plan::{Policy, audit, make},
    table::Table,
};

/// Resolves a layout with these rules in flow style.
fn rules(rules: &str, node: &Node) -> Result<Target, Vec<Diagnostic>> {
    let text = format!("layouts:\n  one:\n    gpus: [{rules}]\n");
    let file = parse(&text, "t").unwrap_or_else(|faults| panic!("{text}{faults:#?}"));
    resolve(file.find("one").unwrap(), node)
}

#[test]
fn the_first_rule_that_matches_wins_and_all_keys_must_hold() {
    let node = nodes("a100-40gb", 4);
    let target = rules(
        "{match: {index: [0, 1], model: 'A100*'}, mig: off}, {match: {index: 0}, instances: 7g}, \
         {match: all, instances: balanced}",
        &node,
    )
    .unwrap();
    assert_eq!(summary(&target), "0:off, 1:off, 2:on 1x9 1x14 2x19, 3:on 1x9 1x14 2x19");
    let halves = "{match: {index: first-half}, mig: off}, {match: all, instances: largest}";
    assert_eq!(summary(&rules(halves, &node).unwrap()), "0:off, 1:off, 2:on 1x0, 3:on 1x0");
    let mixed = crate::fixtures::node(vec![gpu("a100-40gb", 0), gpu("a30-24gb", 1)]);
    let target = rules("{match: {profile: 3g}, instances: 2x 3g}", &mixed).unwrap();
    assert_eq!((summary(&target).as_str(), target.untouched), ("0:on 2x9", vec![1]));
}

#[test]
fn a_pci_list_holds_addresses_and_ids_of_which_one_suffices() {
    let node = crate::fixtures::node(vec![gpu("a100-40gb", 0), gpu("a30-24gb", 1), gpu("a100-80gb", 2)]);
    let list = "{match: {pci: ['0000:07:00.0', '0x20B710DE']}, mig: off}";
    let target = rules(list, &node).unwrap();
    assert_eq!((summary(&target).as_str(), target.untouched), ("0:off, 1:off", vec![2]));
    let both = "{match: {pci: '0x20B710DE', index: 0}, mig: off}";
    assert_eq!(reasons(&rules(both, &node).unwrap_err()), [Reason::NoGpuMatched]);
}

#[test]
fn unlisted_is_kept_disabled_or_refused() {
    let node = nodes("a100-40gb", 4);
    let with = |word: &str| {
        let text =
            format!("layouts: {{one: {{gpus: [{{match: {{index: 3}}, instances: 7g}}], unlisted: {word}}}}}");
        resolve(parse(&text, "t").unwrap().find("one").unwrap(), &node)
    };
    assert_eq!(with("keep").unwrap().untouched, [0, 1, 2]);
    assert_eq!(
        summary(&with("disable").unwrap()),
        "3:on 1x0, 0:off, 1:off, 2:off"
            .split_once(", ")
            .map(|(last, rest)| format!("{rest}, {last}"))
            .unwrap()
    );
    assert_eq!(reasons(&with("error").unwrap_err()), [Reason::GpuUnlisted]);
}

#[test]
fn symbols_can_be_placed_on_every_gpu_of_the_table() {
    let table = Table::shipped().unwrap();
    let mut tried = 0;
    for model in table.gpus().iter().filter(|model| !model.profiles.is_empty()) {
        for symbol in ["balanced", "largest", "smallest", "max 2g"] {
            let node = nodes(&model.key, 2);
            let rule = format!("{{match: all, instances: {symbol}}}");
            match rules(&rule, &node) {
                Ok(target) => {
                    let plan = make(&node, &target, &Policy::default());
                    let plan = plan.unwrap_or_else(|faults| panic!("{} {symbol}: {faults:#?}", model.key));
                    assert!(!plan.gpus[0].after.is_empty() && audit(&plan, &node).is_empty());
                    tried += 1;
                }
                Err(faults) => {
                    assert_eq!(reasons(&faults), [Reason::ProfileUnknown], "{} {symbol}", model.key)
                }
            }
        }
    }
    assert!(tried > 80, "{tried}");
}

/// One layout for all: the names are each model's own.
#[test]
fn one_layout_has_each_models_own_names() {
    let text = "layouts: {l: {gpus: [{match: {profile: 3g}, instances: [3g, 2x 2g]}, {match: all, instances: balanced}]}}";
    let file = parse(text, "t").unwrap();
    for (key, names) in [
        ("a100-40gb", "2 x 2g.10gb, 1 x 3g.20gb"),
        ("a100-80gb", "2 x 2g.20gb, 1 x 3g.40gb"),
        ("h100-sxm-80gb", "2 x 2g.20gb, 1 x 3g.40gb"),
        ("h100-nvl-94gb", "2 x 2g.24gb, 1 x 3g.47gb"),
        ("h100-96gb", "2 x 2g.24gb, 1 x 3g.48gb"),
        ("h200-141gb", "2 x 2g.35gb, 1 x 3g.71gb"),
        ("b200-180gb", "2 x 2g.45gb, 1 x 3g.90gb"),
        ("gb200-186gb", "2 x 2g.47gb, 1 x 3g.93gb"),
        ("gb300-278gb", "2 x 2g.70gb, 1 x 3g.139gb"),
        ("a30-24gb", "2 x 1g.6gb, 1 x 2g.12gb"),
        ("rtx-pro-6000-blackwell-96gb", "2 x 1g.24gb, 1 x 2g.48gb"),
    ] {
        let target = resolve(&file.layouts[0], &nodes(key, 1)).unwrap();
        let mut wanted: Vec<&WantedProfile> = target.gpus[0].wanted.iter().collect();
        wanted.sort_by_key(|wanted| wanted.profile);
        let said: Vec<String> =
            wanted.iter().map(|w| format!("{} x {}", w.instances.len(), w.profile)).collect();
        assert_eq!(said.join(", "), names, "{key}");
    }
    // Where a batch's driver shows other figures, these are its names.
    let mut odd = nodes("gb200-186gb", 1);
    for profile in &mut odd.gpus[0].profiles {
        profile.name.gigabytes += 1;
    }
    let target = resolve(&file.layouts[0], &odd).unwrap();
    assert!(target.gpus[0].wanted.iter().any(|wanted| wanted.profile.to_string() == "3g.94gb"));
}

/// Empty MIG breaks those who look for instances: it must be said, and is noted.
#[test]
fn mig_on_without_instances_is_said_and_noted() {
    let node = nodes("h100-sxm-80gb", 1);
    let empty = rules("{match: all, instances: none}", &node).unwrap();
    assert!(empty.gpus[0].mig && empty.gpus[0].wanted.is_empty());
    assert!(empty.notes.iter().any(|note| note.message.contains("no program can use such a GPU")));
    let pooled = rules("{match: all, instances: none, pool: {profiles: [1g]}}", &node).unwrap();
    assert!(pooled.notes.is_empty(), "what is carved on demand is used");
    for empty in ["", "instances: ", "instances: {}", "instances: []", "mig: on"] {
        let text = format!("layouts: {{one: {{gpus: [{{match: all, {empty}}}]}}}}");
        assert!(parse(&text, "t").is_err(), "{empty}");
    }
}

#[test]
fn written_starts_and_splits_are_kept_to() {
    let after = |state: &str, instances: &str| -> String {
        let node = crate::fixtures::node(vec![holding(gpu("a100-40gb", 0), state)]);
        let target = rules(&format!("{{match: all, instances: {instances}}}"), &node).unwrap();
        let plan = make(&node, &target, &Policy::default()).unwrap_or_else(|faults| panic!("{faults:#?}"));
        assert!(audit(&plan, &node).is_empty());
        let one = |spec: &crate::plan::InstanceSpec| {
            let split: Vec<String> = spec.compute.iter().map(|c| c.slices.to_string()).collect();
            format!("{}@{}:{}", spec.profile.slices, spec.placement.start, split.join("+"))
        };
        let gpu = &plan.gpus[0];
        let list: Vec<String> = gpu.after.iter().map(one).collect();
        format!("{} -{} +{}", list.join(" "), gpu.destroy.len(), gpu.create.len())
    };
    assert_eq!(after("", "[3g@4]"), "3@4:3 -0 +1");
    assert_eq!(after("3g@0", "[3g@4]"), "3@4:3 -1 +1");
    assert_eq!(after("3g@4", "[3g@4]"), "3@4:3 -0 +0");
    assert_eq!(after("3g@0", "[3g@4, 3g]"), "3@0:3 3@4:3 -0 +1");
    assert_eq!(after("", "{3g@4: [2c, 1c], 1g: max}"), "1@0:1 1@1:1 1@2:1 1@3:1 3@4:2+1 -0 +5");
    assert_eq!(after("3g@4:2c+1c", "{3g: [1c, 2c]}"), "3@4:2+1 -0 +0");
    // Begun at 4 it leaves 4g creatable.
    assert_eq!(after("", "{3g: none}"), "3@4: -0 +1");
    let node = nodes("a100-40gb", 1);
    for (instances, near) in
        [("3g@2", Some("3g@0")), ("2g.10gb@3", Some("2g.10gb@2")), ("[2g@0, 1g@1]", None)]
    {
        let faults = rules(&format!("{{match: all, instances: {instances}}}"), &node).unwrap_err();
        assert_eq!(reasons(&faults), [Reason::LayoutUnplaceable], "{instances}");
        assert_eq!(faults[0].near.first().map(String::as_str), near, "{instances}");
    }
}

#[test]
fn a_profile_that_no_gpu_has_is_never_silently_empty() {
    let node = nodes("a30-24gb", 2);
    for rule in ["{match: all, instances: 3g}", "{match: {profile: 3g.20gb}, instances: 3g.20gb}"] {
        let faults = rules(rule, &node).unwrap_err();
        assert_eq!(reasons(&faults), [Reason::ProfileUnknown], "{rule}");
        assert!(!faults[0].near.is_empty(), "{faults:?}");
    }
    let pool = "{match: all, instances: none, pool: {profiles: [3g]}}";
    assert_eq!(reasons(&rules(pool, &node).unwrap_err()), [Reason::ProfileUnknown]);
    let shared = "{match: all, instances: 1g, sharing: {3g: {mps: {}}}}";
    assert_eq!(reasons(&rules(shared, &node).unwrap_err()), [Reason::ProfileUnknown]);
    let shared = rules("{match: all, instances: largest, sharing: {mps: {}}}", &node).unwrap();
    assert!(shared.notes.iter().any(|note| note.reason == Reason::SharingUnavailable));
}
