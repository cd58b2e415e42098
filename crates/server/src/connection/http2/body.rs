//! A response's body on its way into a stream: never more than the client's windows have room for, in frames that fill a
//! record each.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::{Reason, SendStream};
use kettle_cache::{FillState, Progress};
use kettle_http::range::ByteRange;
use kettle_tls::stream::StreamError;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::priority::{InLine, Priority};
use super::{FRAME_BYTES_MAX, Shared};
use crate::deliver::{self, DeliveryError, FileBytes};
use crate::http2::{Held, OutboundStream, PIECE_BYTES, trailer_fields};
use crate::limits::{Deadline, Pace};
use crate::open_file::OpenFile;
use crate::response::{Body, Growing, Part};
use crate::upstream::UpstreamBody;
use crate::upstream::UpstreamError::TimedOut;
use crate::worker_state::WorkerState;

/// Our half of a stream, from its head on.
pub(super) struct Outgoing<'s> {
    shared: &'s Shared,
    worker: &'s WorkerState,
    stream: SendStream<Bytes>,
    outbound: &'s OutboundStream,
    deadline: &'s Deadline,
    write_timeout: Duration,
    priority: Priority,
    /// Its place before others, as long as nothing but them keeps it waiting.
    place: Option<InLine<'s>>,
    is_in_line: bool,
    /// Unless only its end will tell.
    left_bytes: Option<u64>,
    /// What the library was given.
    queued_bytes: u64,
    /// The least rate of the connection, as long as this body keeps a server busy.
    pace: Option<Pace>,
}

impl AsRef<[u8]> for Held<FileBytes> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.bytes()
    }
}

/// What was so when a wait began; a wait that changes none of it was for nothing.
#[derive(PartialEq, Eq)]
struct Standing {
    queued_bytes: u64,
    sealed_bytes: u64,
    sent_bytes: u64,
}

impl<'s> Outgoing<'s> {
    pub(super) fn new(
        shared: &'s Shared,
        worker: &'s WorkerState,
        stream: SendStream<Bytes>,
        outbound: &'s OutboundStream,
        deadline: &'s Deadline,
        write_timeout: Duration,
        priority: Priority,
    ) -> Self {
        let (place, is_in_line, left_bytes, queued_bytes, pace) = (None, false, None, 0, None);
        Self {
            shared,
            worker,
            stream,
            outbound,
            deadline,
            write_timeout,
            priority,
            place,
            is_in_line,
            left_bytes,
            queued_bytes,
            pace,
        }
    }

    /// Ends the stream before its end, but behind what was sent of it.
    pub(super) async fn cut(mut self) {
        let (outbound, queued_bytes) = (self.outbound, self.queued_bytes);
        (self.place, self.pace) = (None, None);
        let _ = self
            .patiently(|stream, context| match outbound.poll_sealed(queued_bytes, context) {
                Poll::Ready(()) => Poll::Ready(Ok(())),
                Poll::Pending => stream.poll_reset(context).map(|_| Err(gone())),
            })
            .await;
        self.reset(Reason::INTERNAL_ERROR);
    }

    /// Ends the stream at once.
    pub(super) fn reset(mut self, reason: Reason) {
        self.stream.send_reset(reason);
    }

    /// Sends a body, ends the stream with it, and waits until the kernel has all that.
    pub(super) async fn send(&mut self, body: &mut Body) -> Result<(), DeliveryError> {
        self.left_bytes = body.length();
        self.queue(body).await?;
        self.place = None;
        // What is queued keeps no server busy any more.
        self.pace = None;
        let outbound = self.outbound;
        self.patiently(|stream, context| match outbound.poll_sent(context) {
            Poll::Ready(true) => Poll::Ready(Ok(())),
            Poll::Ready(false) => Poll::Ready(Err(gone())),
            Poll::Pending => stream.poll_reset(context).map(|_| Err(gone())),
        })
        .await
    }

    async fn queue(&mut self, body: &mut Body) -> Result<(), DeliveryError> {
        match body {
            // The head was the end of it.
            _ if self.left_bytes == Some(0) => Ok(()),
            Body::Empty => Ok(()),
            Body::Memory(bytes) => self.memory(bytes.clone()).await,
            Body::File { file, span } => self.file(file, *span).await,
            Body::Parts(parts) => {
                for part in parts {
                    match part {
                        Part::Memory(bytes) => self.memory(bytes.clone()).await?,
                        Part::File { file, span } => self.file(file, *span).await?,
                    }
                }
                Ok(())
            }
            Body::Growing(body) => self.growing(body).await,
            Body::Upstream(body) => self.upstream(body).await,
            // Nobody asked for it: HTTP/2 has no `upgrade`.
            Body::Upgraded(_) => Err(gone()),
        }
    }

    /// Ends a body of unknown length.
    fn end(&mut self) -> Result<(), DeliveryError> {
        self.end_with(Vec::new())
    }

    /// The same with lines of trailers.
    fn end_with(&mut self, trailers: Vec<u8>) -> Result<(), DeliveryError> {
        let ended = match trailers.is_empty() {
            true => self.stream.send_data(Bytes::new(), true),
            false => self.stream.send_trailers(trailer_fields(trailers)),
        };
        ended.map_err(|_| gone())
    }

