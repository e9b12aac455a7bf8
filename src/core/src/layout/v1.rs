//! The peer's `version: v1` files: what it accepts and carries out means the same here; what it accepts and
//! then gets wrong is said.
//!
//! ```text
//! version: v1
//! mig-configs:
//!   <label>:
//!   - device-filter: <PCI id, or a list of them>      optional; "" and [] are every GPU
//!     devices: all | [<index>, …]
//!     mig-enabled: <boolean>
//!     mig-devices: {<profile>: <count>, …}            with mig-enabled true; {} is MIG on and empty
//! ```

use super::{
    DeviceFilter, Devices, Layout, LayoutFile, Rule, Wanted, Wish,
    yaml::{Tree, Value},
};
use crate::{
    diagnostic::{Diagnostic, Place, Severity},
    near,
    profile::ProfileName,
    reason::Reason,
};
use std::collections::BTreeMap;

const VERSION: &str = "v1";
const TOP_KEYS: [&str; 2] = ["version", "mig-configs"];
const ENTRY_KEYS: [&str; 4] = ["device-filter", "devices", "mig-enabled", "mig-devices"];
/// More of one profile than any GPU holds, and few enough for the geometry's counters of eight bits.
const MAX_COUNT: i128 = 200;
const DEVICES_HELP: &str = "'devices' is 'all' or a list of GPU indexes such as [0, 1]";
const FILTER_HELP: &str = "write device and vendor id as 0x20B010DE, optionally with the subsystem's as \
                           0x20B010DE:0x134F10DE";

/// Reads a whole file.
pub(super) fn read(root: &Tree, origin: &str) -> Result<LayoutFile, Vec<Diagnostic>> {
    let mut reader = Reader { faults: Vec::new() };
    let layouts = reader.file(root);
    if reader.faults.iter().any(|fault| fault.severity == Severity::Error) {
        let notes = layouts.into_iter().flat_map(|layout| layout.notes);
        let mut faults: Vec<Diagnostic> = reader.faults.into_iter().chain(notes).collect();
        faults.sort_by_key(|fault| fault.place.as_ref().map(|place| (place.line, place.column)));
        return Err(faults);
    }
    Ok(LayoutFile { origin: origin.to_owned(), layouts })
}

/// Goes on after each fault, so that all are found.
struct Reader {
    faults: Vec<Diagnostic>,
}

impl Reader {
    fn say(&mut self, fault: Diagnostic) {
        self.faults.push(fault);
    }

    fn file(&mut self, root: &Tree) -> Vec<Layout> {
        let fields = match &root.value {
            Value::Map(entries) => self.fields(entries, "the file"),
            Value::Null => {
                let help = "it begins with 'version: v1' and has its layouts under 'mig-configs'";
                self.say(fault(Reason::LayoutInvalid, &root.place, "the file is empty").help(help));
                return Vec::new();
            }
            other => {
                let message = format!("a layout file is a map, not {}", other.kind());
                self.say(fault(Reason::LayoutInvalid, &root.place, message));
                return Vec::new();
            }
        };
        for (name, (key, value)) in &fields {
            if !TOP_KEYS.contains(&name.as_str()) {
                let fault = unknown_key(name, &key.place, "the file", &TOP_KEYS);
                let help = "if it is a layout, indent it under 'mig-configs'";
                self.say(if matches!(value.value, Value::List(_)) { fault.help(help) } else { fault });
            }
        }
        match fields.get("version") {
            None => {
                let fault = fault(Reason::LayoutInvalid, &root.place, "the file has no 'version'");
                self.say(fault.help("write 'version: v1'"));
            }
            Some((_, Tree { value: Value::Text(version), .. })) if version == VERSION => {}
            Some((_, other)) => {
                let message = format!("the version is {}; what is read here is v1", other.value.kind());
                self.say(fault(Reason::LayoutInvalid, &other.place, message));
                return Vec::new();
            }
        }
        match fields.get("mig-configs") {
            None => Vec::new(),
            Some((key, Tree { value: Value::Map(entries), .. })) if entries.is_empty() => {
                self.say(fault(Reason::LayoutInvalid, &key.place, "'mig-configs' has no layouts"));
                Vec::new()
            }
            Some((_, Tree { value: Value::Map(entries), .. })) => {
                let layouts = self.fields(entries, "mig-configs");
                let mut layouts: Vec<Layout> =
                    layouts.iter().map(|(name, (key, value))| self.layout(name, key, value)).collect();
                layouts.sort_by_key(|layout| (layout.place.line, layout.place.column));
                layouts
            }
            Some((_, other)) => {
                let message = format!("'mig-configs' is a map of layouts, not {}", other.value.kind());
                self.say(fault(Reason::LayoutInvalid, &other.place, message));
                Vec::new()
            }
        }
    }

