//! What a rule wants, in the profiles of one GPU.

use super::{WantedProfile, unknown::Unknown};
use crate::{
    diagnostic::Diagnostic,
    geometry::{Clash, Counts, Geometry, Placed, compute_places, compute_sizes},
    layout::{Count, Name, Symbol, Wanted},
    node::{Driver, Gpu},
    profile::{Attribute, GiProfile},
    reason::Reason,
};
use std::collections::BTreeMap;

/// The profile of that name, if its compute instance is one that can be had.
pub(super) fn find(gpu: &Gpu, name: Name) -> Option<&GiProfile> {
    let profile = name.find(&gpu.profiles)?;
    let compute = name.compute().unwrap_or(profile.slices);
    compute_sizes(profile.slices).any(|size| size == compute).then_some(profile)
}

/// Finds each name among the profiles of `gpu`; `None` if there was a fault.
pub(super) fn resolve(
    gpu: &Gpu,
    driver: &Driver,
    wanted: &[Wanted],
    unknown: &mut Unknown,
    faults: &mut Vec<Diagnostic>,
) -> Option<Vec<WantedProfile>> {
    let before = faults.len();
    let mut profiles: BTreeMap<u32, WantedProfile> = BTreeMap::new();
    let mut known = true;
    let mut fill = None;
    for wish in wanted {
        let Some(profile) = find(gpu, wish.name) else {
            unknown.add(gpu, wish);
            known = false;
            continue;
        };
        let entry = profiles.entry(profile.id).or_insert_with(|| none_of(profile));
        let split = wish.split.clone().unwrap_or_else(|| vec![profile.slices]);
        if compute_places(profile.slices, &[], &split).is_none() {
            faults.push(bad_split(gpu, wish, profile));
        }
        let count = match wish.count {
            Count::Just(count) => count,
            Count::Max => {
                fill = Some((wish, profile, split));
                continue;
            }
        };
        match (wish.start, wish.name.compute()) {
            (Some(start), _) => {
                if !profile.placements.iter().any(|place| place.start == start) {
                    faults.push(bad_start(gpu, wish, profile, start));
                }
                entry.placed.push((start, split));
            }
            (None, None) => entry.instances.extend((0..count).map(|_| split.clone())),
            (None, Some(compute)) => entry.loose.extend((0..count).map(|_| compute)),
        }
        entry.loose.sort_unstable_by(|a, b| b.cmp(a));
    }
    if !known || faults.len() > before {
        return None;
    }
    let mut wanted: Vec<WantedProfile> = profiles.into_values().collect();
    overlap(gpu, driver, &wanted).into_iter().for_each(|fault| faults.push(fault));
    if let Some((wish, profile, split)) = fill {
        let count = room(gpu, driver, &wanted, profile.id);
        if count == 0 {
            let message = format!("not one {} fits beside the others", profile.name);
            let fault = Diagnostic::error(Reason::LayoutUnplaceable, message).on_gpu(gpu.index);
            faults.push(fault.at(Some(wish.place.clone())).help("take away one of the others, or 'max'"));
        }
        if let Some(entry) = wanted.iter_mut().find(|entry| entry.profile_id == profile.id) {
            entry.instances.extend((0..count).map(|_| split.clone()));
        }
    }
    wanted.retain(|entry| !entry.instances.is_empty() || !entry.loose.is_empty() || !entry.placed.is_empty());
    (faults.len() == before).then_some(wanted)
}

fn none_of(profile: &GiProfile) -> WantedProfile {
    let (profile_id, profile) = (profile.id, profile.name);
    WantedProfile { profile_id, profile, instances: Vec::new(), loose: Vec::new(), placed: Vec::new() }
}

/// What a symbol means on this GPU; none if it has no profile for it.
pub(crate) fn symbolic(gpu: &Gpu, driver: &Driver, symbol: Symbol) -> Vec<WantedProfile> {
    let plain = |p: &&GiProfile| p.name.attribute == Attribute::Plain;
    // The least memory of those of so many slices.
    let of = |slices: u32| {
        let own = gpu.profiles.iter().filter(plain).filter(|p| p.slices == slices);
        own.min_by_key(|p| (p.placements.iter().map(|p| p.size).max(), p.memory_mib, p.slot))
    };
    let sizes = || gpu.profiles.iter().filter(plain).map(|p| p.slices);
    let (Some(most), Some(least)) = (sizes().max(), sizes().min()) else { return Vec::new() };
    let chosen: Vec<&GiProfile> = match symbol {
        Symbol::Largest => of(most).into_iter().collect(),
        Symbol::Smallest => of(least)
            .into_iter()
            .flat_map(|p| std::iter::repeat_n(p, room(gpu, driver, &[none_of(p)], p.id) as usize))
            .collect(),
        Symbol::Balanced => {
            let mut left = most;
            let mut chosen = Vec::new();
            while left > 0 {
                // Half of what is left, rounded down; the last slice as itself.
                let half = (left / 2).max(1);
                let Some(profile) = (1..=half).rev().find_map(of) else { break };
                left -= profile.slices;
                chosen.push(profile);
            }
            chosen
        }
    };
    let mut wanted: BTreeMap<u32, WantedProfile> = BTreeMap::new();
    for profile in chosen {
        let entry = wanted.entry(profile.id).or_insert_with(|| none_of(profile));
        entry.instances.push(vec![profile.slices]);
    }
    wanted.into_values().collect()
}

