//! How a GPU instance is split into compute instances.
//!
//! A compute instance takes the whole, or at most half of it rounded up, and begins at a multiple of its span:
//! 1, 2, or 4 compute slices (open-gpu-kernel-modules, kernel_mig_manager.c). Places are counted in compute
//! slices from the instance's start.

use crate::profile::Placement;

/// The sizes of compute instances that an instance of so many slices takes, smallest first.
pub fn compute_sizes(slices: u32) -> impl Iterator<Item = u32> {
    // NVML has no compute profile of 5 slices.
    (1..=slices).filter(move |size| *size == slices || (*size != 5 && 2 * size <= slices + 1))
}

/// Where a compute instance of `size` can begin in an instance of `slices`, lowest first.
pub fn compute_starts(size: u32, slices: u32) -> impl Iterator<Item = u32> {
    let step = if size == slices { slices.max(1) } else { size.max(1).next_power_of_two() };
    (0..slices).step_by(step as usize).filter(move |start| start + size <= slices)
}

/// Places compute instances of `sizes`, largest first, in an instance of `slices` beside those at `taken`: the
/// lowest places that work, in the order of `sizes`.
pub fn compute_places(slices: u32, taken: &[Placement], sizes: &[u32]) -> Option<Vec<Placement>> {
    let mut places = Vec::with_capacity(sizes.len());
    place(slices, taken, sizes, &mut places).then_some(places)
}

fn place(slices: u32, taken: &[Placement], sizes: &[u32], places: &mut Vec<Placement>) -> bool {
    let Some((size, rest)) = sizes.split_first() else { return true };
    if !compute_sizes(slices).any(|legal| legal == *size) {
        return false;
    }
    for start in compute_starts(*size, slices) {
        let here = Placement { start, size: *size };
        if taken.iter().chain(places.iter()).any(|other| other.overlaps(here)) {
            continue;
        }
        places.push(here);
        if place(slices, taken, rest, places) {
            return true;
        }
        places.pop();
    }
    false
}
