//! Says why a GPU cannot be brought to its target.

use super::search::{Present, Refusal, cheapest};
use crate::{
    diagnostic::Diagnostic,
    geometry::Geometry,
    node::{Gpu, GpuInstance, InUse},
    reason::Reason,
    target::{GpuTarget, WantedProfile},
};

/// The diagnostic of a refusal of the search.
pub(super) fn refusal(
    geometry: &Geometry,
    gpu: &Gpu,
    present: &[Present],
    target: &GpuTarget,
    why: &Refusal,
) -> Diagnostic {
    let wanted = list(&target.wanted);
    let unplaceable = |message: String| Diagnostic::error(Reason::LayoutUnplaceable, message);
    let fault = match why {
        Refusal::Clash(clash) => {
            unplaceable(format!("cannot hold {wanted}: {clash}")).help(room(geometry, target))
        }
        Refusal::Compute(profile, most) => unplaceable(format!(
            "cannot hold {wanted}: the compute instances do not fit in the {most} x {} that it takes",
            profile.profile
        ))
        .help(room(geometry, target)),
        Refusal::NoArrangement => {
            let message =
                format!("cannot hold {wanted}: whichever starts are chosen, two share memory slices");
            unplaceable(message).help(room(geometry, target))
        }
        Refusal::Pinned => pinned(geometry, gpu, present, target),
    };
    fault.on_gpu(gpu.index).at(Some(target.place.clone()))
}

/// What is in the way, one by one if each alone is, else together.
fn pinned(geometry: &Geometry, gpu: &Gpu, present: &[Present], target: &GpuTarget) -> Diagnostic {
    let busy = |keep: &dyn Fn(usize) -> bool| -> Vec<Present> {
        let only = |(at, present): (usize, &Present)| {
            let mut present = present.clone();
            if !keep(at) {
                present.pinned = false;
                present.compute.iter_mut().for_each(|compute| compute.pinned = false);
            }
            present
        };
        present.iter().enumerate().map(only).collect()
    };
    let alone = |at: usize| cheapest(geometry, &busy(&|other| other == at), &target.wanted).is_err();
    let mut culprits: Vec<usize> =
        (0..present.len()).filter(|at| present.get(*at).is_some_and(|p| p.pinned) && alone(*at)).collect();
    if culprits.is_empty() {
        culprits = (0..present.len()).filter(|at| present.get(*at).is_some_and(|p| p.pinned)).collect();
    }
    let instances: Vec<&GpuInstance> = culprits.iter().filter_map(|at| gpu.instances.get(*at)).collect();
    // Not wanted at all, or wanted but not where it sits.
    let surplus = instances.iter().any(|instance| {
        let have = gpu.instances.iter().filter(|i| i.profile_id == instance.profile_id && pins(i)).count();
        let wish = target.wanted.iter().find(|wanted| wanted.profile_id == instance.profile_id);
        let free_compute = instance.compute.iter().all(|compute| !compute.in_use.counts());
        have > wish.map_or(0, |wish| wish.instances.len() + wish.loose.len() + wish.placed.len())
            || !free_compute && !holds(wish, instance)
    });
    let holders = holders(&instances);
    if surplus {
        let message = format!("the layout has no room for {holders}");
        return Diagnostic::error(Reason::InstanceInUse, message)
            .help("end what uses it, or choose a layout that keeps it");
    }
    let message = format!("{} cannot be placed around {holders}", list(&target.wanted));
    Diagnostic::error(Reason::PinnedUnplaceable, message)
        .help("end what uses it, or choose a layout that fits around it")
}

/// Whether a wish has a place for each compute instance that is in use.
fn holds(wish: Option<&WantedProfile>, instance: &GpuInstance) -> bool {
    let Some(wish) = wish else { return false };
    let written = wish.placed.iter().flat_map(|(_, split)| split);
    let mut sizes: Vec<u32> =
        wish.instances.iter().flatten().chain(&wish.loose).chain(written).copied().collect();
    instance.compute.iter().filter(|compute| compute.in_use.counts()).all(|compute| {
        sizes.iter().position(|size| *size == compute.slices).map(|at| sizes.swap_remove(at)).is_some()
    })
}

/// Whether an instance must stay.
pub(crate) fn pins(instance: &GpuInstance) -> bool {
    instance.in_use.counts() || instance.compute.iter().any(|compute| compute.in_use.counts())
}

/// The refusal to switch MIG off, or to reset, while instances are in use.
pub(super) fn in_use(gpu: &Gpu, target: &GpuTarget) -> Option<Diagnostic> {
    let busy: Vec<&GpuInstance> = gpu.instances.iter().filter(|instance| pins(instance)).collect();
    let what = if target.mig { "be reset" } else { "leave MIG mode" };
    (!busy.is_empty()).then(|| {
        Diagnostic::error(Reason::InstanceInUse, format!("cannot {what}: {}", holders(&busy)))
            .on_gpu(gpu.index)
            .at(Some(target.place.clone()))
            .help("end what uses it first")
    })
}

fn holders(instances: &[&GpuInstance]) -> String {
    let one = |instance: &&GpuInstance| {
        let who = holder(instance);
        format!("{} @{} ({who})", instance.profile, instance.placement)
    };
    instances.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Who keeps an instance open: `in use by pid 4242`, `in use`, `may be in use`.
pub(crate) fn holder(instance: &GpuInstance) -> String {
    let yes = instance.in_use == InUse::Yes || instance.compute.iter().any(|c| c.in_use == InUse::Yes);
    match instance.processes.as_slice() {
        [] if yes => "in use".to_owned(),
        [] => "cannot tell whether it is in use".to_owned(),
        [pid] => format!("in use by pid {pid}"),
        pids => {
            let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
            format!("in use by pids {}", pids.join(", "))
        }
    }
}

/// `2 x 1g.5gb, 1 x 3g.20gb`.
fn list(wanted: &[WantedProfile]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for profile in wanted {
        let given = profile.instances.iter().chain(profile.placed.iter().map(|(_, split)| split)).flatten();
        let mut names = given.chain(&profile.loose).copied().collect::<Vec<_>>();
        names.sort_unstable_by(|a, b| b.cmp(a));
        for group in names.chunk_by(|a, b| a == b) {
            let name = group.first().map_or(profile.profile, |slices| profile.profile.with_compute(*slices));
            parts.push(format!("{} x {name}", group.len()));
        }
    }
    parts.join(", ")
}

/// How many of each fit alone.
fn room(geometry: &Geometry, target: &GpuTarget) -> String {
    let one = |wanted: &WantedProfile| format!("{} x {}", geometry.most(wanted.profile_id), wanted.profile);
    let rooms: Vec<String> = target.wanted.iter().map(one).collect();
    format!("alone there is room for {}", rooms.join(", or for "))
}
