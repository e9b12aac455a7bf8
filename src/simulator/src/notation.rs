//! How a node is written, and what it comes to.
//!
//! ```text
//! 8xa100-40gb | a30-24gb | 1xa100-40gb,1xa30-24gb     count x key of the table
//! dgx-a100                                            a named node, profiles/nodes/NAME.yaml
//! ./my-node.yaml                                      a file of the same form (anything with a / or .yaml)
//!         |
//!         v
//!   Description (every default filled in, GPUs in NVML's order) --> identity, folder name
//!         |                                                          (cheap: no table is read)
//!         v
//!   make(): Info + (Model, GpuState) of each GPU                     (once, when the node is made)
//! ```

mod file;

use crate::{
    geometry,
    machine::{Board, Unknowns},
    model::{MAX_GPUS, Model, Text},
    product::Product,
    shared::Info,
    state::GpuState,
    table::{Gpus, Variant},
    trouble::{Trouble, did_you_mean, join},
};
use sha1::{Digest, Sha1};
use std::{
    fmt::{self, Write as _},
    path::Path,
    str::FromStr,
};

/// The nodes that ship with the simulator.
pub const NAMED: [(&str, &str); 9] = [
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

const DRIVER: &str = "580.95.05";
/// Where the GPUs of a DGX A100 sit; further ones count on from 0xC1.
const BUSES: [u32; 8] = [0x07, 0x0f, 0x47, 0x4e, 0x87, 0x90, 0xb7, 0xbd];

/// CUDA version by driver branch, as each branch's release notes pair them.
const CUDA: [(u32, u32); 22] = [
    (450, 11000),
    (455, 11010),
    (460, 11020),
    (465, 11030),
    (470, 11040),
    (495, 11050),
    (510, 11060),
    (515, 11070),
    (520, 11080),
    (525, 12000),
    (530, 12010),
    (535, 12020),
    (545, 12030),
    (550, 12040),
    (555, 12050),
    (560, 12060),
    (565, 12070),
    (570, 12080),
    (575, 12090),
    (580, 13000),
    (590, 13010),
    (595, 13020),
];

/// A PCI address; function 0 always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Domain.
    pub domain: u32,
    /// Bus.
    pub bus: u32,
    /// Device.
    pub device: u32,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.0", self.domain, self.bus, self.device)
    }
}

impl FromStr for Address {
    type Err = &'static str;

    /// Reads `0000:07:00.0`, with a domain of 4 or 8 digits or none.
    fn from_str(text: &str) -> Result<Address, &'static str> {
        const FORM: &str = "a PCI address is written 0000:07:00.0";
        let text = text.strip_suffix(".0").ok_or(FORM)?;
        let parts: Vec<&str> = text.split(':').collect();
        let (domain, bus, device) = match parts.as_slice() {
            [domain, bus, device] => (*domain, *bus, *device),
            [bus, device] => ("0", *bus, *device),
            _ => return Err(FORM),
        };
        let hex = |part: &str, limit: u32| {
            u32::from_str_radix(part, 16).ok().filter(|value| *value <= limit).ok_or(FORM)
        };
        Ok(Address { domain: hex(domain, u32::MAX)?, bus: hex(bus, 0xff)?, device: hex(device, 0x1f)? })
    }
}

/// One GPU of a description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuEntry {
    /// Key in the table.
    pub key: String,
    /// Product name, where the table has several.
    pub product: Option<String>,
    /// Where it sits.
    pub address: Address,
    /// N of /dev/nvidiaN.
    pub minor: u32,
    /// Board variant.
    pub variant: Variant,
    /// UUID, if it is not the one that follows from the node and the address.
    pub uuid: Option<String>,
    /// NUMA node.
    pub numa: u32,
    /// Whether a workstation board still drives displays, which hides MIG.
    pub display: Option<bool>,
    /// First geometry, in the notation of instances.
    pub mig: String,
}

/// A node with every default filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// As it was written.
    pub notation: String,
    /// What its folder is called where none is given.
    pub folder_name: String,
    /// Driver version.
    pub driver: String,
    /// NVML version.
    pub nvml: String,
    /// CUDA version as NVML gives it.
    pub cuda: u32,
    /// Joined by NVSwitch.
    pub nvswitch: bool,
    /// Rights are checked as the driver does.
    pub privileges_real: bool,
    /// Writes on different GPUs wait for each other.
    pub driver_lock_node: bool,
    /// Answers no one has seen on hardware, by name.
    pub unknowns: Vec<(String, u32)>,
    /// GPUs in NVML's order, by PCI address.
    pub gpus: Vec<GpuEntry>,
}

/// Reads a node's notation; a file is read, the table is not.
///
/// # Errors
/// [`Trouble::Input`] says what is legal; [`Trouble::Failed`] if a file cannot be read.
pub fn parse(notation: &str) -> Result<Description, Trouble> {
    if let Some((name, text)) = NAMED.iter().find(|(name, _)| *name == notation) {
        return file::parse(text, name, name, notation);
    }
    if notation.contains('/') || notation.ends_with(".yaml") || notation.ends_with(".yml") {
        let path = Path::new(notation);
        let text = std::fs::read_to_string(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => Trouble::input(format!("no node file {notation}")),
            _ => Trouble::io("read", path, &e),
        })?;
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("node");
        return file::parse(&text, notation, stem, notation);
    }
    counted(notation)
}

