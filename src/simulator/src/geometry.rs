//! The notation of one GPU's mode and instances, read and written.
//!
//! ```text
//! off | off* | on | on*            MIG mode, no instances; * = something computes on the whole GPU
//! 1g@0* 1g@1 2g@2 3g@4             profile @ first memory slice; * = in use until cleared; MIG is on
//! 3g@4[1c,2c*]                     split into compute instances; 3g@4[1c@2] says where
//! 3g@4[]   3g@4[]*                 no compute instance; * = held all the same
//! ```
//!
//! A profile is its whole name (`3g.20gb`, `1g.5gb+me`) or short (`3g`, `1g+me`), which takes the plain one of
//! that size. What [`write()`] writes [`parse`] reads back to the same state.

use crate::{
    model::{ComputeProfile, Family, Model, Profile},
    state::{CiState, GiState, GpuState},
    trouble::{Trouble, join},
};

/// NVML_FEATURE_ENABLED; simulated nodes start with persistence mode on, as servers do.
const PERSISTENCE: u32 = 1;

/// A GPU on which nothing was ever done.
pub fn blank() -> GpuState {
    let no_ci = CiState { live: 0, handle: 0, profile: 0, start: 0, size: 0, busy: 0 };
    let no_gi = GiState { live: 0, handle: 0, profile: 0, start: 0, size: 0, busy: 0, cis: [no_ci; 8] };
    GpuState {
        mig_current: 0,
        mig_pending: 0,
        persistence: PERSISTENCE,
        compute_mode: 0,
        busy: 0,
        lost: 0,
        changes: 0,
        resets: 0,
        gis: [no_gi; 15],
    }
}

/// Turns `before` into what `text` says, as if it had been made so. Handles count on, so that whoever holds
/// one of an instance that is gone learns it.
///
/// # Errors
/// [`Trouble::Input`] says what is legal on this GPU.
pub fn parse(model: &Model, text: &str, before: &GpuState) -> Result<GpuState, Trouble> {
    let words = words(text)?;
    let (on, busy, instances): (bool, bool, &[&str]) = match words.as_slice() {
        [] => return Err(Trouble::input("no geometry; write off, on, or instances such as '1g@0 2g@2'")),
        ["off"] => (false, false, &[]),
        ["off*"] => (false, true, &[]),
        ["on"] => (true, false, &[]),
        ["on*"] => (true, true, &[]),
        all => (true, false, all),
    };
    if on && model.family() == Family::WithoutMig {
        return Err(Trouble::input(format!("{} has no MIG; legal are off and off*", model.name.as_str())));
    }
    if on && model.display_mode != 0 {
        return Err(Trouble::input(format!(
            "{} drives displays, which hides MIG; legal are off and off* (say `display: false` in a node file)",
            model.name.as_str()
        )));
    }
    let mut state = *before;
    state.mig_current = u32::from(on);
    state.mig_pending = u32::from(on);
    state.busy = u32::from(busy);
    for gi in &mut state.gis {
        gi.live = 0;
        gi.busy = 0;
        for ci in &mut gi.cis {
            ci.live = 0;
            ci.busy = 0;
        }
    }
    for word in instances {
        let wanted = Wanted::read(model, word)?;
        wanted.place(model, word, &mut state)?;
    }
    state.changes += u64::from(state != *before);
    Ok(state)
}

/// Splits at white space outside brackets.
fn words(text: &str) -> Result<Vec<&str>, Trouble> {
    let unbalanced = || Trouble::input(format!("`{text}`: a [ without its ], or the other way round"));
    let mut words = Vec::new();
    let (mut begin, mut inside) = (None, false);
    for (at, c) in text.char_indices() {
        match c {
            '[' if inside => return Err(unbalanced()),
            ']' if !inside => return Err(unbalanced()),
            '[' => inside = true,
            ']' => inside = false,
            _ => {}
        }
        match begin {
            Some(from) if c.is_whitespace() && !inside => {
                words.extend(text.get(from..at));
                begin = None;
            }
            None if !c.is_whitespace() => begin = Some(at),
            _ => {}
        }
    }
    if inside {
        return Err(unbalanced());
    }
    words.extend(begin.and_then(|from| text.get(from..)));
    Ok(words)
}

