//! `instances`: what a GPU is to hold.

use super::super::{
    Count, Name, Symbol, Wanted, Wish,
    reader::{MAX_COUNT, Reader, fault, repaired},
    yaml::{Tree, Value},
};
use crate::{diagnostic::Place, near, reason::Reason};

pub(super) const NAME_HELP: &str = "write a profile as 3g.20gb, or by its slices as 3g, 1g+me, 1c.3g, or 1g.double for the \
                                    one with double memory";
const WISH_HELP: &str = "'instances' is balanced, largest, smallest, none, one profile such as '7x 1g', a list such as \
                         [3g, 2x 2g], or a map such as {3g.20gb: 1, 1g: 4}";
const VALUE_HELP: &str = "behind a profile stands a count, 'max', 'none' for no compute instances, or its compute \
                          instances as [2c, 1c]";
const NONE: &str = "none";
const MAX: &str = "max";
/// Memory slices are numbered far below this.
const MAX_START: u32 = 64;

impl Reader {
    /// `None` if anything in it is wrong; then all of that has been said.
    pub(super) fn wish(&mut self, value: &Tree) -> Option<Wish> {
        let before = self.faults.len();
        let mut wanted = Vec::new();
        match &value.value {
            Value::Text(text) if text == NONE => return Some(Wish::On(Vec::new())),
            Value::Text(text) => {
                if let Some(symbol) = Symbol::ALL.into_iter().find(|symbol| symbol.word() == text) {
                    return Some(Wish::Symbolic(symbol));
                }
                // A word is rather a symbol than a profile.
                let words = Symbol::ALL.map(Symbol::word).into_iter().chain([NONE]);
                let near = near::words(text, words);
                if !near.is_empty() || text.chars().all(|c| c.is_ascii_alphabetic() || c == '-') {
                    let message = format!("'instances' cannot be {}", value.value.kind());
                    self.say(fault(Reason::LayoutInvalid, &value.place, message).near(near).help(WISH_HELP));
                    return None;
                }
                wanted.extend(self.item(text, &value.place));
            }
            Value::List(items) if !items.is_empty() => {
                for item in items {
                    match &item.value {
                        Value::Text(text) => wanted.extend(self.item(text, &item.place)),
                        Value::Map(entries) if !entries.is_empty() => self.entries(entries, &mut wanted),
                        other => {
                            let message = format!("an instance cannot be {}", other.kind());
                            self.say(fault(Reason::LayoutInvalid, &item.place, message).help(WISH_HELP));
                        }
                    }
                }
            }
            Value::Map(entries) if !entries.is_empty() => self.entries(entries, &mut wanted),
            other => {
                let (what, near) = match other {
                    Value::List(_) => ("an empty list".to_owned(), vec![NONE.to_owned()]),
                    Value::Map(_) => ("an empty map".to_owned(), vec![NONE.to_owned()]),
                    Value::Null => (other.kind(), vec![NONE.to_owned()]),
                    other => (other.kind(), Vec::new()),
                };
                let help = match other {
                    Value::Bool(_) => "MIG off is 'mig: off', MIG on and empty is 'instances: none'",
                    _ => WISH_HELP,
                };
                let message = format!("'instances' cannot be {what}");
                self.say(fault(Reason::LayoutInvalid, &value.place, message).near(near).help(help));
            }
        }
        self.together(&wanted);
        (self.faults.len() == before).then_some(Wish::On(wanted))
    }