/// `8xa100-40gb`, `a30-24gb`, or several joined by commas.
fn counted(notation: &str) -> Result<Description, Trouble> {
    let keys: Vec<String> = Gpus::keys();
    let mut entries = Vec::new();
    for part in notation.split(',') {
        let (count, key) = split_count(part);
        if !keys.iter().any(|known| known == key) {
            let names = keys.iter().map(String::as_str).chain(NAMED.iter().map(|(name, _)| *name));
            let near = did_you_mean(key, names);
            return Err(Trouble::input(format!(
                "no node `{notation}`: `{key}` is neither a GPU of the table nor a named node{near} (a node is \
                 COUNTxGPU, a name, or the path of a .yaml file; `list` shows all)"
            )));
        }
        if count == 0 || count > MAX_GPUS {
            return Err(Trouble::input(format!("`{part}`: a node has 1 to {MAX_GPUS} GPUs")));
        }
        entries.extend((0..count).map(|_| Draft { key: key.to_owned(), ..Draft::default() }));
    }
    Draft::finish(entries, Versions::default(), notation, notation)
}

/// `8xa100-40gb` to 8 and the key; without a count, 1.
fn split_count(part: &str) -> (usize, &str) {
    match part.split_once('x') {
        Some((count, key)) if !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit()) => {
            (count.parse().unwrap_or(usize::MAX), key)
        }
        _ => (1, part),
    }
}

/// A GPU before defaults.
#[derive(Default, Clone)]
struct Draft {
    key: String,
    product: Option<String>,
    address: Option<Address>,
    minor: Option<u32>,
    variant: Variant,
    uuid: Option<String>,
    numa: Option<u32>,
    display: Option<bool>,
    mig: Option<String>,
}

/// What a node file says besides its GPUs.
#[derive(Default)]
struct Versions {
    driver: Option<String>,
    nvml: Option<String>,
    cuda: Option<u32>,
    nvswitch: bool,
    privileges_real: bool,
    driver_lock_node: bool,
    unknowns: Vec<(String, u32)>,
}

impl Draft {
    /// Fills the defaults in.
    fn finish(
        drafts: Vec<Draft>,
        versions: Versions,
        notation: &str,
        folder_name: &str,
    ) -> Result<Description, Trouble> {
        let count = drafts.len();
        if count == 0 || count > MAX_GPUS {
            return Err(Trouble::input(format!("{notation}: {count} GPUs; a node has 1 to {MAX_GPUS}")));
        }
        let driver = versions.driver.unwrap_or_else(|| DRIVER.to_owned());
        let cuda = match versions.cuda {
            Some(cuda) => cuda,
            None => cuda_of(&driver).ok_or_else(|| {
                Trouble::input(format!(
                    "{notation}: which CUDA driver {driver} has is not known; say it (`cuda: 13000`)"
                ))
            })?,
        };
        let nvml = versions.nvml.unwrap_or_else(|| format!("{}.{driver}", cuda / 1000));
        let mut free = default_addresses(&drafts);
        let mut gpus: Vec<GpuEntry> = Vec::new();
        for (position, draft) in (0u32..).zip(drafts) {
            let address = draft.address.or_else(|| free.next());
            let address = address.ok_or_else(|| Trouble::input(format!("{notation}: no PCI bus left")))?;
            gpus.push(GpuEntry {
                key: draft.key,
                product: draft.product,
                address,
                minor: draft.minor.unwrap_or(position),
                variant: draft.variant,
                uuid: draft.uuid,
                // Two sockets, as nearly all nodes with several GPUs have.
                numa: draft.numa.unwrap_or(u32::from(position as usize >= count.div_ceil(2))),
                display: draft.display,
                mig: draft.mig.unwrap_or_else(|| "off".to_owned()),
            });
        }
        // NVML counts GPUs by PCI address; minors stay with the order of probing.
        gpus.sort_by_key(|gpu| gpu.address);
        unique(notation, "PCI address", gpus.iter().map(|gpu| gpu.address.to_string()))?;
        unique(notation, "minor", gpus.iter().map(|gpu| gpu.minor.to_string()))?;
        unique(notation, "UUID", gpus.iter().filter_map(|gpu| gpu.uuid.clone()))?;
        Ok(Description {
            notation: notation.to_owned(),
            folder_name: folder_name.to_owned(),
            driver,
            nvml,
            cuda,
            nvswitch: versions.nvswitch,
            privileges_real: versions.privileges_real,
            driver_lock_node: versions.driver_lock_node,
            unknowns: versions.unknowns,
            gpus,
        })
    }
}

/// The addresses of a DGX, then further buses, without those that are given.
fn default_addresses(drafts: &[Draft]) -> impl Iterator<Item = Address> + use<> {
    let taken: Vec<Address> = drafts.iter().filter_map(|draft| draft.address).collect();
    BUSES
        .into_iter()
        .chain(0xc1..=0xff)
        .map(|bus| Address { domain: 0, bus, device: 0 })
        .filter(move |address| !taken.contains(address))
}

