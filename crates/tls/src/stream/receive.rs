//! Receiving: bytes from the socket, through the reader; what it must answer, to the writer.

use std::cell::RefCell;
use std::io;
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};

use kettle_kernel::{bug, transfer};
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::reader::{Received, Sink};
use super::{Stream, StreamError};
use crate::control::Alert;
use crate::records::{ContentType, whole_record_bytes};

/// The outcome of receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// There is more plaintext than before.
    Data,
    /// The peer said close_notify, over a plain connection FIN: it sends no more. Or it wants a key that the kernel cannot change to, and we said
    /// close_notify: nothing that was received can be answered.
    Closed,
    /// The connection ended without a close_notify: what was received may be cut short.
    Truncated,
}

impl Stream {
    /// Returns the bytes received and not yet consumed.
    #[must_use]
    pub fn received(&self) -> &Received {
        &self.reader.received
    }

    /// Returns the bytes that have come and are not opened yet.
    #[must_use]
    pub fn unopened_bytes(&self) -> usize {
        self.reader.ciphertext.filled().len()
    }

    /// True if what has come and is not opened yet, and `more` behind it, is a close_notify and nothing else.
    #[must_use]
    pub fn is_close_notify(&self, more: &[u8]) -> bool {
        let mut record = [self.reader.ciphertext.filled(), more].concat();
        if whole_record_bytes(&record).ok().flatten() != Some(record.len()) {
            return false;
        }
        let protection = self.reader.protection.as_ref();
        let opened = protection.and_then(|it| it.opener.peek(&mut record).ok());
        let alert = opened.filter(|opened| opened.content_type == ContentType::Alert);
        let content = alert.and_then(|opened| record.get(opened.plaintext));
        content == Some(&Alert::CLOSE_NOTIFY.message())
    }

    /// Marks the first `bytes` of what was received as done with.
    pub fn consume(&mut self, bytes: usize) {
        self.reader.received.consume(bytes);
    }

    /// Takes out the first `bytes` of what was received. Usually that is all of it, and nothing is copied.
    #[must_use]
    pub fn take_front(&mut self, bytes: usize) -> Received {
        self.reader.received.take_front(bytes)
    }

    /// Receives until there is more plaintext or the peer's end. Queued bytes are sent as far as the peer takes them; if it
    /// takes nothing, receiving goes on all the same.
    ///
    /// # Errors
    /// [`StreamError`]. After a violation an alert is queued; `poll_close` sends it. A violation and a fatal alert of the
    /// peer are told again by every later call; what came before can still be [`received`](Self::received).
    pub fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<Filled, StreamError>> {
        self.poll_open(context, &mut Keep { has_taken: false })
    }

    /// Waits until the peer has ended the connection on its side, whatever it sent before and was not read.
    pub async fn peer_ended(&self) {
        // In tokio this interest stands for urgent data and for the end of what is received. No socket is registered for
        // urgent data, so only the end is left.
        let _ = self.socket.ready(Interest::PRIORITY).await;
    }

    /// As [`poll_fill`](Self::poll_fill), but shows the plaintext to `visit` where it was opened, record by record,
    /// instead of keeping it.
    ///
    /// # Errors
    /// As `poll_fill`.
    pub fn poll_visit(
        &mut self,
        context: &mut Context<'_>,
        visit: impl FnMut(&[u8]),
    ) -> Poll<Result<Filled, StreamError>> {
        self.poll_open(context, &mut Show { visit, has_taken: false })
    }

    pub(super) fn poll_open(
        &mut self,
        context: &mut Context<'_>,
        sink: &mut impl Sink,
    ) -> Poll<Result<Filled, StreamError>> {
        let opened = self.poll_open_whole(context, sink);
        if self.writer.has_fatal_alert {
            // The caller may drop the stream; what the peer does not take now is sent by `poll_close`.
            let _ = self.writer.try_flush(&self.socket, context);
        }
        opened
    }

