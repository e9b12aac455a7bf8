//! The C ABI: every function that libnvidia-ml.so.1 exports.
//!
//! ```text
//! program --call--> entry! --> enter: arguments noted -> faults -> initialised? -> body -> trace -> nvmlReturn_t
//!                                                        (a panic becomes UNKNOWN)
//! ```
//!
//! Every call comes through [`enter`] (nvmlErrorString aside, which touches nothing): what is to hold for all
//! calls is put there once. Bodies speak in handles, [`Out`] and [`In`], so pointers are followed in one file.

mod arguments;
mod compute_instance;
mod device;
mod discovery;
mod events;
mod fields;
mod gpu_instance;
mod handle;
mod layout;
mod library;
mod memory;
mod mig;
mod processes;
mod settings;
mod stubs;
mod symbols;
mod trace;

pub use symbols::{MUTATING, SYMBOLS};

use crate::{fault, machine::Code, session, session::Session};
use arguments::Out;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};
use trace::Notes;

/// A call under way.
struct Call {
    session: Arc<Session>,
}

/// Declares an exported function. Its arguments' names are those that the trace shows.
macro_rules! entry {
    ($(fn $name:ident($($arg:ident: $kind:ty),* $(,)?) |$call:ident| $body:block)*) => {
        $(
            #[unsafe(no_mangle)]
            pub(crate) extern "C" fn $name($($arg: $kind),*) -> u32 {
                $crate::abi::enter(
                    stringify!($name),
                    |_notes| { $($crate::abi::arguments::Argument::note(&$arg, stringify!($arg), _notes);)* },
                    |$call: &$crate::abi::Call| -> Result<(), $crate::machine::Code> { $body },
                )
            }
        )*
    };
}
use entry;

/// The one way in for all calls that need an initialised library.
fn enter(
    name: &'static str,
    note: impl FnOnce(&mut Notes),
    body: impl FnOnce(&Call) -> Result<(), Code>,
) -> u32 {
    traced(name, note, || body(&Call { session: session::current()? }))
}

/// The way in for the few that do not: init and shutdown.
fn traced(name: &'static str, note: impl FnOnce(&mut Notes), body: impl FnOnce() -> Result<(), Code>) -> u32 {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let quiet = fault::passing();
        let (span, gpu) = trace::begin(note, !quiet);
        let body = || if quiet { body() } else { fault::within(name, gpu, body) };
        let code = match catch_unwind(AssertUnwindSafe(body)) {
            Ok(Ok(())) => Code::SUCCESS,
            Ok(Err(code)) => code,
            Err(_) => Code::UNKNOWN,
        };
        trace::end(span, name, code);
        code
    }));
    result.unwrap_or(Code::UNKNOWN).0
}

#[cfg(test)]
mod tests;
