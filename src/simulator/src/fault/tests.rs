use super::{latency::Latency, rule::duration, *};
use crate::{fixture, machine::Code, state::GpuState};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Two processes' views of one node's faults.
fn opened() -> (TempDir, Faults, Faults) {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (Faults::open(folder.path()).unwrap(), Faults::open(folder.path()).unwrap());
    (folder, one, other)
}

fn call(faults: &Faults, folder: &TempDir, name: &str, gpu: usize) -> Result<(), Code> {
    meet_at(faults, folder.path(), name, Scope::Begin(Some(gpu)), &|_| {})
}

fn add(faults: &Faults, text: &str) -> usize {
    faults.add(&[text.to_owned()]).unwrap()[0]
}

#[test]
fn a_rule_says_which_calls_and_what_they_meet() {
    let rule = Rule::read("fn=nvmlGpuInstanceDestroy gpu=2 nth=1 code=19").unwrap();
    assert_eq!(rule.function, "nvmlGpuInstanceDestroy");
    assert_eq!((rule.gpu, rule.when, rule.then), (Some(2), When::Nth(1), Then::Code(Code::IN_USE)));
    let then = |text: &str| Rule::read(&format!("fn=nvmlDeviceGetMigMode {text}")).unwrap().then;
    assert_eq!(then("code=GPU_IS_LOST"), then("code=15"));
    assert_eq!(then("code=nvml_error_gpu_is_lost"), then("code=15"));
    assert_eq!(then("hang=5s"), Then::Hang(Some(Duration::from_secs(5))));
    assert_eq!(then("hang=forever"), Then::Hang(None));
    assert_eq!(then("hang=unkillable"), Then::Unkillable);
    assert_eq!(then("stale=2s"), Then::Stale(Duration::from_secs(2)));
    assert_eq!(then("lost"), Then::Lost);
    assert_eq!(
        Rule::read("fn=nvmlDeviceSetMigMode activation=19").unwrap().then,
        Then::Activation(Code::IN_USE)
    );
    let profile = |text: &str| Rule::read(&format!("fn=nvmlDeviceGetGpuInstanceProfileInfo* profile={text}"));
    assert_eq!(profile("14 count=0").unwrap().then, Then::Count(14, 0));
    assert_eq!(profile("9 slot=17").unwrap().then, Then::Slot(9, 17));
    let when = |text: &str| Rule::read(&format!("fn=* {text} code=1")).unwrap().when;
    assert_eq!(when("rate=0.1 seed=7"), When::Rate { rate: 0.1, seed: 7 });
    assert_eq!((when("every"), when("for=2s")), (When::Every, When::For(Duration::from_secs(2))));
}

#[test]
fn what_is_no_rule_is_refused_with_what_is_legal() {
    for (text, says) in [
        ("", "it says no function"),
        ("code=1", "it says no function"),
        ("fn=nvmlDeviceSetMigMod code=1", "did you mean nvmlDeviceSetMigMode?"),
        ("fn=nvmlInit*", "it says not what happens"),
        ("fn=* code=", "`code` wants a value"),
        ("fn=* code=IN_USED", "did you mean IN_USE?"),
        ("fn=* kode=1", "did you mean code?"),
        ("fn=* code=1 code=2", "stands twice"),
        ("fn=* code=1 lost", "makes one thing happen"),
        ("fn=* lost=yes", "takes no value"),
        ("fn=* nth=0 code=1", "counts from 1"),
        ("fn=* nth=1 every code=1", "exclude each other"),
        ("fn=* rate=1.5 code=1", "between 0 and 1"),
        ("fn=* rate=NaN code=1", "between 0 and 1"),
        ("fn=* seed=1 code=1", "seed goes with rate"),
        ("fn=* gpu=32 code=1", "0 to 31"),
        ("fn=* gpu=-1 code=1", "0 to 31"),
        ("fn=* hang=5", "500us"),
        ("fn=* hang=-5s", "500us"),
        ("fn=* hang=1e9h", "500us"),
        ("fn=nvmlDeviceSet* stale=1s", "stale does not go with"),
        ("fn=nvmlDeviceGetName gap=1", "nvmlDeviceGetMigDeviceHandleByIndex"),
        ("fn=nvmlDeviceGetMigMode activation=19", "activation does not go with"),
        ("fn=nvmlDeviceGetGpuInstanceProfileInfo profile=9", "one of count and slot"),
        ("fn=nvmlDeviceGetName profile=9 count=0", "profile does not go with"),
        ("fn=nvmlDeviceGetName count=0", "one of count and slot"),
    ] {
        let why = Rule::read(text).unwrap_err();
        assert_eq!(why.exit_code(), 3);
        assert!(why.to_string().contains(says), "{text}: {why}");
    }
    assert!(Rule::read(&format!("fn=* {}code=1", " ".repeat(300))).is_err());
}

