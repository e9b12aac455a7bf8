use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

/// Three folders and what lies in them, as `FOLDER/FILE` and text.
fn search(files: &[(&str, &str)]) -> (tempfile::TempDir, SearchPath) {
    let home = tempfile::tempdir().unwrap();
    let folders: Vec<PathBuf> = ["usr", "run", "etc"].map(|name| home.path().join(name)).to_vec();
    for folder in &folders {
        fs::create_dir(folder).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for (path, text) in files {
        fs::write(home.path().join(path), text).unwrap();
    }
    (home, SearchPath::of(folders))
}

fn layout(name: &str) -> String {
    format!("layouts: {{{name}: {{gpus: [{{match: all, mig: off}}]}}}}\n")
}

/// The layouts that are not shipped, and the reasons of all faults.
fn own(path: &SearchPath) -> (Vec<String>, Vec<Reason>) {
    let library = path.read();
    let names = library.layouts().filter(|l| !is_shipped(&l.place.file)).map(|l| l.name.clone());
    (names.collect(), library.faults().iter().map(|fault| fault.reason).collect())
}

#[test]
fn a_later_folder_s_file_hides_the_earlier_s_whole() {
    let (_home, path) = search(&[
        ("usr/site.yaml", &layout("old")),
        ("etc/site.yaml", &layout("new")),
        (
            "run/other.json",
            "{\"layouts\": {\"third\": {\"gpus\": [{\"match\": \"all\", \"mig\": \"off\"}]}}}",
        ),
        ("etc/notes.txt", "no layout"),
        ("etc/.hidden.yaml", "no layout"),
    ]);
    assert_eq!(own(&path), (vec!["third".to_owned(), "new".to_owned()], vec![]));
}

#[test]
fn an_empty_file_or_a_link_to_nothing_only_hides() {
    let (home, path) =
        search(&[("usr/a.yaml", &layout("a")), ("usr/b.yaml", &layout("b")), ("etc/a.yaml", "\n")]);
    symlink("/dev/null", home.path().join("etc/b.yaml")).unwrap();
    assert_eq!(own(&path), (vec![], vec![]));
    // The shipped layouts can be hidden too.
    assert!(path.read().find("all-balanced").is_ok());
    symlink("/dev/null", home.path().join("run/migd.yaml")).unwrap();
    assert!(path.read().find("all-balanced").is_err());
}

#[test]
fn a_name_in_two_files_is_refused_when_it_is_asked_for() {
    let (_home, path) = search(&[("etc/a.yaml", &layout("x")), ("run/b.yaml", &layout("x"))]);
    let faults = path.read().find("x").unwrap_err();
    assert_eq!(faults[0].reason, Reason::LayoutDuplicate);
    let text = format!("{} {}", faults[0].message, faults[0].place.as_ref().unwrap());
    assert!(text.contains("etc/a.yaml:1") && text.contains("run/b.yaml:1"), "{text}");
    assert!(path.read().find("all-off").is_ok());
}

#[test]
fn what_another_could_have_written_is_refused_and_the_rest_is_not() {
    let (home, path) = search(&[("etc/a.yaml", &layout("a")), ("etc/b.yaml", &layout("b"))]);
    let chmod = |name: &str, mode| {
        fs::set_permissions(home.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    chmod("etc/a.yaml", 0o666);
    assert_eq!(own(&path), (vec!["b".to_owned()], vec![Reason::FileUntrusted]));
    chmod("etc/a.yaml", 0o644);
    assert_eq!(own(&path).1, vec![]);
    chmod("etc", 0o777);
    assert_eq!(own(&path), (vec![], vec![Reason::FileUntrusted]));
    chmod("etc", 0o755);
    if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::chown(home.path().join("etc/b.yaml"), Some(4711), None).unwrap();
        assert_eq!(own(&path), (vec!["a".to_owned()], vec![Reason::FileUntrusted]));
        // A group that may write is others too.
        std::os::unix::fs::chown(home.path().join("etc/a.yaml"), None, Some(4711)).unwrap();
        chmod("etc/a.yaml", 0o664);
        assert_eq!(own(&path), (vec![], vec![Reason::FileUntrusted; 2]));
    }
}

#[test]
fn what_is_no_file_or_no_text_is_said_and_never_waited_for() {
    let (home, path) = search(&[("etc/ok.yaml", &layout("ok"))]);
    fs::create_dir(home.path().join("etc/folder.yaml")).unwrap();
    nix::unistd::mkfifo(&home.path().join("etc/pipe.yaml"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::write(home.path().join("etc/binary.yaml"), [0xff, 0xfe]).unwrap();
    symlink("/nonexistent/x", home.path().join("etc/link.yaml")).unwrap();
    assert_eq!(own(&path), (vec!["ok".to_owned()], vec![Reason::FileUnreadable; 4]));
}
