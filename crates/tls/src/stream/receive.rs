//! Receiving: bytes from the socket, records out of bytes, plaintext and control out of records.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;

use super::{SendingKey, StreamError, TlsStream};
use crate::buffers::Queue;
use crate::control::{Action, Alert, ControlReader, Peer, Violation};
use crate::records::{ContentType, RecordOpener, missing_record_bytes, whole_record_bytes};
use crate::updater::Updater;

/// What receiving led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// There is more plaintext than before.
    Data,
    /// The peer said close_notify: it sends no more. Or it wants a key that the kernel cannot change to, and we said
    /// close_notify: nothing that was received can be answered.
    Closed,
    /// The connection ended without a close_notify: what was received may be cut short.
    Truncated,
}

/// Plaintext that was received. It can be taken out of its stream, so that a request stays
/// readable while the stream sends the response; an empty one holds no memory.
#[derive(Default)]
pub struct Received(Queue);

impl Received {
    /// What has been received and not yet consumed.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.0.filled()
    }

    /// Marks the first `bytes` as done with.
    pub fn consume(&mut self, bytes: usize) {
        self.0.consume(bytes);
    }
}

impl From<Queue> for Received {
    fn from(queue: Queue) -> Self {
        Self(queue)
    }
}

impl TlsStream {
    /// What has been received and not yet consumed.
    #[must_use]
    pub fn received(&self) -> &Received {
        &self.received
    }

    /// Marks the first `bytes` of what was received as done with.
    pub fn consume(&mut self, bytes: usize) {
        self.received.consume(bytes);
    }

    /// Takes out what was received; [`put_back`](Self::put_back) returns what is left of it.
    #[must_use]
    pub fn take_received(&mut self) -> Received {
        std::mem::take(&mut self.received)
    }

    /// Puts back what [`take_received`](Self::take_received) took. Nothing may have been received
    /// between the two, or it would be lost.
    pub fn put_back(&mut self, received: Received) {
        debug_assert!(self.received.bytes().is_empty(), "received while its buffer was out");
        self.received = received;
    }

    /// How many sealed bytes still have to be sent.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.outgoing.filled().len()
    }

    /// Receives until there is more plaintext or the peer's end; what is still queued is sent before
    /// the socket is read.
    ///
    /// # Errors
    /// [`StreamError`]. After a violation an alert is queued; `poll_close` sends it.
    pub fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<Fill, StreamError>> {
        self.poll_open(context, &mut Keep { has_taken: false })
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
    ) -> Poll<Result<Fill, StreamError>> {
        self.poll_open(context, &mut Show { visit, has_taken: false })
    }

    fn poll_open(
        &mut self,
        context: &mut Context<'_>,
        sink: &mut impl Sink,
    ) -> Poll<Result<Fill, StreamError>> {
        debug_assert!(self.skipping.left_bytes == 0, "in the middle of a record that is dropped");
        let mut reads = 0;
        loop {
            // Whole records may be left over from an earlier read, or from the handshake: then a
            // request is here already, and its response carries the tickets that are still queued.
            self.open_received(sink)?;
            if self.sending_key == SendingKey::Refused {
                return Poll::Ready(Ok(Fill::Closed));
            }
            if sink.has_taken() {
                return Poll::Ready(Ok(Fill::Data));
            }
            if self.has_peer_closed {
                return Poll::Ready(Ok(Fill::Closed));
            }
            // Tickets, or the answer to a KeyUpdate.
            ready!(self.poll_flush(context))?;
            if reads == READS_PER_TURN {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let bytes = ready!(self.poll_receive(context, sink))?;
            if bytes == 0 {
                return Poll::Ready(Ok(Fill::Truncated));
            }
            reads += 1;
        }
    }

    /// Reads from the socket. With nothing left over, records are opened where the read put them,
    /// in a buffer that all connections of the worker share.
    fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        sink: &mut impl Sink,
    ) -> Poll<Result<usize, StreamError>> {
        if !self.ciphertext.is_empty() {
            let room_bytes = match self.control.peer() {
                // A client that says it sends a large record gets no memory for its word.
                Peer::Client => RECEIVE_MORE_BYTES,
                // The rest of the record, so that what follows it is read into the shared buffer again.
                Peer::Server => {
                    missing_record_bytes(self.ciphertext.filled()).max(RECEIVE_MORE_BYTES)
                }
            };
            let room = self.ciphertext.room(room_bytes);
            let bytes = ready!(poll_read(&mut self.socket, context, room))?;
            self.ciphertext.commit(bytes);
            return Poll::Ready(Ok(bytes));
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let bytes = ready!(poll_read(&mut self.socket, context, scratch))?;
            let received = scratch.get_mut(..bytes).unwrap_or_default();
            let opened = self.open_records(received, sink)?;
            let rest = received.get(opened..).unwrap_or_default();
            if !rest.is_empty() {
                self.ciphertext.append(rest);
            }
            Poll::Ready(Ok(bytes))
        })
    }

    fn open_received(&mut self, sink: &mut impl Sink) -> Result<(), StreamError> {
        if self.ciphertext.is_empty() {
            return Ok(());
        }
        let mut ciphertext = std::mem::take(&mut self.ciphertext);
        let opened = self.open_records(ciphertext.filled_mut(), sink)?;
        ciphertext.consume(opened);
        self.ciphertext = ciphertext;
        Ok(())
    }

    /// Opens the whole records at the front of `received`; returns how many bytes they were.
    fn open_records(
        &mut self,
        received: &mut [u8],
        sink: &mut impl Sink,
    ) -> Result<usize, StreamError> {
        let mut opened_bytes = 0;
        while !self.is_over() {
            let rest = received.get_mut(opened_bytes..).unwrap_or_default();
            let whole = whole_record_bytes(rest).map_err(|error| self.violation(error.into()))?;
            let Some(record) = whole.and_then(|bytes| rest.get_mut(..bytes)) else {
                break;
            };
            self.open_record(record, sink)?;
            opened_bytes += record.len();
        }
        // Whatever follows a close_notify is ignored (RFC 8446 §6.1).
        Ok(if self.is_over() { received.len() } else { opened_bytes })
    }

    /// Whether nothing of what the peer still sends is of interest.
    fn is_over(&self) -> bool {
        self.has_peer_closed || self.sending_key == SendingKey::Refused
    }

    fn open_record(&mut self, record: &mut [u8], sink: &mut impl Sink) -> Result<(), StreamError> {
        let opened = self.opener.open(record).map_err(|error| self.violation(error.into()))?;
        let content = record.get(opened.plaintext).unwrap_or_default();
        let action = match opened.content_type {
            ContentType::ApplicationData => {
                let checked = self.control.application_data(content.len());
                checked.map(|()| sink.take(&mut self.received, content)).map(|()| Action::Nothing)
            }
            ContentType::Handshake => {
                handshake_messages(&mut self.control, self.updater.as_mut(), content)
            }
            ContentType::Alert => self.control.alert(content),
            ContentType::ChangeCipherSpec => Err(Violation {
                alert: Alert::UNEXPECTED_MESSAGE,
                what: "change_cipher_spec after the handshake",
            }),
        };
        match action.map_err(|violation| self.violation(violation))? {
            Action::Nothing => Ok(()),
            Action::PeerCloses => {
                self.has_peer_closed = true;
                Ok(())
            }
            Action::PeerFailed(alert) => Err(StreamError::AlertReceived(alert.0)),
            Action::RefuseRenegotiation => self.queue_no_renegotiation(),
            Action::UpdateReceiveKey { is_requested } => {
                self.update_receive_key()?;
                if is_requested {
                    self.answer_key_update();
                }
                Ok(())
            }
        }
    }

    fn update_receive_key(&mut self) -> Result<(), StreamError> {
        let updater = self.updater.as_mut().ok_or(StreamError::Bug("KeyUpdate in TLS 1.2"))?;
        let next = updater.next_rx().and_then(|keys| RecordOpener::new(&keys));
        *self.opener = next.map_err(|_| StreamError::Bug("no next receive key"))?;
        self.key_changes.received += 1;
        Ok(())
    }

    /// Notes the alert that tells the peer what it did.
    pub(super) fn violation(&mut self, violation: Violation) -> StreamError {
        self.queue_alert(violation.alert);
        StreamError::Violation(violation)
    }

    /// Receives and throws away until the peer closes its side, without opening anything.
    ///
    /// # Errors
    /// [`StreamError::Io`] if the socket fails or the peer sends on and on.
    pub fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        poll_drain(&mut self.socket, context)
    }
}

