//! The table of GPUs that ships with migd, for where no driver can answer: drivers of branch 535 and older
//! hide the profiles while MIG is off. What comes of it is provisional.

use crate::{
    diagnostic::Diagnostic,
    id::PciId,
    node::Architecture,
    profile::{Engines, GiProfile, Placement, ProfileName},
    reason::Reason,
};
use serde::Deserialize;

const SHIPPED: &str = include_str!("../../../profiles/gpus.yaml");

/// The vendor id of NVIDIA.
pub const NVIDIA: u16 = 0x10DE;

/// First driver branch that lists `+me` of one slice.
const MEDIA_SINCE: u32 = 470;
/// First driver branch that lists the double-memory 1g and the `+me` of two slices.
const DOUBLE_SINCE: u32 = 525;
/// NVML_GPU_INSTANCE_PROFILE_* of the profiles that came later.
const SLOT_1_MEDIA: u32 = 7;
const SLOT_2_MEDIA: u32 = 8;
const SLOT_DOUBLE: u32 = 9;

/// The table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    gpus: Vec<TableGpu>,
}

/// A GPU model of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableGpu {
    /// Its short name: `a100-40gb`.
    pub key: String,
    /// What the driver calls it, `NVIDIA A100-SXM4-40GB`.
    pub product_names: Vec<String>,
    /// Its PCI device ids, each with the subsystem device ids known.
    pub pci: Vec<(u16, Vec<u16>)>,
    /// The product of each PCI id, or the end of its name.
    pci_names: Vec<String>,
    /// Its generation.
    pub architecture: Architecture,
    /// All its memory in MiB.
    pub memory_mib: u64,
    /// Its profiles, by slot; those with an unknown id or unknown placements are left out.
    pub profiles: Vec<GiProfile>,
}

impl Table {
    /// The table that ships with migd. It is read anew at each call, so keep it.
    ///
    /// # Errors
    /// `internal` if the file is not what this program was built for.
    pub fn shipped() -> Result<Table, Diagnostic> {
        Table::read(SHIPPED)
    }

    fn read(text: &str) -> Result<Table, Diagnostic> {
        let file: File = serde_yaml::from_str(text).map_err(|error| {
            let error = error.without_snippet();
            Diagnostic::error(Reason::Internal, format!("profiles/gpus.yaml cannot be read: {error}"))
        })?;
        Ok(Table { gpus: file.gpus.into_iter().map(TableGpu::from).collect() })
    }

    /// All models.
    pub fn gpus(&self) -> &[TableGpu] {
        &self.gpus
    }

    /// The model with this key.
    pub fn by_key(&self, key: &str) -> Option<&TableGpu> {
        self.gpus.iter().find(|gpu| gpu.key == key)
    }

    /// The model with this PCI id and, within a twentieth, this memory: one PCI id stands for boards of
    /// different memory.
    pub fn find(&self, pci_id: PciId, memory_mib: u64) -> Option<&TableGpu> {
        let known = |gpu: &TableGpu| {
            let mut ids = gpu.pci.iter().filter(|(device, _)| *device == pci_id.device);
            ids.any(|(_, subsystems)| subsystems.contains(&pci_id.subsystem_device))
        };
        self.gpus
            .iter()
            .filter(|gpu| pci_id.vendor == NVIDIA && gpu.pci.iter().any(|(d, _)| *d == pci_id.device))
            .filter(|gpu| gpu.memory_mib.abs_diff(memory_mib) * 20 <= gpu.memory_mib)
            .min_by_key(|gpu| (!known(gpu), gpu.memory_mib.abs_diff(memory_mib)))
    }

    /// The profiles that a driver of this branch lists on such a GPU; `None` if the table does not know it.
    pub fn profiles_for(&self, pci_id: PciId, memory_mib: u64, branch: u32) -> Option<Vec<GiProfile>> {
        let mut profiles = self.find(pci_id, memory_mib)?.profiles.clone();
        profiles.retain(|profile| match profile.slot {
            SLOT_1_MEDIA => branch >= MEDIA_SINCE,
            SLOT_2_MEDIA | SLOT_DOUBLE => branch >= DOUBLE_SINCE,
            _ => true,
        });
        (!profiles.is_empty()).then_some(profiles)
    }
}

impl TableGpu {
    /// Device and subsystem device id of a product; the first where the table does not tell them apart.
    pub fn pci_of(&self, product: &str) -> (u16, u16) {
        let ends = |name: &String| product.ends_with(&format!(" {name}"));
        let named = self.pci_names.iter().position(|name| name == product);
        let at = named.or_else(|| self.pci_names.iter().position(ends)).unwrap_or(0);
        let (device, subsystems) = self.pci.get(at).map_or((0, &[][..]), |(id, subs)| (*id, subs.as_slice()));
        (device, subsystems.first().copied().unwrap_or(0))
    }
}

