use super::*;
use crate::{fixture, handling, machine::Board};
use std::collections::BTreeMap;

/// Minors by (GPU instance, compute instance).
type Access = BTreeMap<(u32, Option<u32>), u32>;

/// Every file below a folder, by its path there: what a plain file says, or what else it is.
fn files(root: &Path) -> BTreeMap<String, String> {
    fn walk(root: &Path, at: &Path, found: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            let kind = path.symlink_metadata().unwrap().file_type();
            if kind.is_dir() {
                walk(root, &path, found);
            } else {
                let text = if kind.is_file() { fs::read_to_string(&path).unwrap() } else { String::new() };
                found.insert(name, text);
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(root, root, &mut found);
    found
}

/// The instances that a tree shows of a GPU: access files by (gi, ci) and device nodes, read back by NVIDIA's
/// rule of minors.
fn shown(root: &Path, minor: u32) -> (Access, BTreeSet<u32>) {
    let mut access = BTreeMap::new();
    for (name, text) in files(&root.join(format!("proc/driver/nvidia/capabilities/gpu{minor}/mig"))) {
        let numbers: Vec<u32> = name
            .trim_end_matches("/access")
            .split('/')
            .map(|part| part.trim_start_matches(['g', 'c', 'i']).parse().unwrap())
            .collect();
        let line = text.lines().next().unwrap().strip_prefix("DeviceFileMinor: ").unwrap();
        access.insert((numbers[0], numbers.get(1).copied()), line.parse().unwrap());
    }
    let range = 3 + 135 * minor..3 + 135 * (minor + 1);
    let nodes = files(&root.join("dev/nvidia-caps"));
    let nodes = nodes.keys().map(|name| name.strip_prefix("nvidia-cap").unwrap().parse().unwrap());
    (access, nodes.filter(|node| range.contains(node)).collect())
}

#[track_caller]
fn equal(shard: &Shard, root: &Path) {
    for (index, model) in shard.models().iter().enumerate() {
        let state = shard.read(index).unwrap();
        let m = model.minor;
        let mut access = BTreeMap::new();
        for (gi, instance) in state.live_gis() {
            access.insert((gi, None), 3 + 135 * m + 9 * gi);
            for (ci, _) in instance.live_cis() {
                access.insert((gi, Some(ci)), 3 + 135 * m + 9 * gi + 1 + ci);
            }
        }
        let nodes = access.values().copied().collect();
        assert_eq!(shown(root, m), (access, nodes), "GPU{index} {:?}", fs::read_to_string(root.join(STAMP)));
    }
    assert!(!root.join(".new").exists());
}

fn node(folder: &Path) -> Shard {
    let (mut first, mut second) = (fixture::a100('A'), fixture::a100('B'));
    (first.minor, first.bus) = (0, 0x07);
    (second.minor, second.bus) = (5, 0x0f);
    let gpus = [(first, fixture::fresh()), (second, fixture::fresh())];
    fixture::node(folder, &fixture::info("580.95.05"), &gpus);
    let shard = Shard::open(folder).unwrap();
    ensure(&shard).unwrap();
    shard
}

#[test]
fn equals_the_state_after_each_of_many_random_changes() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let shard = node(folder.path());
    add(&shard, elsewhere.path()).unwrap();
    let geometries =
        ["off", "on", "7g@0", "3g@0[1c,2c] 3g@4", "1g@0 1g@3* 2g@4", "4g@0[] 1g@6", "2g@0[1c@1]"];
    let mut dice = 0x9e37_79b9_7f4a_7c15u64;
    for step in 0..300 {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (gpu, roll) = ((dice >> 40) as usize % 2, (dice >> 44) as usize);
        match step % 4 {
            0 => handling::set(&shard, gpu, geometries[roll % geometries.len()]).unwrap(),
            1 if roll % 8 == 0 => handling::reset(&shard, gpu).unwrap(),
            // Refused ones change nothing, which is right too.
            _ => {
                let board = Board::new(shard.info(), &shard.models()[gpu]);
                let _ = shard.update(gpu, |state| match roll % 4 {
                    0 => board.create_gi(state, [19, 14, 9][roll % 3], None).map(|_| ()),
                    1 => board.create_ci(state, (roll / 4 % 14) as u32, 0, None).map(|_| ()),
                    2 => board.destroy_ci(state, (roll / 4 % 14) as u32, 0),
                    _ => board.destroy_gi(state, (roll / 4 % 14) as u32),
                });
            }
        }
        equal(&shard, &own(folder.path()));
        equal(&shard, elsewhere.path());
    }
}

#[test]
fn what_a_killed_process_left_undone_the_next_to_open_does() {
    let folder = tempfile::tempdir().unwrap();
    let shard = node(folder.path());
    handling::set(&shard, 0, "3g@0 3g@4").unwrap();
    // As if killed between publishing and writing, halfway through the writing, and before the stamp.
    let root = own(folder.path());
    let stamp = fs::read_to_string(root.join(STAMP)).unwrap();
    handling::set(&shard, 0, "1g@0[]").unwrap();
    fs::write(root.join(STAMP), stamp).unwrap();
    fs::create_dir_all(root.join(".new/folder/ci0")).unwrap();
    fs::remove_dir_all(root.join("proc/driver/nvidia/capabilities/gpu0/mig/gi7")).unwrap();
    fs::create_dir_all(root.join("proc/driver/nvidia/capabilities/gpu0/mig/gi2/ci0")).unwrap();
    crate::session::init_at(Some(folder.path())).unwrap();
    equal(&shard, &root);
}

#[test]
fn a_root_with_other_things_is_refused_and_one_that_is_gone_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let shard = node(folder.path());
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("mine"), "").unwrap();
    let refused = add(&shard, other.path()).unwrap_err();
    assert_eq!(refused.exit_code(), 3);
    assert_eq!(files(other.path()).len(), 1);
    fs::remove_file(other.path().join("mine")).unwrap();
    add(&shard, other.path()).unwrap();
    fs::remove_dir_all(other.path()).unwrap();
    handling::set(&shard, 0, "7g@0").unwrap();
    assert!(!other.path().exists());
}