    /// What each is right for and all together are not.
    fn together(&mut self, wanted: &[Wanted]) {
        let mut total = 0;
        for (at, wish) in wanted.iter().enumerate() {
            total += match wish.count {
                Count::Just(count) => i128::from(count),
                Count::Max => 1,
            };
            let earlier = || wanted.iter().take(at);
            if wish.start.is_some() && earlier().any(|other| other.start == wish.start) {
                let message = format!("two instances are to begin at {}", wish.start.unwrap_or_default());
                self.say(
                    fault(Reason::LayoutDuplicate, &wish.place, message)
                        .help("each memory slice begins one at most"),
                );
            } else if wish.start.is_none()
                && wish.split.is_none()
                && earlier().any(|o| o.name == wish.name && o.start.is_none() && o.split.is_none())
            {
                let message = format!("'{}' stands twice in these instances", wish.name);
                self.say(
                    fault(Reason::LayoutDuplicate, &wish.place, message)
                        .help(format!("write it once with the sum, as in 2x {}", wish.name)),
                );
            }
            if wish.count == Count::Max {
                if earlier().any(|other| other.count == Count::Max) {
                    let message = "'max' stands twice in these instances";
                    self.say(
                        fault(Reason::LayoutInvalid, &wish.place, message)
                            .help("only one profile can fill what is left"),
                    );
                }
                if wanted.iter().any(|other| other.name.compute().is_some()) {
                    let message = "'max' cannot stand beside compute instances that are still to be packed";
                    let help = "write how they are packed, as in {3g: [1c, 2c]}";
                    self.say(fault(Reason::LayoutInvalid, &wish.place, message).help(help));
                }
            }
        }
        if let Some(first) = wanted.first().filter(|_| total > MAX_COUNT) {
            let message = format!("these are {total} instances");
            let help = "no GPU holds more than a few dozen instances";
            self.say(fault(Reason::LayoutInvalid, &first.place, message).help(help));
        }
    }

    /// `7x 1g`, `max 1g`, `3g@4`, `3g`.
    fn item(&mut self, text: &str, place: &Place) -> Option<Wanted> {
        let (count, rest) = match text.split_once(' ') {
            Some((MAX, rest)) => (Count::Max, rest.trim_start()),
            _ => match text.split_once(['x', '×']) {
                Some((count, rest))
                    if count.trim().bytes().all(|b| b.is_ascii_digit()) && !count.is_empty() =>
                {
                    let count = count.trim().parse::<i128>().unwrap_or(i128::MAX);
                    let tree = Tree { place: place.clone(), value: Value::Integer(count) };
                    (Count::Just(self.positive(rest.trim(), &tree)?), rest.trim_start())
                }
                _ => (Count::Just(1), text),
            },
        };
        let mut wanted = self.place_and_name(rest, place)?;
        wanted.count = count;
        self.written_start(&wanted)?;
        Some(wanted)
    }

    /// `{3g.20gb: 1, 1g@4: 1, 3g: [2c, 1c], 1g: max}`.
    fn entries(&mut self, entries: &[(Tree, Tree)], wanted: &mut Vec<Wanted>) {
        let fields = self.fields(entries, "'instances'");
        let mut fields: Vec<_> = fields.into_iter().collect();
        fields.sort_by_key(|(_, (key, _))| (key.place.line, key.place.column));
        for (text, (key, value)) in fields {
            let (Some(mut wish), Some((count, split))) =
                (self.place_and_name(&text, &key.place), self.count_or_split(&text, value))
            else {
                continue;
            };
            wish.count = count;
            wish.split = split;
            if let Some(split) = &wish.split {
                let sum: u32 = split.iter().sum();
                if wish.name.compute().is_some() {
                    let message = format!("'{text}' is itself a compute instance");
                    self.say(
                        fault(Reason::LayoutInvalid, &key.place, message)
                            .help("leave out the part before the dot"),
                    );
                    continue;
                }
                if sum > wish.name.slices() {
                    let message = format!(
                        "its compute instances have {sum} slices, the instance has {}",
                        wish.name.slices()
                    );
                    self.say(
                        fault(Reason::LayoutInvalid, &value.place, message)
                            .help("they can have as many as the instance at most"),
                    );
                    continue;
                }
                if let [whole] = split.as_slice()
                    && *whole == wish.name.slices()
                {
                    wish.split = None;
                }
            }
            if self.written_start(&wish).is_some() {
                wanted.push(wish);
            }
        }
    }

