//! The commands about layouts as they are written: listing, checking.

use crate::{
    args::{Check, Common, File, Layouts},
    commands::{Stop, service, wait},
    output,
};
use migd::{SearchPath, is_shipped};
use migd_core::{
    check::{self, Checked, CheckedLayout},
    diagnostic::{Diagnostic, Severity},
    document::{Failure, Layouts as Listed, ListedLayout},
    imagined,
    layout::{Library, MAX_BYTES},
    node::Node,
    reason::{Exit, Reason},
};
use std::{io::Read, path::Path};

/// The node at hand, as `--for` names it.
const THIS: &str = "this";
/// Other folders for the search path, weakest first, joined by colons.
const PATH_VARIABLE: &str = "MIGD_LAYOUT_PATH";
/// The most that a layout or node file may hold.
const MOST_BYTES: u64 = MAX_BYTES as u64;

/// The layouts of a file, or of the search path.
pub(crate) fn read(file: &File) -> Result<Library, Failure> {
    let Some(path) = &file.path else { return Ok(search_path().read()) };
    let (text, origin) = text_of(path)?;
    Ok(Library::given(&text, &origin))
}

fn search_path() -> SearchPath {
    match std::env::var_os(PATH_VARIABLE) {
        None => SearchPath::default(),
        Some(folders) => {
            let folders = std::env::split_paths(&folders).filter(|folder| !folder.as_os_str().is_empty());
            SearchPath::of(folders.collect())
        }
    }
}

