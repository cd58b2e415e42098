//! Sending what is sealed here: bytes to records, and the queue in which these wait for the socket; and the end of our side.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll, ready};

use kettle_kernel::{bug, socket, transfer};
use tokio::net::TcpStream;

use super::calls::poll_send;
use super::record_room::RecordRoom;
use super::writer::{Sending, SendingKey, TlsWriter};
use super::{Stream, StreamError};
use crate::buffers::RECORDS_PER_READ;
use crate::control::Alert;
use crate::records::{ContentType, PLAINTEXT_BYTES_MAX, RecordSealer};

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

impl Stream {
    /// True if the kernel encrypts what this connection sends.
    #[must_use]
    pub fn is_offloaded(&self) -> bool {
        matches!(self.writer.sending, Sending::Kernel(_))
    }

    /// True if its socket is given what is sent as it is: the kernel encrypts it, or nobody does.
    #[must_use]
    pub fn takes_plaintext(&self) -> bool {
        matches!(self.writer.sending, Sending::Kernel(_) | Sending::Plain)
    }

    /// True if the connection must close after the current response, because its key must change
    /// and cannot be changed: by the kernel before Linux 6.14, and in TLS 1.2.
    #[must_use]
    pub fn must_close(&self) -> bool {
        self.writer.key != SendingKey::Good
    }

    /// True if the peer asked for a key that the kernel cannot change to, so that nothing more may be sent but the
    /// close_notify that is queued; [`cut`](Self::cut) takes that back.
    #[must_use]
    pub fn is_key_refused(&self) -> bool {
        self.writer.refuses_data()
    }

    /// True if the peer broke the protocol and is told by an alert that is queued or sent, with nothing behind it;
    /// [`cut`](Self::cut) takes that back.
    #[must_use]
    pub fn has_fatal_alert(&self) -> bool {
        self.writer.has_fatal_alert
    }

