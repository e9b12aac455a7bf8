//! `show`, `generate`, `export layout`, `schema`: what is written is read with the same meaning.

use migd_tests::{Lab, mutating, python, root, run};
use std::process::Command;

#[test]
fn what_is_exported_changes_nothing_when_it_is_applied() {
    for (node, states) in [
        ("3xa100-40gb", vec!["1g@0 1g@1* 2g@2 3g@4[1c,2c]", "off", "3g@0[] 3g@4*"]),
        ("2xh100-sxm-80gb", vec!["4g@0[2c,2c] 3g@4", "7g@0[1c,1c]"]),
        ("mixed", vec!["1g.5gb+me@6 1g.10gb@0", "1g@0 1g@2* 1g@3"]),
        ("2xa30-24gb", vec!["on", "on"]),
    ] {
        let lab = Lab::new(node);
        for (gpu, state) in states.iter().enumerate() {
            lab.simulate("set", &[&gpu.to_string(), state]).expect(0);
        }
        let text = lab.run(&["export", "layout", "--name", "now"]).expect(0).out;
        let file = lab.file("now.yaml", &text);
        let file = file.to_str().unwrap();
        lab.trace();
        assert_eq!(lab.run(&["plan", "now", "-f", file]).code(), 0, "{node}: {text}");
        lab.run(&["apply", "now", "-f", file]).expect(0);
        assert!(mutating(&lab.trace()).is_empty(), "{node}: {text}");
    }
}

#[test]
fn what_a_node_held_comes_back_in_both_forms() {
    let lab = Lab::new("2xa100-40gb");
    lab.simulate("set", &["0", "1g@6 2g@4 3g@0[1c,2c]"]).expect(0);
    lab.simulate("set", &["1", "off"]).expect(0);
    let native = lab.run(&["export", "layout"]).expect(0).out;
    let v1 = lab.run(&["export", "layout", "--as", "v1"]).expect(0).out;
    let (native, v1) = (lab.file("native.yaml", &native), lab.file("v1.yaml", &v1));
    for (file, holds) in [(native, Some("3g.20gb@0 2g.10gb@4 1g.5gb@6")), (v1, None)] {
        lab.run(&["apply", "all-1g"]).expect(0);
        let file = file.to_str().unwrap();
        lab.run(&["apply", "exported", "-f", file]).expect(0);
        assert_eq!(lab.status()["gpus"][1]["mig"]["current"], "disabled");
        let instances = lab.status()["gpus"][0]["instances"].as_array().unwrap().len();
        assert_eq!(instances, 3);
        if let Some(holds) = holds {
            assert_eq!(lab.holds(0), holds);
        }
    }
}

#[test]
fn what_is_generated_can_be_had_by_the_node_in_both_forms() {
    for node in ["8xa100-40gb", "mixed", "gb200"] {
        let lab = Lab::new(node);
        for form in ["native", "v1"] {
            let text = lab.run(&["generate", "--as", form]).expect(0).out;
            let file = lab.file("generated.yaml", &text);
            lab.run(&["check", file.to_str().unwrap(), "--for", "this"]).expect(0);
        }
        // Beside what ships it stands in nobody's way.
        std::fs::create_dir(lab.path("layouts.d")).unwrap();
        let text = lab.run(&["generate"]).expect(0).out;
        lab.file("layouts.d/generated.yaml", &text);
        lab.run(&["check"]).expect(0);
        lab.run(&["apply", "max-1g.5gb"]).expect(if node == "gb200" { 3 } else { 0 });
    }
}

#[test]
fn a_layout_is_shown_in_the_other_form_and_what_that_cannot_say_is_refused() {
    let lab = Lab::new("2xa100-40gb,1xa30-24gb");
    let shown = lab.run(&["show", "half-balanced"]).expect(0).out;
    assert!(shown.contains("- match: {index: first-half}"), "{shown}");
    let refused = lab.run(&["show", "half-balanced", "--as", "v1", "--json"]).expect(3).json();
    assert_eq!(refused["reason"], "layout-invalid");
    let v1 = lab.run(&["show", "half-balanced", "--as", "v1", "--for", "this"]).expect(0).out;
    let file = lab.file("v1.yaml", &v1);
    lab.run(&["apply", "half-balanced"]).expect(0);
    lab.run(&["plan", "half-balanced", "-f", file.to_str().unwrap()]).expect(0);
    let peer = root().join("src/core/tests/data/peer-default-layouts.yaml");
    let native = lab.run(&["show", "all-balanced", "-f", peer.to_str().unwrap()]).expect(0).out;
    let file = lab.file("native.yaml", &native);
    lab.run(&["apply", "all-balanced"]).expect(0);
    lab.run(&["plan", "all-balanced", "-f", file.to_str().unwrap()]).expect(0);
    let document = lab.run(&["show", "all-off", "--json"]).expect(0).json();
    assert_eq!((&document["format"], &document["form"]), (&"migd-layout-text/1".into(), &"native".into()));
    assert!(document["text"].as_str().unwrap().starts_with("layouts:\n  all-off:"));
}

#[test]
fn the_schema_takes_what_migctl_takes_and_refuses_most_of_what_it_refuses() {
    let lab = Lab::new("1xa100-40gb");
    let schema = lab.file("schema.json", &lab.run(&["schema"]).expect(0).out);
    let mut command = Command::new(python());
    command.arg(root().join("tests/python/schema.py")).arg(schema).arg(root());
    let told = run(&mut command).expect(0).json();
    assert_eq!(told["right but refused"], serde_json::json!([]));
    // What no schema can say: it is about two places at once, or arithmetic. (A key that is a number is a text in JSON.)
    let beyond = [
        "compute-larger",
        "max-twice",
        "name-a-number",
        "off-and-instances",
        "pool-where-off",
        "profile-twice",
        "split-too-large",
        "start-twice",
        "v1-all-zero",
        "v1-same-profile-twice",
    ];
    assert_eq!(told["wrong but taken"], serde_json::json!(beyond));
}
