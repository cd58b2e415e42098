//! The outcome of trying a server, in words, and why no server could be had.

use std::fmt;
use std::io;

use kettle_runtime::metrics::Label;
use kettle_tls::stream::StreamError;
use rustix::io::Errno;

/// The outcome of trying a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It took the connection and, where it speaks TLS, completed the handshake.
    Connected,
    /// Nobody listens there.
    Refused,
    /// It did not answer in time.
    TimedOut,
    /// No way leads there.
    Unreachable,
    /// It closed the connection at once.
    Closed,
    /// There is no such Unix socket.
    NoSocket,
    /// We may not connect there.
    Forbidden,
    /// We ran out of descriptors, ports or memory.
    NoResources,
    /// It refused the dialogue before TLS.
    StartTls,
    /// The TLS handshake failed.
    Tls,
    /// It closed after it was told who the client is.
    TurnedAway,
    /// It answered, but not as a healthy server does.
    BadAnswer,
    /// Something else.
    Other,
    /// The client went away while we tried.
    Abandoned,
}

impl Outcome {
    /// The word used in logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::WORDS.get(self as usize).copied().unwrap_or("other")
    }

    /// True if it speaks against the server: neither success, nor our own want, nor the client's haste, nor an answer in
    /// good order.
    #[must_use]
    pub fn is_against_server(self) -> bool {
        !matches!(
            self,
            Self::Connected
                | Self::NoResources
                | Self::Abandoned
                | Self::StartTls
                | Self::TurnedAway
        )
    }
}

impl Label for Outcome {
    const WORDS: &'static [&'static str] = &[
        "connected",
        "refused",
        "timeout",
        "unreachable",
        "closed",
        "no_socket",
        "forbidden",
        "no_resources",
        "starttls",
        "tls",
        "turned_away",
        "bad_answer",
        "other",
        "abandoned",
    ];

    fn index(self) -> usize {
        self as usize
    }
}

/// Why a server could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In one word.
    pub outcome: Outcome,
    /// For a person.
    pub detail: String,
}

impl Failure {
    /// A failure with its explanation.
    #[must_use]
    pub fn new(outcome: Outcome, detail: impl Into<String>) -> Self {
        Self { outcome, detail: detail.into() }
    }

    /// It took longer than it may.
    #[must_use]
    pub fn timed_out() -> Self {
        Self::new(Outcome::TimedOut, "it did not answer in time")
    }
}

/// A handshake with a server that failed. One that closes has said nothing in TLS: that is as it is without.
impl From<StreamError> for Failure {
    fn from(error: StreamError) -> Self {
        let detail = format!("TLS: {error}");
        let outcome = match error {
            StreamError::Io(error) => Self::from(error).outcome,
            _ => Outcome::Tls,
        };
        Self::new(outcome, detail)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let outcome = match (Errno::from_io_error(&error), error.kind()) {
            // Ports run out as descriptors do: for each pair of addresses there are some 28,000.
            (
                Some(
                    Errno::MFILE
                    | Errno::NFILE
                    | Errno::NOBUFS
                    | Errno::NOMEM
                    | Errno::ADDRNOTAVAIL,
                ),
                _,
            ) => Outcome::NoResources,
            (_, io::ErrorKind::ConnectionRefused) => Outcome::Refused,
            (_, io::ErrorKind::TimedOut) => Outcome::TimedOut,
            (_, io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => {
                Outcome::Unreachable
            }
            (
                _,
                io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::UnexpectedEof,
            ) => Outcome::Closed,
            (_, io::ErrorKind::NotFound) => Outcome::NoSocket,
            (_, io::ErrorKind::PermissionDenied) => Outcome::Forbidden,
            _ => Outcome::Other,
        };
        Self::new(outcome, error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.detail)
    }
}

impl std::error::Error for Failure {}

/// Why a backend gave no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// No server may be tried: all are drained, or no name of theirs has an address.
    NoServer,
    /// All servers are at their limit, and as many wait as may.
    QueueFull,
    /// All servers were at their limit for as long as a connection waits.
    QueueTimeout,
    /// Every server was tried; this is what the last one did.
    AllFailed(Failure),
}

impl ConnectError {
    /// One word for logs and metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoServer => "no_server",
            Self::QueueFull => "queue_full",
            Self::QueueTimeout => "queue_timeout",
            Self::AllFailed(failure) => failure.outcome.as_str(),
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoServer => {
                formatter.write_str("no server may be tried: all are drained or have no address")
            }
            Self::QueueFull => {
                formatter.write_str("every server is at its limit, and the queue is full")
            }
            Self::QueueTimeout => {
                formatter.write_str("every server stayed at its limit for `queue_timeout`")
            }
            Self::AllFailed(last) => write!(formatter, "every server failed, the last: {last}"),
        }
    }
}

impl std::error::Error for ConnectError {}
