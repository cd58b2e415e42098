//! A response's body on its way into a stream, which is the client's side of its exchange: never more than the client's windows
//! have room for, in frames that fill a record each.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use kettle_exchange::request::{
    BodyError, ConcurrentUpload, PieceSource, RequestStream, StreamClosed,
};
use kettle_exchange::response::Body;
use kettle_http::h2::{ErrorCode, Incoming, Priority};
use kettle_kernel::bug;
use kettle_runtime::deadlines::{Interrupt, Pace};
use kettle_tls::stream::StreamError;
use kettle_upstream::{UpstreamBody, UpstreamError};
use tokio::time::{sleep, timeout};

use crate::deliver::{
    self, ClientSide, DeliveryError, FileBytes, PAUSE_SPARE, Piece, Remaining, Sending, Sent,
    cut_short, poll_meanwhile, read_here,
};
use crate::http2::{Http2Stream, PIECE_BYTES, QueuePlace, ReadMemory};

/// The stream, and where it stands among the others.
pub(super) struct StreamSide<'s> {
    stream: &'s Http2Stream,
    /// Its place before others, as long as nothing but them keeps it waiting.
    place: Option<QueuePlace>,
}

/// Our half of a stream, from its head on.
pub(super) struct Outgoing<'s> {
    sending: Sending<'s>,
    client: StreamSide<'s>,
    priority: Priority,
    /// Unless only its end will tell.
    left_bytes: Option<u64>,
}

impl<'s> Outgoing<'s> {
    pub(super) fn new(sending: Sending<'s>, stream: &'s Http2Stream, priority: Priority) -> Self {
        let client = StreamSide { stream, place: None };
        Self { sending, client, priority, left_bytes: None }
    }

    /// Ends the stream before its end, once the kernel has what was sent of it.
    pub(super) async fn cut(mut self) {
        (self.client.place, self.sending.pace) = (None, None);
        let drained =
            self.patiently(|client, context| client.stream.poll_drained(context).map_err(closed));
        let _ = drained.await;
        self.client.stream.reset(ErrorCode::INTERNAL_ERROR);
    }

