//! From rules to GPUs. The last rule that selects a GPU decides about it, as with the peer.

use super::{Blocked, GpuTarget, Target, WantedProfile};
use crate::{
    diagnostic::Diagnostic,
    geometry::compute_sizes,
    layout::{Devices, Layout, Rule, Wanted, Wish},
    near,
    node::{Gpu, Node, ProfileSource, UnavailableGpu},
    profile::{GiProfile, ProfileName},
    reason::Reason,
};
use std::collections::BTreeMap;

/// Finds what `layout` wants of each GPU of `node`.
///
/// # Errors
/// Every fault: `index-out-of-range`, `mig-unsupported`, `profile-unknown` (once for each name and group of
/// like GPUs), `driver-too-old` where nobody knows the profiles of a GPU, `no-gpu-matched`.
pub fn resolve(layout: &Layout, node: &Node) -> Result<Target, Vec<Diagnostic>> {
    let mut faults = Vec::new();
    let mut notes = layout.notes.clone();
    // By index: the rule that decides.
    let mut decided: BTreeMap<u32, &Rule> = BTreeMap::new();
    for rule in &layout.rules {
        let selected = select(rule, node, &mut faults);
        if selected.is_empty() && !layout.rules.is_empty() {
            notes.push(
                Diagnostic::note(Reason::NoGpuMatched, no_match(rule, node)).at(Some(rule.place.clone())),
            );
        }
        decided.extend(selected.into_iter().map(|index| (index, rule)));
    }
    if decided.is_empty() && faults.is_empty() {
        let message = format!("none of the entries of '{}' matches a GPU of this node", layout.name);
        let help = match models(&node.gpus.iter().collect::<Vec<_>>()) {
            models if models.is_empty() => "this node has no GPU that answers".to_owned(),
            models => format!("this node has {models}"),
        };
        faults
            .push(Diagnostic::error(Reason::NoGpuMatched, message).at(Some(layout.place.clone())).help(help));
    }

    let mut target = Target {
        layout: layout.name.clone(),
        gpus: Vec::new(),
        blocked: Vec::new(),
        untouched: Vec::new(),
        notes: Vec::new(),
    };
    let mut unknown = Unknown::default();
    for gpu in &node.gpus {
        let Some(rule) = decided.get(&gpu.index) else {
            target.untouched.push(gpu.index);
            continue;
        };
        if gpu.mig.is_none() {
            without_mig(gpu, rule, &mut faults, &mut notes);
        } else if let Some(resolved) = resolve_gpu(gpu, rule, &mut unknown, &mut faults) {
            target.gpus.push(resolved);
        }
    }
    target.blocked =
        node.unavailable.iter().filter_map(|gpu| blocked(gpu, decided.get(&gpu.index)?)).collect();
    faults.extend(unknown.faults(node));
    if !faults.is_empty() {
        faults.sort_by_key(|fault| fault.place.as_ref().map(|place| (place.line, place.column)));
        return Err(faults);
    }
    notes.extend(uncovered(&target.untouched));
    target.notes = notes;
    Ok(target)
}