/// One instance as written, with its profile found.
struct Wanted<'a> {
    index: u32,
    profile: &'a Profile,
    start: u32,
    busy: bool,
    /// `None`: one compute instance over all of it.
    split: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    fn read(model: &'a Model, word: &'a str) -> Result<Wanted<'a>, Trouble> {
        let form = || {
            Trouble::input(format!(
                "`{word}`: an instance is written PROFILE@START, such as 1g@0, 3g@4* or 3g@4[1c,2c]; a mode \
                 (off, on) stands alone"
            ))
        };
        let (name, place) = word.split_once('@').ok_or_else(form)?;
        let (place, split, starred) = match place.split_once('[') {
            None => (place.strip_suffix('*').unwrap_or(place), None, place.ends_with('*')),
            Some((start, rest)) => {
                let (list, star) = rest.split_once(']').ok_or_else(form)?;
                match star {
                    "" => (start, Some(list), false),
                    "*" if list.trim().is_empty() => (start, Some(list), true),
                    "*" => {
                        return Err(Trouble::input(format!(
                            "`{word}`: the * goes on the compute instance that is in use, as in 3g@4[1c*,2c]"
                        )));
                    }
                    _ => return Err(form()),
                }
            }
        };
        let (index, profile) = find(model, name)?;
        let start: u32 = place.parse().map_err(|_| form())?;
        Ok(Wanted { index, profile, start, busy: starred, split })
    }

    fn place(&self, model: &Model, word: &str, state: &mut GpuState) -> Result<(), Trouble> {
        let name = self.profile.name.as_str();
        let Some(place) = self.profile.places().iter().find(|place| place.start == self.start) else {
            let starts = join(self.profile.places().iter().map(|place| place.start), " ");
            return Err(Trouble::input(format!(
                "`{word}`: {name} cannot start at {} on {}; its starts are {starts}",
                self.start,
                model.name.as_str()
            )));
        };
        let there = state
            .live_gis()
            .find(|(_, gi)| gi.start < place.start + place.size && place.start < gi.start + gi.size);
        if let Some((_, gi)) = there {
            let other = profile_name(model, gi);
            return Err(Trouble::input(format!(
                "`{word}`: {name} at {}:{} overlaps {other} at {}:{}",
                place.start, place.size, gi.start, gi.size
            )));
        }
        let alike = state.live_gis().filter(|(_, gi)| gi.profile == self.index).count();
        if alike >= self.profile.max_instances as usize {
            return Err(Trouble::input(format!(
                "`{word}`: {} holds at most {} {name}",
                model.name.as_str(),
                self.profile.max_instances
            )));
        }
        let Some(gi) = state.gis.get_mut(place.gi_id as usize) else {
            return Err(Trouble::Failed(format!("`{word}`: GPU instance id {} in the table", place.gi_id)));
        };
        gi.live = 1;
        gi.handle = gi.handle.wrapping_add(1);
        gi.profile = self.index;
        gi.start = place.start;
        gi.size = place.size;
        gi.busy = u32::from(self.busy && self.split.is_some());
        match self.split {
            None => {
                let (index, whole) = whole(self.profile).ok_or_else(|| {
                    Trouble::Failed(format!("`{word}`: the table has no compute profile over all of {name}"))
                })?;
                let start = whole.places().first().map_or(0, |place| place.start);
                add_ci(gi, index, whole, start, self.busy);
            }
            Some(list) => {
                for part in list.split(',').map(str::trim).filter(|_| !list.trim().is_empty()) {
                    self.place_ci(word, part, gi)?;
                }
            }
        }
        Ok(())
    }

    fn place_ci(&self, word: &str, part: &str, gi: &mut GiState) -> Result<(), Trouble> {
        let name = self.profile.name.as_str();
        let (text, busy) = part.strip_suffix('*').map_or((part, false), |text| (text, true));
        let (text, start) = match text.split_once('@') {
            None => (text, None),
            Some((text, start)) => {
                let start = start.parse::<u32>();
                (text, Some(start.map_err(|_| Trouble::input(format!("`{word}`: `{part}`: no such start")))?))
            }
        };
        let found = (0u32..).zip(self.profile.compute()).find(|(_, ci)| {
            ci.name.as_str() == text || format!("{}c", ci.slices) == text || {
                ci.slices == self.profile.slices && format!("{}g", ci.slices) == text
            }
        });
        let Some((index, profile)) = found else {
            let legal = join(self.profile.compute().iter().map(|ci| format!("{}c", ci.slices)), " ");
            return Err(Trouble::input(format!(
                "`{word}`: {name} holds no compute `{text}`; it holds {legal}"
            )));
        };
        let is_free = |place: u32| {
            gi.live_cis().all(|(_, ci)| ci.start + ci.size <= place || place + profile.slices <= ci.start)
        };
        let place = profile
            .places()
            .iter()
            .map(|place| place.start)
            .find(|place| start.is_none_or(|start| start == *place) && is_free(*place));
        let Some(place) = place else {
            let starts = join(profile.places().iter().map(|place| place.start), " ");
            return Err(Trouble::input(format!(
                "`{word}`: no room for {text} in {name} (starts of {text}: {starts})"
            )));
        };
        if !add_ci(gi, index, profile, place, busy) {
            return Err(Trouble::input(format!("`{word}`: {name} holds at most 8 compute instances")));
        }
        Ok(())
    }
}

