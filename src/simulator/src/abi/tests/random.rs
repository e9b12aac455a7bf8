//! Any function with any arguments: never UNKNOWN, which is what a panic becomes, and never past what it may write.

use super::*;
use crate::abi::{
    accounting::*, arguments::In, clocks::*, ecc::*, gpm::*, nvlink::*, pcie::*, power::*, product::*,
    samples::*, thermal::*, topology::*, utilisation::*,
};
use proptest::prelude::*;

/// As much as any of these functions may write into one place.
const ROOM: usize = 1 << 18;
const GUARD: usize = 64;

/// What calls are made with.
struct Pool {
    state: u64,
    handles: Vec<Handle>,
    buffer: Vec<u8>,
}

impl Pool {
    fn next(&mut self, below: u64) -> u64 {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % below
    }

    /// The guard behind the room, which nobody may write to.
    fn guarded(&self) -> bool {
        self.buffer[ROOM..].iter().all(|byte| *byte == 0xa5)
    }
}

trait Random {
    fn random(pool: &mut Pool) -> Self;
}

impl Random for u32 {
    fn random(pool: &mut Pool) -> u32 {
        match pool.next(3) {
            0 => pool.next(20) as u32,
            1 => u32::MAX - pool.next(3) as u32,
            _ => pool.next(1 << 32) as u32,
        }
    }
}

impl Random for u64 {
    fn random(pool: &mut Pool) -> u64 {
        if pool.next(2) == 0 { pool.next(3) } else { pool.next(u64::MAX) }
    }
}

impl Random for Handle {
    fn random(pool: &mut Pool) -> Handle {
        match pool.next(8) {
            0 => Handle(pool.next(u64::MAX)),
            _ => {
                let index = pool.next(pool.handles.len() as u64) as usize;
                pool.handles[index]
            }
        }
    }
}

impl<T: Copy> Random for Out<T> {
    fn random(pool: &mut Pool) -> Out<T> {
        if pool.next(6) == 0 {
            return Out::null();
        }
        // Counts, versions and the like stand at its beginning, at any alignment.
        let at = pool.next(8) as usize;
        for index in at..at + 32 {
            let random = pool.next(256) as u8;
            pool.buffer[index] = if index % 4 > 1 { 0 } else { random };
        }
        Out::to_all(&mut pool.buffer[at..]).cast()
    }
}

impl Random for In<PowerValue> {
    fn random(pool: &mut Pool) -> In<PowerValue> {
        let version = if pool.next(2) == 0 { 0x0200_000c } else { u32::random(pool) };
        let limit = PowerValue { version, scope: u32::random(pool), milliwatts: pool.next(800_000) as u32 };
        // It outlives the call, and the test.
        In::from(Box::leak(Box::new(limit)))
    }
}

/// A function that can be called with whatever the pool has.
trait Callable<Arguments> {
    fn call(&self, pool: &mut Pool) -> u32;
}

macro_rules! callable {
    ($($argument:ident)*) => {
        impl<$($argument: Random),*> Callable<($($argument,)*)> for extern "C" fn($($argument),*) -> u32 {
            fn call(&self, pool: &mut Pool) -> u32 {
                self($($argument::random(pool)),*)
            }
        }
    };
}

callable!(A);
callable!(A B);
callable!(A B C);
callable!(A B C D);
callable!(A B C D E);
callable!(A B C D E F);

