//! Moving what a connection sends into the kernel, and changing keys, here and in the kernel.
//!
//! The order is what keeps the switch safe (docs/ktls.md): send what is queued, attach, give up
//! the sealer, install its key. Until the sealer is given up a refusal is harmless; from then on
//! a failure ends the connection, because the socket would send plaintext.

use std::io;
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};

use kettle_kernel::ktls::{self, KtlsError, RecordDirection};
use kettle_kernel::{bug, record, socket};
use tokio::net::TcpStream;

use super::writer::{KernelOutput, KernelSending, Sending, SendingKey, TlsWriter};
use super::{Stream, StreamError};
use crate::control::{KEY_UPDATE, NO_RENEGOTIATION};
use crate::records::{AES_GCM_RECORDS_MAX, ContentType, RecordSealer};

/// Why a connection did not move into the kernel.
#[derive(Debug)]
pub enum OffloadError {
    /// The kernel refused before anything was given up: the connection goes on in user space.
    Refused(KtlsError),
    /// The connection has ended; if the kernel failed half-way, the suite should not be tried again.
    Ended(StreamError),
}

impl Stream {
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
        let Self { socket: tcp, writer, .. } = self;
        // As for what is sent through the kernel: the caller learns of its end before the close_notify goes out.
        if writer.refuses_data() {
            return Poll::Ready(Err(OffloadError::Ended(StreamError::KeyExhausted)));
        }
        if matches!(writer.sending, Sending::Kernel(_) | Sending::Plain) {
            return Poll::Ready(Ok(()));
        }
        ready!(writer.poll_flush(tcp, context, false)).map_err(OffloadError::Ended)?;
        if matches!(writer.sending, Sending::Ended) {
            return Poll::Ready(Err(OffloadError::Ended(StreamError::Ended)));
        }
        let written = socket::written_bytes_exactly(tcp.as_fd());
        let written_bytes = ready!(poll_written(written, context));
        if let Err(refusal) = ktls::attach(tcp.as_fd()) {
            return Poll::Ready(Err(OffloadError::Refused(refusal)));
        }
        let Sending::User(sealer) = std::mem::replace(&mut writer.sending, Sending::Ended) else {
            return Poll::Ready(Ok(()));
        };
        let installed = writer.install(tcp, *sealer, can_rekey, written_bytes);
        Poll::Ready(installed.map_err(OffloadError::Ended))
    }
}

impl TlsWriter {
    /// Hands a sealer's key to the kernel; `written_bytes` is what TCP had been given by then. On failure the connection stays
    /// ended.
    fn install(
        &mut self,
        socket: &TcpStream,
        sealer: RecordSealer,
        can_rekey: bool,
        written_bytes: u64,
    ) -> Result<(), StreamError> {
        let sending = KernelSending {
            version: sealer.version(),
            cipher: sealer.cipher(),
            can_rekey,
            records_unchecked: sealer.sequence(),
        };
        let output = KernelOutput::new(&sealer, written_bytes);
        let keys = sealer
            .into_kernel_keys()
            .ok_or_else(|| bug!("a key that seals has its cipher's length"))?;
        ktls::install(socket.as_fd(), RecordDirection::Tx, &keys).map_err(StreamError::Kernel)?;
        self.sending = Sending::Kernel(sending);
        self.kernel_output = Some(Box::new(output));
        Ok(())
    }

    /// The byte count TCP must have reached once kernel TLS holds nothing back; `None` if the kernel never encrypted.
    fn kernel_output_bytes(&self, socket: &TcpStream) -> io::Result<Option<u64>> {
        let Some(output) = &self.kernel_output else {
            return Ok(None);
        };
        let fd = socket.as_fd();
        let sequence = ktls::sequence(fd, RecordDirection::Tx, output.version, output.cipher)?;
        Ok(Some(output.bytes_at(sequence)))
    }

