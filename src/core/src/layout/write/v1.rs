//! The peer's form. It has no words for most of migd's; what it cannot say is an error, never left out.

use super::{deciding, line, one_or_list, plain, quoted};
use crate::{
    diagnostic::{Diagnostic, Place},
    geometry::compute_sizes,
    layout::{Count, Indexes, Layout, Match, Name, Rule, Unlisted, Wanted, Wins, Wish, parse},
    node::{Gpu, Node},
    plan::{self, Plan, Policy},
    profile::ProfileName,
    reason::Reason,
    target::{self, Target, WantedProfile},
};
use std::collections::BTreeMap;

const KEPT: &str = "`--as native` keeps all of it";

/// A layout in the peer's form, for every node.
///
/// # Errors
/// `layout-invalid` at each place that the peer's form cannot say for every node.
pub fn v1(layouts: &[Layout]) -> Result<String, Vec<Diagnostic>> {
    let mut text = "version: v1\nmig-configs:\n".to_owned();
    let mut faults = Vec::new();
    for layout in layouts {
        if let Some(description) = &layout.description {
            for part in description.lines() {
                line(&mut text, 2, &format!("# {part}"));
            }
        }
        line(&mut text, 2, &format!("{}:", plain(&layout.name)));
        if layout.unlisted != Unlisted::Keep {
            faults.push(unsaid(&layout.place, "what becomes of GPUs that no rule matches"));
        }
        // There the last that matches wins.
        for rule in deciding(layout).into_iter().rev() {
            match entry(rule) {
                Ok(lines) => lines.iter().for_each(|content| line(&mut text, 4, content)),
                Err(more) => faults.extend(more),
            }
        }
    }
    if faults.is_empty() { Ok(text) } else { Err(faults) }
}

fn unsaid(place: &Place, what: &str) -> Diagnostic {
    let message = format!("mig-parted's form cannot say {what}");
    Diagnostic::error(Reason::LayoutInvalid, message)
        .at(Some(place.clone()))
        .help("`--as native` keeps all of it; `--for NODE` writes what it comes to on one node")
}

fn entry(rule: &Rule) -> Result<Vec<String>, Vec<Diagnostic>> {
    let mut faults = Vec::new();
    let mut lines = Vec::new();
    let matches = &rule.matches;
    let bare =
        Match { filters: matches.filters.clone(), indexes: matches.indexes.clone(), ..Match::default() };
    if *matches != bare {
        faults.push(unsaid(&rule.place, "which GPUs are meant but by index or PCI id"));
    }
    if !matches.filters.is_empty() {
        let filters: Vec<String> = matches.filters.iter().map(|filter| quoted(&filter.to_string())).collect();
        lines.push(format!("device-filter: {}", one_or_list(&filters)));
    }
    match &matches.indexes {
        None => lines.push("devices: all".to_owned()),
        Some(Indexes::Listed(listed)) => {
            let listed: Vec<String> = listed.iter().map(|(index, _)| index.to_string()).collect();
            lines.push(format!("devices: [{}]", listed.join(", ")));
        }
        Some(_) => faults.push(unsaid(&rule.place, "half of the GPUs")),
    }
    lines.push(format!("mig-enabled: {}", rule.wish != Wish::Off));
    match &rule.wish {
        Wish::Off => {}
        Wish::Symbolic(symbol) => {
            faults.push(unsaid(&rule.place, &format!("'{}'", symbol.word())));
        }
        Wish::On(wanted) => match devices(wanted) {
            Ok(devices) => lines.push(format!("mig-devices: {{{devices}}}")),
            Err(more) => faults.extend(more),
        },
    }
    if rule.pool.is_some() {
        faults.push(unsaid(&rule.place, "what may be carved on demand"));
    }
    if let Some(first) = rule.sharing.first() {
        faults.push(unsaid(&first.place, "how programs share an instance"));
    }
    for (at, content) in lines.iter_mut().enumerate() {
        content.insert_str(0, if at == 0 { "- " } else { "  " });
    }
    if faults.is_empty() { Ok(lines) } else { Err(faults) }
}

/// `"1g.5gb": 2, "3g.20gb": 1`.
fn devices(wanted: &[Wanted]) -> Result<String, Vec<Diagnostic>> {
    let mut faults = Vec::new();
    let mut counts: BTreeMap<ProfileName, u32> = BTreeMap::new();
    for wish in wanted {
        let name = match wish.name {
            Name::Exact(name) => Some(name),
            Name::Slices(_) => {
                let what = format!("'{}', which has another name on each model", wish.name);
                faults.push(unsaid(&wish.place, &what));
                None
            }
        };
        if wish.start.is_some() {
            faults.push(unsaid(&wish.place, "where an instance begins"));
        }
        match (wish.count, &wish.split) {
            (Count::Max, _) => faults.push(unsaid(&wish.place, "'max'")),
            (Count::Just(_), Some(split)) if split.is_empty() => {
                faults.push(unsaid(&wish.place, "that an instance has no compute instance"));
            }
            (Count::Just(_), Some(split)) => {
                for name in name.iter().flat_map(|name| split.iter().map(|size| name.with_compute(*size))) {
                    *counts.entry(name).or_default() += 1;
                }
            }
            (Count::Just(count), None) => {
                if let Some(name) = name {
                    *counts.entry(name).or_default() += count;
                }
            }
        }
    }
    let entry = |(name, count): (&ProfileName, &u32)| format!("\"{name}\": {count}");
    let devices: Vec<String> = counts.iter().map(entry).collect();
    if faults.is_empty() { Ok(devices.join(", ")) } else { Err(faults) }
}

