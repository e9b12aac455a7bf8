use super::{super::*, *};
use crate::{check::fits, fixtures::nodes, imagined, node::Node, target};

const PEER: &str = include_str!("../../../tests/data/peer-default-layouts.yaml");

fn read(text: &str) -> LayoutFile {
    parse(text, "t").unwrap_or_else(|faults| panic!("{text}\n{faults:#?}"))
}

/// What a layout asks of each GPU of a node, in words that are the same for the same meaning.
fn meaning(layout: &Layout, node: &Node) -> String {
    match target::resolve(layout, node) {
        Ok(target) => {
            let gpu = |gpu: &target::GpuTarget| format!("{} {} {:?}\n", gpu.index, gpu.mig, gpu.wanted);
            target.gpus.iter().map(gpu).collect::<String>() + &format!("{:?}", target.untouched)
        }
        Err(faults) => {
            format!("{:?}", faults.iter().map(|fault| (fault.reason, fault.gpu)).collect::<Vec<_>>())
        }
    }
}

#[test]
fn the_peers_file_means_the_same_in_migds_form_and_back() {
    let peer = read(PEER);
    let native = read(&native(&peer.layouts));
    let back = read(&v1(&native.layouts).unwrap());
    for node in ["8xa100-40gb", "4xh100-sxm-80gb", "mixed", "2xh200-141gb,1xa30-24gb", "rtx-pro-6000x8"] {
        let node = imagined::node(node).unwrap();
        for layout in &peer.layouts {
            let there = meaning(layout, &node);
            assert_eq!(meaning(native.find(&layout.name).unwrap(), &node), there, "{}", layout.name);
            assert_eq!(meaning(back.find(&layout.name).unwrap(), &node), there, "{}", layout.name);
        }
    }
}

#[test]
fn the_order_of_rules_is_turned_over() {
    let text = "version: v1\nmig-configs:\n  one:\n  - {devices: all, mig-enabled: false}\n  \
                - {devices: [1, 2], mig-enabled: true, mig-devices: {1g.5gb: 7}}\n  \
                - {devices: [2], mig-enabled: true, mig-devices: {}}\n";
    let layout = read(text).layouts.remove(0);
    let written = native(std::slice::from_ref(&layout));
    let node = nodes("a100-40gb", 4);
    assert_eq!(meaning(&read(&written).layouts[0], &node), meaning(&layout, &node));
    assert_eq!(
        written,
        "layouts:\n  one:\n    gpus:\n      - match: {index: 2}\n        instances: none\n      \
         - match: {index: [1, 2]}\n        instances: 7x 1g.5gb\n      - match: all\n        mig: off\n"
    );
    // What an entry for all hides never decides and is left out.
    let hidden = text.replace("[1, 2]", "all");
    let written = native(&read(&hidden).layouts);
    assert_eq!(written.matches("- match").count(), 2, "{written}");
}

const WHOLE: &str = r#"layouts:
  half:
    description: "four \"whole\", four cut"
    gpus:
      - match: {index: [0, 1], model: "A100*"}
        mig: off
      - match: {uuid: "GPU-00000000-0000-0000-0000-000000000003", minor: 3}
        instances: [3g@4, {3g@0: [2c, 1c]}]
      - match: {pci: ["0000:07:00.0", "0x20B010DE"]}
        instances: [4g, {2g: none}, max 1g]
        pool: {profiles: [1g, 2g], on-release: destroy}
        sharing: {3g: {mps: {}}, 1g.double: {time-slicing: {replicas: 4}}}
      - match: {index: second-half, profile: [3g.20gb, 1g+me]}
        instances: 7x 1c.7g
      - match: all
        instances: balanced
        sharing: {mps: {}}
    unlisted: error
  "off":
    gpus:
      - match: all
        instances: none
"#;

#[test]
fn migds_form_is_written_as_it_is_read() {
    assert_eq!(native(&read(WHOLE).layouts), WHOLE);
}

#[test]
fn what_the_peers_form_cannot_say_is_named_place_by_place() {
    let faults = v1(&read(WHOLE).layouts).unwrap_err();
    let told: Vec<&str> =
        faults.iter().filter_map(|f| f.message.strip_prefix("mig-parted's form cannot say ")).collect();
    for what in [
        "what becomes of GPUs that no rule matches",
        "which GPUs are meant but by index or PCI id",
        "half of the GPUs",
        "'balanced'",
        "'3g', which has another name on each model",
        "where an instance begins",
        "that an instance has no compute instance",
        "'max'",
        "what may be carved on demand",
        "how programs share an instance",
    ] {
        assert!(told.contains(&what), "{what}: {told:#?}");
    }
    assert!(faults.iter().all(|fault| fault.place.is_some() && fault.help.is_some()));
}

#[test]
fn on_a_node_the_peers_form_says_what_it_comes_to() {
    let text = "layouts: {mix: {description: two kinds, gpus: [{match: {index: 0}, mig: off}, \
                {match: {profile: 3g}, instances: [{3g: [1c, 2c]}, max 1g]}, {match: all, instances: balanced}]}}";
    let layout = read(text).layouts.remove(0);
    let node = imagined::node("2xa100-40gb,1xa30-24gb,1xt4-16gb").unwrap();
    let written = v1_on(&layout, &node).unwrap();
    assert_eq!(
        written,
        "version: v1\nmig-configs:\n  # two kinds\n  mix:\n    \
         - devices: [2]\n      mig-enabled: true\n      mig-devices: {\"1g.6gb\": 2, \"2g.12gb\": 1}\n    \
         - devices: [1]\n      mig-enabled: true\n      \
         mig-devices: {\"1g.5gb\": 4, \"1c.3g.20gb\": 1, \"2c.3g.20gb\": 1}\n    \
         - devices: [0]\n      mig-enabled: false\n"
    );
    assert!(fits(&read(&written).layouts[0], &node).is_ok());
    for (instances, what) in [
        ("[3g@4]", "where an instance begins"),
        ("[{3g: none}]", "that an instance has no compute instance"),
        // The peer would pack both into one instance.
        ("[{3g: [1c]}, {3g: [1c]}]", "how these compute instances are packed"),
    ] {
        let text = format!("layouts: {{x: {{gpus: [{{match: all, instances: {instances}}}]}}}}");
        let faults = v1_on(&read(&text).layouts[0], &nodes("a100-40gb", 1)).unwrap_err();
        assert!(faults[0].message.ends_with(what), "{instances}: {faults:?}");
    }
}

#[test]
fn a_name_that_migds_form_does_not_allow_is_changed_and_said() {
    let text = "version: v1\nmig-configs:\n  \"my layout/2\":\n  - {devices: all, mig-enabled: false}\n";
    let written = native(&read(text).layouts);
    assert!(written.contains("  # was \"my layout/2\"\n  my-layout-2:\n"), "{written}");
    assert!(read(&written).find("my-layout-2").is_ok());
}