#[test]
fn a_pattern_stands_for_what_it_says_and_no_more() {
    let is_for =
        |pattern: &str, name: &str| Rule::read(&format!("fn={pattern} code=1")).unwrap().is_for(name);
    assert!(is_for("nvmlDeviceCreateGpuInstance*", "nvmlDeviceCreateGpuInstance"));
    assert!(is_for("nvmlDeviceCreateGpuInstance*", "nvmlDeviceCreateGpuInstanceWithPlacement"));
    assert!(is_for("*Instance*Info*", "nvmlGpuInstanceGetInfo"));
    assert!(is_for("nvmlInit_v?", "nvmlInit_v2"));
    assert!(!is_for("nvmlInit", "nvmlInit_v2"));
    assert!(!is_for("*Destroy", "nvmlGpuInstanceDestroyed"));
}

#[test]
fn the_nth_call_is_counted_over_all_processes() {
    let (folder, one, other) = opened();
    add(&one, "fn=nvmlDeviceGetName nth=3 code=19");
    let answers = [&one, &other, &one, &other].map(|view| call(view, &folder, "nvmlDeviceGetName", 0));
    assert_eq!(answers, [Ok(()), Ok(()), Err(Code::IN_USE), Ok(())]);
    assert_eq!(call(&one, &folder, "nvmlDeviceGetUUID", 0), Ok(()));
    assert_eq!(other.list()[0].hits, 4);
}

#[test]
fn a_rule_for_a_gpu_leaves_the_others_alone() {
    let (folder, one, _) = opened();
    add(&one, "fn=* gpu=2 code=19");
    assert_eq!(call(&one, &folder, "nvmlDeviceGetName", 1), Ok(()));
    assert_eq!(call(&one, &folder, "nvmlDeviceGetName", 2), Err(Code::IN_USE));
    assert_eq!(meet_at(&one, folder.path(), "nvmlDeviceGetName", Scope::Begin(None), &|_| {}), Ok(()));
    assert_eq!(meet_at(&one, folder.path(), "nvmlInit", Scope::Found(1), &|_| {}), Ok(()));
    let found = meet_at(&one, folder.path(), "nvmlDeviceGetHandleByIndex_v2", Scope::Found(2), &|_| {});
    assert_eq!(found, Err(Code::IN_USE));
}

#[test]
fn chances_are_as_said_and_the_same_for_the_same_seed() {
    let met = |seed: u64| {
        let (folder, one, _) = opened();
        add(&one, &format!("fn=* rate=0.25 seed={seed} code=1"));
        (0..2000).map(|_| call(&one, &folder, "nvmlInit", 0).is_err()).collect::<Vec<_>>()
    };
    let (first, again, other) = (met(7), met(7), met(8));
    assert_eq!(first, again);
    assert_ne!(first, other);
    let count = first.iter().filter(|met| **met).count();
    assert!((400..600).contains(&count), "{count} of 2000");
}

#[test]
fn one_for_a_time_ends_with_it() {
    let (folder, one, _) = opened();
    add(&one, "fn=* for=200ms code=19");
    assert_eq!(call(&one, &folder, "nvmlInit", 0), Err(Code::IN_USE));
    std::thread::sleep(Duration::from_millis(220));
    assert_eq!(call(&one, &folder, "nvmlInit", 0), Ok(()));
}

#[test]
fn who_hangs_goes_on_once_the_fault_is_cleared() {
    let (folder, one, other) = opened();
    let number = add(&one, "fn=nvmlInit hang=forever");
    std::thread::scope(|scope| {
        let hanging = scope.spawn(|| call(&one, &folder, "nvmlInit", 0));
        std::thread::sleep(Duration::from_millis(60));
        assert!(!hanging.is_finished());
        assert_eq!(call(&other, &folder, "nvmlShutdown", 0), Ok(()));
        other.clear(Some(number)).unwrap();
        assert_eq!(hanging.join().unwrap(), Ok(()));
    });
    let begin = Instant::now();
    add(&one, "fn=nvmlInit hang=30ms");
    assert_eq!(call(&one, &folder, "nvmlInit", 0), Ok(()));
    assert!(begin.elapsed() >= Duration::from_millis(30));
}

