//! Programs on one node, killed at random instructions: the node's state is always legal, and nobody is stuck.
//!
//! The test runs itself again as the programs (`CHILD`). Each makes random calls through the C ABI and writes one
//! byte for each; the parent kills them at random moments, then opens the node and judges it by its own rules.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use nvidia_ml::{model::Model, shared::Shard, state::GpuState};
use std::{
    ffi::c_void,
    io::{Read, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

const CHILD: &str = "NVML_SIMULATOR_TEST_CHILD";
/// Rounds go on until there were as many of both.
const KILLS: usize = 1_500;
const CALLS: usize = 10_000;

type Handle = *mut c_void;

unsafe extern "C" {
    fn nvmlInit_v2() -> u32;
    fn nvmlDeviceGetHandleByIndex_v2(index: u32, device: *mut Handle) -> u32;
    fn nvmlDeviceSetMigMode(device: Handle, mode: u32, status: *mut u32) -> u32;
    fn nvmlDeviceCreateGpuInstance(device: Handle, profile: u32, instance: *mut Handle) -> u32;
    fn nvmlDeviceCreateGpuInstanceWithPlacement(
        device: Handle,
        profile: u32,
        placement: *const [u32; 2],
        instance: *mut Handle,
    ) -> u32;
    fn nvmlDeviceGetGpuInstances(
        device: Handle,
        profile: u32,
        instances: *mut Handle,
        count: *mut u32,
    ) -> u32;
    fn nvmlGpuInstanceDestroy(instance: Handle) -> u32;
    fn nvmlGpuInstanceCreateComputeInstance(instance: Handle, profile: u32, compute: *mut Handle) -> u32;
    fn nvmlGpuInstanceGetComputeInstances(
        instance: Handle,
        profile: u32,
        all: *mut Handle,
        count: *mut u32,
    ) -> u32;
    fn nvmlComputeInstanceDestroy(compute: Handle) -> u32;
    fn nvmlDeviceGetMigDeviceHandleByIndex(device: Handle, index: u32, mig: *mut Handle) -> u32;
    fn nvmlDeviceGetUUID(device: Handle, text: *mut u8, length: u32) -> u32;
}

/// xorshift: the sequence follows from the seed alone.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Not a test of its own: what the parent runs. Alone it does nothing.
#[test]
fn child() {
    let Some(seed) = std::env::var(CHILD).ok().and_then(|seed| seed.parse().ok()) else { return };
    let mut dice = Dice(seed);
    let null = std::ptr::null_mut();
    let mut gpu: Handle = null;
    let mut out = std::io::stdout().lock();
    // SAFETY: takes a number only. The parent must get a core at once, or the kills come late.
    unsafe { libc::nice(15) };
    // SAFETY: NVML's own signatures; every out pointer is a live local of the right type and size.
    unsafe {
        assert_eq!((nvmlInit_v2(), nvmlDeviceGetHandleByIndex_v2(0, &mut gpu)), (0, 0));
        out.write_all(b"\x01").and_then(|()| out.flush()).unwrap();
        std::io::stdin().read_exact(&mut [0]).unwrap();
        loop {
            let profile = [19, 20, 15, 14, 9, 5, 0][dice.roll(7) as usize];
            let mut handle: Handle = null;
            let mut all: [Handle; 8] = [null; 8];
            let mut count = 0;
            let result = match dice.roll(12) {
                0..=3 => nvmlDeviceCreateGpuInstance(gpu, profile, &mut handle),
                4 => {
                    let place = [dice.roll(8) as u32, [1, 2, 4, 8][dice.roll(4) as usize]];
                    nvmlDeviceCreateGpuInstanceWithPlacement(gpu, profile, &place, &mut handle)
                }
                5..=7 => {
                    let found = nvmlDeviceGetGpuInstances(gpu, profile, all.as_mut_ptr(), &mut count);
                    if found == 0 && count > 0 {
                        let gi = all[dice.roll(u64::from(count)) as usize];
                        nvmlGpuInstanceCreateComputeInstance(gi, dice.roll(5) as u32, &mut handle)
                    } else {
                        found
                    }
                }
                8 | 9 => {
                    let found = nvmlDeviceGetGpuInstances(gpu, profile, all.as_mut_ptr(), &mut count);
                    if found == 0 && count > 0 {
                        let gi = all[dice.roll(u64::from(count)) as usize];
                        for slot in 0..5 {
                            let mut computes: [Handle; 8] = [null; 8];
                            let mut live = 0;
                            nvmlGpuInstanceGetComputeInstances(gi, slot, computes.as_mut_ptr(), &mut live);
                            for compute in &computes[..live as usize] {
                                nvmlComputeInstanceDestroy(*compute);
                            }
                        }
                        nvmlGpuInstanceDestroy(gi)
                    } else {
                        found
                    }
                }
                10 => {
                    let mut text = [0u8; 96];
                    match nvmlDeviceGetMigDeviceHandleByIndex(gpu, dice.roll(7) as u32, &mut handle) {
                        0 => nvmlDeviceGetUUID(handle, text.as_mut_ptr(), 96),
                        other => other,
                    }
                }
                _ => {
                    let mut status = 0;
                    nvmlDeviceSetMigMode(gpu, u32::from(dice.roll(8) != 0), &mut status)
                }
            };
            // What another program did in between shows as one of these, and as nothing else.
            assert!(matches!(result, 0 | 2 | 3 | 6 | 19 | 23), "answered {result}");
            out.write_all(b"\x02").and_then(|()| out.flush()).unwrap();
        }
    }
}

#[test]
fn killed_at_random_leave_a_legal_node_and_no_lock() {
    let seed = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        now.as_nanos() as u64 | 1
    });
    println!("SEED={seed}");
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("node");
    let made = Command::new(env!("CARGO_BIN_EXE_nvml-simulator"))
        .args(["env", "--state"])
        .arg(&state)
        .arg("1xa100-40gb")
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let shard = Shard::open(&state).unwrap();
    let model = shard.models()[0];

    let mut dice = Dice(seed);
    let (mut kills, mut calls, mut rounds, mut seen) = (0, 0, 0, std::collections::BTreeSet::new());
    let begin = Instant::now();
    while kills < KILLS || calls < CALLS {
        let mut children: Vec<Child> =
            (0..2 + dice.roll(3)).map(|_| start(&state, dice.roll(u64::MAX - 1) | 1)).collect();
        children.iter_mut().for_each(begun);
        children.iter_mut().for_each(go);
        for mut child in children {
            std::thread::sleep(Duration::from_micros(dice.roll(1_500)));
            child.kill().unwrap();
            kills += 1;
            let status = child.wait().unwrap();
            assert!(status.code().is_none(), "a program ended by itself: {status}");
            let mut bytes = Vec::new();
            child.stdout.take().unwrap().read_to_end(&mut bytes).unwrap();
            calls += bytes.iter().filter(|byte| **byte == 2).count();
            let now = shard.read(0).unwrap();
            judge(&model, &now).unwrap_or_else(|why| panic!("SEED={seed} kill {kills}: {why}\n{now:?}"));
            seen.insert(now.live_gis().count());
        }
        rounds += 1;
        // Nobody is stuck: a fresh opener can change the node at once.
        let fresh = Shard::open(&state).unwrap();
        let asked = Instant::now();
        let changed: Result<(), nvidia_ml::shared::Locked> = fresh
            .update(0, |s| {
                s.persistence ^= 1;
                Ok(())
            })
            .unwrap();
        changed.unwrap();
        assert!(asked.elapsed() < Duration::from_secs(10), "SEED={seed}: waited {:?}", asked.elapsed());
    }
    println!(
        "{kills} kills among {calls} calls in {rounds} rounds, {:?}; instances seen {seen:?}",
        begin.elapsed()
    );
    assert!(seen.len() > 2, "the programs did nothing worth killing: {seen:?}");
}

