//! A node as text, drawn to scale, and as JSON.

use crate::{
    geometry,
    handling::address_of,
    model::{Family, Model},
    shared::Shard,
    state::{GiState, GpuState},
};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Characters that one memory slice takes in the drawing.
const SLICE_WIDTH: usize = 5;

/// Everything about the node, for people.
pub fn text(shard: &Shard) -> String {
    let info = shard.info();
    let mut out = format!(
        "{}: {} GPU{}, driver {}, NVML {}, CUDA {}.{}, NVSwitch {}, privileges {}\n",
        info.notation.as_str(),
        info.gpu_count,
        if info.gpu_count == 1 { "" } else { "s" },
        info.driver.as_str(),
        info.nvml.as_str(),
        info.cuda / 1000,
        info.cuda % 1000 / 10,
        if info.nvswitch != 0 { "yes" } else { "no" },
        if info.privileges_real != 0 { "real" } else { "ignored" },
    );
    for (index, model) in shard.models().iter().enumerate() {
        let Some(state) = shard.read(index) else { continue };
        gpu(&mut out, index, model, &state);
    }
    out
}

fn gpu(out: &mut String, index: usize, model: &Model, state: &GpuState) {
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "GPU{index}  {}  {}  minor {}  {}  {}{}{}",
        model.name.as_str(),
        address_of(model),
        model.minor,
        model.uuid.as_str(),
        mode(model, state),
        if state.busy != 0 { "  in use" } else { "" },
        if state.lost != 0 { "  lost" } else { "" },
    );
    if state.mig_current == 0 {
        return;
    }
    let _ = writeln!(out, "  {}", draw(model, state));
    for (id, gi) in geometry::by_start(state) {
        let Some(profile) = model.profiles().get(gi.profile as usize) else { continue };
        let _ = writeln!(
            out,
            "  {:<14} @{}:{}  gi {id}  {}, {}{}",
            profile.name.as_str(),
            gi.start,
            gi.size,
            if profile.memory_unknown != 0 {
                "memory unknown".to_owned()
            } else {
                format!("{} MiB", profile.memory_mib)
            },
            if profile.multiprocessors == 0 {
                "SMs unknown".to_owned()
            } else {
                format!("{} SMs", profile.multiprocessors)
            },
            if gi.busy != 0 { "  in use" } else { "" },
        );
        for (ci_id, ci) in gi.live_cis() {
            let name = profile.compute().get(ci.profile as usize).map_or("?", |ci| ci.name.as_str());
            let _ = writeln!(
                out,
                "    {name:<14} @{}:{}  ci {ci_id}{}",
                ci.start,
                ci.size,
                if ci.busy != 0 { "  in use" } else { "" }
            );
        }
    }
}

fn mode(model: &Model, state: &GpuState) -> String {
    if model.family() == Family::WithoutMig {
        return "no MIG".to_owned();
    }
    let word = |on: u32| if on != 0 { "on" } else { "off" };
    if state.mig_current == state.mig_pending {
        format!("MIG {}", word(state.mig_current))
    } else {
        format!("MIG {}, {} after a reset", word(state.mig_current), word(state.mig_pending))
    }
}

/// Memory slices of the whole GPU.
fn units(model: &Model) -> u32 {
    let places = model.profiles().iter().flat_map(|profile| profile.places());
    places.map(|place| place.start + place.size).max().unwrap_or(0)
}

/// `[1g*][1g ][2g      ][3g            ]`, free slices as dots.
fn draw(model: &Model, state: &GpuState) -> String {
    let mut line = String::new();
    let mut at = 0;
    for (_, gi) in geometry::by_start(state) {
        free(&mut line, at, gi.start);
        let busy = gi.busy != 0 || gi.live_cis().any(|(_, ci)| ci.busy != 0);
        let label = format!("{}{}", geometry::profile_name(model, gi), if busy { "*" } else { "" });
        let width = (gi.size as usize * SLICE_WIDTH).saturating_sub(2);
        // A name that does not fit its slices is cut before its star is.
        let label = if label.len() > width {
            let kept = width.saturating_sub(usize::from(busy));
            format!("{}{}", label.get(..kept).unwrap_or_default(), if busy { "*" } else { "" })
        } else {
            label
        };
        let _ = write!(line, "[{label:<width$}]");
        at = gi.start + gi.size;
    }
    free(&mut line, at, units(model));
    line.trim_end().to_owned()
}

fn free(line: &mut String, from: u32, to: u32) {
    for _ in from..to {
        let _ = write!(line, "{:^SLICE_WIDTH$}", ".");
    }
}

/// Everything about the node, for programs; unknown figures are null.
pub fn json(shard: &Shard) -> Value {
    let info = shard.info();
    let gpus: Vec<Value> = shard
        .models()
        .iter()
        .enumerate()
        .filter_map(|(index, model)| Some(gpu_json(index, model, &shard.read(index)?)))
        .collect();
    json!({
        "format": "nvml-simulator-show/1",
        "node": info.notation.as_str(),
        "state": shard.folder.display().to_string(),
        "driver": info.driver.as_str(),
        "nvml": info.nvml.as_str(),
        "cuda": info.cuda,
        "nvswitch": info.nvswitch != 0,
        "privileges": if info.privileges_real != 0 { "real" } else { "ignored" },
        "gpus": gpus,
    })
}

fn gpu_json(index: usize, model: &Model, state: &GpuState) -> Value {
    let word = |on: u32| if on != 0 { "enabled" } else { "disabled" };
    let mig = match model.family() {
        Family::WithoutMig => Value::Null,
        _ => json!({"current": word(state.mig_current), "pending": word(state.mig_pending)}),
    };
    let instances: Vec<Value> =
        geometry::by_start(state).into_iter().map(|(id, gi)| instance_json(model, id, gi)).collect();
    json!({
        "index": index,
        "key": model.key.as_str(),
        "model": model.name.as_str(),
        "uuid": model.uuid.as_str(),
        "serial": model.serial.as_str(),
        "pci": address_of(model).to_string(),
        "minor": model.minor,
        "memory_mib": known(model.memory_mib),
        "multiprocessors": known(model.multiprocessors.into()),
        "mig": mig,
        "in_use": state.busy != 0,
        "lost": state.lost != 0,
        "notation": geometry::write(model, state),
        "instances": instances,
    })
}

fn instance_json(model: &Model, id: u32, gi: &GiState) -> Value {
    let Some(profile) = model.profiles().get(gi.profile as usize) else { return Value::Null };
    let compute: Vec<Value> = gi
        .live_cis()
        .map(|(ci_id, ci)| {
            json!({
                "profile": profile.compute().get(ci.profile as usize).map(|ci| ci.name.as_str()),
                "ci": ci_id,
                "start": ci.start,
                "size": ci.size,
                "in_use": ci.busy != 0,
            })
        })
        .collect();
    json!({
        "profile": profile.name.as_str(),
        "profile_id": profile.id,
        "gi": id,
        "start": gi.start,
        "size": gi.size,
        "memory_mib": known(profile.memory_mib),
        "multiprocessors": known(profile.multiprocessors.into()),
        "in_use": gi.busy != 0,
        "compute": compute,
    })
}

/// 0 stands for what the table does not know.
fn known(figure: u64) -> Option<u64> {
    (figure != 0).then_some(figure)
}
