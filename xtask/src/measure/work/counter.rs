//! The emulator's plugin that counts (`counter.c`) the guest's program that says when (`window.c`) and the server behind
//! tunnels (`backend.c`): built here, since Debian's QEMU
//! comes without plugins and without their header.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::window::{self, Window};
use crate::files::{self, create_folder, remove_folder};
use crate::process;

/// The programs, in a folder with the file the plugin writes.
pub struct Counter {
    folder: PathBuf,
}

impl Counter {
    pub fn build(folder: PathBuf) -> Result<Self, String> {
        remove_folder(&folder)?;
        create_folder(&folder)?;
        for (name, text) in [
            ("counter.c", COUNTER),
            ("marks.h", MARKS),
            ("window.c", WINDOW),
            ("backend.c", BACKEND),
        ] {
            files::write(folder.join(name), text)?;
        }
        let build = |words: &[&str]| {
            process::run_quietly(
                Command::new("gcc").args(["-O2", "-Wall"]).args(words).current_dir(&folder),
            )
        };
        build(&["-fPIC", "-shared", "-fvisibility=hidden", "-o", "counter.so", "counter.c"])?;
        build(&["-static", "-o", "window", "window.c"])?;
        build(&["-static", "-D_GNU_SOURCE", "-o", "backend", "backend.c"])?;
        Ok(Self { folder })
    }

    /// Returns the text for QEMU's `-plugin`.
    pub fn plugin(&self) -> Result<String, String> {
        let folder = self.folder.display().to_string();
        if folder.contains(',') {
            return Err(format!("QEMU takes no plugin from a folder with a comma: {folder}"));
        }
        Ok(format!("{folder}/counter.so,out={folder}/windows"))
    }

    /// The guest's programs: what opens windows, and what is behind tunnels.
    pub fn programs(&self) -> [PathBuf; 2] {
        ["window", "backend"].map(|name| self.folder.join(name))
    }

    /// The windows of the guest that has just ended.
    pub fn windows(&self) -> Result<Vec<Window>, String> {
        let path: &Path = &self.folder.join("windows");
        window::read(&files::read(path)?)
    }
}

/// QEMU's version, if it is one the plugin can be loaded by.
pub fn qemu_version() -> Result<String, String> {
    let text = process::read(Command::new("qemu-system-x86_64").arg("--version"))?;
    let version = version_in(&text).ok_or_else(|| format!("no version in `{}`", text.trim()))?;
    if is_supported(&version) {
        Ok(version)
    } else {
        Err(format!(
            "QEMU {version} has another plugin interface than 7.2 to 8.1, for which counter.c is written"
        ))
    }
}

fn version_in(text: &str) -> Option<String> {
    text.split_whitespace().skip_while(|word| *word != "version").nth(1).map(str::to_owned)
}

fn is_supported(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    ((7, 2)..=(8, 1)).contains(&version)
}

const COUNTER: &str = include_str!("counter.c");
const MARKS: &str = include_str!("marks.h");
const WINDOW: &str = include_str!("window.c");
const BACKEND: &str = include_str!("backend.c");

#[cfg(test)]
mod tests;
