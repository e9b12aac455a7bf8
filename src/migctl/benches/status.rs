//! `migctl status` on 8 GPUs of 7 instances each, as a whole process, beside an empty Rust program in the same run.
//! Prints medians and their ratio; asserts nothing. `make bench` runs it in a release build.
#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a measurement"
)]

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const ROUNDS: usize = 100;

fn main() {
    let migctl = PathBuf::from(env!("CARGO_BIN_EXE_migctl"));
    let folder = std::env::temp_dir().join(format!("migctl-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let empty = empty(&folder);
    let state = folder.join("node");
    let node = |words: &[&str]| {
        let mut command = Command::new(&migctl);
        command.args(["--simulate", "8xa100-40gb", "--state"]).arg(&state).args(words);
        command
    };
    assert!(quiet(&mut node(&["apply", "all-1g"])), "the node cannot be made: build the workspace first");

    let (mut nothing, mut status, mut json, mut noop) = (vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        nothing.push(time(&mut Command::new(&empty)));
        status.push(time(&mut node(&["status"])));
        json.push(time(&mut node(&["status", "--json"])));
        noop.push(time(&mut node(&["apply", "all-1g"])));
    }
    let base = median(&mut nothing);
    println!("whole processes, median of {ROUNDS}, 8 GPUs x 7 instances:");
    println!("  empty Rust program      {:>8.2} ms", ms(base));
    for (name, mut times) in
        [("migctl status", status), ("migctl status --json", json), ("migctl apply (no-op)", noop)]
    {
        let median = median(&mut times);
        println!("  {name:<22}  {:>8.2} ms   {:.1} x the empty program", ms(median), ms(median) / ms(base));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

fn empty(folder: &Path) -> PathBuf {
    let source = folder.join("empty.rs");
    std::fs::write(&source, "fn main() {}\n").unwrap();
    let program = folder.join("empty");
    assert!(quiet(Command::new("rustc").args(["-O", "-o"]).arg(&program).arg(&source)));
    program
}

fn quiet(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

fn time(command: &mut Command) -> Duration {
    let begin = Instant::now();
    assert!(quiet(command), "{command:?}");
    begin.elapsed()
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
