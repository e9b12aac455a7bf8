//! What the kernel and the driver show of a node in files: /proc/driver, /proc/devices, /sys/bus/pci, /dev.
//!
//! ```text
//! Shard::update publishes --> follow: lock --> stamp says what is shown --> differing GPUs made to match --> stamp
//!                                                         ^
//! process killed anywhere here: the stamp is old, so whoever opens or changes the node next does the rest
//! ```
//!
//! In: a node's state, read anew under the tree's lock, so that the last to write shows the newest. Out: the
//! tree at `<folder>/tree`, once someone asked for it, and at every other root that was asked for
//! (`<folder>/roots`); a node without a tree pays nothing. A tree that cannot be written never makes a driver
//! call fail; it stays as it was, and its stamp says so.
//! Not here: what never changes ([`fixed`]), and mounting it over the real paths (`enclosure`).

mod files;
mod fixed;

pub use fixed::DeviceNodes;

use crate::{folder::effective_uid, model::Model, shared::Shard, state::GpuState, trouble::Trouble};
use files::Writer;
use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// The stamp of a tree: what it shows, and that it is one of ours.
pub const STAMP: &str = ".nvml-simulator";
const STAMP_HEAD: &str = "nvml-simulator-tree/1";
/// Roots beside `<folder>/tree` that are kept in step, one absolute path a line.
const ROOTS: &str = "roots";

/// Minors of capabilities (open-gpu-kernel-modules, nv-caps): two for the node, then 135 for each GPU.
pub(crate) const CONFIG_MINOR: u32 = 1;
pub(crate) const MONITOR_MINOR: u32 = 2;
const FIRST_MINOR: u32 = 3;
const MINORS_PER_GPU: u32 = 135;
const MINORS_PER_GI: u32 = 9;
/// /proc/devices names the capabilities' major thus.
const CAPS_DRIVER: &str = "nvidia-caps";

/// The minor of a GPU instance's capability, by the GPU's device minor.
pub fn gi_minor(gpu_minor: u32, gi: u32) -> u32 {
    FIRST_MINOR + MINORS_PER_GPU * gpu_minor + MINORS_PER_GI * gi
}

/// The minor of a compute instance's capability.
pub fn ci_minor(gpu_minor: u32, gi: u32, ci: u32) -> u32 {
    gi_minor(gpu_minor, gi) + 1 + ci
}

/// The node's own tree.
pub fn own(folder: &Path) -> PathBuf {
    folder.join("tree")
}

/// Makes the node's own tree, which then follows the node; gives where it lies.
///
/// # Errors
/// [`Trouble::Failed`] if it cannot be written, or if another user's node has none.
pub fn ensure(shard: &Shard) -> Result<PathBuf, Trouble> {
    let root = own(&shard.folder);
    if mine(shard) {
        write(shard, &root)?;
    } else if !root.join(STAMP).is_file() {
        return Err(foreign(shard));
    }
    Ok(root)
}

fn foreign(shard: &Shard) -> Trouble {
    let folder = shard.folder.display();
    Trouble::Failed(format!("the node in {folder} belongs to another user, and has no tree of files"))
}

/// Writes the tree at a root of choice, which then follows the node as its own tree does.
///
/// # Errors
/// [`Trouble::Input`] if other things lie there; [`Trouble::Failed`] if it cannot be written.
pub fn add(shard: &Shard, root: &Path) -> Result<DeviceNodes, Trouble> {
    let root = std::path::absolute(root).map_err(|e| Trouble::io("use", root, &e))?;
    if root.to_str().is_none_or(|text| text.contains('\n')) {
        let text = root.display();
        return Err(Trouble::input(format!("{text}: a root is a path in UTF-8 of one line")));
    }
    if !mine(shard) {
        return Err(foreign(shard));
    }
    require_ours_or_empty(&root)?;
    write(shard, &root)?;
    if root != own(&shard.folder) {
        let list = shard.folder.join(ROOTS);
        let _lock = files::lock(&shard.folder).map_err(|e| Trouble::io("lock", &list, &e))?;
        let known = extra_roots(&shard.folder);
        if !known.contains(&root) {
            let all = known.iter().chain([&root]);
            let text = all.fold(String::new(), |text, root| format!("{text}{}\n", root.display()));
            files::replace(&list, &text, 0o600).map_err(|e| Trouble::io("write", &list, &e))?;
        }
    }
    Ok(DeviceNodes::of(&root))
}

/// Brings the trees in step after a change. What cannot be written is left to whoever comes next: the change
/// itself has happened, and the caller's answer is about that.
pub fn follow(shard: &Shard) {
    for root in extra_roots(&shard.folder).into_iter().chain([own(&shard.folder)]) {
        // A root that was removed, or that holds other things by now, is no root any more.
        if root.join(STAMP).is_file() && mine(shard) {
            let _ = write(shard, &root);
        }
    }
}

/// Others' nodes are not written to: their trees are their owner's, whose next process brings them in step.
fn mine(shard: &Shard) -> bool {
    fs::metadata(&shard.folder).is_ok_and(|found| found.uid() == effective_uid())
}

fn extra_roots(folder: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(folder.join(ROOTS)).unwrap_or_default();
    text.lines().map(PathBuf::from).collect()
}

