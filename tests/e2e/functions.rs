//! Every function that NVIDIA's binding wraps, on every GPU of the table in whole and MIG form: none crashes, and
//! each answers the code that tests/tables/functions.txt has for it. `MIGD_TABLES=overwrite` writes the file anew.

use migd_tests::{Lab, root};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

/// The forms, in the order in which functions.py tells them.
const FORMS: [&str; 3] = ["whole", "parent", "mig"];
/// The codes that a healthy driver answers to these calls, by the name that the table has for them.
const CODES: [(u64, &str); 10] = [
    (0, "ok"),
    (2, "invalid-argument"),
    (3, "not-supported"),
    (4, "no-permission"),
    (6, "not-found"),
    (7, "insufficient-size"),
    (10, "timeout"),
    (19, "in-use"),
    (21, "no-data"),
    (25, "version-mismatch"),
];
const HEAD: &str = "\
# What each function of nvidia-ml-py answers on a simulated node (tests/python/functions.py calls them):
#   whole   a GPU with MIG off
#   parent  a GPU in MIG mode, with one GPU instance and its compute instance
#   mig     that instance's MIG device
# A function of a GPU instance has NULL in the first form, the instance in the second, and a MIG device's handle,
# which is none, in the third. Behind the three codes stand the GPUs that answer otherwise, as FORMS CODE: GPUs;
# what NVIDIA does not publish of a board (clocks, power limits, links) it does not tell.
# Written by MIGD_TABLES=overwrite cargo nextest run -p migd-tests functions
";

/// What is known of real drivers, whatever the file says: from nvml.h's notes and public reports.
const KNOWN: [(&str, [&str; 3]); 30] = [
    ("nvmlDeviceGetUtilizationRates", ["ok", "not-supported", "not-supported"]),
    ("nvmlDeviceGetEncoderUtilization", ["ok", "not-supported", "not-supported"]),
    ("nvmlDeviceGetDecoderUtilization", ["ok", "not-supported", "not-supported"]),
    ("nvmlDeviceGetSamples", ["ok", "not-supported", "not-supported"]),
    ("nvmlDeviceGetProcessUtilization", ["not-found", "not-supported", "not-supported"]),
    ("nvmlDeviceGetNumGpuCores", ["ok", "not-supported", "not-supported"]),
    ("nvmlDeviceGetMemoryErrorCounter", ["ok", "not-supported", "ok"]),
    ("nvmlDeviceGetMemoryInfo", ["ok", "ok", "ok"]),
    ("nvmlDeviceGetBAR1MemoryInfo", ["ok", "ok", "ok"]),
    ("nvmlDeviceGetName", ["ok", "ok", "ok"]),
    ("nvmlDeviceGetUUID", ["ok", "ok", "ok"]),
    ("nvmlDeviceGetPowerUsage", ["ok", "ok", "not-supported"]),
    ("nvmlDeviceGetTemperature", ["ok", "ok", "not-supported"]),
    ("nvmlDeviceGetClockInfo", ["ok", "ok", "not-supported"]),
    ("nvmlDeviceGetPerformanceState", ["ok", "ok", "not-supported"]),
    ("nvmlDeviceGetTotalEnergyConsumption", ["ok", "ok", "not-supported"]),
    ("nvmlDeviceGetPcieReplayCounter", ["ok", "ok", "not-supported"]),
    ("nvmlDeviceGetCurrentClocksEventReasons", ["ok", "ok", "not-supported"]),
    ("nvmlDeviceGetFieldValues", ["ok", "ok", "ok"]),
    ("nvmlDeviceGetComputeMode", ["ok", "ok", "ok"]),
    ("nvmlDeviceSetComputeMode", ["ok", "not-supported", "not-supported"]),
    ("nvmlDeviceSetAccountingMode", ["ok", "not-supported", "not-supported"]),
    ("nvmlDeviceGetComputeRunningProcesses_v3", ["ok", "ok", "ok"]),
    ("nvmlDeviceGetAttributes_v2", ["not-supported", "not-supported", "ok"]),
    ("nvmlDeviceGetGpuInstanceId", ["invalid-argument", "invalid-argument", "ok"]),
    ("nvmlDeviceIsMigDeviceHandle", ["ok", "ok", "ok"]),
    ("nvmlDeviceRegisterEvents", ["ok", "ok", "not-supported"]),
    ("nvmlDeviceGetMigDeviceHandleByIndex", ["not-found", "ok", "invalid-argument"]),
    ("nvmlGpmQueryDeviceSupport", ["ok", "ok", "ok"]),
    ("nvmlGpuInstanceGetInfo", ["invalid-argument", "ok", "invalid-argument"]),
];

/// Code by (function, form, GPU).
type Cells = BTreeMap<(String, usize), BTreeMap<String, String>>;

