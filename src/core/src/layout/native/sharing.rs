//! `pool` and `sharing`: what is carved on demand, and who shares what there is.

use super::super::{
    OnRelease, Pool, Sharing, Wanted, Way,
    reader::{Reader, fault},
    yaml::{Tree, Value},
};
use crate::{
    diagnostic::{Diagnostic, Place},
    near,
    reason::Reason,
};

const POOL_KEYS: [&str; 2] = ["profiles", "on-release"];
const POOL_HELP: &str = "write 'pool: {profiles: [1g, 2g], on-release: keep}'";
const WAYS: [&str; 2] = ["mps", "time-slicing"];
const SHARING_HELP: &str = "write 'sharing: {mps: {}}', 'sharing: {time-slicing: {replicas: 4}}', or one of these for a \
                            profile, as in {1g: {mps: {}}}";
const REPLICAS_HELP: &str = "write 'time-slicing: {replicas: 4}', at least 2";
/// Time slicing has no bound of its own; beyond this nobody gets a useful share.
const MANY_REPLICAS: u32 = 64;
/// NVIDIA's device plugin spells it so.
const PLUGIN_WAY: &str = "timeSlicing";

impl Reader {
    pub(super) fn pool(&mut self, value: &Tree) -> Option<Pool> {
        let Value::Map(entries) = &value.value else {
            let message = format!("'pool' is a map, not {}", value.value.kind());
            self.say(fault(Reason::LayoutInvalid, &value.place, message).help(POOL_HELP));
            return None;
        };
        let fields = self.fields(entries, "'pool'");
        self.known(&fields, "'pool'", &POOL_KEYS);
        let Some((_, listed)) = fields.get("profiles") else {
            self.say(fault(Reason::LayoutInvalid, &value.place, "'pool' has no 'profiles'").help(POOL_HELP));
            return None;
        };
        let mut profiles: Vec<Wanted> = Vec::new();
        for (text, place) in self.texts("profiles", listed, super::instances::NAME_HELP) {
            let Some(name) = self.name(&text, &place) else { continue };
            if profiles.iter().any(|other| other.name == name) {
                let message = format!("'{text}' stands twice in the pool");
                self.say(fault(Reason::LayoutDuplicate, &place, message).help("remove one of the two"));
            }
            profiles.push(Wanted::just(name, 1, &place));
        }
        let words = [("keep", OnRelease::Keep), ("destroy", OnRelease::Destroy)];
        let on_release = match fields.get("on-release") {
            None => OnRelease::Keep,
            Some((_, value)) => self.word("on-release", value, &words)?,
        };
        Some(Pool { profiles, on_release })
    }

    pub(super) fn sharing(&mut self, value: &Tree, notes: &mut Vec<Diagnostic>) -> Option<Vec<Sharing>> {
        let entries = match &value.value {
            Value::Map(entries) if !entries.is_empty() => entries,
            other => {
                let what =
                    if matches!(other, Value::Map(_)) { "an empty map".to_owned() } else { other.kind() };
                let message = format!("'sharing' cannot be {what}");
                let near = match other {
                    Value::Text(text) => {
                        near::words(text, WAYS).iter().map(|way| format!("{{{way}: …}}")).collect()
                    }
                    _ => Vec::new(),
                };
                self.say(fault(Reason::LayoutInvalid, &value.place, message).near(near).help(SHARING_HELP));
                return None;
            }
        };
        let fields = self.fields(entries, "'sharing'");
        let mut ways = Vec::new();
        for (text, (key, value)) in &fields {
            if WAYS.contains(&text.as_str()) {
                if let Some(way) = self.way(text, value, notes) {
                    ways.push(Sharing { profile: None, way, place: key.place.clone() });
                }
            } else if text.starts_with(|c: char| c.is_ascii_digit()) {
                let Some(name) = self.name(text, &key.place) else { continue };
                let way = self.one_way(text, value, notes);
                let profile = Some(Wanted::just(name, 1, &key.place));
                ways.extend(way.map(|way| Sharing { profile, way, place: key.place.clone() }));
            } else {
                let mut near = near::words(text, WAYS);
                if text == PLUGIN_WAY {
                    near = vec![WAYS[1].to_owned()];
                }
                let message = format!("'sharing' has no key '{text}'");
                self.say(fault(Reason::LayoutInvalid, &key.place, message).near(near).help(SHARING_HELP));
            }
        }
        if let [_, second] = ways.iter().filter(|way| way.profile.is_none()).collect::<Vec<_>>().as_slice() {
            let message = "two ways of sharing stand in one rule";
            self.say(
                fault(Reason::LayoutInvalid, &second.place, message)
                    .help("choose one, or one for each profile"),
            );
        }
        ways.sort_by_key(|way| (way.place.line, way.place.column));
        Some(ways)
    }

    fn one_way(&mut self, of: &str, value: &Tree, notes: &mut Vec<Diagnostic>) -> Option<Way> {
        if let Value::Map(entries) = &value.value
            && let [(Tree { value: Value::Text(key), .. }, value)] = entries.as_slice()
            && WAYS.contains(&key.as_str())
        {
            return self.way(key, value, notes);
        }
        let message = format!("sharing of '{of}' is one of mps and time-slicing");
        self.say(fault(Reason::LayoutInvalid, &value.place, message).help(SHARING_HELP));
        None
    }

    fn way(&mut self, key: &str, value: &Tree, notes: &mut Vec<Diagnostic>) -> Option<Way> {
        let fields = match &value.value {
            Value::Map(entries) => self.fields(entries, &format!("'{key}'")),
            Value::Null => Default::default(),
            other => {
                let message = format!("'{key}' is a map, not {}", other.kind());
                self.say(fault(Reason::LayoutInvalid, &value.place, message).help(SHARING_HELP));
                return None;
            }
        };
        if key == WAYS[0] {
            for (name, (key, _)) in &fields {
                let message = format!("'mps' has no key '{name}'");
                self.say(fault(Reason::LayoutInvalid, &key.place, message).help("write 'mps: {}'"));
            }
            return Some(Way::Mps);
        }
        self.known(&fields, "'time-slicing'", &["replicas"]);
        let Some((_, replicas)) = fields.get("replicas") else {
            self.say(
                fault(Reason::LayoutInvalid, &value.place, "'time-slicing' has no 'replicas'")
                    .help(REPLICAS_HELP),
            );
            return None;
        };
        let number = match &replicas.value {
            Value::Integer(number) => u32::try_from(*number).ok().filter(|number| *number >= 2),
            _ => None,
        };
        let Some(number) = number else {
            let message = format!("'replicas' cannot be {}", replicas.value.kind());
            self.say(fault(Reason::LayoutInvalid, &replicas.place, message).help(REPLICAS_HELP));
            return None;
        };
        if number > MANY_REPLICAS {
            notes.push(many(number, &replicas.place));
        }
        Some(Way::TimeSlicing { replicas: number })
    }
}

fn many(number: u32, place: &Place) -> Diagnostic {
    let message = format!("{number} programs would share one instance in turns");
    Diagnostic::warning(Reason::LayoutInvalid, message)
        .at(Some(place.clone()))
        .help(format!("beyond {MANY_REPLICAS} nobody gets a useful share"))
}
