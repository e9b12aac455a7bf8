//! Names that GPUs do not have: one fault for each name and group of GPUs with the same profiles.

use super::{indexes, resolve::models};
use crate::{
    diagnostic::Diagnostic,
    geometry::compute_sizes,
    layout::{Name, Wanted},
    near,
    node::{Gpu, Node},
    profile::ProfileName,
    reason::Reason,
};

/// What was asked and is not there.
#[derive(Default)]
pub(super) struct Unknown {
    groups: Vec<(Wanted, Vec<u32>)>,
}

impl Unknown {
    pub(super) fn add(&mut self, gpu: &Gpu, wish: &Wanted) {
        match self.groups.iter_mut().find(|(other, _)| other == wish) {
            Some((_, indexes)) => indexes.push(gpu.index),
            None => self.groups.push((wish.clone(), vec![gpu.index])),
        }
    }

    pub(super) fn faults(self, node: &Node) -> Vec<Diagnostic> {
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
    let near = match (wish.name.find(&gpu.profiles), wish.name) {
        // The profile is there, but not with compute instances of that size.
        (Some(profile), _) => {
            let sizes: Vec<String> = compute_sizes(profile.slices)
                .map(|size| profile.name.with_compute(size).to_string())
                .collect();
            help = format!("an instance of {} is split into {}", profile.name, sizes.join(", "));
            near::words(&wish.name.to_string(), sizes.iter().map(String::as_str))
        }
        (None, Name::Exact(name)) => near::profiles(name, names),
        (None, Name::Slices(name)) => {
            // The nearest number of slices with that attribute first.
            let mut own: Vec<(bool, u32, String)> = gpu
                .profiles
                .iter()
                .filter_map(|profile| {
                    let other = profile.name.attribute != name.attribute;
                    let spelled = Name::by_slices(profile, &gpu.profiles)?.to_string();
                    Some((other, profile.slices.abs_diff(name.slices), spelled))
                })
                .collect();
            own.sort();
            own.into_iter().take(2).map(|(.., spelled)| spelled).collect()
        }
    };
    let fault = Diagnostic::error(Reason::ProfileUnknown, message).at(Some(wish.place.clone()));
    let fault = if group.len() == 1 { fault.on_gpu(gpu.index) } else { fault };
    Some(fault.near(near).help(help))
}
