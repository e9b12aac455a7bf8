//! What the engine says where there is no driver, or a worker that never answers.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use migd_core::reason::Reason;
use migd_engine::{Site, Workers};
use std::{
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    time::{Duration, Instant},
};

fn site() -> Site {
    Site { program: Some(env!("CARGO_BIN_EXE_migd-engine-worker").into()), ..Site::default() }
}

/// A worker that is a shell script.
fn script(folder: &tempfile::TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("worker");
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[tokio::test]
async fn no_library_is_driver_missing_with_what_to_do() {
    let library = Some(PathBuf::from("/nonexistent/libnvidia-ml.so.1"));
    let error = Workers::open(Site { library, ..site() }).await.unwrap_err();
    assert_eq!(error.reason(), Reason::DriverMissing);
    let text = error.to_string();
    assert!(text.contains("/nonexistent/libnvidia-ml.so.1") && text.contains("install"), "{text}");
}

#[tokio::test]
async fn a_worker_that_never_answers_is_given_up_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let program = Some(script(&folder, "exec sleep 600"));
    let begun = Instant::now();
    let limit = Duration::from_millis(200);
    let error = Workers::open(Site { program, read_limit: limit, ..site() }).await.unwrap_err();
    assert_eq!(error.reason(), Reason::WorkerHung);
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_worker_that_dies_is_lost_and_its_signal_told() {
    let folder = tempfile::tempdir().unwrap();
    let program = Some(script(&folder, "kill -9 $$"));
    let error = Workers::open(Site { program, ..site() }).await.unwrap_err();
    assert_eq!(error.reason(), Reason::WorkerLost);
    assert!(error.to_string().contains("signal 9"), "{error}");
}

#[tokio::test]
async fn a_worker_that_talks_nonsense_is_lost_without_eating_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    // Four bytes of length that announce 4 GiB, on the socket that is standard input.
    let program = Some(script(&folder, r"printf '\377\377\377\377' >&0; exec sleep 600"));
    let error = Workers::open(Site { program, ..site() }).await.unwrap_err();
    assert_eq!(error.reason(), Reason::WorkerLost);
}

#[test]
fn a_worker_ends_when_the_main_process_has_gone() {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_migd-engine-worker"))
        .args(["--migd-worker", "0000:07:00.0"])
        .stdin(std::os::fd::OwnedFd::from(theirs))
        .spawn()
        .unwrap();
    drop(ours);
    assert!(child.wait().unwrap().success());
}
