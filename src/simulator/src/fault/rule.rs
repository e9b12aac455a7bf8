//! The language of faults: `fn=GLOB [gpu=N] [nth=N | every | rate=R seed=N | for=TIME] THEN`.

use crate::{
    abi::{MUTATING, SYMBOLS},
    machine::Code,
    model::MAX_GPUS,
    trouble::{Trouble, did_you_mean, join},
};
use std::time::Duration;

/// What a rule is longest, as written.
pub(super) const LONGEST: usize = 248;
/// The stand-in nvidia-smi's reset has no function of NVML; this name stands for it.
pub const RESET: &str = "reset";
const SET_MODE: &str = "nvmlDeviceSetMigMode";
const FORM: &str = "a fault is written `fn=GLOB [gpu=N] [nth=N | every | rate=0.1 seed=N | for=2s] THEN`, THEN being code=N, \
                    hang=5s, hang=forever, hang=unkillable, stale=2s, lost, activation=N, gap=INDEX, `profile=ID \
                    count=N` or `profile=ID slot=N`";

/// One fault.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Which functions; `*` and `?` stand for others.
    pub function: String,
    /// Which GPU by index; `None` for all, also for calls that have none.
    pub gpu: Option<usize>,
    /// Which of those calls.
    pub when: When,
    /// What they meet.
    pub then: Then,
}

/// Which of the calls that a rule is for meet it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum When {
    /// All.
    Every,
    /// One, counted from 1 over all processes.
    Nth(u64),
    /// By chance, the same for the same seed.
    Rate {
        /// 0 to 1.
        rate: f64,
        /// Where the chances come from.
        seed: u64,
    },
    /// Those from the first on for so long.
    For(Duration),
}

/// What a call meets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Then {
    /// It answers this and does nothing.
    Code(Code),
    /// It waits so long first; `None` for ever, until the process is killed or the fault is cleared.
    Hang(Option<Duration>),
    /// It waits in a state that SIGKILL does not end, until the fault is cleared.
    Unkillable,
    /// It sees the GPU as it was before a change for so long after it.
    Stale(Duration),
    /// The GPU falls off the bus before it.
    Lost,
    /// SetMigMode: SUCCESS with this activation status, and the mode waits for a reset.
    Activation(Code),
    /// MIG devices: this index is empty and those behind it move up by one.
    Gap(u32),
    /// Profile infos: this profile id has so many instances.
    Count(u32, u32),
    /// Profile infos: this profile id stands at that enumeration value.
    Slot(u32, u32),
}

impl Rule {
    /// Reads a rule.
    ///
    /// # Errors
    /// [`Trouble::Input`] says what is legal.
    pub fn read(text: &str) -> Result<Rule, Trouble> {
        let refuse = |why: String| Trouble::input(format!("fault `{text}`: {why}"));
        if text.len() > LONGEST {
            return Err(Trouble::input(format!(
                "a fault is at most {LONGEST} bytes long; this one has {}",
                text.len()
            )));
        }
        let mut words = Words(Vec::new());
        for word in text.split_whitespace() {
            let (key, value) = word.split_once('=').map_or((word, None), |(key, value)| (key, Some(value)));
            let (known, wants) = KEYS.iter().find(|(known, _)| *known == key).copied().ok_or_else(|| {
                refuse(format!(
                    "`{key}` is no part of one{}; {FORM}",
                    did_you_mean(key, KEYS.iter().map(|(k, _)| *k))
                ))
            })?;
            match (wants, value) {
                (true, None | Some("")) => {
                    return Err(refuse(format!("`{key}` wants a value, `{key}=…`; {FORM}")));
                }
                (false, Some(_)) => return Err(refuse(format!("`{key}` takes no value"))),
                _ if words.0.iter().any(|(other, _)| *other == known) => {
                    return Err(refuse(format!("`{key}` stands twice")));
                }
                _ => words.0.push((known, value.unwrap_or_default().to_owned())),
            }
        }
        let rule = (|| {
            let function = words.take("fn").ok_or_else(|| format!("it says no function, fn=GLOB; {FORM}"))?;
            let gpu = match words.take("gpu").as_deref() {
                None | Some("all") => None,
                Some(index) => Some(number(index, "gpu", MAX_GPUS as u64 - 1)? as usize),
            };
            let rule = Rule { function, gpu, when: words.when()?, then: words.then()? };
            words
                .0
                .first()
                .map_or(Ok(()), |(key, _)| Err(format!("`{key}` does not go with the rest; {FORM}")))?;
            rule.judge()?;
            Ok(rule)
        })();
        rule.map_err(refuse)
    }