    /// Sends a body, ends the stream with it, and waits until the kernel has all that.
    pub(super) async fn send(&mut self, body: &mut Body) -> Result<(), DeliveryError> {
        self.left_bytes = body.length();
        // The head may have been the end of it.
        if self.left_bytes != Some(0) {
            deliver::send(self, body).await?;
        }
        self.client.place = None;
        // Bytes that are written keep no server busy any more.
        self.sending.pace = None;
        self.patiently(|client, context| match client.stream.poll_sent(context) {
            Poll::Ready(true) => Poll::Ready(Ok(())),
            Poll::Ready(false) => Poll::Ready(Err(closed(StreamClosed))),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    async fn memory(&mut self, mut bytes: &[u8]) -> Result<(), DeliveryError> {
        while !bytes.is_empty() {
            let room_bytes = self.room(bytes.len()).await?;
            let (piece, rest) = bytes.split_at(room_bytes.min(bytes.len()));
            self.write(piece)?;
            bytes = rest;
        }
        Ok(())
    }

    async fn file(&mut self, mut left: Remaining<'_>) -> Result<(), DeliveryError> {
        while !left.is_over() {
            let wanted = left.first(PIECE_BYTES as u64);
            let wanted_bytes = usize::try_from(wanted.span.bytes).unwrap_or(PIECE_BYTES);
            let room_bytes = self.room(wanted_bytes).await?;
            let read = read_here(self.sending.worker, left.first(room_bytes as u64));
            let sent_bytes = match read.map_err(cut_short)? {
                Some(read) => {
                    self.write(read.bytes())?;
                    read.bytes().len() as u64
                }
                // Boxed as a wait for the disk is: what it needs would be part of every stream.
                None => Box::pin(self.slow_piece(wanted)).await?,
            };
            left.sent(sent_bytes)?;
        }
        Ok(())
    }

    /// Sends a piece for which a thread has to wait, and returns its length.
    async fn slow_piece(&mut self, piece: Remaining<'_>) -> Result<u64, DeliveryError> {
        let (read, _memory) = self.read_on_thread(piece).await?;
        self.memory(read.bytes()).await?;
        Ok(read.bytes().len() as u64)
    }

    /// Reads a piece for which a thread has to wait. Until it is there the windows and the queue are the others'; by then the client may
    /// have taken room back, or others may be before it.
    async fn read_on_thread(
        &mut self,
        piece: Remaining<'_>,
    ) -> Result<(FileBytes, ReadMemory<'s>), DeliveryError> {
        self.client.place = None;
        let priority = self.priority;
        let wanted = piece.first(PIECE_BYTES as u64);
        let wanted_bytes = usize::try_from(wanted.span.bytes).unwrap_or(PIECE_BYTES);
        let memory = self
            .patiently(|StreamSide { stream, place }, context| {
                let memory = stream.poll_read_memory(context, place, priority, wanted_bytes);
                memory.map_err(closed)
            })
            .await?;
        let read = deliver::read_on_thread(self.sending.worker, wanted).await;
        Ok((read.map_err(cut_short)?, memory))
    }

    fn write(&mut self, piece: &[u8]) -> Result<(), DeliveryError> {
        if let Some(left_bytes) = &mut self.left_bytes {
            let left = left_bytes.checked_sub(piece.len() as u64);
            *left_bytes = left.ok_or_else(|| bug!("no more is sent than was announced"))?;
        }
        self.client.stream.send(piece, self.left_bytes == Some(0)).map_err(closed)
    }

    /// Waits until there is room for some of the bytes wanted, and nobody is before it.
    async fn room(&mut self, wanted_bytes: usize) -> Result<usize, DeliveryError> {
        let priority = self.priority;
        let room_bytes = self
            .patiently(|StreamSide { stream, place }, context| {
                stream.poll_room(context, place, priority, wanted_bytes).map_err(closed)
            })
            .await?;
        if let Some(pace) = &mut self.sending.pace {
            pace.took(room_bytes as u64);
        }
        Ok(room_bytes)
    }

    /// Waits for what depends on the client. One that lets nothing through for too long is given up, unless others of its
    /// streams go on: then it has more patience, not without end.
    async fn patiently<T>(
        &mut self,
        mut poll: impl FnMut(&mut StreamSide<'s>, &mut Context<'_>) -> Poll<Result<T, DeliveryError>>,
    ) -> Result<T, DeliveryError> {
        let mut waits = 0;
        loop {
            let sent_bytes = self.client.stream.sent_bytes();
            let written_bytes = self.client.stream.written_bytes_of_all();
            let client = &mut self.client;
            let pace_left = |pace: &Option<Pace>| pace.map_or(Duration::MAX, |pace| pace.left());
            let limit = self.sending.write_timeout.min(pace_left(&self.sending.pace));
            let ticks = self.sending.deadline.ticks();
            let outcome =
                self.sending.deadline.within(limit, |context| poll(client, context)).await;
            if let Some(pace) = &mut self.sending.pace {
                pace.waited(self.sending.deadline.ticks().saturating_sub(ticks));
                // The bytes of other streams of the connection count for this one: it may be their turn.
                pace.took(self.client.stream.written_bytes_of_all() - written_bytes);
            }
            match outcome {
                Ok(outcome) => return outcome,
                // It comes at once each time.
                Err(interrupt @ Interrupt::Draining) => return Err(interrupt.into()),
                Err(Interrupt::Expired) => {}
            }
            let others_go_on = self.client.stream.written_bytes_of_all() != written_bytes;
            match () {
                () if pace_left(&self.sending.pace).is_zero() => {
                    return Err(DeliveryError::Stalled);
                }
                () if self.client.stream.sent_bytes() != sent_bytes => waits = 0,
                // The connection has a deadline for that.
                () if self.client.stream.io().is_blocked() => {}
                // It is their turn, and may be for long.
                () if others_go_on && self.client.place.is_some() => {}
                () if others_go_on && waits < WAITS_MAX => waits += 1,
                () => return Err(DeliveryError::Stalled),
            }
        }
    }
}

impl<'s> ClientSide<'s> for Outgoing<'s> {
    type Source = StreamSide<'s>;
    /// Each of many streams would hold one piece more.
    const LOOKS_AHEAD: bool = false;
    const IS_DIRECT: bool = false;

    fn sending(&self) -> &Sending<'s> {
        &self.sending
    }

    fn sending_mut(&mut self) -> &mut Sending<'s> {
        &mut self.sending
    }

