//! Which GPUs of a node a rule selects.

use crate::{
    diagnostic::{Diagnostic, Place},
    layout::{Indexes, Layout, Match, Rule, Wins},
    node::{Gpu, Node, UnavailableGpu},
    reason::Reason,
};

/// The indexes of the GPUs that a rule selects, those that do not answer among them.
pub(super) fn select(rule: &Rule, node: &Node, faults: &mut Vec<Diagnostic>) -> Vec<u32> {
    let matches = &rule.matches;
    let halves = Halves::of(node);
    if let Some(Indexes::Listed(indexes)) = &matches.indexes {
        for (index, place) in indexes {
            let known = node.gpus.iter().map(|gpu| gpu.index);
            if !known.chain(node.unavailable.iter().map(|gpu| gpu.index)).any(|other| other == *index) {
                faults.push(out_of_range(*index, node).at(Some(place.clone())));
            }
        }
    }
    let answering = node.gpus.iter().filter(|gpu| {
        // A GPU without MIG is selected only where it is named itself.
        let named = !matches.uuids.is_empty() || !matches.pci.is_empty() || !matches.minors.is_empty();
        let meant = gpu.mig.is_some() || named || matches!(matches.indexes, Some(Indexes::Listed(_)));
        meant && holds(matches, gpu, &halves)
    });
    let lost = node.unavailable.iter().filter(|gpu| may_hold(matches, gpu, &halves));
    let mut all: Vec<u32> = answering.map(|gpu| gpu.index).chain(lost.map(|gpu| gpu.index)).collect();
    all.sort_unstable();
    all
}

/// Whether all criteria but the profiles hold.
pub(super) fn holds_but_for_profiles(matches: &Match, gpu: &Gpu, node: &Node) -> bool {
    let without = Match { profiles: Vec::new(), ..matches.clone() };
    gpu.mig.is_some() && holds(&without, gpu, &Halves::of(node))
}

fn any<T>(list: &[T], test: impl Fn(&T) -> bool) -> bool {
    list.is_empty() || list.iter().any(test)
}

fn holds(matches: &Match, gpu: &Gpu, halves: &Halves) -> bool {
    holds_pci(matches, gpu)
        && halves.holds(matches, gpu.index)
        && any(&matches.models, |model| model.matches(&gpu.model))
        && any(&matches.uuids, |(uuid, _)| *uuid == gpu.uuid.0)
        && any(&matches.minors, |(minor, _)| gpu.minor == Some(*minor))
        && any(&matches.profiles, |wish| super::wanted::find(gpu, wish.name).is_some())
}

/// Addresses and ids stand in one list, of which one must hold.
fn holds_pci(matches: &Match, gpu: &Gpu) -> bool {
    matches.filters.is_empty() && matches.pci.is_empty()
        || matches.filters.iter().any(|filter| filter.matches(gpu.pci_id))
        || matches.pci.iter().any(|(pci, _)| *pci == gpu.pci)
}

/// What cannot be told of a GPU that does not answer counts as holding: it may be meant.
fn may_hold(matches: &Match, gpu: &UnavailableGpu, halves: &Halves) -> bool {
    halves.holds(matches, gpu.index)
        && any(&matches.uuids, |(uuid, _)| gpu.uuid.as_ref().is_none_or(|own| own.0 == *uuid))
        && (!matches.filters.is_empty()
            || any(&matches.pci, |(pci, _)| gpu.pci.is_none_or(|own| own == *pci)))
}

/// The node's GPUs that can do MIG, in two halves by index. Those that do not answer count, so that a lost GPU
/// does not shift the others.
struct Halves {
    first: Vec<u32>,
    second: Vec<u32>,
}

impl Halves {
    fn of(node: &Node) -> Halves {
        let capable = node.gpus.iter().filter(|gpu| gpu.mig.is_some()).map(|gpu| gpu.index);
        let mut all: Vec<u32> = capable.chain(node.unavailable.iter().map(|gpu| gpu.index)).collect();
        all.sort_unstable();
        let second = all.split_off(all.len() / 2);
        Halves { first: all, second }
    }

    fn holds(&self, matches: &Match, index: u32) -> bool {
        match &matches.indexes {
            None => true,
            Some(Indexes::Listed(listed)) => listed.iter().any(|(other, _)| *other == index),
            Some(Indexes::FirstHalf) => self.first.contains(&index),
            Some(Indexes::SecondHalf) => self.second.contains(&index),
        }
    }
}

