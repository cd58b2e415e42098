//! Paths without symbolic links, and what lies around them, for the files of ten thousand sites: each folder on the way is
//! resolved once.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::is_own;

/// The knowledge of folders. For one look only: what changes later does not show.
#[derive(Default)]
pub(super) struct RealPaths {
    folders: HashMap<PathBuf, Option<PathBuf>>,
    /// Paths whose symbolic links, on the whole way to them, have been followed by [`around`](Self::around).
    followed: HashSet<PathBuf>,
    /// The number of times the kernel was asked.
    pub(super) asked: usize,
}

impl RealPaths {
    /// The path without symbolic links; nothing where nothing is there.
    pub(super) fn real(&mut self, path: &Path) -> Option<PathBuf> {
        // `file_name` is nothing for `/` and for what ends with `..`.
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return self.resolve(path);
        };
        self.asked += 1;
        match path.symlink_metadata().ok()?.is_symlink() {
            true => self.resolve(path),
            false => Some(self.folder(folder)?.join(name)),
        }
    }

    fn folder(&mut self, folder: &Path) -> Option<PathBuf> {
        if let Some(known) = self.folders.get(folder) {
            return known.clone();
        }
        let is_here = folder.as_os_str().is_empty();
        let real = self.resolve(if is_here { Path::new(".") } else { folder });
        self.folders.insert(folder.to_owned(), real.clone());
        real
    }

    fn resolve(&mut self, path: &Path) -> Option<PathBuf> {
        self.asked += 1;
        path.canonicalize().ok()
    }

    /// The path, and the folders in which a renewed file, or a folder that takes another's place, will be: beside the one that is
    /// there now, and beside what each symbolic link on the way leads to. A file is left out where its folder is there: every
    /// rule of Landlock costs memory and time.
    pub(super) fn around(&mut self, path: &Path, is_file: bool) -> Vec<PathBuf> {
        let Ok(absolute) = std::path::absolute(path) else { return vec![path.to_owned()] };
        // An editor may put another file in its place.
        let is_allowed = |folder: &&Path| if is_file { has_parent(folder) } else { is_own(folder) };
        let beside = absolute.parent().filter(is_allowed).map(Path::to_owned);
        let mut around =
            absolute.parent().map_or_else(Vec::new, |parent| self.beside_links(parent));
        let is_link = self.is_link(&absolute);
        if is_link {
            around.extend(self.beside_target(&absolute));
        }
        if is_link || !is_file || beside.is_none() {
            around.push(path.to_owned());
        }
        around.extend(beside);
        around
    }

    /// The folders beside what the symbolic links on the way lead to, where no path before had the same link on its way.
    fn beside_links(&mut self, path: &Path) -> Vec<PathBuf> {
        let mut around = Vec::new();
        for step in path.ancestors() {
            if !self.followed.insert(step.to_owned()) {
                break;
            }
            if self.is_link(step) {
                around.extend(self.beside_target(step));
            }
        }
        around
    }

    fn beside_target(&mut self, link: &Path) -> Option<PathBuf> {
        let real = self.resolve(link)?;
        real.parent().filter(|parent| is_own(parent)).map(Path::to_owned)
    }

    fn is_link(&mut self, path: &Path) -> bool {
        self.asked += 1;
        path.is_symlink()
    }
}

/// True if a file's folder may be allowed with the file: `/` and `/dev` may not.
fn has_parent(folder: &Path) -> bool {
    folder != Path::new("/") && folder != Path::new("/dev")
}
