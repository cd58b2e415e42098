//! Responses that begin before their request has ended, over HTTP/2: the rest of the request goes to the server while the
//! response goes to the client, until one of them is over.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout};

use super::{Outgoing, cut_short, gone};
use crate::deadlines::Pace;
use crate::deliver::{DeliveryError, request_passed};
use crate::http2::Gone;
use crate::request::{Beside, OfStream};
use crate::upstream::UpstreamBody;
use crate::upstream::UpstreamError::TimedOut;

/// What happened first.
enum NextPiece {
    /// The server sent this; nothing is the end of its response.
    Piece(Option<Bytes>),
    /// Something of the request moved on.
    Moved,
    /// Nothing did, in the time that the client had in hand; it had no window for so long.
    Waited,
    /// The request is over.
    Passed,
}

impl Outgoing<'_> {
    /// Sends a body until it or the request is over, and says whether the body is.
    pub(super) async fn send_beside(
        &mut self,
        body: &mut UpstreamBody,
        request: &mut Beside<'_, OfStream<'_>>,
    ) -> Result<bool, DeliveryError> {
        let (mut is_request_first, mut silent_since) = (false, Instant::now());
        loop {
            let limit = body.timeout().saturating_sub(silent_since.elapsed());
            let next = self.next_beside(body, request, is_request_first, limit).await?;
            if !matches!(next, NextPiece::Waited) {
                silent_since = Instant::now();
            }
            // Neither waits until the other one has nothing more.
            is_request_first = matches!(next, NextPiece::Piece(_));
            match next {
                NextPiece::Moved | NextPiece::Waited => {}
                NextPiece::Passed => return Ok(false),
                NextPiece::Piece(None) => return Ok(true),
                NextPiece::Piece(Some(bytes)) => self.memory_beside(bytes, body, request).await?,
            }
        }
    }

    /// Waits for either side, for the server at most `limit`. Where only the client keeps the server waiting, it has to send at the
    /// least rate, unless it has no window for that.
    async fn next_beside(
        &mut self,
        body: &mut UpstreamBody,
        request: &mut Beside<'_, OfStream<'_>>,
        mut is_request_first: bool,
        limit: Duration,
    ) -> Result<NextPiece, DeliveryError> {
        let (moved_bytes, ticks) = (request.moved_bytes, self.deadline.ticks());
        let is_owed = request.waits_for_client();
        let owed = self.pace.as_ref().filter(|_| is_owed).map_or(limit, Pace::left).min(limit);
        let (stream, place) = (self.stream, &mut self.place);
        let next = poll_fn(|context| {
            if std::mem::take(&mut is_request_first)
                && let Poll::Ready(passed) = poll_request(body, request, context)
            {
                return Poll::Ready(passed.map(|()| NextPiece::Passed));
            }
            if let Poll::Ready(piece) = body.poll_chunk(context) {
                return Poll::Ready(piece.map(NextPiece::Piece).map_err(cut_short));
            }
            *place = None;
            match poll_request(body, request, context) {
                Poll::Ready(passed) => Poll::Ready(passed.map(|()| NextPiece::Passed)),
                // Also where nothing moved but what the server had taken is flushed: it is the client's turn from here on.
                Poll::Pending
                    if request.moved_bytes > moved_bytes
                        || request.waits_for_client() != is_owed =>
                {
                    Poll::Ready(Ok(NextPiece::Moved))
                }
                Poll::Pending => stream.poll_left(context).map(|()| Err(gone(Gone))),
            }
        });
        let next = timeout(owed, next).await;
        if let Some(pace) = &mut self.pace {
            let now = self.deadline.ticks();
            if is_owed && stream.shut_ticks(now).is_none_or(|shut| shut < ticks) {
                pace.waited(now.saturating_sub(ticks));
            }
            pace.took(request.moved_bytes - moved_bytes);
            // What the server sent is not lost by that.
            if pace.left().is_zero() && matches!(next, Ok(Ok(NextPiece::Moved)) | Err(_)) {
                return Err(DeliveryError::Stalled);
            }
        }
        match next {
            Ok(next) => next,
            Err(_) if owed < limit => Ok(NextPiece::Waited),
            Err(_) => {
                body.cut();
                Err(cut_short(TimedOut))
            }
        }
    }

    /// Sends what came; a client that first sends all and then opens its windows holds nothing up.
    async fn memory_beside(
        &mut self,
        mut bytes: Bytes,
        body: &mut UpstreamBody,
        request: &mut Beside<'_, OfStream<'_>>,
    ) -> Result<(), DeliveryError> {
        let (stream, priority) = (self.stream, self.priority);
        while !bytes.is_empty() {
            let (mut failed, moved_bytes) = (None, request.moved_bytes);
            let room = self.patiently(|place, context| {
                let room = stream.poll_room(context, place, priority, bytes.len());
                if room.is_pending() {
                    if let Poll::Ready(Err(error)) = poll_request(body, request, context) {
                        failed = Some(error);
                    }
                    // It sends: its time begins again.
                    if failed.is_some() || request.moved_bytes > moved_bytes {
                        return Poll::Ready(Ok(None));
                    }
                }
                room.map_ok(Some)
            });
            let room = room.await?;
            if let Some(error) = failed {
                return Err(error);
            }
            let room_bytes = room.unwrap_or(0);
            if let Some(pace) = &mut self.pace {
                pace.took(room_bytes as u64 + request.moved_bytes - moved_bytes);
            }
            self.send_piece(&bytes.split_to(room_bytes))?;
        }
        self.pace = self.pace.filter(|_| !body.is_over());
        Ok(())
    }
}

/// Passes on what the client sends. Ready when that is over.
fn poll_request(
    body: &mut UpstreamBody,
    request: &mut Beside<'_, OfStream<'_>>,
    context: &mut Context<'_>,
) -> Poll<Result<(), DeliveryError>> {
    let send = |context: &mut Context<'_>, left: &mut &[u8]| body.poll_send(context, left);
    let passed = request.poll_stream(context, send);
    passed.map(|passed| request_passed(passed, body))
}
