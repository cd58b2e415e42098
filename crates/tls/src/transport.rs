//! A connection with TLS or without, for what need not know which: bytes in, bytes out, files.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use kettle_kernel::transfer;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::stream::{TlsStream, poll_writable};

/// An established connection. `poll_shutdown` ends our side: with close_notify and FIN, or with FIN alone. Dropped
/// without it, a TLS connection shows its peer a cut; one that the peer cuts ends in `UnexpectedEof`.
pub enum Transport {
    /// As the bytes are.
    Plain(TcpStream),
    /// In records.
    Tls(Box<TlsStream>),
}

impl Transport {
    /// Sends a span of a file, with `sendfile` where the kernel can. What is not in memory is waited for by the thread,
    /// so files on slow disks are brought there first.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if the file ends before the span; whatever the socket says.
    pub async fn send_file(&mut self, file: BorrowedFd<'_>, span: Range<u64>) -> io::Result<()> {
        let mut offset = span.start;
        while offset < span.end {
            let bytes = (span.end - offset).min(CALL_BYTES_MAX);
            let send =
                |context: &mut Context<'_>| self.poll_send_file(context, file, &mut offset, bytes);
            if std::future::poll_fn(send).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_flush(context)).await
    }

    fn poll_send_file(
        &mut self,
        context: &mut Context<'_>,
        file: BorrowedFd<'_>,
        offset: &mut u64,
        bytes: u64,
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(socket) => {
                let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                let send = || transfer::sendfile(socket.as_fd(), file, offset, bytes);
                poll_writable(socket, context, send)
            }
            Self::Tls(stream) => {
                stream.poll_send_file(context, file, offset, bytes).map_err(io::Error::from)
            }
        }
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write_vectored(context, pieces),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_write_vectored(context, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_flush(context),
            Self::Tls(stream) => AsyncWrite::poll_flush(Pin::new(&mut **stream), context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_shutdown(context),
        }
    }
}

/// The most of a file that one call is given: it goes on as long as the socket has room.
const CALL_BYTES_MAX: u64 = 1_024 * 1_024;
