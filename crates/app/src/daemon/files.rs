//! The files that a process writes which may have begun as root: its messages and its number. Another user with the right to
//! write in their folders must not choose what root writes to.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;

/// Opens a file, or makes it. One that is there must be a regular file without a second name, and belong to this
/// process's user, to root or to `owner`.
///
/// # Errors
/// The thing that stands there instead, or the error of opening it.
pub(super) fn open(path: &Path, options: &mut OpenOptions, owner: Option<u32>) -> io::Result<File> {
    // An entry of this folder itself was made by root: stdout, null.
    if path.parent() == Some(Path::new("/dev")) {
        return options.open(path);
    }
    // A pipe without a reader must not make us wait.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = options.create(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = opened.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::LOOP) => io::Error::other("it is a symbolic link"),
        _ => error,
    })?;
    let found = file.metadata()?;
    let owners = [geteuid().as_raw(), ROOT];
    if !found.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    if found.nlink() > 1 {
        return Err(io::Error::other("it has another name, too (a hard link)"));
    }
    if !owners.contains(&found.uid()) && owner != Some(found.uid()) {
        return Err(io::Error::other("it belongs to another user"));
    }
    Ok(file)
}

/// A file with the number of this process, locked as long as it lives.
pub(crate) struct PidFile {
    path: PathBuf,
    locked: File,
}

impl PidFile {
    /// Writes it. Nothing but the number of a process that has ended is overwritten.
    ///
    /// # Errors
    /// That it cannot be written, is something else, or that another process has it.
    pub(super) fn write(path: &Path, messages: Option<&File>) -> io::Result<Self> {
        let pid_file = Self::take(path, messages)?;
        let number = format!("{}\n", std::process::id());
        // Never empty in between: somebody may be reading it.
        pid_file.locked.write_all_at(number.as_bytes(), 0)?;
        pid_file.locked.set_len(number.len() as u64)?;
        Ok(pid_file)
    }

    fn take(path: &Path, messages: Option<&File>) -> io::Result<Self> {
        for _ in 0..TRIES_MAX {
            let mut options = OpenOptions::new();
            let mut locked = open(path, options.read(true).write(true).mode(0o644), None)?;
            match locked.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::other("another process has it, and runs"));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
            let found = locked.metadata()?;
            if let Some(messages) = messages
                && is_same(&messages.metadata()?, &found)
            {
                return Err(io::Error::other("it is the file for messages"));
            }
            // The process that had it may have removed it between our opening and our lock.
            if !is_named(path, &found) {
                continue;
            }
            let mut text = Vec::new();
            locked.by_ref().take(NUMBER_BYTES_MAX + 1).read_to_end(&mut text)?;
            let is_number = text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'\n');
            if !is_number || text.len() as u64 > NUMBER_BYTES_MAX {
                return Err(io::Error::other("it holds something else than a number"));
            }
            return Ok(Self { path: path.to_owned(), locked });
        }
        Err(io::Error::other("others remove it again and again"))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let is_ours = self.locked.metadata().is_ok_and(|own| is_named(&self.path, &own));
        if !is_ours || fs::remove_file(&self.path).is_ok() {
            return;
        }
        // The process that served was not allowed to remove it, but may write what was opened before.
        let path = self.path.display();
        match self.locked.set_len(0) {
            Ok(()) => tracing::info!("{path} stays, but empty: this user may not remove it"),
            Err(error) => tracing::warn!(%error, "{path} stays with the number of this process"),
        }
    }
}

fn is_named(path: &Path, file: &Metadata) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| is_same(&found, file))
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

const ROOT: u32 = 0;

/// The number of times another process may remove the file just before it is locked here.
const TRIES_MAX: usize = 8;

/// The digits of a process's number, and the end of their line.
const NUMBER_BYTES_MAX: u64 = 24;

#[cfg(test)]
mod tests;
