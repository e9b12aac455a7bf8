//! From rules to GPUs. Which of several rules that select a GPU decides about it is the layout's.

use super::{
    Blocked, GpuTarget, Target,
    select::{holds_but_for_profiles, no_match, not_here, place_of, select},
    unknown::Unknown,
    wanted,
};
use crate::{
    diagnostic::{Diagnostic, Place},
    layout::{Layout, Rule, Unlisted, Wins, Wish},
    node::{Gpu, Node, ProfileSource, UnavailableGpu},
    reason::Reason,
};
use std::collections::BTreeMap;

/// Finds what `layout` wants of each GPU of `node`.
///
/// # Errors
/// Every fault: `index-out-of-range`, `mig-unsupported`, `profile-unknown` (once for each name and group of
/// like GPUs), `layout-unplaceable` for starts and splits that a GPU does not have, `driver-too-old` where nobody
/// knows the profiles of a GPU, `gpu-unlisted`, `no-gpu-matched`.
pub fn resolve(layout: &Layout, node: &Node) -> Result<Target, Vec<Diagnostic>> {
    let mut faults = Vec::new();
    let mut notes = layout.notes.clone();
    // By index: the rule that decides.
    let mut decided: BTreeMap<u32, &Rule> = BTreeMap::new();
    for rule in &layout.rules {
        let selected = select(rule, node, &mut faults);
        if selected.is_empty() {
            notes.push(no_match(rule, layout, node));
        }
        notes.extend(not_here(rule, node));
        for index in selected {
            match layout.wins {
                Wins::First => {
                    decided.entry(index).or_insert(rule);
                }
                Wins::Last => {
                    decided.insert(index, rule);
                }
            }
        }
    }
    let mut unknown = Unknown::default();
    let disables = layout.unlisted == Unlisted::Disable && node.gpus.iter().any(|gpu| gpu.mig.is_some());
    if decided.is_empty() && faults.is_empty() && !disables {
        nothing_matches(layout, node, &mut unknown, &mut faults);
    }

    let mut target = Target {
        layout: layout.name.clone(),
        gpus: Vec::new(),
        blocked: Vec::new(),
        untouched: Vec::new(),
        notes: Vec::new(),
    };
    for gpu in &node.gpus {
        match decided.get(&gpu.index) {
            Some(rule) if gpu.mig.is_none() => without_mig(gpu, rule, layout, &mut faults, &mut notes),
            Some(rule) => {
                let resolved = resolve_gpu(gpu, node, rule, &mut unknown, &mut faults);
                target.gpus.extend(resolved);
                notes.extend(sharing(gpu, rule));
            }
            None if layout.unlisted == Unlisted::Disable && gpu.mig.is_some() => {
                target.gpus.push(switched_off(gpu, &layout.place));
            }
            None => target.untouched.push(gpu.index),
        }
    }
    target.blocked =
        node.unavailable.iter().filter_map(|gpu| blocked(gpu, decided.get(&gpu.index)?)).collect();
    faults.extend(unknown.faults(node));
    faults.extend(unlisted(layout, node, &target.untouched));
    if !faults.is_empty() {
        faults.sort_by_key(|fault| fault.place.as_ref().map(|place| (place.line, place.column)));
        return Err(faults);
    }
    notes.extend(uncovered(&target.untouched));
    target.notes = notes;
    Ok(target)
}

/// Why no rule selects anything: the profiles that rules ask for, if that is all that is missing.
fn nothing_matches(layout: &Layout, node: &Node, unknown: &mut Unknown, faults: &mut Vec<Diagnostic>) {
    let mut told = false;
    for rule in &layout.rules {
        for gpu in node.gpus.iter().filter(|gpu| holds_but_for_profiles(&rule.matches, gpu, node)) {
            for wish in &rule.matches.profiles {
                told = true;
                if gpu.profiles.is_empty() {
                    faults.push(nobody_knows(gpu, rule));
                } else {
                    unknown.add(gpu, wish);
                }
            }
        }
    }
    if told {
        return;
    }
    let message = format!("none of the entries of '{}' matches a GPU of this node", layout.name);
    let help = match models(&node.gpus.iter().collect::<Vec<_>>()) {
        models if models.is_empty() => "this node has no GPU that answers".to_owned(),
        models => format!("this node has {models}"),
    };
    faults.push(Diagnostic::error(Reason::NoGpuMatched, message).at(Some(layout.place.clone())).help(help));
}

