//! How long calls take: none, measured figures, or a file's.

use super::rule::{duration, glob};
use crate::{
    abi::SYMBOLS,
    trouble::{Trouble, did_you_mean},
};
use serde_yaml::Spanned;
use std::{path::Path, time::Duration};

/// The most latencies of a node.
pub(super) const MOST_LATENCIES: usize = 32;
/// The longest pattern.
const LONGEST: usize = 79;

/// A file's form, shown where one is wrong.
pub const EXAMPLE: &str = include_str!("../../examples/latency.yaml");

/// How long the calls of some functions take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latency {
    /// Which functions; `*` and `?` stand for others. The first that is for a function counts.
    pub function: String,
    /// How long.
    pub time: Duration,
}

/// The figures that have a name.
pub const PROFILES: [(&str, &[(&str, u64)]); 3] = [("none", &[]), ("fast", FAST), ("slow", SLOW)];

/// Microseconds. A whole layout of an A100 came in 0.12 s and went in 0.16 s (medians of 5,400, nvidia-smi's own
/// start of 0.04 s included); the first instance takes most of it.
const FAST: &[(&str, u64)] = &[
    ("nvmlInit*", 10_000),
    ("nvmlDeviceSetMigMode", 100_000),
    ("nvmlDeviceCreateGpuInstance*", 15_000),
    ("nvmlGpuInstanceCreateComputeInstance*", 5_000),
    ("nvmlGpuInstanceDestroy", 25_000),
    ("nvmlComputeInstanceDestroy", 5_000),
    ("reset", 1_000_000),
    ("nvmlDeviceGet*", 20),
];

/// Microseconds. Single runs on an A100-SXM4-80GB: MIG mode 6.46 s, an instance with its compute instance 0.35 s,
/// seven gone in 4.38 s; a reset 5 to 10 s.
const SLOW: &[(&str, u64)] = &[
    ("nvmlInit*", 50_000),
    ("nvmlDeviceSetMigMode", 6_460_000),
    ("nvmlDeviceCreateGpuInstance*", 250_000),
    ("nvmlGpuInstanceCreateComputeInstance*", 100_000),
    ("nvmlGpuInstanceDestroy", 450_000),
    ("nvmlComputeInstanceDestroy", 175_000),
    ("reset", 8_000_000),
    ("nvmlDeviceGet*", 200),
];

impl Latency {
    /// The latencies of a name (`none`, `fast`, `slow`) or a file, each times `scale`.
    ///
    /// # Errors
    /// [`Trouble::Input`] with file, line and column; [`Trouble::Failed`] if the file cannot be read.
    pub fn all(word: &str, scale: f64) -> Result<Vec<Latency>, Trouble> {
        if !(0.0..=1000.0).contains(&scale) {
            return Err(Trouble::input(format!("scale {scale} is not between 0 and 1000")));
        }
        let all = match PROFILES.iter().find(|(name, _)| *name == word) {
            Some((_, figures)) => {
                let latency = |(function, us): &(&str, u64)| Latency {
                    function: (*function).to_owned(),
                    time: Duration::from_micros(*us),
                };
                figures.iter().map(latency).collect()
            }
            None => Latency::of_file(word)?,
        };
        Ok(all.into_iter().map(|latency| Latency { time: latency.time.mul_f64(scale), ..latency }).collect())
    }

    fn of_file(word: &str) -> Result<Vec<Latency>, Trouble> {
        let path = Path::new(word);
        let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                let near = did_you_mean(word, PROFILES.iter().map(|(name, _)| *name));
                Trouble::input(format!("no latencies `{word}`{near} (there are none, fast, slow, and files)"))
            }
            _ => Trouble::io("read", path, &error),
        })?;
        Latency::read(&text, word)
    }

    /// Reads a file's text: a list of one-key maps, `- nvmlDeviceGet*: 500us`.
    pub(super) fn read(text: &str, origin: &str) -> Result<Vec<Latency>, Trouble> {
        let list: Vec<std::collections::BTreeMap<String, Spanned<String>>> = serde_yaml::from_str(text)
            .map_err(|error| {
                let why = error.without_snippet().to_string();
                let why = why.lines().next().unwrap_or_default();
                Trouble::input(format!("{origin}: {why}; latencies are written\n{EXAMPLE}"))
            })?;
        let mut all = Vec::new();
        for (function, time) in list.into_iter().flatten() {
            let place = format!("{origin}:{}:{}", time.referenced.line(), time.referenced.column());
            let refuse = |why: String| Trouble::input(format!("{place}: {why}"));
            let known = function == super::rule::RESET
                || SYMBOLS.iter().any(|name| glob(function.as_bytes(), name.as_bytes()));
            if !known || function.len() > LONGEST {
                let near = did_you_mean(&function, SYMBOLS.iter().copied());
                return Err(refuse(format!("no function is called `{function}`{near}")));
            }
            all.push(Latency { function, time: duration(&time.value).map_err(refuse)? });
        }
        if all.len() > MOST_LATENCIES {
            return Err(Trouble::input(format!(
                "{origin}: {} latencies; at most {MOST_LATENCIES}",
                all.len()
            )));
        }
        Ok(all)
    }
}
