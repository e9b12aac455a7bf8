//! The table of GPUs, profiles/gpus.yaml, and what a board of it looks like to NVML.
//!
//! In: a key such as `a100-40gb`, a product name, a board variant. Out: a [`Model`] that lacks only what a
//! node gives its boards (UUID, serial, PCI address, minor). Names, sizes and ids come from the table as they
//! stand; what it does not know is 0. The whole table is parsed whenever this is asked, so ask when a node is
//! made and not at each call.

use crate::{
    model::{
        ComputeProfile, Engines, MAX_COMPUTE_PROFILES, MAX_PLACES, MAX_PROFILES, Model, Place, Profile, Text,
    },
    trouble::{Trouble, did_you_mean, join},
};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};

/// The table's text, as it stands in the workspace.
pub const GPUS: &str = include_str!("../../../profiles/gpus.yaml");

/// NVIDIA's PCI vendor id, the low half of NVML's device and subsystem ids.
const VENDOR: u32 = 0x10DE;
/// NVML_BRAND_NVIDIA_RTX, of which the RTX PRO boards are.
const BRAND_NVIDIA_RTX: u32 = 13;
/// NVML_BRAND_NVIDIA, of which the data-centre boards are.
const BRAND_NVIDIA: u32 = 14;
/// NVML_GPU_INSTANCE_PROFILE_CAPABILITY_P2P and _GFX.
const CAPABILITY_P2P: u32 = 1;
const CAPABILITY_GFX: u32 = 2;

/// Which eighth of the chip lacks compute units, and so how GPU instance ids lie on the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Variant {
    /// Ids count up with the starts.
    #[default]
    A,
    /// Ids count from the other half.
    B,
}

#[derive(Deserialize)]
struct Table {
    geometries: BTreeMap<String, Geometry>,
    gpus: Vec<Gpu>,
}

#[derive(Deserialize)]
struct Geometry {
    gi_id_by_start: BTreeMap<String, BTreeMap<String, BTreeMap<u32, u32>>>,
}

#[derive(Deserialize)]
struct Gpu {
    key: String,
    product_names: Vec<String>,
    pci: Vec<Pci>,
    architecture: String,
    compute_capability: String,
    memory_total_mib: u64,
    geometry: Option<String>,
    compute_slices: u32,
    sm_total: u32,
    mig_mode_change_needs_gpu_reset: bool,
    gi_profiles: Vec<GiProfile>,
}

#[derive(Deserialize)]
struct Pci {
    device_id: u32,
    subsystem_ids: Vec<u32>,
    name: String,
}

#[derive(Deserialize)]
struct GiProfile {
    name: String,
    nvml_enum_value: u32,
    id: Option<u32>,
    slice_count: u32,
    instance_count: u32,
    memory_mib: Option<u64>,
    multiprocessor_count: Option<u32>,
    engines: EngineCounts,
    is_p2p_supported: u32,
    capabilities: Vec<String>,
    placements: Option<Vec<StartSize>>,
    compute_instance_profiles: Vec<CiProfile>,
}

#[derive(Deserialize)]
struct EngineCounts {
    copy: u32,
    decoder: u32,
    encoder: u32,
    jpeg: u32,
    ofa: u32,
}

#[derive(Deserialize)]
struct StartSize {
    start: u32,
    size: u32,
}

#[derive(Deserialize)]
struct CiProfile {
    name: String,
    nvml_enum_value: u32,
    id: u32,
    slice_count: u32,
    instance_count: u32,
    multiprocessor_count: Option<u32>,
    placements: Vec<StartSize>,
}

/// A GPU without MIG, for nodes that mix kinds: published figures of the product.
struct Plain {
    key: &'static str,
    name: &'static str,
    device_id: u32,
    subsystem_id: u32,
    architecture: u32,
    compute: (u32, u32),
    memory_mib: u64,
    multiprocessors: u32,
}

