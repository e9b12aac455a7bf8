//! What lies between the GPUs of a node: NVLinks and where they lead, NVSwitches and their Fabric Manager, PCIe
//! switches, CPUs.
//!
//! ```text
//! Model.link_ends: [ GPU | NVSwitch | nothing ] by link        Model.pcie: host bridge / switch / switch
//! Info.fabric: no Fabric Manager | stopped | running           Model.cpus, Model.numa_node
//! ```
//!
//! All of it is fixed when the node is made (`notation`); pure functions here. Which of them nobody has seen on
//! hardware is said where they are: NVML documents the calls, not the answers of every board.

use crate::{
    machine::Board,
    model::{Family, MAX_GPUS, Model},
    notation::Address,
    shared::Info,
    state::GpuState,
};

/// NVML_NVLINK_MAX_LINKS.
pub const MAX_LINKS: usize = 36;
/// The most parts of a place on PCIe.
pub const MAX_PCIE: usize = 4;
/// The most CPUs, by words of 64.
pub const CPU_WORDS: usize = 16;

/// NVML_TOPOLOGY_*, the levels that NVML tells of.
const SAME: u32 = 0;
const ONE_SWITCH: u32 = 10;
const SEVERAL_SWITCHES: u32 = 20;
const HOST_BRIDGE: u32 = 30;
const NUMA_NODE: u32 = 40;
const SYSTEM: u32 = 50;
/// All of them.
pub const LEVELS: [u32; 6] = [SAME, ONE_SWITCH, SEVERAL_SWITCHES, HOST_BRIDGE, NUMA_NODE, SYSTEM];

/// NVML_DEVICE_ARCH_HOPPER and _BLACKWELL.
const HOPPER: u32 = 9;
const BLACKWELL: u32 = 10;
/// Where the NVSwitches of a simulated node sit: on buses from this one on.
const FIRST_SWITCH_BUS: u32 = 0xf0;
/// PCI ids of NVSwitches: of A100 and of H100 nodes.
const AMPERE_SWITCH: u32 = 0x1af1_10de;
const HOPPER_SWITCH: u32 = 0x22a3_10de;

/// What stands in [`Model::link_ends`]: 0, a GPU's index and 1, or a switch's number and this.
const SWITCH: u8 = 64;

/// Where an NVLink leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// To another GPU, by index.
    Gpu(usize),
    /// To an NVSwitch, by number.
    Switch(u32),
}

impl End {
    /// As the model keeps it.
    pub fn word(self) -> u8 {
        match self {
            End::Gpu(gpu) => u8::try_from(gpu + 1).unwrap_or(0),
            End::Switch(number) => SWITCH + u8::try_from(number).unwrap_or(0),
        }
    }
}

/// Fabric Manager, which sets NVSwitches up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fabric {
    /// There is no NVSwitch.
    #[default]
    None,
    /// NVSwitches, and no Fabric Manager that runs.
    Stopped,
    /// NVSwitches that it has set up.
    Running,
}

impl Fabric {
    /// The node's.
    pub fn of(info: &Info) -> Fabric {
        match (info.nvswitch, info.fabric) {
            (0, _) => Fabric::None,
            (_, 1) => Fabric::Stopped,
            _ => Fabric::Running,
        }
    }

    /// As a node file writes it.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Fabric::None => None,
            Fabric::Stopped => Some("stopped"),
            Fabric::Running => Some("running"),
        }
    }
}

impl Model {
    /// Where a link leads, if it leads anywhere.
    pub fn link_end(&self, link: u32) -> Option<End> {
        match *self.link_ends.get(link as usize)? {
            0 => None,
            word if word >= SWITCH => Some(End::Switch(u32::from(word - SWITCH))),
            word => Some(End::Gpu(usize::from(word - 1))).filter(|_| usize::from(word) <= MAX_GPUS),
        }
    }

    /// Where its links lead, link by link.
    pub fn link_ends(&self) -> impl Iterator<Item = End> {
        (0..MAX_LINKS as u32).filter_map(|link| self.link_end(link))
    }

    /// How many of its links lead to NVSwitches.
    pub fn switched_links(&self) -> u32 {
        self.link_ends().filter(|end| matches!(end, End::Switch(_))).count() as u32
    }

    fn behind_switches(&self) -> bool {
        self.switched_links() != 0
    }

    /// The CPUs that are said to be near; `None` for all of this machine.
    pub fn cpus(&self) -> Option<Vec<u32>> {
        let words = (0u32..).zip(self.cpus);
        let all = words.flat_map(|(at, word)| {
            (0..64).filter(move |bit| word >> bit & 1 != 0).map(move |bit| at * 64 + bit)
        });
        Some(all.collect()).filter(|cpus: &Vec<u32>| !cpus.is_empty())
    }

    /// Its place on PCIe, from the host bridge on, where one is said.
    pub fn pcie(&self) -> Vec<u8> {
        self.pcie.iter().map_while(|part| part.checked_sub(1)).collect()
    }
}

