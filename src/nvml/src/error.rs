//! One error for every call: which function, which code, what it means and what to do.

use migd_core::reason::Reason;
use nvml_wrapper::error::NvmlError;
use std::path::PathBuf;

/// An nvmlReturn_t, known here or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub u32);

impl Code {
    /// The call did it.
    pub const SUCCESS: Code = Code(0);
    /// No nvmlInit before.
    pub const UNINITIALIZED: Code = Code(1);
    /// An argument the driver does not know; past the last profile slot; a stale handle.
    pub const INVALID_ARGUMENT: Code = Code(2);
    /// Not on this device, or not in this mode.
    pub const NOT_SUPPORTED: Code = Code(3);
    /// Not this user.
    pub const NO_PERMISSION: Code = Code(4);
    /// No such thing.
    pub const NOT_FOUND: Code = Code(6);
    /// The buffer is too small.
    pub const INSUFFICIENT_SIZE: Code = Code(7);
    /// The kernel module is not loaded.
    pub const DRIVER_NOT_LOADED: Code = Code(9);
    /// The driver gave up waiting.
    pub const TIMEOUT: Code = Code(10);
    /// The GPU has fallen off the bus.
    pub const GPU_IS_LOST: Code = Code(15);
    /// The GPU must be reset first.
    pub const RESET_REQUIRED: Code = Code(16);
    /// Library and kernel module differ in version.
    pub const LIB_RM_VERSION_MISMATCH: Code = Code(18);
    /// Somebody has it open.
    pub const IN_USE: Code = Code(19);
    /// No room, or the place is taken.
    pub const INSUFFICIENT_RESOURCES: Code = Code(23);
    /// Another version of the struct is wanted.
    pub const ARGUMENT_VERSION_MISMATCH: Code = Code(25);
    /// The driver does not say.
    pub const UNKNOWN: Code = Code(999);

    /// NVML's name for it, without `NVML_ERROR_`.
    pub fn name(self) -> &'static str {
        match self.0 {
            0 => "SUCCESS",
            1 => "UNINITIALIZED",
            2 => "INVALID_ARGUMENT",
            3 => "NOT_SUPPORTED",
            4 => "NO_PERMISSION",
            5 => "ALREADY_INITIALIZED",
            6 => "NOT_FOUND",
            7 => "INSUFFICIENT_SIZE",
            8 => "INSUFFICIENT_POWER",
            9 => "DRIVER_NOT_LOADED",
            10 => "TIMEOUT",
            11 => "IRQ_ISSUE",
            12 => "LIBRARY_NOT_FOUND",
            13 => "FUNCTION_NOT_FOUND",
            14 => "CORRUPTED_INFOROM",
            15 => "GPU_IS_LOST",
            16 => "RESET_REQUIRED",
            17 => "OPERATING_SYSTEM",
            18 => "LIB_RM_VERSION_MISMATCH",
            19 => "IN_USE",
            20 => "MEMORY",
            21 => "NO_DATA",
            22 => "VGPU_ECC_NOT_SUPPORTED",
            23 => "INSUFFICIENT_RESOURCES",
            24 => "FREQ_NOT_SUPPORTED",
            25 => "ARGUMENT_VERSION_MISMATCH",
            26 => "DEPRECATED",
            27 => "NOT_READY",
            28 => "GPU_NOT_FOUND",
            29 => "INVALID_STATE",
            30 => "RESET_TYPE_NOT_SUPPORTED",
            999 => "UNKNOWN",
            _ => "unnamed",
        }
    }

    /// The reason code that a caller is told.
    pub fn reason(self) -> Reason {
        match self {
            Code::NO_PERMISSION => Reason::PermissionDenied,
            Code::DRIVER_NOT_LOADED => Reason::DriverNotLoaded,
            Code::LIB_RM_VERSION_MISMATCH => Reason::DriverMismatch,
            Code::GPU_IS_LOST => Reason::GpuLost,
            Code::RESET_REQUIRED => Reason::ResetRequired,
            Code::IN_USE => Reason::GpuInUse,
            _ => Reason::DriverError,
        }
    }

    /// What a person can do about it; empty where only the code helps.
    fn advice(self) -> &'static str {
        match self {
            Code::NO_PERMISSION => {
                ": this user may not do that; run it as root, or with access to the device nodes of NVIDIA"
            }
            Code::DRIVER_NOT_LOADED => {
                ": the kernel module is not loaded; load it (modprobe nvidia) and look in the kernel log if it fails"
            }
            Code::LIB_RM_VERSION_MISMATCH => {
                ": the library and the loaded kernel module are of different driver versions, as after an upgrade; \
                 reload the module or reboot"
            }
            Code::GPU_IS_LOST => {
                ": the GPU has fallen off the bus; look for Xid 79 in the kernel log, then reset it or reboot"
            }
            Code::RESET_REQUIRED => {
                ": the GPU must be reset before it can be used again (nvidia-smi -r -i GPU)"
            }
            Code::IN_USE => ": another client has it open; stop it and try again",
            Code::INSUFFICIENT_RESOURCES => ": there is no room, or the place is taken",
            Code::UNKNOWN => ": the driver does not say why; look in the kernel log for Xid messages",
            _ => "",
        }
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The library itself cannot be loaded.
    #[error("{path} cannot be loaded: {why}; install NVIDIA's driver on this machine, or name its library", path = .path.display())]
    NoLibrary {
        /// What was asked of the loader.
        path: PathBuf,
        /// What it answered.
        why: String,
    },
    /// The library has no such function: it is older than what is asked of it.
    #[error("this driver's library has no {function}; a newer driver is needed for that")]
    Missing {
        /// The symbol.
        function: &'static str,
    },
    /// The driver's answer.
    #[error("{function} answered {code}{advice}", advice = .code.advice())]
    Answer {
        /// The function.
        function: &'static str,
        /// What it returned.
        code: Code,
    },
    /// The call succeeded and gave something that cannot be.
    #[error("{function} gave {what}, which cannot be understood")]
    Malformed {
        /// The function.
        function: &'static str,
        /// What it gave.
        what: String,
    },
}

