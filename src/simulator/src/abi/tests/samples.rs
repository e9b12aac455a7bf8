use super::*;
use crate::abi::{
    accounting::*, clocks::*, ecc::*, fields::*, gpm::*, power::*, samples::*, thermal::*, utilisation::*,
};

fn sample() -> Handle {
    let mut sample = Handle(0);
    assert_eq!(nvmlGpmSampleAlloc(Out::to(&mut sample)), 0);
    sample
}

/// The metrics' codes and values between two samples.
fn metrics<const N: usize>(first: Handle, second: Handle, ids: [u32; N]) -> Result<[(u32, f64); N], u32> {
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Metrics<const N: usize> {
        head: GpmHead,
        list: [GpmMetric; N],
        end: u64,
    }
    let head = GpmHead { version: 1, count: N as u32, first, second };
    let list = ids.map(|id| GpmMetric { id, ..GpmMetric::zero() });
    let mut all = Metrics { head, list, end: 0xfeed };
    let code = nvmlGpmMetricsGet(Out::to(&mut all).cast());
    assert_eq!(all.end, 0xfeed, "only so many metrics as are asked for are written");
    if code == 0 { Ok(all.list.map(|metric| (metric.result, metric.value))) } else { Err(code) }
}

#[test]
fn gpm_takes_samples_of_a_gpu_an_instance_and_a_mig_device() {
    let _node = Node::new(&[h100(), a100('A')]);
    let device = gpu(0);
    switch_on(device);
    let gi = created(device, 9, 4, 4);
    let (one, two) = (sample(), sample());
    assert_eq!(
        nvmlGpmMigSampleGet(device, 2, one),
        21,
        "without a compute instance there is nothing to count"
    );
    assert_eq!(nvmlGpmMigSampleGet(device, 7, one), 6);
    compute_created(gi, 2);
    assert_eq!(nvmlGpmMigSampleGet(device, 2, one), 0);
    assert_eq!(nvmlGpmSampleGet(mig_device(device, 0).unwrap(), two), 0);
    let found = metrics(one, two, [1, 0, 60, 477]).unwrap();
    assert_eq!(found.map(|metric| metric.0), [0, 2, 3, 2]);
    assert_eq!(nvmlGpmSampleGet(device, two), 0);
    assert_eq!(metrics(one, two, [1]), Err(2), "two different things");
    assert_eq!(nvmlGpmSampleGet(gpu(1), two), 3, "Ampere has none");
    assert_eq!(nvmlGpmSampleGet(device, Handle(17)), 2);
}

#[test]
fn gpm_refuses_samples_that_are_empty_freed_or_of_another_version() {
    let _node = Node::new(&[h100()]);
    let (one, two) = (sample(), sample());
    assert_ne!(one, two);
    assert_eq!(metrics(one, two, [1]), Err(21), "nothing was got into them");
    assert_eq!(nvmlGpmSampleFree(one), 0);
    assert_eq!(nvmlGpmSampleFree(one), 2);
    assert_eq!(nvmlGpmSampleGet(gpu(0), one), 2);
    assert_ne!(sample(), one, "a number is not given again");
    let mut head = GpmHead { version: 2, count: 0, first: two, second: two };
    assert_eq!(nvmlGpmMetricsGet(Out::to(&mut head)), 25);
    let mut support = GpmSupport { version: 9, supported: 9 };
    assert_eq!(nvmlGpmQueryDeviceSupport(gpu(0), Out::to(&mut support)), 25);
}

#[test]
fn a_power_limit_is_set_within_what_the_board_allows() {
    let _node = Node::new(&[a100('A')]);
    let device = gpu(0);
    let limit = || number(|out| nvmlDeviceGetPowerManagementLimit(device, out));
    assert_eq!(limit(), Ok(400_000));
    assert_eq!(nvmlDeviceSetPowerManagementLimit(device, 99_000), 2);
    assert_eq!(nvmlDeviceSetPowerManagementLimit(device, 401_000), 2);
    assert_eq!(nvmlDeviceSetPowerManagementLimit(device, 250_000), 0);
    assert_eq!(limit(), Ok(250_000));
    assert_eq!(number(|out| nvmlDeviceGetEnforcedPowerLimit(device, out)), Ok(250_000));
    assert_eq!(number(|out| nvmlDeviceGetPowerManagementDefaultLimit(device, out)), Ok(400_000));
}

