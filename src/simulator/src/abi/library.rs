//! The library and the node as a whole.

use super::{
    Out,
    arguments::{Argument, put_text},
    entry, traced,
};
use crate::{fault, machine::Code, session};
use std::ffi::c_char;

#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlInit() -> u32 {
    fault::reopen();
    traced("nvmlInit", |_| {}, session::init)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlInit_v2() -> u32 {
    fault::reopen();
    traced("nvmlInit_v2", |_| {}, session::init)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlInitWithFlags(flags: u32) -> u32 {
    fault::reopen();
    traced("nvmlInitWithFlags", |notes| flags.note("flags", notes), session::init)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlShutdown() -> u32 {
    traced("nvmlShutdown", |_| {}, session::shutdown)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlErrorString(code: u32) -> *const c_char {
    Code(code).text().as_ptr()
}

/// Marked work has process ids that Linux never gives (its limit is 4,194,304).
pub(super) const FIRST_MARK_PID: u32 = 4_194_304;

entry! {
    fn nvmlSystemGetDriverVersion(version: Out<c_char>, length: u32) |call| {
        put_text(version, length, call.session.info().driver.as_str())
    }

    fn nvmlSystemGetNVMLVersion(version: Out<c_char>, length: u32) |call| {
        put_text(version, length, call.session.info().nvml.as_str())
    }

    fn nvmlSystemGetCudaDriverVersion(version: Out<i32>) |call| {
        version.put(call.session.info().cuda as i32)
    }

    fn nvmlSystemGetCudaDriverVersion_v2(version: Out<i32>) |call| {
        version.put(call.session.info().cuda as i32)
    }

    fn nvmlSystemGetProcessName(pid: u32, name: Out<c_char>, length: u32) |_call| {
        name.required()?;
        if length == 0 {
            return Err(Code::INVALID_ARGUMENT);
        }
        let found = process_name(pid).ok_or(Code::NOT_FOUND)?;
        // nvml.h: a name that does not fit is cut.
        let mut end = found.len().min(length as usize - 1);
        while !found.is_char_boundary(end) {
            end -= 1;
        }
        put_text(name, length, found.get(..end).unwrap_or_default())
    }
}

fn process_name(pid: u32) -> Option<String> {
    if pid >= FIRST_MARK_PID {
        return Some("nvml-simulator-mark".to_owned());
    }
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let name = line.split(|byte| *byte == 0).next().unwrap_or_default();
    if name.is_empty() {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        return Some(name.trim().to_owned());
    }
    Some(String::from_utf8_lossy(name).into_owned())
}