/// The indexes of the GPUs that a rule selects, those that do not answer among them.
fn select(rule: &Rule, node: &Node, faults: &mut Vec<Diagnostic>) -> Vec<u32> {
    let matches = |gpu: &Gpu| rule.filters.is_empty() || rule.filters.iter().any(|f| f.matches(gpu.pci_id));
    match &rule.devices {
        Devices::All => {
            let capable =
                node.gpus.iter().filter(|gpu| gpu.mig.is_some() && matches(gpu)).map(|gpu| gpu.index);
            // What a GPU that does not answer is cannot be told, so it is among all.
            capable.chain(node.unavailable.iter().map(|gpu| gpu.index)).collect()
        }
        Devices::Indexes(indexes) => {
            let mut selected = Vec::new();
            for (index, place) in indexes {
                let gpu = node.gpus.iter().find(|gpu| gpu.index == *index);
                let unavailable = node.unavailable.iter().any(|gpu| gpu.index == *index);
                match gpu {
                    Some(gpu) if matches(gpu) => selected.push(*index),
                    Some(_) => {}
                    None if unavailable => selected.push(*index),
                    None => faults.push(out_of_range(*index, node).at(Some(place.clone()))),
                }
            }
            selected
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

fn no_match(rule: &Rule, node: &Node) -> String {
    let filters: Vec<String> = rule.filters.iter().map(ToString::to_string).collect();
    match (&rule.devices, filters.as_slice()) {
        (_, []) if node.gpus.is_empty() => "this node has no GPU that answers".to_owned(),
        (_, []) => "this entry matches no GPU: none of this node can do MIG".to_owned(),
        (_, [one]) => format!("this entry matches no GPU: none is {one}"),
        (_, many) => format!("this entry matches no GPU: none is one of {}", many.join(", ")),
    }
}

/// A GPU without MIG can only have been named by its index.
fn without_mig(gpu: &Gpu, rule: &Rule, faults: &mut Vec<Diagnostic>, notes: &mut Vec<Diagnostic>) {
    let place = match &rule.devices {
        Devices::Indexes(indexes) => indexes.iter().find(|(index, _)| *index == gpu.index).map(|(_, p)| p),
        Devices::All => None,
    };
    let place = Some(place.unwrap_or(&rule.place).clone());
    let message = format!("{} cannot do MIG", short_model(&gpu.model));
    match rule.wish {
        Wish::On(_) => {
            let help = "leave it out of 'devices'; 'all' means those that can";
            faults.push(
                Diagnostic::error(Reason::MigUnsupported, message).on_gpu(gpu.index).at(place).help(help),
            );
        }
        Wish::Off => {
            let note = Diagnostic::note(
                Reason::MigUnsupported,
                format!("{message}, so there is nothing to switch off"),
            );
            notes.push(note.on_gpu(gpu.index).at(place));
        }
    }
}

fn blocked(gpu: &UnavailableGpu, rule: &Rule) -> Option<Blocked> {
    let diagnostic = Diagnostic::error(gpu.reason, gpu.message.clone()).on_gpu(gpu.index);
    Some(Blocked { index: gpu.index, diagnostic: diagnostic.at(Some(rule.place.clone())) })
}

fn resolve_gpu(
    gpu: &Gpu,
    rule: &Rule,
    unknown: &mut Unknown,
    faults: &mut Vec<Diagnostic>,
) -> Option<GpuTarget> {
    let wanted = match &rule.wish {
        Wish::Off => Vec::new(),
        Wish::On(wanted) => {
            if !wanted.is_empty() && gpu.profiles.is_empty() {
                let message = format!(
                    "nobody knows the profiles of {}: its driver lists none and the table does not have it",
                    short_model(&gpu.model)
                );
                let help =
                    "switch MIG on first with a layout that asks for no instances, then apply this one";
                faults.push(
                    Diagnostic::error(Reason::DriverTooOld, message)
                        .on_gpu(gpu.index)
                        .at(Some(rule.place.clone()))
                        .help(help),
                );
                return None;
            }
            resolve_wanted(gpu, wanted, unknown)?
        }
    };
    Some(GpuTarget {
        index: gpu.index,
        uuid: gpu.uuid.clone(),
        place: rule.place.clone(),
        mig: matches!(rule.wish, Wish::On(_)),
        provisional: !wanted.is_empty() && gpu.profiles_from == ProfileSource::Table,
        wanted,
    })
}

fn resolve_wanted(gpu: &Gpu, wanted: &[Wanted], unknown: &mut Unknown) -> Option<Vec<WantedProfile>> {
    let mut profiles: BTreeMap<u32, WantedProfile> = BTreeMap::new();
    let mut known = true;
    for wish in wanted {
        let Some(profile) = find(gpu, wish.name) else {
            unknown.add(gpu, wish);
            known = false;
            continue;
        };
        let entry = profiles.entry(profile.id).or_insert_with(|| WantedProfile {
            profile_id: profile.id,
            profile: profile.name,
            instances: Vec::new(),
            loose: Vec::new(),
        });
        match wish.name.compute {
            None => entry.instances.extend((0..wish.count).map(|_| vec![profile.slices])),
            Some(compute) => entry.loose.extend((0..wish.count).map(|_| compute)),
        }
        entry.loose.sort_unstable_by(|a, b| b.cmp(a));
    }
    known.then(|| profiles.into_values().collect())
}

/// The profile of that name, if its compute instance is one that can be had.
fn find(gpu: &Gpu, name: ProfileName) -> Option<&GiProfile> {
    let profile = gpu.profiles.iter().find(|profile| profile.name == name.whole())?;
    let compute = name.compute.unwrap_or(profile.slices);
    compute_sizes(profile.slices).any(|size| size == compute).then_some(profile)
}

/// Names that GPUs do not have: one fault for each name and group of GPUs with the same profiles.
#[derive(Default)]
struct Unknown {
    groups: Vec<(Wanted, Vec<u32>)>,
}

impl Unknown {
    fn add(&mut self, gpu: &Gpu, wish: &Wanted) {
        match self.groups.iter_mut().find(|(other, _)| other == wish) {
            Some((_, indexes)) => indexes.push(gpu.index),
            None => self.groups.push((wish.clone(), vec![gpu.index])),
        }
    }

    fn faults(self, node: &Node) -> Vec<Diagnostic> {
        let mut faults = Vec::new();
        for (wish, indexes) in self.groups {
            let gpus: Vec<&Gpu> = node.gpus.iter().filter(|gpu| indexes.contains(&gpu.index)).collect();
            let mut likes: Vec<Vec<&Gpu>> = Vec::new();
            for gpu in gpus {
                let names = |gpu: &Gpu| gpu.profiles.iter().map(|p| p.name).collect::<Vec<_>>();
                let same = |group: &&mut Vec<&Gpu>| group.first().is_some_and(|g| names(g) == names(gpu));
                match likes.iter_mut().find(same) {
                    Some(group) => group.push(gpu),
                    None => likes.push(vec![gpu]),
                }
            }
            faults.extend(likes.iter().filter_map(|group| unknown(&wish, group)));
        }
        faults
    }
}

fn unknown(wish: &Wanted, group: &[&Gpu]) -> Option<Diagnostic> {
    let gpu = group.first()?;
    let verb = if group.len() == 1 { "has" } else { "have" };
    let message = format!(
        "{} ({}) {verb} no profile {}",
        indexes(group.iter().map(|g| g.index)),
        models(group),
        wish.name
    );
    let mut names: Vec<ProfileName> = gpu.profiles.iter().map(|p| p.name).collect();
    names.sort_unstable();
    let list: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut help = format!("its profiles are {}", list.join(", "));
    let whole = gpu.profiles.iter().find(|p| p.name == wish.name.whole());
    let near = match whole {
        // The profile is there, but not with compute instances of that size.
        Some(profile) => {
            let sizes: Vec<String> = compute_sizes(profile.slices)
                .map(|size| profile.name.with_compute(size).to_string())
                .collect();
            help = format!("an instance of {} is split into {}", profile.name, sizes.join(", "));
            near::words(&wish.name.to_string(), sizes.iter().map(String::as_str))
        }
        None => near::profiles(wish.name, names),
    };
    let fault = Diagnostic::error(Reason::ProfileUnknown, message).at(Some(wish.place.clone()));
    let fault = if group.len() == 1 { fault.on_gpu(gpu.index) } else { fault };
    Some(fault.near(near).help(help))
}

/// The GPUs that no rule selects, as one note.
fn uncovered(untouched: &[u32]) -> Option<Diagnostic> {
    let (first, rest) = untouched.split_first()?;
    let verb = if rest.is_empty() { "is" } else { "are" };
    let message =
        format!("{} {verb} not covered by the layout: unchanged", indexes(untouched.iter().copied()));
    let note = Diagnostic::note(Reason::NoGpuMatched, message);
    Some(if rest.is_empty() { note.on_gpu(*first) } else { note })
}

/// `GPU0`, `GPU0-3`, `GPU0-3, 5`.
pub(crate) fn indexes(all: impl IntoIterator<Item = u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for index in all {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            _ => ranges.push((index, index)),
        }
    }
    let text: Vec<String> = ranges
        .iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect();
    format!("GPU{}", text.join(", "))
}

/// The models of these GPUs, each once.
fn models(gpus: &[&Gpu]) -> String {
    let mut models: Vec<&str> = Vec::new();
    for gpu in gpus {
        let model = short_model(&gpu.model);
        if !models.contains(&model) {
            models.push(model);
        }
    }
    models.join(", ")
}

/// A model without its maker.
pub(crate) fn short_model(model: &str) -> &str {
    model.strip_prefix("NVIDIA ").unwrap_or(model)
}
