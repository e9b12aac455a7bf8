//! What both forms of layout files are read with: faults are collected, so that all are found.

use super::{
    DeviceFilter, Name,
    yaml::{Tree, Value},
};
use crate::{
    diagnostic::{Diagnostic, Place},
    near,
    profile::Attribute,
    reason::Reason,
};
use std::collections::BTreeMap;

/// More of one profile than any GPU holds, and few enough for the geometry's counters of eight bits.
pub(super) const MAX_COUNT: i128 = 200;
/// Far longer than any message about a right-minded text.
const MAX_MESSAGE: usize = 300;
/// Names in one message.
const MOST_NAMES: usize = 10;
const FILTER_HELP: &str = "write device and vendor id as 0x20B010DE, optionally with the subsystem's as \
                           0x20B010DE:0x134F10DE";

/// The entries of a map by key.
pub(super) type Fields<'a> = BTreeMap<String, (&'a Tree, &'a Tree)>;

/// Goes on after each fault, so that all are found.
pub(super) struct Reader {
    pub(super) faults: Vec<Diagnostic>,
}

impl Reader {
    /// Takes note of a fault. What is quoted from the text may be as long as the text, so it is cut.
    pub(super) fn say(&mut self, mut fault: Diagnostic) {
        if let Some((at, _)) = fault.message.char_indices().nth(MAX_MESSAGE) {
            fault.message.truncate(at);
            fault.message.push('…');
        }
        fault.near.retain(|near| near.len() <= MAX_MESSAGE);
        self.faults.push(fault);
    }

    /// The entries of a map by key; says which keys are no text or stand twice.
    pub(super) fn fields<'a>(&mut self, entries: &'a [(Tree, Tree)], of: &str) -> Fields<'a> {
        let mut fields = Fields::new();
        for (key, value) in entries {
            let Value::Text(name) = &key.value else {
                let message = format!("a key of {of} is {}; it must be a text", key.value.kind());
                let near = match &key.value {
                    Value::Bool(value) => vec![format!("\"{value}\"")],
                    Value::Integer(value) => vec![format!("\"{value}\"")],
                    _ => Vec::new(),
                };
                self.say(
                    fault(Reason::LayoutInvalid, &key.place, message)
                        .near(near)
                        .help("put it in quotes if it is meant as a name"),
                );
                continue;
            };
            if let Some((first, _)) = fields.get(name) {
                let message = format!("'{name}' stands twice in {of}, first in line {}", first.place.line);
                self.say(
                    fault(Reason::LayoutDuplicate, &key.place, message)
                        .help("all but one would be lost; rename or remove one"),
                );
                continue;
            }
            fields.insert(name.clone(), (key, value));
        }
        fields
    }

    /// Says of each key that is not in `known`.
    pub(super) fn known(&mut self, fields: &Fields<'_>, of: &str, known: &[&str]) {
        for (name, (key, _)) in fields {
            if !known.contains(&name.as_str()) {
                self.say(unknown_key(name, &key.place, of, known));
            }
        }
    }

    /// A filter that is no text.
    pub(super) fn filter_kind<T>(&mut self, value: &Value, place: &Place) -> Option<T> {
        let message = format!("a device filter is a text such as \"0x20B010DE\", not {}", value.kind());
        let fault = fault(Reason::FilterMalformed, place, message);
        self.say(match value {
            Value::Integer(number @ 0..=0xFFFF_FFFF) => {
                fault.near(vec![format!("\"0x{number:08X}\"")]).help("put it in quotes")
            }
            _ => fault.help(FILTER_HELP),
        });
        None
    }

    pub(super) fn filter(&mut self, text: &str, place: &Place) -> Option<DeviceFilter> {
        match text.parse() {
            Ok(filter) => Some(filter),
            Err(error) => {
                let repaired = [format!("0x{text}"), text.trim().to_owned(), format!("{text}10DE")];
                let near = repaired.into_iter().filter(|text| text.parse::<DeviceFilter>().is_ok()).take(1);
                let fault = fault(Reason::FilterMalformed, place, format!("{error}"));
                self.say(fault.near(near.collect()).help(FILTER_HELP));
                None
            }
        }
    }

    /// A count of instances; zero is for the caller to judge.
    pub(super) fn count(&mut self, text: &str, value: &Tree) -> Option<u32> {
        let (message, help) = match &value.value {
            Value::Integer(count @ 0..=MAX_COUNT) => return u32::try_from(*count).ok(),
            Value::Integer(count) if *count < 0 => {
                (format!("the count of '{text}' is {count}"), "a count is 0 or more")
            }
            Value::Integer(count) => {
                (format!("the count of '{text}' is {count}"), "no GPU holds more than a few dozen instances")
            }
            other => (format!("the count of '{text}' is {}", other.kind()), "a count is a whole number"),
        };
        self.say(fault(Reason::LayoutInvalid, &value.place, message).help(help));
        None
    }
}

