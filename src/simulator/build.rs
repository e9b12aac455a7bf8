//! Gives the library the name that programs ask the loader for, and the programs a stamp of the table of GPUs.

use std::{env, fs, path::PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libnvidia-ml.so.1");

    // A node made from another edition of the table is another node; hashing the table at every start of a
    // program would cost more than the start itself.
    let table =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../profiles/gpus.yaml");
    println!("cargo::rerun-if-changed={}", table.display());
    let mut stamp: u64 = 0xcbf2_9ce4_8422_2325; // FNV-1a
    for byte in fs::read(&table).unwrap_or_default() {
        stamp = (stamp ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    println!("cargo::rustc-env=NVML_SIMULATOR_TABLE={stamp:016x}");
}