fn start(state: &Path, seed: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(CHILD, seed.to_string())
        .env("NVML_SIMULATOR_STATE", state)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// Waits until a program has opened the node: killed before that it would prove nothing.
fn begun(child: &mut Child) {
    let mut byte = [0];
    while byte[0] != 1 {
        child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
    }
}

/// Lets it begin: those that run must not slow the start of those that do not yet.
fn go(child: &mut Child) {
    child.stdin.as_mut().unwrap().write_all(&[1]).unwrap();
}

/// The rules of a state, written down once more: places that the profile has, no slice twice, no more compute
/// slices, engines or instances than there are, compute instances inside their GPU instance, nothing while MIG
/// is off.
fn judge(model: &Model, state: &GpuState) -> Result<(), String> {
    let gis: Vec<_> = state.live_gis().collect();
    if state.mig_current > 1 || state.mig_pending > 1 {
        return Err("a mode that is neither on nor off".to_owned());
    }
    if state.mig_current == 0 && !gis.is_empty() {
        return Err("instances while MIG is off".to_owned());
    }
    let (mut memory, mut slices, mut ofa) = (0u32, 0, 0);
    for (id, gi) in &gis {
        let profile = model.profiles().get(gi.profile as usize).ok_or("a profile that the GPU has not")?;
        let place = profile.places().iter().find(|p| (p.start, p.size) == (gi.start, gi.size));
        if place.is_none_or(|place| place.gi_id != *id) {
            return Err(format!("GI {id} lies where its profile may not"));
        }
        let mask = ((1u32 << gi.size) - 1) << gi.start;
        if memory & mask != 0 {
            return Err(format!("GI {id} overlaps another"));
        }
        memory |= mask;
        slices += profile.slices;
        ofa += profile.engines.ofa;
        let mut used = 0u32;
        for (ci, compute) in gi.live_cis() {
            let kind =
                profile.compute().get(compute.profile as usize).ok_or("a compute profile that is not")?;
            if !kind.places().iter().any(|p| (p.start, p.size) == (compute.start, compute.size)) {
                return Err(format!("CI {id}/{ci} lies where its profile may not"));
            }
            let mask = ((1u32 << compute.size) - 1) << compute.start;
            if used & mask != 0 {
                return Err(format!("CI {id}/{ci} overlaps another"));
            }
            used |= mask;
        }
    }
    if slices > model.compute_slices || ofa > 1 {
        return Err(format!("{slices} compute slices and {ofa} OFA on one GPU"));
    }
    Ok(())
}