    /// The entries of a map by key; says which keys are no text or stand twice.
    fn fields<'a>(
        &mut self,
        entries: &'a [(Tree, Tree)],
        of: &str,
    ) -> BTreeMap<String, (&'a Tree, &'a Tree)> {
        let mut fields: BTreeMap<String, (&Tree, &Tree)> = BTreeMap::new();
        for (key, value) in entries {
            let Value::Text(name) = &key.value else {
                let message = format!("a key of {of} is {}; it must be a text", key.value.kind());
                self.say(
                    fault(Reason::LayoutInvalid, &key.place, message)
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

    fn layout(&mut self, name: &str, key: &Tree, value: &Tree) -> Layout {
        let mut layout =
            Layout { name: name.to_owned(), place: key.place.clone(), rules: Vec::new(), notes: Vec::new() };
        match &value.value {
            Value::List(entries) if !entries.is_empty() => {
                for entry in entries {
                    let rule = self.entry(entry, &mut layout.notes);
                    layout.rules.extend(rule);
                }
            }
            other => {
                let what =
                    if matches!(other, Value::List(_)) { "an empty list".into() } else { other.kind() };
                let message = format!("layout '{name}' is a list of at least one entry, not {what}");
                self.say(
                    fault(Reason::LayoutInvalid, &value.place, message)
                        .help("write '- devices: all' and so on under it"),
                );
            }
        }
        layout
    }

    fn entry(&mut self, entry: &Tree, notes: &mut Vec<Diagnostic>) -> Option<Rule> {
        let Value::Map(entries) = &entry.value else {
            let message = format!("an entry of a layout is a map, not {}", entry.value.kind());
            self.say(fault(Reason::LayoutInvalid, &entry.place, message));
            return None;
        };
        let fields = self.fields(entries, "this entry");
        for (name, (key, _)) in &fields {
            if !ENTRY_KEYS.contains(&name.as_str()) {
                self.say(unknown_key(name, &key.place, "an entry", &ENTRY_KEYS));
            }
        }
        let filters = match fields.get("device-filter") {
            None => Some(Vec::new()),
            Some((_, value)) => self.filters(value),
        };
        let devices = match fields.get("devices") {
            None => {
                self.missing("devices", &entry.place, "write 'devices: all' or a list of indexes");
                None
            }
            Some((_, value)) => self.devices(value),
        };
        let enabled = match fields.get("mig-enabled") {
            None => {
                self.missing("mig-enabled", &entry.place, "write 'mig-enabled: true' or 'false'");
                None
            }
            Some((_, value)) => self.boolean(value),
        };
        let wanted = fields.get("mig-devices").map(|(key, value)| (key, value));
        let wish = match (enabled, wanted) {
            (Some(false), None) => Some(Wish::Off),
            (Some(false), Some((_, Tree { value: Value::Null, .. }))) => Some(Wish::Off),
            (Some(false), Some((_, Tree { value: Value::Map(map), .. }))) if map.is_empty() => {
                Some(Wish::Off)
            }
            (Some(false), Some((key, value))) => {
                self.instances(value, notes);
                let message = "'mig-devices' asks for instances where 'mig-enabled' is false";
                self.say(
                    fault(Reason::LayoutInvalid, &key.place, message)
                        .help("set 'mig-enabled: true', or remove 'mig-devices'"),
                );
                None
            }
            (Some(true), None) => {
                let help = "list the instances, or write '{}' for MIG on and empty";
                self.missing("mig-devices", &entry.place, help);
                None
            }
            (_, Some((_, value))) => {
                let wanted = self.instances(value, notes);
                if enabled.is_some() && wanted.as_ref().is_some_and(Vec::is_empty) {
                    let message = "MIG is on and no instance exists: no program can use such a GPU";
                    notes
                        .push(Diagnostic::note(Reason::LayoutInvalid, message).at(Some(value.place.clone())));
                }
                wanted.map(Wish::On)
            }
            (None, None) => None,
        };
        Some(Rule { place: entry.place.clone(), filters: filters?, devices: devices?, wish: wish? })
    }

    fn missing(&mut self, key: &str, place: &Place, help: &str) {
        let message = format!("this entry has no '{key}'");
        self.say(fault(Reason::LayoutInvalid, place, message).help(help));
    }

    fn boolean(&mut self, value: &Tree) -> Option<bool> {
        match &value.value {
            Value::Bool(value) => Some(*value),
            other => {
                let message = format!("'mig-enabled' is true or false, not {}", other.kind());
                self.say(fault(Reason::LayoutInvalid, &value.place, message));
                None
            }
        }
    }

    fn filters(&mut self, value: &Tree) -> Option<Vec<DeviceFilter>> {
        match &value.value {
            Value::Text(text) if text.is_empty() => Some(Vec::new()),
            Value::Text(text) => self.filter(text, &value.place).map(|filter| vec![filter]),
            Value::List(items) => {
                let filters: Vec<Option<DeviceFilter>> = items
                    .iter()
                    .map(|item| match &item.value {
                        Value::Text(text) => self.filter(text, &item.place),
                        other => self.filter_kind(other, &item.place),
                    })
                    .collect();
                filters.into_iter().collect()
            }
            other => self.filter_kind(other, &value.place),
        }
    }

    fn filter_kind<T>(&mut self, value: &Value, place: &Place) -> Option<T> {
        let message = format!("a device filter is a text such as \"0x20B010DE\", not {}", value.kind());
        let fault = fault(Reason::FilterMalformed, place, message);
        self.say(match value {
            Value::Integer(number @ 0..=0xFFFF_FFFF) => {
                fault.near(vec![format!("\"0x{number:08X}\"")]).help("put it in quotes")
            }
            _ => fault,
        });
        None
    }

    fn filter(&mut self, text: &str, place: &Place) -> Option<DeviceFilter> {
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

    fn devices(&mut self, value: &Tree) -> Option<Devices> {
        let items = match &value.value {
            Value::Text(text) if text == "all" => return Some(Devices::All),
            Value::List(items) if !items.is_empty() => items,
            other => {
                let (what, near) = match other {
                    Value::List(_) => ("an empty list, which selects no GPU".to_owned(), Vec::new()),
                    Value::Integer(index) if *index >= 0 => (other.kind(), vec![format!("[{index}]")]),
                    Value::Text(text) => (other.kind(), near::words(text, ["all"])),
                    other => (other.kind(), Vec::new()),
                };
                let message = format!("'devices' is {what}");
                let fault = fault(Reason::LayoutInvalid, &value.place, message).near(near);
                self.say(fault.help(DEVICES_HELP));
                return None;
            }
        };
        let mut indexes: Vec<(u32, Place)> = Vec::new();
        let before = self.faults.len();
        for item in items {
            let index = match &item.value {
                Value::Integer(index) => u32::try_from(*index).ok(),
                _ => None,
            };
            match index {
                Some(index) if indexes.iter().any(|(other, _)| *other == index) => {
                    let message = format!("GPU {index} stands twice in 'devices'");
                    self.say(fault(Reason::LayoutDuplicate, &item.place, message).help(DEVICES_HELP));
                }
                Some(index) => indexes.push((index, item.place.clone())),
                None => {
                    let message = format!("{} is no GPU index", item.value.kind());
                    self.say(fault(Reason::LayoutInvalid, &item.place, message).help(DEVICES_HELP));
                }
            }
        }
        (self.faults.len() == before).then_some(Devices::Indexes(indexes))
    }

    /// `None` if anything in it is wrong; then all of that has been said.
    fn instances(&mut self, value: &Tree, notes: &mut Vec<Diagnostic>) -> Option<Vec<Wanted>> {
        let Value::Map(entries) = &value.value else {
            let message = format!("'mig-devices' is a map of profiles to counts, not {}", value.value.kind());
            self.say(
                fault(Reason::LayoutInvalid, &value.place, message)
                    .help("write {1g.5gb: 2, 3g.20gb: 1}, or {} for MIG on and empty"),
            );
            return None;
        };
        let before = self.faults.len();
        let fields = self.fields(entries, "'mig-devices'");
        let mut fields: Vec<_> = fields.into_iter().collect();
        fields.sort_by_key(|(_, (key, _))| (key.place.line, key.place.column));
        let mut wanted: Vec<(Wanted, &str)> = Vec::new();
        let mut zeros: Vec<(&Place, &str)> = Vec::new();
        for (text, (key, value)) in &fields {
            let name = self.profile(text, &key.place);
            let count = self.count(text, value);
            if let Some(name) = name
                && let Some((_, other)) = wanted.iter().find(|(other, _)| other.name == name)
            {
                let message = format!("'{text}' and '{other}' are the same profile");
                self.say(
                    fault(Reason::LayoutDuplicate, &key.place, message)
                        .help(format!("write one entry '{name}' with the sum")),
                );
                continue;
            }
            match (name, count) {
                (Some(_), Some(0)) => zeros.push((&value.place, text)),
                (Some(name), Some(count)) => {
                    wanted.push((Wanted { name, count, place: key.place.clone() }, text));
                }
                _ => {}
            }
        }
        if self.faults.len() > before {
            return None;
        }
        if wanted.is_empty() && !zeros.is_empty() {
            let message = "all counts in 'mig-devices' are zero";
            self.say(
                fault(Reason::LayoutInvalid, &value.place, message)
                    .help("write {} for MIG on and empty, or a count of at least one"),
            );
            return None;
        }
        for (place, text) in zeros {
            let message = format!("'{text}' has a count of zero and is dropped");
            notes.push(Diagnostic::warning(Reason::LayoutInvalid, message).at(Some(place.clone())));
        }
        Some(wanted.into_iter().map(|(wanted, _)| wanted).collect())
    }

    fn profile(&mut self, text: &str, place: &Place) -> Option<ProfileName> {
        match text.parse() {
            Ok(name) => Some(name),
            Err(error) => {
                let message = format!("{error}");
                let near = repaired(text).into_iter().collect();
                self.say(fault(Reason::ProfileMalformed, place, message).near(near));
                None
            }
        }
    }

    fn count(&mut self, text: &str, value: &Tree) -> Option<u32> {
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

fn fault(reason: Reason, place: &Place, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(reason, message).at(Some(place.clone()))
}

fn unknown_key(name: &str, place: &Place, of: &str, known: &[&str]) -> Diagnostic {
    fault(Reason::LayoutInvalid, place, format!("{of} has no key '{name}'"))
        .near(near::words(name, known.iter().copied()))
        .help(format!("its keys are {}", known.join(", ")))
}

/// What was probably meant by a malformed profile name.
fn repaired(text: &str) -> Option<String> {
    let lower = text.trim().to_lowercase();
    // Labels write `+` as `.`: all-1g.5gb.me.
    let attribute = [".me.all", ".me", ".gfx"].into_iter().find_map(|suffix| {
        lower.strip_suffix(suffix).map(|base| format!("{base}+{}", suffix.trim_start_matches('.')))
    });
    let parts: Vec<&str> = lower.split('.').map(|part| part.trim_start_matches('0')).collect();
    let base = lower.split(['+', '-']).next().map(str::to_owned);
    let candidates = [attribute, Some(lower.clone()), Some(parts.join(".")), base];
    candidates.into_iter().flatten().find(|candidate| candidate.parse::<ProfileName>().is_ok())
}
