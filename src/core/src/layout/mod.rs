//! What a person writes: named layouts, each a list of rules for the GPUs of one node.
//!
//! ```text
//! text --yaml--> tree with places --native or v1--> LayoutFile --find(name)--> Layout --target::resolve--> Target
//! ```
//!
//! In: files of migd's own form or of the peer's `version: v1`, in YAML or JSON, told apart by their keys. Out:
//! every layout of the file, or every fault in it, each with its place. A layout that is not selected is checked
//! like the one that is.
//! Not here: whether this node has the GPUs and profiles that a layout names (see [`crate::target`]).

mod filter;
mod glob;
mod library;
mod name;
mod native;
mod reader;
mod v1;
pub mod write;
mod yaml;

#[cfg(test)]
mod tests;

pub use filter::DeviceFilter;
pub use glob::Glob;
pub use library::Library;
pub use name::{Name, Slices};

use crate::{
    diagnostic::{Diagnostic, Place, Severity},
    id::PciAddress,
    near,
    reason::Reason,
};
use std::fmt;

/// The most bytes that a layout file may have: some twenty times the largest real ones.
pub const MAX_BYTES: usize = 1 << 20;
/// How many faults of one file are told: more are the same mistake over and over.
const MAX_FAULTS: usize = 100;

/// A file of layouts, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutFile {
    /// The file as the caller named it.
    pub origin: String,
    /// Its layouts.
    pub layouts: Vec<Layout>,
}

impl LayoutFile {
    /// The layout of that name.
    ///
    /// # Errors
    /// `layout-unknown` with the nearest names and the list of all.
    pub fn find(&self, name: &str) -> Result<&Layout, Diagnostic> {
        if let Some(layout) = self.layouts.iter().find(|l| l.name == name) {
            return Ok(layout);
        }
        let names: Vec<&str> = self.layouts.iter().map(|l| l.name.as_str()).collect();
        let near = near::words(name, names.iter().copied());
        let message = format!("{} has no layout '{name}'", self.origin);
        let help = match names.as_slice() {
            [] => "the file has no layouts".to_owned(),
            names => format!("its layouts are {}", names.join(", ")),
        };
        Err(Diagnostic::error(Reason::LayoutUnknown, message).near(near).help(help))
    }
}

/// A named arrangement for a whole node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Its name.
    pub name: String,
    /// Where the name stands.
    pub place: Place,
    /// What its writer says of it.
    pub description: Option<String>,
    /// Its rules.
    pub rules: Vec<Rule>,
    /// Which of several rules that select a GPU decides about it.
    pub wins: Wins,
    /// What becomes of the GPUs that no rule selects.
    pub unlisted: Unlisted,
    /// What its reader should know: counts of zero that were dropped, MIG on without instances.
    pub notes: Vec<Diagnostic>,
}

/// Which of several rules that select a GPU decides about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wins {
    /// The first: migd's own form.
    First,
    /// The last: the peer's form.
    Last,
}

/// What becomes of GPUs that no rule selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unlisted {
    /// They stay as they are.
    Keep,
    /// MIG goes off on those that have it.
    Disable,
    /// The layout is refused on a node that has such GPUs.
    Error,
}

/// What is wanted of some GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Where it begins.
    pub place: Place,
    /// Which GPUs.
    pub matches: Match,
    /// What is wanted of these.
    pub wish: Wish,
    /// What may be carved on demand beside the instances.
    pub pool: Option<Pool>,
    /// How programs share what there is.
    pub sharing: Vec<Sharing>,
}

/// Which GPUs a rule selects: those for which every field that is not empty has one that holds; all empty: every
/// GPU that can do MIG.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Match {
    /// PCI ids.
    pub filters: Vec<DeviceFilter>,
    /// NVML indexes.
    pub indexes: Option<Indexes>,
    /// Product names.
    pub models: Vec<Glob>,
    /// UUIDs.
    pub uuids: Vec<(String, Place)>,
    /// PCI addresses.
    pub pci: Vec<(PciAddress, Place)>,
    /// Device minors.
    pub minors: Vec<(u32, Place)>,
    /// GPUs that have one of these profiles.
    pub profiles: Vec<Wanted>,
}

impl Match {
    /// Whether it selects every GPU that can do MIG.
    pub fn is_all(&self) -> bool {
        *self == Match::default()
    }
}

/// Indexes that a rule selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Indexes {
    /// These, with the place of each.
    Listed(Vec<(u32, Place)>),
    /// The lower half of the node's GPUs that can do MIG, rounded down.
    FirstHalf,
    /// The rest of them.
    SecondHalf,
}

/// MIG off, or on with these instances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// MIG off.
    Off,
    /// MIG on, with exactly these instances; empty: none.
    On(Vec<Wanted>),
    /// MIG on, with what this means on the model.
    Symbolic(Symbol),
}

/// Instances by what they are for; each model has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symbol {
    /// One of half the slices, one of half the rest, and so on: 3g, 2g, 1g, 1g on a GPU of seven slices.
    Balanced,
    /// One instance of the whole.
    Largest,
    /// As many of the smallest as fit.
    Smallest,
}

