//! A node file from a node: read through any libnvidia-ml.so.1, by reads alone.
//!
//! ```text
//! libnvidia-ml.so.1 --reads--> Node (driver) --table of GPUs--> YAML (paper) --read back--> the same instances?
//! ```
//!
//! What NVML does not tell is not in the file: MIG UUIDs (the simulator makes its own), who holds a GPU instance
//! without a compute instance, which of two numberings a board without instances has.

mod driver;
mod paper;

use crate::trouble::Trouble;
use std::ffi::OsStr;

/// A driver's node as a node file.
///
/// # Errors
/// [`Trouble::Failed`] names the call that was refused, or the GPU that the simulator does not know.
pub fn record(library: &OsStr) -> Result<String, Trouble> {
    paper::write(&driver::Driver::open(library)?.node()?)
}

/// What was read of a node.
#[derive(Debug)]
struct Node {
    driver: String,
    nvml: String,
    cuda: u32,
    gpus: Vec<Gpu>,
    /// NVML_TOPOLOGY_* of each pair; empty where the driver does not tell.
    levels: Vec<Vec<u32>>,
}

/// What was read of a GPU.
#[derive(Debug)]
struct Gpu {
    name: String,
    uuid: String,
    serial: Option<String>,
    pci: crate::notation::Address,
    pci_device_id: u32,
    minor: u32,
    memory_mib: u64,
    /// Current and pending; `None` without MIG.
    mig: Option<(bool, bool)>,
    instances: Vec<Instance>,
    /// GPU instance and compute instance of each process; none for those on the whole GPU.
    processes: Vec<Option<(u32, u32)>>,
    numa: Option<u32>,
    cpus: Vec<u32>,
    links: Vec<Link>,
    fabric: Option<FabricState>,
}

/// A GPU instance.
#[derive(Debug)]
struct Instance {
    id: u32,
    profile: u32,
    start: u32,
    size: u32,
    compute: Vec<Compute>,
}

/// A compute instance.
#[derive(Debug)]
struct Compute {
    id: u32,
    profile: u32,
    start: u32,
    size: u32,
}

/// An NVLink that leads somewhere.
#[derive(Debug)]
struct Link {
    active: bool,
    /// `None`: to an NVSwitch.
    gpu: Option<crate::notation::Address>,
}

/// A GPU's registration with the NVLink fabric.
#[derive(Debug)]
struct FabricState {
    joined: bool,
    cluster: [u8; 16],
    clique: u32,
}
