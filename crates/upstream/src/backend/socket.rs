//! A connection to a server, and making one without blocking.

mod calls;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use kettle_config::ServerAddress;
use kettle_kernel::socket;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, sleep, timeout_at};

use super::Server;
use super::failure::{Failure, Outcome};

/// A connection as the bytes are, without TLS.
#[derive(Debug)]
pub enum Socket {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a Unix socket.
    Unix(UnixStream),
}

/// Connects to a server's addresses one after the other until `make`, given the connection, succeeds; the one where it did so
/// last comes first (RFC 8305 §4: what is known of an address goes before the order of the resolver). To connect, each
/// address has an equal share of the time that is left, so that one that does not answer leaves time for the others, but never
/// less than [`ADDRESS_TIME_MIN`]. `make` has half of the time that is left while other addresses follow, else all of it.
///
/// # Errors
/// The failure of the last address that could be connected to, or of the last address if none could. A server that turns its
/// client away ends the attempts: its other addresses are not tried.
pub(super) async fn connect<S>(
    server: &Server,
    deadline: Instant,
    make: impl AsyncFn(Socket) -> Result<S, Failure>,
) -> Result<S, Failure> {
    let late = |_| Err(Failure::timed_out());
    if let ServerAddress::Unix(path) = &server.address {
        let made = async { make(connect_unix(path).await?).await };
        return timeout_at(deadline, made).await.unwrap_or_else(late);
    }
    let within = |share: Duration| deadline.min(Instant::now() + share.max(ADDRESS_TIME_MIN));
    let time_left = || deadline.saturating_duration_since(Instant::now());
    let mut outcome = Err(Failure::timed_out());
    let mut has_connected = false;
    let addresses = server.state.addresses();
    let first = server.state.first_address().min(addresses.len());
    let (before, from) = addresses.split_at(first);
    for (turn, address) in from.iter().chain(before).enumerate() {
        let left = u32::try_from(addresses.len() - turn).unwrap_or(u32::MAX);
        let connected = timeout_at(within(time_left() / left), TcpStream::connect(*address)).await;
        let connected = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        match connected.and_then(|stream| prepared(stream, *address)) {
            Ok(socket) => {
                let until = within(time_left() / left.min(2));
                outcome = timeout_at(until, make(socket)).await.unwrap_or_else(late);
                has_connected = true;
            }
            Err(error) if !has_connected => outcome = Err(error.into()),
            Err(_) => {}
        }
        match &outcome {
            Ok(_) => {
                server.state.connected_to(*address);
                break;
            }
            Err(failure) if failure.outcome == Outcome::TurnedAway => break,
            Err(_) => {}
        }
    }
    outcome
}

/// Returns what a connection to this address is to be. [`Socket::keep_alive`] is for those that outlive a request.
pub(super) fn prepared(stream: TcpStream, address: SocketAddr) -> io::Result<Socket> {
    // A port of our own machine that nobody listens on may be the very port the kernel chose for us: TCP then opens a
    // connection with itself (RFC 9293 §3.5, simultaneous open).
    let own = stream.local_addr()?;
    if own.port() == address.port() && own == stream.peer_addr()? {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    stream.set_nodelay(true)?;
    Ok(Socket::Tcp(stream))
}

/// A Unix socket with a full backlog says so at once (`EAGAIN`, connect(2)) where TCP would wait.
async fn connect_unix(path: &Path) -> io::Result<Socket> {
    let mut pause = FULL_PAUSE;
    loop {
        match UnixStream::connect(path).await {
            Ok(stream) => return Ok(Socket::Unix(stream)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(pause).await,
            Err(error) => return Err(error),
        }
        pause = (2 * pause).min(FULL_PAUSE_MAX);
    }
}

impl Socket {
    /// Has the kernel ask during a silence whether the server is still there. Each wait of a request has a limit of its own, and needs
    /// none of it: it costs four calls.
    ///
    /// # Errors
    /// The error of setsockopt(2).
    pub fn keep_alive(&self) -> io::Result<()> {
        match self {
            // `TCP_USER_TIMEOUT` stays as it is: it would cut connections whose peer only takes its time to read.
            Self::Tcp(socket) => socket::keep_alive(socket.as_fd(), Some(KEEP_ALIVE)),
            Self::Unix(_) => Ok(()),
        }
    }

    /// Waits until there is something to receive, the end among it.
    ///
    /// # Errors
    /// The error of the runtime for the socket.
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(socket) => socket.poll_read_ready(context),
            Self::Unix(socket) => socket.poll_read_ready(context),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Self::Unix(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

/// The time a connection is silent before the kernel asks whether its peer is still there.
const KEEP_ALIVE: Duration = Duration::from_mins(1);

/// Between the first two tries at a Unix socket with a full backlog; it doubles from try to try,
const FULL_PAUSE: Duration = Duration::from_millis(5);

/// up to this: those that wait are not to cost more the more they are.
const FULL_PAUSE_MAX: Duration = Duration::from_millis(80);

/// The time that each of several addresses gets at least, if there is as much: a SYN around the world and back (RFC 8305 §5
/// recommends to wait as long before the next).
const ADDRESS_TIME_MIN: Duration = Duration::from_millis(250);