/// How many more of a profile fit beside what is wanted.
fn room(gpu: &Gpu, driver: &Driver, wanted: &[WantedProfile], profile_id: u32) -> u32 {
    let Ok(geometry) = Geometry::of(gpu, driver) else { return 0 };
    let mut counts = Counts::default();
    let mut fixed = Vec::new();
    for entry in wanted {
        let Some(shape) = geometry.shape_of(entry.profile_id) else { continue };
        if let Some(count) = counts.get_mut(shape) {
            *count = u8::try_from(entry.instances.len() + entry.placed.len()).unwrap_or(u8::MAX);
        }
        fixed.extend(placed(gpu, entry).filter_map(|p| geometry.spot_of(p.profile_id, p.placement)));
    }
    let Some(shape) = geometry.shape_of(profile_id) else { return 0 };
    let fits = |more: &u32| {
        let mut counts = counts;
        if let Some(count) = counts.get_mut(shape) {
            *count = count.saturating_add(u8::try_from(*more).unwrap_or(u8::MAX));
        }
        geometry.affordable(&counts).is_ok() && geometry.placements(&counts, &fixed, |_| false)
    };
    (1..=geometry.most(profile_id)).take_while(fits).last().unwrap_or(0)
}

/// The instances whose start is written.
fn placed<'a>(gpu: &'a Gpu, entry: &'a WantedProfile) -> impl Iterator<Item = Placed> + 'a {
    let profile = gpu.profile(entry.profile_id);
    entry.placed.iter().filter_map(move |(start, _)| {
        let placement = *profile?.placements.iter().find(|place| place.start == *start)?;
        Some(Placed { placement, profile_id: entry.profile_id, profile: entry.profile })
    })
}

/// Whether the written starts exclude each other.
fn overlap(gpu: &Gpu, driver: &Driver, wanted: &[WantedProfile]) -> Option<Diagnostic> {
    let mut state: Vec<Placed> = wanted.iter().flat_map(|entry| placed(gpu, entry)).collect();
    if state.len() < 2 {
        return None;
    }
    state.sort_unstable();
    let clash: Clash = Geometry::of(gpu, driver).ok()?.legal(&state).err()?;
    let message = format!("the written starts exclude each other: {clash}");
    let help = "leave the starts out, and places are found for all that fit together";
    Some(Diagnostic::error(Reason::LayoutUnplaceable, message).on_gpu(gpu.index).help(help))
}

fn bad_start(gpu: &Gpu, wish: &Wanted, profile: &GiProfile, start: u32) -> Diagnostic {
    let mut starts: Vec<u32> = profile.placements.iter().map(|place| place.start).collect();
    starts.sort_unstable();
    let nearest = starts.iter().min_by_key(|other| other.abs_diff(start)).copied();
    let list: Vec<String> = starts.iter().map(ToString::to_string).collect();
    let message = format!("{} cannot begin at {start}", profile.name);
    Diagnostic::error(Reason::LayoutUnplaceable, message)
        .on_gpu(gpu.index)
        .at(Some(wish.place.clone()))
        .near(nearest.map(|start| format!("{}@{start}", wish.name)).into_iter().collect())
        .help(format!("it can begin at {}", list.join(", ")))
}

fn bad_split(gpu: &Gpu, wish: &Wanted, profile: &GiProfile) -> Diagnostic {
    let split = wish.split.as_deref().unwrap_or_default();
    let parts: Vec<String> = split.iter().map(|size| format!("{size}c")).collect();
    let sizes: Vec<String> = compute_sizes(profile.slices).map(|size| format!("{size}c")).collect();
    let message = format!("{} cannot be split into {}", profile.name, parts.join(", "));
    Diagnostic::error(Reason::LayoutUnplaceable, message).on_gpu(gpu.index).at(Some(wish.place.clone())).help(
        format!("its compute instances are of {}, together at most {}", sizes.join(", "), profile.slices),
    )
}
