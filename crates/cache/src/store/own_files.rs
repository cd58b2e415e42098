//! Opening what lies in a store's folder, and the small files in it that are no objects. Whatever somebody planted there instead of a
//! file is no file, holds up nobody, and makes way.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use kettle_kernel::file_stamp::FileStamp;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, pwrite, retry_on_intr};

use super::{FILE_MODE, TEMPORARY};

/// A regular file, and the state it is in: another that takes its name has another, and so has the same when it was changed, cut, moved
/// or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    pub(super) stamp: FileStamp,
    is_named: bool,
}

impl FileState {
    /// That of an open file; what is no regular file is [foreign](is_foreign).
    pub(super) fn of(file: impl AsFd) -> Result<Self, Errno> {
        let stat = rustix::fs::fstat(file)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                Ok(Self { stamp: FileStamp::of_stat(&stat), is_named: stat.st_nlink > 0 })
            }
            _ => Err(Errno::NXIO),
        }
    }

    /// True if an open file, which nobody has removed, is in this state still.
    #[must_use]
    pub fn lasts(&self, file: impl AsFd) -> bool {
        self.is_named && Self::of(file).as_ref() == Ok(self)
    }
}

/// Opens a regular file. A file that is none may be [foreign](is_foreign).
pub(super) fn open_file(
    directory: BorrowedFd<'_>,
    path: &str,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let file = retry_on_intr(|| rustix::fs::openat(directory, path, flags | CAREFUL, FILE_MODE))?;
    match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(file),
        _ => Err(Errno::NXIO),
    }
}

/// Opens what is there, whatever it is, as far as the kernel finds it without a disk and below the directory; else
/// [`Errno::AGAIN`], or another error. Nothing is made, and nothing waited for.
pub(super) fn open_cached(
    directory: BorrowedFd<'_>,
    path: &str,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    // Linux 5.6 to 5.11 know no CACHED and say EINVAL: it is opened elsewhere then.
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_XDEV
        | ResolveFlags::CACHED;
    let flags =
        if flags.contains(OFlags::PATH) { flags | OFlags::CLOEXEC } else { flags | CAREFUL };
    rustix::fs::openat2(directory, path, flags, Mode::empty(), resolve)
}

/// True if something is there that is no regular file: a folder, a link, a FIFO, a socket.
pub(super) fn is_foreign(errno: Errno) -> bool {
    matches!(errno, Errno::ISDIR | Errno::LOOP | Errno::NXIO)
}

/// Moves a folder out of the way of a file. The content stays in the store's folder of temporary files, for the operator to look
/// at.
pub(super) fn put_aside(directory: BorrowedFd<'_>, path: &str, aside: &str) -> Result<(), Errno> {
    rustix::fs::renameat(directory, path, directory, aside)?;
    // If it is empty.
    let _ = rustix::fs::unlinkat(directory, aside, AtFlags::REMOVEDIR);
    Ok(())
}

pub(super) enum SmallFile {
    Missing,
    /// Not written by us.
    Foreign,
    Read {
        bytes: Vec<u8>,
        /// True if only its owner may do anything with it.
        is_private: bool,
    },
}

/// Reads a file of at most this length.
pub(super) fn read_small(
    directory: BorrowedFd<'_>,
    name: &str,
    bytes_max: usize,
) -> Result<SmallFile, Errno> {
    let file = match open_file(directory, name, OFlags::RDONLY) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(SmallFile::Missing),
        Err(errno) if is_foreign(errno) => return Ok(SmallFile::Foreign),
        Err(errno) => return Err(errno),
    };
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    let is_private = !mode.intersects(Mode::RWXG | Mode::RWXO);
    let mut bytes = Vec::new();
    let mut piece = vec![0; bytes_max.min(64 * 1_024) + 1];
    loop {
        match retry_on_intr(|| rustix::io::read(&file, &mut *piece))? {
            0 => return Ok(SmallFile::Read { bytes, is_private }),
            count => bytes.extend_from_slice(piece.get(..count).unwrap_or_default()),
        }
        if bytes.len() > bytes_max {
            return Ok(SmallFile::Foreign);
        }
    }
}

/// Writes a file in place of whatever has its name, so that it is there after a loss of power, too. The caller has seen to the folder of
/// temporary files.
pub(super) fn write_small(
    directory: BorrowedFd<'_>,
    name: &str,
    bytes: &[u8],
) -> Result<(), Errno> {
    let new = format!("{TEMPORARY}/{name}-{}", std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    let file = open_file(directory, &new, flags)?;
    let rename = || rustix::fs::renameat(directory, &new, directory, name);
    let written = write_all(&file, bytes, 0)
        .and_then(|()| rustix::fs::fdatasync(&file))
        .and_then(|()| match rename() {
            Err(Errno::ISDIR) => {
                put_aside(directory, name, &format!("{new}-aside")).and_then(|()| rename())
            }
            outcome => outcome,
        })
        .and_then(|()| rustix::fs::fsync(directory));
    if written.is_err() {
        let _ = rustix::fs::unlinkat(directory, &new, AtFlags::empty());
    }
    written
}

pub(super) fn write_all(file: &OwnedFd, bytes: &[u8], offset: u64) -> Result<(), Errno> {
    let mut written = 0;
    while let Some(left) = bytes.get(written..).filter(|left| !left.is_empty()) {
        match retry_on_intr(|| pwrite(file, left, offset + written as u64))? {
            // Regular files take something or say why not.
            0 => return Err(Errno::IO),
            written_bytes => written += written_bytes,
        }
    }
    Ok(())
}

/// A FIFO would be waited for, a link leads elsewhere, and a terminal would become ours.
const CAREFUL: OFlags =
    OFlags::CLOEXEC.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

#[cfg(test)]
mod tests;