    fn count_or_split(&mut self, text: &str, value: &Tree) -> Option<(Count, Option<Vec<u32>>)> {
        match &value.value {
            Value::Text(word) if word == MAX => Some((Count::Max, None)),
            Value::Text(word) if word == NONE => Some((Count::Just(1), Some(Vec::new()))),
            Value::Integer(_) => self.positive(text, value).map(|count| (Count::Just(count), None)),
            Value::List(items) if !items.is_empty() => {
                let mut split = Vec::new();
                for item in items {
                    let size = match &item.value {
                        Value::Text(text) => text.strip_suffix('c').and_then(|n| n.parse::<u32>().ok()),
                        _ => None,
                    };
                    match size.filter(|size| (1..=8).contains(size)) {
                        Some(size) => split.push(size),
                        None => {
                            let near = match &item.value {
                                Value::Integer(size @ 1..=8) => vec![format!("{size}c")],
                                _ => Vec::new(),
                            };
                            let message = format!("a compute instance cannot be {}", item.value.kind());
                            let fault = fault(Reason::LayoutInvalid, &item.place, message).near(near);
                            self.say(fault.help("write it as 1c, 2c, 3c, 4c or 7c"));
                        }
                    }
                }
                split.sort_unstable_by(|a, b| b.cmp(a));
                (split.len() == items.len()).then_some((Count::Just(1), Some(split)))
            }
            other => {
                let what =
                    if matches!(other, Value::List(_)) { "an empty list".to_owned() } else { other.kind() };
                let message = format!("'{text}' cannot be {what}");
                self.say(fault(Reason::LayoutInvalid, &value.place, message).help(VALUE_HELP));
                None
            }
        }
    }

    /// A count of at least one.
    fn positive(&mut self, text: &str, value: &Tree) -> Option<u32> {
        let count = self.count(text, value)?;
        if count == 0 {
            let message = format!("the count of '{text}' is zero");
            self.say(
                fault(Reason::LayoutInvalid, &value.place, message)
                    .help("leave it out, or write at least one"),
            );
            return None;
        }
        Some(count)
    }

    fn written_start(&mut self, wish: &Wanted) -> Option<()> {
        let (Some(start), false) =
            (wish.start, wish.count == Count::Just(1) && wish.name.compute().is_none())
        else {
            return Some(());
        };
        let message = format!("only one whole instance can begin at {start}");
        let help = format!("write one for each start, as in [{0}@0, {0}@4]", wish.name);
        self.say(fault(Reason::LayoutInvalid, &wish.place, message).help(help));
        None
    }

    fn place_and_name(&mut self, text: &str, place: &Place) -> Option<Wanted> {
        let (name, start) = match text.split_once('@') {
            None => (text, None),
            Some((name, start)) => match start.parse::<u32>() {
                Ok(number) if number < MAX_START => (name, Some(number)),
                _ => {
                    let message = format!("'{start}' is no memory slice to begin at");
                    self.say(
                        fault(Reason::LayoutInvalid, place, message).help(format!("write it as in {name}@4")),
                    );
                    return None;
                }
            },
        };
        let name = self.name(name, place)?;
        Some(Wanted { start, ..Wanted::just(name, 1, place) })
    }

    /// A profile's name in either form.
    pub(super) fn name(&mut self, text: &str, place: &Place) -> Option<Name> {
        match text.parse() {
            Ok(name) => Some(name),
            Err(why) => {
                let near = repaired(text).or_else(|| turned(text));
                let message = format!("'{text}' is not a MIG profile: {why}");
                let fault = fault(Reason::ProfileMalformed, place, message).near(near.into_iter().collect());
                self.say(fault.help(NAME_HELP));
                None
            }
        }
    }
}

/// `1g x7`, `1g*7` and the like with the count before the name.
fn turned(text: &str) -> Option<String> {
    let (name, count) = text.rsplit_once(['x', '×', '*', ':', ' '])?;
    let name = name.trim().trim_end_matches(['x', '×', '*', ':']).trim();
    let right = name.parse::<Name>().is_ok() && count.trim().parse::<u8>().is_ok();
    right.then(|| format!("{}x {name}", count.trim()))
}
