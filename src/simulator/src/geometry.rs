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
    machine::{Board, SetError},
    model::{ComputeProfile, Model, Profile},
    state::{CiState, GiState, GpuState},
    trouble::{Trouble, join},
};

/// A GPU on which nothing was ever done.
pub fn blank() -> GpuState {
    // SAFETY: `GpuState` is plain integers throughout, for which all bytes zero is legal.
    unsafe { std::mem::zeroed() }
}

/// Turns `before` into what `text` says, as if it had been made so. Handles count on, so that whoever holds
/// one of an instance that is gone learns it.
///
/// # Errors
/// [`Trouble::Input`] says what is legal on this GPU.
pub fn parse(board: &Board<'_>, text: &str, before: &GpuState) -> Result<GpuState, Trouble> {
    let words = words(text)?;
    let (on, busy, instances): (bool, bool, &[&str]) = match words.as_slice() {
        [] => return Err(Trouble::input("no geometry; write off, on, or instances such as '1g@0 2g@2'")),
        ["off"] => (false, false, &[]),
        ["off*"] => (false, true, &[]),
        ["on"] => (true, false, &[]),
        ["on*"] => (true, true, &[]),
        all => (true, false, all),
    };
    let mut state = *before;
    board.force_mode(&mut state, on).map_err(|_| no_mig(board.model))?;
    state.busy = u32::from(busy);
    for word in instances {
        Wanted::read(board, word)?.place(board, word, &mut state)?;
    }
    Ok(state)
}

fn no_mig(model: &Model) -> Trouble {
    let why = if model.display_mode != 0 {
        "drives displays, which hides MIG (`display: false` in a node file ends that)"
    } else {
        "has no MIG"
    };
    Trouble::input(format!("{} {why}; legal are off and off*", model.name.as_str()))
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
    fn read(board: &Board<'a>, word: &'a str) -> Result<Wanted<'a>, Trouble> {
        let form = || {
            Trouble::input(format!(
                "`{word}`: an instance is written PROFILE@START, such as 1g@0, 3g@4* or 3g@4[1c,2c]; a mode \
                 (off, on) stands alone"
            ))
        };
        let (name, place) = word.split_once('@').ok_or_else(form)?;
        let (place, split, busy) = match place.split_once('[') {
            None => (place.strip_suffix('*').unwrap_or(place), None, place.ends_with('*')),
            Some((start, rest)) => match rest.split_once(']').ok_or_else(form)? {
                (list, "") => (start, Some(list), false),
                (list, "*") if list.trim().is_empty() => (start, Some(list), true),
                (_, "*") => {
                    return Err(Trouble::input(format!(
                        "`{word}`: the * goes on the compute instance that is in use, as in 3g@4[1c*,2c]"
                    )));
                }
                _ => return Err(form()),
            },
        };
        let (index, profile) = find(board, name)?;
        let start: u32 = place.parse().map_err(|_| form())?;
        Ok(Wanted { index, profile, start, busy, split })
    }

    fn place(&self, board: &Board<'_>, word: &str, state: &mut GpuState) -> Result<(), Trouble> {
        let before = *state;
        let made = board.place(state, self.index, self.start);
        let (gi_id, ci_id) = made.map_err(|error| self.explain(board, word, &before, error))?;
        let lost = || Trouble::Failed(format!("`{word}`: GPU instance {gi_id} is not where it was made"));
        let gi = state.gis.get_mut(gi_id as usize).ok_or_else(lost)?;
        let ci = gi.cis.get_mut(ci_id as usize).ok_or_else(lost)?;
        match self.split {
            None => ci.busy = u32::from(self.busy),
            Some(list) => {
                ci.live = 0;
                gi.busy = u32::from(self.busy);
                self.split(word, list, gi)?;
            }
        }
        Ok(())
    }

    /// Why there is no room, with what would be legal.
    fn explain(&self, board: &Board<'_>, word: &str, state: &GpuState, error: SetError) -> Trouble {
        let (name, gpu) = (self.profile.name.as_str(), board.model.name.as_str());
        let Some(place) = self.profile.places().iter().find(|place| place.start == self.start) else {
            let starts = join(self.profile.places().iter().map(|place| place.start), " ");
            return Trouble::input(format!(
                "`{word}`: {name} cannot start at {} on {gpu}; its starts are {starts}",
                self.start
            ));
        };
        let (start, size) = (place.start, place.size);
        if let Some((_, gi)) =
            state.live_gis().find(|(_, gi)| gi.start < start + size && start < gi.start + gi.size)
        {
            let other = profile_name(board.model, gi);
            return Trouble::input(format!(
                "`{word}`: {name} at {start}:{size} overlaps {other} at {}:{}",
                gi.start, gi.size
            ));
        }
        let most = self.profile.max_instances;
        if state.live_gis().filter(|(_, gi)| gi.profile == self.index).count() >= most as usize {
            return Trouble::input(format!("`{word}`: {gpu} holds at most {most} {name}"));
        }
        Trouble::input(format!(
            "`{word}`: {error}: beside the instances before it {gpu} has no compute slices or engines left \
             for {name}, or its driver does not allow the pair"
        ))
    }

    /// Makes the compute instances of a list. Ids follow the list; places that are not given go to the large
    /// ones first, since small ones fit anywhere.
    fn split(&self, word: &str, list: &str, gi: &mut GiState) -> Result<(), Trouble> {
        if list.trim().is_empty() {
            return Ok(());
        }
        let name = self.profile.name.as_str();
        let mut parts = Vec::new();
        for text in list.split(',').map(str::trim) {
            parts.push(Part::read(self.profile, word, text)?);
        }
        if parts.len() > gi.cis.len() {
            let most = gi.cis.len();
            return Err(Trouble::input(format!("`{word}`: {name} holds at most {most} compute instances")));
        }
        let mut order: Vec<(usize, &Part<'_>)> = parts.iter().enumerate().collect();
        order.sort_by_key(|(_, part)| (part.start.is_none(), std::cmp::Reverse(part.profile.slices)));
        for (id, part) in order {
            let start = part.free_start(gi).ok_or_else(|| {
                let starts = join(part.profile.places().iter().map(|place| place.start), " ");
                let text = part.text;
                Trouble::input(format!("`{word}`: no room for {text} in {name} (its starts are {starts})"))
            })?;
            if let Some(ci) = gi.cis.get_mut(id) {
                *ci = CiState {
                    live: 1,
                    handle: ci.handle.wrapping_add(1),
                    profile: part.index,
                    start,
                    size: part.profile.slices,
                    busy: u32::from(part.busy),
                };
            }
        }
        Ok(())
    }
}

