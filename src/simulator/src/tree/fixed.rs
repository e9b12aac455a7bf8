//! The part of the tree that never changes: versions, PCI devices, minors, the GPUs' own device nodes.

use super::{CAPS_DRIVER, CONFIG_MINOR, MONITOR_MINOR, access, ci_minor, files::Writer, gi_minor};
use crate::{
    handling::address_of,
    machine::Driver,
    model::{Family, MAX_CIS, MAX_GIS, MAX_GPUS, Model},
    shared::Shard,
    topology::{node_switches, write_cpus},
};
use std::{collections::BTreeSet, fmt::Write as _, fs, io, os::unix::fs::FileTypeExt, path::Path};

/// NVIDIA's own major, and the majors that the kernel is asked for first for the others; it gives them from
/// above down, and so are they taken here where this machine has given one away.
const NVIDIA_MAJOR: u32 = 195;
pub(super) const CAPS_MAJOR: u32 = 508;
const UVM_MAJOR: u32 = 510;
const SWITCHES_MAJOR: u32 = 509;
const CONTROL_MINOR: u32 = 255;
const MODESET_MINOR: u32 = 254;
/// PCI class of a 3D controller.
const CLASS: &str = "0x030200";
/// PCI class of a bridge of no usual kind.
const SWITCH_CLASS: &str = "0x068000";

/// What the device nodes of a tree are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceNodes {
    /// Character devices with the driver's numbers. No driver is behind them: open(2) answers ENXIO.
    Real,
    /// Plain files: making devices needs root.
    Plain,
}

impl DeviceNodes {
    /// What a written tree has.
    pub fn of(root: &Path) -> DeviceNodes {
        let found = fs::symlink_metadata(root.join("dev/nvidiactl"));
        if found.is_ok_and(|found| found.file_type().is_char_device()) {
            DeviceNodes::Real
        } else {
            DeviceNodes::Plain
        }
    }
}

/// Writes it.
pub(super) fn write(shard: &Shard, writer: &Writer) -> io::Result<()> {
    let version = shard.info().driver.as_str();
    let host = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let devices = Majors::beside(&host("/proc/devices"), Driver::new(version));
    writer.file("proc/devices", &devices.text, 0o444)?;
    writer.file("proc/modules", &modules(&host("/proc/modules")), 0o444)?;
    for (name, text) in [("version", version), ("refcnt", "1"), ("initstate", "live")] {
        writer.file(&format!("sys/module/nvidia/{name}"), &format!("{text}\n"), 0o444)?;
    }
    driver(shard, writer)?;
    writer.folder("sys/bus/pci/drivers/nvidia")?;
    let cpus = host("/sys/devices/system/cpu/online");
    for model in shard.models() {
        pci(writer, model, cpus.trim())?;
        writer.device(&format!("dev/nvidia{}", model.minor), NVIDIA_MAJOR, model.minor, 0o666)?;
    }
    switches(shard, writer, devices.switches)?;
    writer.device("dev/nvidiactl", NVIDIA_MAJOR, CONTROL_MINOR, 0o666)?;
    writer.device("dev/nvidia-modeset", NVIDIA_MAJOR, MODESET_MINOR, 0o666)?;
    writer.device("dev/nvidia-uvm", devices.uvm, 0, 0o666)?;
    writer.device("dev/nvidia-uvm-tools", devices.uvm, 1, 0o666)?;
    // Another node may have been shown here, or another major.
    writer.remove_others("dev/nvidia-caps", |_| false)?;
    writer.device("dev/nvidia-caps/nvidia-cap1", devices.caps, CONFIG_MINOR, 0o400)?;
    writer.device("dev/nvidia-caps/nvidia-cap2", devices.caps, MONITOR_MINOR, 0o444)
}

/// /proc/driver.
fn driver(shard: &Shard, writer: &Writer) -> io::Result<()> {
    let version = shard.info().driver.as_str();
    let text = format!(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  (simulated)\nGCC version:  (simulated)\n"
    );
    writer.file("proc/driver/nvidia/version", &text, 0o444)?;
    let params = "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n";
    writer.file("proc/driver/nvidia/params", params, 0o444)?;
    writer.file("proc/driver/nvidia-caps/mig-minors", &mig_minors(), 0o444)?;
    let capabilities = "proc/driver/nvidia/capabilities";
    writer.file(&format!("{capabilities}/mig/config"), &access(CONFIG_MINOR), 0o400)?;
    writer.file(&format!("{capabilities}/mig/monitor"), &access(MONITOR_MINOR), 0o444)?;
    for model in shard.models() {
        if model.family() != Family::WithoutMig {
            writer.folder(&format!("{capabilities}/gpu{}/mig", model.minor))?;
        }
        let text = format!(
            "Model: \t\t {}\nIRQ:   \t\t 0\nGPU UUID: \t {}\nVideo BIOS: \t ??.??.??.??.??\nBus Type: \t PCIe\n\
             DMA Size: \t 47 bits\nDMA Mask: \t 0x7fffffffffff\nBus Location: \t {}\nDevice Minor: \t {}\n\
             GPU Firmware: \t {version}\nGPU Excluded:\t No\n",
            model.name.as_str(),
            model.uuid.as_str(),
            address_of(model),
            model.minor,
        );
        writer.file(&format!("proc/driver/nvidia/gpus/{}/information", address_of(model)), &text, 0o444)?;
    }
    Ok(())
}