/// A file's text and its name for messages.
fn text_of(path: &Path) -> Result<(String, String), Failure> {
    let stdin = path.as_os_str() == "-";
    let origin = if stdin { "<stdin>".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let result = if stdin {
        std::io::stdin().lock().take(MOST_BYTES + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
    };
    let unreadable = |why: &str| {
        let fault = Diagnostic::error(Reason::FileUnreadable, format!("{origin}: {why}"));
        Failure::of(vec![fault.help("name a readable file, or `-` for standard input")])
    };
    match result {
        Err(error) => Err(unreadable(&error.to_string())),
        Ok(_) if bytes.len() as u64 > MOST_BYTES => {
            Err(unreadable("larger than 1 MiB, which no such file is"))
        }
        Ok(_) => match String::from_utf8(bytes) {
            Ok(text) => Ok((text, origin)),
            Err(_) => Err(unreadable("not UTF-8 text")),
        },
    }
}

/// `layouts`: where each stands and whether this node can have it.
pub(crate) fn layouts(common: &Common, ask: &Layouts) -> Result<Exit, Stop> {
    let library = read(&ask.file)?;
    let wrong = library.faults().iter().any(|fault| fault.severity == Severity::Error);
    if ask.file.path.is_some() && wrong {
        return Err(Stop::of(Failure::of(library.faults()), &library));
    }
    // A list without a driver is worth having too.
    let node = match wait(service(common)?.status())? {
        Ok(node) => Some(node),
        Err(failure) => {
            if !common.json {
                let message = format!("which of them this node can have cannot be told: {}", failure.message);
                output::say(&output::note(&Diagnostic::note(failure.reason, message)));
            }
            None
        }
    };
    let checked = node.map(|node| check::check(&library, Some((THIS, &node))));
    let listed = Listed::of(&library, checked.as_ref());
    if common.json {
        output::document(&listed);
    } else {
        output::diagnostics(&listed.faults, library.sources());
        output::print(&list(&listed, ask.all || checked.is_none()));
    }
    Ok(Exit::Done)
}

fn list(listed: &Listed, all: bool) -> String {
    let (mut shown, hidden): (Vec<&ListedLayout>, Vec<&ListedLayout>) =
        listed.layouts.iter().partition(|layout| all || layout.fits == Some(true));
    // The site's own first, labels of elsewhere last.
    shown.sort_by_key(|layout| (is_shipped(&layout.file), layout.description.is_none()));
    let width = shown.iter().map(|layout| layout.name.chars().count()).max().unwrap_or(0);
    let places: Vec<String> = shown.iter().map(|layout| format!("{}:{}", layout.file, layout.line)).collect();
    let wide = places.iter().map(|place| place.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (layout, place) in shown.iter().zip(&places) {
        let can = match layout.fits {
            Some(true) => "yes",
            Some(false) => "no ",
            None => "?  ",
        };
        let description = layout.description.as_deref().unwrap_or_default();
        let line = format!("{:width$}  {can}  {place:wide$}  {description}", layout.name);
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if !hidden.is_empty() {
        let number = u32::try_from(hidden.len()).unwrap_or(u32::MAX);
        let line =
            format!("{} that this node cannot have; --all shows them\n", output::count(number, "layout"));
        text.push_str(&line);
    }
    text
}

/// `check`: everything that is wrong, and what can be placed.
pub(crate) fn check(common: &Common, ask: &Check) -> Result<Exit, Stop> {
    let mut library = if ask.files.is_empty() { search_path().read() } else { Library::default() };
    for path in &ask.files {
        match text_of(path) {
            Ok((text, origin)) => library.add(&text, &origin),
            Err(failure) => failure.details.into_iter().for_each(|fault| library.refuse(fault)),
        }
    }
    let node = ask.node.as_deref().map(|notation| node(common, notation)).transpose()?;
    let named = ask.node.as_deref().zip(node.as_ref());
    let checked = check::check(&library, named);
    if common.json {
        output::document(&checked);
    } else {
        output::diagnostics(&checked.faults, library.sources());
        tell(&checked, &library, ask.files.is_empty());
    }
    Ok(if checked.wrong(|file| ask.files.is_empty() && is_shipped(file)) {
        Exit::Invalid
    } else {
        Exit::Done
    })
}

/// The node that `--for` names.
pub(crate) fn node(common: &Common, notation: &str) -> Result<Node, Stop> {
    if notation == THIS {
        return Ok(wait(service(common)?.status())??);
    }
    if !imagined::is_file(notation) {
        return imagined::node(notation).map_err(|fault| Failure::of(vec![fault]).into());
    }
    let (text, origin) = text_of(Path::new(notation))?;
    imagined::node_of_file(&text, &origin).map_err(|fault| {
        let mut library = Library::default();
        library.add(&text, &origin);
        Stop::of(Failure::of(vec![fault]), &library)
    })
}

/// The verdicts for people: for each file, then for the node each layout.
fn tell(checked: &Checked, library: &Library, search: bool) {
    let wrong = checked.faults.iter().filter(|fault| fault.severity == Severity::Error).count();
    let mut text = String::new();
    for file in library.files() {
        let number = u32::try_from(file.layouts.len()).unwrap_or(u32::MAX);
        text.push_str(&format!("{}: {}, no error\n", file.origin, output::count(number, "layout")));
    }
    if wrong > 0 {
        let number = u32::try_from(wrong).unwrap_or(u32::MAX);
        text.push_str(&format!("{}\n", output::count(number, "error")));
    }
    output::print(&text);
    let Some(node) = &checked.node else { return };
    let shown = |layout: &&CheckedLayout| !(search && is_shipped(&layout.file) && layout.fits == Some(false));
    let width = checked.layouts.iter().filter(shown).map(|l| l.name.chars().count()).max().unwrap_or(0);
    for layout in checked.layouts.iter().filter(shown) {
        let (verdict, details): (&str, Vec<Diagnostic>) = match layout.fits {
            Some(true) => {
                let grave = layout.details.iter().filter(|detail| detail.severity != Severity::Note);
                ("can be placed", grave.cloned().collect())
            }
            _ => ("cannot be placed", layout.details.clone()),
        };
        output::print(&format!("{:width$}  {verdict} on {node}\n", layout.name));
        output::diagnostics(&details, library.sources());
    }
}
