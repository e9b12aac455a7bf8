//! What was read, written as a node file.

use super::{Gpu, Instance, Node};
use crate::{
    geometry,
    model::{Family, Model},
    notation::cluster_text,
    product::Product,
    state::{CiState, GiState, GpuState},
    table::{Gpus, Variant},
    topology::{machine_cpus, write_cpus},
    trouble::Trouble,
};
use std::{collections::BTreeMap, fmt::Write as _};

/// NVML_TOPOLOGY_SINGLE, _MULTIPLE and _HOSTBRIDGE.
const ONE_SWITCH: u32 = 10;
const SEVERAL_SWITCHES: u32 = 20;
const HOST_BRIDGE: u32 = 30;

pub(super) fn write(node: &Node) -> Result<String, Trouble> {
    let table = Gpus::load()?;
    let mut out = format!(
        "# Recorded by nvml-simulator from a node of {} GPU{}.\ndriver: {}\nnvml: {}\ncuda: {}\n",
        node.gpus.len(),
        if node.gpus.len() == 1 { "" } else { "s" },
        node.driver,
        node.nvml,
        node.cuda
    );
    out.push_str(&fabric(node));
    out.push_str("gpus:\n");
    let places = places(&node.levels);
    let switched = node.gpus.iter().any(behind_switch);
    for (index, gpu) in node.gpus.iter().enumerate() {
        let text = board(&table, gpu, switched, places.get(index).and_then(Option::as_deref))
            .map_err(|error| Trouble::Failed(format!("GPU {index} ({}): {error}", gpu.name)))?;
        out.push_str(&text);
    }
    out.push_str(&bridges(node));
    Ok(out)
}

fn board(table: &Gpus, gpu: &Gpu, switched: bool, pcie: Option<&str>) -> Result<String, Trouble> {
    let (key, product) = table.identify(&gpu.name, gpu.memory_mib, gpu.pci_device_id).ok_or_else(|| {
        Trouble::Failed("is not in the table of GPUs that the simulator has (`list` shows it)".to_owned())
    })?;
    let both = [Variant::A, Variant::B].map(|variant| {
        let model = table.model(&key, Some(&product), variant)?;
        let state = state(gpu, &model)?;
        Ok::<_, Trouble>((variant, model, state))
    });
    let [first, second] = both;
    // Either fits a board without instances.
    let (variant, model, state) = first.or(second)?;
    // Writing to a String cannot fail, here and below.
    let mut out = format!("  - gpu: {key}\n    product: {}\n", quoted(&product));
    let _ = writeln!(out, "    pci: \"{}\"\n    minor: {}\n    uuid: {}", gpu.pci, gpu.minor, gpu.uuid);
    if let Some(serial) = &gpu.serial {
        let _ = writeln!(out, "    serial: {}", quoted(serial));
    }
    if let Some(numa) = gpu.numa {
        let _ = writeln!(out, "    numa: {numa}");
    }
    if !gpu.cpus.is_empty() && gpu.cpus != machine_cpus() {
        let _ = writeln!(out, "    cpus: {}", quoted(&write_cpus(&gpu.cpus)));
    }
    if let Some(pcie) = pcie {
        let _ = writeln!(out, "    pcie: {}", quoted(pcie));
    }
    let own = gpu.links.iter().filter(|link| link.gpu.is_none()).count() as u32;
    if switched && own != Product::of(&model).links {
        let _ = writeln!(out, "    links: {own}");
    }
    if variant == Variant::B {
        out.push_str("    variant: B\n");
    }
    if model.family() != Family::WithoutMig && (model.display_mode != 0 || gpu.mig.is_none()) {
        let _ = writeln!(out, "    display: {}", gpu.mig.is_none());
    }
    let _ = writeln!(out, "    mig: {}", quoted(&geometry::write(&model, &state)));
    if let Some((current, pending)) = gpu.mig
        && current != pending
    {
        let _ = writeln!(out, "    pending: {}", if pending { "on" } else { "off" });
    }
    Ok(out)
}

