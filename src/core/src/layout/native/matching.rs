//! `match`: which GPUs a rule is for.

use super::super::{
    Glob, Indexes, Match,
    reader::{Reader, fault},
    yaml::{Tree, Value},
};
use crate::{diagnostic::Place, id::PciAddress, near, reason::Reason};

const KEYS: [&str; 6] = ["index", "model", "uuid", "pci", "minor", "profile"];
const HELP: &str = "write 'all', or a map such as {index: [0, 1]}, {model: \"A100*\"}, {profile: 3g.20gb}; several keys \
                    must all hold";
const HALVES: [&str; 2] = ["first-half", "second-half"];
const INDEX_HELP: &str = "an index is a number, a list such as [0, 1], or first-half or second-half";
const PCI_HELP: &str = "write an address such as \"0000:07:00.0\", or a PCI id such as \"0x20B010DE\"";
/// Far more than a machine has.
const MAX_NUMBER: u32 = 1 << 16;

impl Match {
    /// Whether it names GPUs one by one, and so possibly one that has no MIG.
    pub(in crate::layout) fn may_select_without_mig(&self) -> bool {
        let listed = matches!(self.indexes, Some(Indexes::Listed(_)));
        listed || !self.uuids.is_empty() || !self.pci.is_empty() || !self.minors.is_empty()
    }
}

impl Reader {
    pub(super) fn matching(&mut self, value: &Tree) -> Option<Match> {
        let entries = match &value.value {
            Value::Text(text) if text == "all" => return Some(Match::default()),
            Value::Map(entries) if !entries.is_empty() => entries,
            other => {
                let what =
                    if matches!(other, Value::Map(_)) { "an empty map".to_owned() } else { other.kind() };
                let near = match other {
                    Value::Text(text) => near::words(text, ["all"]),
                    Value::Integer(index @ 0..=255) => vec![format!("{{index: {index}}}")],
                    _ => Vec::new(),
                };
                let message = format!("'match' cannot be {what}");
                self.say(fault(Reason::FilterMalformed, &value.place, message).near(near).help(HELP));
                return None;
            }
        };
        let before = self.faults.len();
        let fields = self.fields(entries, "'match'");
        self.known(&fields, "'match'", &KEYS);
        let mut matches = Match::default();
        if let Some((_, value)) = fields.get("index") {
            matches.indexes = self.indexes(value);
        }
        if let Some((_, value)) = fields.get("minor") {
            matches.minors = self.numbers("minor", value, "a minor is the N of /dev/nvidiaN");
        }
        if let Some((_, value)) = fields.get("model") {
            let texts =
                self.texts("model", value, "write a product name as in \"A100*\"; * and ? stand for any");
            matches.models = texts.into_iter().map(|(text, place)| Glob { text, place }).collect();
        }
        if let Some((_, value)) = fields.get("uuid") {
            let help = "write it as `migctl status --json` shows it: GPU- and 36 characters";
            for (text, place) in self.texts("uuid", value, help) {
                if text.starts_with("GPU-") {
                    self.once(&matches.uuids, &text, &place);
                    matches.uuids.push((text, place));
                } else {
                    let message = format!("'{text}' is no UUID of a GPU");
                    self.say(fault(Reason::FilterMalformed, &place, message).help(help));
                }
            }
        }
        if let Some((_, value)) = fields.get("pci") {
            self.pci(value, &mut matches);
        }
        if let Some((_, value)) = fields.get("profile") {
            for (text, place) in self.texts("profile", value, super::instances::NAME_HELP) {
                let name = self.name(&text, &place);
                matches.profiles.extend(name.map(|name| super::super::Wanted::just(name, 1, &place)));
            }
        }
        (self.faults.len() == before).then_some(matches)
    }

    fn indexes(&mut self, value: &Tree) -> Option<Indexes> {
        match &value.value {
            Value::Text(text) if text == HALVES[0] => Some(Indexes::FirstHalf),
            Value::Text(text) if text == HALVES[1] => Some(Indexes::SecondHalf),
            Value::Text(text) => {
                let message = format!("'index' cannot be {}", value.value.kind());
                let number = text.trim().parse::<u32>().ok().map(|number| number.to_string());
                let near = number.map_or_else(|| near::words(text, HALVES), |number| vec![number]);
                self.say(fault(Reason::FilterMalformed, &value.place, message).near(near).help(INDEX_HELP));
                None
            }
            _ => Some(Indexes::Listed(self.numbers("index", value, INDEX_HELP))),
        }
    }

