//! Programs to which a node's files lie at their real paths (`run --tree`), and what the rest of the machine sees.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, missing_docs, reason = "tests")]

use std::{
    fs,
    os::unix::{
        fs::{FileTypeExt, PermissionsExt},
        process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A bound against hanging, not a measure.
const LIMIT: Duration = Duration::from_secs(30);

/// The workspace is built first (`make test` does), so the programs and the library lie together.
fn built() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let folder = own.parent().and_then(Path::parent).unwrap().to_owned();
    assert!(folder.join("nvml-simulator").is_file(), "run `cargo build --workspace` first");
    folder
}

struct Node {
    folder: tempfile::TempDir,
    notation: &'static str,
}

impl Node {
    fn new(notation: &'static str) -> Node {
        Node { folder: tempfile::tempdir().unwrap(), notation }
    }

    fn simulator(&self, word: &str, rest: &[&str]) -> Command {
        let mut command = Command::new(built().join("nvml-simulator"));
        command.arg(word).arg(self.notation).arg("--state").arg(self.folder.path().join("node")).args(rest);
        command
    }

    #[track_caller]
    fn set(&self, gpu: &str, geometry: &str) {
        assert!(self.simulator("set", &[gpu, geometry]).status().unwrap().success());
    }

    /// A shell script that sees the node's files, for at most [`LIMIT`].
    fn script(&self, text: &str) -> Command {
        let limit = LIMIT.as_secs().to_string();
        self.simulator("run", &["--tree", "--", "timeout", &limit, "sh", "-euc", text])
    }

    #[track_caller]
    fn says(&self, text: &str) -> String {
        let Output { status, stdout, stderr } = self.script(text).output().unwrap();
        assert!(status.success(), "{status} {}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap().trim_end().to_owned()
    }
}

#[track_caller]
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < LIMIT, "{what} did not come about");
        thread::sleep(Duration::from_millis(2));
    }
}

/// How a program ends, within [`LIMIT`].
#[track_caller]
fn ended(child: &mut Child) -> ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begin.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("{child:?} did not end");
        }
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn the_files_lie_at_their_real_paths_for_the_program_and_for_no_one_else() {
    let (mounts, devices) = (fs::read("/proc/self/mountinfo").unwrap(), fs::read("/proc/devices").unwrap());
    let node = Node::new("dgx-a100");
    node.set("0", "3g@0");
    let said = node.says(
        "cat /proc/driver/nvidia/capabilities/gpu0/mig/gi*/ci0/access | head -1
         grep -c 'gpu0/gi1/ci0/access 13' /proc/driver/nvidia-caps/mig-minors
         grep nvidia-caps /proc/devices
         cat /sys/bus/pci/devices/0000:07:00.0/vendor
         basename \"$(readlink -f /sys/bus/pci/devices/0000:07:00.0/driver)\"
         ls /dev/nvidia-caps | sort | tr '\\n' ' '
         echo out > /dev/null && test -d /dev/shm && echo whole
         cat \"$NVML_SIMULATOR_ROOT\"/proc/modules | grep -c '^nvidia '",
    );
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    assert_eq!(lines[0], "DeviceFileMinor: 13");
    assert_eq!(lines[1], "1");
    assert!(lines[2].ends_with("nvidia-caps"), "{said}");
    assert_eq!(lines[3..5], ["0x10de", "nvidia"]);
    assert_eq!(lines[5], "nvidia-cap1 nvidia-cap12 nvidia-cap13 nvidia-cap2 whole");
    assert_eq!(lines[6], "1");
    assert_eq!(fs::read("/proc/self/mountinfo").unwrap(), mounts);
    assert_eq!(fs::read("/proc/devices").unwrap(), devices);
    let own = node.says("readlink /proc/self/ns/mnt");
    assert_ne!(Path::new(&own), fs::read_link("/proc/self/ns/mnt").unwrap());
}

#[test]
fn what_has_no_place_to_mount_is_named_and_lies_below_the_root() {
    let node = Node::new("1xa30-24gb");
    let left = node.says("for path in $(echo \"$NVML_SIMULATOR_UNMOUNTED\" | tr : ' '); do echo $path; done");
    let all = ["/proc/driver", "/proc/devices", "/proc/modules", "/sys/bus/pci", "/sys/module/nvidia"];
    let gone = all.into_iter().filter(|path| !Path::new(path).exists());
    assert_eq!(left.lines().collect::<Vec<_>>(), gone.collect::<Vec<_>>());
    for path in left.lines() {
        node.says(&format!("test -e \"$NVML_SIMULATOR_ROOT\"{path}"));
    }
}

#[test]
fn a_real_drivers_devices_are_hidden() {
    // A machine with eight GPUs, switches and an instance, as far as files tell.
    let (machine, node) = (Node::new("dgx-a100"), Node::new("1xa30-24gb"));
    machine.set("0", "3g@0");
    let inner = node
        .simulator("run", &["--tree", "--", "ls", "/dev", "/dev/nvidia-caps", "/proc/driver/nvidia/gpus"]);
    let words: Vec<&str> = std::iter::once(inner.get_program())
        .chain(inner.get_args())
        .map(|word| word.to_str().unwrap())
        .collect();
    let said = machine.says(&words.join(" "));
    let shown: Vec<&str> =
        said.lines().filter(|line| line.contains("nvidia") && !line.ends_with(':')).collect();
    let expected = [
        "nvidia-caps",
        "nvidia-modeset",
        "nvidia-uvm",
        "nvidia-uvm-tools",
        "nvidia0",
        "nvidiactl",
        "nvidia-cap1",
        "nvidia-cap2",
    ];
    assert_eq!(shown, expected, "{said}");
    assert!(said.contains("0000:07:00.0") && !said.contains("0000:0f:00.0"), "{said}");
}

