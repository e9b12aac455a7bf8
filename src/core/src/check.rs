//! What `check` and `layouts` answer: what is wrong with layout files, and which of their layouts a node can have.

use crate::{
    diagnostic::{Diagnostic, Severity},
    layout::{Layout, Library},
    node::{Gpu, Node},
    plan::{self, Policy},
    reason::Reason,
    target,
};
use serde::{Deserialize, Serialize};

/// The format word of [`Checked`].
pub const FORMAT: &str = "migd-check/1";

/// The answer as `check --json` gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// [`FORMAT`].
    pub format: String,
    /// The node that the layouts were judged for, as the caller named it.
    pub node: Option<String>,
    /// The layouts of all files that are right.
    pub layouts: Vec<CheckedLayout>,
    /// What is wrong with the files, and what their readers should know.
    pub faults: Vec<Diagnostic>,
}

/// One layout of [`Checked`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedLayout {
    /// Its name.
    pub name: String,
    /// The file that it stands in.
    pub file: String,
    /// The line of its name.
    pub line: u64,
    /// Whether the node can have it; null where no node was named.
    pub fits: Option<bool>,
    /// Why not, or what to know.
    pub details: Vec<Diagnostic>,
}

impl Checked {
    /// Whether a file is wrong, or a layout cannot be placed on the node. Layouts of `shipped` files are for all
    /// models, so that one which this node cannot have is no fault.
    pub fn wrong(&self, shipped: impl Fn(&str) -> bool) -> bool {
        self.faults.iter().any(|fault| fault.severity == Severity::Error)
            || self.layouts.iter().any(|layout| layout.fits == Some(false) && !shipped(&layout.file))
    }
}

/// Judges all files, and for a node each layout.
pub fn check(library: &Library, node: Option<(&str, &Node)>) -> Checked {
    let mut faults = library.faults();
    let layouts = library.layouts().map(|layout| {
        let mut details = Vec::new();
        let fits = match node {
            // Without a node the layout's own notes are all there is to say.
            None => {
                faults.extend(layout.notes.iter().cloned());
                None
            }
            Some((_, node)) => Some(match fits(layout, node) {
                Ok(notes) => {
                    details = notes;
                    true
                }
                Err(faults) => {
                    details = faults;
                    false
                }
            }),
        };
        let (name, file, line) = (layout.name.clone(), layout.place.file.clone(), layout.place.line);
        CheckedLayout { name, file, line, fits, details }
    });
    let layouts = layouts.collect();
    let node = node.map(|(name, _)| name.to_owned());
    Checked { format: FORMAT.to_owned(), node, layouts, faults }
}

/// Whether a node could have a layout if nothing were in use on it: it names GPUs and profiles that are there, and
/// all that it asks of one GPU can be placed together. What its reader should know comes back.
///
/// # Errors
/// Why it cannot.
pub fn fits(layout: &Layout, node: &Node) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    let idle = |gpu: &Gpu| Gpu { instances: Vec::new(), ..gpu.clone() };
    let node = Node { gpus: node.gpus.iter().map(idle).collect(), ..node.clone() };
    let target = target::resolve(layout, &node)?;
    let mut notes: Vec<Diagnostic> =
        target.blocked.iter().map(|blocked| blocked.diagnostic.clone()).collect();
    for note in &mut notes {
        note.severity = Severity::Warning;
    }
    let plan = plan::make(&node, &target, &Policy::default())?;
    // That the table was asked is said once for the node, not for each layout.
    notes.extend(plan.notes.into_iter().filter(|note| note.reason != Reason::DriverTooOld));
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fixtures::{gpu, holding, node},
        imagined,
    };

    const TEXT: &str = "layouts:\n  good: {gpus: [{match: all, instances: [3g, 4g]}]}\n  \
                        bad: {gpus: [{match: all, instances: [4g, 4g@0]}]}\n  \
                        other: {gpus: [{match: all, instances: 1g.5gb}]}\n";

    #[test]
    fn each_layout_is_judged_for_the_node() {
        let library = Library::given(TEXT, "t.yaml");
        let node = imagined::node("8xh100-sxm-80gb").unwrap();
        let checked = check(&library, Some(("8xh100-sxm-80gb", &node)));
        let said: Vec<(&str, Option<bool>, Vec<Reason>)> = (checked.layouts.iter())
            .map(|l| (l.name.as_str(), l.fits, l.details.iter().map(|d| d.reason).collect()))
            .collect();
        assert_eq!(
            said,
            [
                ("good", Some(true), vec![]),
                ("bad", Some(false), vec![Reason::LayoutUnplaceable; 8]),
                ("other", Some(false), vec![Reason::ProfileUnknown]),
            ]
        );
        assert!(checked.wrong(|_| false) && !checked.wrong(|file| file == "t.yaml"));
        let alone = check(&library, None);
        assert!(alone.layouts.iter().all(|layout| layout.fits.is_none()) && !alone.wrong(|_| false));
    }

    #[test]
    fn what_is_in_use_now_does_not_matter() {
        let node = node(vec![holding(gpu("a100-40gb", 0), "7g@0*")]);
        let library = Library::given(TEXT, "t.yaml");
        assert!(fits(library.find("good").unwrap(), &node).is_ok());
    }

    #[test]
    fn an_old_driver_that_excludes_four_and_three_is_heeded() {
        let text = "driver: 470.82.01\ngpus: [{gpu: a100-40gb}]\n";
        let node = imagined::node_of_file(text, "n.yaml").unwrap();
        let library = Library::given(TEXT, "t.yaml");
        let faults = fits(library.find("good").unwrap(), &node).unwrap_err();
        assert_eq!(faults[0].reason, Reason::LayoutUnplaceable);
    }
}
