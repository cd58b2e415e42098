//! A stream for the task that serves it: the head and the body of its request, its response, whether its client is there still.
//!
//! A request is read as HTTP/1.1 would have it, by the same parser, so that each rule on targets, hosts and fields stands once.

use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use kettle_exchange::request::{RequestStream, StreamClosed, websocket_key};
use kettle_http::h1::framing::{BodyFraming, body_framing};
use kettle_http::h1::parse::{ParseRequest, parse_request};
use kettle_http::h2::{self, ErrorCode, FieldsError, Incoming, NewRequest, Priority, Room};
use kettle_http::{HeadLimits, RequestHead};
use kettle_runtime::tx_path::TxPath;
use kettle_tls::stream::Received;
use tokio::sync::Semaphore;

use super::io::{Http2Io, QueuePlace, SendQueue, StreamProgress};
use super::{FRAME_BYTES_MAX, PIECE_BYTES};

/// Why a request is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadError {
    /// It is malformed: a stream error (RFC 9113 §8.1.1).
    Malformed,
    /// Its fields are more than anybody looks at: 431.
    TooLarge,
    /// It is answered with this status.
    Status(u16),
}

/// The head of a request and how its body is framed.
pub(crate) fn request_head(
    request: NewRequest,
    limits: &HeadLimits,
) -> Result<(Box<RequestHead<Received>>, BodyFraming), HeadError> {
    let NewRequest { text, outcome, is_whole, .. } = request;
    outcome.map_err(|error| match error {
        FieldsError::Malformed => HeadError::Malformed,
        FieldsError::TooLarge => HeadError::TooLarge,
    })?;
    let mut bytes = text.lines;
    let is_tunnel = text.protocol.is_some();
    match text.protocol {
        Some(protocol) if !protocol.eq_ignore_ascii_case(b"websocket") => {
            return Err(HeadError::Status(501));
        }
        // The bytes behind it are no body.
        Some(_) if text.has_length => return Err(HeadError::Malformed),
        Some(_) => {
            // The fields with which HTTP/1.1 asks for WebSocket (RFC 8441 §5).
            let key = websocket_key();
            let lines =
                ["connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: ", &key, "\r\n"];
            bytes.extend_from_slice(lines.concat().as_bytes());
        }
        None => {}
    }
    bytes.extend_from_slice(b"\r\n");
    let refused = |error: kettle_http::RequestError| HeadError::Status(error.status());
    let head = match parse_request(&bytes, limits).map_err(refused)? {
        ParseRequest::Complete { head, bytes: parsed } if parsed == bytes.len() => {
            head.over_http2()
        }
        _ => return Err(HeadError::Malformed),
    };
    let framing = match body_framing(&head).map_err(refused)? {
        // The end of the stream is the end of the body.
        BodyFraming::None if !is_whole && !is_tunnel => BodyFraming::Chunked,
        framing => framing,
    };
    let head = head.moved_to(());
    Ok((Box::new(head.moved_to(Received::from(bytes))), framing))
}

/// A stream, as long as somebody serves it. Dropped before its end it is reset.
pub(crate) struct Http2Stream {
    io: Rc<Http2Io>,
    number: u32,
    progress: Rc<StreamProgress>,
}

/// Memory for what a thread reads of a file, until it is sent.
pub(crate) struct ReadMemory<'s> {
    io: &'s Http2Io,
    bytes: usize,
}

impl Http2Stream {
    pub(crate) fn new(io: Rc<Http2Io>, number: u32) -> Self {
        Self { io, number, progress: Rc::default() }
    }

    /// Returns the progress of its response, for callers that ask when nobody serves it any more.
    pub(crate) fn progress(&self) -> Rc<StreamProgress> {
        Rc::clone(&self.progress)
    }

    /// The connection it belongs to.
    pub(crate) fn io(&self) -> &Http2Io {
        &self.io
    }

    /// Where what is written of it now is encrypted.
    pub(crate) fn path(&self) -> TxPath {
        self.io.path()
    }

    /// Has the driver send what this stages: the room that it gives the client is due, also where nothing has come.
    fn with_room<T>(&self, give: impl FnOnce(&mut h2::Connection) -> T) -> T {
        let staged_bytes = self.io.staged_bytes();
        let outcome = give(&mut self.io.frames.borrow_mut());
        if self.io.staged_bytes() > staged_bytes {
            self.io.wake_driver();
        }
        outcome
    }

