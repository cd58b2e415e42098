//! The sending half: records sealed here, or given to the kernel; and what receiving makes it say.
//!
//! Nothing here receives. A peer that takes nothing keeps the queue as it is: what is due waits as a mark, and is
//! sealed when the queue has gone.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll, Waker, ready};

use kettle_kernel::ktls::{self, Cipher, Version};
use kettle_kernel::{bug, record, transfer};
use tokio::net::TcpStream;

use super::StreamError;
use super::calls::{poll_send, poll_writable};
use super::pause::Pause;
use super::record_room::RecordRoom;
use crate::buffers::{Queue, RECORDS_PER_READ};
use crate::control::{Alert, NO_RENEGOTIATION};
use crate::records::{ContentType, PLAINTEXT_BYTES_MAX, RecordSealer};
use crate::secrets::TrafficSecret;

/// Sends, and never waits for what is received.
pub(super) struct TlsWriter {
    pub(super) sending: Sending,
    /// The secret from which the keys behind a KeyUpdate follow; TLS 1.2 has none.
    pub(super) secret: Option<TrafficSecret>,
    /// Sealed here, not yet sent.
    pub(super) outgoing: Queue,
    /// The number of these that are tickets behind a handshake, as long as nothing else is.
    pub(super) tickets_bytes: usize,
    pub(super) due: ControlDue,
    /// True if what waits ends with an alert that is no close_notify, or it was sent.
    pub(super) has_fatal_alert: bool,
    pub(super) key: SendingKey,
    /// The output given to the kernel, once there was some.
    pub(super) kernel_output: Option<Box<KernelOutput>>,
    /// The number of times our key changed, and how often in the kernel, or why it did not there.
    pub(super) key_changes: u32,
    pub(super) kernel_key_changes: u32,
    pub(super) kernel_key_refusal: Option<&'static str>,
    /// Between two looks at whether kernel TLS still holds something back; before that, how long tickets wait.
    pub(super) pause: Option<Box<Pause>>,
    /// The task that waits until the peer takes something.
    waiting: Option<Waker>,
    /// True if sending was told that the connection broke. The kernel tells that once, to whichever call comes first.
    is_broken: bool,
}

/// The party that encrypts what this connection sends.
pub(super) enum Sending {
    User(Box<RecordSealer>),
    Kernel(KernelSending),
    /// Nobody: the connection is plain.
    Plain,
    /// Nothing may be sent any more: the kernel failed half-way, or the connection was closed.
    Ended,
}

/// The knowledge of a direction that the kernel encrypts.
pub(super) struct KernelSending {
    pub(super) version: Version,
    pub(super) cipher: Cipher,
    pub(super) can_rekey: bool,
    /// Records sent since the kernel was last asked for its record number: never too low.
    pub(super) records_unchecked: u64,
}

/// The bytes that TCP must have been given when kernel TLS holds nothing back.
#[derive(Clone, Copy)]
pub(super) struct KernelOutput {
    pub(super) version: Version,
    pub(super) cipher: Cipher,
    /// Header, nonce, inner type and tag of each record.
    pub(super) record_overhead_bytes: u64,
    /// The number of the first record under the current key.
    pub(super) sequence_first: u64,
    /// All but the overhead of the records under the current key.
    pub(super) bytes: u64,
    /// Behind a cut: what TCP had been given at the last look.
    pub(super) written_at_look: Option<u64>,
}

/// The records that may still be sent under the current key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendingKey {
    Good,
    /// It nears its limit and cannot be changed: the response under way, or the next.
    NearsLimit,
    /// The peer wants another one and the kernel cannot change it: no more application data (RFC 8446 §4.6.3).
    Refused,
}

/// Control records that wait: the kernel's before anything else, a KeyUpdate of ours before the next record.
#[derive(Default)]
pub(super) struct ControlDue {
    pub(super) no_renegotiation: bool,
    pub(super) key_update: bool,
    pub(super) alert: Option<Alert>,
}

/// The answer of the sending half to received bytes. Each costs a mark, however often it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The peer wants our next key.
    KeyUpdate,
    /// The peer wants to renegotiate (TLS 1.2).
    NoRenegotiation,
}

/// The part of a file that was read and sealed.
#[derive(Debug)]
pub enum FileRecords {
    /// This many bytes of the file; zero means that the file ends here.
    Sealed(usize),
    /// The page cache does not hold the next bytes; nothing was done.
    Cold,
    /// The file system does not say what the page cache holds; nothing was done.
    Untold,
    /// The file cannot be read, which is no failure of the connection; nothing was done.
    Failed(io::Error),
}

