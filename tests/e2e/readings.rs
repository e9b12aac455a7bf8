//! What NVML shows is what was set, by every function that tells it; or follows from a load.

use migd_tests::Lab;
use serde_json::{Map, Value};

/// Each reading's unit, as `readings` prints it.
fn units(lab: &Lab, place: &str) -> Vec<(String, String)> {
    let table = lab.simulated("readings", &[place]).expect(0).out;
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words[0].to_owned(), words[2].to_owned())
    };
    table.lines().skip(1).map(row).collect()
}

/// A value of its own for each reading, within what is legal.
fn values(readings: &[(String, String)]) -> Map<String, Value> {
    let value = |(index, (name, unit)): (usize, &(String, String))| {
        let value = match unit.as_str() {
            "0/1" => 1.into(),
            "0-4" => 3.into(),
            "P" => 2.into(),
            "%" if name.ends_with("-active") => (12.25 + index as f64).into(),
            "%" | "C" => (20 + index).into(),
            "mW" => 123_456.into(),
            "MHz" => (1000 + index).into(),
            // InfoROM has room for 64.
            "pages" => (3 + index % 40).into(),
            // Below the smallest memory of the GPUs used here.
            "MiB" => (100 + index).into(),
            // The double of a link's, so that the total is exact.
            _ => Value::from(1_000_000 + index as u64),
        };
        (name.clone(), value)
    };
    readings.iter().enumerate().map(value).collect()
}

fn set(lab: &Lab, place: &str, values: &Map<String, Value>) {
    let words: Vec<String> =
        values.iter().flat_map(|(name, value)| [name.clone(), value.to_string()]).collect();
    let mut arguments = vec![place];
    arguments.extend(words.iter().map(String::as_str));
    lab.simulated("set", &arguments).expect(0);
}

fn node(key: &str) -> Lab {
    // The workstation board is the one with fans.
    let product = match key {
        "rtx-pro-6000-blackwell-96gb" => ", product: NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
        _ => "",
    };
    Lab::described(&format!("nvswitch: true\ngpus:\n- {{ gpu: {key}{product} }}\n"))
}

#[test]
fn what_is_set_is_shown_by_every_function_of_a_whole_gpu() {
    for key in ["a100-80gb", "h100-sxm-80gb", "b200-180gb", "t4-16gb", "rtx-pro-6000-blackwell-96gb"] {
        let lab = node(key);
        let readings = units(&lab, "0");
        let values = values(&readings);
        set(&lab, "0", &values);
        let text = Value::from(values.clone()).to_string();
        let known = lab.python("readings.py", &[key, "whole", &text]).expect(0).json();
        let mut names: Vec<&String> = values.keys().collect();
        names.sort();
        assert_eq!(known, Value::from_iter(names.into_iter().cloned()), "every reading is looked at");
    }
}

#[test]
fn what_is_set_is_shown_in_mig_form_where_the_driver_tells_it() {
    for key in ["a100-80gb", "h100-sxm-80gb", "b200-180gb"] {
        let lab = node(key);
        lab.simulated("set", &["0", "3g@4 1g@0"]).expect(0);
        let whole = values(&units(&lab, "0"));
        set(&lab, "0", &whole);
        // Another value for the instance, of the same kind.
        let own = units(&lab, "0/2");
        let own: Vec<(String, String)> = own.into_iter().rev().collect();
        let own = values(&own);
        set(&lab, "0/2", &own);
        let text = |values: &Map<String, Value>| Value::from(values.clone()).to_string();
        lab.python("readings.py", &[key, "parent", &text(&whole)]).expect(0);
        lab.python("readings.py", &[key, "mig", &text(&own)]).expect(0);
    }
}

#[test]
fn readings_move_with_the_load_and_only_with_it() {
    let lab = node("h100-sxm-80gb");
    lab.simulated("set", &["0", "3g@4 1g@0"]).expect(0);
    let idle = lab.python("load.py", &[]).expect(0).json();
    assert_eq!(lab.python("load.py", &[]).expect(0).json(), idle, "nothing has changed");
    lab.simulated("load", &["0/2", "0.5"]).expect(0);
    let loaded = lab.python("load.py", &[]).expect(0).json();
    let number = |of: &Value, name: &str| of[name].as_f64().unwrap();
    for name in ["power", "temperature", "clock", "used", "instance used"] {
        assert!(number(&loaded, name) > number(&idle, name), "{name}: {idle} then {loaded}");
    }
    assert_eq!(number(&loaded, "instance used"), 0.5 * 0.5 * number(&loaded, "instance total"));
    assert_eq!(number(&idle, "instance active"), 0.0);
    assert!((number(&loaded, "instance active") - 50.0).abs() < 1e-6, "{loaded}");
    assert!((number(&loaded, "active") - 50.0 * 3.0 / 7.0).abs() < 1e-6, "{loaded}");
    assert_eq!(number(&loaded, "other active"), 0.0, "the other instance is idle");

    // Another node of the same description shows the same.
    let twin = node("h100-sxm-80gb");
    twin.simulated("set", &["0", "3g@4 1g@0"]).expect(0);
    twin.simulated("load", &["0/2", "0.5"]).expect(0);
    assert_eq!(twin.python("load.py", &[]).expect(0).json(), loaded);
}

#[test]
fn a_wrong_load_or_reading_is_refused_with_what_is_legal() {
    let lab = Lab::new("1xh100-sxm-80gb");
    let refused = |words: &[&str], part: &str| {
        let (word, rest) = words.split_first().unwrap();
        let ended = lab.simulated(word, rest).expect(3);
        assert!(ended.err.contains(part), "{words:?}: {}", ended.err);
    };
    refused(&["load", "0", "1.5"], "load `1.5`; legal is 0 (idle) to 1 (full)");
    refused(&["load", "0", "NaN"], "legal is 0 (idle)");
    refused(&["set", "0", "temprature", "80"], "did you mean temperature?");
    refused(&["set", "0", "power", "-5"], "a whole number from 0");
    refused(&["set", "0", "power", "5", "energy"], "`energy` has no value");
    refused(&["load", "0/7", "0.5"], "no GPU instance `7`; there are none");
    lab.simulated("set", &["0", "1g@0"]).expect(0);
    refused(&["load", "0", "0.5"], "its load is that of its GPU instances; it has 7");
    refused(&["set", "0/7", "power", "5"], "`power` is measured of whole GPUs only");
    refused(&["load", "0/7/0", "0.5"], "compute instance 0 is measured with its GPU instance");
}