#[test]
fn clocks_are_set_to_what_is_listed_and_given_back() {
    let _node = Node::new(&[h100()]);
    let device = gpu(0);
    let mut clocks = [0; 200];
    let mut count = 200;
    let list = Out::to_all(&mut clocks);
    assert_eq!(nvmlDeviceGetSupportedGraphicsClocks(device, 2619, Out::to(&mut count), list), 0);
    assert_eq!((clocks[0], clocks[count as usize - 1]), (1980, 210));
    let mut few = 1;
    assert_eq!(nvmlDeviceGetSupportedGraphicsClocks(device, 2619, Out::to(&mut few), Out::null()), 7);
    assert_eq!(few, count);
    assert_eq!(nvmlDeviceGetSupportedGraphicsClocks(device, 1, Out::to(&mut few), Out::null()), 6);
    let application = || number(|out| nvmlDeviceGetApplicationsClock(device, 0, out));
    assert_eq!(nvmlDeviceSetApplicationsClocks(device, 2619, 1981), 2);
    assert_eq!(nvmlDeviceSetApplicationsClocks(device, 2619, 1965), 0);
    assert_eq!(application(), Ok(1965));
    assert_eq!(nvmlDeviceResetApplicationsClocks(device), 0);
    assert_eq!(application(), Ok(1980));
    assert_eq!(nvmlDeviceSetGpuLockedClocks(device, 900, 800), 2);
}

#[test]
fn the_mode_of_ecc_changes_at_a_reset() {
    let node = Node::new(&[a100('A')]);
    let device = gpu(0);
    let modes = || {
        let (mut now, mut then) = (9, 9);
        assert_eq!(nvmlDeviceGetEccMode(device, Out::to(&mut now), Out::to(&mut then)), 0);
        (now, then)
    };
    let mut errors = 0;
    let mut total = || nvmlDeviceGetTotalEccErrors(device, 0, 0, Out::to(&mut errors));
    assert_eq!((modes(), total()), ((1, 1), 0));
    assert_eq!(nvmlDeviceSetEccMode(device, 0), 0);
    assert_eq!((modes(), total()), ((1, 0), 0));
    node.change(0, |board, state| board.reset_now(state));
    assert_eq!((modes(), total()), ((0, 0), 3), "what is off does not count");
}

#[test]
fn a_mig_device_has_its_gpus_sensors_only_if_the_node_says_so() {
    for (chosen, code) in [(0, 3), (1, 0)] {
        let mut info = info("580.95.05");
        info.unknowns[14] = chosen;
        info.unknowns[15] = chosen;
        let _node = Node::with(&info, &[a100('A')]);
        let device = gpu(0);
        switch_on(device);
        compute_created(created(device, 9, 4, 4), 2);
        let mig = mig_device(device, 0).unwrap();
        let mut value = 0;
        assert_eq!(nvmlDeviceGetPowerUsage(mig, Out::to(&mut value)), code);
        assert_eq!(nvmlDeviceGetTemperature(mig, 0, Out::to(&mut value)), code);
        assert_eq!(nvmlDeviceGetClockInfo(mig, 1, Out::to(&mut value)), code);
        let mut field = [FieldValue { field: 83, ..FieldValue::zero() }];
        assert_eq!(nvmlDeviceGetFieldValues(mig, 1, Out::to_all(&mut field)), 0);
        assert_eq!(field[0].result, code);
        let mut rates = Utilisation { gpu: 0, memory: 0 };
        assert_eq!(nvmlDeviceGetUtilizationRates(mig, Out::to(&mut rates)), 3, "known either way");
    }
}

#[test]
fn time_reasons_have_the_field_ids_of_their_driver() {
    for (driver, codes) in [("580.65.06", [0, 3]), ("580.95.05", [3, 0])] {
        let _node = Node::with(&info(driver), &[h100()]);
        let mut fields = [251, 269].map(|field| FieldValue { field, ..FieldValue::zero() });
        assert_eq!(nvmlDeviceGetFieldValues(gpu(0), 2, Out::to_all(&mut fields)), 0);
        assert_eq!(fields.map(|field| field.result), codes, "{driver}");
    }
}

