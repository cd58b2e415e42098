//! The cache of downloaded and built artefacts, outside the checkout. Each artefact is a folder that appears whole or not at
//! all, with the recipe it was made by and the hashes of its files; a changed recipe or a wrong hash makes it anew.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::files::{self, at, create_folder, remove_folder};
use crate::{packages, process};

/// The cache folder, `$XDG_CACHE_HOME/kettle` or `~/.cache/kettle`.
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Opens the cache, creating it if it is missing. The caller is about to want something from it, and the programs that make
    /// it.
    pub fn open() -> Result<Self, String> {
        packages::ensure_for_artefacts()?;
        Self::without_programs()
    }

    /// The same, for what cargo makes.
    pub fn without_programs() -> Result<Self, String> {
        let base = match (non_empty("XDG_CACHE_HOME"), non_empty("HOME")) {
            (Some(cache), _) => cache,
            (None, Some(home)) => home.join(".cache"),
            (None, None) => return Err("neither XDG_CACHE_HOME nor HOME is set".into()),
        };
        Self::at(base.join("kettle"))
    }

    /// Opens a cache in a folder of the caller's choice.
    pub fn at(root: PathBuf) -> Result<Self, String> {
        create_folder(&root)?;
        Ok(Self { root })
    }

    /// The folder of the artefact `name`, built by `build` (into the empty folder it is given) unless an intact one made by the
    /// same `recipe` is there already.
    pub fn obtain(
        &self,
        name: &str,
        recipe: &str,
        build: impl FnOnce(&Path) -> Result<(), String>,
    ) -> Result<PathBuf, String> {
        let folder = self.root.join(name);
        // Two runs at once must not build into the same folder; the lock ends with the file handle.
        let lock_path = self.root.join(format!("{name}.lock"));
        let lock = File::create(&lock_path).map_err(|error| at(&lock_path, &error))?;
        lock.lock().map_err(|error| at(&lock_path, &error))?;
        if is_intact(&folder, recipe) {
            return Ok(folder);
        }
        let draft = self.root.join(format!("{name}.draft"));
        remove_folder(&draft)?;
        create_folder(&draft)?;
        build(&draft)?;
        seal(&draft, recipe)?;
        remove_folder(&folder)?;
        files::rename(&draft, &folder)?;
        Ok(folder)
    }

    /// Forgets the artefact `name`, so that the next `obtain` makes it anew.
    pub fn forget(&self, name: &str) -> Result<(), String> {
        remove_folder(&self.root.join(name))
    }
}

fn is_intact(folder: &Path, recipe: &str) -> bool {
    let same_recipe = fs::read_to_string(folder.join(RECIPE)).is_ok_and(|stored| stored == recipe);
    same_recipe
        && process::run_quietly(
            Command::new("sha256sum").args(["--check", "--status", HASHES]).current_dir(folder),
        )
        .is_ok()
}

fn seal(folder: &Path, recipe: &str) -> Result<(), String> {
    files::write(folder.join(RECIPE), recipe)?;
    let script = format!("find . -type f ! -name {HASHES} -print0 | sort -z | xargs -0 sha256sum");
    process::run_into(
        Command::new("sh").args(["-c", &script]).current_dir(folder),
        &folder.join(HASHES),
    )
}

fn non_empty(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

const RECIPE: &str = "recipe";
const HASHES: &str = "SHA256SUMS";

#[cfg(test)]
mod tests;
