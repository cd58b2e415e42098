//! Debian packages for the guests, by an apt of their own: private sources, lists, status and cache, signatures checked against
//! the archive's keyring. The machine's apt configuration is only read, to learn which mirror it uses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::files::{self, Temporary, create_folder};
use crate::process;

/// One apt with its own state in one folder, for one set of suites.
pub struct Apt {
    folder: PathBuf,
}

impl Apt {
    /// Sets up the folder for `suites` and downloads their package lists.
    pub fn new(folder: &Path, suites: &[&str]) -> Result<Self, String> {
        Self::of_kinds(folder, suites, &["deb"])
    }

    /// The same for packages and their sources.
    pub fn with_sources(folder: &Path, suites: &[&str]) -> Result<Self, String> {
        Self::of_kinds(folder, suites, &["deb", "deb-src"])
    }

    fn of_kinds(folder: &Path, suites: &[&str], kinds: &[&str]) -> Result<Self, String> {
        for part in ["parts", "state/lists/partial", "cache/archives/partial", "debs"] {
            create_folder(&folder.join(part))?;
        }
        let sources = sources_list(suites, kinds, &Mirror::of_this_machine()?);
        for (name, content) in [("sources.list", sources.as_str()), ("state/status", "")] {
            files::write(folder.join(name), content)?;
        }
        let apt = Self { folder: folder.to_owned() };
        process::run_quietly(apt.command("apt-get").args(["update"]))?;
        Ok(apt)
    }

    /// Every package `package` depends on, directly or not.
    pub fn dependencies(&self, package: &str) -> Result<Vec<String>, String> {
        let text = process::read(self.command("apt-cache").args([
            "depends",
            "--recurse",
            "--no-recommends",
            "--no-suggests",
            "--no-conflicts",
            "--no-breaks",
            "--no-replaces",
            "--no-enhances",
            package,
        ]))?;
        Ok(package_names(&text))
    }

    pub fn download(&self, packages: &[String]) -> Result<Vec<PathBuf>, String> {
        let debs = self.folder.join("debs");
        process::run_quietly(
            self.command("apt-get").arg("download").args(packages).current_dir(&debs),
        )?;
        packages_in(&debs)
    }

    /// Downloads these packages and all they need on an empty system.
    pub fn download_with_dependencies(&self, packages: &[&str]) -> Result<Vec<PathBuf>, String> {
        process::run_quietly(
            self.command("apt-get")
                .args(["install", "--download-only", "--no-install-recommends", "--yes"])
                .args(packages),
        )?;
        packages_in(&self.folder.join("cache/archives"))
    }

    /// Downloads the source of a package, as those who wrote it released it.
    pub fn download_source(&self, package: &str) -> Result<PathBuf, String> {
        let folder = self.folder.join("debs");
        process::run_quietly(
            self.command("apt-get")
                .args(["source", "--download-only", package])
                .current_dir(&folder),
        )?;
        let is_source = |path: &PathBuf| path.to_string_lossy().contains(".orig.tar.");
        let source = files::entries(&folder)?.into_iter().find(is_source);
        source.ok_or_else(|| format!("{package} has no source of its own"))
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
        let folder = self.folder.display();
        for setting in [
            format!("Dir::Etc::sourcelist={folder}/sources.list"),
            format!("Dir::Etc::sourceparts={folder}/parts"),
            format!("Dir::Etc::preferences={folder}/preferences"),
            format!("Dir::Etc::preferencesparts={folder}/parts"),
            format!("Dir::State={folder}/state"),
            format!("Dir::State::status={folder}/state/status"),
            format!("Dir::Cache={folder}/cache"),
            // The download user has no access to a private folder, and as an ordinary user there is nobody to change to.
            "APT::Sandbox::User=root".into(),
            "APT::Architecture=amd64".into(),
            "APT::Architectures=amd64".into(),
            "Acquire::Languages=none".into(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".into(),
            format!("Acquire::Retries={DOWNLOAD_RETRIES}"),
            // The system's dpkg lock belongs to root and protects nothing here.
            "Debug::NoLocking=true".into(),
        ] {
            command.arg("-o").arg(setting);
        }
        command
    }
}

/// Downloads one package of these suites and unpacks it into `tree`.
pub fn fetch(package: &str, suites: &[&str], tree: &Path) -> Result<(), String> {
    let state = Temporary::of_run()?;
    let apt = Apt::new(&state.path("apt"), suites)?;
    create_folder(tree)?;
    unpack(&apt.download(&[package.to_owned()])?, tree)
}

/// Unpacks packages into `tree`, without running any of their scripts.
pub fn unpack(packages: &[PathBuf], tree: &Path) -> Result<(), String> {
    for package in packages {
        process::run_quietly(Command::new("dpkg-deb").arg("--extract").arg(package).arg(tree))?;
    }
    Ok(())
}

/// The source of the archive and of its security updates.
#[derive(Debug, PartialEq, Eq)]
pub struct Mirror {
    archive: String,
    security: Option<String>,
}

impl Mirror {
    /// The mirror this machine's own apt uses; `KETTLE_DEBIAN_MIRROR` overrides it and serves machines that are not Debian.
    pub fn of_this_machine() -> Result<Self, String> {
        if let Ok(archive) = std::env::var("KETTLE_DEBIAN_MIRROR") {
            return Ok(Self { archive, security: None });
        }
        let mut texts = vec![fs::read_to_string("/etc/apt/sources.list").unwrap_or_default()];
        let parts = Path::new("/etc/apt/sources.list.d");
        for entry in fs::read_dir(parts).into_iter().flatten().flatten() {
            texts.push(fs::read_to_string(entry.path()).unwrap_or_default());
        }
        Self::find(&texts.join("\n")).ok_or_else(|| {
            "this machine's apt names no Debian mirror; set KETTLE_DEBIAN_MIRROR to the address of one (it ends in /debian)"
                .into()
        })
    }

    pub fn archive(&self) -> &str {
        &self.archive
    }

    /// Finds the first mirror in the text of apt's source files, one-line or deb822.
    fn find(sources: &str) -> Option<Self> {
        let addresses: Vec<&str> = sources
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'))
            .flat_map(str::split_whitespace)
            .filter(|word| word.starts_with("http://") || word.starts_with("https://"))
            .map(|word| word.trim_end_matches('/'))
            .collect();
        let ending = |end: &str| addresses.iter().find(|address| address.ends_with(end));
        Some(Self {
            archive: (*ending("/debian")?).to_owned(),
            security: ending("/debian-security").map(|&address| address.to_owned()),
        })
    }
}

fn sources_list(suites: &[&str], kinds: &[&str], mirror: &Mirror) -> String {
    let mut list = String::new();
    for suite in suites {
        let address = if suite.ends_with("-security") {
            let Some(address) = &mirror.security else { continue };
            address
        } else {
            &mirror.archive
        };
        for kind in kinds {
            list.push_str(&format!("{kind} [signed-by={KEYRING}] {address} {suite} main\n"));
        }
    }
    list
}

/// The real packages named in the output of `apt-cache depends --recurse`; `<virtual>` ones are left out.
fn package_names(text: &str) -> Vec<String> {
    let names = text.lines().filter(|line| !line.starts_with([' ', '<', '|']));
    names.map(|line| line.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

fn packages_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut packages = files::entries(folder)?;
    packages.retain(|path| path.extension().is_some_and(|extension| extension == "deb"));
    Ok(packages)
}

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
const DOWNLOAD_RETRIES: u32 = 3;

#[cfg(test)]
mod tests;
