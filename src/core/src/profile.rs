//! MIG profiles: how a GPU can be cut, as its driver lists it.
//!
//! A profile is identified by the driver's id (`profile_id`, what create calls take), asked for by NVML's
//! enumeration (`slot`), and shown by name. Ids differ between geometries (2g is 14 on an A100 and 5 on an
//! A30), names between drivers (3g.39gb, 3g.40gb): neither is a constant here.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A place on a GPU in memory slices, or in a GPU instance in compute slices: `start:size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Placement {
    /// First slice.
    pub start: u32,
    /// Number of slices.
    pub size: u32,
}

impl Placement {
    /// The first slice after it.
    pub fn end(self) -> u32 {
        self.start.saturating_add(self.size)
    }

    /// Whether the two share a slice.
    pub fn overlaps(self, other: Placement) -> bool {
        self.start < other.end() && other.start < self.end()
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.start, self.size)
    }
}

/// What a profile has beyond or short of its plain form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attribute {
    /// The plain profile.
    Plain,
    /// `+me`: with the media extensions of which a GPU has one set.
    Media,
    /// `+me.all`: with all media engines.
    AllMedia,
    /// `-me`: with no media engine.
    NoMedia,
    /// `+gfx`: with graphics.
    Graphics,
}

impl Attribute {
    /// All attributes.
    pub const ALL: [Attribute; 5] =
        [Attribute::Plain, Attribute::Media, Attribute::AllMedia, Attribute::NoMedia, Attribute::Graphics];

    /// As it stands in a profile name.
    pub fn suffix(self) -> &'static str {
        match self {
            Attribute::Plain => "",
            Attribute::Media => "+me",
            Attribute::AllMedia => "+me.all",
            Attribute::NoMedia => "-me",
            Attribute::Graphics => "+gfx",
        }
    }

    /// The attribute of a GPU instance profile by NVML's enumeration (NVML_GPU_INSTANCE_PROFILE_*).
    pub fn of_slot(slot: u32) -> Attribute {
        match slot {
            7 | 8 => Attribute::Media,
            10 | 11 | 12 | 17 => Attribute::Graphics,
            13 | 14 => Attribute::NoMedia,
            15 | 16 => Attribute::AllMedia,
            _ => Attribute::Plain,
        }
    }
}

/// A profile's name: `3g.20gb`, `1g.5gb+me`, `1c.3g.20gb`.
///
/// `compute` is set only where the compute instance is smaller than its GPU instance, so `1c.1g.5gb` and
/// `1g.5gb` are one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProfileName {
    /// Compute slices of the GPU instance.
    pub slices: u32,
    /// The gigabytes in the name.
    pub gigabytes: u32,
    /// The attribute.
    pub attribute: Attribute,
    /// Compute slices of the compute instance, if fewer than `slices`.
    pub compute: Option<u32>,
}

impl ProfileName {
    /// The name of the whole GPU instance: without the compute instance's prefix.
    #[must_use]
    pub fn whole(self) -> ProfileName {
        ProfileName { compute: None, ..self }
    }

    /// The name of a compute instance of `slices` in an instance of this profile.
    #[must_use]
    pub fn with_compute(self, slices: u32) -> ProfileName {
        ProfileName { compute: (slices != self.slices).then_some(slices), ..self }
    }

    /// The name that NVIDIA's tools give a GPU instance profile: memory in eighths of the GPU, rounded up,
    /// times its gibibytes (facts measured on 122 rows of real listings).
    pub fn from_memory(slices: u32, memory_mib: u64, total_mib: u64, attribute: Attribute) -> ProfileName {
        let total = total_mib.max(1);
        let eighths = (8 * memory_mib).div_ceil(total);
        let gigabytes = (eighths * total.div_ceil(1024) + 4) / 8;
        ProfileName {
            slices,
            gigabytes: u32::try_from(gigabytes).unwrap_or(u32::MAX),
            attribute,
            compute: None,
        }
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(compute) = self.compute {
            write!(f, "{compute}c.")?;
        }
        write!(f, "{}g.{}gb{}", self.slices, self.gigabytes, self.attribute.suffix())
    }
}

/// A text that is no profile name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a MIG profile name: {why}")]
pub struct ProfileNameError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