type Function = (&'static str, fn(&mut Pool) -> u32);

/// Names functions with the number of their arguments.
macro_rules! functions {
    ($($name:ident($($argument:tt)*),)*) => {
        &[$((
            stringify!($name),
            |pool| {
                let function: extern "C" fn($(functions!(@ $argument)),*) -> u32 = $name;
                Callable::call(&function, pool)
            },
        )),*]
    };
    (@ $argument:tt) => { _ };
}

const FUNCTIONS: &[Function] = functions! {
    nvmlDeviceGetAccountingMode(0 1), nvmlDeviceSetAccountingMode(0 1), nvmlDeviceGetAccountingPids(0 1 2),
    nvmlDeviceGetAccountingStats(0 1 2), nvmlDeviceGetClockInfo(0 1 2), nvmlDeviceGetMaxClockInfo(0 1 2),
    nvmlDeviceGetApplicationsClock(0 1 2), nvmlDeviceGetClock(0 1 2 3),
    nvmlDeviceGetSupportedMemoryClocks(0 1 2), nvmlDeviceGetSupportedGraphicsClocks(0 1 2 3),
    nvmlDeviceGetMinMaxClockOfPState(0 1 2 3 4), nvmlDeviceSetApplicationsClocks(0 1 2),
    nvmlDeviceResetApplicationsClocks(0), nvmlDeviceSetGpuLockedClocks(0 1 2),
    nvmlDeviceSetMemoryLockedClocks(0 1 2), nvmlDeviceGetCurrentClocksEventReasons(0 1),
    nvmlDeviceGetEccMode(0 1 2), nvmlDeviceSetEccMode(0 1), nvmlDeviceClearEccErrorCounts(0 1),
    nvmlDeviceGetTotalEccErrors(0 1 2 3), nvmlDeviceGetMemoryErrorCounter(0 1 2 3 4),
    nvmlDeviceGetSramEccErrorStatus(0 1), nvmlDeviceGetRemappedRows(0 1 2 3 4),
    nvmlDeviceGetRemappedRows_v2(0 1), nvmlDeviceGetRowRemapperHistogram(0 1),
    nvmlDeviceGetRetiredPages(0 1 2 3), nvmlDeviceGetRetiredPages_v2(0 1 2 3 4),
    nvmlGpmQueryDeviceSupport(0 1), nvmlGpmSampleFree(0), nvmlGpmSampleGet(0 1), nvmlGpmMigSampleGet(0 1 2),
    nvmlGpmMetricsGet(0), nvmlGpmSetStreamingEnabled(0 1), nvmlDeviceGetNvLinkState(0 1 2),
    nvmlDeviceGetNvLinkCapability(0 1 2 3), nvmlDeviceGetNvLinkRemotePciInfo_v2(0 1 2),
    nvmlDeviceGetNvLinkErrorCounter(0 1 2 3), nvmlDeviceResetNvLinkErrorCounters(0 1),
    nvmlDeviceGetPcieSpeed(0 1), nvmlDeviceGetPcieThroughput(0 1 2), nvmlDeviceGetPowerUsage(0 1),
    nvmlDeviceGetTotalEnergyConsumption(0 1), nvmlDeviceGetPowerManagementLimitConstraints(0 1 2),
    nvmlDeviceSetPowerManagementLimit(0 1), nvmlDeviceSetPowerManagementLimit_v2(0 1),
    nvmlDeviceGetSupportedPerformanceStates(0 1 2), nvmlDeviceGetNumGpuCores(0 1),
    nvmlDeviceGetVbiosVersion(0 1 2), nvmlSystemGetDriverBranch(0 1), nvmlDeviceGetSamples(0 1 2 3 4 5),
    nvmlDeviceGetProcessUtilization(0 1 2 3), nvmlDeviceGetTemperature(0 1 2), nvmlDeviceGetTemperatureV(0 1),
    nvmlDeviceGetThermalSettings(0 1 2), nvmlDeviceGetFanSpeed_v2(0 1 2), nvmlDeviceGetFanSpeedRPM(0 1),
    nvmlDeviceGetTopologyNearestGpus(0 1 2 3), nvmlSystemGetTopologyGpuSet(0 1 2),
    nvmlDeviceGetP2PStatus(0 1 2 3), nvmlDeviceGetUtilizationRates(0 1), nvmlDeviceGetEncoderUtilization(0 1 2),
    nvmlDeviceGetDynamicPstatesInfo(0 1), nvmlDeviceGetViolationStatus(0 1 2),
    nvmlDeviceGetEncoderCapacity(0 1 2), nvmlDeviceGetEncoderSessions(0 1 2), nvmlDeviceGetMemoryInfo_v2(0 1),
    nvmlDeviceGetBAR1MemoryInfo(0 1), nvmlDeviceGetComputeRunningProcesses_v3(0 1 2),
    nvmlDeviceGetName(0 1 2), nvmlDeviceGetPciInfo_v3(0 1), nvmlDeviceSetMigMode(0 1 2),
    nvmlDeviceGetMigDeviceHandleByIndex(0 1 2),
};

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_arguments_are_answered(seed: u64) {
        let node = Node::new(&[h100(), a100('A'), geforce()]);
        let (device, other) = (gpu(0), gpu(1));
        switch_on(device);
        let gi = created(device, 9, 4, 4);
        let ci = compute_created(gi, 2);
        let mut handles = vec![device, other, gpu(2), gi, ci, mig_device(device, 0).unwrap(), Handle(0)];
        for _ in 0..2 {
            let mut sample = Handle(0);
            assert_eq!(nvmlGpmSampleAlloc(Out::to(&mut sample)), 0);
            handles.push(sample);
        }
        let mut pool = Pool { state: seed, handles, buffer: vec![0; ROOM] };
        pool.buffer.extend([0xa5; GUARD]);
        node.change(1, |_, state| state.busy = 1);
        for _ in 0..300 {
            let (name, call) = FUNCTIONS[pool.next(FUNCTIONS.len() as u64) as usize];
            let code = call(&mut pool);
            prop_assert!(code <= 30, "{} answered {}", name, code);
            prop_assert!(pool.guarded(), "{} wrote too far", name);
        }
    }
}
