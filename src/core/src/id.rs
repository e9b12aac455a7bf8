//! What a GPU is known by: its UUID. PCI address and PCI id are attributes.

use serde::{Deserialize, Serialize};
use std::{fmt, num::ParseIntError, str::FromStr};

/// A GPU's UUID as NVML gives it, `GPU-` and 36 characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GpuUuid(pub String);

impl fmt::Display for GpuUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A PCI address, shown as the kernel does: `0000:07:00.0`.
///
/// NVML writes eight digits of domain (`00000000:07:00.0`); both forms are read, in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PciAddress {
    /// PCI domain.
    pub domain: u32,
    /// Bus number.
    pub bus: u8,
    /// Device number, 0 to 31.
    pub device: u8,
    /// Function, 0 to 7.
    pub function: u8,
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.device, self.function)
    }
}

/// A text that is no PCI address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a PCI address; write it as 0000:07:00.0")]
pub struct PciAddressError(String);

impl FromStr for PciAddress {
    type Err = PciAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || -> Option<PciAddress> {
            let (domain, rest) = text.split_once(':')?;
            let (bus, rest) = rest.split_once(':')?;
            let (device, function) = rest.split_once('.')?;
            let hex = |digits: &str, most: usize| -> Option<u32> {
                let legal =
                    (1..=most).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
                legal.then(|| u32::from_str_radix(digits, 16).ok())?
            };
            let address = PciAddress {
                domain: hex(domain, 8)?,
                bus: hex(bus, 2)?.try_into().ok()?,
                device: hex(device, 2)?.try_into().ok()?,
                function: hex(function, 1)?.try_into().ok()?,
            };
            (address.device < 32 && address.function < 8).then_some(address)
        };
        parse().ok_or_else(|| PciAddressError(text.to_owned()))
    }
}

impl TryFrom<String> for PciAddress {
    type Error = PciAddressError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<PciAddress> for String {
    fn from(address: PciAddress) -> String {
        address.to_string()
    }
}

/// PCI device, vendor and subsystem ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PciId {
    /// Device id, 0x20B0 for an A100-SXM4-40GB.
    pub device: u16,
    /// Vendor id, 0x10DE for NVIDIA.
    pub vendor: u16,
    /// Subsystem device id.
    pub subsystem_device: u16,
    /// Subsystem vendor id.
    pub subsystem_vendor: u16,
}

impl PciId {
    /// From NVML's two words: `device << 16 | vendor`.
    pub fn from_nvml(device: u32, subsystem: u32) -> PciId {
        let high = |word: u32| (word >> 16) as u16;
        let low = |word: u32| (word & 0xffff) as u16;
        PciId {
            device: high(device),
            vendor: low(device),
            subsystem_device: high(subsystem),
            subsystem_vendor: low(subsystem),
        }
    }
}

impl fmt::Display for PciId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "0x{:04X}{:04X}:0x{:04X}{:04X}",
            self.device, self.vendor, self.subsystem_device, self.subsystem_vendor
        )
    }
}

/// Reads an integer as device filters write it: `0x…`, `0o…`, `0b…` or decimal.
///
/// # Errors
/// [`ParseIntError`] if the digits are not of that base or do not fit.
pub fn parse_integer(text: &str) -> Result<u64, ParseIntError> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match lower.as_bytes() {
        [b'0', b'x', ..] => (lower.get(2..), 16),
        [b'0', b'o', ..] => (lower.get(2..), 8),
        [b'0', b'b', ..] => (lower.get(2..), 2),
        _ => (Some(lower.as_str()), 10),
    };
    // The standard library takes a sign that the language of filters does not have.
    let digits = digits.filter(|digits| !digits.starts_with(['+', '-'])).unwrap_or_default();
    u64::from_str_radix(digits, radix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_forms_of_a_pci_address() {
        let address: PciAddress = "00000000:07:00.0".parse().unwrap();
        assert_eq!(address, "0000:07:00.0".parse().unwrap());
        assert_eq!(address.to_string(), "0000:07:00.0");
        assert_eq!("0001:C1:00.0".parse::<PciAddress>().unwrap().to_string(), "0001:c1:00.0");
    }

    #[test]
    fn refuses_what_is_no_pci_address() {
        for text in
            ["", "07:00.0", "0000:07:00", "0000:07:20.0", "0000:07:00.8", "0000:7+:00.0", "000000000:07:00.0"]
        {
            assert!(text.parse::<PciAddress>().is_err(), "{text}");
        }
    }
}
