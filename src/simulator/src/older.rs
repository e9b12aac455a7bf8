//! What an older driver's library did not have yet: a copy of ours without those names serves such a node.
//!
//! A program finds a function by its name in the library's table of dynamic symbols. In the copy the entries of
//! the missing ones are undefined and weak, so the loader looks further and finds nothing, and the library itself
//! still loads under immediate binding.

use crate::trouble::Trouble;
use std::{
    fs::{self, File, FileTimes, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// Driver branch, and what it was the first to have. The ages are those of NVML's header (go-nvml keeps its
/// history), the branches those of the CUDA release with that header.
const ADDED: &[(u32, &[&str])] = &[
    (460, &["nvmlDeviceCreateGpuInstanceWithPlacement"]),
    (470, &["nvmlDeviceGetGpuInstancePossiblePlacements_v2"]),
    (510, &["nvmlDeviceGetGpuInstanceProfileInfoV", "nvmlGpuInstanceGetComputeInstanceProfileInfoV"]),
    (
        525,
        &[
            "nvmlGpuInstanceCreateComputeInstanceWithPlacement",
            "nvmlGpuInstanceGetComputeInstancePossiblePlacements",
            "nvmlGpmMetricsGet",
            "nvmlGpmMigSampleGet",
            "nvmlGpmQueryDeviceSupport",
            "nvmlGpmQueryIfStreamingEnabled",
            "nvmlGpmSampleAlloc",
            "nvmlGpmSampleFree",
            "nvmlGpmSampleGet",
            "nvmlGpmSetStreamingEnabled",
        ],
    ),
    (580, &["nvmlDeviceGetGpuInstanceProfileInfoByIdV"]),
];

/// Where things lie in a 64-bit ELF file (elf(5)).
const EHDR_SHOFF: usize = 40;
const EHDR_SHENTSIZE: usize = 58;
const EHDR_SHNUM: usize = 60;
const SHDR_TYPE: usize = 4;
const SHDR_OFFSET: usize = 24;
const SHDR_SIZE: usize = 32;
const SHDR_LINK: usize = 40;
const SHT_DYNSYM: usize = 11;
const SYM_SIZE: usize = 24;
const SYM_INFO: usize = 4;
const SYM_SHNDX: usize = 6;
const SYM_VALUE: usize = 8;
const STB_WEAK: u8 = 2;

/// The functions that a driver does not have.
pub fn missing(driver: &str) -> Vec<&'static str> {
    let branch: u32 = driver.split('.').next().and_then(|branch| branch.parse().ok()).unwrap_or(u32::MAX);
    ADDED.iter().filter(|(first, _)| branch < *first).flat_map(|(_, names)| names.iter().copied()).collect()
}

/// Keeps `path` a copy of `library` without these functions; put in place at one instant, as programs may be
/// starting. Its time of change is the library's, by which it is known to be up to date.
///
/// # Errors
/// [`Trouble::Failed`] if it cannot be read or written, or is no such library.
pub fn serve(library: &Path, path: &Path, temporary: &Path, missing: &[&str]) -> Result<(), Trouble> {
    let of = fs::metadata(library).map_err(|e| Trouble::io("look at", library, &e))?;
    let time = of.modified().map_err(|e| Trouble::io("look at", library, &e))?;
    let there = fs::symlink_metadata(path);
    if there.is_ok_and(|there| {
        there.is_file() && there.len() == of.len() && there.modified().is_ok_and(|at| at == time)
    }) {
        return Ok(());
    }
    let mut bytes = fs::read(library).map_err(|e| Trouble::io("read", library, &e))?;
    hide(&mut bytes, missing).ok_or_else(|| {
        Trouble::Failed(format!(
            "{} has no table of dynamic symbols with {}; a node with an older driver needs one",
            library.display(),
            missing.first().unwrap_or(&"its functions")
        ))
    })?;
    let put = || {
        let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o755).open(temporary)?;
        file.write_all(&bytes)?;
        file.set_times(FileTimes::new().set_modified(time))?;
        fs::rename(temporary, path)
    };
    put().map_err(|e| Trouble::io("write", path, &e))
}

/// Takes names out of a library's dynamic symbols; `None` if one of them is not there.
fn hide(file: &mut [u8], names: &[&str]) -> Option<()> {
    let sections = field(file, 0, EHDR_SHOFF, 8)?;
    let (size, count) = (field(file, 0, EHDR_SHENTSIZE, 2)?, field(file, 0, EHDR_SHNUM, 2)?);
    let section = |index: usize| sections.checked_add(size.checked_mul(index)?);
    let symbols =
        (0..count).filter_map(section).find(|at| field(file, *at, SHDR_TYPE, 4) == Some(SHT_DYNSYM))?;
    let strings = section(field(file, symbols, SHDR_LINK, 4)?)?;
    let strings = field(file, strings, SHDR_OFFSET, 8)?;
    let (begin, bytes) = (field(file, symbols, SHDR_OFFSET, 8)?, field(file, symbols, SHDR_SIZE, 8)?);
    let mut left: Vec<&str> = names.to_vec();
    for at in (begin..begin.checked_add(bytes)?).step_by(SYM_SIZE) {
        let name = strings.checked_add(field(file, at, 0, 4)?)?;
        let Some(found) = left.iter().position(|wanted| is(file, name, wanted)) else { continue };
        left.swap_remove(found);
        let symbol = file.get_mut(at..at.checked_add(SYM_SIZE)?)?;
        let info = symbol.get_mut(SYM_INFO)?;
        *info = STB_WEAK << 4 | *info & 0xf;
        symbol.get_mut(SYM_SHNDX..SYM_VALUE + 8)?.fill(0);
    }
    left.is_empty().then_some(())
}

/// A number of so many bytes in a structure of the file.
fn field(file: &[u8], structure: usize, offset: usize, bytes: usize) -> Option<usize> {
    let at = structure.checked_add(offset)?;
    let bytes = file.get(at..at.checked_add(bytes)?)?;
    usize::try_from(bytes.iter().rev().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte))).ok()
}

fn is(file: &[u8], at: usize, name: &str) -> bool {
    let rest = file.get(at..).and_then(|rest| rest.strip_prefix(name.as_bytes()));
    rest.and_then(|rest| rest.first()) == Some(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_branch_lacks_what_later_ones_added() {
        let count = |driver: &str| missing(driver).len();
        assert_eq!(
            [450, 460, 470, 510, 525, 535, 580].map(|b| count(&format!("{b}.1"))),
            [15, 14, 13, 11, 1, 1, 0]
        );
        assert_eq!(count("610.43.02"), 0);
    }

    #[test]
    fn every_missing_function_is_one_of_nvml() {
        assert!(missing("1.0").iter().all(|name| crate::abi::SYMBOLS.contains(name)));
    }

    #[test]
    fn what_is_no_library_is_left_alone() {
        for bytes in [&b""[..], b"\x7fELF", &[0xff; 64], &[0; 4096]] {
            let mut file = bytes.to_vec();
            assert_eq!(hide(&mut file, &["nvmlInit"]), None);
            assert_eq!(file, bytes);
        }
    }
}