    /// True if TCP has all that kernel TLS was given. A record that TCP had no room for stays in kernel TLS until there
    /// is some; ending our side before would drop it without a word.
    pub(super) fn is_passed_to_tcp(&self, socket: &TcpStream) -> bool {
        // Nothing to wait for, or no way to tell.
        let Ok(Some(expected)) = self.kernel_output_bytes(socket) else { return true };
        socket::written_bytes(socket.as_fd()).map_or(true, |written| written >= expected)
    }

    /// Tells whether, behind a cut, kernel TLS holds back nothing but a record that `MSG_MORE` left open, which nobody ends any
    /// more: TCP has sent all it had, and was given nothing since the last look.
    pub(super) fn keeps_open_record(&mut self, socket: &TcpStream) -> bool {
        let seen = self.kernel_output.as_mut().and_then(|output| output.written_at_look.as_mut());
        let (Some(seen), fd) = (seen, socket.as_fd()) else { return false };
        let (Ok(written), Ok(0)) = (socket::written_bytes(fd), socket::pending_output_bytes(fd))
        else {
            return false;
        };
        std::mem::replace(seen, written) == written
    }

    /// Seals the answer to a KeyUpdate, if one is due from here; what is sealed after it is under the next key.
    pub(super) fn update_user_key_if_due(&mut self) -> Result<bool, StreamError> {
        let is_due = self.due.key_update && matches!(self.sending, Sending::User(_));
        if is_due {
            self.due.key_update = false;
            self.update_user_key()?;
        }
        Ok(is_due)
    }

    fn update_user_key(&mut self) -> Result<(), StreamError> {
        let next = self.next_sealer()?;
        if let Sending::User(sealer) = &mut self.sending {
            self.outgoing.append_sealed(sealer, ContentType::Handshake, &KEY_UPDATE)?;
            **sealer = next;
            self.key_changes += 1;
        }
        Ok(())
    }

    fn next_sealer(&mut self) -> Result<RecordSealer, StreamError> {
        let secret = self.secret.as_mut().ok_or(StreamError::KeyExhausted)?;
        let next = secret.next().and_then(RecordSealer::new);
        next.map_err(|_| bug!("each secret has a next sending key").into())
    }

