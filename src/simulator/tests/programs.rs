//! The two programs, as people and scripts use them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, missing_docs, reason = "tests")]

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// The workspace is built first (`make test` does), so the programs and the library lie together.
fn program(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let path = own.parent().and_then(Path::parent).unwrap().join(name);
    assert!(path.is_file(), "{} is not built: run `cargo build --workspace` first", path.display());
    path
}

struct Node {
    folder: tempfile::TempDir,
    notation: &'static str,
}

impl Node {
    fn new(notation: &'static str) -> Node {
        Node { folder: tempfile::tempdir().unwrap(), notation }
    }

    fn simulator(&self, word: &str, rest: &[&str]) -> Output {
        let mut command = Command::new(program("nvml-simulator"));
        command.arg(word).arg(self.notation).arg("--state").arg(self.folder.path().join("node")).args(rest);
        command.output().unwrap()
    }

    fn smi(&self, words: &[&str]) -> Output {
        self.simulator("run", &[&["--", "nvidia-smi"], words].concat())
    }

    fn show(&self) -> serde_json::Value {
        serde_json::from_slice(&self.simulator("show", &["--json"]).stdout).unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn ended(output: &Output, code: i32, says: &str) {
    let all = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{all}");
    assert!(all.contains(says), "{says:?} is not in\n{all}");
}

#[test]
fn set_show_reset_and_reboot_act_on_the_node_that_lasts() {
    let node = Node::new("a100-40gb,h100-sxm-80gb");
    ended(&node.simulator("set", &["0", "1g@0* 3g@4"]), 0, "");
    ended(&node.simulator("set", &["1", "7g@0"]), 0, "");
    ended(&node.simulator("show", &[]), 0, "[1g*]");
    ended(&node.simulator("reset", &["0"]), 0, "");
    let notation = |gpu: usize| node.show()["gpus"][gpu]["notation"].as_str().unwrap().to_owned();
    assert_eq!((notation(0), notation(1)), ("on".to_owned(), "7g@0".to_owned()));
    ended(&node.simulator("reboot", &[]), 0, "");
    assert_eq!((notation(0), notation(1)), ("on".to_owned(), "off".to_owned()));
}

#[test]
fn illegal_input_is_3_and_changes_nothing() {
    let node = Node::new("a100-40gb");
    ended(&node.simulator("set", &["0", "1g@0"]), 0, "");
    ended(&node.simulator("set", &["0", "1g@9"]), 3, "its starts are 0 1 2 3 4 5 6");
    ended(&node.simulator("set", &["7", "off"]), 3, "no GPU `7`");
    ended(&node.simulator("set", &["0"]), 3, "NOTATION");
    ended(&node.simulator("sett", &["0", "off"]), 3, "set");
    ended(&node.simulator("run", &[]), 3, "PROGRAM");
    ended(&node.simulator("run", &["--", "/no/such/program"]), 1, "cannot run /no/such/program");
    assert_eq!(node.show()["gpus"][0]["notation"], "1g@0");
}

#[test]
fn run_hands_over_the_programs_exit_code_and_environment() {
    let node = Node::new("a30-24gb");
    ended(&node.simulator("run", &["--", "sh", "-c", "exit 41"]), 41, "");
    let output =
        node.simulator("run", &["--trace", "a trace", "--", "sh", "-c", "echo $NVML_SIMULATOR_TRACE"]);
    ended(&output, 0, "/a trace\n");
}

#[test]
fn env_can_be_evaluated_by_a_shell_whatever_the_folder_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("it's $(a) node");
    let output = Command::new(program("nvml-simulator"))
        .args(["env", "a30-24gb", "--state"])
        .arg(&state)
        .output()
        .unwrap();
    ended(&output, 0, "export LD_LIBRARY_PATH=");
    let script = format!("{}printf %s \"$NVML_SIMULATOR_STATE\"", text(&output.stdout));
    let shell = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(text(&shell.stdout), state.display().to_string());
}

#[test]
fn the_stand_in_lists_as_nvidia_smi_does() {
    let node = Node::new("a100-40gb");
    ended(&node.simulator("set", &["0", "1g@0 3g@4"]), 0, "");
    let output = node.smi(&["-L"]);
    ended(&output, 0, "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-");
    let lines: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines.iter().skip(1).all(|line| line.starts_with("  MIG ") && line.contains("(UUID: MIG-")));
}