/// Every minor there can be, as the driver lists them whatever exists.
fn mig_minors() -> String {
    let mut text = format!("config {CONFIG_MINOR}\nmonitor {MONITOR_MINOR}\n");
    for gpu in 0..MAX_GPUS as u32 {
        for gi in 0..MAX_GIS as u32 {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "gpu{gpu}/gi{gi}/access {}", gi_minor(gpu, gi));
            for ci in 0..MAX_CIS as u32 {
                let _ = writeln!(text, "gpu{gpu}/gi{gi}/ci{ci}/access {}", ci_minor(gpu, gi, ci));
            }
        }
    }
    text
}

/// /sys/bus/pci/devices/ADDRESS.
fn pci(writer: &Writer, model: &Model, cpus: &str) -> io::Result<()> {
    let folder = format!("sys/bus/pci/devices/{}", address_of(model));
    let (device, subsystem) = (model.pci_device_id, model.pci_subsystem_id);
    let files = [
        ("vendor", format!("0x{:04x}", device & 0xffff)),
        ("device", format!("0x{:04x}", device >> 16)),
        ("subsystem_vendor", format!("0x{:04x}", subsystem & 0xffff)),
        ("subsystem_device", format!("0x{:04x}", subsystem >> 16)),
        ("class", CLASS.to_owned()),
        ("revision", "0xa1".to_owned()),
        ("numa_node", model.numa_node.to_string()),
        // As nvmlDeviceGetCpuAffinity.
        ("local_cpulist", model.cpus().map_or_else(|| cpus.to_owned(), |cpus| write_cpus(&cpus))),
        ("enable", "1".to_owned()),
        ("power_state", "D0".to_owned()),
    ];
    for (name, text) in files {
        writer.file(&format!("{folder}/{name}"), &format!("{text}\n"), 0o444)?;
    }
    // Readable, unlike the kernel's: its owner need not be root, and reads what was asked for.
    writer.file(&format!("{folder}/reset"), "", 0o600)?;
    writer.link(&format!("{folder}/driver"), "../../drivers/nvidia")
}

/// NVSwitches: what Fabric Manager works on.
fn switches(shard: &Shard, writer: &Writer, major: u32) -> io::Result<()> {
    let all = node_switches(shard.models());
    for (number, switch) in (0u32..).zip(&all) {
        let folder = format!("sys/bus/pci/devices/{}", switch.address);
        for (name, text) in [
            ("vendor", format!("0x{:04x}", switch.id & 0xffff)),
            ("device", format!("0x{:04x}", switch.id >> 16)),
            ("class", SWITCH_CLASS.to_owned()),
        ] {
            writer.file(&format!("{folder}/{name}"), &format!("{text}\n"), 0o444)?;
        }
        writer.link(&format!("{folder}/driver"), "../../drivers/nvidia-nvswitch")?;
        writer.device(&format!("dev/nvidia-nvswitch{number}"), major, number, 0o666)?;
    }
    if all.is_empty() {
        return Ok(());
    }
    writer.folder("sys/bus/pci/drivers/nvidia-nvswitch")?;
    writer.device("dev/nvidia-nvswitchctl", major, CONTROL_MINOR, 0o666)
}

fn modules(host: &str) -> String {
    let mut text: String = host.lines().filter(|line| !line.starts_with("nvidia")).fold(String::new(), line);
    for module in ["nvidia_uvm 0 - ", "nvidia_modeset 0 - ", "nvidia 2 nvidia_uvm,nvidia_modeset, "] {
        let (name, uses) = module.split_once(' ').unwrap_or((module, ""));
        let _ = writeln!(text, "{name} 16384 {uses}Live 0x0000000000000000 (OE)");
    }
    text
}

fn line(mut text: String, line: &str) -> String {
    text.push_str(line);
    text.push('\n');
    text
}

/// This machine's /proc/devices with the driver's majors among the character devices.
struct Majors {
    text: String,
    caps: u32,
    uvm: u32,
    switches: u32,
}

impl Majors {
    fn beside(host: &str, driver: Driver) -> Majors {
        let (characters, blocks) = host.split_once("\n\n").unwrap_or((host, ""));
        let ours = |line: &&str| line.split_whitespace().nth(1).is_some_and(|n| n.starts_with("nvidia"));
        let kept: Vec<&str> = characters.lines().filter(|line| !ours(line)).collect();
        let major = |line: &str| line.split_whitespace().next()?.parse::<u32>().ok();
        let mut taken: BTreeSet<u32> = kept.iter().filter_map(|line| major(line)).collect();
        let mut take = |first: u32| {
            let free = (1..=first).rev().find(|major| !taken.contains(major)).unwrap_or(first);
            taken.insert(free);
            free
        };
        let (caps, uvm, switches) = (take(CAPS_MAJOR), take(UVM_MAJOR), take(SWITCHES_MAJOR));
        // The front end between module and driver went with branch 550, and its name with it.
        let name = if driver.branch < 550 { "nvidia-frontend" } else { "nvidia" };
        let mut lines: Vec<(u32, String)> = kept
            .iter()
            .filter_map(|line| Some((major(line)?, (*line).to_owned())))
            .chain(
                [
                    (NVIDIA_MAJOR, name),
                    (caps, CAPS_DRIVER),
                    (uvm, "nvidia-uvm"),
                    (switches, "nvidia-nvswitch"),
                ]
                .map(|(major, name)| (major, format!("{major:3} {name}"))),
            )
            .collect();
        lines.sort_by_key(|(major, _)| *major);
        let text = lines.iter().fold("Character devices:\n".to_owned(), |text, (_, one)| line(text, one));
        let blocks = if blocks.is_empty() { "Block devices:\n" } else { blocks };
        Majors { text: format!("{text}\n{blocks}"), caps, uvm, switches }
    }
}
