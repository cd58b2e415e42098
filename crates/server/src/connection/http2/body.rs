//! A response's body on its way into a stream: never more than the client's windows have room for, in frames that fill a
//! record each.

mod beside;

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use kettle_http::h2::{ErrorCode, Priority};
use kettle_http::range::ByteRange;
use kettle_tls::stream::StreamError;
use tokio::time::timeout;

use crate::deadlines::{Deadline, Interrupt, Pace};
use crate::deliver::{self, DeliveryError, cut_short};
use crate::http2::{Gone, InLine, PIECE_BYTES, Stream};
use crate::open_file::OpenFile;
use crate::request::{Beside, OfStream};
use crate::response::{Body, Growing, GrowingNext, Part};
use crate::upstream::UpstreamBody;
use crate::upstream::UpstreamError::TimedOut;
use crate::worker_state::WorkerState;

/// Our half of a stream, from its head on.
pub(super) struct Outgoing<'s> {
    worker: &'s WorkerState,
    stream: &'s Stream,
    deadline: &'s Deadline,
    write_timeout: Duration,
    priority: Priority,
    /// Its place before others, as long as nothing but them keeps it waiting.
    place: Option<InLine>,
    /// Unless only its end will tell.
    left_bytes: Option<u64>,
    /// The least rate of the connection, as long as this body keeps a server busy.
    pace: Option<Pace>,
    /// The rest of its request, if that goes on beside it.
    request: Option<Beside<'s, OfStream<'s>>>,
}

impl<'s> Outgoing<'s> {
    pub(super) fn new(
        worker: &'s WorkerState,
        stream: &'s Stream,
        deadline: &'s Deadline,
        write_timeout: Duration,
        priority: Priority,
        request: Option<Beside<'s, OfStream<'s>>>,
    ) -> Self {
        Self {
            worker,
            stream,
            deadline,
            write_timeout,
            priority,
            place: None,
            left_bytes: None,
            pace: None,
            request,
        }
    }

    /// Ends the stream before its end, once the kernel has what was sent of it.
    pub(super) async fn cut(mut self) {
        (self.place, self.pace) = (None, None);
        let stream = self.stream;
        let _ = self.patiently(|_, context| stream.poll_drained(context)).await;
        stream.reset(ErrorCode::INTERNAL_ERROR);
    }