    fn source(&mut self) -> &mut StreamSide<'s> {
        &mut self.client
    }

    fn disconnected(&mut self) -> impl Future<Output = StreamError> {
        poll_fn(|context| self.client.poll_left(context))
    }

    async fn unless_gone<T>(
        &mut self,
        limit: Duration,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<Result<T, UpstreamError>>,
    ) -> Result<T, DeliveryError> {
        let client = &mut self.client;
        let next = poll_fn(|context| match poll(context) {
            Poll::Ready(next) => Poll::Ready(next.map_err(cut_short)),
            Poll::Pending => client.poll_left(context).map(|error| Err(error.into())),
        });
        let next = timeout(limit, next).await;
        next.unwrap_or_else(|_| Err(cut_short(UpstreamError::TimedOut)))
    }

    /// Meanwhile it is the others' turn.
    async fn pause(&mut self, time: Duration, _is_watched: bool) -> Sent {
        let client = &mut self.client;
        let mut over = pin!(sleep(time));
        let paused = self.sending.deadline.within(time + PAUSE_SPARE, |context| {
            match client.poll_left(context) {
                Poll::Ready(error) => Poll::Ready(Err(error.into())),
                Poll::Pending => over.as_mut().poll(context).map(Ok),
            }
        });
        paused.await?
    }

    /// Its windows need not be open.
    fn could_send(&self, since: u32) -> bool {
        let shut = self.client.stream.shut_ticks(self.sending.deadline.ticks());
        shut.is_none_or(|shut| shut < since)
    }

    /// Their windows and their priorities say whose turn it is.
    async fn end_turn(&self) {}

    /// Where it is encrypted is the connection's matter.
    async fn begin_whole(&mut self, _bytes: u64, _is_file: bool) -> Sent {
        Ok(())
    }

    fn end_whole(&mut self, _bytes: u64) -> Sent {
        Ok(())
    }

    async fn begin_growing(&mut self, _bytes: u64) -> Sent {
        Ok(())
    }

    async fn begin_upstream(&mut self, _body: &UpstreamBody) -> Sent {
        self.sending.pace = Some(Pace::new(self.sending.write_timeout));
        Ok(())
    }

    async fn read_piece(&mut self, piece: Remaining<'_>) -> Result<FileBytes, DeliveryError> {
        let read = read_here(self.sending.worker, piece);
        match read.map_err(cut_short)? {
            Some(read) => Ok(read),
            None => Box::pin(self.read_on_thread(piece)).await.map(|(read, _memory)| read),
        }
    }

    async fn send_piece(&mut self, piece: Piece<'_>, _is_end: bool) -> Sent {
        match piece {
            Piece::Memory(bytes) => self.memory(bytes).await,
            Piece::File(left) => self.file(left).await,
        }
    }

    /// Frames tell their own length.
    async fn send_chunk(&mut self, piece: Piece<'_>, is_end: bool) -> Sent {
        self.send_piece(piece, is_end).await
    }

    async fn send_waiting(&mut self) -> Sent {
        Ok(())
    }

    async fn pass(&mut self, piece: Bytes, trailers: Option<Vec<u8>>) -> Sent {
        self.memory(&piece).await?;
        match trailers {
            Some(trailers) => self.end(&trailers).await,
            None => Ok(()),
        }
    }

    async fn send_direct(&mut self, _body: &mut UpstreamBody) -> Sent {
        Ok(())
    }

    async fn end(&mut self, trailers: &[u8]) -> Sent {
        let ended = match self.left_bytes {
            Some(_) => Ok(()),
            None if trailers.is_empty() => self.client.stream.end(),
            None => self.client.stream.send_trailers(trailers),
        };
        ended.map_err(closed)
    }

    async fn send_meanwhile(
        &mut self,
        mut piece: Bytes,
        body: &mut UpstreamBody,
        upload: &mut ConcurrentUpload<'_>,
    ) -> Sent {
        let priority = self.priority;
        while !piece.is_empty() {
            let moved_bytes = upload.moved_bytes;
            let room = self.patiently(|client, context| {
                let StreamSide { stream, place } = client;
                match stream.poll_room(context, place, priority, piece.len()) {
                    Poll::Pending => poll_meanwhile(client, body, upload, context).map_ok(|()| 0),
                    room => room.map_err(closed),
                }
            });
            let room_bytes = room.await?;
            if let Some(pace) = &mut self.sending.pace {
                pace.took(room_bytes as u64 + upload.moved_bytes - moved_bytes);
            }
            self.write(&piece.split_to(room_bytes))?;
        }
        self.sending.pace = self.sending.pace.filter(|_| !body.is_over());
        Ok(())
    }
}

impl PieceSource for StreamSide<'_> {
    fn poll_piece(
        &mut self,
        upload: &mut ConcurrentUpload<'_>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), BodyError>> {
        let incoming = ready!(self.stream.poll_incoming(context));
        match incoming.map_err(|closed| BodyError::Stream(StreamError::Io(closed.into())))? {
            Incoming::Data(data) => {
                upload.count(data.len())?;
                upload.take(&data);
            }
            Incoming::End(trailers) => upload.end(&trailers.map_err(BodyError::Malformed)?),
        }
        Poll::Ready(Ok(()))
    }

    /// A client that waits for its server is in no queue.
    fn poll_left(&mut self, context: &mut Context<'_>) -> Poll<StreamError> {
        self.place = None;
        self.stream.poll_left(context).map(|()| StreamError::Io(StreamClosed.into()))
    }
}

/// The client took its request back, or the connection is over.
fn closed(closed: StreamClosed) -> DeliveryError {
    DeliveryError::Stream(StreamError::Io(closed.into()))
}

/// The number of times a stream outlasts the time in which it got nothing while others did.
const WAITS_MAX: u32 = 10;

#[cfg(test)]
mod tests;
