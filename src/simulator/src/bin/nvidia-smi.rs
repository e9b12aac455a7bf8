//! Stand-in for nvidia-smi on a simulated node: `-L` and `-r`, in nvidia-smi's own words.
fn main() {}
