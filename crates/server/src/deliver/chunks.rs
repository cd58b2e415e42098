//! A connection of HTTP/1.1 as the client's side of an exchange.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use kettle_http::h1::framing::BodyWriter;
use kettle_tls::stream::{Filled, StreamError, TlsStream};
use tokio::io::AsyncWrite;

use super::{ClientSide, Delivery, DeliveryError, poll_meanwhile};
use crate::deadlines::Pace;
use crate::request::{BodyError, ConcurrentUpload, PieceSource, departure};
use crate::upstream::UpstreamBody;

/// A response whose server's pieces go out in chunks, or as they come.
pub(super) struct Chunks<'c, 'd> {
    pub(super) delivery: &'c mut Delivery<'d>,
    /// What waits to be sent: the head, or what stands between two chunks.
    pub(super) prefix: &'c mut Vec<u8>,
    pub(super) writer: &'c mut BodyWriter,
}

impl ClientSide for Chunks<'_, '_> {
    type Source = TlsStream;

    fn source(&mut self) -> &mut TlsStream {
        self.delivery.stream
    }

    fn disconnected(&mut self) -> impl Future<Output = StreamError> {
        departure(self.delivery.stream)
    }

    fn pace(&mut self) -> &mut Option<Pace> {
        &mut self.delivery.pace
    }

    fn ticks(&self) -> u32 {
        self.delivery.deadline.ticks()
    }

    fn could_send(&self, _since: u32) -> bool {
        true
    }

    async fn send_meanwhile(
        &mut self,
        piece: Bytes,
        body: &mut UpstreamBody,
        upload: &mut ConcurrentUpload<'_>,
    ) -> Result<(), DeliveryError> {
        let Self { delivery, prefix, writer } = self;
        writer.begin_piece(prefix, piece.len());
        prefix.extend_from_slice(&piece);
        let mut left = prefix.as_slice();
        while !left.is_empty() || delivery.stream.queued_bytes() > 0 {
            let moved_bytes = upload.moved_bytes;
            let write = |stream: &mut TlsStream, context: &mut Context<'_>| {
                let written = if left.is_empty() {
                    let flushed = stream.poll_flush(context).map_err(DeliveryError::from);
                    flushed.map(|flushed| flushed.map(|()| 0))
                } else {
                    let written = Pin::new(&mut *stream).poll_write(context, left);
                    written.map_err(|error| StreamError::from(error).into())
                };
                match written {
                    Poll::Pending => poll_meanwhile(stream, body, upload, context).map_ok(|()| 0),
                    written => written,
                }
            };
            let bytes = delivery.client_takes(write).await??;
            delivery.has_begun |= bytes > 0;
            if delivery.stream.takes_plaintext() {
                delivery.note_taken(bytes);
            }
            if let Some(pace) = &mut delivery.pace {
                pace.took(upload.moved_bytes - moved_bytes);
            }
            left = left.get(bytes..).unwrap_or_default();
        }
        prefix.clear();
        delivery.delivered.body_bytes += piece.len() as u64;
        if !piece.is_empty() {
            delivery.worker.send_turns.end().await;
        }
        Ok(())
    }
}

impl PieceSource for TlsStream {
    fn poll_piece(
        &mut self,
        upload: &mut ConcurrentUpload<'_>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), BodyError>> {
        loop {
            let received = self.received().bytes();
            let piece = upload.reader.next_piece(received).map_err(BodyError::Malformed)?;
            let data = received.get(piece.coding_bytes..).and_then(|it| it.get(..piece.data_bytes));
            let data = data.unwrap_or_default();
            if upload.reader.is_longer_than(upload.bytes_max()) {
                return Poll::Ready(Err(BodyError::TooLong));
            }
            let is_data = !data.is_empty();
            if is_data {
                upload.take(data);
            }
            self.consume(piece.coding_bytes + piece.data_bytes);
            if is_data {
                return Poll::Ready(Ok(()));
            }
            if upload.reader.is_done() {
                let trailers = upload.reader.trailers().to_vec();
                upload.end(&trailers);
                return Poll::Ready(Ok(()));
            }
            match ready!(self.poll_fill(context)).map_err(BodyError::Stream)? {
                Filled::Data => {}
                Filled::Closed | Filled::Truncated => return Poll::Ready(Err(BodyError::Ended)),
            }
        }
    }

    /// The end of what it sends tells.
    fn poll_left(&mut self, _context: &mut Context<'_>) -> Poll<StreamError> {
        Poll::Pending
    }
}
