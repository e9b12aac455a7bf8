use super::*;
use crate::fixture;

fn node() -> (tempfile::TempDir, Shard) {
    let folder = tempfile::tempdir().unwrap();
    let mut other = fixture::h100();
    (other.bus, other.uuid) = (9, crate::model::Text::new("GPU-00000000-0000-0000-0000-00000000000b"));
    let gpus = [(fixture::a100('A'), fixture::fresh()), (other, fixture::fresh())];
    fixture::node(folder.path(), &fixture::info("580.95.05"), &gpus);
    let shard = Shard::open(folder.path()).unwrap();
    (folder, shard)
}

fn written(shard: &Shard, gpu: usize) -> String {
    geometry::write(&shard.models()[gpu], &shard.read(gpu).unwrap())
}

#[test]
fn finds_a_gpu_by_index_address_and_uuid_and_names_them_all_otherwise() {
    let (_folder, shard) = node();
    assert_eq!(find(&shard, "1").unwrap(), 1);
    assert_eq!(find(&shard, "0000:09:00.0").unwrap(), 1);
    assert_eq!(find(&shard, "00000000:09:00.0").unwrap(), 1);
    assert_eq!(find(&shard, "gpu-00000000-0000-0000-0000-00000000000B").unwrap(), 1);
    for wrong in ["2", "-1", "", "0000:0a:00.0", "GPU-1", "0x1"] {
        let why = find(&shard, wrong).unwrap_err();
        assert_eq!(why.exit_code(), 3);
        assert!(why.to_string().contains("1 = 0000:09:00.0 = GPU-0000"), "{why}");
    }
}

#[test]
fn a_refused_set_leaves_the_gpu_as_it_was() {
    let (_folder, shard) = node();
    set(&shard, 0, "1g@0* 3g@4").unwrap();
    set(&shard, 0, "1g@0 3g@3").unwrap_err();
    assert_eq!(written(&shard, 0), "1g@0* 3g@4");
}

/// MIG User Guide: Ampere keeps its mode over a reset and a reboot, Hopper and later over neither; instances
/// outlive none of them.
#[test]
fn who_forgets_what() {
    let (_folder, shard) = node();
    let cut = || (0..2).for_each(|gpu| set(&shard, gpu, "7g@0").unwrap());
    cut();
    (0..2).for_each(|gpu| reset(&shard, gpu).unwrap());
    assert_eq!((written(&shard, 0), written(&shard, 1)), ("on".to_owned(), "off".to_owned()));
    cut();
    reboot(&shard).unwrap();
    assert_eq!((written(&shard, 0), written(&shard, 1)), ("on".to_owned(), "off".to_owned()));
    cut();
    reload_driver(&shard).unwrap();
    assert_eq!(written(&shard, 0), "on");
}