impl Board<'_> {
    /// Whether a link is up. Ampere's NVSwitches are set up by Fabric Manager; later ones train by themselves. MIG
    /// takes a GPU off NVLink (MIG User Guide); that its links then read as down is not seen.
    pub fn link_active(&self, state: &GpuState, link: u32) -> bool {
        let up = match self.model.link_end(link) {
            None => false,
            Some(End::Gpu(_)) => true,
            Some(End::Switch(_)) => self.fabric == Fabric::Running || self.model.family() != Family::Ampere,
        };
        up && (self.unknowns.nvlink_under_mig != 0 || !self.mig_on(state))
    }

    /// Whether this GPU can be reset without others. On NVSwitch Ampere needs Fabric Manager for that; without
    /// it all GPUs behind the switches go together (nvidia-smi's manual).
    pub fn resets_alone(&self) -> bool {
        self.model.family() != Family::Ampere
            || self.fabric != Fabric::Stopped
            || !self.model.behind_switches()
    }
}

/// The GPUs that are reset with this one, itself among them.
pub fn reset_group(info: &Info, models: &[Model], gpu: usize) -> Vec<usize> {
    let alone = models.get(gpu).is_none_or(|model| Board::new(info, model).resets_alone());
    if alone {
        return vec![gpu];
    }
    (0..models.len()).filter(|other| models.get(*other).is_some_and(Model::behind_switches)).collect()
}

/// The nearest thing that two GPUs have in common, as NVML counts it.
pub fn level(one: (usize, &Model), other: (usize, &Model)) -> u32 {
    if one.0 == other.0 {
        return SAME;
    }
    let (a, b) = (one.1.pcie(), other.1.pcie());
    let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    match common {
        0 if one.1.numa_node == other.1.numa_node => NUMA_NODE,
        0 => SYSTEM,
        // A host bridge alone, with the switch below it or the GPUs themselves.
        1 => HOST_BRIDGE,
        _ if common == a.len() && common == b.len() => ONE_SWITCH,
        _ => SEVERAL_SWITCHES,
    }
}

/// A way of one GPU to another's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By NVLink, or else by PCIe.
    Any,
    /// By NVLink alone.
    NvLink,
    /// By PCIe alone.
    Pcie,
}

/// Whether one GPU reaches another's memory. Not with MIG on, on either (MIG User Guide).
pub fn reaches(one: (usize, &Board<'_>, &GpuState), other: (usize, &Board<'_>, &GpuState), way: Way) -> bool {
    let ((a, board, state), (b, far, far_state)) = (one, other);
    let whole = !board.mig_on(state) && !far.mig_on(far_state);
    whole && (way != Way::NvLink || linked(a, board, b, far))
}

fn linked(a: usize, board: &Board<'_>, b: usize, far: &Board<'_>) -> bool {
    let switched = board.model.behind_switches() && far.model.behind_switches();
    let direct = board.model.link_ends().any(|end| end == End::Gpu(b))
        && far.model.link_ends().any(|end| end == End::Gpu(a));
    direct || switched && board.fabric == Fabric::Running
}

/// An NVSwitch as a PCI device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// Where it sits.
    pub address: Address,
    /// NVML's pciDeviceId.
    pub id: u32,
}

/// The NVSwitches of a node with such GPUs; those of Blackwell are no PCI devices of it.
pub fn switches(architecture: u32) -> Vec<Switch> {
    let (count, id) = match architecture {
        BLACKWELL.. => return Vec::new(),
        HOPPER => (4, HOPPER_SWITCH),
        _ => (6, AMPERE_SWITCH),
    };
    let at = |number| Address { domain: 0, bus: FIRST_SWITCH_BUS + number, device: 0 };
    (0..count).map(|number| Switch { address: at(number), id }).collect()
}

/// All NVSwitches that a node shows.
pub fn node_switches(models: &[Model]) -> Vec<Switch> {
    models
        .iter()
        .find(|model| model.behind_switches())
        .map_or_else(Vec::new, |model| switches(model.architecture))
}

/// Reads `0-3,6`.
pub fn parse_cpus(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (from, to) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        Some(from.parse::<u32>().ok()?..=to.parse::<u32>().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// Writes `0-3,6`.
pub fn write_cpus(cpus: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
            _ => ranges.push((*cpu, *cpu)),
        }
    }
    let one = |(from, to): &(u32, u32)| if from == to { from.to_string() } else { format!("{from}-{to}") };
    ranges.iter().map(one).collect::<Vec<_>>().join(",")
}

/// The CPUs of this machine; never none, which would stop slurmd.
pub fn machine_cpus() -> Vec<u32> {
    let listed = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let cpus = parse_cpus(&listed);
    if cpus.is_empty() { vec![0] } else { cpus }
}

#[cfg(test)]
mod tests;