#[test]
fn the_stand_in_resets_what_no_one_uses_and_refuses_the_rest_by_name() {
    let node = Node::new("2xa100-40gb");
    ended(&node.simulator("set", &["0", "1g@0"]), 0, "");
    ended(&node.simulator("set", &["1", "1g@0*"]), 0, "");
    ended(&node.smi(&["-r", "-i", "1"]), 255, "in use by another process");
    ended(&node.smi(&["-r"]), 255, "in use by another process");
    assert_eq!(node.show()["gpus"][0]["notation"], "1g@0");
    ended(&node.smi(&["-r", "-i", "0"]), 0, "was successfully reset");
    assert_eq!(node.show()["gpus"][0]["notation"], "on");
    ended(&node.smi(&["-i", "5", "-L"]), 6, "No devices were found");
    for refused in [&["--query-gpu=name"][..], &["mig", "-lgi"], &[], &["-r", "-L"]] {
        ended(&node.smi(refused), 2, "stand-in for nvidia-smi");
    }
}

#[test]
fn the_stand_in_sets_modes_and_time_slices() {
    let node = Node::new("2xa100-40gb");
    ended(
        &node.smi(&["-c", "EXCLUSIVE_PROCESS", "-i", "1"]),
        0,
        "Set compute mode to EXCLUSIVE_PROCESS for GPU 0000",
    );
    ended(&node.smi(&["--compute-mode=0"]), 0, "Set compute mode to DEFAULT");
    ended(&node.smi(&["-pm", "1"]), 0, "Enabled persistence mode");
    ended(&node.smi(&["--persistence-mode=DISABLED"]), 0, "Disabled persistence mode");
    ended(&node.smi(&["compute-policy", "-i", "1", "--set-timeslice=2"]), 0, "MEDIUM");
    ended(&node.smi(&["compute-policy", "-l"]), 0, "GPU 0: Timeslice DEFAULT\nGPU 1: Timeslice MEDIUM");
    ended(&node.smi(&["-r", "-i", "1"]), 0, "");
    ended(&node.smi(&["compute-policy", "--list"]), 0, "GPU 1: Timeslice DEFAULT");
    // A GPU in MIG mode has no compute mode but the default one.
    ended(&node.simulator("set", &["0", "1g@0"]), 0, "");
    ended(&node.smi(&["-c", "3", "-i", "0"]), 3, "Not Supported");
    ended(&node.simulator("fault", &["add", "fn=nvmlDeviceSetPersistenceMode code=IN_USE"]), 0, "");
    ended(&node.smi(&["-pm", "1"]), 255, "Unable to set the persistence mode for GPU 0000");
    for refused in [
        &["-c"][..],
        &["-c", "4"],
        &["-pm", "x"],
        &["compute-policy"],
        &["compute-policy", "--set-timeslice=9"],
    ] {
        ended(&node.smi(refused), 2, "stand-in for nvidia-smi");
    }
}

#[test]
fn the_stand_in_without_a_node_has_no_driver() {
    let output =
        Command::new(program("nvidia-smi")).arg("-L").env_remove("NVML_SIMULATOR_STATE").output().unwrap();
    ended(&output, 9, "couldn't communicate with the NVIDIA driver");
}

#[test]
fn list_names_what_can_be_simulated() {
    let output = Command::new(program("nvml-simulator")).arg("list").output().unwrap();
    for name in ["a100-40gb ", "dgx-h100 ", "mixed ", "t4-16gb "] {
        ended(&output, 0, name);
    }
}

/// What `record` writes from a node, replayed as a node of its own.
struct Replayed {
    folder: tempfile::TempDir,
    file: String,
}

impl Replayed {
    #[track_caller]
    fn of(node: &Node) -> Replayed {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("recorded.yaml").to_str().unwrap().to_owned();
        let own = program("nvml-simulator");
        let trace = folder.path().join("trace");
        let words = ["--trace", trace.to_str().unwrap(), "--", own.to_str().unwrap(), "record", "-o", &file];
        ended(&node.simulator("run", &words), 0, "");
        let calls = std::fs::read_to_string(trace).unwrap();
        assert!(calls.contains("nvmlDeviceGetUUID"));
        for call in nvidia_ml::abi::MUTATING {
            assert!(!calls.contains(&format!("\"{call}\"")), "{call}");
        }
        Replayed { folder, file }
    }

