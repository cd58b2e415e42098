//! The content of packages: two programs, a version, a date.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::architecture::Architecture;
use crate::files::{create_folder, remove_folder};
use crate::{checkout, process};

/// One release, or what is to become one.
pub struct Release {
    /// The machines the programs are for.
    pub architecture: Architecture,
    /// Holds `kettle` and `kettle-bench`.
    pub programs: PathBuf,
    pub output: PathBuf,
    /// As in Cargo.toml.
    pub version: String,
    /// Seconds since 1970: `SOURCE_DATE_EPOCH`, or the time of the commit.
    pub epoch: String,
    /// The day of that, such as 2026-11-22.
    pub day: String,
}

impl Release {
    /// Reads what the checkout says about itself, and sees that the programs are for these machines.
    pub fn new(
        architecture: Architecture,
        programs: PathBuf,
        output: PathBuf,
    ) -> Result<Self, String> {
        let programs =
            programs.canonicalize().map_err(|error| format!("{}: {error}", programs.display()))?;
        for name in ["kettle", "kettle-bench"] {
            architecture.check(&programs.join(name))?;
        }
        create_folder(&output)?;
        let output =
            output.canonicalize().map_err(|error| format!("{}: {error}", output.display()))?;
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(epoch) => epoch,
            Err(_) => git(&["log", "-1", "--format=%ct"])?,
        };
        let date = ["--utc", &format!("--date=@{epoch}"), "+%F"];
        let day = process::read(Command::new("date").args(date))?.trim().to_owned();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Self { architecture, programs, output, version, epoch, day })
    }

    /// An empty folder to work in, below the output's.
    pub fn work(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.output.join("work").join(name);
        remove_folder(&folder)?;
        create_folder(&folder)?;
        Ok(folder)
    }

    /// A program that is to put this date, and no other, into what it makes.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SOURCE_DATE_EPOCH", &self.epoch).env("LC_ALL", "C.UTF-8").env("TZ", "UTC");
        command
    }

    /// Packs a folder so that the same files give the same bytes.
    pub fn tar(&self, folder: &Path, owner: &str, archive: &Path) -> Result<(), String> {
        let words = [
            "--sort=name".to_owned(),
            format!("--mtime=@{}", self.epoch),
            format!("--owner={owner}"),
            format!("--group={owner}"),
            "--numeric-owner".to_owned(),
            "--format=gnu".to_owned(),
        ];
        let mut tar = self.command("tar");
        tar.args(words).arg("-C").arg(folder).arg("-cf").arg(archive).arg(".");
        process::run_quietly(&mut tar)
    }
}

/// Builds both programs and returns the folder they are in. Their place of building is not in them.
pub fn build(profile: &str) -> Result<PathBuf, String> {
    let target = checkout::target_folder().join("package");
    let commit = match std::env::var("KETTLE_COMMIT") {
        Ok(commit) => commit,
        Err(_) => git(&["rev-parse", "--short=12", "HEAD"])?,
    };
    build_in(&checkout::workspace(), &target, profile, &commit)
}

/// Builds the sources in `workspace`, which are those of `commit`, into `target`.
pub fn build_in(
    workspace: &Path,
    target: &Path,
    profile: &str,
    commit: &str,
) -> Result<PathBuf, String> {
    let mut flags = String::new();
    for (folder, name) in [(workspace, "kettle"), (&cargo_home(), "cargo")] {
        flags.push_str(&format!("--remap-path-prefix={}=/{name} ", folder.display()));
    }
    let mut cargo = checkout::cargo();
    cargo.current_dir(workspace);
    cargo.args(["build", "--locked", "--profile", profile, "-p", "kettle", "-p", "kettle-bench"]);
    cargo.env("RUSTFLAGS", flags.trim_end()).env("CARGO_TARGET_DIR", target);
    // The C library's sources and objects lie there; its assembler notes the folder it works in.
    cargo.env(
        "CFLAGS",
        format!(
            "-ffile-prefix-map={}=/target -ffile-prefix-map={}=/cargo -g0",
            target.display(),
            cargo_home().display()
        ),
    );
    cargo.env("KETTLE_COMMIT", commit);
    process::run(&mut cargo)?;
    Ok(target.join(if profile == "dev" { "debug" } else { profile }))
}

fn cargo_home() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

/// Returns the answer of git about the checkout.
pub fn git(words: &[&str]) -> Result<String, String> {
    let text = process::read(Command::new("git").args(words).current_dir(checkout::workspace()))?;
    Ok(text.trim().to_owned())
}