#[derive(Deserialize)]
struct File {
    gpus: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    key: String,
    product_names: Vec<String>,
    pci: Vec<EntryPci>,
    architecture: String,
    memory_total_mib: u64,
    gi_profiles: Vec<EntryProfile>,
}

#[derive(Deserialize)]
struct EntryPci {
    device_id: u16,
    name: String,
    subsystem_ids: Vec<u16>,
}

#[derive(Deserialize)]
struct EntryProfile {
    name: ProfileName,
    nvml_enum_value: u32,
    id: Option<u32>,
    slice_count: u32,
    instance_count: Option<u32>,
    memory_mib: Option<u64>,
    multiprocessor_count: Option<u32>,
    engines: Option<EntryEngines>,
    placements: Option<Vec<Placement>>,
}

#[derive(Deserialize)]
struct EntryEngines {
    copy: Option<u32>,
    decoder: Option<u32>,
    encoder: Option<u32>,
    jpeg: Option<u32>,
    ofa: Option<u32>,
}

impl From<Entry> for TableGpu {
    fn from(entry: Entry) -> TableGpu {
        let mut profiles: Vec<GiProfile> =
            entry.gi_profiles.into_iter().filter_map(EntryProfile::into_profile).collect();
        profiles.sort_by_key(|p| p.slot);
        TableGpu {
            key: entry.key,
            product_names: entry.product_names,
            pci_names: entry.pci.iter().map(|pci| pci.name.clone()).collect(),
            pci: entry.pci.into_iter().map(|pci| (pci.device_id, pci.subsystem_ids)).collect(),
            architecture: if entry.architecture == "Ampere" {
                Architecture::Ampere
            } else {
                Architecture::HopperOrLater
            },
            memory_mib: entry.memory_total_mib,
            profiles,
        }
    }
}

impl EntryProfile {
    fn into_profile(self) -> Option<GiProfile> {
        let engines = self.engines.map(|e| Engines {
            copy: e.copy.unwrap_or(0),
            decoder: e.decoder.unwrap_or(0),
            encoder: e.encoder.unwrap_or(0),
            jpeg: e.jpeg.unwrap_or(0),
            ofa: e.ofa.unwrap_or(0),
        });
        Some(GiProfile {
            id: self.id?,
            slot: self.nvml_enum_value,
            name: self.name,
            slices: self.slice_count,
            max_instances: self.instance_count.unwrap_or(0),
            memory_mib: self.memory_mib.unwrap_or(0),
            multiprocessors: self.multiprocessor_count.unwrap_or(0),
            engines: engines.unwrap_or_default(),
            placements: self.placements.filter(|placements| !placements.is_empty())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(device: u16, subsystem_device: u16) -> PciId {
        PciId { device, vendor: NVIDIA, subsystem_device, subsystem_vendor: NVIDIA }
    }

    fn names(profiles: Option<Vec<GiProfile>>) -> Vec<String> {
        profiles.unwrap_or_default().iter().map(|p| p.name.to_string()).collect()
    }

    #[test]
    fn knows_every_gpu_of_the_file() {
        let table = Table::shipped().unwrap();
        assert_eq!(table.gpus().len(), 24);
        for gpu in table.gpus() {
            for (device, subsystems) in &gpu.pci {
                for subsystem in subsystems.iter().copied().chain([0]) {
                    let found = table.find(id(*device, subsystem), gpu.memory_mib).unwrap();
                    assert_eq!(found.key, gpu.key, "{device:#x}:{subsystem:#x}");
                }
            }
        }
    }

    #[test]
    fn tells_boards_of_one_pci_id_apart_by_memory() {
        let table = Table::shipped().unwrap();
        assert_eq!(table.find(id(0x2339, 0x17FC), 65247).unwrap().key, "h100-sxm-64gb");
        assert_eq!(table.find(id(0x2339, 0x17FC), 97871).unwrap().key, "h100-96gb");
        assert_eq!(table.find(id(0x2BB3, 0x227A), 73000), None);
        assert_eq!(table.find(PciId { vendor: 0x1002, ..id(0x20B0, 0) }, 40960), None);
    }

    #[test]
    fn leaves_out_what_older_drivers_lack() {
        let table = Table::shipped().unwrap();
        let a100 = |branch| names(table.profiles_for(id(0x20B0, 0x134F), 40960, branch));
        assert_eq!(a100(450), ["1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"]);
        assert_eq!(a100(470).len(), 6);
        assert_eq!(a100(525).len(), 7);
        let a30 = |branch| names(table.profiles_for(id(0x20B7, 0x1532), 24576, branch));
        assert_eq!(a30(510), ["1g.6gb", "2g.12gb", "4g.24gb", "1g.6gb+me"]);
        assert_eq!(a30(525).len(), 5);
    }

    #[test]
    fn does_not_invent_profiles_of_boards_without_a_geometry() {
        let table = Table::shipped().unwrap();
        assert_eq!(table.profiles_for(id(0x2BB3, 0x204D), 48935, 580), None);
    }
}
