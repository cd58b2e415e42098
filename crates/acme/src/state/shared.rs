//! Certificates that a group may read, such as that of a mail server with the same names.
//!
//! A file made in a folder with the set-group-ID bit has the folder's group (inode(7)): once all folders have it, new
//! certificates need no call of their own. The bit on the folder of all is set last, and says that it is so below it.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::Path;

use rustix::fs::Mode;
use rustix::process::umask;

use super::CERTIFICATES;

/// Has this group, or nobody, read the certificates below the root of the state; says if a group does.
pub(super) fn with(root: &Path, group: Option<u32>) -> io::Result<bool> {
    let all = root.join(CERTIFICATES);
    let found = fs::metadata(&all)?;
    let is_shared = found.mode() & SET_GROUP_ID != 0;
    let Some(group) = group else {
        if is_shared {
            fs::set_permissions(&all, Permissions::from_mode(0o700))?;
        }
        return Ok(false);
    };
    if !is_shared || found.gid() != group {
        for above in root.parent().into_iter().chain([root]) {
            let_through(above, group)?;
        }
        give(&all, group, 0)?;
    }
    // The files this process makes from now on have no fewer rights than it says.
    umask(Mode::from_raw_mode(0o027));
    Ok(true)
}

/// Lets the group pass a folder in which it sees nothing.
fn let_through(folder: &Path, group: u32) -> io::Result<()> {
    let found = fs::metadata(folder)?;
    let mode = found.mode() & 0o7777;
    let passes = |of: &Metadata| match of.gid() == group {
        true => mode & 0o010 != 0,
        false => mode & 0o001 != 0,
    };
    if passes(&found) {
        return Ok(());
    }
    if found.gid() != group && mode & 0o070 != 0 {
        let folder = folder.display();
        return Err(io::Error::other(format!(
            "{folder} is open to another group, and closed to it"
        )));
    }
    lchown(folder, None, Some(group))?;
    fs::set_permissions(folder, Permissions::from_mode(mode | 0o010))
}

/// Gives the group a folder and all that is in it: of certificates, of one site, of one certificate.
fn give(folder: &Path, group: u32, depth: usize) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < DEPTH_MAX {
            give(&entry.path(), group, depth + 1)?;
        } else if kind.is_file() {
            lchown(entry.path(), None, Some(group))?;
            fs::set_permissions(entry.path(), Permissions::from_mode(0o640))?;
        }
    }
    lchown(folder, None, Some(group))?;
    fs::set_permissions(folder, Permissions::from_mode(SET_GROUP_ID | 0o750))
}

const SET_GROUP_ID: u32 = 0o2000;

/// Certificates lie in a folder of their own, in that of their site.
const DEPTH_MAX: usize = 2;
