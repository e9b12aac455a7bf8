use super::*;
use crate::abi::fields::nvmlDeviceGetFieldValues;

#[test]
fn finds_a_gpu_by_all_that_names_it() {
    let _node = Node::new(&[geforce(), a100('A')]);
    let device = gpu(1);
    assert_eq!(number(|out| nvmlDeviceGetCount_v2(out)), Ok(2));
    let mut found = Handle(0);
    assert_eq!(nvmlDeviceGetHandleByIndex_v2(2, Out::to(&mut found)), 2);
    assert_eq!(nvmlDeviceGetHandleByIndex_v2(0, Out::null()), 2);
    let by_bus = |text: &str| {
        let text = CString::new(text).unwrap();
        let mut found = Handle(0);
        match nvmlDeviceGetHandleByPciBusId_v2(Words::of(&text), Out::to(&mut found)) {
            0 => Ok(found),
            code => Err(code),
        }
    };
    for form in ["0000:07:00.0", "00000000:07:00.0", "07:00.0"] {
        assert_eq!(by_bus(form), Ok(device), "{form}");
    }
    assert_eq!(by_bus("0000:08:00.0"), Err(6));
    assert_eq!(by_bus(""), Err(2));
    assert_eq!(by_uuid(&uuid(device)), Ok(device));
    for wrong in ["", "gpu-11111111-2222-3333-4444-555555555555", "11111111-2222-3333-4444-555555555555"] {
        assert_eq!(by_uuid(wrong), Err(6), "{wrong}");
    }
    assert_eq!(nvmlDeviceGetHandleBySerial(Words::of(c"1320000000001"), Out::to(&mut found)), 0);
    assert_eq!(found, device);
    assert_eq!(nvmlDeviceGetHandleBySerial(Words::of(c""), Out::to(&mut found)), 6);
}

#[test]
fn finds_a_gpu_by_a_versioned_uuid() {
    let _node = Node::new(&[a100('A')]);
    let device = gpu(0);
    let find = |uuid: &Uuid| {
        let mut found = Handle(0);
        match nvmlDeviceGetHandleByUUIDV(In::from(uuid), Out::to(&mut found)) {
            0 => Ok(found),
            code => Err(code),
        }
    };
    let mut asked = Uuid { version: 0x0100_0034, kind: 1, ..Uuid::zero() };
    for (to, from) in asked.value.iter_mut().zip(uuid(device).bytes()) {
        *to = from;
    }
    assert_eq!(find(&asked), Ok(device));
    let mut bytes = Uuid { kind: 2, ..asked };
    bytes.value[..16].copy_from_slice(&[
        0x11, 0x11, 0x11, 0x11, 0x22, 0x22, 0x33, 0x33, 0x44, 0x44, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55,
    ]);
    assert_eq!(find(&bytes), Ok(device));
    assert_eq!(find(&Uuid { kind: 0, ..asked }), Err(2));
    assert_eq!(find(&Uuid { version: 1, ..asked }), Err(25));
}

#[test]
fn says_what_a_gpu_is() {
    let _node = Node::new(&[geforce(), a100('A')]);
    let device = gpu(1);
    assert_eq!(text(|b, l| nvmlDeviceGetName(device, b, l)), "NVIDIA A100-SXM4-40GB");
    let mut short = [0 as c_char; 8];
    assert_eq!(nvmlDeviceGetName(device, Out::to_all(&mut short), 8), 7);
    assert_eq!(nvmlDeviceGetName(device, Out::null(), 8), 2);
    assert_eq!(number(|out| nvmlDeviceGetMinorNumber(device, out)), Ok(5));
    assert_eq!(number(|out| nvmlDeviceGetIndex(device, out)), Ok(1));
    let mut pci = Pci::zero();
    assert_eq!(nvmlDeviceGetPciInfo_v3(device, Out::to(&mut pci)), 0);
    assert_eq!((pci.bus, pci.id), (7, 0x20b0_10de));
    let read = |field: &[c_char]| -> String {
        field.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8 as char).collect()
    };
    assert_eq!((read(&pci.bus_id), read(&pci.legacy)), ("00000000:07:00.0".into(), "0000:07:00.0".into()));
    let mut ext = PciExt { version: 0x0100_0040, ..PciExt::zero() };
    assert_eq!(nvmlDeviceGetPciInfoExt(device, Out::to(&mut ext)), 0);
    assert_eq!((ext.base_class, ext.bus), (3, 7));
    ext.version = 1;
    assert_eq!(nvmlDeviceGetPciInfoExt(device, Out::to(&mut ext)), 25);
    let mut memory = Memory2 { version: 0x0200_0028, ..Memory2::zero() };
    assert_eq!(nvmlDeviceGetMemoryInfo_v2(device, Out::to(&mut memory)), 0);
    assert_eq!(memory.total, 40960 << 20);
    memory.version = 2;
    assert_eq!(nvmlDeviceGetMemoryInfo_v2(device, Out::to(&mut memory)), 25);
    let mut cpus = [0u64; 16];
    assert_eq!(nvmlDeviceGetCpuAffinity(device, 16, Out::to_all(&mut cpus)), 0);
    assert!(cpus.iter().any(|word| *word != 0));
    assert_eq!(nvmlDeviceGetCpuAffinity(device, 0, Out::to_all(&mut cpus)), 2);
    assert_eq!(nvmlDeviceGetCpuAffinityWithinScope(device, 16, Out::to_all(&mut cpus), 2), 2);
}

