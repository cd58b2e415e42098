//! A connection to a server, in TLS or as the bytes are.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use kettle_kernel::{socket, transfer};
use kettle_tls::stream::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::backend::Socket;

/// A connection to a server.
pub enum Link {
    /// In records.
    Tls(Box<Stream>),
    /// As the bytes are.
    Plain(Socket),
}

impl Link {
    /// True if nothing has come since it was last read: no byte, no end. Bytes that come without being asked for are no answer
    /// to the next request. The kernel is asked itself: the runtime hears of it later.
    pub(super) fn is_quiet(&mut self) -> bool {
        match self {
            Self::Tls(stream) => {
                let mut context = Context::from_waker(Waker::noop());
                // Tickets are taken in, as far as the runtime has heard of them.
                stream.received().bytes().is_empty()
                    && stream.poll_fill(&mut context).is_pending()
                    && stream.unopened_bytes() == 0
                    && has_nothing(stream.socket())
            }
            Self::Plain(socket) => has_nothing(socket.as_fd()),
        }
    }

    /// Returns the address to which it leads, unless that is a Unix socket.
    pub(super) fn peer_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tls(stream) => stream.tcp().peer_addr().ok(),
            Self::Plain(Socket::Tcp(socket)) => socket.peer_addr().ok(),
            Self::Plain(Socket::Unix(_)) => None,
        }
    }

    /// Says, as far as that takes no waiting, that nothing more comes (RFC 8446 §6.1). For one over which nothing is under way:
    /// what was cut must not be taken for the whole.
    pub(super) fn say_goodbye(&mut self) {
        if let Self::Tls(stream) = self {
            stream.queue_close_notify();
            let _ = stream.poll_flush(&mut Context::from_waker(Waker::noop()));
        }
    }

    /// True if the server has taken all that it was sent but a little, as far as the kernel can tell.
    pub(super) fn is_drained(&self) -> bool {
        let fd = match self {
            Self::Tls(stream) => stream.socket(),
            Self::Plain(socket) => socket.as_fd(),
        };
        socket::pending_output_bytes(fd).is_ok_and(|bytes| bytes <= UNTAKEN_BYTES_MAX)
    }

    /// True if its keys have been used for as much as they may.
    pub(super) fn must_close(&self) -> bool {
        match self {
            Self::Tls(stream) => stream.must_close(),
            Self::Plain(_) => false,
        }
    }
}

/// True if a socket has neither a byte nor an end to give. A byte that it has is lost: its connection is of no more use.
fn has_nothing(socket: BorrowedFd<'_>) -> bool {
    let received = transfer::receive(socket, &mut [0]);
    received.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

impl AsyncRead for Link {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tls(stream) => Pin::new(&mut **stream).poll_read(context, buffer),
            Self::Plain(socket) => Pin::new(socket).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Link {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tls(stream) => Pin::new(&mut **stream).poll_write(context, bytes),
            Self::Plain(socket) => Pin::new(socket).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tls(stream) => AsyncWrite::poll_flush(Pin::new(&mut **stream), context),
            Self::Plain(socket) => Pin::new(socket).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tls(stream) => Pin::new(&mut **stream).poll_shutdown(context),
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(context),
        }
    }
}

/// The bytes that a server which takes all that comes may not have taken yet: some are always on their way.
pub const UNTAKEN_BYTES_MAX: usize = 16 * 1_024;

#[cfg(test)]
mod tests;