fn require_ours_or_empty(root: &Path) -> Result<(), Trouble> {
    if root.join(STAMP).is_file() {
        return Ok(());
    }
    let mut entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Trouble::io("read", root, &e)),
    };
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(Trouble::input(format!(
            "{} holds other things; give an empty or new folder (a tree of ours has a file {STAMP})",
            root.display()
        ))),
    }
}

/// Makes a root show the node as it is now.
fn write(shard: &Shard, root: &Path) -> Result<(), Trouble> {
    let failed = |e: io::Error| Trouble::io("write the tree at", root, &e);
    if read_stamp(root) == stamp(shard).map_err(failed)? {
        return Ok(());
    }
    let _lock = files::lock(&shard.folder).map_err(failed)?;
    // Asked again under the lock: another process may have done it, and a newer state may be there.
    let (there, wanted) = (read_stamp(root), stamp(shard).map_err(failed)?);
    if there == wanted {
        return Ok(());
    }
    let writer = Writer::new(root).map_err(failed)?;
    let (old, new): (Vec<&str>, Vec<&str>) = (there.lines().collect(), wanted.lines().collect());
    if old.first() != new.first() {
        fixed::write(shard, &writer).map_err(failed)?;
    }
    for (index, model) in shard.models().iter().enumerate() {
        if old.first() == new.first() && old.get(index + 1) == new.get(index + 1) {
            continue;
        }
        let Some(state) = shard.read(index) else { continue };
        show(&writer, model, &state).map_err(failed)?;
    }
    writer.file(STAMP, &wanted, 0o644).map_err(failed)?;
    writer.finish();
    Ok(())
}

fn read_stamp(root: &Path) -> String {
    fs::read_to_string(root.join(STAMP)).unwrap_or_default()
}

/// What a tree of the present state says of itself: which state file, and how often each GPU's instances or mode
/// had changed. It is taken before the GPUs are shown, so a change in between makes it old, never too new.
fn stamp(shard: &Shard) -> io::Result<String> {
    let file = fs::metadata(shard.folder.join("state"))?;
    let identity = shard.info().identity.as_str();
    let mut text = format!("{STAMP_HEAD} node {identity} state {}:{}\n", file.dev(), file.ino());
    for index in 0..shard.models().len() {
        let changes = shard.read(index).map_or(0, |state| state.changes);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "gpu {index} generation {changes}");
    }
    Ok(text)
}

/// What the driver shows of one GPU's instances.
fn show(writer: &Writer, model: &Model, state: &GpuState) -> io::Result<()> {
    let minor = model.minor;
    let mig = format!("proc/driver/nvidia/capabilities/gpu{minor}/mig");
    let mut nodes = BTreeSet::new();
    let mut gis = BTreeSet::new();
    for (gi, instance) in state.live_gis() {
        let folder = format!("gi{gi}");
        let cis: BTreeSet<String> = instance.live_cis().map(|(ci, _)| format!("ci{ci}")).collect();
        nodes.insert(gi_minor(minor, gi));
        nodes.extend(instance.live_cis().map(|(ci, _)| ci_minor(minor, gi, ci)));
        let shown = format!("{mig}/{folder}");
        if !writer.has(&shown) {
            // A new instance appears with all that is in it.
            writer.folder_at_once(&shown, |inside| {
                inside.file("access", &access(gi_minor(minor, gi)), 0o444)?;
                instance.live_cis().try_for_each(|(ci, _)| {
                    inside.file(&format!("ci{ci}/access"), &access(ci_minor(minor, gi, ci)), 0o444)
                })
            })?;
        }
        for (ci, _) in instance.live_cis() {
            let shown = format!("{shown}/ci{ci}");
            if !writer.has(&shown) {
                let text = access(ci_minor(minor, gi, ci));
                writer.folder_at_once(&shown, |inside| inside.file("access", &text, 0o444))?;
            }
        }
        writer.remove_others(&shown, |name| !name.starts_with("ci") || cis.contains(name))?;
        gis.insert(folder);
    }
    writer.remove_others(&mig, |name| !name.starts_with("gi") || gis.contains(name))?;
    let ours = FIRST_MINOR + MINORS_PER_GPU * minor..FIRST_MINOR + MINORS_PER_GPU * (minor + 1);
    let major = caps_major(writer.root());
    for node in &nodes {
        let name = format!("dev/nvidia-caps/nvidia-cap{node}");
        if !writer.has(&name) {
            writer.device(&name, major, *node, 0o444)?;
        }
    }
    writer.remove_others("dev/nvidia-caps", |name| {
        let number = name.strip_prefix("nvidia-cap").and_then(|number| number.parse().ok());
        number.is_none_or(|number| !ours.contains(&number) || nodes.contains(&number))
    })
}

/// What a file of /proc/driver/nvidia/capabilities says. The driver writes the mode in decimal.
pub(crate) fn access(minor: u32) -> String {
    let mode = if minor == CONFIG_MINOR { 0o400 } else { 0o444 };
    format!("DeviceFileMinor: {minor}\nDeviceFileMode: {mode}\nDeviceFileModify: 1\n")
}

/// The capabilities' major, which the tree itself says.
fn caps_major(root: &Path) -> u32 {
    let text = fs::read_to_string(root.join("proc/devices")).unwrap_or_default();
    let major = text.lines().find_map(|line| line.trim().strip_suffix(CAPS_DRIVER)?.trim().parse().ok());
    major.unwrap_or(fixed::CAPS_MAJOR)
}

#[cfg(test)]
mod tests;