fn out_of_range(index: u32, node: &Node) -> Diagnostic {
    let have = node.gpus.iter().map(|gpu| gpu.index).chain(node.unavailable.iter().map(|gpu| gpu.index));
    let help = match have.max() {
        None => "this node has no GPU".to_owned(),
        Some(0) => "its only GPU is 0".to_owned(),
        Some(last) => format!("its GPUs are 0 to {last}"),
    };
    Diagnostic::error(Reason::IndexOutOfRange, format!("this node has no GPU {index}")).help(help)
}

/// The note that a rule selects nothing.
pub(super) fn no_match(rule: &Rule, layout: &Layout, node: &Node) -> Diagnostic {
    let what = match layout.wins {
        Wins::First => "rule",
        Wins::Last => "entry",
    };
    let matches = &rule.matches;
    let criteria: Vec<String> = (matches.filters.iter().map(ToString::to_string))
        .chain(matches.models.iter().map(ToString::to_string))
        .chain(matches.uuids.iter().map(|(uuid, _)| uuid.clone()))
        .chain(matches.pci.iter().map(|(pci, _)| pci.to_string()))
        .chain(matches.minors.iter().map(|(minor, _)| format!("/dev/nvidia{minor}")))
        .collect();
    let message = match criteria.as_slice() {
        _ if node.gpus.is_empty() => "this node has no GPU that answers".to_owned(),
        _ if !matches.profiles.is_empty() => {
            let names: Vec<String> = matches.profiles.iter().map(|wish| wish.name.to_string()).collect();
            format!("this {what} matches no GPU: none has {}", names.join(" or "))
        }
        [] if matches.is_all() => format!("this {what} matches no GPU: none of this node can do MIG"),
        [] => format!("this {what} matches no GPU of this node"),
        [one] => format!("this {what} matches no GPU: none is {one}"),
        many => format!("this {what} matches no GPU: none is one of {}", many.join(", ")),
    };
    Diagnostic::note(Reason::NoGpuMatched, message).at(Some(rule.place.clone()))
}

/// GPUs that a rule names one by one and that are not here, each as a warning: the file may be for several nodes.
pub(super) fn not_here(rule: &Rule, node: &Node) -> Vec<Diagnostic> {
    let matches = &rule.matches;
    let mut warnings = Vec::new();
    let mut warn = |what: String, place: &Place| {
        let message = format!("this node has no GPU {what}");
        warnings.push(Diagnostic::warning(Reason::NoGpuMatched, message).at(Some(place.clone())));
    };
    let lost = &node.unavailable;
    for (uuid, place) in &matches.uuids {
        let here = node.gpus.iter().any(|gpu| gpu.uuid.0 == *uuid);
        if !here && !lost.iter().any(|gpu| gpu.uuid.as_ref().is_none_or(|own| own.0 == *uuid)) {
            warn(uuid.clone(), place);
        }
    }
    for (pci, place) in &matches.pci {
        let here = node.gpus.iter().any(|gpu| gpu.pci == *pci);
        if !here && !lost.iter().any(|gpu| gpu.pci.is_none_or(|own| own == *pci)) {
            warn(format!("at {pci}"), place);
        }
    }
    for (minor, place) in &matches.minors {
        if lost.is_empty() && !node.gpus.iter().any(|gpu| gpu.minor == Some(*minor)) {
            warn(format!("with the minor {minor}"), place);
        }
    }
    warnings
}

/// Where a rule names a GPU itself.
pub(super) fn place_of<'a>(rule: &'a Rule, gpu: &Gpu) -> &'a Place {
    let matches = &rule.matches;
    let by_index = match &matches.indexes {
        Some(Indexes::Listed(indexes)) => indexes.iter().find(|(index, _)| *index == gpu.index),
        _ => None,
    };
    let place = by_index.map(|(_, place)| place);
    let uuid = || matches.uuids.iter().find(|(uuid, _)| *uuid == gpu.uuid.0).map(|(_, place)| place);
    let pci = || matches.pci.iter().find(|(pci, _)| *pci == gpu.pci).map(|(_, place)| place);
    place.or_else(uuid).or_else(pci).unwrap_or(&rule.place)
}
