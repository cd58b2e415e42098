//! Tells whether anybody but root decides what a path leads to.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// True if each step on the way to a file, through all symbolic links, is in a folder that only root may change. Access
/// lists that give somebody more are not seen.
#[must_use]
pub fn is_chosen_by_root(path: &Path) -> bool {
    let Ok(path) = std::path::absolute(path) else { return false };
    let mut at = PathBuf::from("/");
    let mut steps = steps(&path);
    let mut links = 0;
    while let Some(step) = steps.pop() {
        if step == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&step);
        let (Ok(folder), Ok(entry)) = (at.symlink_metadata(), next.symlink_metadata()) else {
            return false;
        };
        if !may_only_root_change(&folder, &entry) {
            return false;
        }
        if !entry.is_symlink() {
            at = next;
            continue;
        }
        links += 1;
        let Ok(target) = next.read_link() else { return false };
        if links > LINKS_MAX {
            return false;
        }
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        steps.extend(self::steps(&target));
    }
    true
}

/// True if only root decides what is in a file, if there is one.
#[must_use]
pub fn is_written_by_root(path: &Path) -> bool {
    match path.metadata() {
        Ok(file) => file.uid() == ROOT && !is_open_to_others(&file) && is_chosen_by_root(path),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// The steps of a path, the first one last.
fn steps(path: &Path) -> Vec<OsString> {
    let mut steps: Vec<OsString> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
        })
        .collect();
    steps.reverse();
    steps
}

fn may_only_root_change(folder: &Metadata, entry: &Metadata) -> bool {
    // In a sticky folder everybody may add names, and change only their own. Unless `fs.protected_hardlinks` is on, as it is by
    // default, a name that somebody adds may be one more of a file of root's.
    let has_one_name = entry.is_dir() || entry.nlink() == 1;
    let is_kept = folder.mode() & 0o1000 != 0 && entry.uid() == ROOT && has_one_name;
    folder.uid() == ROOT && (!is_open_to_others(folder) || is_kept)
}

/// True if others than its owner, and root's group, may write.
fn is_open_to_others(entry: &Metadata) -> bool {
    entry.mode() & 0o002 != 0 || (entry.mode() & 0o020 != 0 && entry.gid() != ROOT)
}

const ROOT: u32 = 0;

/// As many as the kernel follows (path_resolution(7)).
const LINKS_MAX: u32 = 40;