const WITHOUT_MIG: [Plain; 2] = [
    Plain {
        key: "t4-16gb",
        name: "Tesla T4",
        device_id: 0x1EB8,
        subsystem_id: 0x12A2,
        architecture: 6,
        compute: (7, 5),
        memory_mib: 15360,
        multiprocessors: 40,
    },
    Plain {
        key: "l40s-48gb",
        name: "NVIDIA L40S",
        device_id: 0x26B9,
        subsystem_id: 0,
        architecture: 8,
        compute: (8, 9),
        memory_mib: 46068,
        multiprocessors: 142,
    },
];

/// One line of [`kinds`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// Key in the table.
    pub key: String,
    /// The names it is sold under; the first is taken if a node does not say.
    pub products: Vec<String>,
    /// Whether a node of it can be made, or else why not.
    pub refusal: Option<&'static str>,
    /// Whether it has MIG.
    pub mig: bool,
}

const NO_PLACEMENTS: &str = "its placements are not known, so it cannot be simulated";

/// The parsed table.
pub struct Gpus(Table);

impl Gpus {
    /// Parses the table.
    ///
    /// # Errors
    /// [`Trouble::Failed`] if the compiled-in table is damaged; a test reads it whole.
    pub fn load() -> Result<Gpus, Trouble> {
        serde_yaml::from_str(GPUS).map(Gpus).map_err(|e| Trouble::Failed(format!("table of GPUs: {e}")))
    }

    /// Every key, by a look at the text alone.
    pub fn keys() -> Vec<String> {
        let with = GPUS.lines().filter_map(|line| line.strip_prefix("- key: "));
        with.chain(WITHOUT_MIG.iter().map(|plain| plain.key)).map(str::to_owned).collect()
    }

    /// Every GPU, those with MIG in the table's order first.
    pub fn kinds(&self) -> Vec<Kind> {
        let with = self.0.gpus.iter().map(|gpu| Kind {
            key: gpu.key.clone(),
            products: gpu.product_names.clone(),
            refusal: gpu.geometry.is_none().then_some(NO_PLACEMENTS),
            mig: true,
        });
        let without = WITHOUT_MIG.iter().map(|plain| Kind {
            key: plain.key.to_owned(),
            products: vec![plain.name.to_owned()],
            refusal: None,
            mig: false,
        });
        with.chain(without).collect()
    }

    /// The key and product of a board, by what its driver says of it.
    pub fn identify(&self, name: &str, memory_mib: u64, pci_device_id: u32) -> Option<(String, String)> {
        let sold = |gpu: &&Gpu| gpu.product_names.iter().any(|product| product == name);
        let found = self.0.gpus.iter().filter(sold).min_by_key(|gpu| {
            // Several kinds are sold under one name, which memory tells apart where PCI ids do not.
            let other_chip = !gpu.pci.iter().any(|pci| pci.device_id == pci_device_id >> 16);
            (other_chip, gpu.memory_total_mib.abs_diff(memory_mib))
        });
        let plain = || WITHOUT_MIG.iter().find(|plain| plain.name == name).map(|plain| plain.key.to_owned());
        Some((found.map(|gpu| gpu.key.clone()).or_else(plain)?, name.to_owned()))
    }

