//! Sending: pieces of memory or of a file, as records sealed here or written to the kernel.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll, ready};

use kettle_kernel::{record, transfer};
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::{StreamError, TlsStream, Transmit};
use crate::buffers::{Queue, RECORDS_PER_READ};
use crate::control::{Alert, NO_RENEGOTIATION};
use crate::records::{ContentType, PLAINTEXT_BYTES_MAX, RecordSealer};

/// How much of a file was read and sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRecords {
    /// This many bytes of the file; zero means that the file ends here.
    Sealed(usize),
    /// The page cache does not hold the next bytes; nothing was done.
    Cold,
    /// The file system does not say what the page cache holds; nothing was done.
    Untold,
}

impl TlsStream {
    /// Seals `pieces`, one after the other in as few records as possible, and queues them.
    /// For connections that are not offloaded.
    ///
    /// # Errors
    /// [`StreamError::Bug`] if the kernel encrypts this connection or it has ended.
    pub fn seal(&mut self, pieces: &[&[u8]]) -> Result<(), StreamError> {
        self.rekey_if_due()?;
        let sealer = sealer(&mut self.transmit)?;
        let mut left_bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let mut pieces = pieces.iter().copied();
        let mut piece = pieces.next().unwrap_or_default();
        while left_bytes > 0 {
            let plaintext_bytes = left_bytes.min(PLAINTEXT_BYTES_MAX);
            let prefix_bytes = sealer.prefix_bytes();
            let record_bytes = prefix_bytes + plaintext_bytes + sealer.suffix_bytes();
            let record = self.outgoing.room(record_bytes);
            let mut room = record.get_mut(prefix_bytes..).unwrap_or_default();
            let mut wanted_bytes = plaintext_bytes;
            while wanted_bytes > 0 {
                if piece.is_empty() {
                    piece = pieces.next().unwrap_or_default();
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

    /// Reads up to `bytes` bytes of `file` straight into records behind `head`, seals and queues
    /// them. One call queues at most [`RECORDS_PER_READ`] records.
    ///
    /// # Errors
    /// [`StreamError::Io`] if the file cannot be read.
    pub fn seal_file(
        &mut self,
        head: &[u8],
        file: BorrowedFd<'_>,
        offset: u64,
        bytes: u64,
        wait: transfer::Wait,
    ) -> Result<FileRecords, StreamError> {
        self.rekey_if_due()?;
        let sealer = sealer(&mut self.transmit)?;
        let prefix_bytes = sealer.prefix_bytes();
        let overhead_bytes = prefix_bytes + sealer.suffix_bytes();
        let plaintext_max = (RECORDS_PER_READ * PLAINTEXT_BYTES_MAX).max(head.len());
        let file_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let plaintext_bytes = head.len().saturating_add(file_bytes).min(plaintext_max);
        let records = plaintext_bytes.div_ceil(PLAINTEXT_BYTES_MAX);
        let room = self.outgoing.room(plaintext_bytes + records * overhead_bytes);
        let read = read_into_records(room, prefix_bytes, overhead_bytes, head, file, offset, wait);
        let read_bytes = match read {
            Ok(0) => return Ok(FileRecords::Sealed(0)),
            Ok(read_bytes) => read_bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Ok(FileRecords::Cold);
            }
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                return Ok(FileRecords::Untold);
            }
            Err(error) => return Err(error.into()),
        };
        let mut left_bytes = head.len() + read_bytes;
        let mut sealed_bytes = 0;
        while left_bytes > 0 {
            let plaintext_bytes = left_bytes.min(PLAINTEXT_BYTES_MAX);
            let record_bytes = plaintext_bytes + overhead_bytes;
            let record = room.get_mut(sealed_bytes..sealed_bytes + record_bytes);
            sealer.seal(ContentType::ApplicationData, record.unwrap_or_default())?;
            sealed_bytes += record_bytes;
            left_bytes -= plaintext_bytes;
        }
        self.outgoing.commit(sealed_bytes);
        Ok(FileRecords::Sealed(read_bytes))
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
        self.update_user_key_if_due()?;
        if !self.outgoing.is_empty() {
            ready!(poll_flush(&self.socket, &mut self.outgoing, more, context))?;
        }
        if self.control_due.is_empty() {
            return Poll::Ready(Ok(()));
        }
        self.poll_control(context)
    }

    /// Writes to the kernel, which encrypts; `more` says that the record goes on with what
    /// follows. Returns how many bytes were taken.
    ///
    /// # Errors
    /// [`StreamError::Io`] if the socket fails, [`StreamError::Bug`] if not offloaded.
    pub fn poll_kernel_write(
        &mut self,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
        more: bool,
    ) -> Poll<Result<usize, StreamError>> {
        ready!(self.poll_flush(context))?;
        let bytes = ready!(poll_kernel(&self.socket, context, || {
            transfer::send(self.socket.as_fd(), pieces, more)
        }))?;
        self.count_kernel_records(bytes)?;
        Poll::Ready(Ok(bytes))
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
        ready!(self.poll_flush(context))?;
        let bytes = ready!(poll_kernel(&self.socket, context, || {
            transfer::sendfile(self.socket.as_fd(), file, offset, bytes)
        }))?;
        self.count_kernel_records(bytes)?;
        Poll::Ready(Ok(bytes))
    }

    /// Queues a close_notify; nothing can be sent behind it.
    pub fn queue_close_notify(&mut self) {
        self.queue_alert(Alert::CLOSE_NOTIFY);
    }

    /// Sends what is queued, close_notify included, and ends our side of the connection.
    ///
    /// # Errors
    /// [`StreamError::Io`] if the socket fails.
    pub fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        ready!(self.poll_flush(context))?;
        self.transmit = Transmit::Ended;
        kettle_kernel::socket::shutdown_write(self.socket.as_fd())?;
        Poll::Ready(Ok(()))
    }

    /// Whether everything that was accepted for sending has arrived at the peer, as far as its
    /// kernel; also when the socket cannot tell.
    #[must_use]
    pub fn is_acknowledged(&self) -> bool {
        let pending = kettle_kernel::socket::pending_output_bytes(self.socket.as_fd());
        self.outgoing.is_empty() && pending.unwrap_or(0) == 0 && self.is_passed_to_tcp()
    }

    /// Ends our side as a cut: what is queued is dropped, and no close_notify is sent, so that the
    /// peer cannot take what it has for the whole (RFC 8446 §6.1).
    pub fn cut(&mut self) {
        self.outgoing.clear();
        self.control_due = super::ControlDue::default();
        self.transmit = Transmit::Ended;
    }

    pub(super) fn queue_alert(&mut self, alert: Alert) {
        match std::mem::replace(&mut self.transmit, Transmit::Ended) {
            Transmit::User(mut sealer) => {
                // No data follows that would need the new key.
                self.control_due.key_update = false;
                // An exhausted key cannot even say goodbye; the cut says it.
                let _ =
                    self.outgoing.append_sealed(&mut sealer, ContentType::Alert, &alert.message());
            }
            Transmit::Kernel(_) => self.control_due.alert = Some(alert),
            Transmit::Ended => {}
        }
    }

    pub(super) fn queue_no_renegotiation(&mut self) -> Result<(), StreamError> {
        match &mut self.transmit {
            Transmit::User(sealer) => {
                Ok(self.outgoing.append_sealed(sealer, ContentType::Alert, &NO_RENEGOTIATION)?)
            }
            Transmit::Kernel(_) => {
                self.control_due.no_renegotiation = true;
                Ok(())
            }
            Transmit::Ended => Ok(()),
        }
    }

    /// One control record of the kernel's, whole or not at all.
    pub(super) fn poll_control_record(
        &mut self,
        context: &mut Context<'_>,
        content_type: u8,
        content: &[u8],
    ) -> Poll<Result<(), StreamError>> {
        ready!(poll_kernel(&self.socket, context, || {
            record::send(self.socket.as_fd(), content_type, content)
        }))?;
        if let Some(output) = &mut self.kernel_output {
            output.bytes += content.len() as u64;
        }
        Poll::Ready(Ok(()))
    }
}

fn sealer(transmit: &mut Transmit) -> Result<&mut RecordSealer, StreamError> {
    match transmit {
        Transmit::User(sealer) => Ok(sealer),
        Transmit::Kernel(_) => Err(StreamError::Bug("sealing on an offloaded connection")),
        Transmit::Ended => Err(StreamError::Bug("sending on an ended connection")),
    }
}

/// Lays `head` and what one `preadv2` yields into the places where records keep their plaintext.
fn read_into_records(
    room: &mut [u8],
    prefix_bytes: usize,
    overhead_bytes: usize,
    head: &[u8],
    file: BorrowedFd<'_>,
    offset: u64,
    wait: transfer::Wait,
) -> io::Result<usize> {
    let mut head = head;
    let mut file_rooms: [IoSliceMut<'_>; RECORDS_PER_READ] =
        std::array::from_fn(|_| IoSliceMut::new(&mut []));
    let mut file_rooms_used = 0;
    for record in room.chunks_mut(PLAINTEXT_BYTES_MAX + overhead_bytes) {
        let plaintext_end = record.len() - (overhead_bytes - prefix_bytes);
        let mut plaintext = record.get_mut(prefix_bytes..plaintext_end).unwrap_or_default();
        if !head.is_empty() {
            let (now, later) = head.split_at(head.len().min(plaintext.len()));
            let (target, rest) = plaintext.split_at_mut(now.len());
            target.copy_from_slice(now);
            (head, plaintext) = (later, rest);
        }
        if let Some(slot) = file_rooms.get_mut(file_rooms_used).filter(|_| !plaintext.is_empty()) {
            *slot = IoSliceMut::new(plaintext);
            file_rooms_used += 1;
        }
    }
    transfer::read_at(file, file_rooms.get_mut(..file_rooms_used).unwrap_or_default(), offset, wait)
}

/// Writes a queue out.
pub(super) fn poll_flush(
    socket: &TcpStream,
    queue: &mut Queue,
    more: bool,
    context: &mut Context<'_>,
) -> Poll<Result<(), StreamError>> {
    while !queue.is_empty() {
        ready!(socket.poll_write_ready(context))?;
        let sent = socket.try_io(Interest::WRITABLE, || {
            let bytes = transfer::send_one(socket.as_fd(), queue.filled(), more)?;
            queue.consume(bytes);
            // What was not taken filled the socket: tokio need not be told by a call that fails.
            if queue.is_empty() { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
        });
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            sent => sent?,
        }
    }
    Poll::Ready(Ok(()))
}

/// Runs a call that sends without waiting, when the socket takes bytes.
pub(super) fn poll_kernel<T>(
    socket: &TcpStream,
    context: &mut Context<'_>,
    mut call: impl FnMut() -> io::Result<T>,
) -> Poll<io::Result<T>> {
    loop {
        ready!(socket.poll_write_ready(context))?;
        match socket.try_io(Interest::WRITABLE, &mut call) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return Poll::Ready(result),
        }
    }
}
