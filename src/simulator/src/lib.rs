//! A simulated NVIDIA driver: `libnvidia-ml.so.1` over a node that lives in a file.
//!
//! ```text
//! nvml-simulator (program) --makes, shows, resets--> node folder: state (mapped), clients, lib/, bin/
//!                                                         ^
//! any program --NVML C ABI--> abi --> session --> machine (what the driver would do) --> shared --+
//! ```
//!
//! The table of GPUs is read once, when a node is made; after that everything a call needs stands in the
//! mapped state, so opening a node costs one mmap. Nothing of a node's state lives in a process: any of them
//! may be killed at any instruction.

// The names are NVML's.
#[allow(non_snake_case)]
pub mod abi;
pub mod client;
pub mod events;
pub mod fault;
pub mod folder;
pub mod geometry;
pub mod handling;
pub mod machine;
mod mapped;
pub mod model;
pub mod notation;
pub mod older;
pub mod place;
pub mod product;
pub mod reading;
pub mod readings;
pub mod sampler;
pub mod session;
pub mod shared;
pub mod show;
pub mod state;
pub mod table;
pub mod trouble;
pub mod watch;

#[cfg(test)]
mod fixture;