    /// Sends a body, ends the stream with it, and waits until the kernel has all that.
    pub(super) async fn send(&mut self, body: &mut Body) -> Result<(), DeliveryError> {
        self.left_bytes = body.length();
        self.write(body).await?;
        self.place = None;
        // What is written keeps no server busy any more.
        self.pace = None;
        let stream = self.stream;
        self.patiently(|_, context| match stream.poll_sent(context) {
            Poll::Ready(true) => Poll::Ready(Ok(())),
            Poll::Ready(false) => Poll::Ready(Err(Gone)),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    async fn write(&mut self, body: &mut Body) -> Result<(), DeliveryError> {
        match body {
            // The head was the end of it.
            _ if self.left_bytes == Some(0) => Ok(()),
            Body::Empty => Ok(()),
            Body::Memory(bytes) => self.memory(bytes).await,
            Body::File { file, span } => self.file(file, *span).await,
            Body::Parts(parts) => {
                for part in parts {
                    match part {
                        Part::Memory(bytes) => self.memory(bytes).await?,
                        Part::File { file, span } => self.file(file, *span).await?,
                    }
                }
                Ok(())
            }
            Body::Growing(body) => self.growing(body).await,
            Body::Upstream(body) => self.upstream(body).await,
        }
    }

    /// Ends a body of unknown length, with lines of trailers.
    fn end_with(&mut self, trailers: &[u8]) -> Result<(), DeliveryError> {
        let ended = match trailers.is_empty() {
            true => self.stream.end(),
            false => self.stream.send_trailers(trailers),
        };
        ended.map_err(gone)
    }

    /// Passes on what a server sends, each piece before the next is taken in.
    async fn upstream(&mut self, body: &mut UpstreamBody) -> Result<(), DeliveryError> {
        self.pace = Some(Pace::new(self.write_timeout));
        if let Some(mut request) = self.request.take()
            && self.send_beside(body, &mut request).await?
        {
            return self.end_upstream(body);
        }
        loop {
            let limit = body.timeout();
            let next = self.unless_gone(limit, |context| body.poll_chunk(context)).await;
            let Some(next) = next else {
                // It is not kept busy while the client takes what came.
                body.cut();
                return Err(cut_short(TimedOut));
            };
            match next? {
                Some(bytes) => {
                    self.pace = self.pace.filter(|_| !body.is_over());
                    self.memory(&bytes).await?;
                }
                None => return self.end_upstream(body),
            }
        }
    }

    fn end_upstream(&mut self, body: &mut UpstreamBody) -> Result<(), DeliveryError> {
        match self.left_bytes {
            Some(_) => Ok(()),
            None => self.end_with(&body.take_trailers()),
        }
    }

    /// Passes on what is in a file that grows, and waits for more of it.
    async fn growing(&mut self, body: &mut Growing) -> Result<(), DeliveryError> {
        let mut sent = 0;
        loop {
            match body.next(sent).map_err(cut_short)? {
                GrowingNext::Bytes(span) => {
                    self.file(&body.file, span).await?;
                    sent += span.bytes;
                }
                GrowingNext::Later { filled } => {
                    let patience = body.patience;
                    let more = |context: &mut Context<'_>| {
                        body.poll_more(context, filled).map(Ok::<_, io::Error>)
                    };
                    let more = self.unless_gone(patience, more).await;
                    more.unwrap_or_else(|| Err(cut_short(io::ErrorKind::TimedOut)))?;
                }
                GrowingNext::End if body.bytes.is_some() => return Ok(()),
                GrowingNext::End => return self.end_with(&[]),
            }
        }
    }

    /// Waits so long for what the body is made from, but not for the sake of a client that has gone, and out of the line.
    async fn unless_gone<T, E: Into<io::Error>>(
        &mut self,
        limit: Duration,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<Result<T, E>>,
    ) -> Option<Result<T, DeliveryError>> {
        let (stream, place) = (self.stream, &mut self.place);
        let next = poll_fn(|context| match poll(context) {
            Poll::Ready(next) => Poll::Ready(next.map_err(cut_short)),
            Poll::Pending => {
                *place = None;
                stream.poll_left(context).map(|()| Err(gone(Gone)))
            }
        });
        timeout(limit, next).await.ok()
    }

    async fn memory(&mut self, mut bytes: &[u8]) -> Result<(), DeliveryError> {
        while !bytes.is_empty() {
            let room_bytes = self.room(bytes.len()).await?;
            let (piece, rest) = bytes.split_at(room_bytes.min(bytes.len()));
            self.send_piece(piece)?;
            bytes = rest;
        }
        Ok(())
    }

    async fn file(&mut self, file: &Arc<OpenFile>, span: ByteRange) -> Result<(), DeliveryError> {
        let (mut offset, end) = (span.start, span.start + span.bytes);
        while offset < end {
            let left_bytes = usize::try_from(end - offset).unwrap_or(usize::MAX);
            let wanted_bytes = left_bytes.min(PIECE_BYTES);
            let room_bytes = self.room(wanted_bytes).await?;
            let read = deliver::read_here(self.worker, file, offset, room_bytes as u64);
            match read.map_err(cut_short)? {
                Some(read) => {
                    self.send_piece(read.bytes())?;
                    offset += read.bytes().len() as u64;
                }
                // Boxed as a wait for the disk is: what it needs would be part of every stream.
                None => offset += Box::pin(self.slow_piece(file, offset, wanted_bytes)).await?,
            }
        }
        Ok(())
    }

    /// Sends a piece for which a thread has to wait, and returns its length. Until it is there the windows and the line are the
    /// others'; by then the client may have taken room back, or others may be before it.
    async fn slow_piece(
        &mut self,
        file: &Arc<OpenFile>,
        offset: u64,
        wanted_bytes: usize,
    ) -> Result<u64, DeliveryError> {
        self.place = None;
        let (stream, priority) = (self.stream, self.priority);
        let _memory = self
            .patiently(|place, context| {
                stream.poll_read_memory(context, place, priority, wanted_bytes)
            })
            .await?;
        let read = deliver::read_on_thread(self.worker, file, offset, wanted_bytes as u64).await;
        let read = read.map_err(cut_short)?;
        self.memory(read.bytes()).await?;
        Ok(read.bytes().len() as u64)
    }

    fn send_piece(&mut self, piece: &[u8]) -> Result<(), DeliveryError> {
        let piece_bytes = piece.len() as u64;
        self.left_bytes = self.left_bytes.map(|left| left.saturating_sub(piece_bytes));
        self.stream.send(piece, self.left_bytes == Some(0)).map_err(gone)
    }

    /// Waits until there is room for some of the bytes wanted, and nobody is before it.
    async fn room(&mut self, wanted_bytes: usize) -> Result<usize, DeliveryError> {
        let (stream, priority) = (self.stream, self.priority);
        let room_bytes = self
            .patiently(|place, context| stream.poll_room(context, place, priority, wanted_bytes))
            .await?;
        if let Some(pace) = &mut self.pace {
            pace.took(room_bytes as u64);
        }
        Ok(room_bytes)
    }

    /// Waits for what depends on the client. One that lets nothing through for too long is given up, unless others of its
    /// streams go on: then it has more patience, not without end.
    async fn patiently<T>(
        &mut self,
        mut poll: impl FnMut(&mut Option<InLine>, &mut Context<'_>) -> Poll<Result<T, Gone>>,
    ) -> Result<T, DeliveryError> {
        let mut waits = 0;
        loop {
            let (sent_bytes, written_bytes) =
                (self.stream.sent_bytes(), self.stream.written_bytes_of_all());
            let place = &mut self.place;
            let pace_left = |pace: &Option<Pace>| pace.map_or(Duration::MAX, |pace| pace.left());
            let (limit, ticks) =
                (self.write_timeout.min(pace_left(&self.pace)), self.deadline.ticks());
            let outcome = self.deadline.within(limit, |context| poll(place, context)).await;
            if let Some(pace) = &mut self.pace {
                pace.waited(self.deadline.ticks().saturating_sub(ticks));
                // What other streams of the connection get counts for this one: it may be their turn.
                pace.took(self.stream.written_bytes_of_all() - written_bytes);
            }
            match outcome {
                Ok(outcome) => return outcome.map_err(gone),
                // It comes at once each time.
                Err(interrupt @ Interrupt::Draining) => return Err(interrupt.into()),
                Err(Interrupt::Expired) => {}
            }
            let others_go_on = self.stream.written_bytes_of_all() != written_bytes;
            match () {
                () if pace_left(&self.pace).is_zero() => return Err(DeliveryError::Stalled),
                () if self.stream.sent_bytes() != sent_bytes => waits = 0,
                // The connection has a deadline for that.
                () if self.stream.channel().is_blocked() => {}
                // It is their turn, and may be for long.
                () if others_go_on && self.place.is_some() => {}
                () if others_go_on && waits < WAITS_MAX => waits += 1,
                () => return Err(DeliveryError::Stalled),
            }
        }
    }
}

/// The client took its request back, or the connection is over.
fn gone(gone: Gone) -> DeliveryError {
    DeliveryError::Stream(StreamError::Io(gone.into()))
}

/// How often a stream outlasts the time in which it got nothing while others did.
const WAITS_MAX: u32 = 10;

#[cfg(test)]
mod tests;
