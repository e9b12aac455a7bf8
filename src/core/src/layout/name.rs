//! How a layout names profiles: as NVIDIA writes them, or by their slices, which means the same on every model.

use crate::profile::{Attribute, GiProfile, ProfileName};
use std::{fmt, str::FromStr};

/// The word in the place of the memory that means the profile with double memory.
const DOUBLE: &str = "double";

/// A profile as a layout names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// As NVIDIA writes it: `3g.20gb`.
    Exact(ProfileName),
    /// By slices: `3g`, `1g+me`, `1c.3g`, `1g.double`.
    Slices(Slices),
}

/// A profile by its slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slices {
    /// Compute slices of the GPU instance.
    pub slices: u32,
    /// Its attribute.
    pub attribute: Attribute,
    /// The one with double the memory of the plain one (`1g.10gb` beside `1g.5gb`).
    pub double: bool,
    /// Compute slices of the compute instance, if fewer than `slices`.
    pub compute: Option<u32>,
}

impl Name {
    /// Compute slices of the GPU instance.
    pub fn slices(self) -> u32 {
        match self {
            Name::Exact(name) => name.slices,
            Name::Slices(name) => name.slices,
        }
    }

    /// Compute slices of the compute instance, if it is smaller than its GPU instance.
    pub fn compute(self) -> Option<u32> {
        match self {
            Name::Exact(name) => name.compute,
            Name::Slices(name) => name.compute,
        }
    }

    /// The GPU instance profile that is meant among those of a GPU.
    pub fn find(self, profiles: &[GiProfile]) -> Option<&GiProfile> {
        let name = match self {
            Name::Exact(name) => return profiles.iter().find(|profile| profile.name == name.whole()),
            Name::Slices(name) => name,
        };
        let mut alike: Vec<&GiProfile> = profiles
            .iter()
            .filter(|p| p.slices == name.slices && p.name.attribute == name.attribute)
            .collect();
        // Some tables and drivers do not say the memory; the places do.
        let size = |p: &GiProfile| p.placements.iter().map(|p| p.size).max().unwrap_or(0);
        alike.sort_by_key(|profile| (size(profile), profile.memory_mib, profile.slot));
        alike.get(usize::from(name.double)).copied()
    }

    /// The name by slices of a GPU's profile.
    pub fn by_slices(profile: &GiProfile, profiles: &[GiProfile]) -> Option<Name> {
        [false, true]
            .into_iter()
            .map(|double| {
                let attribute = profile.name.attribute;
                Name::Slices(Slices { slices: profile.slices, attribute, double, compute: None })
            })
            .find(|name| name.find(profiles).is_some_and(|found| found.id == profile.id))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Name::Exact(name) => return write!(f, "{name}"),
            Name::Slices(name) => name,
        };
        if let Some(compute) = name.compute {
            write!(f, "{compute}c.")?;
        }
        write!(f, "{}g", name.slices)?;
        if name.double {
            write!(f, ".{DOUBLE}")?;
        }
        f.write_str(name.attribute.suffix())
    }
}

impl FromStr for Name {
    type Err = String;

    /// Reads either form; the error says why it is neither.
    fn from_str(text: &str) -> Result<Name, String> {
        match (text.parse::<ProfileName>(), slices(text)) {
            (Ok(name), _) => Ok(Name::Exact(name)),
            (_, Some(Ok(name))) => Ok(Name::Slices(name)),
            (_, Some(Err(why))) => Err(why),
            (Err(error), None) => Err(error.why),
        }
    }
}

/// `None` if it is not written by slices at all.
fn slices(text: &str) -> Option<Result<Slices, String>> {
    let split = text.find(['+', '-']).unwrap_or(text.len());
    let (base, suffix) = text.split_at(split);
    let number = |part: &str, unit: char| -> Option<u32> {
        let digits = part.strip_suffix(unit)?;
        let plain = !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| digits.parse().ok())?
    };
    let mut parts: Vec<&str> = base.split('.').collect();
    let double = parts.last() == Some(&DOUBLE);
    if double {
        parts.pop();
    }
    let (compute, slices) = match parts.as_slice() {
        [slices] => (None, number(slices, 'g')?),
        [compute, slices] => (Some(number(compute, 'c')?), number(slices, 'g')?),
        _ => return None,
    };
    let Some(attribute) = Attribute::ALL.into_iter().find(|a| a.suffix() == suffix) else {
        return Some(Err("the attributes are +me, +me.all, -me and +gfx".to_owned()));
    };
    if compute.is_some_and(|compute| compute > slices) {
        return Some(Err("the compute instance is larger than its GPU instance".to_owned()));
    }
    let compute = compute.filter(|compute| *compute != slices);
    Some(Ok(Slices { slices, attribute, double, compute }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fixtures::profiles, table::Table};

    fn found(key: &str, text: &str) -> Option<String> {
        let profiles = profiles(key);
        text.parse::<Name>().unwrap().find(&profiles).map(|p| p.name.to_string())
    }

    #[test]
    fn a_name_by_slices_means_the_model_s_own_profile() {
        for (key, text, name) in [
            ("a100-40gb", "3g", "3g.20gb"),
            ("h100-sxm-80gb", "3g", "3g.40gb"),
            ("a30-24gb", "2g", "2g.12gb"),
            ("a100-40gb", "1g", "1g.5gb"),
            ("a100-40gb", "1g.double", "1g.10gb"),
            ("a100-80gb", "1g.double", "1g.20gb"),
            ("a100-40gb", "1g+me", "1g.5gb+me"),
            ("a30-24gb", "2g+me", "2g.12gb+me"),
            ("rtx-pro-6000-blackwell-96gb", "4g+gfx", "4g.96gb+gfx"),
            ("rtx-pro-6000-blackwell-96gb", "1g+me.all", "1g.24gb+me.all"),
            ("rtx-pro-6000-blackwell-96gb", "1g-me", "1g.24gb-me"),
            ("a100-40gb", "1c.3g", "3g.20gb"),
        ] {
            assert_eq!(found(key, text).as_deref(), Some(name), "{key} {text}");
        }
        for (key, text) in [("a30-24gb", "3g"), ("a30-24gb", "1g.double"), ("a100-40gb", "1g+gfx")] {
            assert_eq!(found(key, text), None, "{key} {text}");
        }
    }

    #[test]
    fn every_profile_of_the_table_has_a_name_by_slices() {
        let table = Table::shipped().unwrap();
        for gpu in table.gpus() {
            for profile in &gpu.profiles {
                let name = Name::by_slices(profile, &gpu.profiles).unwrap();
                assert_eq!(name.to_string().parse::<Name>(), Ok(name), "{} {}", gpu.key, profile.name);
            }
        }
    }

    #[test]
    fn names_round_trip_and_nonsense_is_refused() {
        for text in
            ["3g.20gb", "1g.5gb+me", "3g", "1g+me", "1c.3g", "1g.double", "1c.2g.12gb+me", "1g+me.all"]
        {
            assert_eq!(text.parse::<Name>().unwrap().to_string(), text);
        }
        assert_eq!("3c.3g".parse::<Name>().unwrap().to_string(), "3g");
        for text in
            ["", "g", "0g", "03g", "3G", "4c.3g", "3g+", "3g+foo", "1g.doubled", "double", "1c.1c.3g", "3"]
        {
            assert!(text.parse::<Name>().is_err(), "{text}");
        }
    }
}
