//! NVML's structs, laid out as nvml.h has them on x86-64.

use super::handle::Handle;
use std::ffi::c_char;

/// The version word of a struct: its size and its version.
pub(super) const fn version<T>(number: u32) -> u32 {
    size_of::<T>() as u32 | (number << 24)
}

/// All bytes zero, as a C program has a struct that it is about to give.
#[cfg(test)]
pub(crate) trait Zero {
    /// The struct.
    fn zero() -> Self;
}

macro_rules! layout {
    ($($(#[$meta:meta])* struct $name:ident = $size:literal { $($field:ident: $kind:ty,)* })*) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            #[derive(Debug, Clone, Copy)]
            pub(crate) struct $name { $(pub(crate) $field: $kind,)* }

            const _: () = assert!(size_of::<$name>() == $size);

            #[cfg(test)]
            impl Zero for $name {
                fn zero() -> $name {
                    // SAFETY: every field is an integer, a handle, or an array of integers.
                    unsafe { std::mem::zeroed() }
                }
            }
        )*
    };
}

layout! {
    /// nvmlGpuInstancePlacement_t and nvmlComputeInstancePlacement_t.
    struct Placement = 8 { start: u32, size: u32, }

    /// nvmlGpuInstanceProfileInfo_t.
    struct GiProfile = 48 {
        id: u32, p2p: u32, slices: u32, instances: u32, multiprocessors: u32,
        copy: u32, decoder: u32, encoder: u32, jpeg: u32, ofa: u32,
        memory_mb: u64,
    }

    /// nvmlGpuInstanceProfileInfo_v2_t.
    struct GiProfile2 = 152 {
        version: u32, id: u32, p2p: u32, slices: u32, instances: u32, multiprocessors: u32,
        copy: u32, decoder: u32, encoder: u32, jpeg: u32, ofa: u32, gap: u32,
        memory_mb: u64, name: [c_char; 96],
    }

    /// nvmlGpuInstanceProfileInfo_v3_t.
    struct GiProfile3 = 152 {
        version: u32, id: u32, slices: u32, instances: u32, multiprocessors: u32,
        copy: u32, decoder: u32, encoder: u32, jpeg: u32, ofa: u32,
        memory_mb: u64, name: [c_char; 96], capabilities: u32, gap: u32,
    }

    /// nvmlGpuInstanceInfo_t.
    struct GiInfo = 24 { device: Handle, id: u32, profile: u32, placement: Placement, }

    /// nvmlComputeInstanceProfileInfo_t.
    struct CiProfile = 36 {
        id: u32, slices: u32, instances: u32, multiprocessors: u32,
        copy: u32, decoder: u32, encoder: u32, jpeg: u32, ofa: u32,
    }

    /// nvmlComputeInstanceProfileInfo_v2_t.
    struct CiProfile2 = 136 { version: u32, info: CiProfile, name: [c_char; 96], }

    /// nvmlComputeInstanceProfileInfo_v3_t.
    struct CiProfile3 = 140 { version: u32, info: CiProfile, name: [c_char; 96], capabilities: u32, }

    /// What the first nvmlComputeInstanceInfo_t had: no placement.
    struct CiInfo1 = 24 { device: Handle, gi: Handle, id: u32, profile: u32, }

    /// nvmlComputeInstanceInfo_t.
    struct CiInfo = 32 { device: Handle, gi: Handle, id: u32, profile: u32, placement: Placement, }

    /// nvmlDeviceAttributes_t.
    struct Attributes = 40 {
        multiprocessors: u32,
        copy: u32, decoder: u32, encoder: u32, jpeg: u32, ofa: u32,
        gi_slices: u32, ci_slices: u32, memory_mb: u64,
    }

    /// The first nvmlProcessInfo_t.
    struct Process1 = 16 { pid: u32, gap: u32, memory: u64, }

    /// nvmlProcessInfo_t since its second version.
    struct Process = 24 { pid: u32, gap: u32, memory: u64, gi: u32, ci: u32, }

    /// nvmlMemory_t.
    struct Memory = 24 { total: u64, free: u64, used: u64, }

    /// nvmlMemory_v2_t.
    struct Memory2 = 40 { version: u32, gap: u32, total: u64, reserved: u64, free: u64, used: u64, }

    /// nvmlBAR1Memory_t.
    struct Bar1 = 24 { total: u64, free: u64, used: u64, }

    /// What the first nvmlPciInfo_t had.
    struct Pci1 = 32 { legacy: [c_char; 16], domain: u32, bus: u32, device: u32, id: u32, }

    /// What the second had, up to its reserved words, which are not written.
    struct Pci2 = 36 { legacy: [c_char; 16], domain: u32, bus: u32, device: u32, id: u32, subsystem: u32, }

    /// nvmlPciInfo_t since its third version.
    struct Pci = 68 {
        legacy: [c_char; 16], domain: u32, bus: u32, device: u32, id: u32, subsystem: u32,
        bus_id: [c_char; 32],
    }

    /// nvmlPciInfoExt_v1_t.
    struct PciExt = 64 {
        version: u32, domain: u32, bus: u32, device: u32, id: u32, subsystem: u32,
        base_class: u32, sub_class: u32, bus_id: [c_char; 32],
    }

    /// nvmlFieldValue_t; the value is a union of 8 bytes.
    struct FieldValue = 40 {
        field: u32, scope: u32, timestamp: i64, latency_us: i64, kind: u32, result: u32, value: u64,
    }

    /// What the first nvmlEventData_t had: no instances.
    struct EventData1 = 24 { device: Handle, kind: u64, data: u64, }

    /// nvmlEventData_t since its second version.
    struct EventData = 32 { device: Handle, kind: u64, data: u64, gi: u32, ci: u32, }

    /// nvmlUUID_v1_t; the value is a union of a text and 16 bytes.
    struct Uuid = 52 { version: u32, kind: u32, value: [u8; 41], gap: [u8; 3], }
}