    /// The board that `key` and, where there are several, `product` name.
    ///
    /// # Errors
    /// [`Trouble::Input`] for a key or product that the table does not have, and for a GPU whose placements
    /// are not known.
    pub fn model(&self, key: &str, product: Option<&str>, variant: Variant) -> Result<Box<Model>, Trouble> {
        if let Some(plain) = WITHOUT_MIG.iter().find(|plain| plain.key == key) {
            return match product {
                Some(other) if other != plain.name => Err(no_product(key, other, &[plain.name.to_owned()])),
                _ => Ok(plain.model()),
            };
        }
        let Some(gpu) = self.0.gpus.iter().find(|gpu| gpu.key == key) else {
            let kinds = self.kinds();
            let near = did_you_mean(key, kinds.iter().map(|kind| kind.key.as_str()));
            return Err(Trouble::input(format!("no GPU `{key}` in the table{near} (`list` shows all)")));
        };
        let Some(geometry) = gpu.geometry.as_ref().and_then(|name| self.0.geometries.get(name)) else {
            return Err(Trouble::input(format!("GPU `{key}`: {NO_PLACEMENTS}")));
        };
        let name = match product {
            None => gpu.product_names.first().map(String::as_str).unwrap_or_default(),
            Some(product) if gpu.product_names.iter().any(|name| name == product) => product,
            Some(product) => return Err(no_product(key, product, &gpu.product_names)),
        };
        gpu.model(name, geometry, variant)
    }
}

fn no_product(key: &str, asked: &str, have: &[String]) -> Trouble {
    Trouble::input(format!("GPU `{key}` is not sold as `{asked}`; it is sold as {}", join(have, ", ")))
}

impl Plain {
    fn model(&self) -> Box<Model> {
        let mut model = empty();
        model.name = Text::new(self.name);
        model.key = Text::new(self.key);
        model.pci_device_id = self.device_id << 16 | VENDOR;
        model.pci_subsystem_id = if self.subsystem_id == 0 { 0 } else { self.subsystem_id << 16 | VENDOR };
        model.architecture = self.architecture;
        model.brand = BRAND_NVIDIA;
        (model.compute_major, model.compute_minor) = self.compute;
        model.multiprocessors = self.multiprocessors;
        model.memory_mib = self.memory_mib;
        model
    }
}

impl Gpu {
    fn model(&self, name: &str, geometry: &Geometry, variant: Variant) -> Result<Box<Model>, Trouble> {
        let damaged = |what: &str| Trouble::Failed(format!("table of GPUs: {}: {what}", self.key));
        let mut model = empty();
        model.name = Text::new(name);
        model.key = Text::new(&self.key);
        // Boards of one kind differ by PCI ids; the table names each entry by its product or the end of it.
        let pci = self
            .pci
            .iter()
            .find(|pci| pci.name == name)
            .or_else(|| self.pci.iter().find(|pci| name.ends_with(&format!(" {}", pci.name))))
            .or_else(|| self.pci.first())
            .ok_or_else(|| damaged("no PCI id"))?;
        model.pci_device_id = pci.device_id << 16 | VENDOR;
        model.pci_subsystem_id = pci.subsystem_ids.first().map_or(0, |id| id << 16 | VENDOR);
        model.architecture = match self.architecture.as_str() {
            "Ampere" => 7,
            "Hopper" => 9,
            "Blackwell" | "Blackwell Ultra" => 10,
            _ => return Err(damaged("architecture")),
        };
        model.family = if self.mig_mode_change_needs_gpu_reset { 1 } else { 2 };
        model.brand = if name.starts_with("NVIDIA RTX") { BRAND_NVIDIA_RTX } else { BRAND_NVIDIA };
        let (major, minor) =
            self.compute_capability.split_once('.').ok_or_else(|| damaged("compute capability"))?;
        model.compute_major = major.parse().map_err(|_| damaged("compute capability"))?;
        model.compute_minor = minor.parse().map_err(|_| damaged("compute capability"))?;
        // MIG User Guide: workstation boards offer MIG only after their display outputs are switched off for
        // good. Only the RTX PRO boards have both kinds.
        model.display_mode = u32::from(name.contains("Workstation"));
        model.multiprocessors = self.sm_total;
        model.compute_slices = self.compute_slices;
        model.memory_mib = self.memory_total_mib;

        let ids = GiIds::of(geometry, variant).ok_or_else(|| damaged("no GPU instance ids"))?;
        let mut profiles: Vec<&GiProfile> = self.gi_profiles.iter().collect();
        profiles.sort_by_key(|profile| profile.nvml_enum_value);
        if profiles.len() > MAX_PROFILES {
            return Err(damaged("too many profiles"));
        }
        model.profile_count = profiles.len() as u32;
        for (to, from) in model.profiles.iter_mut().zip(profiles) {
            from.fill(to, &ids).map_err(|what| damaged(&format!("{}: {what}", from.name)))?;
        }
        Ok(model)
    }
}

