//! What a node file says of a board's seat in the machine, and of what joins the GPUs.

use super::{
    Description,
    file::{At, Geometry},
    hex,
};
use crate::{
    model::Model,
    product::Product,
    shared::Info,
    topology::{CPU_WORDS, End, Fabric, MAX_LINKS, MAX_PCIE, parse_cpus, switches},
    trouble::Trouble,
};
use serde::Deserialize;
use serde_yaml::Spanned;

/// NVSwitches of Blackwell are no PCI devices; GPUs see two.
const HIDDEN_SWITCHES: u32 = 2;

/// Where one board sits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seat {
    /// Serial number, if it is not made up.
    pub serial: Option<String>,
    /// The CPUs near it; else all of this machine.
    pub cpus: Vec<u32>,
    /// Host bridge and PCIe switches above it.
    pub pcie: Vec<u8>,
    /// The MIG mode that a reset will bring, if it is another than the present one.
    pub pending: Option<bool>,
    /// How many of its NVLinks lead to the NVSwitches; else all.
    pub links: Option<u32>,
}

/// What joins a node's GPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wiring {
    /// Fabric Manager is not running.
    pub stopped: bool,
    /// Cluster UUID of the NVLink fabric.
    pub cluster: [u8; 16],
    /// Clique in it.
    pub clique: u32,
    /// Two GPUs, in NVML's order, and the number of NVLinks between them.
    pub nvlinks: Vec<(usize, usize, u32)>,
}

/// `nvlink: [{gpus: [0, 1], links: 4}]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bridge {
    gpus: Spanned<Vec<usize>>,
    links: Spanned<u32>,
}

impl Bridge {
    pub(super) fn read(&self, at: &At<'_>, count: usize) -> Result<(usize, usize, u32), Trouble> {
        let (one, other) = match self.gpus.value.as_slice() {
            [one, other] if one != other && *one < count && *other < count => (*one, *other),
            _ => {
                let why =
                    format!("gpus {:?}; legal are two of 0 to {}", self.gpus.value, count.saturating_sub(1));
                return Err(at.refuse(self.gpus.referenced, why));
            }
        };
        match self.links.value {
            links if (1..=MAX_LINKS as u32).contains(&links) => Ok((one, other, links)),
            links => {
                Err(at.refuse(self.links.referenced, format!("links {links}; legal are 1 to {MAX_LINKS}")))
            }
        }
    }
}

/// `pending: on`
pub(super) fn pending(at: &At<'_>, word: &Spanned<Geometry>) -> Result<bool, Trouble> {
    match word.value.0.as_str() {
        "on" => Ok(true),
        "off" => Ok(false),
        other => Err(at.refuse(word.referenced, format!("pending `{other}`; legal are on and off"))),
    }
}

/// `cpus: 0-15,32-47`
pub(super) fn cpus(at: &At<'_>, text: &Spanned<String>) -> Result<Vec<u32>, Trouble> {
    let mut cpus = parse_cpus(&text.value);
    cpus.sort_unstable();
    cpus.dedup();
    let most = CPU_WORDS as u32 * 64;
    let whole = text.value.split(',').all(|part| !parse_cpus(part).is_empty());
    if whole && cpus.last().is_some_and(|last| *last < most) {
        return Ok(cpus);
    }
    let why = format!("cpus `{}`; they are written 0-15,32-47, each below {most}", text.value);
    Err(at.refuse(text.referenced, why))
}

/// `pcie: 0/1`: host bridge, then the switches from it on.
pub(super) fn pcie(at: &At<'_>, text: &Spanned<String>) -> Result<Vec<u8>, Trouble> {
    let parts: Result<Vec<u8>, _> = text.value.split('/').map(str::parse).collect();
    match parts {
        Ok(parts) if parts.len() <= MAX_PCIE && parts.iter().all(|part| *part < u8::MAX) => Ok(parts),
        _ => {
            let why = format!(
                "pcie `{}`; it is written 0/1: a host bridge and the switches below it, {MAX_PCIE} numbers at most, \
                 each up to 254",
                text.value
            );
            Err(at.refuse(text.referenced, why))
        }
    }
}