    /// Returns the number of sealed bytes that still have to be sent.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.writer.outgoing.filled().len()
    }

    /// Seals `pieces`, one after the other in as few records as possible, and queues them.
    /// For connections that are not offloaded.
    ///
    /// # Errors
    /// [`StreamError::Bug`] if the kernel encrypts this connection, [`StreamError::Ended`] if it has ended.
    pub fn seal(&mut self, pieces: &[&[u8]]) -> Result<(), StreamError> {
        let writer = &mut self.writer;
        writer.rekey_if_due()?;
        let Some(sealer) = sealer(&mut writer.sending)? else {
            pieces.iter().for_each(|piece| writer.outgoing.append(piece));
            return Ok(());
        };
        let mut left_bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let mut pieces = pieces.iter().copied();
        let mut piece = pieces.next().unwrap_or_default();
        while left_bytes > 0 {
            let plaintext_bytes = left_bytes.min(PLAINTEXT_BYTES_MAX);
            let prefix_bytes = sealer.prefix_bytes();
            let record_bytes = prefix_bytes + plaintext_bytes + sealer.suffix_bytes();
            let record = writer.outgoing.room(record_bytes);
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
            writer.outgoing.commit(record_bytes);
            left_bytes -= plaintext_bytes;
        }
        Ok(())
    }

    /// Room for up to `bytes` bytes behind `head`, where their records keep them: what is received into it is sealed in
    /// place. At most [`RECORDS_PER_WRITE`](crate::buffers::RECORDS_PER_WRITE) records beyond those that the head fills, and no more
    /// than the key can protect.
    ///
    /// # Errors
    /// [`StreamError::KeyExhausted`] if it can protect none; [`StreamError::Bug`] if the kernel encrypts this connection,
    /// [`StreamError::Ended`] if it has ended.
    pub fn record_room(
        &mut self,
        head: &[u8],
        bytes: usize,
    ) -> Result<RecordRoom<'_>, StreamError> {
        let writer = &mut self.writer;
        writer.rekey_if_due()?;
        let sealer = sealer(&mut writer.sending)?;
        // Bytes that are received and cannot be sealed would be lost.
        let records_left = sealer.as_ref().map_or(u64::MAX, |sealer| sealer.records_left());
        let sealable_bytes = records_left.saturating_mul(PLAINTEXT_BYTES_MAX as u64);
        let sealable_bytes = usize::try_from(sealable_bytes).unwrap_or(usize::MAX);
        match sealable_bytes.saturating_sub(head.len()) {
            0 => Err(StreamError::KeyExhausted),
            left => Ok(RecordRoom::new(sealer, &mut writer.outgoing, head, bytes.min(left))),
        }
    }

    /// Reads up to `bytes` bytes of `file` straight into records behind `head`, seals and queues
    /// them. One call queues [`RECORDS_PER_READ`](crate::buffers::RECORDS_PER_READ) records at most beyond those that the head fills.
    ///
    /// # Errors
    /// As [`record_room`](Self::record_room). A file that cannot be read is none.
    pub fn seal_file(
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

    /// Sends what is queued: sealed records, or the kernel's control records.
    ///
    /// # Errors
    /// [`StreamError::Io`] if the socket fails.
    pub fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        self.poll_flush_before(context, false)
    }

    /// As [`poll_flush`](Self::poll_flush); `more` says that more will follow at once, so that TCP
    /// may wait for it to fill a segment.
    ///
    /// # Errors
    /// [`StreamError::Io`] if the socket fails.
    pub fn poll_flush_before(
        &mut self,
        context: &mut Context<'_>,
        more: bool,
    ) -> Poll<Result<(), StreamError>> {
        self.writer.poll_flush(&self.socket, context, more)
    }

    /// As [`poll_flush`](Self::poll_flush), but tickets of a handshake that is just over wait a moment for the first data.
    ///
    /// # Errors
    /// [`StreamError::Io`] if the socket fails.
    pub fn poll_flush_but_tickets(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), StreamError>> {
        if self.writer.keeps_tickets(context) {
            return Poll::Ready(Ok(()));
        }
        self.poll_flush(context)
    }

    /// Queues a close_notify; nothing can be sent behind it.
    pub fn queue_close_notify(&mut self) {
        self.writer.queue_alert(Alert::CLOSE_NOTIFY);
    }

    /// Sends what is queued, close_notify included, and ends our side of the connection when TCP has all of it: what a slow
    /// peer has no room for yet may still be in kernel TLS, which drops it when our side ends. Nothing tells when it is gone,
    /// so it is asked again and again.
    ///
    /// # Errors
    /// [`StreamError::Io`] if the socket fails.
    pub fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        // The end of our side is next, and goes in the last segment.
        ready!(self.poll_flush_before(context, true))?;
        while !self.writer.is_passed_to_tcp(&self.socket) {
            let pause = self.writer.pause.get_or_insert_default();
            ready!(pause.poll(context));
            if self.writer.keeps_open_record(&self.socket) {
                break;
            }
        }
        self.writer.pause = None;
        self.writer.sending = Sending::Ended;
        socket::shutdown_write(self.socket.as_fd())?;
        Poll::Ready(Ok(()))
    }

    /// True if everything that was accepted for sending has arrived at the peer, as far as its
    /// kernel; also when the socket cannot tell. Tickets that wait for something to go with are nothing that it waits for.
    #[must_use]
    pub fn is_acknowledged(&self) -> bool {
        let pending = socket::pending_output_bytes(self.socket.as_fd());
        self.queued_bytes() == self.writer.tickets_bytes
            && pending.unwrap_or(0) == 0
            && self.writer.is_passed_to_tcp(&self.socket)
    }

    /// Ends our side as a cut: what is queued is dropped, and no close_notify is sent, so that the
    /// peer cannot take what it has for the whole (RFC 8446 §6.1).
    pub fn cut(&mut self) {
        self.writer.cut();
    }
}

impl TlsWriter {
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
