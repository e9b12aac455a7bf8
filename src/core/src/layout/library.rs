//! The layouts of several files together, found by name.
//!
//! Files of a search path are others' work: one that is wrong spoils its own layouts and none of the rest. A text
//! that the caller gave is his own: any fault in it refuses it whole.

use super::{Layout, LayoutFile, parse};
use crate::{
    diagnostic::{Diagnostic, Severity},
    near,
    reason::Reason,
    render::Sources,
};

/// Layout files, read and judged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Library {
    files: Vec<LayoutFile>,
    faults: Vec<Diagnostic>,
    sources: Sources,
    /// Its name, if it is one text that the caller gave.
    given: Option<String>,
}

impl Library {
    /// One text that the caller gave.
    pub fn given(text: &str, origin: &str) -> Library {
        let mut library = Library { given: Some(origin.to_owned()), ..Library::default() };
        library.add(text, origin);
        library
    }

    /// Reads one more file.
    pub fn add(&mut self, text: &str, origin: &str) {
        match parse(text, origin) {
            Ok(file) => self.files.push(file),
            Err(faults) => self.faults.extend(faults),
        }
        self.sources.insert(origin.to_owned(), text.to_owned());
    }

    /// Takes note of a file that cannot be read.
    pub fn refuse(&mut self, fault: Diagnostic) {
        self.faults.push(fault);
    }

    /// The files that are right, in the order in which they were read.
    pub fn files(&self) -> &[LayoutFile] {
        &self.files
    }

    /// All layouts, file by file.
    pub fn layouts(&self) -> impl Iterator<Item = &Layout> {
        self.files.iter().flat_map(|file| &file.layouts)
    }

    /// The texts that places point into.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Everything that is wrong with the files, and each layout that stands in two of them.
    pub fn faults(&self) -> Vec<Diagnostic> {
        let mut faults = self.faults.clone();
        let mut seen: Vec<&Layout> = Vec::new();
        for layout in self.layouts() {
            match seen.iter().find(|other| other.name == layout.name) {
                Some(first) => faults.push(twice(first, layout)),
                None => seen.push(layout),
            }
        }
        faults
    }

    /// The layout of that name.
    ///
    /// # Errors
    /// `layout-unknown` with the nearest names, and with it what is wrong with files that may hold it;
    /// `layout-duplicate` if two files have it; every fault of a text that was given.
    pub fn find(&self, name: &str) -> Result<&Layout, Vec<Diagnostic>> {
        let wrong = self.faults.iter().any(|fault| fault.severity == Severity::Error);
        if self.given.is_some() && wrong {
            return Err(self.faults.clone());
        }
        let mut found = self.layouts().filter(|layout| layout.name == name);
        match (found.next(), found.next()) {
            (Some(layout), None) => Ok(layout),
            (Some(first), Some(second)) => Err(vec![twice(first, second)]),
            (None, _) => {
                let mut faults = vec![self.unknown(name)];
                faults.extend(self.faults.iter().cloned());
                Err(faults)
            }
        }
    }

    fn unknown(&self, name: &str) -> Diagnostic {
        let names: Vec<&str> = self.layouts().map(|layout| layout.name.as_str()).collect();
        let near = near::words(name, names.iter().copied());
        let message = match &self.given {
            Some(origin) => format!("{origin} has no layout '{name}'"),
            None => format!("there is no layout '{name}'"),
        };
        let help = match names.as_slice() {
            [] => "there are no layouts".to_owned(),
            names if self.given.is_some() => format!("its layouts are {}", names.join(", ")),
            _ => "`migctl layouts` lists them; a file of your own is named with -f FILE".to_owned(),
        };
        Diagnostic::error(Reason::LayoutUnknown, message).near(near).help(help)
    }
}

fn twice(first: &Layout, second: &Layout) -> Diagnostic {
    let message = format!("layout '{}' stands in two files, also at {}", second.name, first.place);
    Diagnostic::error(Reason::LayoutDuplicate, message)
        .at(Some(second.place.clone()))
        .help("rename one, or give one file the other's name, so that the later folder's hides the earlier's")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layouts(names: &[&str]) -> String {
        let one = |name: &&str| format!("  {name}: {{gpus: [{{match: all, mig: off}}]}}\n");
        format!("layouts:\n{}", names.iter().map(one).collect::<String>())
    }

    #[test]
    fn a_wrong_file_of_many_spoils_only_its_own_layouts() {
        let mut library = Library::default();
        library.add(&layouts(&["a", "b"]), "one.yaml");
        library.add("layouts: [", "two.yaml");
        assert_eq!(library.find("b").unwrap().place.file, "one.yaml");
        // The one that is looked for may stand in the wrong file.
        let faults = library.find("c").unwrap_err();
        let reasons: Vec<Reason> = faults.iter().map(|fault| fault.reason).collect();
        assert_eq!(reasons, [Reason::LayoutUnknown, Reason::LayoutSyntax]);
        assert_eq!(library.sources().len(), 2);
    }

    #[test]
    fn a_given_text_with_a_fault_is_refused_whole() {
        let text = layouts(&["a"]) + "  b: {gpus: []}\n";
        let faults = Library::given(&text, "mine.yaml").find("a").unwrap_err();
        assert_eq!(faults[0].reason, Reason::LayoutInvalid);
        let library = Library::given(&layouts(&["a"]), "mine.yaml");
        let fault = &library.find("b").unwrap_err()[0];
        assert_eq!(fault.message, "mine.yaml has no layout 'b'");
        assert_eq!(fault.help.as_deref(), Some("its layouts are a"));
    }

    #[test]
    fn a_name_in_two_files_names_both_places() {
        let mut library = Library::default();
        library.add(&layouts(&["a", "b"]), "one.yaml");
        library.add(&layouts(&["c", "b"]), "two.yaml");
        let fault = &library.find("b").unwrap_err()[0];
        assert_eq!(fault.reason, Reason::LayoutDuplicate);
        assert_eq!(fault.place.as_ref().unwrap().to_string(), "two.yaml:3:3");
        assert!(fault.message.contains("one.yaml:3:3"), "{}", fault.message);
        assert_eq!(&library.faults()[0], fault);
        assert!(library.find("a").is_ok() && library.find("c").is_ok());
    }
}
