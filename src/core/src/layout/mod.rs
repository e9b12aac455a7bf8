//! What a person writes: named layouts, each a list of rules for the GPUs of one node.
//!
//! ```text
//! text --yaml--> tree with places --v1--> LayoutFile --find(name)--> Layout --target::resolve--> Target
//! ```
//!
//! In: the peer's `version: v1` files, YAML or JSON. Out: every layout of the file, or every fault in it, each
//! with its place. A layout that is not selected is checked like the one that is.
//! Not here: whether this node has the GPUs and profiles that a layout names (see [`crate::target`]).

mod filter;
mod v1;
mod yaml;

#[cfg(test)]
mod tests;

pub use filter::DeviceFilter;

use crate::{
    diagnostic::{Diagnostic, Place},
    near,
    profile::ProfileName,
    reason::Reason,
};

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
    /// Its rules. The last one that selects a GPU decides about it.
    pub rules: Vec<Rule>,
    /// What its reader should know: counts of zero that were dropped, MIG on without instances.
    pub notes: Vec<Diagnostic>,
}

/// What is wanted of some GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Where it begins.
    pub place: Place,
    /// Only GPUs that one of these matches; empty: every GPU.
    pub filters: Vec<DeviceFilter>,
    /// Which of them.
    pub devices: Devices,
    /// What is wanted of these.
    pub wish: Wish,
}

/// Which GPUs of those that the filters leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Devices {
    /// All that can do MIG.
    All,
    /// These NVML indexes, with the place of each.
    Indexes(Vec<(u32, Place)>),
}

/// MIG off, or on with these instances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// MIG off.
    Off,
    /// MIG on, with exactly these instances; empty: none.
    On(Vec<Wanted>),
}

/// So many instances of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The name; with a compute prefix it counts compute instances, to be packed in GPU instances.
    pub name: ProfileName,
    /// How many, at least one.
    pub count: u32,
    /// Where the name stands.
    pub place: Place,
}

/// Reads a layout file, YAML or JSON; `origin` names it in messages.
///
/// # Errors
/// Everything that is wrong with it, in the order of the text, warnings and notes among the errors.
pub fn parse(text: &str, origin: &str) -> Result<LayoutFile, Vec<Diagnostic>> {
    let root = yaml::read(text, origin).map_err(|fault| vec![fault])?;
    v1::read(&root, origin)
}
