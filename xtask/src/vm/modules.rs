//! Which kernel modules a guest loads before its root file system is there, and in which order.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cache::{at, create_folder};
use crate::process;

/// Without these a guest cannot do its work, so a kernel that lacks one is refused. Compiled in counts as present.
pub const NEEDED: &[&str] =
    &["virtio_pci", "virtio_blk", "ext4", "overlay", "tls", "aesni-intel", "gcm", "ctr"];

/// Kernels name and split these differently. A missing cipher module makes the kernel refuse the cipher without a word, which is why
/// the guests' tests require kernel TLS instead of accepting user space.
pub const USED_IF_PRESENT: &[&str] = &[
    "ghash-generic",
    "ghash-clmulni-intel",
    "chacha20poly1305",
    "chacha-x86_64",
    "poly1305-x86_64",
    "libchacha20poly1305",
];

/// The files to load, in order, each once, for the kernel `release` below `tree`.
pub fn boot_order(
    tree: &Path,
    release: &str,
    needed: &[&str],
    used_if_present: &[&str],
) -> Result<Vec<PathBuf>, String> {
    let mut answers = Vec::new();
    for name in needed {
        answers.push(show_depends(tree, release, name)?);
    }
    for name in used_if_present {
        answers.extend(show_depends(tree, release, name));
    }
    Ok(merge(&answers))
}

/// The one kernel release that has modules below `tree`.
pub fn only_release(tree: &Path) -> Result<String, String> {
    let folder = tree.join("lib/modules");
    let mut entries = fs::read_dir(&folder).map_err(|error| at(&folder, &error))?.flatten();
    match (entries.next(), entries.next()) {
        (Some(entry), None) => Ok(entry.file_name().to_string_lossy().into_owned()),
        _ => Err(format!("{} should hold exactly one kernel release", folder.display())),
    }
}

/// Copies one module to `NN-name.ko` in `folder`, uncompressed: the loader of the initramfs reads nothing else.
pub fn extract(module: &Path, folder: &Path, position: usize) -> Result<(), String> {
    let name = module.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let plain_name = name.split(".ko").next().unwrap_or_default();
    let target = folder.join(format!("{position:02}-{plain_name}.ko"));
    if name.ends_with(".xz") {
        process::run_into(
            Command::new("xz").args(["--decompress", "--stdout"]).arg(module),
            &target,
        )
    } else {
        fs::copy(module, &target).map(drop).map_err(|error| at(module, &error))
    }
}

/// The modules for a guest whose disks are files in its memory: those for a drive replaced by the loop device, which is taken from
/// the modules of the kernel `release` on `disk` and unpacked into `folder`.
pub fn for_disks_in_memory(
    boot_modules: &[PathBuf],
    disk: &Path,
    release: &str,
    folder: &Path,
) -> Result<Vec<PathBuf>, String> {
    create_folder(folder)?;
    let is_for_drives = |path: &&PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().contains("-virtio"))
    };
    let mut kept: Vec<PathBuf> =
        boot_modules.iter().filter(|path| !is_for_drives(path)).cloned().collect();
    for ending in ["ko.xz", "ko"] {
        let packed = folder.join(format!("loop.{ending}"));
        let request =
            format!("dump /{release}/kernel/drivers/block/loop.{ending} {}", packed.display());
        process::run_quietly(Command::new("debugfs").arg("-R").arg(request).arg(disk))?;
        if packed.is_file() {
            let position = kept.len();
            extract(&packed, folder, position)?;
            kept.push(folder.join(format!("{position:02}-loop.ko")));
            return Ok(kept);
        }
    }
    Err(format!("kernel {release} has no loop device"))
}

fn show_depends(tree: &Path, release: &str, name: &str) -> Result<String, String> {
    process::read(
        Command::new("modprobe")
            .args(["--show-depends", "--set-version", release, "--dirname"])
            .arg(tree)
            .arg(name)
            // The machine's own modprobe.d may blacklist or rename modules of ours.
            .args(["--config", "/dev/null"]),
    )
}

/// Joins the answers of `modprobe --show-depends`: every file once, at its first place, so that what a module needs stays before it.
fn merge(answers: &[String]) -> Vec<PathBuf> {
    let mut seen = HashSet::new();
    answers
        .iter()
        .flat_map(|answer| answer.lines())
        .filter_map(|line| line.trim().strip_prefix("insmod "))
        .filter_map(|rest| rest.split_whitespace().next())
        .map(PathBuf::from)
        .filter(|path| seen.insert(path.clone()))
        .collect()
}

#[cfg(test)]
mod tests;