    /// Whether the rule is for a function.
    pub fn is_for(&self, function: &str) -> bool {
        glob(self.function.as_bytes(), function.as_bytes())
    }

    /// Whether a rule's text names a function: cheaper than reading the whole.
    pub(super) fn may_be_for(text: &str, function: &str) -> bool {
        let pattern = text.split(' ').find_map(|word| word.strip_prefix("fn="));
        pattern.is_some_and(|pattern| glob(pattern.as_bytes(), function.as_bytes()))
    }

    /// The functions that the rule is for.
    pub fn functions(&self) -> impl Iterator<Item = &'static str> {
        SYMBOLS.iter().copied().chain([RESET]).filter(|name| self.is_for(name))
    }

    fn judge(&self) -> Result<(), String> {
        let Some(first) = self.functions().next() else {
            let near = did_you_mean(&self.function, SYMBOLS.iter().copied().chain([RESET]));
            return Err(format!("no function is called `{}`{near}", self.function));
        };
        let only = |what: &str, good: fn(&str) -> bool| match self.functions().find(|name| !good(name)) {
            Some(name) => Err(format!("{what} does not go with {name}")),
            None => Ok(()),
        };
        match self.then {
            Then::Activation(_) => only("activation", |name| name == SET_MODE),
            Then::Count(..) | Then::Slot(..) => {
                only("profile", |name| name.starts_with("nvmlDeviceGetGpuInstanceProfileInfo"))
            }
            Then::Stale(_) => only("stale", |name| !MUTATING.contains(&name) && name != RESET),
            Then::Gap(_) => {
                let all = self.functions().any(|name| name == "nvmlDeviceGetMigDeviceHandleByIndex");
                if all {
                    Ok(())
                } else {
                    Err(format!(
                        "gap does not go with {first}; MIG devices are found by nvmlDeviceGetMigDeviceHandleByIndex"
                    ))
                }
            }
            _ => Ok(()),
        }
    }
}

/// The words of a rule and whether each wants a value.
const KEYS: [(&str, bool); 16] = [
    ("fn", true),
    ("gpu", true),
    ("nth", true),
    ("every", false),
    ("rate", true),
    ("seed", true),
    ("for", true),
    ("code", true),
    ("hang", true),
    ("stale", true),
    ("lost", false),
    ("activation", true),
    ("gap", true),
    ("profile", true),
    ("count", true),
    ("slot", true),
];

