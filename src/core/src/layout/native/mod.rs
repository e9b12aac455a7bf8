//! migd's own form. One document:
//!
//! ```text
//! layouts:
//!   <name>:
//!     description: <text>
//!     gpus:                                        the first rule that matches a GPU decides about it
//!       - match: all | {index, model, uuid, pci, minor, profile}
//!         mig: off
//!       - match: ...
//!         instances: balanced | largest | smallest | none | 7x 1g | [3g, 2x 2g] | {3g.20gb: 1, 1g@4: 1, 3g: [2c, 1c]}
//!         pool: {profiles: [<profile>, ...], on-release: keep | destroy}
//!         sharing: {mps: {}} | {time-slicing: {replicas: <n>}} | {<profile>: {mps: {}}, ...}
//!     unlisted: keep | disable | error
//! ```

mod instances;
mod matching;
mod sharing;

use super::{
    Layout, Rule, Unlisted, Wins, Wish,
    reader::{Fields, Reader, beside, fault, misspelt},
    v1,
    yaml::{Tree, Value},
};
use crate::{
    diagnostic::{Diagnostic, Place},
    near,
    reason::Reason,
};

/// The key that tells this form.
pub(super) const LAYOUTS: &str = "layouts";
const TOP_KEYS: [&str; 2] = [LAYOUTS, "$schema"];
const LAYOUT_KEYS: [&str; 3] = ["description", "gpus", "unlisted"];
const RULE_KEYS: [&str; 5] = ["match", "mig", "instances", "pool", "sharing"];
/// A Kubernetes label value and a Slurm feature hold as much.
const MAX_NAME: usize = 63;
const MODE_HELP: &str = "write 'mig: off', or leave it out and write 'instances'";
const EMPTY_HELP: &str = "write 'instances: balanced', a list such as [3g, 2x 2g], 'none' for MIG on and empty, or \
                          'mig: off'";
const RULE_HELP: &str = "write '- match: all' and 'instances: balanced' or 'mig: off' under 'gpus'";

/// Whether the keys are rather misspelt ones of the peer's form.
pub(super) fn looks_like_v1(fields: &Fields<'_>) -> bool {
    let like = |known: &[&str]| fields.keys().any(|key| !near::words(key, known.iter().copied()).is_empty());
    like(&v1::TOP_KEYS) && !like(&TOP_KEYS)
}

impl Reader {
    /// Reads a whole file, whose root has these fields.
    pub(super) fn native(&mut self, root: &Tree, fields: &Fields<'_>) -> Vec<Layout> {
        for (name, (key, value)) in fields {
            if !TOP_KEYS.contains(&name.as_str()) {
                let mut known = TOP_KEYS.to_vec();
                known.extend(v1::TOP_KEYS);
                let fault = super::reader::unknown_key(name, &key.place, "the file", &TOP_KEYS)
                    .near(near::words(name, known));
                let layout = matches!(&value.value, Value::Map(map) if map.iter().any(|(key, _)|
                    matches!(&key.value, Value::Text(key) if LAYOUT_KEYS.contains(&key.as_str()))));
                self.say(if layout {
                    fault.help(format!(
                        "if it is a layout, indent it under 'layouts'{}",
                        beside(fields, LAYOUTS)
                    ))
                } else {
                    fault
                });
            }
        }
        match fields.get(LAYOUTS) {
            None if misspelt(fields, &[LAYOUTS]) => Vec::new(),
            None => {
                let message = "the file has no 'layouts'";
                let help = "write 'layouts:' and the layouts under it; 'version: v1' begins a file in mig-parted's form";
                self.say(fault(Reason::LayoutInvalid, &root.place, message).help(help));
                Vec::new()
            }
            Some((_, Tree { value: Value::Map(entries), .. })) if !entries.is_empty() => {
                let layouts = self.fields(entries, "'layouts'");
                let mut layouts: Vec<Layout> =
                    layouts.iter().map(|(name, (key, value))| self.native_layout(name, key, value)).collect();
                layouts.sort_by_key(|layout| (layout.place.line, layout.place.column));
                layouts
            }
            Some((key, value)) => {
                let (place, what) = match &value.value {
                    Value::Map(_) => (&value.place, "an empty map".to_owned()),
                    Value::Null => (&key.place, "nothing".to_owned()),
                    other => (&value.place, other.kind()),
                };
                let message = format!("'layouts' is a map of layouts by name, not {what}");
                self.say(
                    fault(Reason::LayoutInvalid, place, message)
                        .help("write 'layouts: {my-layout: {gpus: [...]}}'"),
                );
                Vec::new()
            }
        }
    }