    fn pci(&mut self, value: &Tree, matches: &mut Match) {
        let items = match &value.value {
            Value::List(items) => items.as_slice(),
            _ => std::slice::from_ref(value),
        };
        for item in items {
            match &item.value {
                Value::Text(text) => match text.parse() {
                    Ok(address) => {
                        self.once(&matches.pci, &address, &item.place);
                        matches.pci.push((address, item.place.clone()));
                    }
                    Err(_) if !text.contains('.') && text.matches(':').count() < 2 => {
                        let filter = self.filter(text, &item.place);
                        matches.filters.extend(filter);
                    }
                    Err(error) => {
                        let whole = [format!("{text}.0"), format!("0000:{text}"), format!("0000:{text}.0")];
                        let near = whole.into_iter().find(|text| text.parse::<PciAddress>().is_ok());
                        let fault = fault(Reason::FilterMalformed, &item.place, format!("{error}"));
                        self.say(fault.near(near.into_iter().collect()).help(PCI_HELP));
                    }
                },
                other => {
                    let _: Option<()> = self.filter_kind(other, &item.place);
                }
            }
        }
        if items.is_empty() {
            self.say(fault(Reason::FilterMalformed, &value.place, "'pci' is an empty list").help(PCI_HELP));
        }
    }

    /// A number or a list of numbers, none twice.
    fn numbers(&mut self, key: &str, value: &Tree, help: &str) -> Vec<(u32, Place)> {
        let items = match &value.value {
            Value::List(items) => items.as_slice(),
            _ => std::slice::from_ref(value),
        };
        if items.is_empty() {
            let message = format!("'{key}' is an empty list, which selects no GPU");
            self.say(fault(Reason::FilterMalformed, &value.place, message).help(help));
        }
        let mut numbers: Vec<(u32, Place)> = Vec::new();
        for item in items {
            let number = match &item.value {
                Value::Integer(number) => u32::try_from(*number).ok().filter(|n| *n < MAX_NUMBER),
                _ => None,
            };
            match number {
                Some(number) => {
                    self.once(&numbers, &number, &item.place);
                    numbers.push((number, item.place.clone()));
                }
                None => {
                    let near = match &item.value {
                        Value::Text(text) => text.trim().parse::<u32>().ok().map(|n| n.to_string()),
                        _ => None,
                    };
                    let message = format!("'{key}' cannot be {}", item.value.kind());
                    let fault = fault(Reason::FilterMalformed, &item.place, message);
                    self.say(fault.near(near.into_iter().collect()).help(help));
                }
            }
        }
        numbers
    }

    /// A text or a list of texts.
    pub(super) fn texts(&mut self, key: &str, value: &Tree, help: &str) -> Vec<(String, Place)> {
        let items = match &value.value {
            Value::List(items) => items.as_slice(),
            _ => std::slice::from_ref(value),
        };
        if items.is_empty() {
            let message = format!("'{key}' is an empty list, which selects nothing");
            self.say(fault(Reason::FilterMalformed, &value.place, message).help(help));
        }
        let mut texts = Vec::new();
        for item in items {
            match &item.value {
                Value::Text(text) if !text.is_empty() => texts.push((text.clone(), item.place.clone())),
                other => {
                    let message = format!("'{key}' is a text, not {}", other.kind());
                    self.say(fault(Reason::FilterMalformed, &item.place, message).help(help));
                }
            }
        }
        texts
    }

    fn once<T: PartialEq + std::fmt::Display>(&mut self, seen: &[(T, Place)], new: &T, place: &Place) {
        if seen.iter().any(|(old, _)| old == new) {
            let message = format!("{new} stands twice here");
            self.say(fault(Reason::LayoutDuplicate, place, message).help("remove one of the two"));
        }
    }
}
