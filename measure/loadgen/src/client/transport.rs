//! A connection to the server as the rest of the client sees it: with TLS or without.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};

use kettle_kernel::socket;
use kettle_tls::Resumption;
use kettle_tls::connector::Connector;
use kettle_tls::stream::{Filled, Stream, StreamError};
use tokio::net::{TcpSocket, TcpStream};

use super::failure::Failure;
use super::response::Response;

pub(super) struct Transport(Box<Stream>);

/// Connects to `target`, from 127.0.0.`source` if that is given.
pub(super) async fn connect(target: SocketAddr, source: Option<u8>) -> io::Result<TcpStream> {
    let socket = match target.ip() {
        IpAddr::V4(_) => TcpSocket::new_v4()?,
        IpAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_nodelay(true)?;
    if let Some(source) = source {
        socket::bind_address_no_port(socket.as_fd())?;
        socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, source), 0)))?;
    }
    socket.connect(target).await
}

impl Transport {
    pub(super) fn plain(socket: TcpStream) -> Self {
        Self(Box::new(Stream::plain(socket, Vec::new())))
    }

    /// Makes a connected socket a TLS connection; `early_data` is sent as early data if that is possible, and the second
    /// value says whether the server took it.
    pub(super) async fn handshake(
        socket: TcpStream,
        connector: &Connector,
        early_data: Option<&[u8]>,
    ) -> Result<(Self, bool), Failure> {
        let connected = Stream::connect_early(socket, connector, early_data).await;
        let (stream, is_accepted) = connected.map_err(|error| in_handshake(&error))?;
        Ok((Self(stream), is_accepted))
    }

    /// Returns whether, and by what, an earlier session was resumed.
    pub(super) fn resumed(&self) -> Resumption {
        self.0.session().map_or(Resumption::Full, |session| session.resumed)
    }

    pub(super) fn is_http2(&self) -> bool {
        let alpn = self.0.session().and_then(|session| session.alpn.as_ref());
        alpn.is_some_and(|alpn| alpn.as_bytes() == b"h2")
    }

    /// Returns the bytes that the connection has carried so far, in both directions.
    pub(super) fn carried_bytes(&self) -> io::Result<u64> {
        socket::carried_bytes(self.0.socket())
    }

    pub(super) async fn send(&mut self, request: &[u8]) -> Result<(), Failure> {
        self.0.seal(&[request]).map_err(|error| failure(&error))?;
        poll_fn(|context| self.0.poll_flush(context)).await.map_err(|error| failure(&error))
    }

    pub(super) async fn receive(&mut self, response: &mut Response) -> Result<(), Failure> {
        while !response.is_complete() {
            poll_fn(|context| self.poll_receive(context, response)).await?;
        }
        Ok(())
    }

    fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        response: &mut Response,
    ) -> Poll<Result<(), Failure>> {
        let may_drop_bytes = response.discardable_bytes();
        if may_drop_bytes > 0 {
            let dropped = ready!(self.0.poll_discard(context, may_drop_bytes));
            let dropped = dropped.map_err(|error| failure_within(&error, response))?;
            if dropped > 0 {
                return Poll::Ready(response.discarded(dropped));
            }
        }
        let mut taken = Ok(());
        let fill = ready!(self.0.poll_visit(context, |plaintext| {
            if taken.is_ok() {
                taken = response.take(plaintext);
            }
        }));
        let fill = fill.map_err(|error| failure_within(&error, response))?;
        let is_cut = fill != Filled::Data && taken.is_ok();
        Poll::Ready(if is_cut { Err(response.cut()) } else { taken })
    }

    /// Waits for the peer's end of a connection that is not in use; tickets and new keys are taken in.
    pub(super) async fn until_closed(&mut self, response: &mut Response) -> Failure {
        loop {
            let mut taken = Ok(());
            let visit = |context: &mut Context<'_>| {
                self.0.poll_visit(context, |plaintext| {
                    if taken.is_ok() {
                        taken = response.take_idle(plaintext);
                    }
                })
            };
            match poll_fn(visit).await {
                Ok(Filled::Data) => {}
                Ok(Filled::Closed | Filled::Truncated) => return Failure::ClosedIdle,
                Err(error) => return failure(&error),
            }
            if let Err(failure) = taken {
                return failure;
            }
        }
    }

    /// Ends the connection and waits for the peer to close: to close on what it still sends would reset the connection, and
    /// its work for the close belongs to the transaction. If the peer announced that it closes, that is all; if not, it
    /// is told that nothing more will come.
    pub(super) async fn close(mut self, is_announced: bool) {
        // Whatever goes wrong here, the answer was there before.
        let mut is_open = true;
        if !is_announced {
            self.0.queue_close_notify();
            is_open = poll_fn(|context| self.0.poll_close(context)).await.is_ok();
        }
        while is_open {
            // A ticket may still come, which the next connection needs.
            let fill = poll_fn(|context| self.0.poll_visit(context, |_| {})).await;
            is_open = fill.is_ok_and(|fill| fill == Filled::Data);
        }
    }
}

/// An end of the stream within a record is an end within the response.
fn failure_within(error: &StreamError, response: &Response) -> Failure {
    match failure(error) {
        Failure::Closed => response.cut(),
        other => other,
    }
}

/// A handshake that the peer ends without a word failed no less than one it refuses.
fn in_handshake(error: &StreamError) -> Failure {
    match failure(error) {
        Failure::Closed => Failure::Handshake,
        other => other,
    }
}

fn failure(error: &StreamError) -> Failure {
    match error {
        StreamError::Io(error) => Failure::from_io(error),
        StreamError::Handshake(_) => Failure::Handshake,
        StreamError::AlertReceived(_) => Failure::Alert,
        StreamError::Violation(_)
        | StreamError::Kernel(_)
        | StreamError::KeyExhausted
        | StreamError::Ended
        | StreamError::Bug(_) => Failure::Tls,
    }
}
