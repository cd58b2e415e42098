//! The receiving half: whole records out of bytes, plaintext and control out of records. Of a plain connection all bytes are
//! plaintext.
//!
//! It never sends. An [`Answer`] is what received bytes make the other half do.

use std::time::Instant;

use kettle_kernel::bug;

use super::StreamError;
use super::writer::Answer;
use crate::buffers::Queue;
use crate::control::{Action, Alert, ControlReader, Violation};
use crate::records::{ContentType, RecordOpener, missing_record_bytes, whole_record_bytes};
use crate::secrets::TrafficSecret;
use crate::ticket_reader::{TicketReader, Tickets};

/// Receives, and never waits for what is sent.
pub(super) struct TlsReader {
    /// Opens records; a plain connection has none.
    pub(super) protection: Option<Opening>,
    /// Received, not yet a whole record.
    pub(super) ciphertext: Queue,
    /// The record that is being dropped unopened.
    pub(super) skipping: Skipping,
    /// Received and opened, not yet consumed.
    pub(super) received: Received,
    /// The peer said close_notify, over a plain connection FIN, or nothing of what it still sends can be answered.
    pub(super) is_over: bool,
    /// The error that ended the connection: nothing that came behind it is opened (RFC 8446 §6.2).
    failed: Option<Box<StreamError>>,
    /// The number of times the peer changed its key.
    pub(super) key_changes: u32,
}

/// The way the records of a connection are opened.
pub(super) struct Opening {
    pub(super) opener: Box<RecordOpener>,
    /// The secret from which the keys behind a KeyUpdate follow; TLS 1.2 has none.
    pub(super) secret: Option<TrafficSecret>,
    /// Takes a server's tickets (TLS 1.3).
    pub(super) tickets: Option<Box<TicketReader>>,
    pub(super) control: ControlReader,
}

/// Plaintext that was received. Its front can be taken out of its stream, so that a request stays
/// readable while the stream goes on; an empty one holds no memory.
#[derive(Default)]
pub struct Received(Queue);

/// A record of which the first bytes have been dropped unopened.
#[derive(Clone, Copy, Default)]
pub(super) struct Skipping {
    pub(super) left_bytes: u16,
    pub(super) plaintext_bytes: u16,
}

/// The target of the plaintext of application data.
pub(super) trait Sink {
    fn take(&mut self, received: &mut Received, plaintext: &[u8]);
    /// True if there was any.
    fn has_taken(&self) -> bool;
}

impl TlsReader {
    /// Reads records that `protection` opens, the first of them in `incoming`.
    pub(super) fn new(protection: Opening, incoming: Queue) -> Self {
        Self {
            protection: Some(protection),
            ciphertext: incoming,
            ..Self::plain(Received::default())
        }
    }

    /// Reads a plain connection, of which this was received already.
    pub(super) fn plain(received: Received) -> Self {
        Self {
            protection: None,
            ciphertext: Queue::default(),
            skipping: Skipping::default(),
            received,
            is_over: false,
            failed: None,
            key_changes: 0,
        }
    }

    /// Returns the tickets that a server has sent.
    pub(super) fn tickets(&self) -> Tickets {
        let tickets = self.protection.as_ref().and_then(|it| it.tickets.as_ref());
        tickets.map(|reader| reader.tickets).unwrap_or_default()
    }

    /// Remembers what ended the connection.
    pub(super) fn fail(&mut self, error: &StreamError) {
        self.failed = Some(Box::new(error.again()));
    }

    /// Returns the error that ended the connection, again and again.
    ///
    /// # Errors
    /// [`StreamError`], if something did.
    pub(super) fn check(&self) -> Result<(), StreamError> {
        self.failed.as_ref().map_or(Ok(()), |error| Err(error.again()))
    }

    /// Opens the whole records at the front of `received`, up to one that has to be answered. Returns how many bytes
    /// they were; all of them if nothing is of interest any more.
    pub(super) fn open_records(
        &mut self,
        received: &mut [u8],
        sink: &mut impl Sink,
    ) -> Result<(usize, Option<Answer>), StreamError> {
        if self.protection.is_none() {
            sink.take(&mut self.received, received);
            return Ok((received.len(), None));
        }
        let mut opened_bytes = 0;
        while !self.is_over {
            let rest = received
                .get_mut(opened_bytes..)
                .ok_or_else(|| bug!("what was opened is part of what was received"))?;
            let whole = whole_record_bytes(rest).map_err(Violation::from)?;
            let Some(record) = whole.and_then(|bytes| rest.get_mut(..bytes)) else {
                return Ok((opened_bytes, None));
            };
            let answer = self.open_record(record, sink)?;
            opened_bytes += record.len();
            if answer.is_some() {
                return Ok((opened_bytes, answer));
            }
        }
        // Whatever follows a close_notify is ignored (RFC 8446 §6.1).
        Ok((received.len(), None))
    }

