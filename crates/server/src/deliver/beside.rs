//! Responses that begin before their request has ended: the rest of the request goes to the server while the response goes to
//! the client, until one of them is over. Nothing is spliced meanwhile.

use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use kettle_http::h1::framing::BodyWriter;
use kettle_tls::stream::{StreamError, TlsStream};
use tokio::io::AsyncWrite;
use tokio::time::timeout;

use super::{Delivery, DeliveryError, cut_short};
use crate::deadlines::Pace;
use crate::request::{Beside, BodyError, OfConnection, Passed, departure};
use crate::upstream::{UpstreamBody, UpstreamError};

/// What happened first.
enum NextPiece {
    /// The server sent this; nothing is the end of its response.
    Piece(Option<Bytes>),
    /// Something of the request moved on.
    Moved,
    /// The request is over.
    Passed,
}

impl Delivery<'_> {
    /// Sends head and body until one of both directions is over, and says whether the response is.
    pub(super) async fn send_beside(
        &mut self,
        prefix: &mut Vec<u8>,
        body: &mut UpstreamBody,
        request: &mut Beside<'_, OfConnection<'_>>,
        writer: &mut BodyWriter,
    ) -> Result<bool, DeliveryError> {
        let (mut queued_bytes, mut is_request_first) = (0, false);
        loop {
            self.write_beside(prefix, body, request).await?;
            self.delivered.body_bytes += std::mem::take(&mut queued_bytes);
            let next = self.next_beside(body, request, is_request_first).await?;
            // Neither waits until the other one has nothing more.
            is_request_first = matches!(next, NextPiece::Piece(_));
            match next {
                NextPiece::Moved => {}
                NextPiece::Passed => return Ok(false),
                NextPiece::Piece(piece) => {
                    let data = piece.as_deref().unwrap_or_default();
                    writer.begin_piece(prefix, data.len());
                    prefix.extend_from_slice(data);
                    queued_bytes = data.len() as u64;
                    if piece.is_none() {
                        return Ok(true);
                    }
                    self.worker.send_turns.end().await;
                }
            }
        }
    }

    /// Waits for either side. Where only the client keeps the server waiting, it has to send at the least rate.
    async fn next_beside(
        &mut self,
        body: &mut UpstreamBody,
        request: &mut Beside<'_, OfConnection<'_>>,
        mut is_request_first: bool,
    ) -> Result<NextPiece, DeliveryError> {
        let (moved_bytes, ticks) = (request.moved_bytes, self.deadline.ticks());
        let is_owed = request.waits_for_client();
        let limit = body.timeout();
        let owed = self.pace.as_ref().filter(|_| is_owed).map_or(limit, Pace::left).min(limit);
        // While it is the server that has to take something, nothing is read of the client but whether it has gone.
        let (mut read, watched) = match is_owed {
            true => (Some(&mut *self.stream), None),
            false => (None, Some(&mut *self.stream)),
        };
        let next = poll_fn(|context| {
            let read = &mut read;
            if std::mem::take(&mut is_request_first)
                && let Poll::Ready(passed) =
                    poll_request(read.as_deref_mut(), body, request, context)
            {
                return Poll::Ready(passed.map(|()| NextPiece::Passed));
            }
            if let Poll::Ready(piece) = body.poll_chunk(context) {
                return Poll::Ready(piece.map(NextPiece::Piece).map_err(cut_short));
            }
            match poll_request(read.as_deref_mut(), body, request, context) {
                Poll::Ready(passed) => Poll::Ready(passed.map(|()| NextPiece::Passed)),
                // Also where nothing moved but what the server had taken is flushed: it is the client's turn from here on.
                Poll::Pending
                    if request.moved_bytes > moved_bytes
                        || request.waits_for_client() != is_owed =>
                {
                    Poll::Ready(Ok(NextPiece::Moved))
                }
                Poll::Pending => Poll::Pending,
            }
        });
        let gone = async {
            match watched {
                Some(client) => departure(client).await,
                None => pending().await,
            }
        };
        let next = async {
            tokio::select! {
                biased;
                next = next => next,
                error = gone => Err(error.into()),
            }
        };
        let next = timeout(owed, next).await;
        if let Some(pace) = &mut self.pace {
            if is_owed {
                pace.waited(self.deadline.ticks().saturating_sub(ticks));
            }
            pace.took(request.moved_bytes - moved_bytes);
            // What the server sent is not lost by that.
            if pace.left().is_zero() && matches!(next, Ok(Ok(NextPiece::Moved)) | Err(_)) {
                return Err(DeliveryError::Stalled);
            }
        }
        match next {
            Ok(next) => next,
            Err(_) if owed < limit => Ok(NextPiece::Moved),
            Err(_) => Err(cut_short(UpstreamError::TimedOut)),
        }
    }

    /// Sends what is written; a client that first sends all and then reads holds nothing up.
    async fn write_beside(
        &mut self,
        written: &mut Vec<u8>,
        body: &mut UpstreamBody,
        request: &mut Beside<'_, OfConnection<'_>>,
    ) -> Result<(), DeliveryError> {
        let mut left = written.as_slice();
        while !left.is_empty() || self.stream.queued_bytes() > 0 {
            let (mut failed, moved_bytes) = (None, request.moved_bytes);
            let write = |stream: &mut TlsStream, context: &mut Context<'_>| {
                let written = if left.is_empty() {
                    let flushed = stream.poll_flush(context).map_err(std::io::Error::from);
                    flushed.map(|flushed| flushed.map(|()| 0))
                } else {
                    Pin::new(&mut *stream).poll_write(context, left)
                };
                if written.is_pending() {
                    if let Poll::Ready(Err(error)) =
                        poll_request(Some(stream), body, request, context)
                    {
                        failed = Some(error);
                    }
                    // It sends: its time begins again.
                    if failed.is_some() || request.moved_bytes > moved_bytes {
                        return Poll::Ready(Ok(0));
                    }
                }
                written
            };
            let bytes = self.client_takes(write).await?.map_err(StreamError::from)?;
            self.has_begun |= bytes > 0;
            if let Some(error) = failed {
                return Err(error);
            }
            if self.stream.takes_plaintext() {
                self.note_taken(bytes);
            }
            if let Some(pace) = &mut self.pace {
                pace.took(request.moved_bytes - moved_bytes);
            }
            left = left.get(bytes..).unwrap_or_default();
        }
        written.clear();
        Ok(())
    }
}