    fn show(&self) -> serde_json::Value {
        let mut command = Command::new(program("nvml-simulator"));
        command.args(["show", "--json", &self.file, "--state"]).arg(self.folder.path().join("node"));
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{}\n{}",
            text(&output.stderr),
            std::fs::read_to_string(&self.file).unwrap()
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

#[track_caller]
fn the_same(node: &Node) {
    let (mut first, recorded) = (node.show(), Replayed::of(node));
    let mut second = recorded.show();
    for show in [&mut first, &mut second] {
        // Where a node lies, and what it is called, is its own.
        for name in ["node", "state"] {
            show.as_object_mut().unwrap().remove(name);
        }
    }
    assert_eq!(first, second, "{}", std::fs::read_to_string(&recorded.file).unwrap());
    assert_eq!(node.show()["gpus"], first["gpus"], "recording changes nothing");
}

#[test]
fn a_recorded_node_is_the_same_replayed() {
    let node = Node::new("mixed");
    the_same(&node);
    ended(&node.simulator("set", &["0", "1g+me@0 1g@1* 2g@2[1c@1,1c@0*] 3g@4[]"]), 0, "");
    ended(&node.simulator("set", &["1", "on"]), 0, "");
    ended(&node.simulator("set", &["2", "off*"]), 0, "");
    the_same(&node);
    for (notation, geometries) in [
        ("dgx-a100", &["1g@0 1g@6", "off", "on*", "7g@0", "4g@0[1c,2c]"][..]),
        ("dgx-h100", &["3g@0", "on", "1g@3"]),
        ("gb200", &[]),
        ("rtx-pro-6000x8", &["1g@0 1g+gfx@3", "2g@6", "4g@0"]),
        ("a800-40gb,h100-nvl-94gb,h100-sxm-64gb,h100-96gb,h20-96gb,gh200-144gb,l40s-48gb", &["1g@0"]),
    ] {
        let node = Node::new(notation);
        for (gpu, geometry) in geometries.iter().enumerate() {
            ended(&node.simulator("set", &[&gpu.to_string(), geometry]), 0, "");
        }
        the_same(&node);
    }
}

#[test]
fn a_recorded_node_keeps_what_was_described() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("node.yaml");
    let described = "driver: 570.124.06\nnvswitch: true\nfabric: stopped\ngpus:\n  \
        - {gpu: a100-40gb, variant: B, minor: 9, numa: 1, cpus: '0', mig: '1g@0 3g@4'}\n  \
        - {gpu: a100-40gb, links: 10, serial: '77', uuid: GPU-00000000-1111-2222-3333-444444444444, pending: on}\n  \
        - {gpu: a30-24gb, pci: '0001:02:00.0', links: 0}\n  \
        - {gpu: a30-24gb, pci: '0001:03:00.0', links: 0}\n  \
        - {gpu: rtx-pro-6000-blackwell-96gb, product: NVIDIA RTX PRO 6000 Blackwell Workstation Edition}\n  \
        - {gpu: rtx-pro-6000-blackwell-96gb, product: NVIDIA RTX PRO 6000 Blackwell Workstation Edition, display: false}\n\
        nvlink: [{gpus: [4, 5], links: 4}]\n";
    std::fs::write(&file, described).unwrap();
    let node = Node::new(file.to_str().unwrap().to_owned().leak());
    let show = node.show();
    assert_eq!([&show["fabric"], &show["gpus"][1]["mig"]["pending"]], ["stopped", "enabled"], "{show:#}");
    the_same(&node);
}

#[test]
fn places_on_pcie_are_recorded_by_what_they_share() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("node.yaml");
    let gpu = |pcie: &str| format!("  - {{gpu: a30-24gb, numa: 0, pcie: '{pcie}'}}\n");
    let gpus = ["5/1", "5/1", "5/2", "5/2/1", "6/0", "7"].map(gpu).concat();
    std::fs::write(&file, format!("gpus:\n{gpus}")).unwrap();
    let node = Node::new(file.to_str().unwrap().to_owned().leak());
    let places: Vec<String> = Replayed::of(&node).show()["gpus"]
        .as_array()
        .unwrap()
        .iter()
        .map(|gpu| gpu["pcie"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(places, ["0/0/0", "0/0/0", "0/2/2", "0/2/3", "", ""]);
}

#[test]
fn what_cannot_be_recorded_says_why() {
    let none = Command::new(program("nvml-simulator"))
        .args(["record", "--library", "/no/such.so"])
        .output()
        .unwrap();
    ended(&none, 1, "no driver to read: /no/such.so");
    let node = Node::new("a100-40gb");
    let own = program("nvml-simulator");
    let mut without = Command::new(&own);
    let library = node.folder.path().join("node/lib/libnvidia-ml.so.1");
    ended(&node.simulator("show", &[]), 0, "");
    without.arg("record").arg("--library").arg(library).env_remove("NVML_SIMULATOR_STATE");
    ended(&without.output().unwrap(), 1, "nvmlInit_v2 is refused with code 9");
}