/// A layout in the peer's form as what it comes to on one node, read back and found to mean the same there.
///
/// # Errors
/// Why the node cannot have it, or what of it the peer's form cannot say.
pub fn v1_on(layout: &Layout, node: &Node) -> Result<String, Vec<Diagnostic>> {
    let idle = |gpu: &Gpu| Gpu { instances: Vec::new(), ..gpu.clone() };
    let node = Node { gpus: node.gpus.iter().map(idle).collect(), ..node.clone() };
    let target = target::resolve(layout, &node)?;
    let means = plan::make(&node, &target, &Policy::default())?;
    let exact = exact(layout, &target);
    let text = v1(std::slice::from_ref(&exact)).map_err(|mut faults| {
        faults.iter_mut().for_each(|fault| fault.help = Some(KEPT.to_owned()));
        faults
    })?;
    let again = parse(&text, &layout.place.file)?;
    let read = again.layouts.first().map(|layout| target::resolve(layout, &node)).unwrap_or_else(|| {
        Err(vec![Diagnostic::error(Reason::Internal, "what was written has no layout")])
    })?;
    if held(&plan::make(&node, &read, &Policy::default())?) != held(&means) {
        return Err(vec![unsaid(&layout.place, "how these compute instances are packed").help(KEPT)]);
    }
    Ok(text)
}

/// What a GPU holds in the end: its index, whether MIG is on, and each instance's profile and compute slices.
type Held = (u32, bool, Vec<(u32, Vec<u32>)>);

fn held(plan: &Plan) -> Vec<Held> {
    let gpu = |gpu: &plan::GpuPlan| {
        let split = |spec: &plan::InstanceSpec| spec.compute.iter().map(|compute| compute.slices).collect();
        let mut held: Vec<(u32, Vec<u32>)> =
            gpu.after.iter().map(|spec| (spec.profile_id, split(spec))).collect();
        held.sort();
        (gpu.index, gpu.mig_after, held)
    };
    plan.gpus.iter().map(gpu).collect()
}

/// The same layout for this node only: indexes and exact names, alike GPUs in one rule.
fn exact(layout: &Layout, target: &Target) -> Layout {
    let mut groups: Vec<(Vec<u32>, &target::GpuTarget)> = Vec::new();
    for gpu in &target.gpus {
        match groups.iter_mut().find(|(_, other)| other.mig == gpu.mig && other.wanted == gpu.wanted) {
            Some((indexes, _)) => indexes.push(gpu.index),
            None => groups.push((vec![gpu.index], gpu)),
        }
    }
    let rules = groups.into_iter().map(|(indexes, gpu)| {
        let listed = indexes.into_iter().map(|index| (index, gpu.place.clone())).collect();
        let wanted = gpu.wanted.iter().flat_map(|profile| names(profile, &gpu.place)).collect();
        Rule {
            place: gpu.place.clone(),
            matches: Match { indexes: Some(Indexes::Listed(listed)), ..Match::default() },
            wish: if gpu.mig { Wish::On(wanted) } else { Wish::Off },
            pool: layout.rules.iter().find(|rule| rule.place == gpu.place).and_then(|rule| rule.pool.clone()),
            sharing: Vec::new(),
        }
    });
    Layout { rules: rules.collect(), wins: Wins::First, unlisted: Unlisted::Keep, ..layout.clone() }
}

fn names(profile: &WantedProfile, place: &Place) -> Vec<Wanted> {
    let name = |compute: u32| Name::Exact(profile.profile.with_compute(compute));
    let whole = |split: &Vec<u32>| *split == [profile.profile.slices];
    let mut wanted = Vec::new();
    for split in &profile.instances {
        let split = (!whole(split)).then(|| split.clone());
        wanted.push(Wanted { split, ..Wanted::just(name(profile.profile.slices), 1, place) });
    }
    for size in compute_sizes(profile.profile.slices) {
        let count = profile.loose.iter().filter(|loose| **loose == size).count();
        if let Ok(count @ 1..) = u32::try_from(count) {
            wanted.push(Wanted::just(name(size), count, place));
        }
    }
    for (start, split) in &profile.placed {
        let split = (!whole(split)).then(|| split.clone());
        let one = Wanted::just(name(profile.profile.slices), 1, place);
        wanted.push(Wanted { start: Some(*start), split, ..one });
    }
    wanted
}
