//! Everything the checks may know about a machine. Files are read beneath a root, so that a test can lay out a machine in
//! a folder; what is no file is a field.

#[cfg(test)]
pub(crate) mod fixture;

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use kettle_kernel::netlink::{self, NetworkCard};
use kettle_kernel::probe::Capabilities;
use kettle_kernel::process::{self, Limit};
use kettle_kernel::sandbox::{landlock_version, seccomp_here};

use crate::kernel_config::KernelConfig;
use crate::kernel_version::KernelVersion;

/// A machine to examine.
pub struct Machine {
    pub(crate) root: PathBuf,
    pub(crate) capabilities: Capabilities,
    pub(crate) network_cards: Result<Vec<NetworkCard>, String>,
    pub(crate) open_files: Limit,
    pub(crate) locked_memory: Limit,
    /// The version of Landlock, or why there is none.
    pub(crate) landlock: Result<u32, String>,
    /// The answer to whether system calls can be refused.
    pub(crate) seccomp: Result<(), String>,
    /// The number of processors this process may use.
    pub(crate) processors: usize,
    pub(crate) is_root: bool,
    /// Folders that are served, or may be.
    pub(crate) folders: Vec<PathBuf>,
}

impl Machine {
    /// The machine this runs on. Probes its kernel.
    #[must_use]
    pub fn this() -> Self {
        Self::probed(Capabilities::run())
    }

    /// The machine this runs on, for a program that has probed its kernel already.
    #[must_use]
    pub fn probed(capabilities: Capabilities) -> Self {
        Self {
            root: PathBuf::from("/"),
            capabilities,
            network_cards: netlink::network_cards().map_err(|error| error.to_string()),
            open_files: process::open_files_limit(),
            locked_memory: process::locked_memory_limit(),
            landlock: landlock_version().map_err(|error| error.to_string()),
            seccomp: seccomp_here().map_err(|error| error.to_string()),
            processors: process::cpus_allowed().len(),
            is_root: process::is_root(),
            folders: Vec::new(),
        }
    }

    /// The release of its kernel, as `uname -r` prints it.
    pub(crate) fn kernel_release(&self) -> &str {
        &self.capabilities.kernel_release
    }

    /// The version of its kernel, as far as it can be known.
    pub(crate) fn kernel_version(&self) -> Option<KernelVersion> {
        let build = self.text("proc/version").unwrap_or_default();
        let signature = self.text("proc/version_signature").unwrap_or_default();
        KernelVersion::parse(self.kernel_release(), &build, &signature)
    }

    /// The configuration its kernel was built with, if it can be read.
    pub(crate) fn kernel_config(&self) -> Option<KernelConfig> {
        KernelConfig::find(self.kernel_release(), |path| self.bytes(path))
    }

    /// True if its kernel has encrypted anything in the probe.
    pub(crate) fn carries_tx(&self) -> bool {
        self.capabilities.tx_reason().is_none()
    }

    /// True if the module of this name is loaded.
    pub(crate) fn has_loaded(&self, module: &str) -> bool {
        let modules = self.text("proc/modules").unwrap_or_default();
        modules.lines().any(|line| line.split(' ').next() == Some(module))
    }

    /// A file's text, bounded and with odd bytes replaced.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        Some(String::from_utf8_lossy(&self.bytes(path)?).into_owned())
    }

    /// A file's bytes up to a bound.
    pub(crate) fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        let file = File::open(self.root.join(path)).ok()?;
        file.take(FILE_BYTES_MAX).read_to_end(&mut content).ok()?;
        Some(content)
    }

    /// True if there is such a file or folder.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// The files of a folder with one ending, in the order of their names.
    pub(crate) fn files_in(&self, folder: &str, ending: &str) -> Vec<String> {
        let names = self.names_in(folder).into_iter().filter(|name| name.ends_with(ending));
        names.map(|name| format!("{folder}/{name}")).collect()
    }

    /// Returns the names in a folder, in their order.
    pub(crate) fn names_in(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = self.root.join(folder).read_dir() else { return Vec::new() };
        let mut names: Vec<_> = entries
            .take(FOLDER_ENTRIES_MAX)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// A command that needs root, as this user would type it.
    pub(crate) fn as_root(&self, command: &str) -> String {
        if self.is_root { command.to_owned() } else { format!("sudo {command}") }
    }

    /// A command that writes one line to a file only root may write.
    pub(crate) fn write_as_root(&self, line: &str, path: &str) -> String {
        if self.is_root {
            format!("echo {line} > {path}")
        } else {
            format!("echo {line} | sudo tee {path}")
        }
    }

    /// The command that brings the distribution's newest kernel, where it is known.
    pub(crate) fn update_kernel(&self) -> String {
        let release = self.text("etc/os-release").unwrap_or_default();
        let words = release
            .lines()
            .filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")))
            .flat_map(|value| value.trim_matches('"').split(' '));
        let command = words.filter_map(|name| match name {
            "debian" | "ubuntu" => Some("apt update && apt full-upgrade"),
            "fedora" | "rhel" | "centos" | "amzn" => Some("dnf upgrade kernel"),
            "suse" | "opensuse" => Some("zypper update kernel-default"),
            "alpine" => Some("apk upgrade"),
            "arch" => Some("pacman -Syu"),
            _ => None,
        });
        match command.into_iter().next() {
            Some(command) if self.is_root => format!("{command}   # then reboot"),
            Some(command) => {
                let command = command.replace("&& ", "&& sudo ");
                format!("sudo {command}   # then reboot")
            }
            None => "update the kernel package of this distribution, then reboot".to_owned(),
        }
    }
}

/// The largest file of interest is `modules.dep`, about 1 MiB.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
const FOLDER_ENTRIES_MAX: usize = 4096;
