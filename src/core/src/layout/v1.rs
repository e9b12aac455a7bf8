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
    DeviceFilter, Indexes, Layout, Match, Name, Rule, Unlisted, Wanted, Wins, Wish,
    reader::{Fields, Reader, beside, fault, misspelt, repaired, unknown_key},
    yaml::{Tree, Value},
};
use crate::{
    diagnostic::{Diagnostic, Place},
    near,
    profile::ProfileName,
    reason::Reason,
};

const VERSION: &str = "v1";
pub(super) const TOP_KEYS: [&str; 2] = ["version", "mig-configs"];
const ENTRY_KEYS: [&str; 4] = ["device-filter", "devices", "mig-enabled", "mig-devices"];
const CONFIGS_HELP: &str = "write the layouts under it, each a list of entries such as \
                            '- {devices: all, mig-enabled: true, mig-devices: {\"1g.5gb\": 7}}'";
const DEVICES_HELP: &str = "'devices' is 'all' or a list of GPU indexes such as [0, 1]";

impl Reader {
    /// Reads a whole file, whose root has these fields.
    pub(super) fn v1(&mut self, root: &Tree, fields: &Fields<'_>) -> Vec<Layout> {
        for (name, (key, value)) in fields {
            if !TOP_KEYS.contains(&name.as_str()) {
                let fault = unknown_key(name, &key.place, "the file", &TOP_KEYS);
                let help = format!(
                    "if it is a layout, indent it under 'mig-configs'{}",
                    beside(fields, "mig-configs")
                );
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
                let fault =
                    fault(Reason::LayoutInvalid, &other.place, message).near(vec![VERSION.to_owned()]);
                self.say(fault.help("that is the only version of this form"));
                return Vec::new();
            }
        }
        match fields.get("mig-configs") {
            // The peer takes that too; there is nothing to choose from then.
            None => Vec::new(),
            Some((key, Tree { value: Value::Map(entries), .. })) if entries.is_empty() => {
                let fault = fault(Reason::LayoutInvalid, &key.place, "'mig-configs' has no layouts");
                self.say(fault.help(CONFIGS_HELP));
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
                self.say(fault(Reason::LayoutInvalid, &other.place, message).help(CONFIGS_HELP));
                Vec::new()
            }
        }
    }

    fn layout(&mut self, name: &str, key: &Tree, value: &Tree) -> Layout {
        let mut layout = Layout {
            name: name.to_owned(),
            place: key.place.clone(),
            description: None,
            rules: Vec::new(),
            wins: Wins::Last,
            unlisted: Unlisted::Keep,
            notes: Vec::new(),
        };
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
            let help = "write '- devices: all' and under it 'mig-enabled' and 'mig-devices'";
            self.say(fault(Reason::LayoutInvalid, &entry.place, message).help(help));
            return None;
        };
        let fields = self.fields(entries, "this entry");
        self.known(&fields, "an entry", &ENTRY_KEYS);
        let filters = match fields.get("device-filter") {
            None => Some(Vec::new()),
            Some((_, value)) => self.filters(value),
        };
        let devices = match fields.get("devices") {
            None if misspelt(&fields, &["devices"]) => None,
            None => {
                self.missing("devices", &entry.place, "write 'devices: all' or a list of indexes");
                None
            }
            Some((_, value)) => self.devices(value),
        };
        let enabled = match fields.get("mig-enabled") {
            None if misspelt(&fields, &["mig-enabled"]) => None,
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
            (Some(true), None) if misspelt(&fields, &["mig-devices"]) => None,
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
        let matches = Match { filters: filters?, indexes: devices?, ..Match::default() };
        Some(Rule { place: entry.place.clone(), matches, wish: wish?, pool: None, sharing: Vec::new() })
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
                self.say(fault(Reason::LayoutInvalid, &value.place, message).help("write it without quotes"));
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

    fn devices(&mut self, value: &Tree) -> Option<Option<Indexes>> {
        let items = match &value.value {
            Value::Text(text) if text == "all" => return Some(None),
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
        (self.faults.len() == before).then_some(Some(Indexes::Listed(indexes)))
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
                && let Some((_, other)) = wanted.iter().find(|(other, _)| other.name == Name::Exact(name))
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
                    wanted.push((Wanted::just(Name::Exact(name), count, &key.place), text));
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
                // By slices alone is a name in migd's form only.
                let near = repaired(text).filter(|near| near.parse::<ProfileName>().is_ok());
                let fault = fault(Reason::ProfileMalformed, place, message).near(near.into_iter().collect());
                self.say(fault.help("write a profile as nvidia-smi does: 3g.20gb, 1g.5gb+me or 1c.3g.20gb"));
                None
            }
        }
    }
}