struct Words(Vec<(&'static str, String)>);

impl Words {
    fn take(&mut self, key: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| *known == key)?;
        Some(self.0.remove(at).1)
    }

    fn when(&mut self) -> Result<When, String> {
        let mut all = Vec::new();
        if self.take("every").is_some() {
            all.push(When::Every);
        }
        if let Some(nth) = self.take("nth") {
            match number(&nth, "nth", u64::MAX)? {
                0 => return Err("nth counts from 1".to_owned()),
                nth => all.push(When::Nth(nth)),
            }
        }
        let seed = self.take("seed").map(|seed| number(&seed, "seed", u64::MAX)).transpose()?;
        match (self.take("rate"), seed) {
            (Some(rate), seed) => match rate.parse::<f64>() {
                Ok(rate) if (0.0..=1.0).contains(&rate) => {
                    all.push(When::Rate { rate, seed: seed.unwrap_or_default() });
                }
                _ => return Err(format!("rate `{rate}` is not between 0 and 1")),
            },
            (None, Some(_)) => return Err("seed goes with rate".to_owned()),
            (None, None) => {}
        }
        if let Some(time) = self.take("for") {
            all.push(When::For(duration(&time)?));
        }
        match all.as_slice() {
            [] => Ok(When::Every),
            [one] => Ok(*one),
            _ => Err("nth, every, rate and for exclude each other".to_owned()),
        }
    }

    fn then(&mut self) -> Result<Then, String> {
        let mut all = Vec::new();
        if let Some(text) = self.take("code") {
            all.push(Then::Code(code(&text)?));
        }
        if let Some(text) = self.take("hang") {
            all.push(match text.as_str() {
                "forever" => Then::Hang(None),
                "unkillable" => Then::Unkillable,
                time => Then::Hang(Some(duration(time)?)),
            });
        }
        if let Some(time) = self.take("stale") {
            all.push(Then::Stale(duration(&time)?));
        }
        if self.take("lost").is_some() {
            all.push(Then::Lost);
        }
        if let Some(text) = self.take("activation") {
            all.push(Then::Activation(code(&text)?));
        }
        if let Some(index) = self.take("gap") {
            all.push(Then::Gap(number(&index, "gap", 127)? as u32));
        }
        let profile =
            self.take("profile").map(|id| number(&id, "profile", u64::from(u32::MAX))).transpose()?;
        let count =
            self.take("count").map(|count| number(&count, "count", u64::from(u32::MAX))).transpose()?;
        let slot = self.take("slot").map(|slot| number(&slot, "slot", 255)).transpose()?;
        match (profile, count, slot) {
            (None, None, None) => {}
            (Some(id), Some(count), None) => all.push(Then::Count(id as u32, count as u32)),
            (Some(id), None, Some(slot)) => all.push(Then::Slot(id as u32, slot as u32)),
            _ => return Err("profile goes with one of count and slot".to_owned()),
        }
        match all.as_slice() {
            [] => Err(format!("it says not what happens; {FORM}")),
            [one] => Ok(*one),
            _ => Err("one fault makes one thing happen; add another for the other".to_owned()),
        }
    }
}

fn number(text: &str, what: &str, most: u64) -> Result<u64, String> {
    let found = text.parse::<u64>().ok().filter(|value| *value <= most);
    found.ok_or_else(|| format!("{what} `{text}` is not a number from 0 to {most}"))
}

/// A code by number or by NVML's name, with or without NVML_ERROR_.
fn code(text: &str) -> Result<Code, String> {
    if let Ok(value) = text.parse::<u32>() {
        return Ok(Code(value));
    }
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("NVML_").unwrap_or(&name);
    let name = name.strip_prefix("ERROR_").unwrap_or(name);
    let names = || Code::NAMES.iter().map(|(_, name)| *name);
    Code::NAMES.iter().find(|(_, known)| *known == name).map(|(code, _)| *code).ok_or_else(|| {
        format!(
            "no code `{text}`{}; there are the numbers, and {}",
            did_you_mean(name, names()),
            join(names(), ", ")
        )
    })
}

/// `5s`, `200ms`, `500us`, `2m`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (count, unit) = text.split_at(split);
    let second = match unit {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{text}` is no time; it is written 500us, 200ms, 5s, 2m or 1h")),
    };
    let time = count.parse::<f64>().ok().map(|count| count * second).filter(|time| *time <= 1e7);
    time.and_then(|time| Duration::try_from_secs_f64(time).ok())
        .ok_or_else(|| format!("`{text}` is no time; it is written 500us, 200ms, 5s, 2m or 1h"))
}

/// Whether a name is as a pattern says, in which `*` stands for anything and `?` for one character.
pub(super) fn glob(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut on) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while on < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                back = Some((at + 1, on));
                at += 1;
            }
            Some(c) if *c == b'?' || name.get(on) == Some(c) => {
                at += 1;
                on += 1;
            }
            _ => match back {
                // The last star takes one character more.
                Some((after, from)) => {
                    back = Some((after, from + 1));
                    at = after;
                    on = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|c| *c == b'*')
}
