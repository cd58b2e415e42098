//! The sending half: its state, what the kernel is given to encrypt, and what receiving makes it say.
//!
//! Nothing here receives. A peer that takes nothing keeps the queue as it is: what is due waits as a mark, and is
//! sealed when the queue has gone.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll, Waker, ready};

use kettle_kernel::ktls::{self, Cipher, Version};
use kettle_kernel::pipe::Pipe;
use kettle_kernel::socket::unix::is_unix;
use kettle_kernel::{bug, record, transfer};
use tokio::net::TcpStream;

use super::calls::poll_writable;
use super::pause::Pause;
use super::{Stream, StreamError};
use crate::buffers::Queue;
use crate::control::{Alert, NO_RENEGOTIATION};
use crate::records::{ContentType, RecordSealer};
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
    pub(super) waiting: Option<Waker>,
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

impl Stream {
    /// Writes to the kernel, which encrypts; `more` says that the record goes on with what
    /// follows. Returns how many bytes were taken.
    ///
    /// # Errors
    /// [`StreamError::Io`] if the socket fails, [`StreamError::Bug`] if not offloaded, [`StreamError::KeyExhausted`] if
    /// the peer wants a key that the kernel cannot change to.
    pub fn poll_kernel_write(
        &mut self,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
        more: bool,
    ) -> Poll<Result<usize, StreamError>> {
        let fd = self.socket.as_fd();
        let bytes = pieces.iter().map(|piece| piece.len()).sum();
        let call = || transfer::send(fd, pieces, more);
        self.writer.poll_kernel(&self.socket, context, bytes, 1, call)
    }

    /// Sends from `file` through the kernel, which encrypts. `offset` advances by what is
    /// returned; zero means that the file ends there.
    ///
    /// # Errors
    /// As [`poll_kernel_write`](Self::poll_kernel_write).
    pub fn poll_kernel_sendfile(
        &mut self,
        context: &mut Context<'_>,
        file: BorrowedFd<'_>,
        offset: &mut u64,
        bytes: usize,
    ) -> Poll<Result<usize, StreamError>> {
        let fd = self.socket.as_fd();
        let call = || transfer::sendfile(fd, file, offset, bytes);
        self.writer.poll_kernel(&self.socket, context, bytes, 1, call)
    }

    /// Sends what a call with `more` left in the kernel's open record, where nothing comes that would fill it. A record with a
    /// type of its own has the kernel send the open one first, and one without content is not sent (`tls_process_cmsg`).
    ///
    /// # Errors
    /// As [`poll_kernel_write`](Self::poll_kernel_write).
    pub fn poll_kernel_push(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        if self.is_plain() {
            // Setting it again sends what `MSG_MORE` held back (`tcp_sock_set_nodelay`). A Unix socket holds nothing back.
            if !is_unix(self.socket.as_fd()) {
                self.socket.set_nodelay(true)?;
            }
            return Poll::Ready(Ok(()));
        }
        self.writer.poll_control_record(&self.socket, context, record::APPLICATION_DATA, &[])
    }

    /// Sends up to `bytes` bytes of what `pipe` holds through the kernel, which encrypts.
    ///
    /// # Errors
    /// As [`poll_kernel_write`](Self::poll_kernel_write).
    pub fn poll_kernel_splice(
        &mut self,
        context: &mut Context<'_>,
        pipe: &mut Pipe,
        bytes: usize,
    ) -> Poll<Result<usize, StreamError>> {
        let fd = self.socket.as_fd();
        // The kernel ends a record where it has no room for another piece of the pipe.
        let records = pipe.pieces_max() as u64;
        let bytes = bytes.min(pipe.held_bytes());
        let call = || pipe.drain(fd, bytes, false);
        self.writer.poll_kernel(&self.socket, context, bytes, records, call)
    }
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

    /// Remembers that the connection broke, for whoever reads its end. A broken pipe says no more than that end.
    pub(super) fn note_break<T>(&mut self, sent: &Poll<io::Result<T>>) {
        if let Poll::Ready(Err(error)) = sent {
            self.is_broken |= error.kind() != io::ErrorKind::BrokenPipe;
        }
    }

    /// True if the end of what the peer sends is one by which the connection broke.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Remembers the task that waits to send.
    pub(super) fn note<T>(&mut self, context: &Context<'_>, outcome: &Poll<T>) {
        match (outcome, &mut self.waiting) {
            (Poll::Ready(_), waiting) => *waiting = None,
            (Poll::Pending, Some(waiting)) => waiting.clone_from(context.waker()),
            (Poll::Pending, waiting) => *waiting = Some(context.waker().clone()),
        }
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