    fn native_layout(&mut self, name: &str, key: &Tree, value: &Tree) -> Layout {
        let mut layout = Layout {
            name: name.to_owned(),
            place: key.place.clone(),
            description: None,
            rules: Vec::new(),
            wins: Wins::First,
            unlisted: Unlisted::Keep,
            notes: Vec::new(),
        };
        self.layout_name(name, &key.place);
        let Value::Map(entries) = &value.value else {
            let message = format!("layout '{name}' is a map with 'gpus', not {}", value.value.kind());
            let place = if value.value == Value::Null { &key.place } else { &value.place };
            let help = match &value.value {
                Value::List(_) => "put 'gpus:' before the list of rules",
                _ => RULE_HELP,
            };
            self.say(fault(Reason::LayoutInvalid, place, message).help(help));
            return layout;
        };
        let fields = self.fields(entries, &format!("layout '{name}'"));
        self.known(&fields, "a layout", &LAYOUT_KEYS);
        layout.description = match fields.get("description") {
            None | Some((_, Tree { value: Value::Null, .. })) => None,
            Some((_, Tree { value: Value::Text(text), .. })) => Some(text.clone()),
            Some((_, other)) => {
                let message = format!("'description' is a text, not {}", other.value.kind());
                self.say(fault(Reason::LayoutInvalid, &other.place, message).help("put it in quotes"));
                None
            }
        };
        if let Some((_, value)) = fields.get("unlisted") {
            let words =
                [("keep", Unlisted::Keep), ("disable", Unlisted::Disable), ("error", Unlisted::Error)];
            layout.unlisted = self.word("unlisted", value, &words).unwrap_or(Unlisted::Keep);
        }
        match fields.get("gpus") {
            None if misspelt(&fields, &["gpus"]) => {}
            None => {
                let message = format!("layout '{name}' has no 'gpus'");
                self.say(fault(Reason::LayoutInvalid, &key.place, message).help(RULE_HELP));
            }
            Some((_, Tree { value: Value::List(entries), .. })) if !entries.is_empty() => {
                for entry in entries {
                    let rule = self.rule(entry, &mut layout.notes);
                    layout.rules.extend(rule);
                }
            }
            Some((key, value)) => {
                let (place, what) = match &value.value {
                    Value::List(_) => (&value.place, "an empty list".to_owned()),
                    Value::Null => (&key.place, "nothing".to_owned()),
                    other => (&value.place, other.kind()),
                };
                let message = format!("'gpus' is a list of at least one rule, not {what}");
                let help = match &value.value {
                    Value::Map(_) => "put '- ' before its first key",
                    _ => RULE_HELP,
                };
                self.say(fault(Reason::LayoutInvalid, place, message).help(help));
            }
        }
        if let Some(at) = layout.rules.iter().position(|rule| rule.matches.is_all()) {
            for late in layout.rules.iter().skip(at + 1).filter(|rule| !rule.matches.may_select_without_mig())
            {
                let message = "this rule never decides: one before it matches every GPU, and the first that matches wins";
                let warning =
                    Diagnostic::warning(Reason::LayoutInvalid, message).at(Some(late.place.clone()));
                layout.notes.push(warning.help("move it before the rule with 'match: all'"));
            }
        }
        layout
    }