    /// Writes the head of a response, of which HTTP/1.1 would write these lines. One that is only a hint is left out where as much
    /// is held as may be: no window bounds what a server says so to a client that takes nothing.
    ///
    /// # Errors
    /// [`StreamClosed`].
    pub(crate) fn send_head(
        &self,
        status: u16,
        lines: &[u8],
        is_end: bool,
    ) -> Result<(), StreamClosed> {
        if self.io.is_over() {
            return Err(StreamClosed);
        }
        if matches!(status, 102..=199) && !self.io.has_room(lines.len()) {
            return Ok(());
        }
        self.io.lend_room();
        self.io.frames.borrow_mut().send_head(self.number, status, lines, is_end)?;
        self.io.note_head((self.number, &self.progress), is_end);
        Ok(())
    }

    /// Ends it with the lines of a trailer section.
    ///
    /// # Errors
    /// [`StreamClosed`].
    pub(crate) fn send_trailers(&self, lines: &[u8]) -> Result<(), StreamClosed> {
        self.io.frames.borrow_mut().send_trailers(self.number, lines)?;
        self.io.note_head((self.number, &self.progress), true);
        Ok(())
    }

    /// Writes a DATA frame for which there is room, or one that is only the end.
    ///
    /// # Errors
    /// [`StreamClosed`].
    fn send_data(&self, payload: &[u8], is_end: bool) -> Result<(), StreamClosed> {
        if self.io.is_over() {
            return Err(StreamClosed);
        }
        self.io.write_data((self.number, &self.progress), payload, is_end)
    }

    /// Writes bytes there is room for in frames that fill a record each, and ends the stream with them if they are the last.
    ///
    /// # Errors
    /// [`StreamClosed`].
    pub(crate) fn send(&self, bytes: &[u8], is_end: bool) -> Result<(), StreamClosed> {
        let mut left = bytes;
        while !left.is_empty() {
            // Bytes that are due already go with it.
            let staged_bytes = self.io.staged_bytes();
            let frame_bytes_max = FRAME_BYTES_MAX - staged_bytes.min(FRAME_BYTES_MAX / 2);
            let (frame, rest) = left.split_at(left.len().min(frame_bytes_max));
            self.send_data(frame, is_end && rest.is_empty())?;
            left = rest;
        }
        Ok(())
    }

    /// Ends it behind what was sent.
    ///
    /// # Errors
    /// [`StreamClosed`].
    pub(crate) fn end(&self) -> Result<(), StreamClosed> {
        self.send_data(&[], true)
    }

    /// Ends it before its end, behind what was sent.
    pub(crate) fn reset(&self, code: ErrorCode) {
        self.io.with_frames(|frames| frames.reset(self.number, code));
    }

    /// Waits until the client's windows have room for some of the bytes wanted, and nobody is before it who waits for the same.
    /// Nothing is taken of them: whoever gets room sends before anything else is heard of the client, or asks anew. `place` is its
    /// place in the queue, which it loses where nothing but its own window keeps it waiting; `priority` is that of its request,
    /// which an update goes before.
    pub(crate) fn poll_room(
        &self,
        context: &mut Context<'_>,
        place: &mut Option<QueuePlace>,
        priority: Priority,
        wanted_bytes: usize,
    ) -> Poll<Result<usize, StreamClosed>> {
        let io = &*self.io;
        if io.is_over() {
            return Poll::Ready(Err(StreamClosed));
        }
        let (room, priority) = {
            let mut frames = io.frames.borrow_mut();
            frames.wait(self.number, context);
            let updated = frames.updated_priority(self.number);
            (frames.room(self.number)?, updated.unwrap_or(priority))
        };
        let is_shut = !matches!(room, Room::Bytes(_));
        // No window opens again, and what the windows let through by then has gone out.
        if is_shut && io.is_input_over() && self.progress.is_drained() {
            return Poll::Ready(Err(StreamClosed));
        }
        let open_bytes = match room {
            Room::StreamShut => {
                *place = None;
                return Poll::Pending;
            }
            Room::ConnectionShut => 0,
            Room::Bytes(bytes) => bytes,
        };
        let bytes = wanted_bytes.min(PIECE_BYTES).min(open_bytes);
        let has_room = bytes > 0 && io.has_room(bytes);
        ready!(self.poll_turn(context, &io.queue, place, priority, has_room));
        if priority.is_incremental {
            *place = None;
        }
        Poll::Ready(Ok(bytes))
    }