/// Where the plaintext of application data goes.
trait Sink {
    fn take(&mut self, received: &mut Received, plaintext: &[u8]);
    /// Whether there was any.
    fn has_taken(&self) -> bool;
}

struct Keep {
    has_taken: bool,
}

impl Sink for Keep {
    fn take(&mut self, received: &mut Received, plaintext: &[u8]) {
        received.0.append(plaintext);
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

/// Reads a handshake record, on the client's side after the tickets in it.
fn handshake_messages(
    control: &mut ControlReader,
    updater: Option<&mut Updater>,
    content: &[u8],
) -> Result<Action, Violation> {
    let mut rest = content;
    if let Some(Updater::Client(client)) = updater
        && !control.is_inside_key_update()
    {
        rest = client.take_tickets(content)?;
        control.set_inside_message(client.is_inside_ticket());
        if rest.is_empty() && !content.is_empty() {
            return Ok(Action::Nothing);
        }
    }
    control.handshake(rest, Instant::now())
}

/// Reads until the end; at most [`DRAIN_READS_MAX`] reads for each time the socket gets ready.
pub(super) fn poll_drain(
    socket: &mut TcpStream,
    context: &mut Context<'_>,
) -> Poll<Result<(), StreamError>> {
    SCRATCH.with_borrow_mut(|scratch| {
        for _ in 0..DRAIN_READS_MAX {
            if ready!(poll_read(socket, context, scratch))? == 0 {
                return Poll::Ready(Ok(()));
            }
        }
        Poll::Ready(Err(io::Error::from(io::ErrorKind::TimedOut).into()))
    })
}

/// One read. A read that does not fill the buffer spares tokio, and us, the one that would fail.
pub(super) fn poll_read(
    socket: &mut TcpStream,
    context: &mut Context<'_>,
    room: &mut [u8],
) -> Poll<io::Result<usize>> {
    let mut buffer = ReadBuf::new(room);
    ready!(Pin::new(socket).poll_read(context, &mut buffer))?;
    Poll::Ready(Ok(buffer.filled().len()))
}

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH_BYTES]);
}

/// Two full records.
const SCRATCH_BYTES: usize = 36 * 1_024;

/// Reads without any data, before other connections get their turn: a read may bring a thousand KeyUpdates.
const READS_PER_TURN: usize = 4;

/// When part of a record is left over, how much more is read at least.
const RECEIVE_MORE_BYTES: usize = 4_096;

/// A peer that sends this much after we said goodbye is cut off.
const DRAIN_READS_MAX: usize = 64;