impl Symbol {
    /// All of them.
    pub const ALL: [Symbol; 3] = [Symbol::Balanced, Symbol::Largest, Symbol::Smallest];

    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            Symbol::Balanced => "balanced",
            Symbol::Largest => "largest",
            Symbol::Smallest => "smallest",
        }
    }
}

/// So many instances of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The name; with a compute prefix it counts compute instances, to be packed in GPU instances.
    pub name: Name,
    /// How many, at least one.
    pub count: Count,
    /// The memory slice that it is to begin at, if that is written; then the count is one.
    pub start: Option<u32>,
    /// The compute slices of its compute instances, largest first, if they are written: several, or none at all.
    pub split: Option<Vec<u32>>,
    /// Where the name stands.
    pub place: Place,
}

impl Wanted {
    /// So many of a name, wherever they fit.
    pub fn just(name: Name, count: u32, place: &Place) -> Wanted {
        Wanted { name, count: Count::Just(count), start: None, split: None, place: place.clone() }
    }
}

/// How many instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// So many.
    Just(u32),
    /// As many as fit beside the others.
    Max,
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Count::Just(count) => write!(f, "{count}"),
            Count::Max => f.write_str("max"),
        }
    }
}

/// What may be carved on demand on the GPUs of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Of which profiles.
    pub profiles: Vec<Wanted>,
    /// What becomes of an instance that is released.
    pub on_release: OnRelease,
}

/// What becomes of an instance that was carved on demand when it is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnRelease {
    /// It stays for the next who wants one like it.
    Keep,
    /// It is destroyed.
    Destroy,
}

/// How programs share the instances of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharing {
    /// Only those of this profile; all if there is none.
    pub profile: Option<Wanted>,
    /// How.
    pub way: Way,
    /// Where it stands.
    pub place: Place,
}

/// A way of sharing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By NVIDIA's Multi-Process Service.
    Mps,
    /// One after another, offered so many times.
    TimeSlicing {
        /// How many times.
        replicas: u32,
    },
}

/// Reads a layout file, YAML or JSON; `origin` names it in messages.
///
/// # Errors
/// Everything that is wrong with it, in the order of the text, warnings and notes among the errors.
pub fn parse(text: &str, origin: &str) -> Result<LayoutFile, Vec<Diagnostic>> {
    let root = yaml::read(text, origin).map_err(|fault| vec![fault])?;
    let mut reader = reader::Reader { faults: Vec::new() };
    let layouts = reader.file(&root);
    if reader.faults.iter().any(|fault| fault.severity == Severity::Error) {
        let notes = layouts.into_iter().flat_map(|layout| layout.notes);
        let mut faults: Vec<Diagnostic> = reader.faults.into_iter().chain(notes).collect();
        faults.sort_by_key(|fault| fault.place.as_ref().map(|place| (place.line, place.column)));
        let beyond = faults.len().saturating_sub(MAX_FAULTS);
        if beyond > 0 {
            // An error is among those that are told: it decides the exit code.
            faults.sort_by_key(|fault| fault.severity);
            faults.truncate(MAX_FAULTS);
            let message = format!("{beyond} more faults of this file are not shown");
            let last = faults.last().and_then(|fault| fault.place.clone());
            faults.push(Diagnostic::note(Reason::LayoutInvalid, message).at(last));
        }
        return Err(faults);
    }
    Ok(LayoutFile { origin: origin.to_owned(), layouts })
}

impl reader::Reader {
    fn file(&mut self, root: &yaml::Tree) -> Vec<Layout> {
        let entries = match &root.value {
            yaml::Value::Map(entries) => entries,
            yaml::Value::Null => {
                let help =
                    "write 'layouts:' and the layouts under it; `migctl show all-balanced` prints an example";
                let message = "the file is empty";
                // Its own place is behind the last line.
                let place = Place { line: 1, column: 1, ..root.place.clone() };
                self.say(reader::fault(Reason::LayoutInvalid, &place, message).help(help));
                return Vec::new();
            }
            other => {
                let message = format!("a layout file is a map, not {}", other.kind());
                let fault = reader::fault(Reason::LayoutInvalid, &root.place, message);
                self.say(fault.help("it begins with 'layouts:', or with 'version: v1' in mig-parted's form"));
                return Vec::new();
            }
        };
        let fields = self.fields(entries, "the file");
        // The keys tell the form.
        let peer = fields.iter().find(|(name, _)| v1::TOP_KEYS.contains(&name.as_str()));
        match (fields.get(native::LAYOUTS), peer) {
            (Some(_), Some((name, (key, _)))) => {
                let message =
                    format!("'{name}' is of mig-parted's form, 'layouts' of migd's: one file has one form");
                let help = "put what stands under 'mig-configs' in a file of its own; \
                            `migctl show LAYOUT -f FILE --as native` rewrites it";
                self.say(reader::fault(Reason::LayoutInvalid, &key.place, message).help(help));
                Vec::new()
            }
            (None, Some(_)) => self.v1(root, &fields),
            (None, None) if native::looks_like_v1(&fields) => self.v1(root, &fields),
            _ => self.native(root, &fields),
        }
    }
}