    /// Waits until a thread may read so many bytes, in the order of priorities too. While it does, and until they are sent, they
    /// take nothing of the windows, which are for others.
    pub(crate) fn poll_read_memory(
        &self,
        context: &mut Context<'_>,
        place: &mut Option<QueuePlace>,
        priority: Priority,
        bytes: usize,
    ) -> Poll<Result<ReadMemory<'_>, StreamClosed>> {
        if self.poll_gone(context).is_ready() {
            return Poll::Ready(Err(StreamClosed));
        }
        let io = &*self.io;
        let updated = io.frames.borrow_mut().updated_priority(self.number);
        let priority = updated.unwrap_or(priority);
        let read_bytes = io.read_bytes.get() + bytes;
        let has_room = read_bytes <= READ_BYTES_MAX;
        ready!(self.poll_turn(context, &io.readers, place, priority, has_room));
        io.read_bytes.set(read_bytes);
        *place = None;
        Poll::Ready(Ok(ReadMemory { io, bytes }))
    }

    /// Waits in a queue, where anybody does or there is no room, until it is the first and there is.
    fn poll_turn(
        &self,
        context: &mut Context<'_>,
        queue: &Rc<SendQueue>,
        place: &mut Option<QueuePlace>,
        priority: Priority,
        has_room: bool,
    ) -> Poll<()> {
        if place.as_ref().is_some_and(|place| !place.is_for(priority)) {
            *place = None;
        }
        if place.is_some() || !queue.is_empty() || !has_room {
            let place = place.get_or_insert_with(|| queue.enter(priority, self.number));
            ready!(place.poll_first(context));
            if !has_room {
                place.wait(context);
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Bytes of bodies that were written, of all streams of its connection.
    pub(crate) fn written_bytes_of_all(&self) -> u64 {
        self.io.written_bytes.get()
    }

    /// Bytes of its body that were written.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.progress.written_bytes.get()
    }

    /// Bytes of its body that the kernel has taken.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.progress.sent_bytes.get()
    }

    /// Ready when the kernel has all of its body that was written.
    pub(crate) fn poll_drained(&self, context: &mut Context<'_>) -> Poll<Result<(), StreamClosed>> {
        match self.progress.is_drained() {
            true => Poll::Ready(Ok(())),
            false => {
                self.progress.is_watched.set(true);
                self.poll_gone(context).map(|()| Err(StreamClosed))
            }
        }
    }

    /// Ready when the kernel has all of its response, or will never have it: whether it has.
    pub(crate) fn poll_sent(&self, context: &mut Context<'_>) -> Poll<bool> {
        match self.progress.is_taken() {
            true => Poll::Ready(true),
            false => self.poll_gone(context).map(|()| false),
        }
    }
}

impl RequestStream for Http2Stream {
    fn poll_incoming(&self, context: &mut Context<'_>) -> Poll<Result<Incoming, StreamClosed>> {
        if self.io.is_over() {
            return Poll::Ready(Err(StreamClosed));
        }
        let incoming = self.with_room(|frames| frames.poll_incoming(self.number, context));
        incoming.map_err(StreamClosed::from)
    }

    fn has_body_begun(&self) -> bool {
        self.io.frames.borrow().has_body_begun(self.number)
    }

    fn is_probing(&self) -> bool {
        self.io.frames.borrow().is_probing(self.number)
    }

    fn note_passed_on(&self) {
        self.with_room(|frames| frames.note_passed_on(self.number));
    }

    fn shut_ticks(&self, ticks: u32) -> Option<u32> {
        self.io.shut_ticks(ticks)
    }

    fn poll_gone(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.io.is_over() {
            return Poll::Ready(());
        }
        self.io.frames.borrow_mut().poll_reset(self.number, context)
    }

    fn poll_left(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.io.has_left() { Poll::Ready(()) } else { self.poll_gone(context) }
    }

    fn send_interim(&self, status: u16, lines: &[u8]) -> Result<(), StreamClosed> {
        self.send_head(status, lines, false)
    }

    fn body_permits(&self) -> &Arc<Semaphore> {
        self.io.body_permits()
    }
}

impl Drop for ReadMemory<'_> {
    fn drop(&mut self) {
        let read_bytes = &self.io.read_bytes;
        read_bytes.set(read_bytes.get() - self.bytes);
        self.io.readers.wake_first();
    }
}

impl Drop for Http2Stream {
    fn drop(&mut self) {
        self.io.with_frames(|frames| frames.release(self.number));
    }
}

/// The bytes that threads read for the streams of a connection, and that are not sent yet: eight pieces.
const READ_BYTES_MAX: usize = 8 * PIECE_BYTES;

#[cfg(test)]
pub(crate) mod tests;
