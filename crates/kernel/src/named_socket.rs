//! Unix sockets with a name, as this process can make them itself. Each is made under a name beside its own, where it gets its
//! rights and begins to listen, and then moves: at no moment can anybody connect with wider rights, or is it taken for one that
//! was left behind.

use std::fs::symlink_metadata;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, Uid, chmodat, chownat, fchmod, fstat,
    open, renameat_with,
};
use rustix::io::Errno;
use socket2::{Domain, SockAddr, SockRef, Socket, Type};

use crate::process::{BYTES_BESIDE, name_beside};

/// The users that may connect: those that may write to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// As chmod(2) takes it.
    pub mode: u32,
    /// Whose file it is; without one, the one's who makes it.
    pub owner: Option<u32>,
    /// Its group, likewise.
    pub group: Option<u32>,
}

pub(crate) fn new_socket() -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    // The file gets no more than the rights of the socket, which only its maker may change.
    fchmod(&socket, Mode::empty())?;
    Ok(socket)
}

/// Gives a new socket its rights and its place; it listens from then on. Returns which file it is: in its place another server's
/// may be looked at for a moment.
pub(crate) fn put(socket: BorrowedFd<'_>, path: &Path, rights: &Rights) -> io::Result<(u64, u64)> {
    let unplaced = Unplaced(unplaced_name(path)?);
    SockRef::from(&socket).bind(&SockAddr::unix(&unplaced.0)?)?;
    set_rights(&unplaced.0, rights)?;
    SockRef::from(&socket).listen(FIRST_BACKLOG)?;
    let file = identity(&unplaced.0)?;
    unplaced.place(path)?;
    Ok(file)
}

/// A name in the same folder that a socket can have.
fn unplaced_name(path: &Path) -> io::Result<PathBuf> {
    let beside = name_beside(path);
    let bytes = path.as_os_str().len();
    if bytes + BYTES_BESIDE <= PATH_BYTES_MAX {
        return Ok(beside);
    }
    let digits = beside.extension().map(|digits| path.with_file_name(digits));
    let shorter = digits.filter(|it| it.as_os_str().len().max(bytes) <= PATH_BYTES_MAX);
    shorter.ok_or_else(|| {
        io::Error::new(ErrorKind::InvalidInput, "its path is too long: choose a shorter one")
    })
}

/// Gives the file of a socket these rights, as far as it has others. A file that is no socket keeps
/// its own.
pub(crate) fn set_rights(path: &Path, rights: &Rights) -> io::Result<()> {
    // Not by its name, which somebody might give to another file meanwhile.
    let file = open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let before = fstat(&file)?;
    if FileType::from_raw_mode(before.st_mode) != FileType::Socket {
        return Err(no_socket());
    }
    let mode = Mode::from_raw_mode(rights.mode);
    if Mode::from_raw_mode(before.st_mode) != mode {
        chmodat(CWD, format!("/proc/self/fd/{}", file.as_raw_fd()), mode, AtFlags::empty())?;
    }
    let owner = rights.owner.filter(|owner| *owner != before.st_uid).map(Uid::from_raw);
    let group = rights.group.filter(|group| *group != before.st_gid).map(Gid::from_raw);
    if owner.is_some() || group.is_some() {
        chownat(&file, "", owner, group, AtFlags::EMPTY_PATH)?;
    }
    Ok(())
}

/// The name of a socket that is not in its place yet, or no longer. It is removed in the end.
struct Unplaced(PathBuf);

impl Unplaced {
    /// Moves the socket to its place, where a server may have left one behind. Of several servers that do this at the
    /// same time, one succeeds.
    fn place(&self, path: &Path) -> io::Result<()> {
        let rename = |flags| renameat_with(CWD, &self.0, CWD, path, flags);
        for _ in 0..PLACE_ATTEMPTS {
            match rename(RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                outcome => return Ok(outcome?),
            }
            refuse_other(path)?;
            match rename(RenameFlags::EXCHANGE) {
                // The other server has just gone.
                Err(Errno::NOENT) => continue,
                outcome => outcome?,
            }
            // Another server may have been placed in between.
            let Err(error) = refuse_other(&self.0) else { return Ok(()) };
            rename(RenameFlags::EXCHANGE)?;
            return Err(error);
        }
        Err(in_use())
    }
}

impl Drop for Unplaced {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Refuses whatever is not a socket that a server left behind.
fn refuse_other(path: &Path) -> io::Result<()> {
    let is_socket = match symlink_metadata(path) {
        Ok(metadata) => metadata.file_type().is_socket(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !is_socket {
        return Err(no_socket());
    }
    // Not to wait for one that hangs.
    match new_socket()?.connect(&SockAddr::unix(path)?) {
        Ok(()) => Err(in_use()),
        Err(error) => match error.kind() {
            // As many wait for it as may.
            ErrorKind::WouldBlock => Err(in_use()),
            ErrorKind::ConnectionRefused | ErrorKind::NotFound => Ok(()),
            // Somebody may well be behind it: another user's server, or one of another kind.
            _ => Err(error),
        },
    }
}

fn no_socket() -> io::Error {
    io::Error::new(ErrorKind::AlreadyExists, "something that is not a socket is in its place")
}

fn in_use() -> io::Error {
    io::Error::new(ErrorKind::AddrInUse, "another server answers on it")
}

pub(crate) fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

pub(crate) fn remove(path: &Path, file: (u64, u64)) -> io::Result<()> {
    match identity(path) {
        Ok(found) if found == file => std::fs::remove_file(path),
        _ => Ok(()),
    }
}

/// The longest path: `sun_path` holds 108 bytes with the zero at its end.
pub(crate) const PATH_BYTES_MAX: usize = 107;

/// The number of times a socket left behind may vanish and come back while another takes its place.
const PLACE_ATTEMPTS: usize = 8;

/// Until its owner says how many may wait.
const FIRST_BACKLOG: i32 = 128;