fn unique(notation: &str, what: &str, values: impl Iterator<Item = String>) -> Result<(), Trouble> {
    let mut values: Vec<String> = values.collect();
    values.sort();
    match values.windows(2).find(|pair| pair.first() == pair.last()) {
        Some(pair) => {
            Err(Trouble::input(format!("{notation}: {what} {} is given twice", join(pair.first(), ""))))
        }
        None => Ok(()),
    }
}

fn cuda_of(driver: &str) -> Option<u32> {
    let branch: u32 = driver.split('.').next()?.parse().ok()?;
    CUDA.iter().find(|(known, _)| *known == branch).map(|(_, cuda)| *cuda)
}

impl Description {
    /// What makes this node itself: everything but how it was written.
    fn canonical(&self) -> String {
        let mut text = format!(
            "{}\n{}\n{}\nnvswitch {}\nprivileges {}\n{:?}\n",
            self.driver, self.nvml, self.cuda, self.nvswitch, self.privileges_real, self.unknowns
        );
        // Said only where it is not as usual, since boards take their UUIDs from this text.
        if self.driver_lock_node {
            text.push_str("driver-lock node\n");
        }
        for gpu in &self.gpus {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{gpu:?}");
        }
        text
    }

    /// The same word for the same node; another edition of the table makes another.
    pub fn identity(&self) -> String {
        let digest = Sha1::digest(self.canonical());
        format!("{}-{}", hex(&digest), env!("NVML_SIMULATOR_TABLE"))
    }

    /// Reads the table and makes every GPU in its first state.
    ///
    /// # Errors
    /// [`Trouble::Input`] for a key, product or geometry that the table does not allow.
    pub fn make(&self) -> Result<(Info, Vec<(Model, GpuState)>), Trouble> {
        let table = Gpus::load()?;
        let mut unknowns = [0; 16];
        for (name, value) in &self.unknowns {
            let known = Unknowns::NAMES.iter().find(|(_, known, _)| known == name);
            if let Some(to) = known.and_then(|(at, _, _)| unknowns.get_mut(*at)) {
                *to = *value;
            }
        }
        let info = Info {
            notation: Text::new(&self.notation),
            identity: Text::new(&self.identity()),
            driver: Text::new(&self.driver),
            nvml: Text::new(&self.nvml),
            cuda: self.cuda,
            gpu_count: self.gpus.len() as u32,
            privileges_real: u32::from(self.privileges_real),
            nvswitch: u32::from(self.nvswitch),
            driver_lock_node: u32::from(self.driver_lock_node),
            unknowns,
        };
        let seed = Sha1::digest(self.canonical());
        let mut gpus = Vec::new();
        for (index, entry) in self.gpus.iter().enumerate() {
            let at = |error: Trouble| match error {
                Trouble::Input(why) => Trouble::Input(format!("{}: GPU {index}: {why}", self.notation)),
                failed => failed,
            };
            let mut model = table.model(&entry.key, entry.product.as_deref(), entry.variant).map_err(at)?;
            entry.place(&mut model, &seed);
            model.links = if self.nvswitch { Product::of(&model).links } else { 0 };
            let state =
                geometry::parse(&Board::new(&info, &model), &entry.mig, &geometry::blank()).map_err(at)?;
            gpus.push((*model, state));
        }
        unique(&self.notation, "UUID", gpus.iter().map(|(model, _)| model.uuid.as_str().to_owned()))?;
        Ok((info, gpus))
    }
}

impl GpuEntry {
    /// Makes a board of this node out of one of the table.
    fn place(&self, model: &mut Model, seed: &[u8]) {
        let digest = Sha1::new().chain_update(seed).chain_update(self.address.to_string()).finalize();
        let uuid = self.uuid.clone().unwrap_or_else(|| format!("GPU-{}", uuid_of(&digest)));
        model.uuid = Text::new(&uuid);
        let number = digest.iter().rev().take(8).fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
        model.board_seed = number;
        // 13 digits, as on data-centre boards.
        model.serial = Text::new(&format!("1{:012}", number % 1_000_000_000_000));
        model.domain = self.address.domain;
        model.bus = self.address.bus;
        model.device = self.address.device;
        model.minor = self.minor;
        model.numa_node = self.numa;
        if let Some(display) = self.display {
            model.display_mode = u32::from(display);
        }
    }
}

/// The text of a version 5 UUID over a SHA-1 digest.
fn uuid_of(digest: &[u8]) -> String {
    let mut bytes: Vec<u8> = digest.iter().take(16).copied().collect();
    if let Some(byte) = bytes.get_mut(6) {
        *byte = *byte & 0x0f | 0x50;
    }
    if let Some(byte) = bytes.get_mut(8) {
        *byte = *byte & 0x3f | 0x80;
    }
    let mut text = hex(&bytes);
    for at in [20, 16, 12, 8] {
        text.insert(at, '-');
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests;