#[test]
fn processes_use_what_their_gpu_does_until_mig_is_on() {
    let node = Node::new(&[a100('A')]);
    let device = gpu(0);
    let utilisation = |seen| {
        let (mut found, mut count) = ([ProcessSample::zero(); 4], 4);
        let code =
            nvmlDeviceGetProcessUtilization(device, Out::to_all(&mut found), Out::to(&mut count), seen);
        if code == 0 { Ok((count, found[0].sm, found[0].time_us)) } else { Err(code) }
    };
    let mut stats = Accounted::zero();
    let mut accounted = |pid| nvmlDeviceGetAccountingStats(device, pid, Out::to(&mut stats));
    assert_eq!(utilisation(0), Err(6), "nobody is there");
    node.change(0, |_, state| state.busy = 1);
    let readings = crate::readings::Readings::open(node.folder.path()).unwrap();
    readings.change(0, &a100('A'), |values| values.put_load(0, 0.8, 1.0)).unwrap();
    let (count, sm, seen) = utilisation(0).unwrap();
    assert_eq!((count, sm), (1, 80));
    assert_eq!(utilisation(seen + 3_600_000_000), Err(6), "nothing newer");
    let mut few = 0;
    let asked = nvmlDeviceGetProcessUtilization(device, Out::null(), Out::to(&mut few), 0);
    assert_eq!((asked, few), (7, 1));

    let (mut pid, mut pids) = ([0; 4], 4);
    assert_eq!(nvmlDeviceGetAccountingPids(device, Out::to(&mut pids), Out::to_all(&mut pid)), 3, "off");
    assert_eq!(nvmlDeviceSetAccountingMode(device, 1), 0);
    assert_eq!(nvmlDeviceGetAccountingPids(device, Out::to(&mut pids), Out::to_all(&mut pid)), 0);
    assert_eq!((pids, accounted(pid[0]), accounted(1)), (1, 0, 6));

    node.change(0, |_, state| state.busy = 0);
    switch_on(device);
    assert_eq!(utilisation(0), Err(3));
    assert_eq!(number(|out| nvmlDeviceGetAccountingMode(device, out)), Ok(0));
    assert_eq!(nvmlDeviceSetAccountingMode(device, 1), 3);
}

#[test]
fn samples_reach_back_to_the_last_change_and_not_before_what_was_seen() {
    let node = Node::new(&[a100('A')]);
    let device = gpu(0);
    let samples = |kind, seen| {
        let (mut value, mut count) = (9, 0);
        let (value, mut found) = (Out::to(&mut value), [Sample { time_us: 0, value: 0 }; 200]);
        let asked = nvmlDeviceGetSamples(device, kind, seen, value, Out::to(&mut count), Out::null());
        if asked != 0 {
            return Err(asked);
        }
        assert_eq!(
            nvmlDeviceGetSamples(device, kind, seen, value, Out::to(&mut count), Out::to_all(&mut found)),
            0
        );
        Ok(found[..count as usize].to_vec())
    };
    let readings = crate::readings::Readings::open(node.folder.path()).unwrap();
    readings.change(0, &a100('A'), |values| values.put_load(0, 0.8, 1.0)).unwrap();
    let first = samples(1, 0).unwrap();
    assert_eq!(first.iter().map(|sample| sample.value).collect::<Vec<_>>(), [80], "a new load shows at once");
    std::thread::sleep(std::time::Duration::from_millis(90));
    let later = samples(1, 0).unwrap();
    assert!(later.len() >= 4 && later.iter().all(|sample| sample.value == 80), "{later:?}");
    assert!(later.is_sorted_by(|one, next| one.time_us < next.time_us));
    let seen = later[later.len() - 2].time_us;
    assert!(samples(1, seen).unwrap().iter().all(|sample| sample.time_us > seen));
    assert_eq!(samples(1, u64::MAX).unwrap_err(), 6);
    assert_eq!(samples(7, 0).unwrap_err(), 3);
    assert_eq!(samples(99, 0).unwrap_err(), 2);
}

#[test]
fn an_instance_has_its_part_of_bar1() {
    let _node = Node::new(&[a100('A')]);
    let device = gpu(0);
    switch_on(device);
    compute_created(created(device, 9, 4, 4), 2);
    let total = |device| {
        let mut bar1 = Bar1::zero();
        assert_eq!(nvmlDeviceGetBAR1MemoryInfo(device, Out::to(&mut bar1)), 0);
        assert_eq!(bar1.free, bar1.total);
        bar1.total >> 20
    };
    assert_eq!((total(device), total(mig_device(device, 0).unwrap())), (65536, 32767));
}
