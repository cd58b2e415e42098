//! Why a transaction failed, in words that results and charts share.

use std::fmt;
use std::io;

/// Why a transaction failed; what each is, its words below say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    ConnectRefused,
    Unreachable,
    NoPort,
    NoDescriptor,
    Timeout,
    Reset,
    Closed,
    Truncated,
    ClosedIdle,
    Handshake,
    Alert,
    Tls,
    NoHttp2,
    BadHead,
    HeadTooLong,
    WrongStatus(u16),
    NoLength,
    Chunked,
    WrongLength,
    WrongHash,
    Excess,
    Overload,
    Io,
}

impl Failure {
    /// The word used in results.
    pub fn as_str(self) -> &'static str {
        self.words().0
    }

    /// The word used in results, and words for people, to follow "why:".
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Failure::ConnectRefused => ("connect_refused", "nobody listens there"),
            Failure::Unreachable => ("unreachable", "there is no route to it"),
            Failure::NoPort => ("no_port", "no source port is left"),
            Failure::NoDescriptor => ("no_descriptor", "this process may open no further file"),
            Failure::Timeout => ("timeout", "no whole answer within the timeout"),
            Failure::Reset => ("reset", "the server reset the connection"),
            Failure::Closed => ("closed", "the server closed before its answer"),
            Failure::Truncated => ("truncated", "the server closed within its answer"),
            Failure::ClosedIdle => {
                ("closed_idle", "the server closed a connection that was to stay")
            }
            Failure::Handshake => ("handshake", "the TLS handshake failed"),
            Failure::Alert => ("alert", "the server sent a fatal TLS alert"),
            Failure::Tls => ("tls", "the server broke the TLS record protocol"),
            Failure::NoHttp2 => ("no_http2", "the server does not speak HTTP/2"),
            Failure::BadHead => ("bad_head", "the answer is not the HTTP that was agreed on"),
            Failure::HeadTooLong => ("head_too_long", "the head of the answer is too long"),
            Failure::WrongStatus(_) => (WRONG_STATUS, "the status is not 200"),
            Failure::NoLength => ("no_length", "the answer does not say how long its body is"),
            Failure::Chunked => {
                ("chunked", "the body comes in chunks, which this client does not read")
            }
            Failure::WrongLength => ("wrong_length", "the body has another length"),
            Failure::WrongHash => ("wrong_hash", "the body has another content"),
            Failure::Excess => ("excess", "bytes came that nobody asked for"),
            Failure::Overload => ("overload", "too many others were under way when it was due"),
            Failure::Io => ("io", "the socket failed"),
        }
    }

    /// The reason a call on a socket failed for.
    pub(super) fn from_io(error: &io::Error) -> Self {
        use io::ErrorKind;
        match error.kind() {
            ErrorKind::ConnectionRefused => Failure::ConnectRefused,
            ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::NotConnected => Failure::Reset,
            ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable | ErrorKind::NetworkDown => {
                Failure::Unreachable
            }
            ErrorKind::AddrNotAvailable => Failure::NoPort,
            ErrorKind::TimedOut => Failure::Timeout,
            ErrorKind::UnexpectedEof => Failure::Closed,
            _ => match error.raw_os_error() {
                Some(EMFILE | ENFILE) => Failure::NoDescriptor,
                _ => Failure::Io,
            },
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::WrongStatus(status) => write!(f, "the status is {status}, not 200"),
            other => f.write_str(other.words().1),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::from_io(&error)
    }
}

/// The word of [`Failure::WrongStatus`], whatever the status.
pub const WRONG_STATUS: &str = "wrong_status";

const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