/// Passes on what the client sends, or without it what was read of that. Ready when that is over.
fn poll_request(
    stream: Option<&mut TlsStream>,
    body: &mut UpstreamBody,
    request: &mut Beside<'_, OfConnection<'_>>,
    context: &mut Context<'_>,
) -> Poll<Result<(), DeliveryError>> {
    let send = |context: &mut Context<'_>, left: &mut &[u8]| body.poll_send(context, left);
    let passed = request.poll(stream, context, send);
    passed.map(|passed| request_passed(passed, body))
}

/// What follows for a response from what became of its request.
///
/// # Errors
/// [`DeliveryError`]: there is no end of it.
pub(crate) fn request_passed(
    passed: Result<Passed, BodyError>,
    body: &mut UpstreamBody,
) -> Result<(), DeliveryError> {
    match passed {
        Ok(Passed::Whole(may_keep)) => {
            body.request_is_whole(may_keep);
            Ok(())
        }
        Ok(Passed::Unwanted) => Ok(()),
        Err(BodyError::Stream(error)) => Err(error.into()),
        // The server must not take what it has for the whole, nor the client what comes of that.
        Err(error) => {
            body.cut();
            let (kind, text) = (std::io::ErrorKind::InvalidData, format!("its request: {error:?}"));
            Err(DeliveryError::BodyCutShort(std::io::Error::new(kind, text)))
        }
    }
}
