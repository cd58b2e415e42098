//! The body of a request that is one stream of many (HTTP/2): what the client may send ahead is bounded by the stream's
//! window, which opens again as the body is taken.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use kettle_http::h1::framing::BodyFraming;
use kettle_http::h2::{ErrorCode, Incoming};
use kettle_runtime::deadlines::{Interrupt, Stage};
use tokio::sync::Semaphore;

use super::{BodyError, Reading, StreamSource, patience};

/// One stream of many, as far as its request asks for it. The edge of the protocol that has streams hands it over.
pub trait RequestStream {
    /// Takes what comes next of the request's body. The client gets room for as much when the next is asked for.
    fn poll_incoming(&self, context: &mut Context<'_>) -> Poll<Result<Incoming, StreamClosed>>;

    /// True if some of the request's body ever came.
    fn has_body_begun(&self) -> bool;

    /// True while a note of what was [passed on](Self::note_passed_on) is of use.
    fn is_probing(&self) -> bool;

    /// Notes that all that was given out of the request's body has been passed on. The client may get more room for that.
    fn note_passed_on(&self);

    /// Returns the tick at which the client could last send no body, whatever it did; `ticks` is now.
    fn shut_ticks(&self, ticks: u32) -> Option<u32>;

    /// Ready when nobody listens any more.
    fn poll_gone(&self, context: &mut Context<'_>) -> Poll<()>;

    /// Ready when nobody listens any more, or the client has ended its connection: for one that has gone no server is kept busy.
    fn poll_left(&self, context: &mut Context<'_>) -> Poll<()>;

    /// Sends the head of an interim response, of which HTTP/1.1 would write these lines.
    ///
    /// # Errors
    /// [`StreamClosed`].
    fn send_interim(&self, status: u16, lines: &[u8]) -> Result<(), StreamClosed>;

    /// Returns where to take a permit before a body is made as a whole.
    fn body_permits(&self) -> &Arc<Semaphore>;
}

/// Nobody listens any more: the client took its request back, or the connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamClosed;

impl From<ErrorCode> for StreamClosed {
    fn from(_: ErrorCode) -> Self {
        Self
    }
}

impl From<StreamClosed> for io::Error {
    fn from(_: StreamClosed) -> Self {
        io::ErrorKind::ConnectionReset.into()
    }
}

impl StreamSource<'_> {
    /// Takes in the next data, and returns its length; `None` at the end. The client gets room for as much when the next is asked
    /// for.
    pub(super) async fn next(
        &mut self,
        Reading { total_bytes, waited, .. }: Reading<'_>,
        bytes_max: u64,
        stage: Stage,
    ) -> Result<Option<usize>, BodyError> {
        // A body that nobody wants earns no time.
        let earning_bytes = if stage == Stage::Idle { 0 } else { *total_bytes };
        let next = self.incoming(stage, waited, earning_bytes).await?;
        let Some(next) = next else { return Ok(None) };
        *total_bytes = total_bytes.saturating_add(next.len() as u64);
        if *total_bytes > bytes_max {
            return Err(BodyError::TooLong);
        }
        self.data = next;
        Ok(Some(self.data.len()))
    }

    /// Reads past the rest. The rest of it after that is of no interest.
    pub(super) async fn discard(
        &mut self,
        Reading { framing, reader, total_bytes, waited }: Reading<'_>,
        is_awaited: bool,
    ) -> Result<(), BodyError> {
        if is_awaited {
            return Ok(());
        }
        let bytes_max = total_bytes.saturating_add(self.discard_bytes_max);
        if matches!(framing, BodyFraming::Length(bytes) if bytes > bytes_max) {
            return Err(BodyError::TooLong);
        }
        *waited = Duration::ZERO;
        loop {
            let reading = Reading { framing, reader, total_bytes, waited };
            if self.next(reading, bytes_max, Stage::Idle).await?.is_none() {
                return Ok(());
            }
            self.data = Bytes::new();
        }
    }

    /// Returns the next piece. `waited` grows by how long the client was waited for, after so many bytes.
    async fn incoming(
        &mut self,
        stage: Stage,
        waited: &mut Duration,
        bytes: u64,
    ) -> Result<Option<Bytes>, BodyError> {
        let deadline = self.deadline.get();
        loop {
            let patience = patience(self.timeout, *waited, bytes).ok_or(BodyError::TimedOut)?;
            let began = Instant::now();
            let began_ticks = deadline.ticks();
            deadline.extend(patience);
            let next = deadline.wait(stage, |context| self.stream.poll_incoming(context)).await;
            // A client without a window, or one that is not listened to, cannot send, which need not be its fault. But some clients
            // make sure that they never can, so this time counts too, only less.
            let was_shut =
                self.stream.shut_ticks(deadline.ticks()).is_some_and(|ticks| ticks >= began_ticks);
            *waited += began.elapsed() / if was_shut { SHUT_WEIGHT } else { 1 };
            match next {
                Err(Interrupt::Expired) if was_shut => {}
                Err(_) => return Err(BodyError::TimedOut),
                Ok(Err(StreamClosed)) => return Err(BodyError::Ended),
                Ok(Ok(Incoming::End(trailers))) => {
                    self.trailers = trailers.map_err(BodyError::Malformed)?;
                    return Ok(None);
                }
                Ok(Ok(Incoming::Data(data))) => return Ok(Some(data.into())),
            }
        }
    }

    /// Sends the head of an interim response, written as for HTTP/1.1.
    ///
    /// # Errors
    /// [`BodyError::Ended`]: it has no status, or nobody listens.
    pub(super) fn send_interim(&self, head: &[u8]) -> Result<(), BodyError> {
        let status = head.split(|byte| *byte == b' ').nth(1);
        let status = status.and_then(|word| str::from_utf8(word).ok()?.parse().ok());
        let sent = self.stream.send_interim(status.ok_or(BodyError::Ended)?, head);
        sent.map_err(|StreamClosed| BodyError::Ended)
    }
}

/// Time in which a client cannot send counts less than time of silence, by so much.
const SHUT_WEIGHT: u32 = 8;
