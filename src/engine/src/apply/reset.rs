//! Runs the reset tool on one GPU and understands what it says.
//!
//! NVML has no public call for a reset, so this is a program: nvidia-smi, or what the site names. It is waited
//! for within a bound and never killed: a reset cut short leaves a GPU that only a reboot brings back.

use crate::site::Site;
use migd_core::id::PciAddress;
use std::{
    io::{ErrorKind, Read, Seek},
    process::Stdio,
    time::Duration,
};
use tokio::{
    process::{Child, Command},
    time::timeout,
};

/// As much of what the tool says as is kept.
const MOST_TEXT: u64 = 4096;

/// Why a GPU was not reset.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// Other clients have it open.
    InUse(String),
    /// It cannot be reset on this machine, such as a GPU passed through to a virtual one.
    Unsupported(String),
    /// There is no such program.
    NoTool(String),
    /// It has not come back; it still runs.
    Hung(Box<Child>),
    /// It failed otherwise.
    Failed(String),
}

/// Resets this GPU. No process of ours may have it open.
pub(crate) async fn reset(site: &Site, pci: PciAddress, limit: Duration) -> Result<(), Trouble> {
    let failed = |error: std::io::Error| Trouble::Failed(error.to_string());
    // A file rather than a pipe: should we have to go first, the tool must not die of writing to nobody.
    let mut said = tempfile::tempfile().map_err(failed)?;
    let (out, err) = (said.try_clone().map_err(failed)?, said.try_clone().map_err(failed)?);
    let mut command = Command::new(&site.reset_tool);
    command.arg("-r").arg("-i").arg(pci.to_string());
    command.envs(site.environment.iter().map(|(key, value)| (key, value)));
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    // A group of its own: Ctrl-C must not cut a reset short.
    command.process_group(0);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => Trouble::NoTool(site.reset_tool.display().to_string()),
        _ => failed(error),
    })?;
    let status = match timeout(limit, child.wait()).await {
        Ok(status) => status.map_err(failed)?,
        Err(_) => return Err(Trouble::Hung(Box::new(child))),
    };
    if status.success() {
        return Ok(());
    }
    let mut text = Vec::new();
    said.rewind().map_err(failed)?;
    said.take(MOST_TEXT).read_to_end(&mut text).map_err(failed)?;
    Err(understand(&String::from_utf8_lossy(&text), &status.to_string()))
}

/// What nvidia-smi's words mean; it has no exit codes for this.
fn understand(text: &str, status: &str) -> Trouble {
    let lower = text.to_ascii_lowercase();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = if line.is_empty() { status.to_owned() } else { line };
    // "In use by another client"; "is currently being used by one or more other processes".
    if lower.contains("in use") || lower.contains("being used by") {
        Trouble::InUse(said)
    } else if lower.contains("not supported") || lower.contains("not available") {
        Trouble::Unsupported(said)
    } else {
        Trouble::Failed(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn understands_what_nvidia_smi_says() {
        let busy = "The following GPUs could not be reset:\n  GPU 00000000:07:00.0: In use by another client\n\n\
                    1 device is currently being used by one or more other processes (e.g., Fabric Manager, ...)";
        assert!(matches!(understand(busy, "exit status: 255"), Trouble::InUse(_)));
        let virt = "Resetting GPU 00000000:00:1E.0 is not supported.";
        assert!(matches!(understand(virt, "exit status: 3"), Trouble::Unsupported(_)));
        let silent = understand("", "exit status: 1");
        assert!(matches!(&silent, Trouble::Failed(said) if said == "exit status: 1"), "{silent:?}");
    }
}
