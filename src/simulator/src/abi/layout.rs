//! NVML's structs, laid out as nvml.h has them on x86-64.

use super::{Out, handle::Handle};
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
                    // SAFETY: every field is a number, a handle, a pointer, or an array of such.
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

    /// nvmlGpuFabricInfo_t.
    struct Fabric1 = 28 { cluster: [u8; 16], status: u32, clique: u32, state: u32, }

    /// nvmlGpuFabricInfo_v2_t.
    struct Fabric2 = 36 {
        version: u32, cluster: [u8; 16], status: u32, clique: u32, state: u32, health: u32,
    }

    /// nvmlGpuFabricInfo_v3_t.
    struct Fabric3 = 40 {
        version: u32, cluster: [u8; 16], status: u32, clique: u32, state: u32, health: u32, summary: u8,
        gap: [u8; 3],
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

    /// nvmlSystemDriverBranchInfo_v1_t.
    struct DriverBranch = 84 { version: u32, branch: [c_char; 80], }

    /// nvmlUtilization_t.
    struct Utilisation = 8 { gpu: u32, memory: u32, }

    /// nvmlTemperature_v1_t.
    struct Temperature = 12 { version: u32, sensor: u32, celsius: i32, }

    /// One of nvmlGpuThermalSettings_t.
    struct ThermalSensor = 20 { controller: i32, least: i32, most: i32, celsius: i32, target: i32, }

    /// nvmlGpuThermalSettings_t.
    struct ThermalSettings = 64 { count: u32, sensors: [ThermalSensor; 3], }

    /// nvmlFanSpeedInfo_v1_t.
    struct FanSpeed = 12 { version: u32, fan: u32, speed: u32, }

    /// nvmlPowerValue_v2_t.
    struct PowerValue = 12 { version: u32, scope: u32, milliwatts: u32, }

    /// One of nvmlGpuDynamicPstatesInfo_t.
    struct Pstate = 16 { present: u32, percent: u32, more: u32, less: u32, }

    /// nvmlGpuDynamicPstatesInfo_t.
    struct Pstates = 132 { flags: u32, domains: [Pstate; 8], }

    /// nvmlViolationTime_t.
    struct Violation = 16 { reference_us: u64, held_ns: u64, }

    /// nvmlRowRemapperHistogramValues_t.
    struct RowHistogram = 20 { full: u32, high: u32, partial: u32, low: u32, none: u32, }

    /// nvmlRemappedRowsInfo_v2_t.
    struct Rows = 24 {
        corrected: u32, corrected_inactive: u32, uncorrected: u32, uncorrected_inactive: u32,
        pending: u32, failed: u32,
    }

    /// nvmlEccSramErrorStatus_v1_t.
    struct SramErrors = 104 {
        version: u32, gap: u32,
        aggregate_parity: u64, aggregate_secded: u64, aggregate_corrected: u64,
        volatile_parity: u64, volatile_secded: u64, volatile_corrected: u64,
        l2: u64, sm: u64, pcie: u64, mcu: u64, other: u64,
        exceeded: u32, end: u32,
    }

    /// nvmlSample_t; the value is a union of 8 bytes.
    struct Sample = 16 { time_us: u64, value: u64, }

    /// nvmlProcessUtilizationSample_t.
    struct ProcessSample = 32 {
        pid: u32, gap: u32, time_us: u64, sm: u32, memory: u32, encoder: u32, decoder: u32,
    }

    /// nvmlProcessUtilizationInfo_v1_t.
    struct ProcessSample1 = 40 {
        time_us: u64, pid: u32, sm: u32, memory: u32, encoder: u32, decoder: u32, jpeg: u32, ofa: u32, gap: u32,
    }

    /// nvmlProcessesUtilizationInfo_v1_t.
    struct ProcessSamples = 24 { version: u32, count: u32, seen_us: u64, list: Out<ProcessSample1>, }

    /// nvmlAccountingStats_t.
    struct Accounted = 56 {
        gpu: u32, memory: u32, most_memory: u64, time_ms: u64, start_us: u64, running: u32, gap: [u32; 5],
    }

    /// nvmlGpmSupport_t.
    struct GpmSupport = 8 { version: u32, supported: u32, }

    /// What nvmlGpmMetricsGet_t begins with; the metrics follow.
    struct GpmHead = 24 { version: u32, count: u32, first: Handle, second: Handle, }

    /// nvmlGpmMetric_t.
    struct GpmMetric = 40 {
        id: u32, result: u32, value: f64,
        short: *const c_char, long: *const c_char, unit: *const c_char,
    }
}
