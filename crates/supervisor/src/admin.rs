//! The control socket: a Unix socket that only the server's own user and root may open.
//!
//! Connections are answered on the main thread, beside the workers. `protocol` has the messages,
//! `status` the live numbers, `client` the other end.

use std::io;
use std::os::unix::net::UnixListener as Listener;
use std::path::Path;
use std::time::Duration;

use kettle_kernel::socket::unix::{self, Place, Rights};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};

pub mod acme;
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
    /// The request.
    pub request: Request,
    /// The channel of the answer. Nobody may be there any more.
    pub reply: oneshot::Sender<Reply>,
}

/// The socket while the server runs. Dropping it removes the file.
#[derive(Debug)]
pub struct AdminSocket {
    listener: Listener,
    place: Place,
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
        let rights = Rights { mode: 0o600, owner: None, group: None };
        let (listener, place) = unix::listen(path, &rights, BOUNDS.connections_max as _)?;
        Ok(Self { listener: listener.into(), place })
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

/// The longest path: `sun_path` holds 108 bytes with the zero at its end.
const PATH_BYTES_MAX: usize = 107;

/// A reload takes its time.
const BOUNDS: Bounds = Bounds {
    connections_max: 16,
    lifetime: Duration::from_secs(60),
    // A process that may connect may stop the server as well.
    makes_way_after: None,
};

#[cfg(test)]
mod tests;
