use super::*;
use std::collections::HashSet;

/// Every GPU of the table that has a geometry, in both board variants.
fn models() -> Vec<(String, Box<Model>)> {
    let gpus = Gpus::load().unwrap();
    let kinds = gpus.kinds().into_iter().filter(|kind| kind.refusal.is_none());
    let both = kinds.flat_map(|kind| [Variant::A, Variant::B].map(|variant| (kind.key.clone(), variant)));
    both.map(|(key, variant)| (format!("{key} {variant:?}"), gpus.model(&key, None, variant).unwrap()))
        .collect()
}

#[test]
fn two_gpus_lack_a_geometry_and_say_so() {
    let gpus = Gpus::load().unwrap();
    let without: Vec<_> = gpus.kinds().into_iter().filter(|kind| kind.refusal.is_some()).collect();
    assert_eq!(without.len(), 2, "{:?}", without.iter().map(|kind| &kind.key).collect::<Vec<_>>());
    for kind in without {
        let why = gpus.model(&kind.key, None, Variant::A).err().unwrap();
        assert!(why.to_string().contains(&kind.key), "{why}");
    }
}

#[test]
fn profiles_are_told_apart_by_slot_id_and_name() {
    for (kind, model) in models() {
        let slots: HashSet<_> = model.profiles().iter().map(|profile| profile.slot).collect();
        let ids: HashSet<_> = model.profiles().iter().map(|profile| profile.id).collect();
        let names: HashSet<_> = model.profiles().iter().map(|profile| profile.name.as_str()).collect();
        let count = model.profiles().len();
        assert_eq!((slots.len(), ids.len(), names.len()), (count, count, count), "{kind}");
    }
}

#[test]
fn a_place_gives_one_gpu_instance_id_and_ids_of_places_that_fit_together_differ() {
    for (kind, model) in models() {
        let places: Vec<(u32, u32, u32)> = model
            .profiles()
            .iter()
            .flat_map(|profile| profile.places().iter().map(|place| (place.start, place.size, place.gi_id)))
            .collect();
        for (start, size, id) in &places {
            for (other_start, other_size, other_id) in &places {
                if (start, size) == (other_start, other_size) {
                    assert_eq!(id, other_id, "{kind}: {start}:{size}");
                } else if start + size <= *other_start || other_start + other_size <= *start {
                    assert_ne!(id, other_id, "{kind}: {start}:{size} and {other_start}:{other_size}");
                }
            }
        }
    }
}

#[test]
fn compute_instances_fit_their_gpu_instance() {
    for (kind, model) in models() {
        for profile in model.profiles() {
            let name = profile.name.as_str();
            assert!(
                profile.compute().iter().any(|ci| ci.slices == profile.slices),
                "{kind} {name}: no whole one"
            );
            for ci in profile.compute() {
                let fits = ci.places().iter().all(|place| place.start + place.size <= profile.slices);
                assert!(fits && !ci.places().is_empty(), "{kind} {name} {}", ci.name.as_str());
            }
        }
    }
}

#[test]
fn wrong_keys_and_products_name_the_right_ones() {
    let gpus = Gpus::load().unwrap();
    let why = gpus.model("a100-41gb", None, Variant::A).err().unwrap().to_string();
    assert!(why.contains("a100-40gb"), "{why}");
    let why = gpus.model("a100-40gb", Some("NVIDIA A100"), Variant::A).err().unwrap().to_string();
    assert!(why.contains("NVIDIA A100-SXM4-40GB"), "{why}");
    let why = gpus.model("t4-16gb", Some("T5"), Variant::A).err().unwrap().to_string();
    assert!(why.contains("is sold as"), "{why}");
}

/// The figures of one board, as published in NVIDIA's MIG User Guide.
#[test]
fn an_a100_is_as_published() {
    let model = Gpus::load().unwrap().model("a100-40gb", None, Variant::A).unwrap();
    assert_eq!((model.pci_device_id, model.multiprocessors, model.compute_slices), (0x20B0_10DE, 108, 7));
    let three = model.profiles().iter().find(|profile| profile.name.as_str() == "3g.20gb").unwrap();
    assert_eq!((three.slot, three.id, three.max_instances, three.multiprocessors), (2, 9, 2, 42));
    assert_eq!(three.places().iter().map(|p| (p.start, p.size)).collect::<Vec<_>>(), [(0, 4), (4, 4)]);
}
