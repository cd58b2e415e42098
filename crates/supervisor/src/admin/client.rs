//! The other end of the control socket, as `kettle ctl` uses it.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};

use super::protocol::{REPLY_BYTES_MAX, Reply, Request, to_line};

/// Sends one request to the server behind `socket` and waits for its answer.
///
/// # Errors
///
/// Says whether no server is there, or this user may not speak to it, or it did not answer.
pub fn ask(socket: &Path, request: Request) -> Result<Reply, AskError> {
    let exchange = || -> io::Result<Reply> {
        let mut stream = connect(socket, SEND_TIMEOUT)?;
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        stream.write_all(&to_line(&request)?)?;
        let mut line = Vec::new();
        BufReader::new(stream.take(REPLY_BYTES_MAX)).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the server closed the connection without an answer",
            ));
        }
        Ok(serde_json::from_slice(&line)?)
    };
    exchange().map_err(|error| AskError::new(socket, error))
}

/// Connects for as long as a write may take: a server that hangs accepts nobody, and a queue that is full has no room
/// (unix(7)). Fails with `WouldBlock` then.
pub(super) fn connect(socket: &Path, time_max: Duration) -> io::Result<UnixStream> {
    let stream = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    stream.set_write_timeout(Some(time_max))?;
    stream.connect(&SockAddr::unix(socket)?)?;
    Ok(stream.into())
}

/// Asks for the end and waits for it: as long as the server finishes what is in flight, which may be longer than any answer
/// is waited for.
///
/// # Errors
///
/// As [`ask`].
pub fn stop(socket: &Path) -> Result<Reply, AskError> {
    let process = process_of(socket)?;
    loop {
        if let Ok(reply) = ask(socket, Request::Stop) {
            return Ok(reply);
        }
        match process_of(socket) {
            Ok(now) if now == process => {}
            Err(error) if error.is_late() => return Err(error),
            // It has gone, and another may have taken its place.
            _ => return Ok(Reply::done("stopped")),
        }
    }
}

fn process_of(socket: &Path) -> Result<u32, AskError> {
    Ok(match ask(socket, Request::Status)? {
        Reply::Status(status) => status.process,
        _ => 0,
    })
}

/// A request got no answer.
#[derive(Debug)]
pub struct AskError {
    socket: PathBuf,
    source: io::Error,
}

impl AskError {
    pub(super) fn new(socket: &Path, source: io::Error) -> Self {
        Self { socket: socket.to_owned(), source }
    }

    /// True if the server is there and does not answer.
    fn is_late(&self) -> bool {
        matches!(self.source.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { socket, source } = self;
        write!(formatter, "control socket {}: {source}", socket.display())?;
        formatter.write_str(match source.kind() {
            io::ErrorKind::NotFound => {
                "; start the server, or name the socket from `[admin]` in its configuration with \
                 --socket"
            }
            io::ErrorKind::ConnectionRefused => {
                "; a server left this socket behind and is gone: start it again"
            }
            io::ErrorKind::PermissionDenied => {
                "; only the user that started the server may control it: try sudo"
            }
            _ if self.is_late() => {
                "; the server is there and does not answer: look at its own messages"
            }
            _ => "",
        })
    }
}

impl std::error::Error for AskError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// A reload reads every certificate before it answers.
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_secs(30);