pub(super) fn fault(reason: Reason, place: &Place, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(reason, message).at(Some(place.clone()))
}

pub(super) fn unknown_key(name: &str, place: &Place, of: &str, known: &[&str]) -> Diagnostic {
    let near = near::words(name, known.iter().copied());
    let keys = format!("its keys are {}", known.join(", "));
    let help = match home(name) {
        Some(home) if near.is_empty() => format!("{home}; {keys}"),
        _ => keys,
    };
    fault(Reason::LayoutInvalid, place, format!("{of} has no key '{name}'")).near(near).help(help)
}

/// Where a key belongs that stands in the wrong place.
fn home(key: &str) -> Option<String> {
    let path = match key {
        "description" | "gpus" | "unlisted" => "layouts.NAME",
        "match" | "mig" | "instances" | "pool" | "sharing" => "layouts.NAME.gpus[]",
        "index" | "model" | "uuid" | "pci" | "minor" | "profile" => "gpus[].match",
        "profiles" | "on-release" => "gpus[].pool",
        "mps" | "time-slicing" => "gpus[].sharing",
        "replicas" => "gpus[].sharing.time-slicing",
        // The peer's words in migd's form.
        "device-filter" => return Some("migd's form writes 'match: {pci: ...}'".to_owned()),
        "devices" => return Some("migd's form writes 'match: all' or 'match: {index: [...]}'".to_owned()),
        "mig-enabled" => {
            return Some("migd's form writes 'mig: off', or 'instances' where it is on".to_owned());
        }
        "mig-devices" => return Some("migd's form writes 'instances'".to_owned()),
        _ => return None,
    };
    Some(format!("'{key}' belongs in {path}"))
}

/// ` beside a, b`: the layouts that stand under `key`, for a message that another should.
pub(super) fn beside(fields: &Fields<'_>, key: &str) -> String {
    let Some((_, Tree { value: Value::Map(entries), .. })) = fields.get(key) else { return String::new() };
    let name = |(key, _): &(Tree, Tree)| match &key.value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    };
    let names: Vec<String> = entries.iter().filter_map(name).take(MOST_NAMES).collect();
    if names.is_empty() { String::new() } else { format!(" beside {}", names.join(", ")) }
}

/// Whether a key is there that is rather a misspelt one of `known`, which is told as such and not as missing too.
pub(super) fn misspelt(fields: &Fields<'_>, known: &[&str]) -> bool {
    let like = |key: &String| !near::words(key, known.iter().copied()).is_empty();
    fields.keys().any(|key| !known.contains(&key.as_str()) && like(key))
}

/// What was probably meant by a malformed profile name.
pub(super) fn repaired(text: &str) -> Option<String> {
    let lower = text.trim().to_lowercase();
    // Labels write `+` as `.`: all-1g.5gb.me.
    let attribute = [".me.all", ".me", ".gfx"].into_iter().find_map(|suffix| {
        lower.strip_suffix(suffix).map(|base| format!("{base}+{}", suffix.trim_start_matches('.')))
    });
    let parts: Vec<&str> = lower.split('.').map(|part| part.trim_start_matches('0')).collect();
    let base = lower.split(['+', '-']).next().unwrap_or_default().to_owned();
    // A misspelt attribute, else none.
    let known = Attribute::ALL.map(Attribute::suffix).into_iter().filter(|suffix| !suffix.is_empty());
    let suffix = near::words(lower.get(base.len()..).unwrap_or_default(), known).into_iter().next();
    let misspelt = suffix.map(|suffix| base.clone() + &suffix);
    let whole = base.split_once("c.").map(|(_, whole)| whole.to_owned());
    let candidates = [attribute, Some(lower.clone()), misspelt, Some(parts.join(".")), Some(base), whole];
    candidates.into_iter().flatten().find(|candidate| candidate.parse::<Name>().is_ok())
}
