//! The two ends of a tunnel: TLS or not, TCP or a Unix socket, or a stream of HTTP/2.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use kettle_kernel::{socket, transfer};
use kettle_runtime::tx_path::TxPath;
use kettle_tls::buffers::Queue;
use kettle_tls::stream::Stream;
use kettle_tls::{Session, Version};
use kettle_upstream::backend::Socket;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::Party;

/// The client's side of a tunnel that is one stream of many, of a protocol whose edge hands it over.
pub(crate) trait TunnelStream {
    /// Returns the session of its connection.
    fn session(&self) -> Option<&Session>;

    /// Where what is sent now is encrypted: its connection may move.
    fn path(&self) -> TxPath;

    /// Returns the next bytes of the client; `None` at the end. The window opens for as much when the next is asked for: when
    /// this is gone.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>>;

    /// Sends some of `bytes`, when the client's windows and the connection have room.
    fn poll_send(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;

    /// Ready when nothing can be sent any more: the client took its request back, or the connection is over.
    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()>;

    /// Says that this was all.
    ///
    /// # Errors
    /// Nobody hears it.
    fn end(&mut self) -> io::Result<()>;

    /// Ends both ways before their time.
    fn cut(&mut self);

    /// Waits until the kernel has all that was sent, and the client has ended its side too.
    fn poll_leave(&mut self, context: &mut Context<'_>) -> Poll<()>;

    /// True while a note of what was [passed on](Self::note_passed_on) is of use.
    fn is_probing(&self) -> bool;

    /// Notes that all that the client said before has been passed on.
    fn note_passed_on(&self);

    /// Returns the bytes that were sent and that the kernel does not have yet.
    fn unsent_bytes(&self) -> u64;
}

/// One end of a tunnel.
pub(crate) enum Side {
    /// In records.
    Tls(Box<Stream>),
    /// As the bytes are.
    Plain(Socket),
    /// A stream of HTTP/2.
    Stream(Box<dyn TunnelStream>),
    /// It was reset, or cannot be reached any more. Nothing goes to it or comes from it.
    Closed,
}

impl Side {
    /// Returns the session of its handshake; nothing without TLS.
    pub(crate) fn session(&self) -> Option<&Session> {
        match self {
            Self::Tls(stream) => stream.session(),
            Self::Stream(stream) => stream.session(),
            Self::Plain(_) | Self::Closed => None,
        }
    }

    /// Sends what a TLS 1.2 handshake ends with. The tickets that TLS 1.3 has left go with the first data.
    pub(crate) fn poll_flush_handshake(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match self {
            // A socket that fails is found out by who uses it.
            Self::Tls(stream)
                if stream.session().is_some_and(|it| it.version == Version::Tls12) =>
            {
                stream.poll_flush(context).map(drop)
            }
            _ => Poll::Ready(()),
        }
    }

    /// True if nothing was said yet that is known of.
    pub(crate) fn is_silent(&self) -> bool {
        match self {
            Self::Tls(stream) => stream.received().bytes().is_empty(),
            Self::Plain(_) | Self::Stream(_) | Self::Closed => true,
        }
    }

    /// True if nothing is said by what came and was kept, and the bytes that wait in the socket of one that has ended: nothing,
    /// or close_notify and nothing else.
    pub(crate) fn ends_silently(&self, waiting: &[u8]) -> bool {
        match self {
            Self::Tls(stream) if stream.unopened_bytes() + waiting.len() > 0 => {
                stream.is_close_notify(waiting)
            }
            _ => waiting.is_empty(),
        }
    }

    /// Takes out what was received and kept.
    pub(super) fn take_received(&mut self, queue: &mut Queue) {
        if let Self::Tls(stream) = self {
            let received = stream.take_front(usize::MAX);
            queue.append(received.bytes());
        }
    }

    /// Ends what goes there so that nobody takes it for the whole: TLS is told nothing, what has no TLS is reset, and so is a
    /// stream.
    pub(super) fn cut(&mut self) {
        match self {
            Self::Tls(stream) => stream.cut(),
            Self::Stream(stream) => stream.cut(),
            Self::Plain(_) | Self::Closed => self.reset(),
        }
    }

    /// Sends what TLS still has to say, waits for the peer to close too, and closes. A peer without TLS and a backend are waited
    /// for only until they have all that went to them: what a backend still sends is for nobody.
    pub(super) fn poll_leave(&mut self, party: Party, context: &mut Context<'_>) -> Poll<()> {
        let is_backend = party == Party::Backend;
        match self {
            Self::Tls(stream) => {
                if ready!(stream.poll_close(context)).is_ok() {
                    match stream.poll_drain(context) {
                        Poll::Ready(Ok(true) | Err(_)) => {}
                        _ if is_backend && has_all(stream.socket()) => {}
                        // It talks on. That is not answered by a reset, which would take from it what it has not read.
                        Poll::Ready(Ok(false)) => {
                            context.waker().wake_by_ref();
                            return Poll::Pending;
                        }
                        Poll::Pending if is_backend => {
                            if poll_end_arrived(stream.tcp(), context).is_ready() {
                                context.waker().wake_by_ref();
                            }
                            return Poll::Pending;
                        }
                        Poll::Pending => return Poll::Pending,
                    }
                }
            }
            // However it ends, it has ended.
            Self::Plain(socket) => {
                let _ = ready!(poll_drain(socket, is_backend, context));
            }
            Self::Stream(stream) => ready!(stream.poll_leave(context)),
            Self::Closed => {}
        }
        *self = Self::Closed;
        Poll::Ready(())
    }

    /// Returns the bytes that went there and have not arrived yet, as far as the kernel can tell.
    pub(super) fn unacknowledged_bytes(&self) -> usize {
        let fd = match self {
            Self::Tls(stream) => stream.socket(),
            Self::Plain(socket) => socket.as_fd(),
            Self::Stream(stream) => return usize::try_from(stream.unsent_bytes()).unwrap_or(0),
            Self::Closed => return 0,
        };
        socket::pending_output_bytes(fd).unwrap_or(0)
    }

    /// True if what went there does not arrive. Of a stream its connection tells.
    pub(super) fn is_lost(&self) -> bool {
        let fd = match self {
            Self::Tls(stream) => stream.socket(),
            Self::Plain(socket) => socket.as_fd(),
            Self::Stream(_) | Self::Closed => return false,
        };
        socket::is_lost(fd).unwrap_or(false)
    }

    /// The number of bytes that a reset would take back: they went there, have not arrived, and still can. A Unix socket leaves
    /// them to its peer.
    pub(super) fn undelivered_bytes(&mut self, context: &mut Context<'_>) -> usize {
        let can_arrive = match self {
            Self::Plain(Socket::Tcp(socket)) => socket::written_bytes(socket.as_fd()).is_ok(),
            Self::Stream(stream) => stream.poll_gone(context).is_pending(),
            Self::Tls(_) | Self::Plain(Socket::Unix(_)) | Self::Closed => false,
        };
        if can_arrive { self.unacknowledged_bytes() } else { 0 }
    }

    /// Drops the connection so that its peer cannot take what it got for the whole.
    pub(crate) fn reset(&mut self) {
        let fd = match &*self {
            Self::Tls(stream) => stream.socket(),
            Self::Plain(socket) => socket.as_fd(),
            // It has to stay for the client to be told.
            Self::Stream(_) => return self.cut(),
            Self::Closed => return,
        };
        // A socket that refuses is as good as gone.
        let _ = socket::reset_on_close(fd);
        *self = Self::Closed;
    }
}

impl From<Box<Stream>> for Side {
    fn from(stream: Box<Stream>) -> Self {
        Self::Tls(stream)
    }
}

impl From<TcpStream> for Side {
    fn from(socket: TcpStream) -> Self {
        Self::Plain(Socket::Tcp(socket))
    }
}

impl From<Socket> for Side {
    fn from(socket: Socket) -> Self {
        Self::Plain(socket)
    }
}

/// Throws away what still comes, until the peer ends or has everything: to close with bytes unread would reset the connection
/// (RFC 9293 §3.10.4), and take from the peer what it has not read. A backend that has everything and does not stop is reset all
/// the same.
fn poll_drain(from: &Socket, is_backend: bool, context: &mut Context<'_>) -> Poll<io::Result<()>> {
    let mut thrown_away = [0; DRAINED_BYTES];
    for _ in 0..DRAIN_READS_MAX {
        match from.try_receive_part(|fd| transfer::receive(fd, &mut thrown_away))? {
            Some(0) => return Poll::Ready(Ok(())),
            Some(_) => {}
            None if socket::pending_output_bytes(from.as_fd())? == 0 => {
                return Poll::Ready(Ok(()));
            }
            None if from.poll_end_arrived(context).is_ready() => {}
            None => ready!(from.poll_readable(context))?,
        }
    }
    if is_backend && has_all(from.as_fd()) {
        return Poll::Ready(Ok(()));
    }
    context.waker().wake_by_ref();
    Poll::Pending
}

/// True if what was sent has arrived, as far as the kernel can tell.
fn has_all(socket: BorrowedFd<'_>) -> bool {
    socket::pending_output_bytes(socket).is_ok_and(|bytes| bytes == 0)
}

/// As [`Socket::poll_end_arrived`], for the socket below TLS.
pub(crate) fn poll_end_arrived(
    socket: &TcpStream,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    let _ = socket.try_io(Interest::WRITABLE, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
    socket.poll_write_ready(context)
}

/// The bytes that are thrown away at once, and how often before others have their turn.
const DRAINED_BYTES: usize = 4_096;
const DRAIN_READS_MAX: usize = 64;
