//! Layouts that a node itself gives: what it holds now, and what it could hold.

use crate::{
    diagnostic::{Diagnostic, Place},
    geometry::Geometry,
    layout::{Count, DeviceFilter, Indexes, Layout, Match, Name, Rule, Symbol, Unlisted, Wanted, Wins, Wish},
    node::{Gpu, GpuInstance, Node},
    profile::{Attribute, GiProfile},
    target::{indexes, models, symbolic},
};
use std::collections::BTreeMap;

/// What a node holds now, as a layout that, applied, changes nothing: every instance with its start and its compute
/// instances. GPUs that do not answer and those without MIG are not spoken of. For the `peer`'s form instances are
/// only counted and GPUs named by index, since it has no other words.
pub fn export(node: &Node, name: &str, peer: bool) -> Layout {
    let mut groups: Vec<(Wish, Vec<&Gpu>)> = Vec::new();
    for gpu in node.gpus.iter().filter(|gpu| gpu.mig.is_some()) {
        let wish = if gpu.mig_enabled() { Wish::On(held(gpu, !peer)) } else { Wish::Off };
        match groups.iter_mut().find(|(other, _)| *other == wish) {
            Some((_, gpus)) => gpus.push(gpu),
            None => groups.push((wish, vec![gpu])),
        }
    }
    let whole = groups.len() == 1 && node.unavailable.is_empty();
    let rule = |(wish, gpus): (Wish, Vec<&Gpu>)| {
        let uuids = gpus.iter().map(|gpu| (gpu.uuid.0.clone(), nowhere())).collect();
        let listed = gpus.iter().map(|gpu| (gpu.index, nowhere())).collect();
        let matches = match (whole, peer) {
            (true, _) => Match::default(),
            (false, false) => Match { uuids, ..Match::default() },
            (false, true) => Match { indexes: Some(Indexes::Listed(listed)), ..Match::default() },
        };
        rule(matches, wish)
    };
    let description = format!("what {} held when this was written", counted(&node.gpus));
    Layout { description: Some(description), ..layout(name, groups.into_iter().map(rule).collect()) }
}

fn held(gpu: &Gpu, starts: bool) -> Vec<Wanted> {
    let mut wanted: Vec<Wanted> = gpu.instances.iter().map(|instance| one(instance, starts)).collect();
    if !starts {
        wanted.sort_by_key(|wish| (wish.name, wish.split.clone()));
        wanted.dedup_by(|next, first| {
            let same = next.name == first.name && next.split.is_none() && first.split.is_none();
            if same && let Count::Just(count) = first.count {
                first.count = Count::Just(count + 1);
            }
            same
        });
    }
    wanted
}

fn one(instance: &GpuInstance, starts: bool) -> Wanted {
    let split = instance.split();
    let whole = split == [instance.profile.slices];
    Wanted {
        start: starts.then_some(instance.placement.start),
        split: (!whole).then_some(split),
        ..Wanted::just(Name::Exact(instance.profile.whole()), 1, &nowhere())
    }
}

/// How the generated layouts are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    off: &'static str,
    /// MIG on and empty; none in migd's own file, where it is rather a mistake.
    empty: Option<&'static str>,
    balanced: &'static str,
    largest: Option<&'static str>,
    /// Before a profile's name.
    profile: &'static str,
}

impl Names {
    /// None of a layout that ships, so that the file can stand beside those.
    pub const OWN: Names =
        Names { off: "no-mig", empty: None, balanced: "balanced", largest: Some("largest"), profile: "max-" };
    /// The peer's labels; its largest is one of a profile.
    pub const PEER: Names = Names {
        off: "all-disabled",
        empty: Some("all-enabled"),
        balanced: "all-balanced",
        largest: None,
        profile: "all-",
    };
}

