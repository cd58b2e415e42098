//! A response's body on its way into a stream: never more than the client's windows have room for, in frames that fill a
//! record each.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::{Reason, SendStream};
use kettle_cache::{FillState, Progress};
use kettle_http::range::ByteRange;
use kettle_tls::stream::StreamError;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::{FRAME_BYTES_MAX, Shared};
use crate::deliver::{self, DeliveryError, FileBytes};
use crate::limits::{LazyDeadline, Pace};
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
    deadline: &'s LazyDeadline<'s>,
    write_timeout: Duration,
    /// Unless only its end will tell.
    left_bytes: Option<u64>,
    sent_bytes: u64,
    /// The least rate of the connection, as long as this body keeps a server busy.
    pace: Option<Pace>,
}

/// Bytes of a file that count for their connection until they are sealed.
struct Held {
    bytes: FileBytes,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        self.bytes.bytes()
    }
}

impl<'s> Outgoing<'s> {
    pub(super) fn new(
        shared: &'s Shared,
        worker: &'s WorkerState,
        stream: SendStream<Bytes>,
        deadline: &'s LazyDeadline<'s>,
        write_timeout: Duration,
    ) -> Self {
        let (left_bytes, sent_bytes) = (None, 0);
        let pace = None;
        Self { shared, worker, stream, deadline, write_timeout, left_bytes, sent_bytes, pace }
    }

    /// How much of the body the library has taken.
    pub(super) fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Ends the stream before its end.
    pub(super) fn cut(mut self, reason: Reason) {
        self.stream.send_reset(reason);
    }

    /// Sends a body, and ends the stream with it.
    pub(super) async fn send(&mut self, body: &mut Body) -> Result<(), DeliveryError> {
        self.left_bytes = body.length();
        match body {
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
        self.stream.send_data(Bytes::new(), true).map_err(|_| gone())
    }

    /// Passes on what a server sends, each piece before the next is taken in.
    async fn upstream(&mut self, body: &mut UpstreamBody) -> Result<(), DeliveryError> {
        self.pace = Some(Pace::new(self.write_timeout));
        loop {
            let limit = body.timeout();
            let stream = &mut self.stream;
            // Nobody waits for a server for the sake of a client that has gone.
            let next = poll_fn(|context| match body.poll_chunk(context) {
                Poll::Ready(next) => Poll::Ready(next.map_err(cut_short)),
                Poll::Pending => stream.poll_reset(context).map(|_| Err(gone())),
            });
            match timeout(limit, next).await.unwrap_or_else(|_| Err(cut_short(TimedOut)))? {
                Some(bytes) => {
                    self.pace = self.pace.filter(|_| !body.is_over());
                    self.memory(bytes).await?;
                }
                None if self.left_bytes.is_some() => return Ok(()),
                None => return self.end(),
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
                return Err(cut_short(io::ErrorKind::UnexpectedEof));
            } else {
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

    async fn file(&mut self, file: &Arc<OpenFile>, span: ByteRange) -> Result<(), DeliveryError> {
        let (mut offset, end) = (span.start, span.start + span.bytes);
        while offset < end {
            let left_bytes = usize::try_from(end - offset).unwrap_or(usize::MAX);
            let room = self.room(left_bytes.min(PIECE_BYTES)).await?;
            let permits = u32::try_from(room).unwrap_or(u32::MAX);
            let permit = Arc::clone(&self.shared.file_bytes).acquire_many_owned(permits).await;
            let permit = permit.map_err(|_| gone())?;
            let read = deliver::read(self.worker, file, offset, room as u64).await;
            let bytes = read.map_err(DeliveryError::BodyCutShort)?;
            offset += bytes.bytes().len() as u64;
            self.frames(Bytes::from_owner(Held { bytes, _permit: permit }))?;
        }
        Ok(())
    }

    /// Waits until the client's windows have room for some of the bytes wanted, and says for how many. A client that gives
    /// none for too long is given up, unless others of its streams go on: then it has more patience, not without end.
    async fn room(&mut self, wanted: usize) -> Result<usize, DeliveryError> {
        let wanted = wanted.min(PIECE_BYTES);
        self.stream.reserve_capacity(wanted);
        let mut waits = 0;
        loop {
            let room = self.stream.capacity().min(wanted);
            if room > 0 {
                let granted = &self.shared.granted_bytes;
                granted.set(granted.get() + room as u64);
                return Ok(room);
            }
            let before = self.shared.granted_bytes.get();
            let stream = &mut self.stream;
            let deadline = self.deadline.get();
            let pace = self.pace.as_mut();
            let takes = |context: &mut Context<'_>| (stream.poll_capacity(context), 0);
            let granted = deadline.paced(self.write_timeout, pace, 0, takes).await;
            if let Some(pace) = &mut self.pace {
                // What other streams of the connection get counts for this one: it may be their turn.
                pace.took(self.shared.granted_bytes.get() - before + self.stream.capacity() as u64);
            }
            match granted {
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(_)) | None) => return Err(gone()),
                Err(_) if waits < WAITS_MAX && self.shared.granted_bytes.get() != before => {
                    waits += 1;
                }
                Err(_) => return Err(DeliveryError::Stalled),
            }
        }
    }

    fn frames(&mut self, mut bytes: Bytes) -> Result<(), DeliveryError> {
        while !bytes.is_empty() {
            let frame = bytes.split_to(bytes.len().min(FRAME_BYTES_MAX));
            let frame_bytes = frame.len() as u64;
            self.left_bytes = self.left_bytes.map(|left| left.saturating_sub(frame_bytes));
            self.stream.send_data(frame, self.left_bytes == Some(0)).map_err(|_| gone())?;
            self.sent_bytes += frame_bytes;
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

/// What is asked for and read at a time: two full frames, which seal well together.
pub(super) const PIECE_BYTES: usize = 2 * FRAME_BYTES_MAX;

/// How often a stream outlasts the time in which it got nothing while others did.
const WAITS_MAX: u32 = 10;