/// `cluster: 8-4-4-4-12 hex digits`
pub(super) fn cluster(at: &At<'_>, text: &Spanned<String>) -> Result<[u8; 16], Trouble> {
    let digits: String = text.value.chars().filter(|c| *c != '-').collect();
    match u128::from_str_radix(&digits, 16) {
        Ok(number) if digits.len() == 32 => Ok(number.to_be_bytes()),
        _ => {
            Err(at
                .refuse(text.referenced, format!("cluster `{}`; it is a UUID of 32 hex digits", text.value)))
        }
    }
}

impl Description {
    /// The Fabric Manager that the description says.
    pub(super) fn fabric(&self) -> Fabric {
        match (self.nvswitch, self.wiring.stopped) {
            (false, _) => Fabric::None,
            (true, true) => Fabric::Stopped,
            (true, false) => Fabric::Running,
        }
    }

    /// What the whole node shares.
    pub(super) fn put_fabric(&self, info: &mut Info) {
        info.fabric = match self.fabric() {
            Fabric::None => 0,
            Fabric::Stopped => 1,
            Fabric::Running => 2,
        };
        info.clique = self.wiring.clique;
        info.cluster = self.wiring.cluster;
    }

    /// Seats and joins the boards.
    pub(super) fn wire(&self, models: &mut [&mut Model]) -> Result<(), Trouble> {
        let refuse =
            |gpu: usize, why: String| Err(Trouble::Input(format!("{}: GPU {gpu}: {why}", self.notation)));
        for (gpu, (model, seat)) in models.iter_mut().zip(&self.seats).enumerate() {
            for cpu in &seat.cpus {
                if let Some(word) = model.cpus.get_mut(*cpu as usize / 64) {
                    *word |= 1 << (cpu % 64);
                }
            }
            model.pcie.iter_mut().zip(&seat.pcie).for_each(|(to, from)| *to = from + 1);
            if !self.nvswitch {
                continue;
            }
            let most = Product::of(model).links;
            let links = seat.links.unwrap_or(most);
            if links > most {
                return refuse(gpu, format!("{links} NVLinks; {} has {most}", model.name.as_str()));
            }
            let count = match switches(model.architecture).len() as u32 {
                0 => HIDDEN_SWITCHES,
                count => count,
            };
            for link in 0..links {
                add_link(model, End::Switch(link % count));
            }
        }
        for (one, other, links) in &self.wiring.nvlinks {
            for (here, there) in [(*one, *other), (*other, *one)] {
                let Some(model) = models.get_mut(here) else { continue };
                let most = Product::of(model).links;
                if model.links + links > most {
                    let why = format!("{} NVLinks; {} has {most}", model.links + links, model.name.as_str());
                    return refuse(here, why);
                }
                (0..*links).for_each(|_| add_link(model, End::Gpu(there)));
            }
        }
        Ok(())
    }

    /// What of this makes the node another; nothing where nothing is said.
    pub(super) fn canonical_wiring(&self) -> String {
        let (wiring, seats) = (&self.wiring, &self.seats);
        let said = *wiring != Wiring::default() || seats.iter().any(|seat| *seat != Seat::default());
        if said { format!("{wiring:?}\n{seats:?}\n") } else { String::new() }
    }
}

fn add_link(model: &mut Model, end: End) {
    if let Some(free) = model.link_ends.get_mut(model.links as usize) {
        *free = end.word();
        model.links += 1;
    }
}

/// A cluster UUID as a node file writes it.
pub fn cluster_text(cluster: &[u8; 16]) -> String {
    let mut text = hex(cluster);
    for at in [20, 16, 12, 8] {
        text.insert(at, '-');
    }
    text
}