/// Every layout that this node could have, with the names that its GPUs give their profiles: MIG off; each profile
/// as often as it fits; the symbols; and each mixture of plain profiles to which nothing can be added.
///
/// # Errors
/// `driver-error` for a GPU whose list of profiles cannot be one.
pub fn generate(node: &Node, names: Names) -> Result<Vec<Layout>, Vec<Diagnostic>> {
    let capable: Vec<&Gpu> = node.gpus.iter().filter(|gpu| gpu.mig.is_some()).collect();
    let mut kinds: Vec<(&Gpu, Vec<DeviceFilter>)> = Vec::new();
    for gpu in capable {
        let filter = DeviceFilter { device: gpu.pci_id.device, vendor: gpu.pci_id.vendor, subsystem: None };
        match kinds.iter_mut().find(|(other, _)| other.profiles == gpu.profiles) {
            Some((_, filters)) if filters.contains(&filter) => {}
            Some((_, filters)) => filters.push(filter),
            None => kinds.push((gpu, vec![filter])),
        }
    }
    let mut layouts: Vec<Layout> = Vec::new();
    let mut faults = Vec::new();
    let alone = kinds.len() == 1;
    let mut add = |name: String, filters: &[DeviceFilter], wish: Wish| {
        let filters = if alone { Vec::new() } else { filters.to_vec() };
        let rule = rule(Match { filters, ..Match::default() }, wish);
        match layouts.iter_mut().find(|layout| layout.name == name) {
            Some(layout) => layout.rules.push(rule),
            None => layouts.push(layout(&name, vec![rule])),
        }
    };
    for (_, filters) in &kinds {
        add(names.off.to_owned(), filters, Wish::Off);
    }
    for (_, filters) in &kinds {
        if let Some(empty) = names.empty {
            add(empty.to_owned(), filters, Wish::On(Vec::new()));
        }
    }
    for (gpu, filters) in &kinds {
        let symbols = [(Symbol::Balanced, Some(names.balanced)), (Symbol::Largest, names.largest)];
        for (symbol, name) in symbols {
            let Some(name) = name else { continue };
            let wanted = symbolic(gpu, &node.driver, symbol);
            let of = |w: &crate::target::WantedProfile| count(Name::Exact(w.profile), w.instances.len());
            add(name.to_owned(), filters, Wish::On(wanted.iter().map(of).collect()));
        }
        let geometry = match Geometry::of(gpu, &node.driver) {
            Ok(geometry) => geometry,
            Err(fault) => {
                faults.push(fault);
                continue;
            }
        };
        for profile in &gpu.profiles {
            let most = geometry.most(profile.id);
            if most > 0 {
                let wish = Wish::On(vec![count(Name::Exact(profile.name), most as usize)]);
                add(format!("{}{}", names.profile, profile.name).replace('+', "."), filters, wish);
            }
        }
        for mixture in mixtures(gpu, &geometry) {
            // One profile alone has its layout already.
            if mixture.len() < 2 {
                continue;
            }
            let word = |(profile, count): &(&GiProfile, usize)| match count {
                1 => format!("{}g", profile.slices),
                count => format!("{count}x{}g", profile.slices),
            };
            let words: Vec<String> = mixture.iter().map(word).collect();
            let wanted = mixture.iter().map(|(profile, n)| count(Name::Exact(profile.name), *n)).collect();
            add(format!("mix-{}", words.join("-")), filters, Wish::On(wanted));
        }
    }
    if faults.is_empty() { Ok(layouts) } else { Err(faults) }
}

/// The multisets of plain profiles to which no other can be added on this GPU, larger profiles first.
fn mixtures<'a>(gpu: &'a Gpu, geometry: &Geometry) -> Vec<Vec<(&'a GiProfile, usize)>> {
    // Of each number of slices the one with the least memory.
    let mut plain: Vec<&GiProfile> =
        gpu.profiles.iter().filter(|p| p.name.attribute == Attribute::Plain).collect();
    plain.sort_by_key(|profile| (std::cmp::Reverse(profile.slices), profile.memory_mib, profile.slot));
    plain.dedup_by_key(|profile| profile.slices);
    let ids: Vec<u32> = plain.iter().map(|profile| profile.id).collect();
    let mut all: Vec<Vec<usize>> = geometry
        .states(&ids)
        .iter()
        .map(|state| ids.iter().map(|id| state.iter().filter(|p| p.profile_id == *id).count()).collect())
        .collect();
    all.sort_unstable();
    all.dedup();
    let holds = |more: &Vec<usize>, less: &Vec<usize>| more.iter().zip(less).all(|(m, l)| m >= l);
    let maximal = all.iter().filter(|one| !all.iter().any(|other| other != *one && holds(other, one)));
    let mut maximal: Vec<&Vec<usize>> = maximal.collect();
    maximal.reverse();
    let named = |counts: &Vec<usize>| {
        plain.iter().copied().zip(counts.iter().copied()).filter(|(_, count)| *count > 0).collect()
    };
    maximal.into_iter().map(named).collect()
}

fn count(name: Name, count: usize) -> Wanted {
    Wanted::just(name, u32::try_from(count).unwrap_or(u32::MAX), &nowhere())
}

fn layout(name: &str, rules: Vec<Rule>) -> Layout {
    Layout {
        name: name.to_owned(),
        place: nowhere(),
        description: None,
        rules,
        wins: Wins::First,
        unlisted: Unlisted::Keep,
        notes: Vec::new(),
    }
}

fn rule(matches: Match, wish: Wish) -> Rule {
    Rule { place: nowhere(), matches, wish, pool: None, sharing: Vec::new() }
}

/// Of what nobody wrote.
fn nowhere() -> Place {
    Place { file: String::new(), line: 1, column: 1 }
}

/// `8 x A100-SXM4-40GB, 1 x T4 (GPU8)`.
fn counted(gpus: &[Gpu]) -> String {
    let mut kinds: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for gpu in gpus {
        kinds.entry(&gpu.model).or_default().push(gpu.index);
    }
    let several = kinds.len() > 1;
    let kind = |gpu: &Gpu| {
        let all = kinds.remove(gpu.model.as_str())?;
        let place = if several { format!(" ({})", indexes(all.iter().copied())) } else { String::new() };
        Some(format!("{} x {}{place}", all.len(), models(&[gpu])))
    };
    let words: Vec<String> = gpus.iter().filter_map(kind).collect();
    if words.is_empty() { "no GPU".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests;
