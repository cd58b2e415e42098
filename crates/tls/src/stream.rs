//! A TLS connection over a TCP socket: what is sent may be encrypted here or by the kernel, what
//! is received is always opened here.
//!
//! Nothing in here waits by itself or keeps time: the `poll_` functions are for callers who watch
//! a deadline beside them.

mod accept;
mod connect;
mod discard;
mod offload;
mod receive;
mod send;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use kettle_kernel::ktls::{Cipher, Refusal, Version};
use tokio::net::TcpStream;

pub use accept::{Accepting, Farewell, Handshaking};
pub use offload::OffloadError;
pub use receive::{Fill, Received};
pub use send::FileRecords;

use crate::buffers::Queue;
use crate::control::{Alert, ControlReader, Violation};
use crate::handshake::HandshakeError;
use crate::records::{RecordError, RecordOpener, RecordSealer};
use crate::session::Session;
use crate::updater::Updater;

/// An established TLS connection.
pub struct TlsStream {
    socket: TcpStream,
    session: Box<Session>,
    transmit: Transmit,
    opener: Box<RecordOpener>,
    /// Makes the keys that follow a KeyUpdate; TLS 1.2 has none.
    updater: Option<Updater>,
    control: ControlReader,
    /// Received, not yet a whole record.
    ciphertext: Queue,
    /// The record that is being dropped unopened.
    skipping: Skipping,
    /// Received and opened, not yet consumed.
    received: Received,
    /// Sealed here, not yet sent.
    outgoing: Queue,
    has_peer_closed: bool,
    /// The kernel still has to send these control records, in this order.
    control_due: ControlDue,
    /// What the kernel was given to send, once it was.
    kernel_output: Option<KernelOutput>,
    key_changes: KeyChanges,
    sending_key: SendingKey,
}

/// Who encrypts what this connection sends.
enum Transmit {
    User(Box<RecordSealer>),
    Kernel(KernelTransmit),
    /// Nothing may be sent any more: the kernel failed half-way, or the connection was closed.
    Ended,
}

/// What may still be sent under the current key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendingKey {
    Good,
    /// It nears its limit and cannot be changed: the response under way, or the next.
    NearsLimit,
    /// The peer wants another one and the kernel cannot change it: no more application data (RFC 8446 §4.6.3).
    Refused,
}

/// What is known of a direction that the kernel encrypts.
struct KernelTransmit {
    version: Version,
    cipher: Cipher,
    can_rekey: bool,
    /// Records sent since the kernel was last asked for its record number: never too low.
    records_unchecked: u64,
}

/// What TCP must have been given when kernel TLS holds nothing back.
#[derive(Clone, Copy)]
struct KernelOutput {
    version: Version,
    cipher: Cipher,
    /// Header, nonce, inner type and tag of each record.
    record_overhead_bytes: u64,
    /// The number of the first record under the current key.
    sequence_first: u64,
    /// All but the overhead of the records under the current key.
    bytes: u64,
}

/// Control records the kernel must send before anything else.
#[derive(Default)]
struct ControlDue {
    no_renegotiation: bool,
    key_update: bool,
    alert: Option<Alert>,
}

/// A record of which the first bytes have been dropped unopened.
#[derive(Clone, Copy, Default)]
struct Skipping {
    left_bytes: u16,
    plaintext_bytes: u16,
}

/// How often a connection's keys changed after the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyChanges {
    /// The peer changed its key.
    pub received: u32,
    /// We changed ours, whoever encrypts.
    pub sent: u32,
    /// Of those, how many the kernel was given.
    pub kernel: u32,
}

/// Why a connection cannot go on.
#[derive(Debug)]
pub enum StreamError {
    /// The socket failed; most often the peer reset it.
    Io(io::Error),
    /// The handshake failed.
    Handshake(HandshakeError),
    /// The peer broke the protocol.
    Violation(Violation),
    /// The peer ended the connection with a fatal alert.
    AlertReceived(u8),
    /// The kernel failed when it could not be stepped back from.
    Kernel(Refusal),
    /// A key reached its limit and could not be replaced.
    KeyExhausted,
    /// A bug of ours, such as sending on an ended connection.
    Bug(&'static str),
}

impl StreamError {
    /// One word for logs and metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            StreamError::Io(error) => match error.kind() {
                io::ErrorKind::ConnectionReset => "reset",
                io::ErrorKind::BrokenPipe => "broken_pipe",
                io::ErrorKind::UnexpectedEof => "unexpected_eof",
                io::ErrorKind::TimedOut => "timed_out",
                _ => "io",
            },
            StreamError::Handshake(error) => error.reason(),
            StreamError::Violation(violation) => violation.what,
            StreamError::AlertReceived(_) => "alert_received",
            StreamError::Kernel(refusal) => refusal.reason(),
            StreamError::KeyExhausted => "key_exhausted",
            StreamError::Bug(_) => "internal",
        }
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamError::Io(error) => write!(formatter, "{error}"),
            StreamError::Handshake(error) => write!(formatter, "{error}"),
            StreamError::Violation(violation) => write!(formatter, "the peer: {violation}"),
            StreamError::AlertReceived(alert) => write!(formatter, "the peer sent alert {alert}"),
            StreamError::Kernel(refusal) => write!(formatter, "kernel TLS: {}", refusal.reason()),
            StreamError::KeyExhausted => formatter.write_str("a key reached its limit"),
            StreamError::Bug(what) => write!(formatter, "bug: {what}"),
        }
    }
}

impl std::error::Error for StreamError {}

impl From<io::Error> for StreamError {
    fn from(error: io::Error) -> Self {
        StreamError::Io(error)
    }
}

impl From<RecordError> for StreamError {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::KeyExhausted => StreamError::KeyExhausted,
            _ => StreamError::Bug("a record was laid out wrongly"),
        }
    }
}

impl TlsStream {
    /// What the handshake agreed on.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Whether the kernel encrypts what this connection sends.
    #[must_use]
    pub fn is_offloaded(&self) -> bool {
        matches!(self.transmit, Transmit::Kernel(_))
    }

    /// How often its keys changed.
    #[must_use]
    pub fn key_changes(&self) -> KeyChanges {
        self.key_changes
    }

    /// Whether the connection must close after the current response, because its key must change
    /// and cannot be changed: by the kernel before Linux 6.14, and in TLS 1.2.
    #[must_use]
    pub fn must_close(&self) -> bool {
        self.sending_key != SendingKey::Good
    }

    /// The underlying socket's descriptor.
    #[must_use]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