    fn open_record(
        &mut self,
        record: &mut [u8],
        sink: &mut impl Sink,
    ) -> Result<Option<Answer>, StreamError> {
        let Some(protection) = &mut self.protection else { return Ok(None) };
        let opened = protection.opener.open(record).map_err(Violation::from)?;
        let content = record
            .get(opened.plaintext)
            .ok_or_else(|| bug!("a record's plaintext lies in the record"))?;
        let action = match opened.content_type {
            ContentType::ApplicationData => {
                protection.control.application_data(content.len())?;
                sink.take(&mut self.received, content);
                Action::Nothing
            }
            ContentType::Handshake => protection.read_handshake(content)?,
            ContentType::Alert => protection.control.alert(content)?,
            ContentType::ChangeCipherSpec => {
                let what = "change_cipher_spec after the handshake";
                return Err(Violation { alert: Alert::UNEXPECTED_MESSAGE, what }.into());
            }
        };
        match action {
            Action::Nothing => Ok(None),
            Action::PeerCloses => {
                self.is_over = true;
                Ok(None)
            }
            Action::PeerFailed(alert) => Err(StreamError::AlertReceived(alert.0)),
            Action::RefuseRenegotiation => Ok(Some(Answer::NoRenegotiation)),
            Action::UpdateReceiveKey { is_requested } => {
                protection.update_key()?;
                self.key_changes += 1;
                Ok(is_requested.then_some(Answer::KeyUpdate))
            }
        }
    }

    /// Returns how much to read behind the beginning of a record: its rest, so that what follows is read into the shared buffer
    /// again. A record that is only announced gets no memory for it: the smallest pooled buffer, which its first byte got
    /// it, has room for any.
    pub(super) fn room_bytes(&self) -> usize {
        match missing_record_bytes(self.ciphertext.filled()) {
            0 => RECEIVE_MORE_BYTES,
            bytes => bytes,
        }
    }
}

impl Opening {
    /// Reads a handshake record, on the client's side after the tickets in it.
    fn read_handshake(&mut self, content: &[u8]) -> Result<Action, Violation> {
        let mut rest = content;
        let now = Instant::now();
        if let Some(tickets) = &mut self.tickets
            && !self.control.is_inside_key_update()
        {
            rest = tickets.take_tickets(content, now)?;
            self.control.set_inside_message(tickets.is_inside_ticket());
            if rest.is_empty() && !content.is_empty() {
                return Ok(Action::Nothing);
            }
        }
        self.control.handshake(rest, now)
    }

    fn update_key(&mut self) -> Result<(), StreamError> {
        let secret = self.secret.as_mut().ok_or_else(|| bug!("TLS 1.2 has no KeyUpdate"))?;
        let next = secret.next().and_then(|keys| RecordOpener::new(&keys));
        *self.opener = next.map_err(|_| bug!("each secret has a next receiving key"))?;
        Ok(())
    }
}

impl Received {
    /// Returns the bytes received and not yet consumed.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.0.filled()
    }

    /// Marks the first `bytes` as done with.
    pub fn consume(&mut self, bytes: usize) {
        self.0.consume(bytes);
    }

    pub(super) fn append(&mut self, plaintext: &[u8]) {
        self.0.append(plaintext);
    }

    /// [`super::Stream::take_front`].
    pub(super) fn take_front(&mut self, bytes: usize) -> Self {
        let received = self.bytes();
        if bytes >= received.len() {
            return std::mem::take(self);
        }
        let mut front = Queue::default();
        front.append(received.split_at(bytes).0);
        self.consume(bytes);
        Self(front)
    }
}

impl AsRef<[u8]> for Received {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

/// Bytes that came another way than through a stream.
impl From<Vec<u8>> for Received {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Queue::from(bytes))
    }
}

impl From<Queue> for Received {
    fn from(queue: Queue) -> Self {
        Self(queue)
    }
}

/// The bytes that are read behind less than a record's header.
const RECEIVE_MORE_BYTES: usize = 4_096;
