use super::*;

fn zeroed<T>() -> T {
    // SAFETY: only used for the plain data types of model and state, legal when zero.
    unsafe { std::mem::zeroed() }
}

fn node(gpus: usize) -> (tempfile::TempDir, Shard) {
    let folder = tempfile::tempdir().unwrap();
    let info: Info = Info { driver: Text::new("580.95.05"), ..zeroed() };
    let all: Vec<(Model, GpuState)> = (0..gpus).map(|_| (zeroed(), zeroed())).collect();
    Shard::create(folder.path(), &info, &all).unwrap();
    let shard = Shard::open(folder.path()).unwrap();
    (folder, shard)
}

#[test]
fn what_one_opener_publishes_another_reads() {
    let (folder, shard) = node(2);
    let other = Shard::open(folder.path()).unwrap();
    let done: Result<(), Locked> = shard
        .update(1, |s| {
            s.mig_current = 1;
            Ok(())
        })
        .unwrap();
    done.unwrap();
    assert_eq!(other.read(1).unwrap().mig_current, 1);
    assert_eq!(other.read(0).unwrap().mig_current, 0);
    assert_eq!(other.info().driver.as_str(), "580.95.05");
    assert!(other.read(2).is_none());
}

#[derive(Debug, PartialEq)]
enum Refused {
    Locked,
    Mine,
}
impl From<Locked> for Refused {
    fn from(_: Locked) -> Refused {
        Refused::Locked
    }
}

#[test]
fn a_refused_change_leaves_no_trace() {
    let (_folder, shard) = node(1);
    let refused: Result<(), Refused> = shard
        .update(0, |s| {
            s.busy = 1;
            Err(Refused::Mine)
        })
        .unwrap();
    assert_eq!(refused, Err(Refused::Mine));
    assert_eq!(shard.read(0).unwrap().busy, 0);
}

#[test]
fn a_panic_in_a_change_leaves_no_trace_and_no_lock() {
    let (_folder, shard) = node(1);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _: Option<Result<(), Locked>> = shard.update(0, |s| {
            s.busy = 1;
            panic!("on purpose")
        });
    }));
    assert!(caught.is_err());
    let done: Result<(), Locked> = shard
        .update(0, |s| {
            s.persistence = 1;
            Ok(())
        })
        .unwrap();
    done.unwrap();
    assert_eq!((shard.read(0).unwrap().busy, shard.read(0).unwrap().persistence), (0, 1));
}

#[test]
fn a_copied_folder_opens_with_locks_of_its_own() {
    let (folder, shard) = node(1);
    let copy = tempfile::tempdir().unwrap();
    let result: Result<(), Locked> = shard
        .update(0, |s| {
            s.persistence = 1;
            // Copied while the lock is held: the copy must not believe that.
            std::fs::copy(folder.path().join("state"), copy.path().join("state")).unwrap();
            Ok(())
        })
        .unwrap();
    result.unwrap();
    let other = Shard::open(copy.path()).unwrap();
    let done: Result<(), Locked> = other
        .update(0, |s| {
            s.busy = 1;
            Ok(())
        })
        .unwrap();
    done.unwrap();
    assert_eq!(other.read(0).unwrap().busy, 1);
    assert_eq!(shard.read(0).unwrap().busy, 0);
}

#[test]
fn refuses_a_file_that_is_no_state() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("state"), b"something else").unwrap();
    assert!(matches!(Shard::open(folder.path()), Err(StateError::Foreign { .. })));
    assert!(matches!(Shard::open(&folder.path().join("nothing")), Err(StateError::Io { .. })));
}

#[test]
fn readers_never_see_half_a_change() {
    let (_folder, shard) = node(1);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 1..=20_000u32 {
                let done: Result<(), Locked> = shard
                    .update(0, |s| {
                        for gi in &mut s.gis {
                            gi.handle = round;
                        }
                        Ok(())
                    })
                    .unwrap();
                done.unwrap();
            }
        });
        while !writer.is_finished() {
            let state = shard.read(0).unwrap();
            assert!(state.gis.iter().all(|gi| gi.handle == state.gis[0].handle));
        }
    });
}