/// One compute instance as written, with its profile found.
struct Part<'a> {
    text: &'a str,
    index: u32,
    profile: &'a ComputeProfile,
    start: Option<u32>,
    busy: bool,
}

impl<'a> Part<'a> {
    fn read(gi: &'a Profile, word: &str, text: &'a str) -> Result<Part<'a>, Trouble> {
        let (unstarred, busy) = text.strip_suffix('*').map_or((text, false), |text| (text, true));
        let (name, start) = match unstarred.split_once('@') {
            None => (unstarred, None),
            Some((name, start)) => {
                let wrong = |_| Trouble::input(format!("`{word}`: `{text}`: after @ stands a compute slice"));
                (name, Some(start.parse().map_err(wrong)?))
            }
        };
        let found = (0u32..).zip(gi.compute()).find(|(_, ci)| {
            ci.name.as_str() == name
                || format!("{}c", ci.slices) == name
                || (ci.slices == gi.slices && format!("{}g", ci.slices) == name)
        });
        let (index, profile) = found.ok_or_else(|| {
            let legal = join(gi.compute().iter().map(|ci| format!("{}c", ci.slices)), " ");
            let gi = gi.name.as_str();
            Trouble::input(format!("`{word}`: {gi} holds no compute instance `{name}`; it holds {legal}"))
        })?;
        Ok(Part { text, index, profile, start, busy })
    }

    fn free_start(&self, gi: &GiState) -> Option<u32> {
        let starts = self.profile.places().iter().map(|place| place.start);
        let mut starts = starts.filter(|at| self.start.is_none_or(|start| start == *at));
        starts.find(|at| {
            gi.live_cis().all(|(_, ci)| ci.start + ci.size <= *at || at + self.profile.slices <= ci.start)
        })
    }
}

/// A profile by its whole name, else the plain one of the short name.
fn find<'a>(board: &Board<'a>, name: &str) -> Result<(u32, &'a Profile), Trouble> {
    let whole = board.profiles().find(|(_, profile)| profile.name.as_str() == name);
    if let Some(found) = whole.or_else(|| find_short(board.profiles(), name)) {
        return Ok(found);
    }
    if let Some((_, gi)) = name.split_once("c.") {
        return Err(Trouble::input(format!(
            "`{name}`: compute instances stand in brackets after their GPU instance, as in {gi}@0[1c]"
        )));
    }
    let names = join(board.profiles().map(|(_, profile)| profile.name.as_str()), " ");
    Err(Trouble::input(format!("no profile `{name}` on {}; it has {names}", board.model.name.as_str())))
}

/// The plain profile of a short name. Profiles lie by NVML's enumeration, in which the plain one comes before
/// the double-memory one.
fn find_short<'a>(
    mut profiles: impl Iterator<Item = (u32, &'a Profile)>,
    name: &str,
) -> Option<(u32, &'a Profile)> {
    profiles.find(|(_, profile)| short(profile.name.as_str()) == name)
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
    match find_short((0u32..).zip(model.profiles()), &name) {
        Some((index, _)) if index == gi.profile => name,
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
    match cis.as_slice() {
        [only] if profile.is_some_and(|profile| profile.slices == only.size) && gi.busy == 0 => {
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
