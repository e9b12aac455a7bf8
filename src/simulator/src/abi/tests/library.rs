use super::*;
use crate::abi::stubs::nvmlDeviceGetUtilizationRates;
use std::ffi::CStr;

#[test]
fn counts_inits_and_answers_uninitialized_outside() {
    let node = Node::new(&[a100('A')]);
    let device = gpu(0);
    session::init_at(Some(node.folder.path())).unwrap();
    assert_eq!(nvmlShutdown(), 0);
    assert_eq!(number(|out| nvmlDeviceGetCount_v2(out)), Ok(1));
    assert_eq!(nvmlDeviceGetUtilizationRates(Handle(0)), 3);
    assert_eq!(nvmlShutdown(), 0);
    assert_eq!(nvmlShutdown(), 1);
    assert_eq!(number(|out| nvmlDeviceGetCount_v2(out)), Err(1));
    assert_eq!(nvmlDeviceSetMigMode(device, 1, Out::null()), 1);
    assert_eq!(nvmlDeviceGetUtilizationRates(Handle(0)), 1);
}

#[test]
fn without_a_node_there_is_no_driver() {
    let empty = tempfile::tempdir().unwrap();
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(session::init_at(None), Err(Code::DRIVER_NOT_LOADED));
    assert_eq!(session::init_at(Some(empty.path())), Err(Code::DRIVER_NOT_LOADED));
    assert_eq!(nvmlShutdown(), 1);
}

#[test]
fn explains_every_code() {
    let read = |code| {
        // SAFETY: nvmlErrorString answers a static text.
        unsafe { CStr::from_ptr(nvmlErrorString(code)) }.to_str().unwrap()
    };
    assert_eq!(read(0), "Success");
    assert_eq!(read(23), "Insufficient Resources");
    assert_eq!(read(4711), "Unknown Error");
}

#[test]
fn a_panic_becomes_unknown() {
    let _node = Node::new(&[a100('A')]);
    assert_eq!(enter("nvmlTest", |_| {}, |_| panic!("on purpose")), 999);
    assert_eq!(enter("nvmlTest", |_| panic!("on purpose"), |_| Ok(())), 0);
    assert_eq!(number(|out| nvmlDeviceGetCount_v2(out)), Ok(1));
}

#[test]
fn says_versions_and_names_of_processes() {
    let _node = Node::new(&[a100('A')]);
    assert_eq!(text(|b, l| nvmlSystemGetDriverVersion(b, l)), "580.95.05");
    assert_eq!(text(|b, l| nvmlSystemGetNVMLVersion(b, l)), "13.580.95.05");
    let mut cuda = 0;
    assert_eq!(nvmlSystemGetCudaDriverVersion_v2(Out::to(&mut cuda)), 0);
    assert_eq!(cuda, 13000);
    let own = text(|b, l| nvmlSystemGetProcessName(std::process::id(), b, l));
    assert!(!own.is_empty());
    let mut short = [1 as c_char; 2];
    assert_eq!(nvmlSystemGetProcessName(std::process::id(), Out::to_all(&mut short), 2), 0);
    assert_eq!(short[1], 0);
    assert_eq!(nvmlSystemGetProcessName(4_194_303, Out::to_all(&mut short), 2), 6);
    assert_eq!(text(|b, l| nvmlSystemGetProcessName(4_194_304, b, l)), "nvml-simulator-mark");
}

#[test]
fn names_of_functions_are_all_there_once() {
    assert!(SYMBOLS.is_sorted_by(|a, b| a < b));
    assert!(MUTATING.iter().all(|name| SYMBOLS.contains(name)));
}

#[test]
fn another_client_keeps_ampere_waiting_until_it_leaves() {
    let node = Node::new(&[a100('A')]);
    let device = gpu(0);
    let other = Clients::open(node.folder.path()).unwrap();
    assert!(other.others(0).unwrap(), "this process has a handle and is seen");
    other.enter(0).unwrap();
    let (mut activation, mut now, mut then) = (0, 0, 0);
    assert_eq!(nvmlDeviceSetMigMode(device, 1, Out::to(&mut activation)), 0);
    assert_eq!(activation, 19);
    assert_eq!(nvmlDeviceGetMigMode(device, Out::to(&mut now), Out::to(&mut then)), 0);
    assert_eq!((now, then), (0, 1));
    other.leave(0).unwrap();
    switch_on(device);
    assert_eq!(nvmlShutdown(), 0);
    assert!(!other.others(0).unwrap(), "the last shutdown leaves");
}
