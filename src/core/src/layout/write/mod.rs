//! Layouts as text again, in migd's form or the peer's. What is written is read back with the same meaning.

mod v1;

#[cfg(test)]
mod tests;

pub use v1::{v1, v1_on};

use super::{
    Count, Indexes, Layout, Match, OnRelease, Pool, Rule, Sharing, Unlisted, Wanted, Way, Wins, Wish,
};
use std::fmt::Write;

/// Words that YAML reads as something other than text where they stand without quotes.
const NO_TEXT: [&str; 12] =
    ["null", "true", "false", "yes", "no", "on", "off", "y", "n", ".nan", ".inf", "~"];
/// How long a rule may be on one line.
const WIDTH: usize = 100;

/// Layouts in migd's form, with comments where a name had to be changed.
pub fn native(layouts: &[Layout]) -> String {
    let mut text = "layouts:\n".to_owned();
    for layout in layouts {
        let name = native_name(&layout.name);
        if name != layout.name {
            line(&mut text, 2, &format!("# was {}", quoted(&layout.name)));
        }
        line(&mut text, 2, &format!("{}:", plain(&name)));
        if let Some(description) = &layout.description {
            line(&mut text, 4, &format!("description: {}", quoted(description)));
        }
        line(&mut text, 4, "gpus:");
        for rule in deciding(layout) {
            line(&mut text, 6, &format!("- match: {}", matching(&rule.matches)));
            wish(&mut text, &rule.wish);
            if let Some(pool) = &rule.pool {
                line(&mut text, 8, &format!("pool: {}", self::pool(pool)));
            }
            if !rule.sharing.is_empty() {
                line(&mut text, 8, &format!("sharing: {}", sharing(&rule.sharing)));
            }
        }
        match layout.unlisted {
            Unlisted::Keep => {}
            Unlisted::Disable => line(&mut text, 4, "unlisted: disable"),
            Unlisted::Error => line(&mut text, 4, "unlisted: error"),
        }
    }
    text
}

/// The rules in the order in which the first that matches wins, without those behind one that matches all.
fn deciding(layout: &Layout) -> Vec<&Rule> {
    let mut rules: Vec<&Rule> = layout.rules.iter().collect();
    if layout.wins == Wins::Last {
        rules.reverse();
    }
    if let Some(all) = rules.iter().position(|rule| rule.matches.is_all()) {
        let late = rules.split_off(all + 1);
        rules.extend(late.into_iter().filter(|rule| rule.matches.may_select_without_mig()));
    }
    rules
}

/// A name that migd's form allows: the peer's allows any text.
fn native_name(name: &str) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    let name: String = name.chars().map(|c| if legal(c) { c } else { '-' }).take(63).collect();
    let name = name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    if name.is_empty() { "unnamed".to_owned() } else { name.to_owned() }
}

fn line(text: &mut String, indent: usize, content: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{:indent$}{content}", "");
}

/// In double quotes, as JSON and YAML both read it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Without quotes where YAML reads it as text then.
fn plain(text: &str) -> String {
    let letter = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let legal = text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c));
    let word = NO_TEXT.contains(&text.to_ascii_lowercase().as_str());
    if letter && legal && !word { text.to_owned() } else { quoted(text) }
}

/// One without brackets, several as a list.
fn one_or_list(items: &[String]) -> String {
    match items {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

fn matching(matches: &Match) -> String {
    if matches.is_all() {
        return "all".to_owned();
    }
    let mut keys = Vec::new();
    let mut key = |name: &str, items: Vec<String>| {
        if !items.is_empty() {
            keys.push(format!("{name}: {}", one_or_list(&items)));
        }
    };
    key(
        "index",
        match &matches.indexes {
            None => Vec::new(),
            Some(Indexes::FirstHalf) => vec!["first-half".to_owned()],
            Some(Indexes::SecondHalf) => vec!["second-half".to_owned()],
            Some(Indexes::Listed(listed)) => listed.iter().map(|(index, _)| index.to_string()).collect(),
        },
    );
    key("model", matches.models.iter().map(|glob| quoted(&glob.text)).collect());
    key("uuid", matches.uuids.iter().map(|(uuid, _)| quoted(uuid)).collect());
    let addresses = matches.pci.iter().map(|(pci, _)| quoted(&pci.to_string()));
    let ids = matches.filters.iter().map(|filter| quoted(&filter.to_string()));
    key("pci", addresses.chain(ids).collect());
    key("minor", matches.minors.iter().map(|(minor, _)| minor.to_string()).collect());
    key("profile", matches.profiles.iter().map(|wanted| wanted.name.to_string()).collect());
    format!("{{{}}}", keys.join(", "))
}

fn wish(text: &mut String, wish: &Wish) {
    let wanted = match wish {
        Wish::Off => return line(text, 8, "mig: off"),
        Wish::Symbolic(symbol) => return line(text, 8, &format!("instances: {}", symbol.word())),
        Wish::On(wanted) => wanted,
    };
    let items: Vec<String> = wanted.iter().map(instance).collect();
    match items.as_slice() {
        [] => line(text, 8, "instances: none"),
        [one] => line(text, 8, &format!("instances: {one}")),
        several if several.iter().map(String::len).sum::<usize>() < WIDTH => {
            line(text, 8, &format!("instances: [{}]", several.join(", ")));
        }
        several => {
            line(text, 8, "instances:");
            several.iter().for_each(|item| line(text, 10, &format!("- {item}")));
        }
    }
}

/// `3g`, `7x 1g`, `max 1g`, `3g@4`, `{3g: [2c, 1c]}`.
fn instance(wanted: &Wanted) -> String {
    let start = wanted.start.map(|start| format!("@{start}")).unwrap_or_default();
    let name = format!("{}{start}", wanted.name);
    match (&wanted.split, wanted.count) {
        (Some(split), _) if split.is_empty() => format!("{{{name}: none}}"),
        (Some(split), _) => {
            let parts: Vec<String> = split.iter().map(|size| format!("{size}c")).collect();
            format!("{{{name}: [{}]}}", parts.join(", "))
        }
        (None, Count::Just(1)) => name,
        (None, Count::Just(count)) => format!("{count}x {name}"),
        (None, Count::Max) => format!("max {name}"),
    }
}

fn pool(pool: &Pool) -> String {
    let names: Vec<String> = pool.profiles.iter().map(|wanted| wanted.name.to_string()).collect();
    let on_release = match pool.on_release {
        OnRelease::Keep => "keep",
        OnRelease::Destroy => "destroy",
    };
    format!("{{profiles: [{}], on-release: {on_release}}}", names.join(", "))
}

fn sharing(sharing: &[Sharing]) -> String {
    let way = |way: Way| match way {
        Way::Mps => "mps: {}".to_owned(),
        Way::TimeSlicing { replicas } => format!("time-slicing: {{replicas: {replicas}}}"),
    };
    let one = |sharing: &Sharing| match &sharing.profile {
        None => way(sharing.way),
        Some(profile) => format!("{}: {{{}}}", profile.name, way(sharing.way)),
    };
    format!("{{{}}}", sharing.iter().map(one).collect::<Vec<_>>().join(", "))
}
