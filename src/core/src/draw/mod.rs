//! GPUs drawn to scale in slices, in plain ASCII.
//!
//! ```text
//! GPU0  A100-SXM4-40GB  0000:07:00.0  MIG on
//!   now      [1g*][1g ][2g      ][3g                ]
//!   planned  [1g*][1g ][1g ][1g ][1g ][1g ][1g ]  .
//! ```
//!
//! `*` is in use or cannot be told; `.` is a free slice. All pictures of one node have the same width, so that
//! equal shares of a GPU look equal.

mod bar;

#[cfg(test)]
mod tests;

use crate::{
    node::{Gpu, GpuInstance, InUse, MigMode, Node},
    plan::{ComputeSpec, GpuPlan, InstanceSpec, Plan, holder},
    target::short_model,
};
use bar::{Block, Scale};
use std::fmt::Write;

/// What `status` prints: each GPU with its picture and its instances.
pub fn status(node: &Node) -> String {
    let scale = Scale::of(node);
    let mut entries: Vec<(u32, String)> =
        node.gpus.iter().map(|gpu| (gpu.index, status_gpu(gpu, scale))).collect();
    entries.extend(node.unavailable.iter().map(|gpu| {
        let place = gpu.pci.map_or_else(|| "?".to_owned(), |pci| pci.to_string());
        (gpu.index, format!("GPU{}  {place}  unavailable\n  {} ({})\n", gpu.index, gpu.message, gpu.reason))
    }));
    entries.sort();
    entries.into_iter().map(|(_, text)| text).collect()
}

/// One GPU alone: its head line and its picture.
pub fn gpu(gpu: &Gpu) -> String {
    let scale = Scale::of_one(gpu);
    format!("{}  {}\n", header(gpu), now(gpu, scale))
}

fn status_gpu(gpu: &Gpu, scale: Scale) -> String {
    let mut text = header(gpu);
    if gpu.mig.is_none() {
        return text;
    }
    let _ = writeln!(text, "  {}", now(gpu, scale));
    let rows: Vec<[String; 3]> = gpu
        .instances
        .iter()
        .map(|instance| {
            let mut say: Vec<String> = Vec::new();
            if busy(instance) {
                say.push(holder(instance));
            }
            let split = instance.split();
            if split != [instance.profile.slices] {
                say.push(split_words(&split));
            }
            let uuids: Vec<&str> = instance.compute.iter().filter_map(|c| c.uuid.as_deref()).collect();
            say.extend(uuids.into_iter().map(str::to_owned));
            let what = format!("{} @{}", instance.profile, instance.placement);
            [what, format!("GI {}", instance.id), say.join(", ")]
        })
        .collect();
    text + &table(&rows)
}

/// What `plan` prints: each GPU that changes as it is and as it will be, what happens to each instance, and
/// the totals. The plan's notes are not in it.
pub fn plan(plan: &Plan, node: &Node) -> String {
    let scale = Scale::of(node);
    let mut text = String::new();
    for gpu_plan in plan.gpus.iter().filter(|gpu| !gpu.is_empty()) {
        if let Some(gpu) = node.gpus.iter().find(|gpu| gpu.uuid == gpu_plan.uuid) {
            text.push_str(&plan_gpu(gpu, gpu_plan, scale));
        }
    }
    text + &totals(plan, node)
}

fn plan_gpu(gpu: &Gpu, plan: &GpuPlan, scale: Scale) -> String {
    let mut text = header(gpu);
    let _ = writeln!(text, "  now      {}", now(gpu, scale));
    let _ = writeln!(text, "  planned  {}", planned(gpu, plan, scale));
    if let Some(mode) = gpu.mig.filter(|mode| *mode != both(plan.mig_after)) {
        let reset = if plan.reset { ", with a reset of this GPU" } else { "" };
        let words = |on: bool| if on { "on" } else { "off" };
        let change = match mode.current == plan.mig_after {
            true => format!("stays {}; the pending change is taken back", words(mode.current)),
            false => format!("{} -> {}", words(mode.current), words(plan.mig_after)),
        };
        let _ = writeln!(text, "  MIG mode {change}{reset}");
    }
    let kept = plan.keep.iter().map(|spec| {
        let was = gpu.instances.iter().find(|i| i.placement == spec.placement);
        let mut say = "keep".to_owned();
        if let Some(was) = was {
            if busy(was) {
                let _ = write!(say, ", {}", holder(was));
            }
            let sizes = sizes(&spec.compute);
            if was.split() != sizes {
                let _ = write!(say, ", {} -> {}", split_words(&was.split()), split_words(&sizes));
            }
        }
        row('=', spec, say)
    });
    let gone = plan.destroy.iter().map(|spec| row('-', spec, "destroy".to_owned()));
    let come = plan.create.iter().map(|spec| {
        let sizes = sizes(&spec.compute);
        let whole = sizes == [spec.profile.slices];
        row('+', spec, if whole { "create".to_owned() } else { format!("create, {}", split_words(&sizes)) })
    });
    let rows: Vec<[String; 3]> = kept.chain(gone).chain(come).collect();
    text + &table(&rows)
}

