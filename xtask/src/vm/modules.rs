//! Which kernel modules a guest loads before its root file system is there, and in which order.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::files::{self, create_folder};
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

/// Indexes the modules below `tree`, and names the one kernel release that has some there.
pub fn index(tree: &Path) -> Result<String, String> {
    let folder = tree.join("lib/modules");
    let [modules] = files::entries(&folder)?
        .try_into()
        .map_err(|_| format!("{} should hold exactly one kernel release", folder.display()))?;
    let release = files::name(&modules);
    process::run_quietly(Command::new("depmod").arg("-b").arg(tree).arg(&release))?;
    Ok(release)
}

/// Copies modules to `NN-name.ko` in `folder` in this order, uncompressed: the loader of the initramfs reads nothing else.
pub fn extract(modules: &[PathBuf], folder: &Path) -> Result<(), String> {
    create_folder(folder)?;
    modules.iter().enumerate().try_for_each(|(position, it)| extract_one(it, folder, position))
}

fn extract_one(module: &Path, folder: &Path, position: usize) -> Result<(), String> {
    let name = files::name(module);
    let plain_name = name.split(".ko").next().unwrap_or_default();
    let target = folder.join(format!("{position:02}-{plain_name}.ko"));
    if name.ends_with(".xz") {
        let mut xz = Command::new("xz");
        process::run_into(xz.args(["--decompress", "--stdout"]).arg(module), &target)
    } else {
        files::copy(module, &target)
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
            extract_one(&packed, folder, position)?;
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
