//! Listening Unix sockets with a name, and the accepted ones among others.

#[cfg(test)]
mod tests;

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use socket2::{Domain, SockRef};

use crate::keeper;
pub use crate::named_socket::Rights;
use crate::named_socket::{identity, new_socket, put, remove, set_rights};

/// The file of a socket. Dropping it removes the file, if it is still this one.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    /// Device and inode.
    file: (u64, u64),
}

/// Makes a non-blocking socket that listens at this path, by the keeper where this process may not. A socket that a server left
/// behind is replaced; one that somebody still answers on is not, and what is no socket neither.
///
/// # Errors
/// `AddrInUse` if somebody answers there, `AlreadyExists` if it is no socket; that the path is too long, or the folder cannot be
/// written.
pub fn listen(path: &Path, rights: &Rights, backlog: u32) -> io::Result<(OwnedFd, Place)> {
    let socket = new_socket()?;
    let (socket, placed) = match put(socket.as_fd(), path, rights) {
        // It may have a name already, and gets no other.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let socket = new_socket()?;
            keeper::place_socket(socket.as_fd(), path, error)?;
            (socket, identity(path))
        }
        placed => (socket, placed),
    };
    let place = Place { path: path.to_owned(), file: placed? };
    // Again, if the keeper began: clients are told who did (SO_PEERCRED).
    super::set_backlog(socket.as_fd(), backlog)?;
    Ok((socket.into(), place))
}

impl Place {
    /// True if the file is gone, or is another's. A socket of which that cannot be said is not
    /// lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        match identity(&self.path) {
            Ok(file) => file != self.file,
            Err(error) => error.kind() == ErrorKind::NotFound,
        }
    }

    /// Changes who may connect, if the file is still this one.
    ///
    /// # Errors
    /// That this process may not: only root gives files to others.
    pub fn set_rights(&self, rights: &Rights) -> io::Result<()> {
        if identity(&self.path)? != self.file {
            return Err(io::Error::new(ErrorKind::NotFound, "another file has taken its place"));
        }
        set_rights(&self.path, rights)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Without privileges the folder may no longer be writable. Where the keeper cannot help, the next start cleans up.
        if let Err(error) = remove(&self.path, self.file)
            && error.kind() == ErrorKind::PermissionDenied
        {
            let _ = keeper::remove_socket(&self.path, self.file, error);
        }
    }
}

/// True if this is a Unix socket.
#[must_use]
pub fn is_unix(fd: BorrowedFd<'_>) -> bool {
    SockRef::from(&fd).domain().is_ok_and(|domain| domain == Domain::UNIX)
}
