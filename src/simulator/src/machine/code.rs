//! NVML's return codes.

use crate::shared::Locked;

/// An nvmlReturn_t other than success, or success where one is carried as a value (activation status).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub u32);

macro_rules! codes {
    ($($name:ident = $value:literal $text:literal;)*) => {
        impl Code {
            $(#[doc = $text] pub const $name: Code = Code($value);)*

            /// What nvmlErrorString says, with its final zero.
            pub fn text(self) -> &'static std::ffi::CStr {
                match self.0 {
                    $($value => const {
                        match std::ffi::CStr::from_bytes_with_nul(concat!($text, "\0").as_bytes()) {
                            Ok(text) => text,
                            Err(_) => c"",
                        }
                    },)*
                    _ => c"Unknown Error",
                }
            }
        }

        impl Code {
            /// Every code with its name in nvml.h, without NVML_ERROR_.
            pub const NAMES: &[(Code, &str)] = &[$((Code($value), stringify!($name))),*];
        }

        /// Every code there is.
        #[cfg(test)]
        pub(crate) const ALL: &[Code] = &[$(Code($value)),*];
    };
}

codes! {
    SUCCESS = 0 "Success";
    UNINITIALIZED = 1 "Uninitialized";
    INVALID_ARGUMENT = 2 "Invalid Argument";
    NOT_SUPPORTED = 3 "Not Supported";
    NO_PERMISSION = 4 "Insufficient Permissions";
    ALREADY_INITIALIZED = 5 "Already Initialized";
    NOT_FOUND = 6 "Not Found";
    INSUFFICIENT_SIZE = 7 "Insufficient Size";
    INSUFFICIENT_POWER = 8 "Insufficient External Power";
    DRIVER_NOT_LOADED = 9 "Driver Not Loaded";
    TIMEOUT = 10 "Timeout";
    IRQ_ISSUE = 11 "Interrupt Request Issue";
    LIBRARY_NOT_FOUND = 12 "NVML Shared Library Not Found";
    FUNCTION_NOT_FOUND = 13 "Function Not Found";
    CORRUPTED_INFOROM = 14 "Corrupted infoROM";
    GPU_IS_LOST = 15 "GPU is lost";
    RESET_REQUIRED = 16 "GPU requires reset";
    OPERATING_SYSTEM = 17 "GPU access blocked by the operating system";
    LIB_RM_VERSION_MISMATCH = 18 "Driver/library version mismatch";
    IN_USE = 19 "In use by another client";
    MEMORY = 20 "Insufficient Memory";
    NO_DATA = 21 "No data";
    VGPU_ECC_NOT_SUPPORTED = 22 "vGPU operation not supported with ECC enabled";
    INSUFFICIENT_RESOURCES = 23 "Insufficient Resources";
    FREQ_NOT_SUPPORTED = 24 "Requested frequency not supported";
    ARGUMENT_VERSION_MISMATCH = 25 "Argument version mismatch";
    DEPRECATED = 26 "Function deprecated";
    NOT_READY = 27 "Not ready";
    GPU_NOT_FOUND = 28 "GPU not found";
    INVALID_STATE = 29 "Invalid state";
    RESET_TYPE_NOT_SUPPORTED = 30 "Reset type not supported";
    UNKNOWN = 999 "Unknown Error";
}

impl From<Locked> for Code {
    /// The driver has no such case; a caller sees that it was not its own fault, and nothing was done.
    fn from(_: Locked) -> Code {
        Code::TIMEOUT
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.text().to_str().unwrap_or_default(), self.0)
    }
}

impl std::error::Error for Code {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_a_text_for_every_code_and_for_unknown_ones() {
        let mut texts: Vec<_> = ALL.iter().filter(|code| **code != Code::UNKNOWN).map(|c| c.text()).collect();
        texts.push(Code(4711).text());
        let all = texts.len();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), all);
        assert!(texts.iter().all(|text| !text.is_empty()));
    }
}
