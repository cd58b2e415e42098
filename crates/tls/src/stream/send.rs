//! Sending: what the connection's owner asks of the writer, with the socket it needs.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll, ready};

use kettle_kernel::pipe::Pipe;
use kettle_kernel::socket::unix::is_unix;
use kettle_kernel::{record, transfer};

use super::record_room::RecordRoom;
use super::writer::{FileRecords, Sending, SendingKey};
use super::{OffloadError, Stream, StreamError};
use crate::control::Alert;

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
        self.writer.seal(pieces)
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
        self.writer.record_room(head, bytes)
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
        self.writer.seal_file(head, file, offset, bytes, wait)
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

    /// Sends what is queued, then moves what this connection sends into the kernel. `can_rekey`
    /// says whether this kernel can change a key (Linux 6.14). Does nothing, and sends nothing, if already there.
    ///
    /// # Errors
    /// [`OffloadError`]; also where nothing may be sent any more.
    pub fn poll_offload(
        &mut self,
        context: &mut Context<'_>,
        can_rekey: bool,
    ) -> Poll<Result<(), OffloadError>> {
        self.writer.poll_offload(&self.socket, context, can_rekey)
    }

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
        kettle_kernel::socket::shutdown_write(self.socket.as_fd())?;
        Poll::Ready(Ok(()))
    }

    /// True if everything that was accepted for sending has arrived at the peer, as far as its
    /// kernel; also when the socket cannot tell. Tickets that wait for something to go with are nothing that it waits for.
    #[must_use]
    pub fn is_acknowledged(&self) -> bool {
        let pending = kettle_kernel::socket::pending_output_bytes(self.socket.as_fd());
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
