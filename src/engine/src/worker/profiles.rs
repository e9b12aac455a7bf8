//! Which profiles a GPU has: asked of the driver slot by slot.

use migd_core::profile::{Attribute, GiProfile, ProfileName};
use migd_nvml::{Code, Device, Error, ProfileInfo, ProfileVersion};

/// As many slots as are asked for. Today's headers end at 18; the driver says where its own end.
const MOST_SLOTS: u32 = 32;

/// All profiles of this GPU by slot; empty if the driver hides them (up to 535 while MIG is off).
pub(super) fn read(device: &Device<'_>, memory_mib: u64) -> Result<Vec<GiProfile>, Error> {
    let mut profiles = Vec::new();
    let mut versions = Versions::default();
    for slot in 0..MOST_SLOTS {
        let info = match versions.ask(|version| device.profile_info(slot, version)) {
            Ok(info) => info,
            Err(error) if error.is(Code::INVALID_ARGUMENT) => break,
            Err(error) if error.is_absent() => continue,
            Err(error) => return Err(error),
        };
        let placements = match device.possible_placements(info.id) {
            Ok(placements) => placements,
            // A profile whose places the driver does not tell can be shown, and nothing can be put there.
            Err(error) if error.is_absent() => Vec::new(),
            Err(error) => return Err(error),
        };
        let of_memory =
            || ProfileName::from_memory(info.slices, info.memory_mib, memory_mib, Attribute::of_slot(slot));
        profiles.push(GiProfile {
            id: info.id,
            slot,
            name: info.name.unwrap_or_else(of_memory),
            slices: info.slices,
            max_instances: info.max_instances,
            memory_mib: info.memory_mib,
            multiprocessors: info.multiprocessors,
            engines: info.engines,
            placements,
        });
    }
    Ok(profiles)
}

/// Which version of the struct this driver speaks: found out at the first profile, then kept.
#[derive(Debug, Default)]
struct Versions {
    settled: Option<ProfileVersion>,
}

impl Versions {
    fn ask(
        &mut self,
        question: impl Fn(ProfileVersion) -> Result<ProfileInfo, Error>,
    ) -> Result<ProfileInfo, Error> {
        if let Some(version) = self.settled {
            return question(version);
        }
        let mut answer = Err(Error::Missing { function: "nvmlDeviceGetGpuInstanceProfileInfo" });
        for version in ProfileVersion::NEWEST_FIRST {
            answer = question(version);
            match &answer {
                Ok(_) => self.settled = Some(version),
                // A wrong version word and a slot past the end look alike (both INVALID_ARGUMENT), as do a
                // lacking function and a lacking slot (both NOT_SUPPORTED where a library has every symbol). The
                // oldest form, which every driver has and which has no version word, decides.
                Err(error) if error.may_be_version() => continue,
                Err(_) => {}
            }
            break;
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn info() -> ProfileInfo {
        ProfileInfo {
            id: 19,
            slices: 1,
            max_instances: 7,
            memory_mib: 4864,
            multiprocessors: 14,
            engines: Default::default(),
            name: None,
        }
    }

    fn answer(code: Code) -> Error {
        Error::Answer { function: "nvmlDeviceGetGpuInstanceProfileInfoV", code }
    }

    #[test]
    fn goes_back_to_the_version_that_the_driver_has_and_stays_there() {
        for refusal in [answer(Code::INVALID_ARGUMENT), answer(Code::ARGUMENT_VERSION_MISMATCH)] {
            let asked = RefCell::new(Vec::new());
            let mut versions = Versions::default();
            let mut ask = || {
                versions.ask(|version| {
                    asked.borrow_mut().push(version);
                    if version == ProfileVersion::V3 { Err(refusal.clone()) } else { Ok(info()) }
                })
            };
            assert_eq!(ask(), Ok(info()));
            assert_eq!(ask(), Ok(info()));
            assert_eq!(asked.into_inner(), [ProfileVersion::V3, ProfileVersion::V2, ProfileVersion::V2]);
        }
    }

    #[test]
    fn a_slot_that_the_gpu_lacks_settles_nothing() {
        let mut versions = Versions::default();
        let lacking = versions.ask(|_| Err(answer(Code::NOT_SUPPORTED)));
        assert_eq!(lacking, Err(answer(Code::NOT_SUPPORTED)));
        assert_eq!(versions.settled, None);
    }

    #[test]
    fn the_end_of_the_slots_is_what_the_oldest_form_says() {
        let mut versions = Versions::default();
        let end = versions.ask(|_| Err(answer(Code::INVALID_ARGUMENT)));
        assert_eq!(end, Err(answer(Code::INVALID_ARGUMENT)));
    }
}
