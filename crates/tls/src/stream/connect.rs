//! A connection from the client's side: the handshake, from the first flight to the last.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::net::TcpStream;

use super::accept::{HANDSHAKE_BYTES_MAX, RECEIVE_BYTES};
use super::receive::poll_read;
use super::writer::poll_send;
use super::{StreamError, TlsStream};
use crate::buffers::Queue;
use crate::client::{ClientHandshake, ClientStep, Connector};
use crate::control::Peer;
use crate::handshake::HandshakeError;

impl TlsStream {
    /// Makes a connected socket a TLS connection; our last flight has been sent when it is done. `early_data` goes with
    /// the first flight if a ticket allows it; the second value says whether the server took it. If not, it has to be
    /// sent again. The caller watches a deadline.
    ///
    /// # Errors
    /// [`StreamError::Handshake`] if nothing can be agreed on, [`StreamError::Io`] if the socket fails.
    pub async fn connect(
        socket: TcpStream,
        connector: &Connector,
        early_data: Option<&[u8]>,
    ) -> Result<(Self, bool), StreamError> {
        let handshake =
            ClientHandshake::new(connector, early_data).map_err(StreamError::Handshake)?;
        let mut handshake = Box::new(handshake);
        let mut received_bytes = 0;
        loop {
            handshake = match handshake.advance() {
                ClientStep::Blocked(handshake) => handshake,
                ClientStep::Complete(established, is_accepted) => {
                    let mut stream = Self::new(socket, *established, Peer::Server);
                    poll_fn(|context| stream.poll_flush(context)).await?;
                    return Ok((stream, is_accepted));
                }
                ClientStep::Failed(error, outgoing) => {
                    send_alert(&socket, outgoing).await;
                    return Err(StreamError::Handshake(error));
                }
            };
            let outgoing = &mut handshake.outgoing;
            poll_fn(|context| poll_send(&socket, outgoing, false, context)).await?;
            let room = handshake.feed.room(RECEIVE_BYTES);
            let bytes = poll_fn(|context| poll_read(&socket, context, room)).await?;
            if bytes == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            handshake.feed.commit(bytes);
            received_bytes += bytes;
            if received_bytes > HANDSHAKE_BYTES_MAX {
                let error = HandshakeError::Rustls(rustls::Error::PeerSentOversizedRecord);
                return Err(StreamError::Handshake(error));
            }
        }
    }
}

/// An alert fits into any socket that is still good; it is not waited for.
async fn send_alert(socket: &TcpStream, mut outgoing: Queue) {
    let _ = poll_fn(|context| Poll::Ready(poll_send(socket, &mut outgoing, false, context))).await;
}
