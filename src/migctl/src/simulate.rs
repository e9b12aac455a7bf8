//! Simulated nodes: found and made by the program `nvml-simulator`, whose library the workers load. Nothing of
//! ours links the simulator.

use crate::args::Common;
use migd::Site;
use migd_core::{
    diagnostic::Diagnostic,
    document::Failure,
    reason::{Exit, Reason},
};
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

/// Where a node's folder stands in the environment that `nvml-simulator env` gives.
const STATE: &str = "NVML_SIMULATOR_STATE";

/// The site of a simulated node, which is made if it is not there.
///
/// # Errors
/// What `nvml-simulator` says: `node-invalid` for a node it does not know or a folder that holds another.
pub(crate) fn site(node: &str, state: Option<&Path>, trace: Option<&Path>) -> Result<Site, Failure> {
    let program = program()?;
    let mut command = Command::new(&program);
    command.args(["env", "--json"]);
    options(&mut command, state, trace);
    command.arg("--").arg(node);
    let output = command.output().map_err(|error| missing(&program, &error))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let text = text.trim().trim_start_matches("error: ").to_owned();
        let reason = if output.status.code() == Some(3) { Reason::NodeInvalid } else { Reason::Internal };
        let fault = Diagnostic::error(reason, text).help("`migctl simulate list` shows the nodes there are");
        return Err(Failure::of(vec![fault]));
    }
    let environment: BTreeMap<String, String> = serde_json::from_slice(&output.stdout).map_err(|error| {
        Failure::of(vec![Diagnostic::error(
            Reason::Internal,
            format!("nvml-simulator answered oddly: {error}"),
        )])
    })?;
    let folder = PathBuf::from(environment.get(STATE).cloned().unwrap_or_default());
    Ok(Site {
        library: Some(folder.join("lib/libnvidia-ml.so.1")),
        reset_tool: folder.join("bin/nvidia-smi"),
        environment: environment.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
        ..Site::default()
    })
}

/// Becomes `nvml-simulator` with these arguments; returns only if that fails.
///
/// # Errors
/// `tool-missing` if there is no such program.
pub(crate) fn hand_over(common: &Common, arguments: &[OsString]) -> Result<Exit, Failure> {
    let program = program()?;
    let mut command = Command::new(&program);
    // Options of ours that stood before `simulate` go behind its own command word.
    let (word, rest) = arguments.split_at(arguments.len().min(1));
    command.args(word);
    options(&mut command, common.state.as_deref(), common.trace.as_deref());
    if common.json {
        command.arg("--json");
    }
    command.args(rest);
    Err(missing(&program, &command.exec()))
}

fn options(command: &mut Command, state: Option<&Path>, trace: Option<&Path>) {
    for (option, value) in [("--state", state), ("--trace", trace)] {
        if let Some(value) = value {
            command.arg(option).arg(value);
        }
    }
}

/// `nvml-simulator` beside this program, else wherever PATH has it.
fn program() -> Result<PathBuf, Failure> {
    let name = OsStr::new("nvml-simulator");
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(|folder| folder.join(name));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).map(|folder| folder.join(name));
    let fault = "nvml-simulator is not installed: it is neither beside migctl nor in PATH";
    beside
        .into_iter()
        .chain(folders)
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| Failure::of(vec![Diagnostic::error(Reason::ToolMissing, fault)]))
}

fn missing(program: &Path, error: &std::io::Error) -> Failure {
    let text = format!("{} does not start: {error}", program.display());
    Failure::of(vec![Diagnostic::error(Reason::ToolMissing, text)])
}