#[test]
fn rules_are_added_all_or_none_and_cleared_by_number_or_all() {
    let (_folder, one, other) = opened();
    assert!(one.add(&["fn=* code=1".to_owned(), "fn=* code=x".to_owned()]).is_err());
    assert!(one.list().is_empty() && !one.active());
    let numbers = one.add(&["fn=* code=1".to_owned(), "fn=*  lost".to_owned()]).unwrap();
    assert_eq!(numbers, [0, 1]);
    assert_eq!(
        other.list().iter().map(|rule| rule.text.clone()).collect::<Vec<_>>(),
        ["fn=* code=1", "fn=* lost"]
    );
    other.clear(Some(0)).unwrap();
    assert_eq!(one.list()[0].number, 1);
    assert!(one.clear(Some(0)).unwrap_err().to_string().contains("no fault 0"));
    one.clear(None).unwrap();
    assert!(other.list().is_empty() && !other.active());
    one.clear(None).unwrap();
    let many: Vec<String> = (0..64).map(|_| "fn=* code=1".to_owned()).collect();
    one.add(&many).unwrap();
    let why = other.add(&["fn=* code=1".to_owned()]).unwrap_err();
    assert!(why.to_string().contains("64"), "{why}");
}

#[test]
fn a_gpu_is_remembered_as_it_was_for_the_time_asked() {
    let (_folder, one, other) = opened();
    let mut before: GpuState = fixture::fresh();
    before.mig_current = 1;
    assert_eq!(one.recall(0, u64::MAX), None);
    one.remember(0, &before);
    assert_eq!(other.recall(0, 10_000_000_000), Some(before));
    assert_eq!(other.recall(1, 10_000_000_000), None);
    std::thread::sleep(Duration::from_millis(2));
    assert_eq!(other.recall(0, 1_000_000), None);
}

#[test]
fn latencies_are_named_or_a_file_and_the_first_that_fits_counts() {
    let (_folder, one, other) = opened();
    for (name, _) in PROFILES {
        one.set_latencies(&Latency::all(name, 1.0).unwrap()).unwrap();
        assert_eq!(one.active(), name != "none");
    }
    assert_eq!(other.latency("nvmlDeviceSetMigMode"), 6_460_000_000);
    one.set_latencies(&Latency::all("slow", 0.5).unwrap()).unwrap();
    assert_eq!(other.latency("nvmlDeviceSetMigMode"), 3_230_000_000);
    one.set_latencies(&Latency::read(EXAMPLE, "latency.yaml").unwrap()).unwrap();
    assert_eq!(other.latency("nvmlDeviceSetMigMode"), 2_000_000_000);
    assert_eq!(other.latency("nvmlDeviceGetName"), 500_000);
    one.set_latencies(&[]).unwrap();
    assert_eq!((other.latency("nvmlDeviceGetName"), other.active()), (0, false));
}

#[test]
fn latencies_that_are_none_are_refused_with_their_place() {
    let refuse = |text: &str, says: &str| {
        let why = Latency::read(text, "l.yaml").unwrap_err().to_string();
        assert!(why.contains(says), "{text}: {why}");
    };
    refuse("- nvmlInit: 5", "l.yaml:1:13: `5` is no time");
    refuse(
        "- nvmlDeviceGetNam: 5s",
        "l.yaml:1:21: no function is called `nvmlDeviceGetNam`; did you mean nvmlDeviceGetName?",
    );
    refuse("nvmlInit: 5s", "latencies are written");
    refuse("- [", "latencies are written");
    assert!(Latency::all("fats", 1.0).unwrap_err().to_string().contains("did you mean fast?"));
    assert!(Latency::all("fast", -1.0).is_err() && Latency::all("fast", f64::NAN).is_err());
}

#[test]
fn times_are_read_to_the_microsecond() {
    assert_eq!(duration("500us").unwrap(), Duration::from_micros(500));
    assert_eq!(duration("0.5s").unwrap(), Duration::from_millis(500));
    assert_eq!(duration("2m").unwrap(), Duration::from_secs(120));
    for bad in ["", "s", "5", "5 s", "-1s", "1d", "1e3s", "∞s"] {
        assert!(duration(bad).is_err(), "{bad}");
    }
}