    fn poll_open_whole(
        &mut self,
        context: &mut Context<'_>,
        sink: &mut impl Sink,
    ) -> Poll<Result<Filled, StreamError>> {
        debug_assert!(self.reader.skipping.left_bytes == 0, "inside a record that is dropped");
        self.reader.check()?;
        for _ in 0..READS_PER_TURN {
            // Whole records may be left over from an earlier read, or from the handshake: then a
            // request is here already, and its response carries the tickets that are still queued.
            if let Some(fill) = self.open_received(sink)? {
                return Poll::Ready(Ok(fill));
            }
            // Tickets, or the answer to a KeyUpdate. A peer that sends all before it reads takes them later.
            // A socket that takes no more may still have what the peer sent before it went; reading tells its end.
            match self.writer.try_flush(&self.socket, context) {
                Ok(()) | Err(StreamError::Io(_)) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            let bytes = ready!(self.poll_receive(context, sink))?;
            if bytes == 0 {
                return Poll::Ready(self.ended());
            }
        }
        if let Some(fill) = self.open_received(sink)? {
            return Poll::Ready(Ok(fill));
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Returns the meaning of the end of what the peer sends.
    fn ended(&mut self) -> Result<Filled, StreamError> {
        if self.writer.is_broken() {
            return Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
        }
        self.reader.is_over |= self.is_plain();
        Ok(if self.is_plain() { Filled::Closed } else { Filled::Truncated })
    }

    /// Reads from the socket. With nothing left over, records are opened where the read put them,
    /// in a buffer that all connections of the worker share.
    fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        sink: &mut impl Sink,
    ) -> Poll<Result<usize, StreamError>> {
        if !self.reader.ciphertext.is_empty() {
            let room_bytes = self.reader.room_bytes();
            let room = self.reader.ciphertext.room(room_bytes);
            let bytes = ready!(poll_read(&self.socket, context, room))?;
            self.reader.ciphertext.commit(bytes);
            return Poll::Ready(Ok(bytes));
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let bytes = ready!(poll_read(&self.socket, context, scratch))?;
            let received = scratch
                .get_mut(..bytes)
                .ok_or_else(|| bug!("a read fills no more than its buffer"))?;
            let opened = self.open_records(received, sink)?;
            let rest = received
                .get(opened..)
                .ok_or_else(|| bug!("what was opened is part of what was read"))?;
            if !rest.is_empty() {
                self.reader.ciphertext.append(rest);
            }
            Poll::Ready(Ok(bytes))
        })
    }

    /// Opens what is left over from a read; says what receiving has led to, if it has.
    fn open_received(&mut self, sink: &mut impl Sink) -> Result<Option<Filled>, StreamError> {
        if !self.reader.ciphertext.is_empty() {
            let mut ciphertext = std::mem::take(&mut self.reader.ciphertext);
            let opened = self.open_records(ciphertext.filled_mut(), sink)?;
            ciphertext.consume(opened);
            self.reader.ciphertext = ciphertext;
        }
        if self.writer.refuses_data() {
            return Ok(Some(Filled::Closed));
        }
        if sink.has_taken() {
            return Ok(Some(Filled::Data));
        }
        Ok(self.reader.is_over.then_some(Filled::Closed))
    }

    /// Opens the whole records at the front of `received`, and has the writer answer them; returns how many bytes they were.
    fn open_records(
        &mut self,
        received: &mut [u8],
        sink: &mut impl Sink,
    ) -> Result<usize, StreamError> {
        let mut opened_bytes = 0;
        loop {
            let rest = received
                .get_mut(opened_bytes..)
                .ok_or_else(|| bug!("the reader opens what it was shown"))?;
            let opened = self.reader.open_records(rest, sink);
            let (bytes, answer) = opened.map_err(|error| self.tell(error))?;
            opened_bytes += bytes;
            let Some(answer) = answer else {
                return Ok(opened_bytes);
            };
            self.writer.answer(answer)?;
            self.reader.is_over |= self.writer.refuses_data();
        }
    }

    /// Queues the alert that tells the peer what it did, or ends our side as the peer ended its own, and receives nothing more.
    pub(super) fn tell(&mut self, error: StreamError) -> StreamError {
        self.reader.fail(&error);
        if matches!(error, StreamError::Violation(_) | StreamError::AlertReceived(_))
            && let Some(session) = self.kept_session.take()
        {
            session.forget();
        }
        match &error {
            StreamError::Violation(violation) => self.writer.queue_alert(violation.alert),
            // Nobody listens any more, and nothing more may be said (RFC 8446 §6.2).
            StreamError::AlertReceived(_) => self.writer.cut(),
            _ => {}
        }
        error
    }

    /// Receives and throws away what comes, without opening anything. Says whether the peer has closed its side.
    ///
    /// # Errors
    /// [`StreamError::Io`] if the socket fails.
    pub fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<Result<bool, StreamError>> {
        poll_drain(&self.socket, context)
    }
}

struct Keep {
    has_taken: bool,
}

impl Sink for Keep {
    fn take(&mut self, received: &mut Received, plaintext: &[u8]) {
        received.append(plaintext);
        self.has_taken |= !plaintext.is_empty();
    }