/// The refusal of a node with GPUs that the layout does not speak of, where it says so.
fn unlisted(layout: &Layout, node: &Node, untouched: &[u32]) -> Option<Diagnostic> {
    let capable = |index: &u32| node.gpus.iter().any(|gpu| gpu.index == *index && gpu.mig.is_some());
    let missing: Vec<u32> = untouched.iter().copied().filter(capable).collect();
    if layout.unlisted != Unlisted::Error || missing.is_empty() {
        return None;
    }
    let verb = if missing.len() == 1 { "is" } else { "are" };
    let message =
        format!("{} {verb} not covered by '{}', which says 'unlisted: error'", indexes(missing), layout.name);
    let fault = Diagnostic::error(Reason::GpuUnlisted, message).at(Some(layout.place.clone()));
    Some(fault.help("add a rule for them, or write 'unlisted: keep' or 'unlisted: disable'"))
}

/// That programs are to share what this GPU holds, which nothing here can bring about yet.
fn sharing(gpu: &Gpu, rule: &Rule) -> Option<Diagnostic> {
    let first = rule.sharing.first()?;
    let message = "sharing is checked, and not set up by this version";
    let warning = Diagnostic::warning(Reason::SharingUnavailable, message).on_gpu(gpu.index);
    Some(warning.at(Some(first.place.clone())).help("remove 'sharing' to apply the layout"))
}

/// A GPU without MIG can only have been named itself.
fn without_mig(
    gpu: &Gpu,
    rule: &Rule,
    layout: &Layout,
    faults: &mut Vec<Diagnostic>,
    notes: &mut Vec<Diagnostic>,
) {
    let place = Some(place_of(rule, gpu).clone());
    let message = format!("{} cannot do MIG", short_model(&gpu.model));
    match rule.wish {
        Wish::On(_) | Wish::Symbolic(_) => {
            let help = match layout.wins {
                Wins::First => "leave it out of 'match'; 'match: all' means those that can",
                Wins::Last => "leave it out of 'devices'; 'all' means those that can",
            };
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

fn nobody_knows(gpu: &Gpu, rule: &Rule) -> Diagnostic {
    let message = format!(
        "nobody knows the profiles of {}: its driver lists none and the table does not have it",
        short_model(&gpu.model)
    );
    let help = "switch MIG on first with a layout that asks for no instances, then apply this one";
    Diagnostic::error(Reason::DriverTooOld, message).on_gpu(gpu.index).at(Some(rule.place.clone())).help(help)
}

fn switched_off(gpu: &Gpu, place: &Place) -> GpuTarget {
    let (index, uuid, place) = (gpu.index, gpu.uuid.clone(), place.clone());
    GpuTarget { index, uuid, place, mig: false, wanted: Vec::new(), provisional: false }
}

fn resolve_gpu(
    gpu: &Gpu,
    node: &Node,
    rule: &Rule,
    unknown: &mut Unknown,
    faults: &mut Vec<Diagnostic>,
) -> Option<GpuTarget> {
    let empty = matches!(&rule.wish, Wish::On(wanted) if wanted.is_empty());
    if gpu.profiles.is_empty() && rule.wish != Wish::Off && !(empty && rule.pool.is_none()) {
        faults.push(nobody_knows(gpu, rule));
        return None;
    }
    let pooled = rule.pool.iter().flat_map(|pool| &pool.profiles);
    let shared = rule.sharing.iter().filter_map(|sharing| sharing.profile.as_ref());
    for wish in pooled.chain(shared) {
        if wanted::find(gpu, wish.name).is_none() {
            unknown.add(gpu, wish);
        }
    }
    let wanted = match &rule.wish {
        Wish::Off => Vec::new(),
        Wish::On(wanted) => wanted::resolve(gpu, &node.driver, wanted, unknown, faults)?,
        Wish::Symbolic(symbol) => {
            let wanted = wanted::symbolic(gpu, &node.driver, *symbol);
            if wanted.is_empty() {
                let message =
                    format!("{} has no plain profile for '{}'", short_model(&gpu.model), symbol.word());
                let fault = Diagnostic::error(Reason::ProfileUnknown, message).on_gpu(gpu.index);
                let help = "name its profiles, as `migctl status --json` lists them";
                faults.push(fault.at(Some(rule.place.clone())).help(help));
                return None;
            }
            wanted
        }
    };
    Some(GpuTarget {
        index: gpu.index,
        uuid: gpu.uuid.clone(),
        place: rule.place.clone(),
        mig: rule.wish != Wish::Off,
        provisional: !wanted.is_empty() && gpu.profiles_from == ProfileSource::Table,
        wanted,
    })
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
pub(crate) fn models(gpus: &[&Gpu]) -> String {
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
