//! The control socket: a Unix socket that only the server's own user and root may open.
//!
//! Connections are answered on the main thread, beside the workers. `protocol` has the messages,
//! `status` the live numbers, `client` the other end.

use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

pub mod client;
pub mod protocol;
pub mod status;

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
    listener: std::os::unix::net::UnixListener,
    path: PathBuf,
}

impl AdminSocket {
    /// Binds the socket with mode 0600. A socket that a server left behind is replaced; one that
    /// a server still answers on is not.
    ///
    /// # Errors
    ///
    /// Fails if another server has the socket, something else is in its place, or the folder
    /// cannot be written.
    pub fn bind(path: &Path) -> io::Result<Self> {
        if let Ok(metadata) = std::fs::symlink_metadata(path) {
            if !metadata.file_type().is_socket() {
                let what = "something that is not a socket is in its place";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
            }
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                let what = "another server answers on it";
                return Err(io::Error::new(io::ErrorKind::AddrInUse, what));
            }
        }
        let listener = bind_private(path)?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Answers connections for as long as it is polled. Each request goes to `asked`.
    ///
    /// # Errors
    ///
    /// Fails if the socket cannot be handed to the runtime.
    pub async fn serve(&self, asked: mpsc::Sender<Asked>) -> io::Result<()> {
        let listener = UnixListener::from_std(self.listener.try_clone()?)?;
        let mut connections = JoinSet::new();
        loop {
            // Finished connections make room before the next is accepted.
            while connections.len() >= CONNECTIONS_MAX {
                connections.join_next().await;
            }
            while connections.try_join_next().is_some() {}
            match listener.accept().await {
                Ok((stream, _)) => {
                    let asked = asked.clone();
                    connections.spawn(async move {
                        // A client that goes away or dawdles has nobody to tell.
                        let _ = timeout(CONNECTION_TIMEOUT, answer(stream, &asked)).await;
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "the control socket cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Binds the socket in a folder that nobody else may enter, and moves it to its place when it has
/// its mode: `bind` itself gives it what the umask leaves, and who connected then would stay.
fn bind_private(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    let mut folder = path.as_os_str().to_owned();
    folder.push(format!(".{}", std::process::id()));
    let folder = PathBuf::from(folder);
    let unfinished = folder.join("s");
    let remove = || {
        let _ = std::fs::remove_file(&unfinished);
        let _ = std::fs::remove_dir(&folder);
    };
    // What a process of this number left behind when it was killed in the middle.
    remove();
    std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
    let finish = || {
        let listener = std::os::unix::net::UnixListener::bind(&unfinished)?;
        std::fs::set_permissions(&unfinished, PermissionsExt::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        std::fs::rename(&unfinished, path)?;
        Ok(listener)
    };
    let finished = finish();
    remove();
    finished
}

impl Drop for AdminSocket {
    fn drop(&mut self) {
        // Without privileges the folder may no longer be writable; the next start cleans up.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Answers the requests of one connection, one after the other.
async fn answer(stream: UnixStream, asked: &mpsc::Sender<Asked>) -> io::Result<()> {
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
            Ok(request) if is_whole => forward(request, asked).await,
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
        return Reply::refused("the server is about to end");
    }
    answer.await.unwrap_or_else(|_| Reply::refused("the server is about to end"))
}

/// Control connections at one time; further ones wait in the kernel.
const CONNECTIONS_MAX: usize = 16;

/// The longest life of a control connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);

/// Keeps a lack of descriptors from becoming a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests;