/// Adds a compute instance at the lowest free id.
fn add_ci(gi: &mut GiState, index: u32, profile: &ComputeProfile, start: u32, busy: bool) -> bool {
    let Some(ci) = gi.cis.iter_mut().find(|ci| ci.live == 0) else { return false };
    *ci = CiState {
        live: 1,
        handle: ci.handle.wrapping_add(1),
        profile: index,
        start,
        size: profile.slices,
        busy: u32::from(busy),
    };
    true
}

/// The compute profile that takes all of a GPU instance.
fn whole(profile: &Profile) -> Option<(u32, &ComputeProfile)> {
    (0u32..).zip(profile.compute()).find(|(_, ci)| ci.slices == profile.slices)
}

/// A profile by its whole name, else the plain one of the short name.
fn find<'a>(model: &'a Model, name: &str) -> Result<(u32, &'a Profile), Trouble> {
    let all = || (0u32..).zip(model.profiles());
    if let Some(found) = all().find(|(_, profile)| profile.name.as_str() == name) {
        return Ok(found);
    }
    // Profiles lie by NVML's enumeration, in which the plain one comes before the double-memory one.
    if let Some(found) = all().find(|(_, profile)| short(profile.name.as_str()) == name) {
        return Ok(found);
    }
    if let Some((_, gi)) = name.split_once("c.") {
        return Err(Trouble::input(format!(
            "`{name}`: compute instances stand in brackets after their GPU instance, as in {gi}@0[1c]"
        )));
    }
    let names = join(model.profiles().iter().map(|profile| profile.name.as_str()), " ");
    Err(Trouble::input(format!("no profile `{name}` on {}; it has {names}", model.name.as_str())))
}

/// `1g.5gb+me` to `1g+me`.
fn short(name: &str) -> String {
    match (name.split_once('.'), name.split_once("gb")) {
        (Some((slices, _)), Some((_, attribute))) => format!("{slices}{attribute}"),
        _ => name.to_owned(),
    }
}

/// The short name of a GPU instance's profile, or the whole one if the short one means another.
pub fn profile_name(model: &Model, gi: &GiState) -> String {
    let Some(profile) = model.profiles().get(gi.profile as usize) else { return "?".to_owned() };
    let name = short(profile.name.as_str());
    match find(model, &name) {
        Ok((index, _)) if index == gi.profile => name,
        _ => profile.name.as_str().to_owned(),
    }
}

/// GPU instances by their first slice, with ids.
pub fn by_start(state: &GpuState) -> Vec<(u32, &GiState)> {
    let mut gis: Vec<(u32, &GiState)> = state.live_gis().collect();
    gis.sort_by_key(|(_, gi)| gi.start);
    gis
}

/// The state in the notation. A mode that waits for a reset is not part of it; see `show`.
pub fn write(model: &Model, state: &GpuState) -> String {
    let star = |busy: u32| if busy != 0 { "*" } else { "" };
    let gis = by_start(state);
    if state.mig_current == 0 || gis.is_empty() {
        let mode = if state.mig_current == 0 { "off" } else { "on" };
        return format!("{mode}{}", star(state.busy));
    }
    join(gis.iter().map(|(_, gi)| instance(model, gi)), " ")
}

/// One instance in the notation.
fn instance(model: &Model, gi: &GiState) -> String {
    let star = |busy: u32| if busy != 0 { "*" } else { "" };
    let name = profile_name(model, gi);
    let profile = model.profiles().get(gi.profile as usize);
    let cis: Vec<&CiState> = gi.live_cis().map(|(_, ci)| ci).collect();
    let whole = profile.and_then(whole).map(|(index, _)| index);
    match cis.as_slice() {
        [only] if Some(only.profile) == whole && gi.busy == 0 => {
            format!("{name}@{}{}", gi.start, star(only.busy))
        }
        [] => format!("{name}@{}[]{}", gi.start, star(gi.busy)),
        _ => {
            let parts = cis.iter().map(|ci| format!("{}c@{}{}", ci.size, ci.start, star(ci.busy)));
            format!("{name}@{}[{}]", gi.start, join(parts, ","))
        }
    }
}

#[cfg(test)]
mod tests;
