//! A connection from the client's side: the handshake, from the first flight to the last.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use kettle_kernel::bug;
use tokio::net::TcpStream;

use super::accept::{ClosingSocket, HANDSHAKE_BYTES_MAX, TOO_MUCH, poll_exchange};
use super::{Stream, StreamError};
use crate::connector::{ClientHandshake, ClientStep, Connector};
use crate::control::Peer;

/// A TLS connection to a server whose handshake is under way.
pub struct Connecting<'a> {
    socket: TcpStream,
    handshake: Box<ClientHandshake<'a>>,
    received_bytes: usize,
}

/// The outcome of a step of the handshake.
pub enum ConnectStep<'a> {
    /// It needs more from the server, after what is due has been sent.
    Continues(Connecting<'a>),
    /// It is complete but for our last flight, which `poll_flush` sends.
    Complete {
        /// The connection.
        stream: Box<Stream>,
        /// The server took the early data. True if early data was taken; else it has to be sent again.
        took_early_data: bool,
    },
    /// It failed, and the server may be told.
    Failed(StreamError, ClosingSocket),
}

impl<'a> Connecting<'a> {
    /// Starts a handshake on a connected socket from which everything has been read that comes before TLS.
    /// `early_data` goes with the first flight if a ticket allows it.
    ///
    /// # Errors
    /// [`StreamError::Handshake`] if rustls cannot start one, which is a fault of the configuration.
    pub fn begin(
        socket: TcpStream,
        connector: &Connector,
        early_data: Option<&'a [u8]>,
    ) -> Result<Self, StreamError> {
        let handshake = ClientHandshake::new(connector, early_data);
        let handshake = Box::new(handshake.map_err(StreamError::Handshake)?);
        // The ClientHello.
        match handshake.advance() {
            ClientStep::Blocked(handshake) => Ok(Self { socket, handshake, received_bytes: 0 }),
            ClientStep::Failed(error, _) => Err(StreamError::Handshake(error)),
            ClientStep::Complete(..) => Err(bug!("a handshake needs what its server says").into()),
        }
    }

    /// Sends what is due, then receives some of the server's messages.
    ///
    /// # Errors
    /// [`StreamError::Io`] if the socket fails or the server closes it.
    pub fn poll_progress(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        let ClientHandshake { outgoing, feed, .. } = &mut *self.handshake;
        let received = ready!(poll_exchange(&self.socket, outgoing, feed, context));
        // A server may end a session that it does not want without a word.
        self.received_bytes += received.inspect_err(|_| self.handshake.forget_session())?;
        Poll::Ready(Ok(()))
    }

    /// Processes what has been received. This is where the cryptographic work is done.
    #[must_use]
    pub fn advance(self) -> ConnectStep<'a> {
        let Self { socket, handshake, received_bytes } = self;
        let step = match received_bytes > HANDSHAKE_BYTES_MAX {
            true => handshake.fail(TOO_MUCH.into()),
            false => handshake.advance(),
        };
        match step {
            ClientStep::Blocked(handshake) => {
                ConnectStep::Continues(Self { socket, handshake, received_bytes })
            }
            ClientStep::Complete(established, took_early_data) => {
                let stream = Box::new(Stream::new(socket, *established, Peer::Server));
                ConnectStep::Complete { stream, took_early_data }
            }
            ClientStep::Failed(error, outgoing) => {
                let closing = ClosingSocket::new(socket, outgoing, &error);
                ConnectStep::Failed(StreamError::Handshake(error), closing)
            }
        }
    }
}

impl Stream {
    /// Makes a connected socket a TLS connection; our last flight has been sent when it is done. The caller watches a
    /// deadline.
    ///
    /// # Errors
    /// [`StreamError::Handshake`] if nothing can be agreed on or the server is not trusted, [`StreamError::Io`] if the
    /// socket fails.
    pub async fn connect(
        socket: TcpStream,
        connector: &Connector,
    ) -> Result<Box<Self>, StreamError> {
        Ok(Self::connect_early(socket, connector, None).await?.0)
    }

    /// [`connect`](Self::connect) with data that goes with the first flight if a ticket allows it; the second value says
    /// whether the server took it. If not, it has to be sent again.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_early(
        socket: TcpStream,
        connector: &Connector,
        early_data: Option<&[u8]>,
    ) -> Result<(Box<Self>, bool), StreamError> {
        let mut connecting = Connecting::begin(socket, connector, early_data)?;
        loop {
            poll_fn(|context| connecting.poll_progress(context)).await?;
            match connecting.advance() {
                ConnectStep::Continues(next) => connecting = next,
                ConnectStep::Complete { mut stream, took_early_data } => {
                    poll_fn(|context| stream.poll_flush(context)).await?;
                    return Ok((stream, took_early_data));
                }
                ConnectStep::Failed(error, mut closing) => {
                    // An alert fits into any socket that is still good; what the server makes of it is not waited for.
                    poll_fn(|context| {
                        let _ = closing.poll_close(context);
                        Poll::Ready(())
                    })
                    .await;
                    return Err(error);
                }
            }
        }
    }
}
