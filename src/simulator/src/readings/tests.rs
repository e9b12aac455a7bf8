use super::*;
use crate::fixture::{a100, fresh, mig_on};
use std::{thread, time::Duration};

fn energy(readings: &Readings, model: &Model) -> f64 {
    let (values, now) = readings.read(0).unwrap();
    sampler::Sampler::new(model, values, now).sum(Sum::Energy)
}

#[test]
fn sums_grow_by_rate_times_time_over_every_change() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (Readings::open(folder.path()).unwrap(), Readings::open(folder.path()).unwrap());
    let model = a100('A');
    let set = |readings: &Readings, mw: f64| {
        readings.change(0, &model, |values| values.put_value(0, Reading::Power, Some(mw))).unwrap();
    };
    set(&a, 0.0);
    let from = (energy(&b, &model), now());
    set(&b, 1e6);
    thread::sleep(Duration::from_millis(30));
    set(&a, 2e6);
    thread::sleep(Duration::from_millis(20));
    let to = (energy(&b, &model), now());
    let grown = to.0 - from.0;
    let seconds = (to.1 - from.1) as f64 / 1e9;
    assert!(grown >= 0.03 * 1e6 + 0.02 * 2e6 && grown <= seconds * 2e6, "{grown} in {seconds}");
}

#[test]
fn sums_never_fall_whoever_changes_what() {
    let folder = tempfile::tempdir().unwrap();
    let model = a100('A');
    thread::scope(|scope| {
        for seed in 0..3u64 {
            let readings = Readings::open(folder.path()).unwrap();
            let model = &model;
            scope.spawn(move || {
                for step in 0..200 {
                    let load = ((seed + step) % 7) as f64 / 7.0;
                    readings.change(0, model, |values| values.put_load(0, load, 1.0)).unwrap();
                }
            });
        }
        let readings = Readings::open(folder.path()).unwrap();
        let mut last = 0.0;
        for _ in 0..5_000 {
            let next = energy(&readings, &model);
            assert!(next >= last, "{next} after {last}");
            last = next;
        }
    });
}

#[test]
fn an_instance_that_is_gone_takes_its_load_along() {
    let folder = tempfile::tempdir().unwrap();
    let (readings, model) = (Readings::open(folder.path()).unwrap(), a100('A'));
    let mut with = mig_on();
    with.gis[7].live = 1;
    readings
        .change(0, &model, |values| {
            values.put_load(8, 0.5, 1.0 / 7.0);
            values.put_value(8, Reading::MemoryUsed, Some(17.0));
        })
        .unwrap();
    let mut without = with;
    without.gis[7].live = 0;
    without.changes += 1;
    readings.follow(0, &model, &with, &without).unwrap();
    let (values, _) = readings.read(0).unwrap();
    assert_eq!((values.load(8), values.set(8, Reading::MemoryUsed)), (0.0, None));
}

#[test]
fn a_reset_begins_sums_anew_and_keeps_what_a_person_set() {
    let folder = tempfile::tempdir().unwrap();
    let (readings, model) = (Readings::open(folder.path()).unwrap(), a100('A'));
    readings
        .change(0, &model, |values| {
            values.put_load(0, 1.0, 1.0);
            values.put_value(0, Reading::Temperature, Some(71.0));
        })
        .unwrap();
    thread::sleep(Duration::from_millis(20));
    let before = energy(&readings, &model);
    let mut reset = fresh();
    reset.resets += 1;
    readings.follow(0, &model, &fresh(), &reset).unwrap();
    assert!(energy(&readings, &model) < before);
    let (values, _) = readings.read(0).unwrap();
    assert_eq!((values.load(0), values.set(0, Reading::Temperature)), (0.0, Some(71.0)));
}
