//! A connection over a TCP socket: TLS, of which what is sent may be encrypted here or by the kernel, and what is received is
//! always opened here; or plain text, so that what serves requests need not know which.
//!
//! Nothing in here waits by itself or has a deadline: the `poll_` functions are for callers who watch
//! one beside them.

mod accept;
mod bytes;
mod calls;
mod connect;
mod discard;
mod offload;
mod pause;
mod reader;
mod receive;
mod record_room;
mod send;
#[cfg(test)]
pub(crate) mod tests;
mod writer;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use kettle_kernel::bug;
use kettle_kernel::bug::Bug;
use kettle_kernel::ktls::KtlsError;
use tokio::net::TcpStream;

pub use accept::{Accepting, ClosingSocket, Handshaking};
pub use bytes::front_pieces;
pub use connect::{ConnectStep, Connecting};
pub use offload::OffloadError;
pub use pause::Pause;
pub use reader::Received;
pub use receive::Filled;
pub use record_room::RecordRoom;
pub use send::FileRecords;

use crate::control::{ControlReader, Peer, Violation};
use crate::handshake::{Established, HandshakeError, KeptSession};
use crate::records::RecordError;
use crate::session::Session;
pub use crate::ticket_reader::Tickets;
use reader::{Opening, TlsReader};
use writer::{Sending, TlsWriter};

/// An established connection: two halves over one socket, each of which makes progress alone.
pub struct Stream {
    socket: TcpStream,
    /// A plain connection has none.
    session: Option<Box<Session>>,
    /// The store that keeps it, to be resumed.
    kept_session: Option<Arc<dyn KeptSession>>,
    reader: TlsReader,
    writer: TlsWriter,
}

/// The number of times a connection's keys changed after the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyChanges {
    /// The peer changed its key.
    pub received: u32,
    /// We changed ours, here or in the kernel.
    pub sent: u32,
    /// Of those, how many the kernel was given.
    pub kernel: u32,
    /// Why the kernel did not take a next one, which ended the connection.
    pub refused: Option<&'static str>,
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
    Kernel(KtlsError),
    /// A key reached its limit and could not be replaced.
    KeyExhausted,
    /// Our side has ended, and sends nothing more.
    Ended,
    /// A bug of ours.
    Bug(Bug),
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
            StreamError::AlertReceived(CERTIFICATE_REQUIRED) => "certificate_required",
            StreamError::AlertReceived(_) => "alert_received",
            StreamError::Kernel(refusal) => refusal.reason(),
            StreamError::KeyExhausted => "key_exhausted",
            StreamError::Ended => "ended",
            StreamError::Bug(_) => "internal",
        }
    }

    /// The same error once more, for who asks again.
    fn again(&self) -> Self {
        match self {
            StreamError::Violation(violation) => StreamError::Violation(*violation),
            StreamError::AlertReceived(alert) => StreamError::AlertReceived(*alert),
            StreamError::Bug(bug) => StreamError::Bug(*bug),
            _ => bug!("receiving fails by the peer, or by a bug").into(),
        }
    }

    /// True if the handshake failed for the peer's certificate, or for want of one.
    #[must_use]
    pub fn is_about_certificate(&self) -> bool {
        use rustls::Error;
        match self {
            StreamError::Handshake(HandshakeError::Rustls(error)) => {
                matches!(error, Error::NoCertificatesPresented | Error::InvalidCertificate(_))
            }
            StreamError::Handshake(HandshakeError::Certificate(_)) => true,
            _ => false,
        }
    }
}

/// A server of TLS 1.3 says it when the client's handshake is over already (RFC 8446 §4.4.2.4).
const CERTIFICATE_REQUIRED: u8 = 116;

impl fmt::Display for StreamError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamError::Io(error) => write!(formatter, "{error}"),
            StreamError::Handshake(error) => write!(formatter, "{error}"),
            StreamError::Violation(violation) => write!(formatter, "the peer: {violation}"),
            StreamError::AlertReceived(alert @ CERTIFICATE_REQUIRED) => {
                write!(formatter, "{}", HandshakeError::CertificateWanted((*alert).into()))
            }
            StreamError::AlertReceived(alert) => {
                let name = rustls::AlertDescription::from(*alert);
                write!(formatter, "the peer sent alert {alert} ({name:?})")
            }
            StreamError::Kernel(refusal) => write!(formatter, "kernel TLS: {}", refusal.reason()),
            StreamError::KeyExhausted => formatter.write_str("a key reached its limit"),
            StreamError::Ended => formatter.write_str("our side has ended"),
            StreamError::Bug(bug) => write!(formatter, "{bug}"),
        }
    }
}

