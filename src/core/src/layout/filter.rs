//! The peer's device filters: `0x20B010DE`, or with the subsystem `0x20B010DE:0x134F10DE`.

use crate::{
    id::{PciId, parse_integer},
    table::NVIDIA,
};
use std::{fmt, str::FromStr};

/// A PCI id to match, optionally with the subsystem's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceFilter {
    /// Device id.
    pub device: u16,
    /// Vendor id, always NVIDIA's.
    pub vendor: u16,
    /// Subsystem device and vendor id.
    pub subsystem: Option<(u16, u16)>,
}

impl DeviceFilter {
    /// Whether a GPU with this id is meant.
    pub fn matches(self, id: PciId) -> bool {
        self.device == id.device
            && self.vendor == id.vendor
            && self.subsystem.is_none_or(|sub| sub == (id.subsystem_device, id.subsystem_vendor))
    }
}

impl fmt::Display for DeviceFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:04X}{:04X}", self.device, self.vendor)?;
        match self.subsystem {
            Some((device, vendor)) => write!(f, ":0x{device:04X}{vendor:04X}"),
            None => Ok(()),
        }
    }
}

/// A text that is no device filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a device filter: {why}")]
pub struct FilterError {
    text: String,
    why: &'static str,
}

impl FromStr for DeviceFilter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = |why| FilterError { text: text.to_owned(), why };
        // Each word is `device << 16 | vendor`, as a Go integer literal; a sign is not one.
        let word = |digits: &str| -> Result<(u16, u16), FilterError> {
            if !digits.starts_with(|c: char| c.is_ascii_digit()) {
                return Err(fail("it is not a number"));
            }
            let value = parse_integer(digits).map_err(|_| fail("it is not a number"))?;
            let value =
                u32::try_from(value).map_err(|_| fail("it has more than eight hexadecimal digits"))?;
            Ok(((value >> 16) as u16, (value & 0xFFFF) as u16))
        };
        let (main, subsystem) = match text.split_once(':') {
            Some((main, subsystem)) => (main, Some(subsystem)),
            None => (text, None),
        };
        let (device, vendor) = word(main)?;
        if vendor != NVIDIA {
            return Err(fail("its last four digits are not NVIDIA's vendor id 10DE"));
        }
        if device == 0 {
            return Err(fail("its device id is zero"));
        }
        let subsystem = subsystem.map(word).transpose()?;
        Ok(DeviceFilter { device, vendor, subsystem })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_spelling_of_one_id() {
        let a100 = DeviceFilter { device: 0x20B0, vendor: 0x10DE, subsystem: None };
        for text in ["0x20B010DE", "0x20b010de", "0X20B010DE", "548409566", "0o4054010336"] {
            assert_eq!(text.parse(), Ok(a100), "{text}");
        }
        let full: DeviceFilter = "0x20B010DE:0x134F10DE".parse().unwrap();
        assert_eq!(full.subsystem, Some((0x134F, 0x10DE)));
        assert_eq!(full.to_string(), "0x20B010DE:0x134F10DE");
    }

    #[test]
    fn a_subsystem_must_match_too() {
        let id = PciId { device: 0x20B5, vendor: 0x10DE, subsystem_device: 0x1533, subsystem_vendor: 0x10DE };
        let matches = |text: &str| text.parse::<DeviceFilter>().unwrap().matches(id);
        assert!(matches("0x20B510DE"));
        assert!(matches("0x20B510DE:0x153310DE"));
        assert!(!matches("0x20B510DE:0x164210DE"));
        assert!(!matches("0x20B210DE"));
    }

    #[test]
    fn refuses_what_the_peer_silently_matches_to_nothing() {
        for text in [
            "garbage",
            "0x",
            "0x20B010DE:",
            ":0x134F10DE",
            "0x20B0",
            "0x20B010DF",
            "A100",
            "20B010DE",
            "0x120B010DE",
            "-1",
            "+548409566",
            "0x20B010DE:0x134F10DE:0x1",
            "0x000010DE",
            "0x20B010DE ",
            " 0x20B010DE",
        ] {
            assert!(text.parse::<DeviceFilter>().is_err(), "{text}");
        }
    }
}