/// The instances as this board would number them.
fn state(gpu: &Gpu, model: &Model) -> Result<GpuState, Trouble> {
    let mut state = geometry::blank();
    let on = gpu.mig.is_some_and(|(current, _)| current);
    state.mig_current = u32::from(on);
    state.busy = u32::from(gpu.processes.contains(&None));
    for instance in &gpu.instances {
        let refuse = |why: &str| {
            let Instance { id, profile, start, size, .. } = instance;
            Trouble::Failed(format!("GPU instance {id}, profile {profile} at {start}:{size}, {why}"))
        };
        let (index, profile) = (0u32..)
            .zip(model.profiles())
            .find(|(_, profile)| profile.id == instance.profile)
            .ok_or_else(|| refuse("is of a profile that the table does not have"))?;
        let place = profile
            .places()
            .iter()
            .find(|place| (place.start, place.size) == (instance.start, instance.size));
        if place.is_none_or(|place| place.gi_id != instance.id) {
            return Err(refuse("lies where the table has no such instance"));
        }
        let gi = state
            .gis
            .get_mut(instance.id as usize)
            .ok_or_else(|| refuse("has an id that there cannot be"))?;
        *gi = GiState { live: 1, profile: index, start: instance.start, size: instance.size, ..*gi };
        for compute in &instance.compute {
            let (index, _) = (0u32..)
                .zip(profile.compute())
                .find(|(_, one)| one.id == compute.profile)
                .ok_or_else(|| refuse("has a compute instance of a profile that the table does not have"))?;
            let busy = u32::from(gpu.processes.contains(&Some((instance.id, compute.id))));
            let ci = gi
                .cis
                .get_mut(compute.id as usize)
                .ok_or_else(|| refuse("has a compute instance too many"))?;
            *ci = CiState { live: 1, profile: index, start: compute.start, size: compute.size, busy, ..*ci };
        }
    }
    Ok(state)
}

fn behind_switch(gpu: &Gpu) -> bool {
    gpu.links.iter().any(|link| link.gpu.is_none())
}

/// NVSwitch and Fabric Manager. Where every GPU has MIG on nothing shows that Fabric Manager runs; it is taken to.
fn fabric(node: &Node) -> String {
    if !node.gpus.iter().any(behind_switch) {
        return String::new();
    }
    let mut out = "nvswitch: true\n".to_owned();
    let free = |gpu: &&Gpu| gpu.mig.is_none_or(|(on, _)| !on);
    let apart = |gpu: &Gpu| match &gpu.fabric {
        Some(fabric) => !fabric.joined,
        None => gpu.links.iter().any(|link| link.gpu.is_none() && !link.active),
    };
    if node.gpus.iter().filter(|gpu| behind_switch(gpu)).filter(free).any(apart) {
        out.push_str("fabric: stopped\n");
    }
    if let Some(joined) = node.gpus.iter().filter_map(|gpu| gpu.fabric.as_ref()).find(|fabric| fabric.joined)
    {
        let _ =
            writeln!(out, "cluster: {}\nclique: {}", quoted(&cluster_text(&joined.cluster)), joined.clique);
    }
    out
}

/// Direct links, each pair once.
fn bridges(node: &Node) -> String {
    let mut pairs: BTreeMap<(usize, usize), u32> = BTreeMap::new();
    for (one, gpu) in node.gpus.iter().enumerate() {
        let ends = gpu.links.iter().filter_map(|link| link.gpu);
        for other in ends.filter_map(|end| node.gpus.iter().position(|gpu| gpu.pci == end)) {
            if one < other {
                *pairs.entry((one, other)).or_default() += 1;
            }
        }
    }
    if pairs.is_empty() {
        return String::new();
    }
    pairs.into_iter().fold("nvlink:\n".to_owned(), |mut out, ((one, other), links)| {
        let _ = writeln!(out, "  - {{gpus: [{one}, {other}], links: {links}}}");
        out
    })
}

/// Places on PCIe that have these levels between them; none for a GPU that shares nothing.
fn places(levels: &[Vec<u32>]) -> Vec<Option<String>> {
    // The first that is as near is whom a group is named by.
    let group = |gpu: &Vec<u32>, within: u32| gpu.iter().position(|level| *level <= within).unwrap_or(0);
    let place = |(index, gpu): (usize, &Vec<u32>)| {
        let shares = gpu.iter().enumerate().any(|(other, level)| other != index && *level <= HOST_BRIDGE);
        let [bridge, switch, last] =
            [HOST_BRIDGE, SEVERAL_SWITCHES, ONE_SWITCH].map(|within| group(gpu, within));
        shares.then(|| format!("{bridge}/{switch}/{last}"))
    };
    levels.iter().enumerate().map(place).collect()
}

/// A YAML text in double quotes.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