impl TlsWriter {
    pub(super) fn new(
        sealer: RecordSealer,
        secret: Option<TrafficSecret>,
        outgoing: Queue,
        are_tickets: bool,
    ) -> Self {
        Self {
            sending: Sending::User(Box::new(sealer)),
            secret,
            tickets_bytes: if are_tickets { outgoing.filled().len() } else { 0 },
            outgoing,
            ..Self::plain()
        }
    }

    /// Sends what it is given as it is.
    pub(super) fn plain() -> Self {
        Self {
            sending: Sending::Plain,
            secret: None,
            tickets_bytes: 0,
            outgoing: Queue::default(),
            due: ControlDue::default(),
            has_fatal_alert: false,
            key: SendingKey::Good,
            kernel_output: None,
            key_changes: 0,
            kernel_key_changes: 0,
            kernel_key_refusal: None,
            pause: None,
            waiting: None,
            is_broken: false,
        }
    }

    /// True if no more application data may be sent, and so nothing received can be answered.
    pub(super) fn refuses_data(&self) -> bool {
        self.key == SendingKey::Refused
    }

    /// [`super::Stream::seal`].
    pub(super) fn seal(&mut self, pieces: &[&[u8]]) -> Result<(), StreamError> {
        self.rekey_if_due()?;
        let Some(sealer) = sealer(&mut self.sending)? else {
            pieces.iter().for_each(|piece| self.outgoing.append(piece));
            return Ok(());
        };
        let mut left_bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let mut pieces = pieces.iter().copied();
        let mut piece = pieces.next().unwrap_or_default();
        while left_bytes > 0 {
            let plaintext_bytes = left_bytes.min(PLAINTEXT_BYTES_MAX);
            let prefix_bytes = sealer.prefix_bytes();
            let record_bytes = prefix_bytes + plaintext_bytes + sealer.suffix_bytes();
            let record = self.outgoing.room(record_bytes);
            let (_, mut room) = record.split_at_mut(prefix_bytes);
            let mut wanted_bytes = plaintext_bytes;
            while wanted_bytes > 0 {
                if piece.is_empty() {
                    piece =
                        pieces.next().ok_or_else(|| bug!("the pieces are as long as their sum"))?;
                    continue;
                }
                let taken;
                (taken, piece) = piece.split_at(piece.len().min(wanted_bytes));
                let (target, rest) = room.split_at_mut(taken.len());
                target.copy_from_slice(taken);
                room = rest;
                wanted_bytes -= taken.len();
            }
            sealer.seal(ContentType::ApplicationData, record)?;
            self.outgoing.commit(record_bytes);
            left_bytes -= plaintext_bytes;
        }
        Ok(())
    }

