use super::*;
use crate::{
    check::fits,
    fixtures::{gpu, holding, node, nodes, off, plain_gpu},
    imagined,
    layout::{
        Library,
        write::{native, v1},
    },
    plan::{self, Policy},
    target,
};

/// What is written of a node, applied to that node.
fn plan_of_export(node: &Node) -> plan::Plan {
    let text = native(&[export(node, "now", false)]);
    let library = Library::given(&text, "t");
    let layout = library.find("now").unwrap_or_else(|faults| panic!("{text}\n{faults:#?}"));
    let target = target::resolve(layout, node).unwrap_or_else(|faults| panic!("{text}\n{faults:#?}"));
    plan::make(node, &target, &Policy::default()).unwrap_or_else(|faults| panic!("{text}\n{faults:#?}"))
}

#[test]
fn what_is_exported_changes_nothing_in_any_state_of_a_gpu() {
    let one = gpu("a100-40gb", 0);
    let ids: Vec<u32> = one.profiles.iter().map(|profile| profile.id).collect();
    let states = Geometry::new(&one.profiles, 580).unwrap().states(&ids);
    assert_eq!(states.len(), 2319);
    for state in states.iter().step_by(7) {
        let node = node(vec![crate::fixtures::with_placed(one.clone(), state)]);
        assert!(plan_of_export(&node).is_empty(), "{state:?}");
    }
}

#[test]
fn what_is_exported_changes_nothing_on_a_mixed_node_with_odd_instances() {
    let mixed = node(vec![
        holding(gpu("a100-40gb", 0), "3g@0:2c+1c 2g@4:none 1g@6*"),
        holding(gpu("a100-40gb", 1), "4g@0:1c 3g@4"),
        off(gpu("a100-40gb", 2)),
        holding(gpu("a30-24gb", 3), ""),
        plain_gpu(4),
        holding(gpu("a100-40gb", 5), "3g@0:2c+1c 2g@4:none 1g@6"),
    ]);
    assert!(plan_of_export(&mixed).is_empty());
    let text = native(&[export(&mixed, "now", false)]);
    assert!(text.contains("[{3g.20gb@0: [2c, 1c]}, {2g.10gb@4: none}, 1g.5gb@6]"), "{text}");
    assert!(text.contains("instances: [{4g.20gb@0: [1c]}, 3g.20gb@4]"), "{text}");
    assert_eq!(text.matches("- match: {uuid: ").count(), 4, "{text}");
    let alike = node(vec![holding(gpu("a100-40gb", 0), "7g@0"), holding(gpu("a100-40gb", 1), "7g@0")]);
    assert!(native(&[export(&alike, "now", false)]).contains("- match: all\n        instances: 7g.40gb@0\n"));
    assert!(plan_of_export(&alike).is_empty());
}

#[test]
fn the_peers_form_of_what_a_node_holds_is_counted() {
    let node = node(vec![holding(gpu("a100-40gb", 0), "1g@0 1g@1 2g@2 3g@4:2c+1c")]);
    let text = v1(&[export(&node, "now", true)]).unwrap();
    assert!(text.contains("{\"1g.5gb\": 2, \"2g.10gb\": 1, \"1c.3g.20gb\": 1, \"2c.3g.20gb\": 1}"), "{text}");
}

#[test]
fn all_that_is_generated_can_be_had_in_both_forms() {
    for notation in ["8xa100-40gb", "mixed", "a30x4", "rtx-pro-6000x8", "2xh200-141gb,1xa100-80gb"] {
        let node = imagined::node(notation).unwrap();
        let shipped = [
            include_str!("../../../../profiles/layouts.d/migd.yaml"),
            include_str!("../../../../profiles/layouts.d/mig-parted.yaml"),
        ];
        let layouts = generate(&node, Names::OWN).unwrap();
        let mut beside = Library::default();
        shipped.iter().for_each(|text| beside.add(text, text.get(..20).unwrap()));
        beside.add(&native(&layouts), "generated");
        assert_eq!(beside.faults(), [], "{notation}");
        let peer = generate(&node, Names::PEER).unwrap();
        for (layouts, text) in [(&layouts, native(&layouts)), (&peer, v1(&peer).unwrap())] {
            let library = Library::given(&text, "t");
            assert_eq!(library.faults(), [], "{notation}\n{text}");
            assert_eq!(library.layouts().count(), layouts.len());
            for layout in library.layouts() {
                let found = fits(layout, &node);
                assert!(found.is_ok(), "{notation} {}: {found:?}", layout.name);
            }
        }
    }
}

#[test]
fn generates_every_mixture_to_which_nothing_can_be_added() {
    let names = |key: &str| -> Vec<String> {
        let layouts = generate(&nodes(key, 2), Names::OWN).unwrap();
        layouts.into_iter().map(|layout| layout.name).filter(|name| name.starts_with("mix-")).collect()
    };
    // Those of the twelve and of the four that are of several profiles.
    assert_eq!(
        names("h100-sxm-80gb"),
        [
            "mix-4g-3g",
            "mix-4g-2g-1g",
            "mix-4g-3x1g",
            "mix-3g-2x2g",
            "mix-3g-2g-2x1g",
            "mix-3g-4x1g",
            "mix-3x2g-1g",
            "mix-2x2g-3x1g",
            "mix-2g-5x1g"
        ]
    );
    assert_eq!(names("a30-24gb"), ["mix-2g-2x1g"]);
    // What an old driver refuses is not offered.
    let old = imagined::node_of_file("driver: 470.82.01\ngpus: [{gpu: a100-40gb}]", "n").unwrap();
    assert!(generate(&old, Names::OWN).unwrap().iter().all(|layout| layout.name != "mix-4g-3g"));
}
