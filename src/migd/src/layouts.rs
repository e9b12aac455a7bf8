//! Where layouts come from: the search path, each folder stronger than the one before it.
//!
//! ```text
//! those in this program  <  /usr/lib/migd/layouts.d  <  /run/migd/layouts.d  <  /etc/migd/layouts.d
//! ```
//!
//! A file hides those of its name in weaker folders, whole; an empty one (or a link to /dev/null) only hides. What
//! the service takes from there it carries out as root, so a file or folder that another user could have written
//! is refused.
//! Not here: a text that a caller gives, which is judged by the caller's rights and read by the caller.

use migd_core::{
    diagnostic::Diagnostic,
    layout::{Library, MAX_BYTES},
    reason::Reason,
};
use std::{
    collections::BTreeMap,
    fs::{self, File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// The layouts that come with migd, by file name: what packages put into the first folder.
const SHIPPED: [(&str, &str); 2] = [
    ("mig-parted.yaml", include_str!("../../../profiles/layouts.d/mig-parted.yaml")),
    ("migd.yaml", include_str!("../../../profiles/layouts.d/migd.yaml")),
];
/// How the origin of a shipped file begins.
const SHIPPED_ORIGIN: &str = "<shipped>/";
const FOLDERS: [&str; 3] = ["/usr/lib/migd/layouts.d", "/run/migd/layouts.d", "/etc/migd/layouts.d"];
/// Layout files; what else lies there is no concern of migd.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];
const MOST_BYTES: u64 = MAX_BYTES as u64;
/// Far more than a folder of layouts has.
const MOST_FILES: usize = 1_000;
const OTHERS_MAY_WRITE: u32 = 0o002;
const GROUP_MAY_WRITE: u32 = 0o020;

/// The folders of the search path, weakest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPath {
    folders: Vec<PathBuf>,
}

impl Default for SearchPath {
    /// The folders of the system.
    fn default() -> SearchPath {
        SearchPath { folders: FOLDERS.map(PathBuf::from).to_vec() }
    }
}

/// Whether a layout's file came with migd.
pub fn is_shipped(file: &str) -> bool {
    let folder = FOLDERS.first().is_some_and(|folder| Path::new(file).starts_with(folder));
    file.starts_with(SHIPPED_ORIGIN) || folder
}

impl SearchPath {
    /// These folders instead, weakest first.
    pub fn of(folders: Vec<PathBuf>) -> SearchPath {
        SearchPath { folders }
    }

    /// Reads every file that no other hides. What cannot be used is among the library's faults.
    pub fn read(&self) -> Library {
        let mut library = Library::default();
        let mut files: BTreeMap<String, Option<&Path>> =
            SHIPPED.iter().map(|(name, _)| ((*name).to_owned(), None)).collect();
        let mut refused = Vec::new();
        for folder in &self.folders {
            match names(folder) {
                Ok(names) => files.extend(names.into_iter().map(|name| (name, Some(folder.as_path())))),
                Err(Unusable::NotThere) => {}
                Err(why) => refused.push(why.fault(folder)),
            }
        }
        for (name, folder) in &files {
            let Some(folder) = folder else {
                let text = SHIPPED.iter().find(|(shipped, _)| shipped == name).map_or("", |(_, text)| text);
                library.add(text, &format!("{SHIPPED_ORIGIN}{name}"));
                continue;
            };
            let path = folder.join(name);
            match text(&path) {
                // It is there to hide another.
                Ok(text) if text.trim().is_empty() => {}
                Ok(text) => library.add(&text, &path.display().to_string()),
                Err(why) => refused.push(why.fault(&path)),
            }
        }
        refused.into_iter().for_each(|fault| library.refuse(fault));
        library
    }
}

/// Why a file or folder cannot be used.
#[derive(Debug)]
enum Unusable {
    NotThere,
    Untrusted(String),
    Unreadable(String),
}

impl From<io::Error> for Unusable {
    fn from(error: io::Error) -> Unusable {
        match error.kind() {
            io::ErrorKind::NotFound => Unusable::NotThere,
            _ => Unusable::Unreadable(error.to_string()),
        }
    }
}

impl Unusable {
    fn fault(self, path: &Path) -> Diagnostic {
        let path = path.display();
        match self {
            Unusable::NotThere => {
                let message = format!("{path}: it leads to no file");
                Diagnostic::error(Reason::FileUnreadable, message)
                    .help("remove the broken link; one to /dev/null hides a file of that name")
            }
            Unusable::Untrusted(why) => {
                Diagnostic::error(Reason::FileUntrusted, format!("{path}: {why}, so it is not used"))
                    .help("`chown root:root` and `chmod 644` (folders 755) it, or name the file with -f")
            }
            Unusable::Unreadable(why) => Diagnostic::error(Reason::FileUnreadable, format!("{path}: {why}"))
                .help("a layout file is UTF-8 text of at most 1 MiB"),
        }
    }
}

/// The layout files of a folder.
fn names(folder: &Path) -> Result<Vec<String>, Unusable> {
    trusted(&fs::metadata(folder)?)?;
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let path = Path::new(&name);
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let hidden = path.as_os_str().as_encoded_bytes().starts_with(b".");
        if !hidden && ENDINGS.contains(&ending) {
            names.push(name.into_string().map_err(|name| {
                Unusable::Unreadable(format!("the name of {} is not UTF-8", Path::new(&name).display()))
            })?);
        }
        if names.len() > MOST_FILES {
            return Err(Unusable::Unreadable(format!("it has more than {MOST_FILES} layout files")));
        }
    }
    Ok(names)
}

fn text(path: &Path) -> Result<String, Unusable> {
    // A link to it hides a file; reading a device or a pipe could wait for ever.
    let before = fs::metadata(path)?;
    if fs::canonicalize(path)? == Path::new("/dev/null") {
        return Ok(String::new());
    }
    if !before.is_file() {
        return Err(Unusable::Unreadable("it is no regular file".to_owned()));
    }
    let file = File::open(path)?;
    trusted(&file.metadata()?)?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(Unusable::Unreadable("it is larger than 1 MiB".to_owned()));
    }
    String::from_utf8(bytes).map_err(|_| Unusable::Unreadable("it is not UTF-8 text".to_owned()))
}

/// Refuses what a user other than root, or than the one who runs this, could have written.
fn trusted(found: &Metadata) -> Result<(), Unusable> {
    let own = nix::unistd::geteuid().as_raw();
    let why = match (found.uid(), found.mode()) {
        (owner, _) if owner != 0 && owner != own => format!("it belongs to user {owner}"),
        (_, mode) if mode & OTHERS_MAY_WRITE != 0 => "everyone may write to it".to_owned(),
        (_, mode) if mode & GROUP_MAY_WRITE != 0 && found.gid() != 0 => {
            format!("group {} may write to it", found.gid())
        }
        _ => return Ok(()),
    };
    Err(Unusable::Untrusted(why))
}

#[cfg(test)]
mod tests;