    /// [`super::Stream::record_room`].
    pub(super) fn record_room(
        &mut self,
        head: &[u8],
        bytes: usize,
    ) -> Result<RecordRoom<'_>, StreamError> {
        self.rekey_if_due()?;
        let sealer = sealer(&mut self.sending)?;
        // Bytes that are received and cannot be sealed would be lost.
        let records_left = sealer.as_ref().map_or(u64::MAX, |sealer| sealer.records_left());
        let sealable_bytes = records_left.saturating_mul(PLAINTEXT_BYTES_MAX as u64);
        let sealable_bytes = usize::try_from(sealable_bytes).unwrap_or(usize::MAX);
        match sealable_bytes.saturating_sub(head.len()) {
            0 => Err(StreamError::KeyExhausted),
            left => Ok(RecordRoom::new(sealer, &mut self.outgoing, head, bytes.min(left))),
        }
    }

    /// [`super::Stream::seal_file`].
    pub(super) fn seal_file(
        &mut self,
        head: &[u8],
        file: BorrowedFd<'_>,
        offset: u64,
        bytes: u64,
        wait: transfer::Wait,
    ) -> Result<FileRecords, StreamError> {
        let read_bytes_max =
            RECORDS_PER_READ * PLAINTEXT_BYTES_MAX - head.len() % PLAINTEXT_BYTES_MAX;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(read_bytes_max);
        let mut room = self.record_room(head, bytes)?;
        let read = room.lend(|slices| transfer::read_at(file, slices, offset, wait));
        match read {
            Ok(0) => Ok(FileRecords::Sealed(0)),
            Ok(read_bytes) => {
                room.commit(read_bytes)?;
                Ok(FileRecords::Sealed(read_bytes))
            }
            Err(error) => Ok(unread(error)),
        }
    }

    /// Sends what is queued: sealed records, or the kernel's control records. The waiting task is remembered.
    pub(super) fn poll_flush(
        &mut self,
        socket: &TcpStream,
        context: &mut Context<'_>,
        more: bool,
    ) -> Poll<Result<(), StreamError>> {
        let flushed = self.poll_flush_now(socket, context, more);
        self.note(context, &flushed);
        flushed
    }

    /// Remembers that the connection broke, for whoever reads its end. A broken pipe says no more than that end.
    fn note_break<T>(&mut self, sent: &Poll<io::Result<T>>) {
        if let Poll::Ready(Err(error)) = sent {
            self.is_broken |= error.kind() != io::ErrorKind::BrokenPipe;
        }
    }

    /// True if the end of what the peer sends is one by which the connection broke.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Remembers the task that waits to send.
    fn note<T>(&mut self, context: &Context<'_>, outcome: &Poll<T>) {
        match (outcome, &mut self.waiting) {
            (Poll::Ready(_), waiting) => *waiting = None,
            (Poll::Pending, Some(waiting)) => waiting.clone_from(context.waker()),
            (Poll::Pending, waiting) => *waiting = Some(context.waker().clone()),
        }
    }

    /// Sends what the peer takes at once, for a task that waits to receive.
    pub(super) fn try_flush(
        &mut self,
        socket: &TcpStream,
        context: &mut Context<'_>,
    ) -> Result<(), StreamError> {
        // A socket wakes one task. If another one waits to send, it will send all this, and must stay the one.
        if self.waiting.as_ref().is_some_and(|waiting| !waiting.will_wake(context.waker())) {
            return Ok(());
        }
        if self.keeps_tickets(context) {
            return Ok(());
        }
        match self.poll_flush_now(socket, context, false) {
            Poll::Ready(flushed) => flushed,
            Poll::Pending => Ok(()),
        }
    }

    /// True if all that is queued are tickets, which wait a moment for something to go with: most clients ask as soon as they
    /// have said Finished, and a segment of their own would cost them and us more than the tickets do.
    pub(super) fn keeps_tickets(&mut self, context: &mut Context<'_>) -> bool {
        let is_all = self.tickets_bytes > 0
            && self.tickets_bytes == self.outgoing.filled().len()
            && self.due.is_empty();
        is_all && self.pause.get_or_insert_default().poll(context).is_pending()
    }

    fn poll_flush_now(
        &mut self,
        socket: &TcpStream,
        context: &mut Context<'_>,
        more: bool,
    ) -> Poll<Result<(), StreamError>> {
        if self.tickets_bytes > 0 {
            self.tickets_bytes = 0;
            self.pause = None;
        }
        loop {
            if !self.outgoing.is_empty() {
                let sent = poll_send(socket, &mut self.outgoing, more, context);
                self.note_break(&sent);
                ready!(sent)?;
            }
            // Not before the queue has gone: one answer does for all that asked meanwhile (RFC 8446 §4.6.3).
            if !self.update_user_key_if_due()? {
                break;
            }
        }
        if self.due.is_empty() {
            return Poll::Ready(Ok(()));
        }
        self.poll_control(socket, context)
    }

    /// Gives the kernel up to `bytes` bytes to encrypt and send, by a call that does not wait and leaves up to `records` records
    /// that are not full.
    pub(super) fn poll_kernel(
        &mut self,
        socket: &TcpStream,
        context: &mut Context<'_>,
        bytes: usize,
        records: u64,
        call: impl FnMut() -> io::Result<usize>,
    ) -> Poll<Result<usize, StreamError>> {
        // A close_notify is queued. It must not go out before the caller has learnt that the connection ends.
        if self.refuses_data() {
            return Poll::Ready(Err(StreamError::KeyExhausted));
        }
        self.check_kernel_key(socket, bytes, records)?;
        ready!(self.poll_flush(socket, context, false))?;
        match &self.sending {
            Sending::Kernel(_) | Sending::Plain => {}
            Sending::User(_) => {
                let bug = bug!("a socket without keys gets no plain bytes");
                return Poll::Ready(Err(bug.into()));
            }
            Sending::Ended => return Poll::Ready(Err(StreamError::Ended)),
        }
        let sent = self.poll_encrypt(socket, context, call);
        self.note(context, &sent);
        let bytes = ready!(sent)?;
        self.count_kernel_records(bytes, records);
        Poll::Ready(Ok(bytes))
    }

    /// Does what receiving demands.
    pub(super) fn answer(&mut self, answer: Answer) -> Result<(), StreamError> {
        match (answer, &mut self.sending) {
            (_, Sending::Ended | Sending::Plain) => {}
            (Answer::KeyUpdate, Sending::Kernel(kernel)) if !kernel.can_rekey => {
                // Before Linux 6.14. An alert is all that may follow under the old key.
                self.queue_alert(Alert::CLOSE_NOTIFY);
                self.key = SendingKey::Refused;
            }
            (Answer::KeyUpdate, _) => self.due.key_update = true,
            (Answer::NoRenegotiation, Sending::Kernel(_)) => self.due.no_renegotiation = true,
            // Bounded: each costs the peer a warning, and `ControlReader` bounds those.
            (Answer::NoRenegotiation, Sending::User(sealer)) => {
                self.outgoing.append_sealed(sealer, ContentType::Alert, &NO_RENEGOTIATION)?;
            }
        }
        Ok(())
    }

    /// Queues an alert; nothing can be sent behind it, and no second one.
    pub(super) fn queue_alert(&mut self, alert: Alert) {
        match std::mem::replace(&mut self.sending, Sending::Ended) {
            Sending::User(mut sealer) => {
                // No data follows that would need the new key.
                self.due.key_update = false;
                // An exhausted key cannot even say goodbye; the cut says it.
                let _ =
                    self.outgoing.append_sealed(&mut sealer, ContentType::Alert, &alert.message());
            }
            Sending::Kernel(_) => self.due.alert = Some(alert),
            // FIN says all that there is to say.
            Sending::Plain | Sending::Ended => return,
        }
        self.has_fatal_alert = alert != Alert::CLOSE_NOTIFY;
    }

    /// [`super::Stream::cut`].
    pub(super) fn cut(&mut self) {
        self.outgoing.clear();
        self.due = ControlDue::default();
        self.has_fatal_alert = false;
        self.sending = Sending::Ended;
        if let Some(output) = &mut self.kernel_output {
            // The findings of looks behind an earlier cut stay.
            output.written_at_look.get_or_insert(0);
        }
    }

    /// Runs a call that has the kernel encrypt.
    fn poll_encrypt<T>(
        &mut self,
        socket: &TcpStream,
        context: &mut Context<'_>,
        call: impl FnMut() -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        let sent = poll_writable(socket, context, call);
        if let Poll::Ready(Err(error)) = &sent
            && ktls::is_encryption_failure(error)
        {
            // The next call, whatever it sends, would have the kernel try again with the record it holds.
            self.cut();
        } else {
            self.note_break(&sent);
        }
        sent
    }

    /// One control record of the kernel's, whole or not at all.
    pub(super) fn poll_control_record(
        &mut self,
        socket: &TcpStream,
        context: &mut Context<'_>,
        content_type: u8,
        content: &[u8],
    ) -> Poll<Result<(), StreamError>> {
        ready!(self.poll_encrypt(socket, context, || {
            record::send(socket.as_fd(), content_type, content)
        }))?;
        if let Some(output) = &mut self.kernel_output {
            output.bytes += content.len() as u64;
        }
        Poll::Ready(Ok(()))
    }
}

impl ControlDue {
    pub(super) fn is_empty(&self) -> bool {
        !self.key_update && !self.no_renegotiation && self.alert.is_none()
    }
}

/// Returns the meaning of a failed read for the file.
pub(super) fn unread(error: io::Error) -> FileRecords {
    match error.kind() {
        io::ErrorKind::WouldBlock => FileRecords::Cold,
        io::ErrorKind::Unsupported => FileRecords::Untold,
        _ => FileRecords::Failed(error),
    }
}

/// Returns the sealer; `None` where nothing is to be sealed.
fn sealer(sending: &mut Sending) -> Result<Option<&mut RecordSealer>, StreamError> {
    match sending {
        Sending::User(sealer) => Ok(Some(sealer)),
        Sending::Plain => Ok(None),
        Sending::Kernel(_) => Err(bug!("nothing is sealed for a socket with keys").into()),
        Sending::Ended => Err(StreamError::Ended),
    }
}
