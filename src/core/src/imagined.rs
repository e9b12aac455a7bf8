//! A node that is not here, from its notation or its file and the table of GPUs: enough to judge whether layouts
//! can be placed on it.
//!
//! ```text
//! 8xh100-sxm-80gb | a30-24gb | 4xa100-40gb,2xa30-24gb     count x key of the table
//! dgx-h100                                               a named node, profiles/nodes/NAME.yaml
//! ```
//!
//! A file has the form that `nvml-simulator` reads. What it says of the present instances plays no part, nor do the
//! keys that only a driver needs.

use crate::{
    diagnostic::{Diagnostic, Place},
    id::{GpuUuid, PciAddress, PciId},
    near,
    node::{Architecture, Driver, Gpu, MigMode, Node, ProfileSource},
    reason::Reason,
    table::{NVIDIA, Table, TableGpu},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_yaml::{Spanned, budget, options};

/// The named nodes.
const NAMED: [(&str, &str); 9] = [
    ("dgx-a100", include_str!("../../../profiles/nodes/dgx-a100.yaml")),
    ("hgx-a800", include_str!("../../../profiles/nodes/hgx-a800.yaml")),
    ("dgx-h100", include_str!("../../../profiles/nodes/dgx-h100.yaml")),
    ("dgx-h200", include_str!("../../../profiles/nodes/dgx-h200.yaml")),
    ("dgx-b200", include_str!("../../../profiles/nodes/dgx-b200.yaml")),
    ("gb200", include_str!("../../../profiles/nodes/gb200.yaml")),
    ("a30x4", include_str!("../../../profiles/nodes/a30x4.yaml")),
    ("rtx-pro-6000x8", include_str!("../../../profiles/nodes/rtx-pro-6000x8.yaml")),
    ("mixed", include_str!("../../../profiles/nodes/mixed.yaml")),
];
/// GPUs without MIG, by key and product: a node may hold some beside others.
const WITHOUT_MIG: [(&str, &str); 2] = [("t4-16gb", "Tesla T4"), ("l40s-48gb", "NVIDIA L40S")];
const DRIVER: &str = "580.95.05";
/// NVML of CUDA 13 calls itself so.
const NVML_PREFIX: &str = "13.";
/// Where the GPUs of a DGX A100 sit; further ones count on from 0xC1.
const BUSES: [u8; 8] = [0x07, 0x0f, 0x47, 0x4e, 0x87, 0x90, 0xb7, 0xbd];
const MAX_GPUS: usize = 64;
/// As the longest names of GPUs are spelt; a file is told by its path.
const HELP: &str = "a node is COUNTxGPU such as 8xa100-40gb, a name such as dgx-h100, or the path of a .yaml file; \
                    `migctl simulate list` shows all";

/// Whether a notation is the path of a node file.
pub fn is_file(notation: &str) -> bool {
    notation.contains('/') || notation.ends_with(".yaml") || notation.ends_with(".yml")
}

/// The node of a notation.
///
/// # Errors
/// `node-invalid` with the nearest name.
pub fn node(notation: &str) -> Result<Node, Diagnostic> {
    if let Some((name, text)) = NAMED.iter().find(|(name, _)| *name == notation) {
        return node_of_file(text, name);
    }
    let table = Table::shipped()?;
    let mut drafts = Vec::new();
    for part in notation.split(',') {
        let counted = part.split_once('x').and_then(|(count, key)| Some((count.parse::<usize>().ok()?, key)));
        let (count, key) = counted.unwrap_or((1, part));
        if !(1..=MAX_GPUS).contains(&count) {
            let message = format!("'{part}': a node has 1 to {MAX_GPUS} GPUs");
            return Err(Diagnostic::error(Reason::NodeInvalid, message).help(HELP));
        }
        let draft = Draft { key: key.to_owned(), ..Draft::default() };
        if Board::find(&table, key).is_none() {
            let names = keys(&table).chain(NAMED.iter().map(|(name, _)| *name));
            let near = near::words(key, names);
            let message = format!("there is no node '{notation}': the table has no GPU '{key}'");
            return Err(Diagnostic::error(Reason::NodeInvalid, message).near(near).help(HELP));
        }
        drafts.extend(std::iter::repeat_n(draft, count));
    }
    assemble(&table, drafts, DRIVER, notation)
}

/// The node of a file's text; `origin` names it in messages.
///
/// # Errors
/// `node-invalid` with the place.
pub fn node_of_file(text: &str, origin: &str) -> Result<Node, Diagnostic> {
    let options = options! { budget: budget! { max_depth: 16, max_nodes: 5_000, max_events: 20_000 }, with_snippet: false };
    let file: File = serde_yaml::from_str_with_options(text, options).map_err(|error| {
        let error = error.without_snippet();
        let place = error.location().map(|at| Place {
            file: origin.to_owned(),
            line: at.line(),
            column: at.column(),
        });
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        let message = first.split(" at line ").next().unwrap_or_default().to_owned();
        let help = "a node file has the keys driver and gpus, and under gpus entries such as {gpu: a100-40gb, count: 8}";
        Diagnostic::error(Reason::NodeInvalid, message).at(place).help(help)
    })?;
    let table = Table::shipped()?;
    let mut drafts = Vec::new();
    for gpu in file.gpus {
        let at = gpu.gpu.referenced;
        let place = Place { file: origin.to_owned(), line: at.line(), column: at.column() };
        let fault = |message: String| Diagnostic::error(Reason::NodeInvalid, message).at(Some(place.clone()));
        let key = gpu.gpu.value;
        let Some(board) = Board::find(&table, &key) else {
            let near = near::words(&key, keys(&table));
            let fault = fault(format!("the table has no GPU '{key}'")).near(near);
            return Err(fault.help("`migctl simulate list` shows the GPUs of the table"));
        };
        if let Some(product) = &gpu.product
            && !board.products().any(|known| known == product)
        {
            let have: Vec<&str> = board.products().collect();
            let fault = fault(format!("'{key}' has no product '{product}'"));
            return Err(fault.help(format!("its products are {}", have.join(", "))));
        }
        let count = gpu.count.unwrap_or(1);
        if !(1..=MAX_GPUS).contains(&count) {
            return Err(fault(format!("the count of '{key}' is {count}")).help("a node has 1 to 64 GPUs"));
        }
        let draft = Draft { key, product: gpu.product, pci: gpu.pci, minor: gpu.minor, uuid: gpu.uuid };
        drafts.extend(std::iter::repeat_n(draft, count));
    }
    assemble(&table, drafts, file.driver.as_deref().unwrap_or(DRIVER), origin)
}

/// The keys of all GPUs, with and without MIG.
fn keys(table: &Table) -> impl Iterator<Item = &str> {
    table.gpus().iter().map(|gpu| gpu.key.as_str()).chain(WITHOUT_MIG.iter().map(|(key, _)| *key))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    driver: Option<String>,
    gpus: Vec<Entry>,
    #[serde(rename = "nvml")]
    _nvml: Option<IgnoredAny>,
    #[serde(rename = "cuda")]
    _cuda: Option<IgnoredAny>,
    #[serde(rename = "variant")]
    _variant: Option<IgnoredAny>,
    #[serde(rename = "nvswitch")]
    _nvswitch: Option<IgnoredAny>,
    #[serde(rename = "privileges")]
    _privileges: Option<IgnoredAny>,
    #[serde(rename = "unknowns")]
    _unknowns: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    gpu: Spanned<String>,
    count: Option<usize>,
    product: Option<String>,
    pci: Option<PciAddress>,
    minor: Option<u32>,
    uuid: Option<String>,
    #[serde(rename = "variant")]
    _variant: Option<IgnoredAny>,
    #[serde(rename = "numa")]
    _numa: Option<IgnoredAny>,
    #[serde(rename = "display")]
    _display: Option<IgnoredAny>,
    #[serde(rename = "mig")]
    _mig: Option<IgnoredAny>,
}

/// A GPU before defaults.
#[derive(Clone, Default)]
struct Draft {
    key: String,
    product: Option<String>,
    pci: Option<PciAddress>,
    minor: Option<u32>,
    uuid: Option<String>,
}

/// What a key stands for.
#[derive(Clone, Copy)]
enum Board<'a> {
    Mig(&'a TableGpu),
    Plain(&'static str),
}

impl<'a> Board<'a> {
    fn find(table: &'a Table, key: &str) -> Option<Board<'a>> {
        let plain = WITHOUT_MIG.iter().find(|(known, _)| *known == key).map(|(_, name)| Board::Plain(name));
        table.by_key(key).map(Board::Mig).or(plain)
    }

    fn products(self) -> impl Iterator<Item = &'a str> {
        let (names, plain) = match self {
            Board::Mig(gpu) => (gpu.product_names.as_slice(), None),
            Board::Plain(name) => (&[][..], Some(name)),
        };
        names.iter().map(String::as_str).chain(plain)
    }
}

fn assemble(table: &Table, drafts: Vec<Draft>, driver: &str, origin: &str) -> Result<Node, Diagnostic> {
    if drafts.is_empty() || drafts.len() > MAX_GPUS {
        let message = format!("{origin}: {} GPUs; a node has 1 to {MAX_GPUS}", drafts.len());
        return Err(Diagnostic::error(Reason::NodeInvalid, message).help(HELP));
    }
    let driver = Driver { version: driver.to_owned(), nvml: format!("{NVML_PREFIX}{driver}") };
    let taken: Vec<PciAddress> = drafts.iter().filter_map(|draft| draft.pci).collect();
    let mut free = (BUSES.into_iter().chain(0xc1..=0xff))
        .map(|bus| PciAddress { domain: 0, bus, device: 0, function: 0 })
        .filter(move |address| !taken.contains(address));
    let mut gpus = Vec::new();
    for (position, draft) in (0u32..).zip(drafts) {
        let Some(pci) = draft.pci.or_else(|| free.next()) else { continue };
        let Some(board) = Board::find(table, &draft.key) else { continue };
        let model =
            draft.product.as_deref().or_else(|| board.products().next()).unwrap_or_default().to_owned();
        let uuid = draft.uuid.unwrap_or_else(|| format!("GPU-00000000-0000-4000-8000-{position:012x}"));
        let mut gpu = Gpu {
            index: position,
            uuid: GpuUuid(uuid),
            model,
            pci,
            pci_id: PciId { device: 0, vendor: NVIDIA, subsystem_device: 0, subsystem_vendor: NVIDIA },
            minor: Some(draft.minor.unwrap_or(position)),
            architecture: Architecture::WithoutMig,
            memory_mib: 0,
            mig: None,
            profiles: Vec::new(),
            profiles_from: ProfileSource::Nobody,
            instances: Vec::new(),
        };
        if let Board::Mig(known) = board {
            let (device, subsystem) = known.pci_of(&gpu.model);
            gpu.pci_id.device = device;
            gpu.pci_id.subsystem_device = subsystem;
            gpu.architecture = known.architecture;
            gpu.memory_mib = known.memory_mib;
            gpu.mig = Some(MigMode { current: true, pending: true });
            if let Some(profiles) = table.profiles_for(gpu.pci_id, known.memory_mib, driver.branch()) {
                gpu.profiles = profiles;
                gpu.profiles_from = ProfileSource::Table;
            }
        }
        gpus.push(gpu);
    }
    // NVML counts GPUs by PCI address; minors stay with the order of probing.
    gpus.sort_by_key(|gpu| gpu.pci);
    for (index, gpu) in (0u32..).zip(&mut gpus) {
        gpu.index = index;
    }
    Ok(Node { driver, gpus, unavailable: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gpu_of_the_table_and_every_named_node_can_be_imagined() {
        let table = Table::shipped().unwrap();
        for key in keys(&table) {
            let node = node(&format!("2x{key}")).unwrap();
            assert_eq!(node.gpus.len(), 2, "{key}");
            let known = table.by_key(key);
            assert_eq!(node.gpus[0].mig.is_some(), known.is_some(), "{key}");
            if let Some(known) = known {
                assert_eq!(node.gpus[1].profiles, known.profiles, "{key}");
            }
        }
        for (name, _) in NAMED {
            assert!(node(name).unwrap().gpus.len() > 1, "{name}");
        }
        let mixed = node("mixed").unwrap();
        let models: Vec<&str> = mixed.gpus.iter().map(|gpu| gpu.model.as_str()).collect();
        assert_eq!(models, ["NVIDIA A100-PCIE-40GB", "NVIDIA A30", "Tesla T4"]);
        assert_eq!(mixed.gpus[0].pci_id.device, 0x20F1);
        assert_eq!(node("a30x4").unwrap().gpus.len(), 4);
    }

    #[test]
    fn an_old_driver_lacks_what_it_lacks_and_gpus_stand_in_the_order_of_their_addresses() {
        let text = "driver: 470.82.01\nnvswitch: true\ngpus:\n- {gpu: a100-40gb, pci: '0000:c1:00.0', minor: 7}\n\
                    - {gpu: a30-24gb, count: 2, mig: '1g@0*'}\n";
        let node = node_of_file(text, "n.yaml").unwrap();
        let said: Vec<String> =
            node.gpus.iter().map(|g| format!("{} {} {:?}", g.index, g.pci, g.minor)).collect();
        assert_eq!(said, ["0 0000:07:00.0 Some(1)", "1 0000:0f:00.0 Some(2)", "2 0000:c1:00.0 Some(7)"]);
        assert_eq!(node.gpus[2].profiles.len(), 6);
        assert!(node.gpus.iter().all(|gpu| gpu.instances.is_empty()));
    }

    #[test]
    fn nonsense_is_refused_with_the_nearest_name() {
        let near = |notation: &str| node(notation).unwrap_err().near;
        assert_eq!(near("8xa100-40g").first().unwrap(), "a100-40gb");
        assert_eq!(near("dgx-h10").first().unwrap(), "dgx-h100");
        for notation in ["", "0xa100-40gb", "65xa100-40gb", "8x", "xa100-40gb"] {
            assert_eq!(node(notation).unwrap_err().reason, Reason::NodeInvalid, "{notation}");
        }
        for (text, place) in [
            ("gpus: [{gpu: a100}]", "n.yaml:1:14"),
            ("gpus: [{gpu: a30-24gb, product: NVIDIA A31}]", "n.yaml:1:14"),
            ("gpus: [{gpu: a30-24gb, modell: x}]", "n.yaml:1:"),
            ("gpu: []", "n.yaml:1:"),
        ] {
            let fault = node_of_file(text, "n.yaml").unwrap_err();
            assert_eq!(fault.reason, Reason::NodeInvalid, "{text}");
            assert!(fault.place.as_ref().unwrap().to_string().starts_with(place), "{fault:?}");
        }
    }
}
