use super::*;
use crate::{abi::events::*, events::Event, events::NO_INSTANCE};
use std::time::{Duration, Instant};

fn set() -> Handle {
    let mut set = Handle(0);
    assert_eq!(nvmlEventSetCreate(Out::to(&mut set)), 0);
    set
}

fn wait(set: Handle, ms: u32) -> Result<EventData, u32> {
    let mut data = EventData::zero();
    match nvmlEventSetWait_v2(set, Out::to(&mut data), ms) {
        0 => Ok(data),
        code => Err(code),
    }
}

impl Node {
    fn xid(&self, gpu: u32, gi: u32, ci: u32, code: u64) {
        let events = crate::events::Events::open(self.folder.path()).unwrap();
        events.post(&Event { kind: 8, data: code, gpu, gi, ci }).unwrap();
    }
}

#[test]
fn tells_what_was_registered_for_and_nothing_older() {
    let node = Node::new(&[a100('A'), a100('A')]);
    let set = set();
    node.xid(0, NO_INSTANCE, NO_INSTANCE, 13);
    assert_eq!(nvmlDeviceRegisterEvents(gpu(0), 8, set), 0);
    assert_eq!(wait(set, 0).unwrap_err(), 10, "happened before");
    node.xid(1, NO_INSTANCE, NO_INSTANCE, 79);
    node.xid(0, 3, 0, 31);
    let told = wait(set, 1000).unwrap();
    assert_eq!((told.device, told.kind, told.data, told.gi, told.ci), (gpu(0), 8, 31, 3, 0));
    assert_eq!(wait(set, 0).unwrap_err(), 10);
    assert_eq!(nvmlEventSetFree(set), 0);
    assert_eq!(wait(set, 0).unwrap_err(), 2);
    assert_eq!(nvmlEventSetFree(set), 2);
}

#[test]
fn every_change_of_mode_and_instances_is_one_event() {
    let _node = Node::new(&[h100()]);
    let (device, set) = (gpu(0), set());
    assert_eq!(nvmlDeviceRegisterEvents(device, 0x100, set), 0);
    switch_on(device);
    let gi = created(device, 19, 0, 1);
    let ci = compute_created(gi, 0);
    assert_eq!(nvmlComputeInstanceDestroy(ci), 0);
    assert_eq!(nvmlGpuInstanceDestroy(gi), 0);
    for _ in 0..5 {
        let told = wait(set, 1000).unwrap();
        assert_eq!((told.kind, told.gi, told.ci), (0x100, NO_INSTANCE, NO_INSTANCE));
    }
    assert_eq!(wait(set, 0).unwrap_err(), 10);
}

#[test]
fn a_timeout_is_honest() {
    let _node = Node::new(&[a100('A')]);
    let set = set();
    assert_eq!(nvmlDeviceRegisterEvents(gpu(0), 8, set), 0);
    for ms in [0, 1, 30, 300] {
        let begin = Instant::now();
        assert_eq!(wait(set, ms).unwrap_err(), 10);
        assert!(begin.elapsed() >= Duration::from_millis(ms.into()), "{ms}: {:?}", begin.elapsed());
    }
}

#[test]
fn a_lost_gpu_is_told_after_what_happened_before() {
    let node = Node::new(&[a100('A')]);
    let set = set();
    assert_eq!(nvmlDeviceRegisterEvents(gpu(0), 8, set), 0);
    node.xid(0, NO_INSTANCE, NO_INSTANCE, 79);
    node.change(0, |_, state| state.lost = 1);
    assert_eq!(wait(set, 1000).unwrap().data, 79);
    assert_eq!(wait(set, 1000).unwrap_err(), 15);
}

#[test]
fn refuses_what_the_gpu_cannot_tell() {
    let _node = Node::new(&[geforce(), a100('A')]);
    let (set, mut kinds) = (set(), 0);
    assert_eq!(nvmlDeviceGetSupportedEventTypes(gpu(0), Out::to(&mut kinds)), 0);
    assert_eq!(kinds & 0x108, 8);
    assert_eq!(nvmlDeviceRegisterEvents(gpu(0), 0x100, set), 3);
    assert_eq!(nvmlDeviceRegisterEvents(gpu(1), 0x100, set), 0);
    assert_eq!(nvmlDeviceRegisterEvents(gpu(1), 0x100, gpu(0)), 2);
    assert_eq!(nvmlEventSetCreate(Out::null()), 2);
}
