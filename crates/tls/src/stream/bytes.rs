//! The stream as tokio's traits know it.
//!
//! The end of what is received is told truthfully: a close_notify is an end, and anything else is an error. The bytes sent end
//! with a close_notify only by `poll_shutdown`; a stream that is dropped is cut.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::reader::{Received, Sink};
use super::{Filled, Stream, StreamError};
use crate::buffers::WRITE_BYTES;

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let received = stream.received().bytes();
        if !received.is_empty() {
            let (now, _) = received.split_at(received.len().min(buffer.remaining()));
            buffer.put_slice(now);
            let bytes = now.len();
            stream.consume(bytes);
            return Poll::Ready(Ok(()));
        }
        let mut sink = IntoBuffer { buffer, has_taken: false };
        let fill = match ready!(stream.poll_open(context, &mut sink)) {
            // Data that came before it in the same read is good, and the next call tells it.
            Err(_) if sink.has_taken && stream.reader.check().is_err() => Filled::Data,
            fill => fill?,
        };
        Poll::Ready(match fill {
            // The end is ours, not the peer's: what it sent behind was not read.
            Filled::Closed if stream.writer.refuses_data() && !sink.has_taken => {
                Err(StreamError::KeyExhausted.into())
            }
            Filled::Data | Filled::Closed => Ok(()),
            Filled::Truncated => Err(io::ErrorKind::UnexpectedEof.into()),
        })
    }
}

/// Plaintext goes where the reader wants it, and what has no room there is kept.
struct IntoBuffer<'b, 'r> {
    buffer: &'b mut ReadBuf<'r>,
    has_taken: bool,
}

impl Sink for IntoBuffer<'_, '_> {
    fn take(&mut self, received: &mut Received, plaintext: &[u8]) {
        let (now, later) = plaintext.split_at(plaintext.len().min(self.buffer.remaining()));
        self.buffer.put_slice(now);
        if !later.is_empty() {
            received.append(later);
        }
        self.has_taken |= !plaintext.is_empty();
    }

    fn has_taken(&self) -> bool {
        self.has_taken
    }
}

impl AsyncWrite for Stream {
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
        let stream = self.get_mut();
        let (taken, bytes) = front_pieces(pieces, WRITE_BYTES);
        if bytes == 0 {
            return Poll::Ready(Ok(0));
        }
        if stream.takes_plaintext() {
            let pieces = taken.map(IoSlice::new);
            return stream.poll_kernel_write(context, &pieces, false).map_err(io::Error::from);
        }
        // The bytes that the peer has not taken yet come first: nothing piles up here.
        ready!(stream.poll_flush(context))?;
        stream.seal(&taken)?;
        stream.writer.try_flush(&stream.socket, context)?;
        Poll::Ready(Ok(bytes))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_flush(context).map_err(io::Error::from)
    }

    /// Says close_notify behind what is queued, and ends our side.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        stream.queue_close_notify();
        match ready!(stream.poll_close(context)) {
            // A peer that has gone has ended both sides; whatever was to be told was sent before.
            Err(StreamError::Io(error)) if error.kind() == io::ErrorKind::NotConnected => {
                Poll::Ready(Ok(()))
            }
            closed => Poll::Ready(closed.map_err(io::Error::from)),
        }
    }
}

/// The front of what is to be written, at most `bytes_max` of its bytes, and how many they are.
#[must_use]
pub fn front_pieces<'p>(
    pieces: &'p [IoSlice<'_>],
    bytes_max: usize,
) -> ([&'p [u8]; PIECES_PER_WRITE], usize) {
    let mut front: [&[u8]; PIECES_PER_WRITE] = [&[]; PIECES_PER_WRITE];
    let mut bytes = 0;
    for (place, piece) in front.iter_mut().zip(pieces.iter().filter(|piece| !piece.is_empty())) {
        (*place, _) = piece.split_at(piece.len().min(bytes_max - bytes));
        bytes += place.len();
    }
    (front, bytes)
}

impl From<StreamError> for io::Error {
    fn from(error: StreamError) -> Self {
        let kind = match error {
            StreamError::Io(error) => return error,
            StreamError::Handshake(_) | StreamError::Violation(_) => io::ErrorKind::InvalidData,
            StreamError::AlertReceived(_) => io::ErrorKind::ConnectionAborted,
            StreamError::Bug(bug) => return bug.into(),
            StreamError::Kernel(_) | StreamError::KeyExhausted | StreamError::Ended => {
                io::ErrorKind::Other
            }
        };
        Self::new(kind, error)
    }
}

/// The most pieces of one write; those beyond are for the next.
const PIECES_PER_WRITE: usize = 16;
