//! Moving what a connection sends into the kernel, and changing the key once it is there.
//!
//! The order is what keeps the switch safe (docs/ktls.md): send what is queued, attach, give up
//! the sealer, install its key. Until the sealer is given up a refusal is harmless; from then on
//! a failure ends the connection, because the socket would send plaintext.

use std::io;
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use kettle_kernel::ktls::{self, Direction, Refusal};
use kettle_kernel::{record, socket};
use tokio::net::TcpStream;

use super::{
    ControlDue, KernelOutput, KernelTransmit, KeyChanges, Received, SendingKey, Skipping,
    StreamError, TlsStream, Transmit,
};
use crate::control::{ControlReader, KEY_UPDATE, NO_RENEGOTIATION, Peer};
use crate::handshake::Established;
use crate::records::{AES_GCM_RECORDS_MAX, ContentType, RecordSealer};

/// Why a connection did not move into the kernel.
#[derive(Debug)]
pub enum OffloadError {
    /// The kernel refused before anything was given up: the connection goes on in user space.
    Refused(Refusal),
    /// The connection has ended; if the kernel failed half-way, the suite should not be tried again.
    Ended(StreamError),
}

impl TlsStream {
    pub(super) fn new(socket: TcpStream, established: Established, peer: Peer) -> Self {
        let Established { sealer, opener, updater, session, incoming, outgoing } = established;
        Self {
            socket,
            control: ControlReader::new(session.version, peer, Instant::now()),
            session: Box::new(session),
            transmit: Transmit::User(Box::new(sealer)),
            opener: Box::new(opener),
            updater,
            ciphertext: incoming,
            skipping: Skipping::default(),
            received: Received::default(),
            outgoing,
            has_peer_closed: false,
            control_due: ControlDue::default(),
            kernel_output: None,
            key_changes: KeyChanges::default(),
            sending_key: SendingKey::Good,
        }
    }

    /// Sends what is queued, then moves what this connection sends into the kernel. `can_rekey`
    /// says whether this kernel can change a key (Linux 6.14). Does nothing if already there.
    ///
    /// # Errors
    /// [`OffloadError`].
    pub fn poll_offload(
        &mut self,
        context: &mut Context<'_>,
        can_rekey: bool,
    ) -> Poll<Result<(), OffloadError>> {
        ready!(self.poll_flush(context)).map_err(OffloadError::Ended)?;
        if !matches!(self.transmit, Transmit::User(_)) {
            return Poll::Ready(Ok(()));
        }
        if let Err(refusal) = ktls::attach(self.socket.as_fd()) {
            return Poll::Ready(Err(OffloadError::Refused(refusal)));
        }
        let Transmit::User(sealer) = std::mem::replace(&mut self.transmit, Transmit::Ended) else {
            return Poll::Ready(Ok(()));
        };
        Poll::Ready(self.install(*sealer, can_rekey).map_err(OffloadError::Ended))
    }

    /// Hands a sealer's key to the kernel. On failure the connection stays ended.
    fn install(&mut self, sealer: RecordSealer, can_rekey: bool) -> Result<(), StreamError> {
        let transmit = KernelTransmit {
            version: sealer.version(),
            cipher: sealer.cipher(),
            can_rekey,
            records_unchecked: sealer.sequence(),
        };
        let output = KernelOutput {
            version: sealer.version(),
            cipher: sealer.cipher(),
            record_overhead_bytes: (sealer.prefix_bytes() + sealer.suffix_bytes()) as u64,
            sequence_first: sealer.sequence(),
            // Under an earlier key in the kernel, or all that was sent from here.
            bytes: self.kernel_output_bytes()?.unwrap_or(self.outgoing.taken_bytes()),
        };
        let keys =
            sealer.into_kernel_keys().ok_or(StreamError::Bug("a key of the wrong length"))?;
        ktls::install(self.socket.as_fd(), Direction::Tx, &keys).map_err(StreamError::Kernel)?;
        self.transmit = Transmit::Kernel(transmit);
        self.kernel_output = Some(output);
        Ok(())
    }

    /// What TCP must have been given in all when kernel TLS holds nothing back; `None` if the kernel never encrypted.
    fn kernel_output_bytes(&self) -> io::Result<Option<u64>> {
        let Some(output) = &self.kernel_output else {
            return Ok(None);
        };
        let fd = self.socket.as_fd();
        let sequence = ktls::sequence(fd, Direction::Tx, output.version, output.cipher)?;
        let records = sequence.saturating_sub(output.sequence_first);
        Ok(Some(output.bytes + records * output.record_overhead_bytes))
    }

    /// Whether TCP has all that kernel TLS was given. A record that TCP had no room for stays in kernel TLS until there
    /// is some; ending our side before would drop it without a word.
    #[must_use]
    pub fn is_passed_to_tcp(&self) -> bool {
        match (self.kernel_output_bytes(), socket::written_bytes(self.socket.as_fd())) {
            (Ok(Some(expected)), Ok(written)) => written >= expected,
            // Nothing to wait for, or no way to tell.
            _ => true,
        }
    }

