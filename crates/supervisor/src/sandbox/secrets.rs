//! The files that the server never opens, whatever its configuration names: the keys of accounts, and of orders that are under
//! way. Landlock knows no exceptions, so that a folder around them is allowed by what else is in it.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use kettle_config::Config;

/// The folders that are the issuer's alone, without symbolic links, as far as they are there.
#[derive(Debug, Default)]
pub(super) struct Secrets(pub(super) Vec<PathBuf>);

impl Secrets {
    pub(super) fn of(config: &Config) -> Self {
        let all = kettle_acme::state::secret_folders(&config.server.state_directory);
        Self(all.iter().filter_map(|folder| folder.canonicalize().ok()).collect())
    }

    /// True if one of them lies in this folder, or is it.
    pub(super) fn are_below(&self, folder: &Path) -> bool {
        self.0.iter().any(|secret| secret.starts_with(folder))
    }

    /// These paths, without the secrets: what lies around one is given by what else is in it, as far as that is there now.
    pub(super) fn left_out_of(&self, paths: Vec<PathBuf>) -> Vec<PathBuf> {
        let mut left = Vec::with_capacity(paths.len());
        let mut to_look_at = paths;
        while let Some(path) = to_look_at.pop() {
            if self.0.iter().any(|secret| path.starts_with(secret)) {
                continue;
            }
            if !self.are_below(&path) {
                left.push(path);
                continue;
            }
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            let entries = entries.filter(|entry| {
                // The target of a link is allowed where it is.
                entry.file_type().is_ok_and(|kind| !kind.is_symlink())
            });
            to_look_at.extend(entries.take(ENTRIES_MAX).map(|entry| entry.path()));
        }
        left
    }

    /// True if a folder around a secret is allowed by what is in it.
    pub(super) fn is_parted(&self, folder: &Path, allowed: &HashSet<&Path>) -> bool {
        self.are_below(folder) && allowed.iter().any(|path| path.starts_with(folder))
    }
}

/// Entries of a folder around a secret that are allowed: each is a rule of its own.
const ENTRIES_MAX: usize = 4_096;