impl Error {
    /// The driver's code, if it answered one.
    pub fn code(&self) -> Option<Code> {
        match self {
            Error::Answer { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether the driver answered this code.
    pub fn is(&self, code: Code) -> bool {
        self.code() == Some(code)
    }

    /// Whether what was asked for is not there: no such symbol, or NOT_SUPPORTED by the device. A fact rather
    /// than a failure.
    pub fn is_absent(&self) -> bool {
        matches!(self, Error::Missing { .. }) || self.is(Code::NOT_SUPPORTED)
    }

    /// The reason code that a caller is told.
    pub fn reason(&self) -> Reason {
        match self {
            Error::NoLibrary { .. } => Reason::DriverMissing,
            Error::Missing { .. } => Reason::DriverTooOld,
            Error::Answer { code, .. } => code.reason(),
            Error::Malformed { .. } => Reason::DriverError,
        }
    }

    /// From nvml-wrapper's error of a call to `function`.
    pub(crate) fn of_wrapper(function: &'static str, error: NvmlError) -> Error {
        match error {
            NvmlError::FailedToLoadSymbol(_) => Error::Missing { function },
            NvmlError::Utf8Error(_) | NvmlError::NulError(_) => {
                Error::Malformed { function, what: "a text that is not UTF-8".to_owned() }
            }
            // All others are NVML's codes; what the crate has no name for it keeps as a number.
            code => Error::Answer { function, code: Code(code.into()) },
        }
    }
}

/// A call's return value as a result.
pub(crate) fn check(function: &'static str, code: u32) -> Result<(), Error> {
    match Code(code) {
        Code::SUCCESS => Ok(()),
        code => Err(Error::Answer { function, code }),
    }
}

/// Calls a symbol of NVML by name: `Error::Missing` if the library lacks it, `Error::Answer` if it fails. The
/// expansion calls a foreign function, so it stands in an `unsafe` block that says why its arguments are right.
macro_rules! call {
    ($library:expr, $name:ident($($argument:expr),* $(,)?)) => {
        match $library.raw().$name.as_ref() {
            Ok(function) => $crate::error::check(stringify!($name), function($($argument),*)),
            Err(_) => Err($crate::error::Error::Missing { function: stringify!($name) }),
        }
    };
}
pub(crate) use call;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_codes_that_the_wrapper_has_no_name_for() {
        for code in [23, 24, 25, 26, 27, 28, 29, 30, 31, 77] {
            let error = Error::of_wrapper("nvmlDeviceGetUUID", NvmlError::from(code));
            assert!(error.is(Code(code)), "{error:?}");
        }
    }

    #[test]
    fn says_what_to_do_where_a_person_can() {
        for code in [Code::NO_PERMISSION, Code::DRIVER_NOT_LOADED, Code::LIB_RM_VERSION_MISMATCH] {
            assert!(Error::Answer { function: "nvmlInit_v2", code }.to_string().len() > 60, "{code}");
            assert_ne!(code.reason(), Reason::DriverError);
        }
    }

    #[test]
    fn a_lacking_symbol_is_absent_and_no_failure_of_the_gpu() {
        let missing = Error::of_wrapper("nvmlFoo", NvmlError::FailedToLoadSymbol("…".to_owned()));
        assert!(missing.is_absent());
        assert_eq!(missing.reason(), Reason::DriverTooOld);
    }
}
