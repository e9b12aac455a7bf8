//! A YAML or JSON text as a tree in which every value and key has its place.
//!
//! The tree keeps repeated keys, so that they are told with all other faults and not as the only one. All that
//! is known of the YAML library stays in this file.

use super::MAX_BYTES;
use crate::{
    diagnostic::{Diagnostic, Place},
    reason::Reason,
};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_yaml::{Error, Location, Options, Spanned, options::DuplicateKeyPolicy};
use std::fmt;

/// Budgets: far above any layout file (the peer's shipped one has some 1,000 nodes, 30 KiB, depth 6).
const MAX_DEPTH: usize = 32;
const MAX_NODES: usize = 20_000;
const MAX_EVENTS: usize = 100_000;
const MAX_ALIASES: usize = 1_000;

/// What to do about what the YAML library says, by a word of it.
const HELPS: [(&str, &str); 7] = [
    ("tab", "indent with spaces"),
    ("anchor", "`*name` repeats what stands at `&name` before it; put it in quotes if it is meant as text"),
    ("quote", "end the text with the quote that it begins with"),
    ("bracket", "each '[' needs its ']' and each '{' its '}'"),
    ("mapping values", "is there a ':' after each key, and does each key stand under the first of its kind?"),
    ("character", "remove it, or put the text in quotes"),
    ("merge", "`<<` takes a map or a list of maps"),
];
const BUDGET_HELP: &str = "split it over several files, and write out what aliases repeat";
const ANY_HELP: &str =
    "keys end with ':', what belongs to a key stands further to the right, and lists begin with '- '";

/// A value with its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tree {
    pub(super) place: Place,
    pub(super) value: Value,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Tree>),
    Map(Vec<(Tree, Tree)>),
}

impl Value {
    /// What it is, for messages.
    pub(super) fn kind(&self) -> String {
        match self {
            Value::Null => "nothing".to_owned(),
            Value::Bool(value) => format!("the boolean {value}"),
            Value::Integer(value) => format!("the number {value}"),
            Value::Float(value) => format!("the number {value}"),
            Value::Text(text) => format!("the text '{text}'"),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
        }
    }
}

/// What the library hands over; places are added in [`place_all`].
struct Raw(Spanned<RawValue>);

enum RawValue {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Raw>),
    Map(Vec<(Raw, Raw)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(Raw)
    }
}

impl<'de> Deserialize<'de> for RawValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = RawValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E>(self) -> Result<RawValue, E> {
        Ok(RawValue::Null)
    }
    fn visit_none<E>(self) -> Result<RawValue, E> {
        Ok(RawValue::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<RawValue, D::Error> {
        RawValue::deserialize(deserializer)
    }
    fn visit_bool<E>(self, value: bool) -> Result<RawValue, E> {
        Ok(RawValue::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<RawValue, E> {
        Ok(RawValue::Integer(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<RawValue, E> {
        Ok(RawValue::Integer(value.into()))
    }
    fn visit_i128<E>(self, value: i128) -> Result<RawValue, E> {
        Ok(RawValue::Integer(value))
    }
    fn visit_f64<E>(self, value: f64) -> Result<RawValue, E> {
        Ok(RawValue::Float(value))
    }
    fn visit_str<E>(self, value: &str) -> Result<RawValue, E> {
        Ok(RawValue::Text(value.to_owned()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<RawValue, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(RawValue::List(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawValue, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(RawValue::Map(entries))
    }
}

/// Reads one document.
///
/// # Errors
/// `layout-syntax` where the text is no YAML or breaks its budget, `layout-duplicate` for a second document.
pub(super) fn read(text: &str, origin: &str) -> Result<Tree, Diagnostic> {
    if text.len() > MAX_BYTES {
        let message = format!("the file has {} bytes; a layout file has at most {MAX_BYTES}", text.len());
        let place = Place { file: origin.to_owned(), line: 1, column: 1 };
        return Err(Diagnostic::error(Reason::LayoutSyntax, message).at(Some(place)).help(BUDGET_HELP));
    }
    let raw: Raw = serde_yaml::from_str_with_options(text, options()).map_err(|e| fault(&e, origin))?;
    Ok(place_all(raw, text, origin))
}

fn options() -> Options {
    serde_yaml::options! {
        budget: serde_yaml::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_events: MAX_EVENTS,
            max_aliases: MAX_ALIASES,
        },
        alias_limits: serde_yaml::alias_limits! { max_total_replayed_events: MAX_EVENTS },
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        with_snippet: false,
    }
}

fn fault(error: &Error, origin: &str) -> Diagnostic {
    let error = error.without_snippet();
    let place = error.location().map(|location| place(location, origin));
    if matches!(error, Error::MultipleDocuments { .. }) {
        let message = "a second document begins here; everything in it would be lost";
        return Diagnostic::error(Reason::LayoutDuplicate, message)
            .at(place)
            .help("put all layouts in one document, or in files of their own");
    }
    // The library repeats the place behind its message.
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    let message = first.split(" at line ").next().unwrap_or_default();
    let beyond = ["budget", "limit exceeded"].iter().any(|word| message.contains(word));
    let message = match beyond {
        true => format!("a layout file is never so large or so deeply nested ({message})"),
        false => message.to_owned(),
    };
    let help = if beyond {
        BUDGET_HELP
    } else {
        HELPS.iter().find(|(word, _)| message.contains(word)).map_or(ANY_HELP, |(_, help)| *help)
    };
    Diagnostic::error(Reason::LayoutSyntax, message).at(place).help(help)
}

fn place(location: Location, origin: &str) -> Place {
    Place { file: origin.to_owned(), line: location.line(), column: location.column() }
}

fn place_all(raw: Raw, text: &str, origin: &str) -> Tree {
    let location = raw.0.referenced;
    let value = match raw.0.value {
        RawValue::Null => Value::Null,
        RawValue::Bool(value) => Value::Bool(value),
        RawValue::Integer(value) => Value::Integer(value),
        RawValue::Float(value) => Value::Float(value),
        RawValue::Text(value) => {
            plain_boolean(&value, location, text).map_or(Value::Text(value), Value::Bool)
        }
        RawValue::List(items) => {
            Value::List(items.into_iter().map(|item| place_all(item, text, origin)).collect())
        }
        RawValue::Map(entries) => Value::Map(
            entries
                .into_iter()
                .map(|(key, value)| (place_all(key, text, origin), place_all(value, text, origin)))
                .collect(),
        ),
    };
    Tree { place: place(location, origin), value }
}

/// `yes`, `no`, `on` and `off` without quotes are booleans, as in YAML 1.1 and for the peer.
fn plain_boolean(value: &str, location: Location, text: &str) -> Option<bool> {
    let boolean = match value {
        "yes" | "Yes" | "YES" | "on" | "On" | "ON" => true,
        "no" | "No" | "NO" | "off" | "Off" | "OFF" => false,
        _ => return None,
    };
    let start = usize::try_from(location.span().byte_offset()?).ok()?;
    text.get(start..)?.starts_with(value).then_some(boolean)
}
