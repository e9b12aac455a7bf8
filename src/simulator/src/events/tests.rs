use super::*;
use std::{thread, time::Instant};

fn event(data: u64) -> Event {
    Event { kind: 8, data, gpu: 1, gi: 2, ci: NO_INSTANCE }
}

#[test]
fn tells_all_in_order_to_others_who_opened_the_node() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (Events::open(folder.path()).unwrap(), Events::open(folder.path()).unwrap());
    (0..10).for_each(|number| a.post(&event(number)).unwrap());
    assert_eq!(b.head(), 10);
    assert!((0..10).all(|number| b.read(number) == Some(event(number))));
    assert_eq!(b.read(10), None);
}

#[test]
fn keeps_its_bound_and_says_what_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let events = Events::open(folder.path()).unwrap();
    let all = KEPT as u64 + 3;
    (0..all).for_each(|number| events.post(&event(number)).unwrap());
    assert_eq!(events.read(2), None, "overwritten");
    assert_eq!(events.read(3), Some(event(3)));
    assert_eq!(events.read(all - 1), Some(event(all - 1)));
}

#[test]
fn writers_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for writer in 0..4u64 {
            let events = Events::open(folder.path()).unwrap();
            scope.spawn(move || (0..500).for_each(|n| events.post(&event(writer * 1000 + n)).unwrap()));
        }
    });
    let events = Events::open(folder.path()).unwrap();
    let mut seen: Vec<u64> = (0..events.head()).map(|n| events.read(n).unwrap().data).collect();
    seen.sort_unstable();
    let wanted: Vec<u64> = (0..4).flat_map(|writer| (0..500).map(move |n| writer * 1000 + n)).collect();
    assert_eq!(seen, wanted);
}

#[test]
fn sleeps_until_the_bell_rings_or_the_time_is_up() {
    let folder = tempfile::tempdir().unwrap();
    let events = Events::open(folder.path()).unwrap();
    let before = Instant::now();
    events.sleep(events.bell(), Duration::from_millis(40));
    assert!(before.elapsed() >= Duration::from_millis(40));
    let bell = events.bell();
    events.ring();
    events.sleep(bell, Duration::from_secs(60)); // it has rung: does not sleep
    assert!(before.elapsed() < Duration::from_secs(30));
}
