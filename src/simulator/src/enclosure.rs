//! One program in a mount namespace of its own, in which the node's files lie over the real paths.
//!
//! ```text
//! caller's namespace --unshare--> own --what of the tree has a place there--> mounted --> the program (run)
//!                      |                 |
//!   still the caller's +--> refused      +-- no place (nothing can be made in /proc and /sys) --> left out, told
//! ```
//!
//! In: a written tree (`tree`). Out: the paths left out, which programs read below the tree itself.
//! The caller's own mounts are never changed: [`Own`] is the only way in, and is had only where the namespace is
//! another. /proc/driver, /proc/devices and /sys/bus/pci are the tree's alone there; /dev is a new one with all of
//! this machine's devices but those of a real NVIDIA driver, which must not be reached by mistake.

mod warden;

pub use warden::{end_as, run};

use crate::{folder::effective_uid, trouble::Trouble};
use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
};
use std::{
    fs::{self, File, OpenOptions},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{OpenOptionsExt, symlink},
    },
    path::{Path, PathBuf},
};

/// Names the tree that a program sees, for what could not be mounted.
pub const ROOT_VARIABLE: &str = "NVML_SIMULATOR_ROOT";
/// The paths that could not be mounted, joined by colons.
pub const UNMOUNTED_VARIABLE: &str = "NVML_SIMULATOR_UNMOUNTED";

/// What lies over the real path, where there is one.
const COVERED: [&str; 5] =
    ["proc/driver", "proc/devices", "proc/modules", "sys/bus/pci", "sys/module/nvidia"];
const OWN_NAMESPACE: &str = "/proc/self/ns/mnt";

/// The right to mount: this process is not in its caller's mount namespace.
#[derive(Debug)]
pub struct Own(());

impl Own {
    /// Leaves the caller's mount namespace. Others than root do so in a user namespace in which they stay
    /// themselves.
    ///
    /// # Errors
    /// [`Trouble::Failed`] if this machine does not allow it, or if it came to nothing.
    pub fn enter() -> Result<Own, Trouble> {
        let callers = namespace()?;
        let (user, group) = (effective_uid(), nix::unistd::getegid());
        let refused = |e: nix::Error| {
            Trouble::Failed(format!(
                "a mount namespace for --tree is refused: {e}; it needs root, or user namespaces for users \
                 (`nvml-simulator tree NODE ROOT` does without mounts)"
            ))
        };
        if user == 0 {
            unshare(CloneFlags::CLONE_NEWNS).map_err(refused)?;
        } else {
            unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS).map_err(refused)?;
            for (file, text) in [
                ("/proc/self/setgroups", "deny".to_owned()),
                ("/proc/self/uid_map", format!("{user} {user} 1")),
                ("/proc/self/gid_map", format!("{group} {group} 1")),
            ] {
                fs::write(file, text).map_err(|e| Trouble::io("write", Path::new(file), &e))?;
            }
        }
        let own = Own::unlike(&callers)?;
        // Nothing that is mounted here may be seen anywhere else.
        let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, flags, None::<&str>)
            .map_err(|e| failed("make private", "/", e))?;
        Ok(own)
    }

    /// Refuses to go on in this namespace.
    fn unlike(callers: &Path) -> Result<Own, Trouble> {
        if namespace()? == callers {
            return Err(Trouble::Failed(
                "nothing is mounted: this would be the mount namespace of whoever called".to_owned(),
            ));
        }
        Ok(Own(()))
    }

    /// Lays the tree over the real paths; gives those that cannot be covered.
    ///
    /// # Errors
    /// [`Trouble::Failed`] if a path that is there cannot be covered.
    pub fn cover(&self, tree: &Path) -> Result<Vec<PathBuf>, Trouble> {
        let mut left = Vec::new();
        for path in COVERED {
            let (from, to) = (tree.join(path), Path::new("/").join(path));
            if to.exists() { bind(&from, &to)? } else { left.push(to) }
        }
        devices(&tree.join("dev"))?;
        Ok(left)
    }
}

fn namespace() -> Result<PathBuf, Trouble> {
    fs::read_link(OWN_NAMESPACE).map_err(|e| Trouble::io("read", Path::new(OWN_NAMESPACE), &e))
}

fn failed(what: &str, path: impl AsRef<Path>, error: nix::Error) -> Trouble {
    Trouble::io(what, path.as_ref(), &io::Error::from(error))
}

fn bind(from: &Path, to: &Path) -> Result<(), Trouble> {
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some(from), to, None::<&str>, flags, None::<&str>).map_err(|e| failed("mount on", to, e))
}

/// A new /dev: this machine's devices, and the node's in place of a real driver's.
fn devices(tree: &Path) -> Result<(), Trouble> {
    let dev = Path::new("/dev");
    let failed_io = |e: io::Error| Trouble::io("fill", dev, &e);
    // The old one stays reachable by this descriptor once the new one lies over it.
    let old = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(dev).map_err(failed_io)?;
    let names = names(dev).map_err(failed_io)?;
    mount(Some("nvml-simulator"), dev, Some("tmpfs"), MsFlags::MS_NOSUID, Some("mode=755,size=4m"))
        .map_err(|e| failed("mount", dev, e))?;
    let old = PathBuf::from(format!("/proc/self/fd/{}", old.as_raw_fd()));
    for name in names.iter().filter(|name| !name.starts_with("nvidia")) {
        stand_in(&old.join(name), &dev.join(name))?;
    }
    for name in self::names(tree).map_err(failed_io)? {
        let place = dev.join(&name);
        stand_in(&tree.join(&name), &place)?;
        // The node's folder may lie where devices do not open. What is refused to a user namespace stays so.
        let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND;
        let _ = mount(None::<&str>, &place, None::<&str>, flags, None::<&str>);
    }
    Ok(())
}

fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        // Device names are ASCII; anything else is nothing that programs look for.
        names.extend(entry?.file_name().into_string().ok());
    }
    Ok(names)
}

/// Makes `to` what `from` is. One that goes away meanwhile is left out.
fn stand_in(from: &Path, to: &Path) -> Result<(), Trouble> {
    let failed = |e: io::Error| Trouble::io("make", to, &e);
    let kind = match fs::symlink_metadata(from) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(failed)?.file_type(),
    };
    if kind.is_symlink() {
        return fs::read_link(from).and_then(|target| symlink(target, to)).map_err(failed);
    }
    if kind.is_dir() {
        fs::create_dir(to).map_err(failed)?;
    } else {
        File::create(to).map_err(failed)?;
    }
    bind(from, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_nothing_in_the_callers_own_namespace() {
        let callers = namespace().unwrap();
        let refused = Own::unlike(&callers).unwrap_err();
        assert_eq!(refused.exit_code(), 1);
        assert!(Own::unlike(Path::new("mnt:[1]")).is_ok());
    }
}