/// Names for several GPUs at once: by architecture, and those without MIG.
fn groups() -> BTreeMap<String, Vec<String>> {
    let text = std::fs::read_to_string(root().join("profiles/gpus.yaml")).unwrap();
    let table: serde_json::Value = serde_yaml::from_str(&text).unwrap();
    let mut groups = BTreeMap::from([("without-mig".to_owned(), vec!["t4-16gb".into(), "l40s-48gb".into()])]);
    for gpu in table["gpus"].as_array().unwrap().iter().filter(|gpu| !gpu["geometry"].is_null()) {
        let architecture = gpu["architecture"].as_str().unwrap().to_lowercase().replace(' ', "-");
        groups.entry(architecture).or_default().push(gpu["key"].as_str().unwrap().to_owned());
    }
    groups
}

fn said(code: &serde_json::Value, place: &str) -> String {
    let known = CODES.iter().find(|(number, _)| Some(*number) == code.as_u64());
    known.unwrap_or_else(|| panic!("{place}: no healthy driver answers {code}")).1.to_owned()
}

/// Calls everything on every GPU.
fn observed(groups: &BTreeMap<String, Vec<String>>) -> Cells {
    let mut cells = Cells::new();
    for key in groups.values().flatten() {
        let lab = Lab::described(&format!("nvswitch: true\ngpus:\n- gpu: {key}\n"));
        let found = lab.python("functions.py", &[]).expect(0).json();
        for (function, codes) in found.as_object().unwrap() {
            for (form, code) in codes.as_array().unwrap().iter().enumerate() {
                let code = said(code, &format!("{function} on {key} as {}", FORMS[form]));
                cells.entry((function.clone(), form)).or_default().insert(key.clone(), code);
            }
        }
    }
    cells
}

/// The code that most GPUs answer.
fn usual(of: &BTreeMap<String, String>) -> String {
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    of.values().for_each(|code| *counts.entry(code).or_default() += 1);
    counts.into_iter().max_by_key(|(code, count)| (*count, *code)).unwrap().0.clone()
}

/// GPUs by their groups, as far as these are whole.
fn grouped(mut keys: BTreeSet<&String>, groups: &BTreeMap<String, Vec<String>>, form: usize) -> String {
    let mut words = Vec::new();
    for (name, members) in groups {
        // GPUs without MIG have no form but the first.
        if (form == 0 || name != "without-mig") && members.iter().all(|key| keys.contains(key)) {
            words.push(name.clone());
            members.iter().for_each(|key| {
                keys.remove(key);
            });
        }
    }
    words.extend(keys.into_iter().cloned());
    words.join(" ")
}

fn written(cells: &Cells, groups: &BTreeMap<String, Vec<String>>) -> String {
    let functions: BTreeSet<&String> = cells.keys().map(|(function, _)| function).collect();
    // Each line's exceptions as (GPUs, code) with the forms in which they hold.
    let mut lines = Vec::new();
    let mut uses: BTreeMap<String, usize> = BTreeMap::new();
    for function in functions {
        let mut line = format!("{function:<58}");
        let mut exceptions: BTreeMap<(String, &str), Vec<&str>> = BTreeMap::new();
        for (form, name) in FORMS.iter().enumerate() {
            let answers = &cells[&(function.clone(), form)];
            let usual = usual(answers);
            write!(line, " {usual:<16}").unwrap();
            for code in CODES.iter().map(|code| code.1).filter(|code| *code != usual) {
                let keys: BTreeSet<_> = answers.iter().filter(|one| one.1 == code).map(|one| one.0).collect();
                if !keys.is_empty() {
                    exceptions.entry((grouped(keys, groups, form), code)).or_default().push(name);
                }
            }
        }
        exceptions.keys().for_each(|(keys, _)| *uses.entry(keys.clone()).or_default() += 1);
        lines.push((line, exceptions));
    }
    // What comes up again and again gets a name.
    let long = uses.iter().filter(|(keys, uses)| **uses > 2 && keys.split(' ').count() > 3);
    let names: BTreeMap<&String, String> =
        (1..).zip(long).map(|(n, (keys, _))| (keys, format!("set-{n}"))).collect();

    let mut text = HEAD.to_owned();
    for (name, members) in groups {
        writeln!(text, "# {name} = {}", members.join(" ")).unwrap();
    }
    for (keys, name) in &names {
        writeln!(text, "# {name} = {keys}").unwrap();
    }
    for (line, exceptions) in lines {
        let exceptions = exceptions.into_iter().map(|((keys, code), forms)| {
            let keys = names.get(&keys).cloned().unwrap_or(keys);
            format!("{} {code}: {keys}", forms.join("+"))
        });
        let line = format!("{line} {}", exceptions.collect::<Vec<_>>().join("; "));
        writeln!(text, "{}", line.trim_end()).unwrap();
    }
    text
}

