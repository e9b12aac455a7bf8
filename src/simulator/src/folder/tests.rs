use super::*;
use crate::notation;

/// Stand-ins for the built parts: any files do.
fn parts(folder: &Path) -> Parts {
    let file = |name: &str| {
        let path = folder.join(name);
        fs::write(&path, "").unwrap();
        path
    };
    Parts { library: file("library"), stand_in: file("stand-in") }
}

fn open_at(state: &Path, node: &str, parts: &Parts) -> Result<Shard, Trouble> {
    open(&notation::parse(node).unwrap(), Some(state), false, parts)
}

#[test]
fn is_made_once_private_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let (parts, state) = (parts(folder.path()), folder.path().join("node"));
    let shard = open_at(&state, "2xa100-40gb", &parts).unwrap();
    crate::handling::set(&shard, 1, "7g@0").unwrap();
    let again = open_at(&state, "2xa100-40gb", &parts).unwrap();
    assert_eq!(again.read(1), shard.read(1));
    assert_eq!(fs::metadata(&state).unwrap().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(state.join("state")).unwrap().mode() & 0o077, 0);
    assert_eq!(fs::read_link(state.join("lib/libnvidia-ml.so.1")).unwrap(), parts.library);
    assert_eq!(fs::read_link(state.join("bin/nvidia-smi")).unwrap(), parts.stand_in);
}

#[test]
fn refuses_another_node_and_leaves_it() {
    let folder = tempfile::tempdir().unwrap();
    let (parts, state) = (parts(folder.path()), folder.path().join("node"));
    open_at(&state, "2xa100-40gb", &parts).unwrap();
    let before = fs::read(state.join("state")).unwrap();
    let why = open_at(&state, "3xa100-40gb", &parts).unwrap_err();
    assert_eq!(why.exit_code(), 3);
    assert!(why.to_string().contains("2xa100-40gb"), "{why}");
    assert_eq!(fs::read(state.join("state")).unwrap(), before);
}

#[test]
fn refuses_a_folder_of_other_things_or_that_others_could_have_prepared() {
    let folder = tempfile::tempdir().unwrap();
    let parts = parts(folder.path());
    let refused = |state: &Path, code: u8, says: &str| {
        let why = open_at(state, "a30-24gb", &parts).unwrap_err();
        assert!(why.exit_code() == code && why.to_string().contains(says), "{why}");
    };
    let full = folder.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("thesis.tex"), "").unwrap();
    refused(&full, 3, "thesis.tex");
    assert!(!full.join("state").exists());

    let open = folder.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    refused(&open, 1, "others can write");

    let linked = folder.path().join("linked");
    symlink(&full, &linked).unwrap();
    refused(&linked, 1, "symbolic link");
    refused(&folder.path().join("library"), 1, "no folder");
    refused(&folder.path().join("no/such/parent"), 1, "cannot make");
}

#[test]
fn refuses_a_damaged_state_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (parts, state) = (parts(folder.path()), folder.path().join("node"));
    open_at(&state, "a30-24gb", &parts).unwrap();
    fs::write(state.join("state"), "rubbish").unwrap();
    let why = open_at(&state, "a30-24gb", &parts).unwrap_err().to_string();
    assert!(why.contains("not a node state"), "{why}");
}

#[test]
fn many_who_make_it_at_once_make_one() {
    let folder = tempfile::tempdir().unwrap();
    let (parts, state) = (parts(folder.path()), folder.path().join("node"));
    thread::scope(|scope| {
        let all: Vec<_> =
            (0..8).map(|_| scope.spawn(|| open_at(&state, "8xa100-40gb", &parts).map(|_| ()))).collect();
        all.into_iter().for_each(|one| one.join().unwrap().unwrap());
    });
    let left: Vec<String> =
        fs::read_dir(&state).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!left.iter().any(|name| name.starts_with("state.new")), "{left:?}");
}
