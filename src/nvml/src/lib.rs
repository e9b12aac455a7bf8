//! The only door to NVIDIA's driver.
//!
//! Loading, initialisation and the plain reads are nvml-wrapper's. What it lacks or has wrong for MIG stands
//! here over its raw symbols: GPU and compute instances, profiles in every struct version, placements (its own
//! answer is always empty), the activation status of a mode change, processes with their instance ids, and
//! error codes that it does not know.
//!
//! ```text
//! Library --device_by_pci--> Device --gpu_instances--> GpuInstance --compute_instances--> ComputeInstance
//!    one nvmlInit                \--mode, profiles, placements, processes                     \--> MIG device
//!    nvmlShutdown on drop
//! ```
//! Every handle borrows the [`Library`], so none outlives it. A handle whose instance is gone answers an error.
//! A symbol that the library lacks is [`Error::Missing`], what the device lacks [`Code::NOT_SUPPORTED`]: facts
//! to act on. Nothing here decides, retries or waits.

mod compute_instance;
mod device;
mod error;
mod gpu_instance;
mod library;
mod mode;
mod process;
mod profile;
mod text;

pub use compute_instance::{ComputeInstance, ComputeInstanceInfo};
pub use device::{Device, Pci};
pub use error::{Code, Error};
pub use gpu_instance::{ComputeProfileInfo, GpuInstance, GpuInstanceInfo};
pub use library::Library;
pub use mode::Activation;
pub use process::{Process, ProcessKind};
pub use profile::{ProfileInfo, ProfileVersion, parse_profile_name};