impl FromStr for ProfileName {
    type Err = ProfileNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = |why: &str| ProfileNameError { text: text.to_owned(), why: why.to_owned() };
        // Numbers as NVIDIA writes them: no sign, no leading zero, never 0.
        let number = |digits: &str| -> Option<u32> {
            let plain = !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| digits.parse().ok())?
        };
        let shape = "write it as 3g.20gb, 1g.5gb+me or 1c.3g.20gb";
        let split = text.find(['+', '-']).unwrap_or(text.len());
        let (base, suffix) = text.split_at(split);
        let mut parts: Vec<&str> = base.split('.').collect();
        let gigabytes =
            parts.pop().and_then(|p| p.strip_suffix("gb")).and_then(number).ok_or_else(|| fail(shape))?;
        let slices =
            parts.pop().and_then(|p| p.strip_suffix('g')).and_then(number).ok_or_else(|| fail(shape))?;
        let compute = match parts.pop() {
            None => None,
            Some(part) => Some(part.strip_suffix('c').and_then(number).ok_or_else(|| fail(shape))?),
        };
        if !parts.is_empty() {
            return Err(fail(shape));
        }
        if compute.is_some_and(|compute| compute > slices) {
            return Err(fail("the compute instance is larger than its GPU instance"));
        }
        let attribute = Attribute::ALL
            .into_iter()
            .find(|a| a.suffix() == suffix)
            .ok_or_else(|| fail("the attributes are +me, +me.all, -me and +gfx"))?;
        let compute = compute.filter(|compute| *compute != slices);
        Ok(ProfileName { slices, gigabytes, attribute, compute })
    }
}

impl TryFrom<String> for ProfileName {
    type Error = ProfileNameError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ProfileName> for String {
    fn from(name: ProfileName) -> String {
        name.to_string()
    }
}

/// How many of each engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
pub struct Engines {
    /// Copy engines.
    pub copy: u32,
    /// Video decoders (NVDEC).
    pub decoder: u32,
    /// Video encoders (NVENC).
    pub encoder: u32,
    /// JPEG engines.
    pub jpeg: u32,
    /// Optical flow accelerators.
    pub ofa: u32,
}

impl Engines {
    /// As an array, in the order of the fields.
    pub fn as_array(self) -> [u32; 5] {
        [self.copy, self.decoder, self.encoder, self.jpeg, self.ofa]
    }
}

/// A GPU instance profile of one GPU. Zero in a figure means that the driver does not say.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GiProfile {
    /// The driver's profile id: what create, list and capacity calls take.
    pub id: u32,
    /// NVML's enumeration value: what profile-info calls take.
    pub slot: u32,
    /// The name to show and to match.
    pub name: ProfileName,
    /// Compute slices.
    pub slices: u32,
    /// How many of this profile fit on an empty GPU, as the driver says (0 is tolerated and unreliable).
    pub max_instances: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Engines of its own.
    pub engines: Engines,
    /// Where it may lie, in memory slices.
    pub placements: Vec<Placement>,
}

/// The full slice counts of compute instances by NVML's enumeration (NVML_COMPUTE_INSTANCE_PROFILE_*), which
/// real drivers also use as profile ids.
pub fn compute_slices_of_slot(slot: u32) -> Option<u32> {
    Some(match slot {
        0 | 7 => 1,
        1 => 2,
        2 => 3,
        3 => 4,
        4 | 8 => 7,
        5 => 8,
        6 => 6,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for text in [
            "1g.5gb",
            "1g.5gb+me",
            "1g.24gb+me.all",
            "1g.24gb-me",
            "4g.96gb+gfx",
            "1c.3g.20gb",
            "1c.2g.12gb+me",
        ] {
            assert_eq!(text.parse::<ProfileName>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_compute_instance_of_the_whole_has_the_plain_name() {
        assert_eq!("1c.1g.5gb".parse::<ProfileName>().unwrap().to_string(), "1g.5gb");
        assert_eq!("3g.20gb".parse::<ProfileName>().unwrap().with_compute(3).to_string(), "3g.20gb");
    }

    #[test]
    fn refuses_what_the_peer_takes_wrongly() {
        for text in [
            "",
            "0g.0gb",
            "2c.1g.5gb",
            "1g.5gb+foo.bar",
            "01g.5gb",
            "1g.5gb+ME",
            "1G.5GB",
            "1g.5gb+",
            "1g.5gb+me+gfx",
            "1g.5gb-me+gfx",
            " 1g.5gb",
            "1g.5gb.me",
            "1c.1c.1g.5gb",
            "g.5gb",
            "1g",
            "1g.5",
            "+1g.5gb",
            "1g.99999999999gb",
        ] {
            assert!(text.parse::<ProfileName>().is_err(), "{text}");
        }
    }

    #[test]
    fn names_follow_from_memory() {
        let name = |slices, memory, total| {
            ProfileName::from_memory(slices, memory, total, Attribute::Plain).to_string()
        };
        assert_eq!(name(1, 4864, 40960), "1g.5gb");
        assert_eq!(name(3, 19968, 40960), "3g.20gb");
        assert_eq!(name(1, 9984, 81559), "1g.10gb");
        assert_eq!(name(1, 24192, 97887), "1g.24gb");
        assert_eq!(name(7, 81152, 81559), "7g.80gb");
    }
}
