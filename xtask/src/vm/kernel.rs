//! The kernels of the test matrix: Debian's stock cloud kernels, with the modules a guest loads at boot in loading order and all
//! the others on a disk of their own.

use std::path::{Path, PathBuf};

use super::apt::{self, Apt};
use super::cache::Cache;
use super::{disk, modules};
use crate::files::{self, create_folder, remove_folder};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Debian 12's kernel: no rekey, one record per 64 KiB pipe batch.
    Linux6_1,
    /// Debian 13's kernel: `MSG_SPLICE_PAGES`, no rekey.
    Linux6_12,
    /// The newest packaged kernel: rekey and a settable record size.
    Linux7,
}

pub struct BootFiles {
    /// The kernel's release, as `uname -r` says it.
    pub release: String,
    pub image: PathBuf,
    /// The modules to load at boot, uncompressed, in loading order.
    pub boot_modules: Vec<PathBuf>,
    /// An ext4 image of `/lib/modules`.
    pub modules_disk: PathBuf,
}

impl Kernel {
    pub const ALL: [Self; 3] = [Self::Linux6_1, Self::Linux6_12, Self::Linux7];

    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linux6_1 => "6.1",
            Self::Linux6_12 => "6.12",
            Self::Linux7 => "7",
        }
    }

    pub fn parse(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kernel| kernel.name() == name);
        found.ok_or_else(|| format!("unknown kernel `{name}`; there are 6.1, 6.12 and 7"))
    }

    /// Its boot files, downloaded on first use.
    pub fn obtain(self, cache: &Cache) -> Result<BootFiles, String> {
        let recipe = format!(
            "{:?} {META_PACKAGE}\nneeded {:?}\nused {:?}\n",
            self.suites(),
            modules::NEEDED,
            modules::USED_IF_PRESENT
        );
        let folder = cache.obtain(&self.artefact(), &recipe, |folder| self.build(folder))?;
        let release = files::read(folder.join(RELEASE))?.trim().to_owned();
        let modules_folder = folder.join(BOOT_MODULES);
        let boot_modules = files::entries(&modules_folder)?;
        Ok(BootFiles {
            release,
            image: folder.join(IMAGE),
            boot_modules,
            modules_disk: folder.join(MODULES_DISK),
        })
    }

    /// Forgets the cached files, so that the newest packages are downloaded next time.
    pub fn forget(self, cache: &Cache) -> Result<(), String> {
        cache.forget(&self.artefact())
    }

    fn artefact(self) -> String {
        format!("kernel-{}", self.name())
    }

    fn suites(self) -> &'static [&'static str] {
        match self {
            Self::Linux6_1 => &["bookworm", "bookworm-security"],
            Self::Linux6_12 => &["trixie", "trixie-security"],
            Self::Linux7 => &["trixie-backports"],
        }
    }

    fn build(self, folder: &Path) -> Result<(), String> {
        eprintln!("vm: downloading kernel {} ({})", self.name(), self.suites().join(", "));
        let work = folder.join("work");
        let tree = work.join("tree");
        create_folder(&tree)?;
        let apt = Apt::new(&work.join("apt"), self.suites())?;
        let packages = kernel_packages(&apt.dependencies(META_PACKAGE)?);
        if packages.is_empty() {
            return Err(format!("{META_PACKAGE} leads to no kernel package"));
        }
        apt::unpack(&apt.download(&packages)?, &tree)?;
        settle_modules(&tree)?;
        let release = modules::index(&tree)?;
        let candidates = [
            tree.join(format!("boot/vmlinuz-{release}")),
            tree.join(format!("lib/modules/{release}/vmlinuz")),
        ];
        let Some(image) = candidates.iter().find(|path| path.is_file()) else {
            return Err(format!("the packages of kernel {release} hold no vmlinuz"));
        };
        files::rename(image, folder.join(IMAGE))?;
        let order =
            modules::boot_order(&tree, &release, modules::NEEDED, modules::USED_IF_PRESENT)?;
        modules::extract(&order, &folder.join(BOOT_MODULES))?;
        disk::build(&tree.join("lib/modules"), &folder.join(MODULES_DISK))?;
        files::write(folder.join(RELEASE), &release)?;
        remove_folder(&work)
    }
}

/// The packages that hold the kernel image and its modules; from Linux 7 on they are split, with `modules.builtin` in linux-base.
fn kernel_packages(dependencies: &[String]) -> Vec<String> {
    let is_versioned = |name: &str, prefix: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let mut packages: Vec<String> = dependencies
        .iter()
        .filter(|name| {
            ["linux-base-", "linux-binary-", "linux-image-", "linux-modules-"]
                .iter()
                .any(|prefix| is_versioned(name, prefix))
        })
        .cloned()
        .collect();
    packages.sort();
    packages.dedup();
    packages
}

/// Newer packages have their modules below `usr/lib`; the module tools look below `lib` only.
fn settle_modules(tree: &Path) -> Result<(), String> {
    let below_usr = tree.join("usr/lib/modules");
    if below_usr.is_dir() {
        create_folder(&tree.join("lib"))?;
        files::rename(&below_usr, tree.join("lib/modules"))?;
    }
    Ok(())
}

const META_PACKAGE: &str = "linux-image-cloud-amd64";
const IMAGE: &str = "vmlinuz";
const RELEASE: &str = "release";
const BOOT_MODULES: &str = "boot-modules";
const MODULES_DISK: &str = "modules.ext4";

#[cfg(test)]
mod tests;
