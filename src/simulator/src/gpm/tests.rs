use super::*;
use crate::fixture::{a100, h100};

const GI: usize = 1 + 2;

fn taken(instance: bool, now: u64, with: impl FnOnce(&mut Values)) -> Taken {
    let mut values = Values::fresh();
    with(&mut values);
    let engines = Engines { copy: 3, decoder: 2, encoder: 0, jpeg: 0, ofa: 0 };
    Taken { gpu: 0, instance: instance.then_some((2, engines)), values, now }
}

#[test]
fn an_instance_shows_its_own_load_whatever_its_size() {
    let model = h100();
    let at = |now| taken(true, now, |values| values.put_load(GI, 0.5, 3.0 / 7.0));
    let metric = |id| metric(&model, &at(1_000_000_000), &at(3_000_000_000), id);
    assert_eq!(metric(1), Ok(50.0));
    assert_eq!(metric(5), Ok(20.0), "tensor cores have a part of the load");
    assert_eq!(metric(30), Ok(0.0), "its first decoder");
    assert_eq!(metric(32), Err(Code::NOT_SUPPORTED), "it has two");
    assert_eq!(metric(60), Err(Code::NOT_SUPPORTED), "links are not an instance's");
    assert_eq!(metric(0), Err(Code::INVALID_ARGUMENT));
    assert_eq!(metric(477), Err(Code::INVALID_ARGUMENT));
}

#[test]
fn the_gpu_shows_the_part_of_it_that_its_instances_are() {
    let model = h100();
    let at = |now| taken(false, now, |values| values.put_load(GI, 0.5, 0.5));
    let found = metric(&model, &at(1_000_000_000), &at(3_000_000_000), 1).unwrap();
    assert!((found - 25.0).abs() < 1e-9, "{found}");
}

#[test]
fn a_set_value_stands_for_the_measured_one() {
    let model = h100();
    let at = |now| taken(false, now, |values| values.put_value(0, Reading::SmActive, Some(12.5)));
    assert_eq!(metric(&model, &at(1), &at(2), 2), Ok(12.5));
}

#[test]
fn without_time_between_them_samples_say_nothing() {
    let (model, same) = (a100('A'), taken(false, 5, |_| {}));
    assert_eq!(metric(&model, &same, &same, 1), Err(Code::NO_DATA));
}

#[test]
fn a_metric_that_is_measured_has_a_name() {
    let mut model = h100();
    model.links = 18;
    let at = |now| taken(false, now, |_| {});
    for id in 1..=LAST {
        let known = name(id).is_some();
        match metric(&model, &at(1), &at(2), id) {
            Ok(_) => assert!(known, "{id}"),
            Err(code) => assert_eq!(code, Code::NOT_SUPPORTED, "{id}"),
        }
    }
}