#[test]
fn lists_marks_as_processes_with_their_instances() {
    let node = Node::new(&[a100('A')]);
    let device = gpu(0);
    let list = |device, room: u32| {
        let (mut list, mut count) = ([Process::zero(); 8], room);
        let code =
            nvmlDeviceGetComputeRunningProcesses_v3(device, Out::to(&mut count), Out::to_all(&mut list));
        (code, count, list.map(|one| (one.gi, one.ci)))
    };
    assert_eq!(list(device, 8).0, 0);
    assert_eq!(list(device, 0).1, 0);
    node.change(0, |board, state| board.set_busy(state, None, None, true).unwrap());
    assert_eq!(list(device, 8).2[0], (u32::MAX, u32::MAX));
    node.change(0, |board, state| {
        board.force_mode(state, true).unwrap();
        for start in [0, 3, 5] {
            board.place(state, 0, start).unwrap();
        }
        board.set_busy(state, Some(7), Some(0), true).unwrap();
        board.set_busy(state, Some(12), Some(0), true).unwrap();
    });
    let (code, count, all) = list(device, 8);
    assert_eq!((code, count, all[0], all[1]), (0, 2, (7, 0), (12, 0)));
    assert_eq!(list(device, 1).0, 7);
    assert_eq!(list(device, 1).1, 2);
    let mut count = 0;
    assert_eq!(nvmlDeviceGetComputeRunningProcesses_v3(device, Out::to(&mut count), Out::null()), 7);
    let idle = mig_device(device, 1).unwrap();
    assert_eq!(list(idle, 8).1, 0);
    let busy = mig_device(device, 2).unwrap();
    assert_eq!((list(busy, 8).1, list(busy, 8).2[0]), (1, (12, 0)));
    let (mut old, mut count) = ([Process1::zero(); 4], 4);
    let first = nvmlDeviceGetComputeRunningProcesses;
    assert_eq!(first(device, Out::to(&mut count), Out::to_all(&mut old)), 0);
    assert!(count == 2 && old[0].pid > old[1].pid - 64 && old[0].pid >= 4_194_304);
    let graphics = nvmlDeviceGetGraphicsRunningProcesses_v3;
    let (mut none, mut count) = ([Process::zero(); 4], 4);
    assert_eq!(graphics(device, Out::to(&mut count), Out::to_all(&mut none)), 0);
    assert_eq!(count, 0);
}

#[test]
fn answers_each_field_by_itself() {
    let _node = Node::new(&[a100('A'), h100()]);
    for (index, resetless) in [(0, 0), (1, 1)] {
        // The last is a cache's counter, which newer boards do not have.
        let asked = [184, 199, 7].map(|field| FieldValue { field, ..FieldValue::zero() });
        let mut values = asked;
        assert_eq!(nvmlDeviceGetFieldValues(gpu(index), 3, Out::to_all(&mut values)), 0);
        assert_eq!((values[0].result, values[0].value), (0, resetless));
        assert_eq!((values[1].result, values[1].value), (0, 1));
        assert_eq!(values[2].result, 3);
    }
    assert_eq!(nvmlDeviceGetFieldValues(gpu(0), 0, Out::to_all(&mut [FieldValue::zero()])), 2);
}

#[test]
fn refuses_any_compute_mode_while_mig_is_on() {
    let _node = Node::new(&[a100('A')]);
    let device = gpu(0);
    assert_eq!(nvmlDeviceSetComputeMode(device, 3), 0);
    assert_eq!(number(|out| nvmlDeviceGetComputeMode(device, out)), Ok(3));
    assert_eq!(nvmlDeviceSetComputeMode(device, 4), 2);
    switch_on(device);
    assert_eq!(number(|out| nvmlDeviceGetComputeMode(device, out)), Ok(0));
    assert_eq!(nvmlDeviceSetComputeMode(device, 0), 3);
    assert_eq!(nvmlDeviceSetPersistenceMode(device, 1), 0);
    assert_eq!(number(|out| nvmlDeviceGetPersistenceMode(device, out)), Ok(1));
}

#[test]
fn a_lost_gpu_is_counted_and_answers_only_what_is_known() {
    let node = Node::new(&[a100('A'), a100('B')]);
    let device = gpu(0);
    node.change(0, |_, state| state.lost = 1);
    let mut found = Handle(0);
    assert_eq!(number(|out| nvmlDeviceGetCount_v2(out)), Ok(2));
    assert_eq!(nvmlDeviceGetHandleByIndex_v2(0, Out::to(&mut found)), 15);
    assert_eq!(nvmlDeviceGetHandleByIndex_v2(1, Out::to(&mut found)), 0);
    let mut memory = Memory::zero();
    assert_eq!(nvmlDeviceGetMemoryInfo(device, Out::to(&mut memory)), 15);
    assert_eq!(nvmlDeviceSetMigMode(device, 1, Out::to(&mut 0)), 15);
    assert_eq!(nvmlDeviceCreateGpuInstance(device, 19, Out::to(&mut found)), 15);
    assert!(uuid(device).starts_with("GPU-"));
}