    /// Passes on what a server sends, each piece before the next is taken in.
    async fn upstream(&mut self, body: &mut UpstreamBody) -> Result<(), DeliveryError> {
        self.pace = Some(Pace::new(self.write_timeout));
        loop {
            let limit = body.timeout();
            let (stream, place) = (&mut self.stream, &mut self.place);
            // Nobody waits for a server for the sake of a client that has gone.
            let next = poll_fn(|context| match body.poll_chunk(context) {
                Poll::Ready(next) => Poll::Ready(next.map_err(cut_short)),
                Poll::Pending => {
                    *place = None;
                    stream.poll_reset(context).map(|_| Err(gone()))
                }
            });
            let Ok(next) = timeout(limit, next).await else {
                // It is not kept busy while the client takes what came.
                body.cut();
                return Err(cut_short(TimedOut));
            };
            match next? {
                Some(bytes) => {
                    self.pace = self.pace.filter(|_| !body.is_over());
                    self.passing(bytes).await?;
                }
                None if self.left_bytes.is_some() => return Ok(()),
                None => return self.end_with(body.take_trailers()),
            }
        }
    }

    /// Passes on what is in a file that grows, and waits for more of it.
    async fn growing(&mut self, body: &Growing) -> Result<(), DeliveryError> {
        let (mut sent, mut waiting) = (0, body.fill.wait());
        loop {
            let Progress { filled, state } = body.fill.progress();
            let there = filled.saturating_sub(body.start).min(body.bytes.unwrap_or(u64::MAX));
            if there > sent {
                let start = body.fill.body_offset() + body.start + sent;
                self.file(&body.file, ByteRange { start, bytes: there - sent }).await?;
                sent = there;
            } else if body.bytes == Some(there) {
                return Ok(());
            } else if state == FillState::Complete && body.bytes.is_none() {
                return self.end();
            } else if state != FillState::Growing {
                return Err(cut_short(Growing::cut(state)));
            } else {
                self.place = None;
                let stream = &mut self.stream;
                let more = poll_fn(|context| match waiting.poll(context, filled) {
                    Poll::Ready(_) => Poll::Ready(Ok(())),
                    Poll::Pending => stream.poll_reset(context).map(|_| Err(gone())),
                });
                let more = timeout(body.patience, more).await;
                more.unwrap_or_else(|_| Err(cut_short(io::ErrorKind::TimedOut)))?;
            }
        }
    }

    async fn memory(&mut self, mut bytes: Bytes) -> Result<(), DeliveryError> {
        while !bytes.is_empty() {
            let room = self.room(bytes.len()).await?;
            self.frames(bytes.split_to(room))?;
        }
        Ok(())
    }

    /// Sends what came from a server, of which nothing is to pile up either.
    async fn passing(&mut self, bytes: Bytes) -> Result<(), DeliveryError> {
        // A few bytes would keep the whole buffer that they were received into.
        let is_small = bytes.len() < COPIED_BYTES_MAX;
        let mut bytes = if is_small { Bytes::copy_from_slice(&bytes) } else { bytes };
        while !bytes.is_empty() {
            let room = self.room(bytes.len()).await?;
            let permit = self.permit(room).await?;
            let bytes = bytes.split_to(room);
            self.frames(Bytes::from_owner(Held { bytes, _permit: permit }))?;
        }
        Ok(())
    }

    async fn file(&mut self, file: &Arc<OpenFile>, span: ByteRange) -> Result<(), DeliveryError> {
        let (mut offset, end) = (span.start, span.start + span.bytes);
        while offset < end {
            let left_bytes = usize::try_from(end - offset).unwrap_or(usize::MAX);
            let room = self.room(left_bytes.min(PIECE_BYTES)).await?;
            let permit = self.permit(room).await?;
            let mut read = pin!(deliver::read(self.worker, file, offset, room as u64));
            let read = poll_fn(|context| {
                let read = read.as_mut().poll(context);
                if read.is_pending() {
                    self.place = None;
                }
                read
            });
            let bytes = read.await.map_err(DeliveryError::BodyCutShort)?;
            offset += bytes.bytes().len() as u64;
            self.frames(Bytes::from_owner(Held { bytes, _permit: permit }))?;
        }
        Ok(())
    }

    /// Waits until the library may hold so many bytes more, and nobody is before it who waits for the same.
    async fn permit(&mut self, bytes: usize) -> Result<OwnedSemaphorePermit, DeliveryError> {
        let permits = u32::try_from(bytes).unwrap_or(u32::MAX);
        let Shared { body_bytes, line, .. } = self.shared;
        if line.is_empty()
            && let Ok(permit) = Arc::clone(body_bytes).try_acquire_many_owned(permits)
        {
            return Ok(permit);
        }
        let place = self.place.take();
        let enter = || line.enter(self.priority, self.stream.stream_id().as_u32());
        let place = place.unwrap_or_else(enter);
        let mut permit = pin!(Arc::clone(body_bytes).acquire_many_owned(permits));
        self.is_in_line = true;
        let mut is_asking = false;
        let permit = self
            .patiently(|stream, context| {
                // Who has once asked may be given some at any time, and must not keep it from who came before it since.
                is_asking = is_asking || place.poll_first(context).is_ready();
                if is_asking && let Poll::Ready(permit) = permit.as_mut().poll(context) {
                    return Poll::Ready(permit.map_err(|_| gone()));
                }
                stream.poll_reset(context).map(|_| Err(gone()))
            })
            .await;
        self.is_in_line = false;
        self.place = Some(place).filter(|_| !self.priority.is_incremental);
        permit
    }

