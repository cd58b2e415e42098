//! Responses whose bodies come from a backend's server as they are sent: each piece goes out before the next is taken in.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use kettle_tls::stream::Fill;
use tokio::time::timeout;

use super::{Delivery, DeliveryError, Piece};
use crate::upstream::{UpstreamBody, UpstreamError};

impl Delivery<'_> {
    /// Head and body, in chunks if `is_chunked`. The head waits for nothing, but takes along what is there.
    pub(super) async fn upstream(
        &mut self,
        head: &[u8],
        body: &mut UpstreamBody,
        is_chunked: bool,
    ) -> Result<(), DeliveryError> {
        let mut coding = Coding { is_chunked, is_first: true };
        let mut prefix = head.to_vec();
        match poll_fn(|context| Poll::Ready(body.poll_chunk(context))).await {
            Poll::Ready(first) => {
                let first = first.map_err(cut)?;
                if !self.pass(&mut prefix, first, &mut coding).await? {
                    return Ok(());
                }
            }
            Poll::Pending => {
                self.send_piece(&prefix, Piece::Memory(&[]), false).await?;
                prefix.clear();
            }
        }
        loop {
            let next = self.next_piece(body).await?;
            if !self.pass(&mut prefix, next, &mut coding).await? {
                return Ok(());
            }
            self.worker.send_turns.end().await;
        }
    }

    /// Sends what came, behind `prefix`; nothing is the end. Whether there may be more.
    async fn pass(
        &mut self,
        prefix: &mut Vec<u8>,
        data: Option<Bytes>,
        coding: &mut Coding,
    ) -> Result<bool, DeliveryError> {
        coding.write(prefix, data.as_ref().map_or(0, Bytes::len));
        let is_end = data.is_none();
        let data = data.unwrap_or_default();
        let is_last = self.is_last && is_end;
        if !prefix.is_empty() || !data.is_empty() || is_last {
            self.send_piece(prefix, Piece::Memory(&data), is_last).await?;
        }
        prefix.clear();
        Ok(!is_end)
    }

    /// Waits for the server, but not for the sake of a client that has gone.
    async fn next_piece(
        &mut self,
        body: &mut UpstreamBody,
    ) -> Result<Option<Bytes>, DeliveryError> {
        let limit = body.timeout();
        let next = poll_fn(|context| {
            if let Poll::Ready(next) = body.poll_chunk(context) {
                return Poll::Ready(next.map_err(cut));
            }
            match self.poll_client(context) {
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                _ => Poll::Pending,
            }
        });
        let next = timeout(limit, next).await;
        next.unwrap_or_else(|_| Err(cut(UpstreamError::TimedOut)))
    }

    /// Ready when there is nothing more to be learned of the client; an error if it has gone.
    fn poll_client(&mut self, context: &mut Context<'_>) -> Poll<Result<(), DeliveryError>> {
        while self.stream.received().bytes().len() < SENT_AHEAD_BYTES_MAX {
            match self.stream.poll_fill(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(Fill::Data)) => {}
                Poll::Ready(Ok(Fill::Closed)) => break,
                Poll::Ready(Ok(Fill::Truncated)) => {
                    let gone = io::Error::from(io::ErrorKind::UnexpectedEof);
                    return Poll::Ready(Err(DeliveryError::Stream(gone.into())));
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// How the end of the body is marked.
struct Coding {
    is_chunked: bool,
    is_first: bool,
}

impl Coding {
    /// Writes what stands between two pieces: the end of the one before, and the size of this one; none is the last.
    fn write(&mut self, out: &mut Vec<u8>, data_bytes: usize) {
        if !self.is_chunked {
            return;
        }
        let end: &[u8] = if std::mem::take(&mut self.is_first) { b"" } else { b"\r\n" };
        out.extend_from_slice(end);
        let size = match data_bytes {
            0 => "0\r\n\r\n".to_owned(),
            bytes => format!("{bytes:x}\r\n"),
        };
        out.extend_from_slice(size.as_bytes());
    }
}

fn cut(error: UpstreamError) -> DeliveryError {
    DeliveryError::BodyCutShort(error.into())
}

/// What is read of requests that a client sends before it has the answer to this one.
const SENT_AHEAD_BYTES_MAX: usize = 16 * 1_024;
