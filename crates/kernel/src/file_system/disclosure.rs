//! Facts known about reading files of a folder before one is read: whether their bytes are in memory, and who says so.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use super::FileSystem;
use crate::transfer::{Residency, residency};

/// The answer of a file system, before they are read, on the bytes of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disclosure {
    /// They are in memory and nowhere else.
    Memory,
    /// Which of them are in memory (`RWF_NOWAIT`).
    Said,
    /// Not which of them are in memory.
    NotSaid,
    /// Another program or machine has them, and may never answer.
    MayNeverAnswer,
    /// No file was found that could be asked about.
    NotFoundOut,
}

impl Disclosure {
    /// Returns what a file system of this kind says about a folder on it. Files of remote ones are
    /// not looked at, because that may wait for ever.
    #[must_use]
    pub fn of(folder: BorrowedFd<'_>, file_system: FileSystem) -> Self {
        if file_system.is_remote() {
            return Self::MayNeverAnswer;
        }
        if file_system.is_memory() {
            return Self::Memory;
        }
        match any_file(folder).map(|file| residency(file.as_fd(), 0, 1)) {
            Some(Residency::Resident | Residency::Cold | Residency::BeyondEnd) => Self::Said,
            Some(Residency::Unsupported) => Self::NotSaid,
            Some(Residency::Unknown) | None => Self::NotFoundOut,
        }
    }

    /// Says in words where a folder lies and what follows.
    #[must_use]
    pub fn sentence(self, folder: &Path, file_system: FileSystem) -> String {
        let what = match self {
            Self::Memory => "where all files are in memory",
            Self::Said => "which says what is in memory: only what is not takes a thread",
            Self::NotSaid => {
                "which does not say what is in memory (no RWF_NOWAIT): threads read it until it proves quick, then the workers do"
            }
            Self::MayNeverAnswer => {
                "which may never answer: threads read it, at most four at a time for each worker"
            }
            Self::NotFoundOut => {
                "and no file was found to ask whether it says what is in memory (RWF_NOWAIT)"
            }
        };
        let name = file_system.known().map_or("an unknown file system", |(_, name, _)| name);
        format!("{} lies on {name}, {what}", folder.display())
    }

    /// Returns the change that would make answers from there quicker, if anything is in their way.
    #[must_use]
    pub fn advice(self) -> Option<&'static str> {
        match self {
            Self::NotSaid => Some(
                "put large files on ext4, xfs or btrfs, which say it; for a container that is a volume or a bind mount, not its image",
            ),
            Self::MayNeverAnswer => Some(
                "keep a copy of the files on a local disk; `limits.disk_timeout` is how long one wait may take",
            ),
            Self::Memory | Self::Said | Self::NotFoundOut => None,
        }
    }
}

/// Some file of a folder or of one below it, on the same file system and without following links.
fn any_file(folder: BorrowedFd<'_>) -> Option<OwnedFd> {
    let mut folders = VecDeque::from([open(folder, c".", OFlags::DIRECTORY).ok()?]);
    for _ in 0..FOLDERS_MAX {
        let folder = folders.pop_front()?;
        let entries = Dir::read_from(&folder).ok()?;
        for entry in entries.take(ENTRIES_MAX).flatten() {
            let flags = match entry.file_type() {
                FileType::RegularFile => OFlags::empty(),
                FileType::Directory
                    if folders.len() < FOLDERS_MAX && !is_dots(entry.file_name()) =>
                {
                    OFlags::DIRECTORY
                }
                _ => continue,
            };
            match open(folder.as_fd(), entry.file_name(), flags) {
                Ok(opened) if flags.is_empty() => return Some(opened),
                Ok(opened) => folders.push_back(opened),
                // Not for this user, or another file system.
                Err(_) => {}
            }
        }
    }
    None
}

fn is_dots(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

fn open(at: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    openat2(at, name, flags, Mode::empty(), resolve)
}

/// The number of folders that are searched for a file, and how far each.
const FOLDERS_MAX: usize = 8;
const ENTRIES_MAX: usize = 64;
