//! The exported functions, called as a program calls them. The library's session is one for the process, so
//! tests take turns under a plain `cargo test`.

use super::{
    arguments::{In, Out, Words},
    compute_instance::*,
    device::*,
    discovery::*,
    gpu_instance::*,
    handle::Handle,
    layout::*,
    library::*,
    memory::*,
    mig::*,
    processes::*,
    settings::*,
    *,
};
use crate::{client::Clients, fixture::*, machine::Board, model::Model, shared::Info, state::GpuState};
use std::{
    ffi::{CString, c_char},
    sync::{MutexGuard, PoisonError},
};
use tempfile::TempDir;

mod calls;
mod events;
mod handles;
mod library;
mod rights;
mod trace;
mod walk;

static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// A node that this process has open.
struct Node {
    folder: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Node {
    fn new(gpus: &[Model]) -> Node {
        Node::with(&info("580.95.05"), gpus)
    }

    fn with(info: &Info, gpus: &[Model]) -> Node {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        let gpus: Vec<_> = gpus.iter().map(|model| (*model, fresh())).collect();
        node(folder.path(), info, &gpus);
        session::init_at(Some(folder.path())).unwrap();
        Node { folder, _turn: turn }
    }

    /// Changes a GPU as another program would: by opening the node itself.
    fn change(&self, gpu: usize, change: impl FnOnce(&Board<'_>, &mut GpuState)) {
        let shard = crate::shared::Shard::open(self.folder.path()).unwrap();
        let board = Board::new(shard.info(), &shard.models()[gpu]);
        let done: Option<Result<(), Code>> = shard.update(gpu, |state| {
            change(&board, state);
            Ok(())
        });
        done.unwrap().unwrap();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        while nvmlShutdown() == 0 {}
    }
}

fn gpu(index: u32) -> Handle {
    let mut handle = Handle(0);
    assert_eq!(nvmlDeviceGetHandleByIndex_v2(index, Out::to(&mut handle)), 0);
    handle
}

fn created(device: Handle, id: u32, start: u32, size: u32) -> Handle {
    let mut gi = Handle(0);
    let place = Placement { start, size };
    let code = nvmlDeviceCreateGpuInstanceWithPlacement(device, id, In::from(&place), Out::to(&mut gi));
    assert_eq!(code, 0);
    gi
}

fn compute_created(gi: Handle, id: u32) -> Handle {
    let mut ci = Handle(0);
    assert_eq!(nvmlGpuInstanceCreateComputeInstance(gi, id, Out::to(&mut ci)), 0);
    ci
}

fn switch_on(device: Handle) {
    let mut activation = 99;
    assert_eq!(nvmlDeviceSetMigMode(device, 1, Out::to(&mut activation)), 0);
    assert_eq!(activation, 0);
}

fn mig_device(device: Handle, index: u32) -> Result<Handle, u32> {
    let mut handle = Handle(0);
    match nvmlDeviceGetMigDeviceHandleByIndex(device, index, Out::to(&mut handle)) {
        0 => Ok(handle),
        code => Err(code),
    }
}

/// A text that a function of (device, buffer, length) answers.
fn text(of: impl Fn(Out<c_char>, u32) -> u32) -> String {
    let mut buffer = [0 as c_char; 96];
    assert_eq!(of(Out::to_all(&mut buffer), 96), 0);
    let bytes: Vec<u8> = buffer.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8).collect();
    String::from_utf8(bytes).unwrap()
}

fn uuid(device: Handle) -> String {
    text(|buffer, length| nvmlDeviceGetUUID(device, buffer, length))
}

fn by_uuid(uuid: &str) -> Result<Handle, u32> {
    let mut handle = Handle(0);
    let uuid = CString::new(uuid).unwrap();
    match nvmlDeviceGetHandleByUUID(Words::of(&uuid), Out::to(&mut handle)) {
        0 => Ok(handle),
        code => Err(code),
    }
}

fn number(of: impl Fn(Out<u32>) -> u32) -> Result<u32, u32> {
    let mut value = 0xdead;
    match of(Out::to(&mut value)) {
        0 => Ok(value),
        code => Err(code),
    }
}