/// The cells that a table's text stands for.
fn read(text: &str, groups: &BTreeMap<String, Vec<String>>) -> Cells {
    let mut names = groups.clone();
    let mut cells = Cells::new();
    for line in text.lines() {
        if let Some(note) = line.strip_prefix('#') {
            if let Some((name, words)) = note.split_once(" = ") {
                let keys = words.split_whitespace().flat_map(|word| members(word, &names)).collect();
                names.insert(name.trim().to_owned(), keys);
            }
            continue;
        }
        // The codes that most answer, then the exceptions.
        let mut words = line.split_whitespace();
        let function = words.next().unwrap().to_owned();
        let usual: Vec<&str> = words.by_ref().take(3).collect();
        assert_eq!(usual.len(), 3, "tests/tables/functions.txt: `{line}` has not three codes");
        let exceptions = words.collect::<Vec<_>>().join(" ");
        for (form, code) in usual.iter().enumerate() {
            let with = groups.iter().filter(|(name, _)| form == 0 || *name != "without-mig");
            let all = with.flat_map(|(_, keys)| keys).map(|key| (key.clone(), (*code).to_owned()));
            cells.insert((function.clone(), form), all.collect());
        }
        for exception in exceptions.split(';').filter(|text| !text.trim().is_empty()) {
            let (place, keys) =
                exception.split_once(':').unwrap_or_else(|| panic!("`{exception}` in {line}"));
            let (forms, code) = place.trim().split_once(' ').unwrap();
            for form in forms.split('+') {
                let form = FORMS.iter().position(|name| *name == form).unwrap();
                let answers = cells.get_mut(&(function.clone(), form)).unwrap();
                let keys = keys.split_whitespace().flat_map(|word| members(word, &names));
                answers.extend(keys.map(|key| (key, code.to_owned())));
            }
        }
    }
    cells
}

/// The GPUs that a word of the table stands for.
fn members(word: &str, names: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    names.get(word).cloned().unwrap_or_else(|| vec![word.to_owned()])
}

/// Every cell in which two tables differ, in words.
fn differences(observed: &Cells, expected: &Cells) -> Vec<String> {
    let none = BTreeMap::new();
    let places: BTreeSet<_> = observed.keys().chain(expected.keys()).collect();
    let mut found = Vec::new();
    for place in places {
        let (is, should) = (observed.get(place).unwrap_or(&none), expected.get(place).unwrap_or(&none));
        let keys: BTreeSet<_> = is.keys().chain(should.keys()).collect();
        for key in keys.into_iter().filter(|key| is.get(*key) != should.get(*key)) {
            let word = |of: &BTreeMap<String, String>| of.get(key).cloned().unwrap_or("nothing".into());
            let (function, form) = place;
            let form = FORMS[*form];
            found.push(format!("{function} on {key} as {form}: {}, not {}", word(is), word(should)));
        }
    }
    found
}

#[test]
fn answers_what_the_table_has_on_every_gpu_in_every_form() {
    let groups = groups();
    let observed = observed(&groups);
    let path = root().join("tests/tables/functions.txt");
    if std::env::var_os("MIGD_TABLES").is_some_and(|word| word == "overwrite") {
        std::fs::write(&path, written(&observed, &groups)).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let found = differences(&observed, &read(&text, &groups));
    assert!(found.is_empty(), "{} cells differ from {}:\n{}", found.len(), path.display(), found.join("\n"));

    let known =
        KNOWN.iter().flat_map(|(function, codes)| codes.iter().enumerate().map(move |c| (function, c)));
    for (function, (form, code)) in known {
        for (key, said) in &observed[&((*function).to_owned(), form)] {
            // Boards without MIG have no instances to be asked for, and no such error counters.
            assert_eq!(said, code, "{function} on {key} as {}: drivers are known to answer so", FORMS[form]);
        }
    }
    // 433 functions of the binding, three of which call no driver.
    assert_eq!(observed.len(), 430 * 3);
}

#[test]
fn a_cell_that_differs_is_named() {
    let groups = BTreeMap::from([("hopper".to_owned(), vec!["h1".to_owned(), "h2".to_owned()])]);
    let text = "# x\nnvmlA  ok not-supported ok  mig not-found: h2\nnvmlB ok ok ok\n";
    let table = read(text, &groups);
    assert_eq!(read(&written(&table, &groups), &groups), table, "what is written is read as it was");
    let mut other = table.clone();
    other.get_mut(&("nvmlA".to_owned(), 2)).unwrap().insert("h1".into(), "in-use".into());
    assert_eq!(differences(&other, &table), ["nvmlA on h1 as mig: in-use, not ok"]);
    other.remove(&("nvmlB".to_owned(), 0));
    assert_eq!(differences(&other, &table).len(), 3);
}

#[test]
fn null_and_wrong_handles_are_answered_not_followed() {
    let calls = Lab::new("1xh100-sxm-80gb").python("nulls.py", &[]).expect(0).out;
    let calls: u32 = calls.trim().parse().unwrap();
    assert!(calls > 3000, "{calls} calls");
}
