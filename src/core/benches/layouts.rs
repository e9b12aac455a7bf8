//! How long reading layout files takes, hostile ones beside honest ones. Prints medians; asserts nothing. `make
//! bench` runs it in a release build.
#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a measurement"
)]

use migd_core::{
    layout::parse,
    render::{Sources, render},
};
use std::time::{Duration, Instant};

const ROUNDS: usize = 21;

fn median(mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            work();
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[ROUNDS / 2]
}

fn main() {
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = format!("*a{}, ", level - 1).repeat(10);
        laughs.push_str(&format!("a{level}: &a{level} [{}]\n", below.trim_end_matches(", ")));
    }
    laughs.push_str("layouts: *a11\n");
    let deep = format!("layouts: {}{}\n", "[".repeat(5_000), "]".repeat(5_000));
    let keys: String = (0..5_000).map(|n| format!("layout{n}: 1\n")).collect();
    let peer = std::fs::read_to_string("tests/data/peer-default-layouts.yaml").unwrap();
    let own = std::fs::read_to_string("../../profiles/layouts.d/migd.yaml").unwrap();
    println!("layout files, median of {ROUNDS} rounds");
    let cases = [
        ("billion laughs", &laughs),
        ("5,000 lists deep", &deep),
        ("5,000 misspelt keys", &keys),
        ("the peer's shipped file, 81 layouts", &peer),
        ("our shipped file, 7 layouts", &own),
    ];
    for (name, text) in cases {
        let read = median(|| drop(parse(text, "t")));
        let told = median(|| {
            if let Err(faults) = parse(text, "t") {
                drop(render(&faults, &Sources::from([("t".to_owned(), text.clone())]), false));
            }
        });
        println!("{name:36} {:8} bytes  read {read:>9.3?}  read and told {told:>9.3?}", text.len());
    }
}