#[test]
fn a_change_from_outside_shows_while_the_program_runs() {
    let node = Node::new("1xh100-sxm-80gb");
    let there = node.folder.path().join("there");
    let wait = format!(
        "touch {}; until test -e /dev/nvidia-caps/nvidia-cap13 && test -e \
         /proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0/access; do sleep 0.01; done",
        there.display()
    );
    let mut waiting = node.script(&wait).spawn().unwrap();
    until("the program's start", || there.exists());
    node.set("0", "3g@0");
    assert!(ended(&mut waiting).success());
}

#[test]
fn a_written_reset_resets_that_gpu_alone() {
    let node = Node::new("2xa100-40gb");
    node.set("0", "3g@0");
    node.set("1", "3g@0");
    node.says(
        "at=/sys/bus/pci/devices
         echo 0 > $at/0000:07:00.0/reset
         echo 1 > $at/0000:0f:00.0/reset
         while test -s $at/0000:0f:00.0/reset || test -s $at/0000:07:00.0/reset; do sleep 0.01; done
         test -e /proc/driver/nvidia/capabilities/gpu0/mig/gi1
         test ! -e /proc/driver/nvidia/capabilities/gpu1/mig/gi1",
    );
    // What is written last, before the program's end, is done too.
    node.says("echo 1 > /sys/bus/pci/devices/0000:07:00.0/reset");
    let show: serde_json::Value =
        serde_json::from_slice(&node.simulator("show", &["--json"]).output().unwrap().stdout).unwrap();
    assert_eq!([&show["gpus"][0]["notation"], &show["gpus"][1]["notation"]], ["on", "on"]);
}

#[test]
fn ends_as_its_program_does_and_passes_signals_on() {
    let node = Node::new("1xa30-24gb");
    assert_eq!(
        node.simulator("run", &["--tree", "--", "sh", "-c", "exit 7"]).status().unwrap().code(),
        Some(7)
    );
    let killed = node.simulator("run", &["--tree", "--", "sh", "-c", "kill -KILL $$"]).status().unwrap();
    assert_eq!(killed.signal(), Some(9));
    let missing = node.simulator("run", &["--tree", "--", "/no/such"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("cannot run /no/such"));

    let there = node.folder.path().join("there");
    let trap = format!("trap 'exit 5' TERM; touch {}; while :; do sleep 0.01; done", there.display());
    let mut parent = node.simulator("run", &["--tree", "--", "sh", "-c", &trap]).spawn().unwrap();
    until("the program's start", || there.exists());
    let told = Command::new("kill").arg(parent.id().to_string()).status().unwrap();
    assert!(told.success());
    assert_eq!(ended(&mut parent).code(), Some(5));
}

#[test]
fn a_killed_parent_takes_the_program_with_it() {
    let node = Node::new("1xa30-24gb");
    let pid = node.folder.path().join("pid");
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600", pid.display());
    let mut parent = node.simulator("run", &["--tree", "--", "sh", "-c", &script]).spawn().unwrap();
    until("the program's start", || pid.exists());
    parent.kill().unwrap();
    parent.wait().unwrap();
    let stat = format!("/proc/{}/stat", fs::read_to_string(&pid).unwrap().trim());
    // A zombie that no one has waited for is dead too.
    until("the program's end", || {
        fs::read_to_string(&stat).is_ok_and(|text| text.contains(") Z")) || !Path::new(&stat).exists()
    });
}

#[test]
fn another_user_than_root_sees_them_too() {
    // Root's own files are not the other's to run: the programs are copied to where they may be read.
    let lent = tempfile::tempdir().unwrap();
    fs::set_permissions(lent.path(), fs::Permissions::from_mode(0o777)).unwrap();
    for name in ["nvml-simulator", "nvidia-smi", "libnvidia_ml.so"] {
        fs::copy(built().join(name), lent.path().join(name)).unwrap();
    }
    let mut command = Command::new(lent.path().join("nvml-simulator"));
    command.args(["run", "--tree", "2xa30-24gb", "--state"]).arg(lent.path().join("node"));
    command.args([
        "--",
        "sh",
        "-euc",
        "id -u; echo > /dev/null; cat /proc/driver/nvidia/version; ls /dev/nvidia1",
    ]);
    command.current_dir("/").stdin(Stdio::null());
    let root = nix::unistd::geteuid().is_root();
    if root {
        command.uid(65534).gid(65534);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("580.95.05") && said.ends_with("/dev/nvidia1\n"), "{said}");
    assert!(!root || said.starts_with("65534\n"), "{said}");
}

#[test]
fn a_tree_without_mounts_is_made_for_env_and_by_tree() {
    let node = Node::new("1xa30-24gb");
    assert!(node.simulator("show", &[]).output().unwrap().status.success());
    let own = node.folder.path().join("node/tree");
    assert!(!own.exists(), "a node whose files nobody asked for has none");
    let output = node.simulator("env", &["--tree", "--json"]).output().unwrap();
    let environment: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(environment["NVML_SIMULATOR_ROOT"], own.to_str().unwrap());
    let elsewhere = node.folder.path().join("elsewhere");
    assert!(node.simulator("tree", &[elsewhere.to_str().unwrap()]).output().unwrap().status.success());
    node.set("0", "2g@0");
    for root in [own, elsewhere] {
        assert!(root.join("proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0/access").exists(), "{root:?}");
        let device = fs::symlink_metadata(root.join("dev/nvidia0")).unwrap().file_type();
        assert_eq!(device.is_char_device(), nix::unistd::geteuid().is_root());
    }
}
