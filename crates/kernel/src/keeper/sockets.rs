//! Sockets that the keeper binds, and files of Unix sockets that it makes and removes.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use socket2::{Domain, SockRef, Type};

use super::root::is_written_by_root;
use super::{Permits, ask};
use crate::named_socket;

/// Binds a socket, by the keeper where this process may not: to a port below 1024.
///
/// # Errors
/// Those of `bind(2)`, or that the keeper has gone.
pub fn bind(socket: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()> {
    match SockRef::from(&socket).bind(&address.into()) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            ask(BIND, address.to_string().as_bytes(), Some(socket), error).map(drop)
        }
        outcome => outcome,
    }
}

/// Has the keeper give a Unix socket its place, where this process was `refused`.
pub(crate) fn place_socket(
    socket: BorrowedFd<'_>,
    path: &Path,
    refused: io::Error,
) -> io::Result<()> {
    ask(PLACE, path.as_os_str().as_bytes(), Some(socket), refused).map(drop)
}

/// Has the keeper remove the file of a Unix socket, where this process was `refused`.
pub(crate) fn remove_socket(path: &Path, file: (u64, u64), refused: io::Error) -> io::Result<()> {
    let (device, inode) = file;
    let words = [&device.to_ne_bytes(), &inode.to_ne_bytes(), path.as_os_str().as_bytes()];
    ask(REMOVE, &words.concat(), None, refused).map(drop)
}

pub(super) fn bind_for(
    permits: &impl Permits,
    address: &[u8],
    socket: Option<OwnedFd>,
) -> io::Result<()> {
    let address = std::str::from_utf8(address).ok().and_then(|text| text.parse().ok());
    match (address, socket) {
        (Some(address), Some(socket)) if permits.address(address) => {
            let socket = SockRef::from(&socket);
            // Of the socket that a listener is, and of no other that the address would do for.
            let takes_ipv4_too = SocketAddr::is_ipv6(&address) && !socket.only_v6()?;
            if socket.r#type()? != Type::STREAM || takes_ipv4_too {
                return Err(ErrorKind::PermissionDenied.into());
            }
            socket.bind(&address.into())
        }
        _ => Err(ErrorKind::PermissionDenied.into()),
    }
}

/// With the rights that the keeper itself has read, in a folder that nobody but root may bend.
pub(super) fn place_for(
    permits: &impl Permits,
    path: &[u8],
    socket: Option<OwnedFd>,
) -> io::Result<()> {
    let path = Path::new(OsStr::from_bytes(path));
    match (permits.socket_rights(path), socket) {
        (Some(rights), Some(socket)) if is_folder_of_root(path) => {
            let asked = SockRef::from(&socket);
            if asked.r#type()? != Type::STREAM || asked.domain()? != Domain::UNIX {
                return Err(ErrorKind::PermissionDenied.into());
            }
            let put = named_socket::put(socket.as_fd(), path, &rights);
            put.map(drop).map_err(|error| numbered(&error))
        }
        _ => Err(ErrorKind::PermissionDenied.into()),
    }
}

pub(super) fn remove_for(permits: &impl Permits, words: &[u8]) -> io::Result<()> {
    let (device, words) = words.split_first_chunk().ok_or(ErrorKind::InvalidInput)?;
    let (inode, path) = words.split_first_chunk().ok_or(ErrorKind::InvalidInput)?;
    let path = Path::new(OsStr::from_bytes(path));
    if permits.socket_rights(path).is_none() || !is_folder_of_root(path) {
        return Err(ErrorKind::PermissionDenied.into());
    }
    named_socket::remove(path, (u64::from_ne_bytes(*device), u64::from_ne_bytes(*inode)))
}

/// The same error by its number alone, which is what an answer has.
fn numbered(error: &io::Error) -> io::Error {
    let number = match error.kind() {
        ErrorKind::AddrInUse => libc::EADDRINUSE,
        ErrorKind::AlreadyExists => libc::EEXIST,
        ErrorKind::InvalidInput => libc::ENAMETOOLONG,
        _ => error.raw_os_error().unwrap_or(libc::EACCES),
    };
    io::Error::from_raw_os_error(number)
}

fn is_folder_of_root(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.is_dir() && is_written_by_root(folder))
}

pub(super) const BIND: u8 = b'b';
pub(super) const PLACE: u8 = b'p';
pub(super) const REMOVE: u8 = b'x';
