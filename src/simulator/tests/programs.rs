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