/// GPU instance ids of one board by (start, size).
struct GiIds(HashMap<(u32, u32), u32>);

impl GiIds {
    fn of(geometry: &Geometry, variant: Variant) -> Option<GiIds> {
        let name = match variant {
            Variant::A => "variant_A",
            Variant::B => "variant_B",
        };
        // Small chips have one numbering, whatever the node says.
        let sizes = geometry.gi_id_by_start.get(name).or_else(|| geometry.gi_id_by_start.get("only"))?;
        let mut ids = HashMap::new();
        for (size, starts) in sizes {
            let size: u32 = size.strip_prefix("size")?.parse().ok()?;
            ids.extend(starts.iter().map(|(start, id)| ((*start, size), *id)));
        }
        Some(GiIds(ids))
    }
}

impl GiProfile {
    fn fill(&self, to: &mut Profile, ids: &GiIds) -> Result<(), &'static str> {
        to.slot = self.nvml_enum_value;
        to.id = self.id.ok_or("no id")?;
        to.slices = self.slice_count;
        to.max_instances = self.instance_count;
        to.multiprocessors = self.multiprocessor_count.unwrap_or(0);
        to.memory_mib = self.memory_mib.unwrap_or(0);
        to.memory_unknown = u32::from(self.memory_mib.is_none());
        to.capabilities = if self.is_p2p_supported != 0 { CAPABILITY_P2P } else { 0 }
            | if self.capabilities.iter().any(|name| name == "GFX") { CAPABILITY_GFX } else { 0 };
        let EngineCounts { copy, decoder, encoder, jpeg, ofa } = self.engines;
        to.engines = Engines { copy, decoder, encoder, jpeg, ofa };
        to.name = Text::new(&self.name);
        let places = self.placements.as_ref().ok_or("no placements")?;
        to.place_count = fill_places(&mut to.places, places, |place| {
            ids.0.get(&(place.start, place.size)).copied().ok_or("no GPU instance id for a placement")
        })?;
        if self.compute_instance_profiles.len() > MAX_COMPUTE_PROFILES {
            return Err("too many compute profiles");
        }
        to.compute_count = self.compute_instance_profiles.len() as u32;
        for (to, from) in to.compute.iter_mut().zip(&self.compute_instance_profiles) {
            from.fill(to)?;
        }
        Ok(())
    }
}

impl CiProfile {
    fn fill(&self, to: &mut ComputeProfile) -> Result<(), &'static str> {
        to.slot = self.nvml_enum_value;
        to.id = self.id;
        to.slices = self.slice_count;
        to.max_instances = self.instance_count;
        to.multiprocessors = self.multiprocessor_count.unwrap_or(0);
        to.name = Text::new(&self.name);
        to.place_count = fill_places(&mut to.places, &self.placements, |_| Ok(0))?;
        Ok(())
    }
}

fn fill_places(
    to: &mut [Place; MAX_PLACES],
    from: &[StartSize],
    id: impl Fn(&StartSize) -> Result<u32, &'static str>,
) -> Result<u32, &'static str> {
    if from.len() > to.len() {
        return Err("too many placements");
    }
    for (to, from) in to.iter_mut().zip(from) {
        *to = Place { start: from.start, size: from.size, gi_id: id(from)? };
    }
    Ok(from.len() as u32)
}

fn empty() -> Box<Model> {
    // SAFETY: `Model` is plain integers and byte texts throughout, for which all bytes zero is legal.
    Box::new(unsafe { std::mem::zeroed() })
}

#[cfg(test)]
mod tests;
