//! A connection before it is established: receive, advance, send, until the handshake is done.

use std::io;
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};

use tokio::net::TcpStream;

use super::calls::poll_send;
use super::reader::Received;
use super::receive::{self, poll_read};
use super::{Stream, StreamError};
use crate::acceptors::Acceptors;
use crate::buffers::Queue;
use crate::control::{Alert, Peer, Violation};
use crate::handshake::{Feed, Handshake, HandshakeError, Step};

/// A TLS connection whose handshake is under way.
pub struct Accepting {
    socket: TcpStream,
    handshake: Box<Handshake>,
    received_bytes: usize,
    /// True if the bytes received before have not been looked at.
    is_received_new: bool,
}

/// The outcome of a step of the handshake.
pub enum Handshaking {
    /// It needs more from the peer, after what is due has been sent.
    Continues(Accepting),
    /// It is complete.
    Complete(Box<Stream>),
    /// The peer speaks plain HTTP; this is what it said so far.
    PlainHttp(TcpStream, Received),
    /// An authority has seen the certificate of a challenge, and there is nothing else for it.
    Challenged(ClosingSocket),
    /// It failed, and the peer is to be told.
    Failed(StreamError, ClosingSocket),
}

/// A socket that only sends what is left to say and then closes.
pub struct ClosingSocket {
    socket: TcpStream,
    outgoing: Queue,
    is_said: bool,
    /// The peer has ended the connection already, and reads no more.
    is_from_peer: bool,
}

impl Accepting {
    /// Starts a handshake on an accepted socket. `received` is what came from it already and is to be read first.
    ///
    /// # Errors
    /// [`StreamError::Handshake`] if rustls cannot start one, which is a fault of the configuration.
    pub fn begin(
        socket: TcpStream,
        received: &[u8],
        acceptors: &Acceptors,
    ) -> Result<Self, StreamError> {
        let handshake = Handshake::new(acceptors).map_err(StreamError::Handshake)?;
        let mut handshake = Box::new(handshake);
        handshake.feed.append(received);
        let received_bytes = received.len();
        Ok(Self { socket, handshake, received_bytes, is_received_new: received_bytes > 0 })
    }

    /// Sends what is due, then receives some of the peer's messages.
    ///
    /// # Errors
    /// [`StreamError::Io`] if the socket fails or the peer closes it.
    pub fn poll_progress(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        if std::mem::take(&mut self.is_received_new) {
            return Poll::Ready(Ok(()));
        }
        let Handshake { outgoing, feed, .. } = &mut *self.handshake;
        self.received_bytes += ready!(poll_exchange(&self.socket, outgoing, feed, context))?;
        Poll::Ready(Ok(()))
    }

    /// Processes what has been received. This is where the cryptographic work is done.
    #[must_use]
    pub fn advance(self) -> Handshaking {
        let Self { socket, handshake, received_bytes, is_received_new: _ } = self;
        let step = match received_bytes > HANDSHAKE_BYTES_MAX {
            true => handshake.fail(TOO_MUCH.into()),
            false => handshake.advance(),
        };
        match step {
            Step::Blocked(handshake) => {
                let is_received_new = false;
                Handshaking::Continues(Self { socket, handshake, received_bytes, is_received_new })
            }
            Step::Complete(established) => {
                Handshaking::Complete(Box::new(Stream::new(socket, *established, Peer::Client)))
            }
            Step::Challenged(outgoing) => {
                let is_said = false;
                let is_from_peer = false;
                Handshaking::Challenged(ClosingSocket { socket, outgoing, is_said, is_from_peer })
            }
            Step::PlainHttp(received) => Handshaking::PlainHttp(socket, received.into()),
            Step::Failed(error, outgoing) => {
                let closing = ClosingSocket::new(socket, outgoing, &error);
                Handshaking::Failed(StreamError::Handshake(error), closing)
            }
        }
    }
}

impl ClosingSocket {
    pub(super) fn new(socket: TcpStream, outgoing: Queue, error: &HandshakeError) -> Self {
        let is_from_peer = error.alert_received().is_some();
        Self { socket, outgoing, is_said: false, is_from_peer }
    }

    /// Sends the alert if there is one, ends our side, and takes in what the peer still sends until it closes too:
    /// closing with unread bytes would reset the connection under the alert. A peer that has ended the
    /// connection itself is not waited for.
    ///
    /// # Errors
    /// [`StreamError::Io`] if the socket fails.
    pub fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        if !self.is_said {
            ready!(poll_send(&self.socket, &mut self.outgoing, true, context))?;
            kettle_kernel::socket::shutdown_write(self.socket.as_fd())?;
            self.is_said = true;
        }
        if self.is_from_peer {
            return Poll::Ready(Ok(()));
        }
        let is_over = ready!(receive::poll_drain(&self.socket, context))?;
        if is_over {
            return Poll::Ready(Ok(()));
        }
        // Others have a turn.
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Sends what is due of a handshake, then receives some of what the peer says: how many bytes.
pub(super) fn poll_exchange(
    socket: &TcpStream,
    outgoing: &mut Queue,
    feed: &mut Feed,
    context: &mut Context<'_>,
) -> Poll<Result<usize, StreamError>> {
    ready!(poll_send(socket, outgoing, false, context))?;
    let bytes = ready!(poll_read(socket, context, feed.room(RECEIVE_BYTES)))?;
    feed.commit(bytes);
    if bytes == 0 {
        return Poll::Ready(Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()));
    }
    Poll::Ready(Ok(bytes))
}

/// The bytes that one read of a handshake takes in at most: a ClientHello with a hybrid key share fits.
const RECEIVE_BYTES: usize = 4_096;

/// No honest client sends more before its Finished; rustls itself bounds single messages.
pub(super) const HANDSHAKE_BYTES_MAX: usize = 128 * 1_024;

pub(super) const TOO_MUCH: Violation =
    Violation { alert: Alert::UNEXPECTED_MESSAGE, what: "more than any handshake needs" };
