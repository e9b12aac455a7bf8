use super::*;
use crate::fixture::*;

/// Runs `child` in a forked process and answers its exit status: 0 if it answered true.
fn in_child(child: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child calls only what the test needs and leaves by _exit, so nothing of the parent's (test
    // harness, destructors) runs twice.
    unsafe {
        match libc::fork() {
            0 => libc::_exit(if child() { 0 } else { 1 }),
            pid => {
                let mut status = -1;
                libc::waitpid(pid, &mut status, 0);
                status
            }
        }
    }
}

#[test]
fn a_forked_child_goes_on_as_a_client_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    node(folder.path(), &info("580.95.05"), &[(a100('A'), fresh())]);
    init_at(Some(folder.path())).unwrap();
    let session = current().unwrap();
    session.enter(0);
    let watcher = Clients::open(folder.path()).unwrap();

    // The child sees its parent, can read, and its shutdown does not take the parent's place away.
    let status = in_child(|| {
        let Ok(session) = current() else { return false };
        session.others(0) && session.look(0).is_ok() && shutdown().is_ok()
    });
    assert_eq!(status, 0);
    assert!(watcher.others(0).unwrap());
    assert!(!session.others(0));
    // Threads that init and shut down at the time of a fork leave the child a lock it can take.
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| {
            for _ in 0..2000 {
                init_at(None).unwrap();
                shutdown().unwrap();
            }
        });
        for _ in 0..20 {
            assert_eq!(in_child(|| init_at(None).is_ok() && shutdown().is_ok()), 0);
        }
        busy.join().unwrap();
    });
    drop(session);
    shutdown().unwrap();
    assert!(!watcher.others(0).unwrap());
}

#[test]
fn a_call_under_way_outlives_another_threads_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    node(folder.path(), &info("580.95.05"), &[(a100('A'), fresh())]);
    init_at(Some(folder.path())).unwrap();
    let session = current().unwrap();
    shutdown().unwrap();
    assert_eq!(current().err(), Some(Code::UNINITIALIZED));
    assert!(session.look(0).is_ok());
    assert_eq!(session.look(1).err(), Some(Code::INVALID_ARGUMENT));
}
