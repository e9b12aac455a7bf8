use super::*;
use crate::fixture::{a100, geforce, h100};

fn sampler(model: &Model, with: impl FnOnce(&mut Values)) -> Sampler<'_> {
    let mut values = Values::fresh();
    with(&mut values);
    Sampler::new(model, values, 0)
}

#[test]
fn power_goes_from_idle_to_the_limit_with_the_load() {
    let model = a100('A');
    let power = |load| sampler(&model, |values| values.put_load(0, load, 1.0)).gpu(Reading::Power).unwrap();
    assert!((48_000.0..56_000.0).contains(&power(0.0)), "{}", power(0.0));
    assert_eq!(power(1.0), 400_000.0);
    assert!(power(0.0) < power(0.5) && power(0.5) < power(1.0));
}

#[test]
fn instances_load_their_gpu_by_their_part_of_it() {
    let model = a100('A');
    let all = sampler(&model, |values| {
        values.put_load(1 + 7, 1.0, 1.0 / 7.0);
        values.put_load(1 + 2, 0.5, 3.0 / 7.0);
    });
    assert!((all.load(0) - 2.5 / 7.0).abs() < 1e-9);
    assert_eq!(all.instance(2, 20_000, Reading::MemoryUsed), Some(5_000.0));
}

#[test]
fn a_set_value_is_shown_as_it_is_but_not_by_a_sensor_that_is_not_there() {
    let model = a100('A');
    let set = sampler(&model, |values| {
        values.put_value(0, Reading::Temperature, Some(91.0));
        values.put_value(0, Reading::Fan, Some(50.0));
    });
    assert_eq!(set.gpu(Reading::Temperature), Some(91.0));
    assert_eq!(set.gpu(Reading::Fan), None, "cooled by the chassis");
}

#[test]
fn boards_lack_what_their_kind_lacks() {
    let (old, ampere, hopper) = (geforce(), a100('A'), h100());
    let has = |model, reading| sampler(model, |_| {}).gpu(reading).is_some();
    assert!(!has(&old, Reading::CorrectedVolatile));
    assert!(has(&ampere, Reading::RemapPending) && !has(&ampere, Reading::RetiredSingle));
    assert!(has(&hopper, Reading::SmActive) && !has(&ampere, Reading::SmActive));
}