/// `Plan: 2 kept, 2 destroyed, 5 created on 1 GPU; 7 GPUs unchanged; no reset`.
fn totals(plan: &Plan, node: &Node) -> String {
    let changed: Vec<&GpuPlan> = plan.gpus.iter().filter(|gpu| !gpu.is_empty()).collect();
    let unchanged = node.gpus.len().saturating_sub(changed.len());
    let mut parts = Vec::new();
    if changed.is_empty() {
        parts.push("nothing to do".to_owned());
    } else {
        let sum = |of: fn(&GpuPlan) -> usize| changed.iter().map(|gpu| of(gpu)).sum::<usize>();
        parts.push(format!(
            "{} kept, {} destroyed, {} created on {}",
            sum(|gpu| gpu.keep.len()),
            sum(|gpu| gpu.destroy.len()),
            sum(|gpu| gpu.create.len()),
            counted(changed.len(), "GPU")
        ));
    }
    if unchanged > 0 {
        parts.push(format!("{} unchanged", counted(unchanged, "GPU")));
    }
    if !node.unavailable.is_empty() {
        parts.push(format!("{} unavailable", counted(node.unavailable.len(), "GPU")));
    }
    let resets = match plan.summary.resets {
        0 => "no reset".to_owned(),
        resets => counted(resets as usize, "reset"),
    };
    match plan.summary.mode_changes {
        0 if changed.is_empty() => {}
        0 => parts.push(resets),
        modes => parts.push(format!("{}, {resets}", counted(modes as usize, "mode change"))),
    }
    format!("Plan: {}\n", parts.join("; "))
}

fn header(gpu: &Gpu) -> String {
    format!("GPU{}  {}  {}  {}\n", gpu.index, short_model(&gpu.model), gpu.pci, mode_words(gpu.mig))
}

fn mode_words(mode: Option<MigMode>) -> &'static str {
    match mode.map(|mode| (mode.current, mode.pending)) {
        None => "no MIG",
        Some((true, true)) => "MIG on",
        Some((false, false)) => "MIG off",
        Some((true, false)) => "MIG on, off after a reset",
        Some((false, true)) => "MIG off, on after a reset",
    }
}

fn both(on: bool) -> MigMode {
    MigMode { current: on, pending: on }
}

fn now(gpu: &Gpu, scale: Scale) -> String {
    if !gpu.mig_enabled() {
        return scale.off();
    }
    let blocks = gpu.instances.iter().map(|instance| Block {
        placement: instance.placement,
        profile: instance.profile,
        split: instance.split(),
        busy: busy(instance),
    });
    scale.draw(gpu, blocks.collect())
}

fn planned(gpu: &Gpu, plan: &GpuPlan, scale: Scale) -> String {
    if !plan.mig_after {
        return scale.off();
    }
    let used = |spec: &InstanceSpec| {
        let kept = plan.keep.iter().any(|kept| kept.placement == spec.placement);
        kept && gpu.instances.iter().any(|i| i.placement == spec.placement && busy(i))
    };
    let blocks = plan.after.iter().map(|spec| Block {
        placement: spec.placement,
        profile: spec.profile,
        split: sizes(&spec.compute),
        busy: used(spec),
    });
    scale.draw(gpu, blocks.collect())
}

fn busy(instance: &GpuInstance) -> bool {
    instance.in_use != InUse::No || instance.compute.iter().any(|compute| compute.in_use != InUse::No)
}

fn sizes(compute: &[ComputeSpec]) -> Vec<u32> {
    let mut sizes: Vec<u32> = compute.iter().map(|compute| compute.slices).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes
}

/// `2c+1c`; an instance without compute instances is none that a program can use.
fn split_words(sizes: &[u32]) -> String {
    if sizes.is_empty() {
        return "no compute instance".to_owned();
    }
    sizes.iter().map(|size| format!("{size}c")).collect::<Vec<_>>().join("+")
}

fn row(sign: char, spec: &InstanceSpec, say: String) -> [String; 3] {
    [sign.to_string(), format!("{} @{}", spec.profile, spec.placement), say]
}

fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Rows with their columns aligned, two spaces between.
pub(crate) fn table(rows: &[[String; 3]]) -> String {
    let mut widths = [0; 3];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.len().max(*width);
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(line, "  {cell:width$}");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
