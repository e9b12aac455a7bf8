//! The arguments of C functions, and the only places where their pointers are followed.

use super::{handle::Handle, trace::Notes};
use crate::{machine::Code, state::GpuState};
use std::ffi::{CStr, c_char};

/// What the trace shows of an argument.
pub(super) trait Argument {
    /// Notes it, if it says something.
    fn note(&self, _name: &'static str, _notes: &mut Notes) {}
}

impl Argument for u32 {
    fn note(&self, name: &'static str, notes: &mut Notes) {
        notes.number(name, i64::from(*self));
    }
}

impl Argument for u64 {
    fn note(&self, name: &'static str, notes: &mut Notes) {
        notes.number(name, *self as i64);
    }
}

impl Argument for i32 {
    fn note(&self, name: &'static str, notes: &mut Notes) {
        notes.number(name, i64::from(*self));
    }
}

impl Argument for Handle {
    fn note(&self, _name: &'static str, notes: &mut Notes) {
        let Some(place) = self.decode() else { return };
        notes.gpu(place.gpu);
        notes.number("gpu", place.gpu as i64);
        if let Some(gi) = place.gi {
            notes.number("gi", i64::from(gi));
        }
        if let Some(ci) = place.ci {
            notes.number("ci", i64::from(ci));
        }
    }
}

/// Where a result goes: a pointer to one `T`, or to as many as the function's contract says.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Out<T>(*mut T);

impl<T> Argument for Out<T> {}

impl<T: Copy> Out<T> {
    /// A place in Rust, for tests.
    #[cfg(test)]
    pub(crate) fn to(place: &mut T) -> Out<T> {
        Out(place)
    }

    /// Room for several, for tests.
    #[cfg(test)]
    pub(crate) fn to_all(places: &mut [T]) -> Out<T> {
        Out(places.as_mut_ptr())
    }

    /// NULL, for tests.
    #[cfg(test)]
    pub(crate) fn null() -> Out<T> {
        Out(std::ptr::null_mut())
    }

    /// Whether it is NULL.
    pub(super) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Refuses NULL, before anything is done.
    pub(super) fn required(self) -> Result<Out<T>, Code> {
        if self.is_null() { Err(Code::INVALID_ARGUMENT) } else { Ok(self) }
    }

    /// Writes the result.
    pub(super) fn put(self, value: T) -> Result<(), Code> {
        self.put_at(0, value)
    }

    /// Writes the result's element `index`, which the function's contract says there is room for.
    pub(super) fn put_at(self, index: usize, value: T) -> Result<(), Code> {
        self.required()?;
        // SAFETY: not NULL; NVML's contract is that the caller gives a pointer to as many `T` as the call
        // writes. Unaligned, since callers of a C ABI may use packed structs.
        unsafe { self.0.add(index).write_unaligned(value) };
        Ok(())
    }

    /// Reads what the caller put there (version words, counts).
    pub(super) fn get(self) -> Result<T, Code> {
        self.get_at(0)
    }

    /// Reads element `index`.
    pub(super) fn get_at(self, index: usize) -> Result<T, Code> {
        self.required()?;
        // SAFETY: as for `put_at`; all `T` used are plain data for which any bytes are legal.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }

    /// The same address as another type: for structs that come in versions and begin alike.
    pub(super) fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }
}

/// Writes a list as NVML's sized lists go: with `count` too small, only `count` is written and the call answers
/// `INSUFFICIENT_SIZE`; a NULL list asks for the size alone.
pub(super) fn put_list<T: Copy>(
    list: Out<T>,
    count: Out<u32>,
    items: &[T],
    null_asks_size: bool,
) -> Result<(), Code> {
    let room = count.get()? as usize;
    count.put(items.len() as u32)?;
    if list.is_null() && null_asks_size {
        return Ok(());
    }
    if room < items.len() {
        return Err(Code::INSUFFICIENT_SIZE);
    }
    put_all(list, items)
}

/// Writes a list whose room the function's contract fixes.
pub(super) fn put_all<T: Copy>(list: Out<T>, items: &[T]) -> Result<(), Code> {
    for (index, item) in items.iter().enumerate() {
        list.put_at(index, *item)?;
    }
    Ok(())
}

/// Writes a text with its final zero into a buffer of `length` bytes.
pub(super) fn put_text(buffer: Out<c_char>, length: u32, text: &str) -> Result<(), Code> {
    buffer.required()?;
    if (length as usize) <= text.len() {
        return Err(Code::INSUFFICIENT_SIZE);
    }
    for (index, byte) in text.bytes().chain([0]).enumerate() {
        buffer.put_at(index, byte as c_char)?;
    }
    Ok(())
}

/// A text for a field of `N` bytes.
pub(super) fn text_field<const N: usize>(text: &str) -> [c_char; N] {
    let mut field = [0; N];
    for (to, from) in field.iter_mut().take(N.saturating_sub(1)).zip(text.bytes()) {
        *to = from as c_char;
    }
    field
}

/// A struct that the caller gives to be read.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct In<T>(*const T);

impl<T: Copy> In<T> {
    /// A place in Rust, for tests.
    #[cfg(test)]
    pub(crate) fn from(place: &T) -> In<T> {
        In(place)
    }

    /// What it holds.
    pub(super) fn get(self) -> Result<T, Code> {
        if self.0.is_null() {
            return Err(Code::INVALID_ARGUMENT);
        }
        // SAFETY: not NULL; NVML's contract is that it points to a `T`, of which any bytes are legal.
        Ok(unsafe { self.0.read_unaligned() })
    }
}

impl Argument for In<super::layout::Placement> {
    fn note(&self, _name: &'static str, notes: &mut Notes) {
        if let Ok(place) = self.get() {
            notes.number("start", i64::from(place.start));
            notes.number("size", i64::from(place.size));
        }
    }
}

impl Argument for In<super::layout::Uuid> {}

/// A C string.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Words(*const c_char);

impl Words {
    /// A text in Rust, for tests.
    #[cfg(test)]
    pub(crate) fn of(text: &CStr) -> Words {
        Words(text.as_ptr())
    }

    /// The text; damaged text is replaced, and so equals nothing.
    pub(super) fn get(&self) -> Result<String, Code> {
        if self.0.is_null() {
            return Err(Code::INVALID_ARGUMENT);
        }
        // SAFETY: not NULL; NVML's contract is that it is a string that ends with a zero.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned())
    }
}

impl Argument for Words {
    fn note(&self, name: &'static str, notes: &mut Notes) {
        if let Ok(text) = self.get() {
            notes.text(name, &text);
        }
    }
}

/// The code of a handle whose instance is gone.
pub(super) fn stale(unknown: u32) -> Code {
    if unknown == 0 { Code::INVALID_ARGUMENT } else { Code::NOT_FOUND }
}

/// A lost GPU answers nothing that needs the hardware.
pub(super) fn require_present(state: &GpuState) -> Result<(), Code> {
    if state.lost == 0 { Ok(()) } else { Err(Code::GPU_IS_LOST) }
}