impl std::error::Error for StreamError {}

impl From<io::Error> for StreamError {
    fn from(error: io::Error) -> Self {
        StreamError::Io(error)
    }
}

impl From<Bug> for StreamError {
    fn from(bug: Bug) -> Self {
        StreamError::Bug(bug)
    }
}

impl From<Violation> for StreamError {
    fn from(violation: Violation) -> Self {
        StreamError::Violation(violation)
    }
}

impl From<RecordError> for StreamError {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::KeyExhausted => StreamError::KeyExhausted,
            _ => bug!("what we seal is laid out as records are").into(),
        }
    }
}

impl Stream {
    fn new(socket: TcpStream, established: Established, peer: Peer) -> Self {
        let Established {
            sealer,
            opener,
            secrets,
            tickets,
            session,
            kept_session,
            incoming,
            outgoing,
        } = established;
        let (tx, rx) = secrets.map(|secrets| (secrets.tx, secrets.rx)).unzip();
        let control = ControlReader::new(session.version, peer, Instant::now());
        let protection = Opening { opener: Box::new(opener), secret: rx, tickets, control };
        let are_tickets = peer == Peer::Client && session.version == crate::Version::Tls13;
        Self {
            socket,
            session: Some(Box::new(session)),
            kept_session,
            reader: TlsReader::new(protection, incoming),
            writer: TlsWriter::new(sealer, tx, outgoing, are_tickets),
        }
    }

    /// A connection without TLS, of which `received` was received already.
    #[must_use]
    pub fn plain(socket: TcpStream, received: Vec<u8>) -> Self {
        Self {
            socket,
            session: None,
            kept_session: None,
            reader: TlsReader::plain(received.into()),
            writer: TlsWriter::plain(),
        }
    }

    /// The socket of a plain connection that has nothing queued, and what was received and not consumed. A connection with TLS
    /// comes back as it is.
    ///
    /// # Errors
    /// The connection, if it has TLS or still has something to send.
    pub fn into_plain(self: Box<Self>) -> Result<(TcpStream, Received), Box<Self>> {
        if !self.is_plain() || self.queued_bytes() > 0 {
            return Err(self);
        }
        Ok((self.socket, self.reader.received))
    }

    /// Returns the parameters on which the handshake agreed; `None` if there was none.
    #[must_use]
    pub fn session(&self) -> Option<&Session> {
        self.session.as_deref()
    }

    /// True if nothing is encrypted.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.session.is_none()
    }

    /// Returns the number of times its keys changed.
    #[must_use]
    pub fn key_changes(&self) -> KeyChanges {
        KeyChanges {
            received: self.reader.key_changes,
            sent: self.writer.key_changes,
            kernel: self.writer.kernel_key_changes,
            refused: self.writer.kernel_key_refusal,
        }
    }

    /// The tickets that a TLS 1.3 server has sent so far. They come behind the handshake: what has not been read does
    /// not count.
    #[must_use]
    pub fn tickets(&self) -> Tickets {
        self.reader.tickets()
    }

    /// Goes on as if this many records more had been sent and received, which is how a test gets near a key's limit. The peer must
    /// do the same the other way round, or nothing authenticates any more. Records that the kernel sends cannot be skipped.
    pub fn dangerous_skip_records(&mut self, sent: u64, received: u64) {
        if let Some(protection) = &mut self.reader.protection {
            protection.opener.skip_records(received);
        }
        if let Sending::User(sealer) = &mut self.writer.sending {
            sealer.skip_records(sent);
        }
    }

    /// The underlying socket's descriptor.
    #[must_use]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The socket, to wait for. To receive or send on it would break the stream.
    pub fn tcp(&self) -> &TcpStream {
        &self.socket
    }
}