    /// Waits until the client's windows have room for some of the bytes wanted, and says for how many.
    async fn room(&mut self, wanted: usize) -> Result<usize, DeliveryError> {
        let wanted = wanted.min(PIECE_BYTES);
        self.stream.reserve_capacity(wanted);
        if self.stream.capacity() == 0 {
            self.place = None;
        }
        let (outbound, queued_bytes) = (self.outbound, self.queued_bytes);
        let room = self
            .patiently(|stream, context| {
                loop {
                    match stream.capacity().min(wanted) {
                        0 if outbound.is_shut(queued_bytes) => return Poll::Ready(Err(gone())),
                        0 => {}
                        room => return Poll::Ready(Ok(room)),
                    }
                    let Some(Ok(_)) = ready!(stream.poll_capacity(context)) else {
                        return Poll::Ready(Err(gone()));
                    };
                }
            })
            .await?;
        let granted = &self.shared.granted_bytes;
        granted.set(granted.get() + room as u64);
        if let Some(pace) = &mut self.pace {
            pace.took(room as u64);
        }
        Ok(room)
    }

    /// Waits for what depends on the client. One that lets nothing through for too long is given up, unless others of its
    /// streams go on: then it has more patience, not without end.
    async fn patiently<T>(
        &mut self,
        mut poll: impl FnMut(&mut SendStream<Bytes>, &mut Context<'_>) -> Poll<Result<T, DeliveryError>>,
    ) -> Result<T, DeliveryError> {
        let mut waits = 0;
        loop {
            let (before, granted) = (self.standing(), self.shared.granted_bytes.get());
            let rounds = self.outbound.rounds();
            let (stream, outbound) = (&mut self.stream, self.outbound);
            let event = |context: &mut Context<'_>| match poll(stream, context) {
                Poll::Pending => outbound.poll_sent(context).map(|_| Err(gone())),
                done => done,
            };
            let pace_left = |pace: &Option<Pace>| pace.map_or(Duration::MAX, |pace| pace.left());
            let (limit, ticks) =
                (self.write_timeout.min(pace_left(&self.pace)), self.deadline.ticks());
            let outcome = self.deadline.within(limit, event).await;
            if let Some(pace) = &mut self.pace {
                pace.waited(self.deadline.ticks().saturating_sub(ticks));
                // What other streams of the connection get counts for this one: it may be their turn.
                pace.took(self.shared.granted_bytes.get() - granted);
            }
            if let Ok(outcome) = outcome {
                return outcome;
            }
            let is_stuck =
                before.sealed_bytes < before.queued_bytes && self.outbound.rounds() != rounds;
            let others_go_on = self.shared.granted_bytes.get() != granted;
            match () {
                () if pace_left(&self.pace).is_zero() => return Err(DeliveryError::Stalled),
                () if self.standing() != before => waits = 0,
                // The connection has a deadline for that.
                () if self.outbound.is_blocked() => {}
                // The client took back the window for what the library holds.
                () if is_stuck => return Err(DeliveryError::Stalled),
                // It is their turn, and may be for long.
                () if others_go_on && self.is_in_line => {}
                () if others_go_on && waits < WAITS_MAX => waits += 1,
                () => return Err(DeliveryError::Stalled),
            }
        }
    }

    fn standing(&self) -> Standing {
        Standing {
            queued_bytes: self.queued_bytes,
            sealed_bytes: self.outbound.sealed_bytes(),
            sent_bytes: self.outbound.sent_bytes(),
        }
    }

    fn frames(&mut self, mut bytes: Bytes) -> Result<(), DeliveryError> {
        while !bytes.is_empty() {
            let frame = bytes.split_to(bytes.len().min(FRAME_BYTES_MAX));
            let frame_bytes = frame.len() as u64;
            self.left_bytes = self.left_bytes.map(|left| left.saturating_sub(frame_bytes));
            self.stream.send_data(frame, self.left_bytes == Some(0)).map_err(|_| gone())?;
            self.queued_bytes += frame_bytes;
        }
        Ok(())
    }
}

/// The client took its request back, or the connection is over.
fn gone() -> DeliveryError {
    DeliveryError::Stream(StreamError::Io(io::ErrorKind::ConnectionReset.into()))
}

fn cut_short(error: impl Into<io::Error>) -> DeliveryError {
    DeliveryError::BodyCutShort(error.into())
}

/// The most that is copied to let go of the buffer it came in.
const COPIED_BYTES_MAX: usize = PIECE_BYTES / 4;

/// How often a stream outlasts the time in which it got nothing while others did.
const WAITS_MAX: u32 = 10;