    fn layout_name(&mut self, name: &str, place: &Place) {
        let legal = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
        let why = if name.is_empty() || !name.chars().all(legal) {
            "has letters, digits and '-', '_', '.', '+' only"
        } else if name.len() > MAX_NAME {
            "has at most 63 characters"
        } else if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            "begins with a letter or digit"
        } else {
            return;
        };
        let plain: String = name.chars().map(|c| if legal(c) { c } else { '-' }).collect();
        let plain = plain.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let near: Vec<String> =
            [plain.to_owned()].into_iter().filter(|p| !p.is_empty() && p != name).collect();
        let message = format!("the layout name '{name}' is not allowed");
        let near = if name.len() > MAX_NAME { Vec::new() } else { near };
        self.say(
            fault(Reason::LayoutInvalid, place, message).near(near).help(format!("a layout name {why}")),
        );
    }

    /// One of some words.
    pub(super) fn word<T: Copy>(&mut self, key: &str, value: &Tree, words: &[(&str, T)]) -> Option<T> {
        let said = match &value.value {
            Value::Text(text) => {
                if let Some((_, found)) = words.iter().find(|(word, _)| word == text) {
                    return Some(*found);
                }
                near::words(text, words.iter().map(|(word, _)| *word))
            }
            _ => Vec::new(),
        };
        let list: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let message = format!("'{key}' cannot be {}", value.value.kind());
        let fault = fault(Reason::LayoutInvalid, &value.place, message).near(said);
        self.say(fault.help(format!("it is one of {}", list.join(", "))));
        None
    }

    fn rule(&mut self, entry: &Tree, notes: &mut Vec<Diagnostic>) -> Option<Rule> {
        let Value::Map(entries) = &entry.value else {
            let message = format!("a rule is a map, not {}", entry.value.kind());
            self.say(fault(Reason::LayoutInvalid, &entry.place, message).help(RULE_HELP));
            return None;
        };
        let fields = self.fields(entries, "this rule");
        self.known(&fields, "a rule", &RULE_KEYS);
        let matches = match fields.get("match") {
            None if misspelt(&fields, &["match"]) => None,
            None => {
                let message = "this rule has no 'match'";
                let help = "write 'match: all', or which GPUs it is for, as in {index: [0, 1]} or {model: \"A100*\"}";
                self.say(fault(Reason::LayoutInvalid, &entry.place, message).help(help));
                None
            }
            Some((_, value)) => self.matching(value),
        };
        let mode = match fields.get("mig") {
            None => Some(None),
            Some((_, value)) => self.mode(value).map(Some),
        };
        let instances = fields.get("instances").map(|(key, value)| (*key, self.wish(value)));
        let pool = fields.get("pool").and_then(|(_, value)| self.pool(value));
        let sharing = fields.get("sharing").and_then(|(_, value)| self.sharing(value, notes));
        let wish = match (mode?, instances) {
            (Some(false), None) => Some(Wish::Off),
            (Some(false), Some((_, Some(Wish::On(none))))) if none.is_empty() => Some(Wish::Off),
            (Some(false), Some((key, _))) => {
                let message = "'instances' are asked for where 'mig' is off";
                let fault = fault(Reason::LayoutInvalid, &key.place, message);
                self.say(fault.help("remove one of the two"));
                None
            }
            // A misspelt key has been told.
            (_, None) if misspelt(&fields, &["instances", "mig"]) => None,
            (_, None) => {
                let message = "this rule does not say what is to be there";
                self.say(fault(Reason::LayoutInvalid, &entry.place, message).help(EMPTY_HELP));
                None
            }
            (_, Some((_, wish))) => wish,
        };
        if let (Some(Wish::Off), Some((key, _))) = (&wish, fields.get("pool")) {
            let message = "a pool needs MIG, which is off here";
            self.say(
                fault(Reason::LayoutInvalid, &key.place, message)
                    .help("remove 'pool', or write 'instances: none'"),
            );
        }
        if let Some(Wish::On(wanted)) = &wish
            && wanted.is_empty()
            && !fields.contains_key("pool")
        {
            let message = "MIG is on and no instance exists: no program can use such a GPU";
            let place = fields.get("instances").map(|(_, value)| value.place.clone());
            notes.push(Diagnostic::note(Reason::LayoutInvalid, message).at(place));
        }
        let sharing = sharing.unwrap_or_default();
        Some(Rule { place: entry.place.clone(), matches: matches?, wish: wish?, pool, sharing })
    }

    /// `off`, `Off`, `OFF`, `false` and `"off"` alike.
    fn mode(&mut self, value: &Tree) -> Option<bool> {
        let near = match &value.value {
            Value::Bool(mode) => return Some(*mode),
            Value::Text(text) => match text.to_ascii_lowercase().as_str() {
                "off" | "false" | "no" | "disabled" => return Some(false),
                "on" | "true" | "yes" | "enabled" => return Some(true),
                other => near::words(other, ["off", "on"]),
            },
            _ => Vec::new(),
        };
        let message = format!("'mig' is on or off, not {}", value.value.kind());
        self.say(fault(Reason::LayoutInvalid, &value.place, message).near(near).help(MODE_HELP));
        None
    }
}
