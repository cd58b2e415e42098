//! The programs that emulate a guest's machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::apt::{self, Apt};
use super::cache::Cache;
use crate::files::{self, create_folder, remove_folder};

/// QEMU, of one of two releases.
pub enum Emulator {
    /// This machine's own. It counts instructions: the baseline of the work of a request holds its counts, and the plugin that
    /// takes them is built for it.
    OfThisMachine,
    /// Debian 13's, unpacked into this folder with all that it is linked with. The tests that ran in 68 s of processor time under
    /// Debian 12's QEMU 7.2 took 51 s under its 10.0.
    Unpacked(PathBuf),
}

impl Emulator {
    /// Debian 13's, downloaded on first use.
    pub fn obtain(cache: &Cache) -> Result<Self, String> {
        let recipe = format!("{SUITES:?} {PACKAGE}\n{PARTS:?}\n");
        cache.obtain("qemu", &recipe, build).map(Self::Unpacked)
    }

    pub fn command(&self) -> Command {
        match self {
            Self::OfThisMachine => Command::new(PROGRAM),
            // Its own dynamic linker lets it live on an older system.
            Self::Unpacked(folder) => {
                let libraries = folder.join("libraries");
                let mut command = Command::new(libraries.join("ld-linux-x86-64.so.2"));
                command.arg("--library-path").arg(libraries).arg(folder.join(PROGRAM));
                for firmware in ["firmware", "bios"] {
                    command.arg("-L").arg(folder.join(firmware));
                }
                command
            }
        }
    }
}

fn build(folder: &Path) -> Result<(), String> {
    eprintln!("vm: downloading the emulator ({})", SUITES.join(", "));
    let work = folder.join("work");
    create_folder(&work)?;
    let apt = Apt::new(&work.join("apt"), SUITES)?;
    let tree = work.join("tree");
    apt::unpack(&apt.download_with_dependencies(&[PACKAGE])?, &tree)?;
    for (source, name) in PARTS {
        files::rename(tree.join(source), folder.join(name))?;
    }
    remove_folder(&work)
}

const PROGRAM: &str = "qemu-system-x86_64";
const SUITES: &[&str] = &["trixie", "trixie-security"];
const PACKAGE: &str = "qemu-system-x86";

/// The parts of the packages that are kept, and their names.
const PARTS: &[(&str, &str)] = &[
    ("usr/bin/qemu-system-x86_64", PROGRAM),
    ("usr/lib/x86_64-linux-gnu", "libraries"),
    ("usr/share/qemu", "firmware"),
    ("usr/share/seabios", "bios"),
];
