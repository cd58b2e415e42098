//! The control socket: a Unix socket that only the server's own user and root may open.
//!
//! Connections are answered on the main thread, beside the workers. `protocol` has the messages,
//! `status` the live numbers, `client` the other end.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener as Listener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kettle_kernel::process::{BYTES_BESIDE, name_beside};
use rustix::fs::{CWD, Mode, RenameFlags, fchmod, renameat_with};
use rustix::io::Errno;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};

pub mod backends;
pub mod caches;
pub mod client;
pub mod protocol;
pub(crate) mod purge;
pub mod status;
pub mod tunnels;

use crate::accept::{Bounds, accept_each};
use protocol::{REQUEST_BYTES_MAX, Reply, Request, parse_request, to_line};

/// A request with the way back for its answer.
#[derive(Debug)]
pub struct Asked {
    /// What is asked.
    pub request: Request,
    /// Where the answer goes. Nobody may be there any more.
    pub reply: oneshot::Sender<Reply>,
}

/// The socket while the server runs. Dropping it removes the file.
#[derive(Debug)]
pub struct AdminSocket {
    listener: Listener,
    place: Place,
}

/// The socket's file.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    /// Device and inode.
    file: (u64, u64),
}

impl AdminSocket {
    /// Binds the socket with mode 0600. A socket that a server left behind is replaced; one that
    /// a server still answers on is not.
    ///
    /// # Errors
    ///
    /// Fails if another server has the socket, something else is in its place, the path is too long, or the folder
    /// cannot be written.
    pub fn bind(path: &Path) -> io::Result<Self> {
        refuse_long(path)?;
        let unplaced = Unplaced(name_beside(path));
        let listener = unplaced.listen()?;
        let metadata = std::fs::symlink_metadata(&unplaced.0)?;
        unplaced.place(path)?;
        let place = Place { path: path.to_owned(), file: (metadata.dev(), metadata.ino()) };
        Ok(Self { listener, place })
    }

    /// Answers connections for as long as it is polled. Each request goes to `asked`.
    ///
    /// # Errors
    ///
    /// Fails if the socket cannot be handed to the runtime.
    pub async fn serve(self, asked: mpsc::Sender<Asked>) -> io::Result<()> {
        let Self { listener, place: _place } = self;
        let listener = UnixListener::from_std(listener)?;
        let accept = async || listener.accept().await.map(|(stream, _)| stream);
        let answer = |stream, _| answer(stream, asked.clone());
        match accept_each("the control socket", &BOUNDS, accept, answer).await {}
    }
}

/// Refuses a path that a socket cannot have.
///
/// # Errors
///
/// Says how long it is and may be.
pub fn refuse_long(path: &Path) -> io::Result<()> {
    let bytes = path.as_os_str().len();
    if bytes <= PATH_BYTES_MAX {
        return Ok(());
    }
    let what = format!(
        "its path has {bytes} bytes, and {PATH_BYTES_MAX} are the most; choose a shorter one"
    );
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// The name of a socket that is not in its place yet, or no longer. What has it is removed in the end.
struct Unplaced(PathBuf);

impl Unplaced {
    /// Binds the socket and listens: in its place, a socket that does not listen yet would look like one left behind.
    fn listen(&self) -> io::Result<Listener> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        // The file gets the mode of the socket: at no moment may others connect, whatever the umask.
        fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
        socket.bind(&SockAddr::unix(&self.0)?)?;
        socket.listen(BOUNDS.connections_max as _)?;
        socket.set_nonblocking(true)?;
        Ok(socket.into())
    }

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
    let is_socket = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata.file_type().is_socket(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !is_socket {
        let what = "something that is not a socket is in its place";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
    }
    let asking = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // Not to wait for one that hangs.
    asking.set_nonblocking(true)?;
    match asking.connect(&SockAddr::unix(path)?) {
        Ok(()) => Err(in_use()),
        Err(error) => match error.kind() {
            // As many wait for it as may.
            io::ErrorKind::WouldBlock => Err(in_use()),
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Ok(()),
            // Somebody may well be behind it: another user's server, or one of another kind.
            _ => Err(error),
        },
    }
}

fn in_use() -> io::Error {
    io::Error::new(io::ErrorKind::AddrInUse, "another server answers on it")
}

impl Drop for Place {
    fn drop(&mut self) {
        let metadata = std::fs::symlink_metadata(&self.path);
        if metadata.is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == self.file) {
            // Without privileges the folder may no longer be writable; the next start cleans up.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Answers the requests of one connection, one after the other.
async fn answer(stream: UnixStream, asked: mpsc::Sender<Asked>) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = REQUEST_BYTES_MAX as u64;
        if (&mut reader).take(limit).read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        let is_whole = line.ends_with(b"\n");
        let reply = match parse_request(&line) {
            Ok(request) if is_whole => forward(request, &asked).await,
            Ok(_) => Reply::refused("the request does not end with a line feed"),
            Err(error) => Reply::refused(error),
        };
        writer.write_all(&to_line(&reply)?).await?;
        if !is_whole {
            return Ok(());
        }
    }
}

async fn forward(request: Request, asked: &mpsc::Sender<Asked>) -> Reply {
    let (reply, answer) = oneshot::channel();
    if asked.send(Asked { request, reply }).await.is_err() {
        return Reply::refused(STOPPING);
    }
    answer.await.unwrap_or_else(|_| Reply::refused(STOPPING))
}

/// Why a server that stops does what is asked no more, and takes no other configuration.
pub(crate) const STOPPING: &str = "the server is about to end";

/// The longest path: `sun_path` holds 108 bytes with the zero at its end, and the name before the last is longer.
const PATH_BYTES_MAX: usize = 107 - BYTES_BESIDE;

/// How often a socket left behind may vanish and come back while ours takes its place.
const PLACE_ATTEMPTS: usize = 8;

/// A reload takes its time.
const BOUNDS: Bounds = Bounds {
    connections_max: 16,
    lifetime: Duration::from_secs(60),
    // Whoever may connect may stop the server as well.
    makes_way_after: None,
};

#[cfg(test)]
mod tests;