    /// Changes the user-space key where the peer asked for it, or while it can still seal a full write and the KeyUpdate.
    pub(super) fn rekey_if_due(&mut self) -> Result<(), StreamError> {
        self.update_user_key_if_due()?;
        match &self.sending {
            Sending::User(sealer) if sealer.records_left() <= RECORDS_RESERVED => {
                if self.secret.is_some() {
                    return self.update_user_key();
                }
                self.key = SendingKey::NearsLimit;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Counts what the kernel just sent, never too low.
    pub(super) fn count_kernel_records(&mut self, bytes: usize, records: u64) {
        if let Sending::Kernel(sending) = &mut self.sending {
            sending.records_unchecked += records_max(bytes, records);
        }
        if let Some(output) = &mut self.kernel_output {
            output.bytes += bytes as u64;
        }
    }

    /// Asks the kernel for the true record number where what a call may send could come near the key's limit, and then sees to a
    /// next key. A call that could pass the limit is not made.
    pub(super) fn check_kernel_key(
        &mut self,
        socket: &TcpStream,
        bytes: usize,
        records: u64,
    ) -> Result<(), StreamError> {
        let Sending::Kernel(sending) = &mut self.sending else { return Ok(()) };
        let records = records_max(bytes, records);
        if !nears_limit(sending.records_unchecked + records)
            || sending.cipher == ktls::Cipher::Chacha20Poly1305
        {
            return Ok(());
        }
        let fd = socket.as_fd();
        let sequence = ktls::sequence(fd, RecordDirection::Tx, sending.version, sending.cipher)?;
        self.note_kernel_sequence(sequence, records)
    }

    /// Does what the kernel's true record number demands before a call that sends up to `records` records.
    pub(super) fn note_kernel_sequence(
        &mut self,
        sequence: u64,
        records: u64,
    ) -> Result<(), StreamError> {
        let Sending::Kernel(sending) = &mut self.sending else { return Ok(()) };
        sending.records_unchecked = sequence;
        if !nears_limit(sequence + records) {
            return Ok(());
        }
        if sending.can_rekey && self.secret.is_some() {
            self.due.key_update = true;
        } else if sequence + records + RECORDS_TO_END <= AES_GCM_RECORDS_MAX {
            self.key = SendingKey::NearsLimit;
        } else {
            self.cut();
            return Err(StreamError::KeyExhausted);
        }
        Ok(())
    }

    /// Sends the control records that are due: a refusal, a KeyUpdate with the key change behind
    /// it, an alert.
    pub(super) fn poll_control(
        &mut self,
        socket: &TcpStream,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), StreamError>> {
        if self.due.no_renegotiation {
            ready!(self.poll_control_record(socket, context, record::ALERT, &NO_RENEGOTIATION))?;
            self.due.no_renegotiation = false;
        }
        if self.due.key_update {
            ready!(self.poll_control_record(socket, context, record::HANDSHAKE, &KEY_UPDATE))?;
            // The next record must be under the next key, or none follows: no alert either.
            self.change_kernel_key(socket).inspect_err(|_| self.cut())?;
        }
        if let Some(alert) = self.due.alert {
            ready!(self.poll_control_record(socket, context, record::ALERT, &alert.message()))?;
            self.due.alert = None;
        }
        Poll::Ready(Ok(()))
    }

    /// Gives the kernel the key behind a KeyUpdate that was sent.
    fn change_kernel_key(&mut self, socket: &TcpStream) -> Result<(), StreamError> {
        self.due.key_update = false;
        let may_send = !matches!(self.sending, Sending::Ended);
        self.sending = Sending::Ended;
        let next = self.next_sealer()?;
        // All under an earlier key in the kernel, and before.
        let written_bytes = self.kernel_output_bytes(socket)?.unwrap_or(0);
        let installed = self.install(socket, next, true, written_bytes);
        if let Err(StreamError::Kernel(refusal)) = &installed {
            self.kernel_key_refusal = Some(refusal.reason());
        }
        installed?;
        if !may_send {
            self.sending = Sending::Ended;
        }
        self.key_changes += 1;
        self.kernel_key_changes += 1;
        Ok(())
    }
}

impl KernelOutput {
    /// As the kernel takes over; `written_bytes` is what TCP had been given by then.
    pub(super) fn new(sealer: &RecordSealer, written_bytes: u64) -> Self {
        Self {
            version: sealer.version(),
            cipher: sealer.cipher(),
            record_overhead_bytes: (sealer.prefix_bytes() + sealer.suffix_bytes()) as u64,
            sequence_first: sealer.sequence(),
            bytes: written_bytes,
            written_at_look: None,
        }
    }

    /// Returns the bytes that TCP has been given when the kernel's next record has this number.
    pub(super) fn bytes_at(&self, sequence: u64) -> u64 {
        let records = sequence.saturating_sub(self.sequence_first);
        self.bytes + records * self.record_overhead_bytes
    }
}

fn nears_limit(sequence: u64) -> bool {
    sequence >= AES_GCM_RECORDS_MAX - RECORDS_RESERVED
}

/// The number of records that many bytes make at most, if `partial` of them are not full.
fn records_max(bytes: usize, partial: u64) -> u64 {
    (bytes / RECORD_BYTES_COUNTED) as u64 + partial
}

/// Returns the bytes that TCP was given before the kernel encrypts: by us, and by others before TLS. Too low a count would let
/// us close before the last bytes are out, so while acknowledgements make it inexact we ask again in a later turn.
pub(super) fn poll_written(written: io::Result<u64>, context: &Context<'_>) -> Poll<u64> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
        // A number that cannot be asked for now cannot be asked for at the end either.
        written => Poll::Ready(written.unwrap_or(0)),
    }
}

/// Records kept back from a key's limit, so that what is under way can still be finished.
pub(super) const RECORDS_RESERVED: u64 = 1 << 16;

/// The records for which no call is counted: one that the one before left open, a refusal to renegotiate, and the close_notify.
const RECORDS_TO_END: u64 = 3;

/// The kernel's records are full except where a call ends and where a pipe held small pieces; these are counted beside them.
const RECORD_BYTES_COUNTED: usize = 16_384;