    /// The peer asked for our next key: nothing may be sent before it has it. One answer does for all that ask
    /// before it is sent (RFC 8446 §4.6.3).
    pub(super) fn answer_key_update(&mut self) {
        match &self.transmit {
            // Before Linux 6.14 the key cannot change. An alert is all that may follow under the old one.
            Transmit::Kernel(transmit) if !transmit.can_rekey => {
                self.queue_close_notify();
                self.sending_key = SendingKey::Refused;
            }
            Transmit::User(_) | Transmit::Kernel(_) => self.control_due.key_update = true,
            Transmit::Ended => {}
        }
    }

    /// Answers a KeyUpdate before anything else is sealed or sent.
    pub(super) fn update_user_key_if_due(&mut self) -> Result<(), StreamError> {
        if self.control_due.key_update && matches!(self.transmit, Transmit::User(_)) {
            self.control_due.key_update = false;
            self.update_user_key()?;
        }
        Ok(())
    }

    fn update_user_key(&mut self) -> Result<(), StreamError> {
        let next = self.next_sealer()?;
        if let Transmit::User(sealer) = &mut self.transmit {
            self.outgoing.append_sealed(sealer, ContentType::Handshake, &KEY_UPDATE)?;
            **sealer = next;
            self.key_changes.sent += 1;
        }
        Ok(())
    }

    fn next_sealer(&mut self) -> Result<RecordSealer, StreamError> {
        let updater = self.updater.as_mut().ok_or(StreamError::KeyExhausted)?;
        let next = updater.next_tx().and_then(RecordSealer::new);
        next.map_err(|_| StreamError::Bug("no next sending key"))
    }

    /// Changes the user-space key where the peer asked for it, or while it can still seal a full write and the KeyUpdate.
    pub(super) fn rekey_if_due(&mut self) -> Result<(), StreamError> {
        self.update_user_key_if_due()?;
        match &self.transmit {
            Transmit::User(sealer) if sealer.records_left() <= RECORDS_RESERVED => {
                if self.updater.is_some() {
                    return self.update_user_key();
                }
                self.sending_key = SendingKey::NearsLimit;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Counts what the kernel just sent, never too low, and asks the kernel for the true record
    /// number before the count could reach the key's limit.
    pub(super) fn count_kernel_records(&mut self, bytes: usize) -> Result<(), StreamError> {
        let Transmit::Kernel(transmit) = &mut self.transmit else {
            return Err(StreamError::Bug("counting records the kernel does not send"));
        };
        transmit.records_unchecked += (bytes / RECORD_BYTES_COUNTED) as u64 + 1;
        if let Some(output) = &mut self.kernel_output {
            output.bytes += bytes as u64;
        }
        if transmit.records_unchecked < AES_GCM_RECORDS_MAX - RECORDS_RESERVED
            || transmit.cipher == ktls::Cipher::Chacha20Poly1305
        {
            return Ok(());
        }
        let fd = self.socket.as_fd();
        let sequence = ktls::sequence(fd, Direction::Tx, transmit.version, transmit.cipher)?;
        transmit.records_unchecked = sequence;
        if sequence < AES_GCM_RECORDS_MAX - RECORDS_RESERVED {
            return Ok(());
        }
        if transmit.can_rekey && self.updater.is_some() {
            self.control_due.key_update = true;
        } else if sequence < AES_GCM_RECORDS_MAX {
            self.sending_key = SendingKey::NearsLimit;
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
        context: &mut Context<'_>,
    ) -> Poll<Result<(), StreamError>> {
        if self.control_due.no_renegotiation {
            ready!(self.poll_control_record(context, record::ALERT, &NO_RENEGOTIATION))?;
            self.control_due.no_renegotiation = false;
        }
        if self.control_due.key_update {
            ready!(self.poll_control_record(context, record::HANDSHAKE, &KEY_UPDATE))?;
            self.control_due.key_update = false;
            // What follows must be under the next key, or the connection ends.
            let may_send = !matches!(self.transmit, Transmit::Ended);
            self.transmit = Transmit::Ended;
            let next = self.next_sealer()?;
            self.install(next, true)?;
            if !may_send {
                self.transmit = Transmit::Ended;
            }
            self.key_changes.sent += 1;
            self.key_changes.kernel += 1;
        }
        if let Some(alert) = self.control_due.alert {
            ready!(self.poll_control_record(context, record::ALERT, &alert.message()))?;
            self.control_due.alert = None;
        }
        Poll::Ready(Ok(()))
    }
}

impl ControlDue {
    pub(super) fn is_empty(&self) -> bool {
        !self.key_update && !self.no_renegotiation && self.alert.is_none()
    }
}

/// Records kept back from a key's limit, so that what is under way can still be finished.
pub(super) const RECORDS_RESERVED: u64 = 1 << 16;

/// The kernel's records are full except where a call ends, which counts as one more.
const RECORD_BYTES_COUNTED: usize = 16_384;