#[test]
fn says_what_the_kernel_and_the_driver_say() {
    let folder = tempfile::tempdir().unwrap();
    let shard = node(folder.path());
    let all = files(&own(folder.path()));
    let minors = &all["proc/driver/nvidia-caps/mig-minors"];
    // Seen on hardware: gi2 of GPU 0 is 21, its ci0 22; gi7 of GPU 4 is 606.
    for line in
        ["config 1", "monitor 2", "gpu0/gi2/access 21", "gpu0/gi2/ci0/access 22", "gpu4/gi7/access 606"]
    {
        assert!(minors.lines().any(|one| one == line), "{line}");
    }
    assert_eq!(minors.lines().last(), Some("gpu31/gi14/ci7/access 4322"));
    let config = &all["proc/driver/nvidia/capabilities/mig/config"];
    assert_eq!(config, "DeviceFileMinor: 1\nDeviceFileMode: 256\nDeviceFileModify: 1\n");
    assert!(all["proc/driver/nvidia/version"].contains("Kernel Module  580.95.05 "));
    let information = &all["proc/driver/nvidia/gpus/0000:0f:00.0/information"];
    assert!(information.contains("Device Minor: \t 5\n"), "{information}");
    assert!(information.contains(shard.models()[1].uuid.as_str()));
    assert_eq!(all["sys/bus/pci/devices/0000:0f:00.0/vendor"], "0x10de\n");
    assert!(all.contains_key("sys/bus/pci/devices/0000:0f:00.0/reset"));
    let devices = &all["proc/devices"];
    for line in ["195 nvidia", " nvidia-caps", " nvidia-uvm", "  1 mem"] {
        assert!(devices.lines().any(|one| one.ends_with(line)), "{line}: {devices}");
    }
    for name in
        ["nvidia0", "nvidia5", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps/nvidia-cap1"]
    {
        let path = own(folder.path()).join("dev").join(name);
        let found = fs::symlink_metadata(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        if DeviceNodes::of(&own(folder.path())) == DeviceNodes::Real && name == "nvidia5" {
            assert_eq!(found.rdev(), libc::makedev(195, 5));
        }
    }
}