    fn has_taken(&self) -> bool {
        self.has_taken
    }
}

struct Show<F> {
    visit: F,
    has_taken: bool,
}

impl<F: FnMut(&[u8])> Sink for Show<F> {
    fn take(&mut self, _received: &mut Received, plaintext: &[u8]) {
        (self.visit)(plaintext);
        self.has_taken |= !plaintext.is_empty();
    }

    fn has_taken(&self) -> bool {
        self.has_taken
    }
}

/// Reads what is there, in at most [`DRAIN_READS_MAX`] reads. Says whether that was the end.
pub(super) fn poll_drain(
    socket: &TcpStream,
    context: &mut Context<'_>,
) -> Poll<Result<bool, StreamError>> {
    SCRATCH.with_borrow_mut(|scratch| {
        for read in 0..DRAIN_READS_MAX {
            match poll_read(socket, context, scratch)? {
                Poll::Ready(0) => return Poll::Ready(Ok(true)),
                Poll::Ready(_) => {}
                Poll::Pending if read > 0 => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(false))
    })
}

pub(super) fn poll_read(
    socket: &TcpStream,
    context: &mut Context<'_>,
    room: &mut [u8],
) -> Poll<io::Result<usize>> {
    poll_readable(socket, context, room.len(), || transfer::receive(socket.as_fd(), room))
}

/// Runs a call that receives without waiting, when there is something. After a call that got less than it wanted the
/// socket is known to be empty: tokio need not be told by one that fails.
pub(super) fn poll_readable(
    socket: &TcpStream,
    context: &mut Context<'_>,
    wanted_bytes: usize,
    mut call: impl FnMut() -> io::Result<usize>,
) -> Poll<io::Result<usize>> {
    loop {
        ready!(socket.poll_read_ready(context))?;
        let mut bytes = None;
        let received = socket.try_io(Interest::READABLE, || {
            let got = call()?;
            bytes = Some(got);
            if got == 0 || got == wanted_bytes {
                Ok(())
            } else {
                Err(io::ErrorKind::WouldBlock.into())
            }
        });
        match (bytes, received) {
            (Some(bytes), _) => return Poll::Ready(Ok(bytes)),
            (None, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => {
                return Poll::Ready(Err(error));
            }
            (None, _) => {}
        }
    }
}

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH_BYTES]);
}

/// Two full records.
const SCRATCH_BYTES: usize = 36 * 1_024;

/// Reads without any data, before other connections get their turn: a read may bring a thousand KeyUpdates.
const READS_PER_TURN: usize = 4;

/// The reads of a peer that sends on after we said goodbye, before others have a turn.
const DRAIN_READS_MAX: usize = 64;
