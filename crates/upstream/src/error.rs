//! Why a backend gave no response, or not all of one.

use std::fmt;
use std::io;

use kettle_http::fcgi::RecordError;
use kettle_http::h1::response::ResponseError;
use kettle_kernel::bug::Bug;
use kettle_tls::stream::StreamError;

use crate::backend::{ConnectError, Outcome};

/// Why there is no response of a server's, or not its end.
#[derive(Debug)]
pub enum UpstreamError {
    /// No connection could be had.
    Connect(ConnectError),
    /// The connection ended before the response did.
    Ended(io::Error),
    /// Nothing came, or nothing was taken, for as long as that may last.
    TimedOut,
    /// This server stops: its time to drain is over, or what is stale is better than to wait.
    Stopping,
    /// The bytes that came are no response, or not one whose end is beyond doubt.
    Malformed(ResponseError),
    /// The bytes that came are no records of FastCGI.
    Records(RecordError),
    /// The application has no process or connection for the request.
    Overloaded,
    /// The application ended the request without answering it, because it is no responder or in the middle of its answer.
    NotAnswered,
    /// The server changed to a protocol that nobody had asked it for.
    UnaskedUpgrade,
    /// The server did not change to the protocol that it was asked for, and called that a success.
    NotUpgraded,
    /// More responses came before the final one than anybody needs.
    TooManyInterim,
    /// The response names more fields as meant for us alone than anybody needs.
    TooManyOptions,
    /// The response names another one in its place (`X-Accel-Redirect`, `X-Sendfile`), which nothing here takes: it is not meant for
    /// the client.
    InternalRedirect,
    /// A bug of ours.
    Bug(Bug),
}

impl UpstreamError {
    /// The status to answer with, as long as nothing else was.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::Connect(ConnectError::AllFailed(failure)) => match failure.outcome {
                Outcome::TimedOut => 504,
                _ => 502,
            },
            Self::Connect(_) | Self::Overloaded => 503,
            Self::TimedOut | Self::Stopping => 504,
            _ => 502,
        }
    }

    /// One word for the log.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Connect(error) => error.reason(),
            Self::Ended(error) => tls_failure(error).map_or("closed_early", StreamError::reason),
            Self::TimedOut => "timeout",
            Self::Stopping => "stopping",
            Self::Malformed(error) => error.reason(),
            Self::Records(_) => "malformed",
            Self::Overloaded => "overloaded",
            Self::NotAnswered => "not_answered",
            Self::UnaskedUpgrade => "unasked_upgrade",
            Self::NotUpgraded => "not_upgraded",
            Self::TooManyInterim => "too_many_interim",
            Self::TooManyOptions => "connection",
            Self::InternalRedirect => "x_accel_redirect",
            Self::Bug(_) => "internal",
        }
    }
}

/// The fatal alert that a connection ended with, from the server or, since it broke TLS, from here.
pub(super) fn tls_failure(error: &io::Error) -> Option<&StreamError> {
    let error = error.get_ref()?.downcast_ref()?;
    matches!(error, StreamError::AlertReceived(_) | StreamError::Violation(_)).then_some(error)
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => write!(formatter, "{error}"),
            Self::Ended(error) => write!(formatter, "the server ended its response early: {error}"),
            Self::TimedOut => formatter.write_str("the server sent or took nothing for `timeout`"),
            Self::Stopping => formatter.write_str("kettle stops"),
            Self::Malformed(error) => write!(formatter, "the server sent a {error}"),
            Self::Records(error) => write!(formatter, "the application sent {error}"),
            Self::Overloaded => formatter.write_str("the application says that it is overloaded"),
            Self::NotAnswered => {
                formatter.write_str("the application ended the request without answering it")
            }
            Self::UnaskedUpgrade => {
                formatter.write_str("the server changed to a protocol that was not asked for")
            }
            Self::NotUpgraded => formatter.write_str("the server did not change to WebSocket"),
            Self::TooManyInterim => {
                formatter.write_str("the server sent one interim response after the other")
            }
            Self::TooManyOptions => {
                formatter.write_str("the server's `Connection` has more members than may be")
            }
            Self::InternalRedirect => {
                formatter.write_str("the server named something in place of its answer, and it is no file of an `internal` route")
            }
            Self::Bug(bug) => write!(formatter, "{bug}"),
        }
    }
}

impl std::error::Error for UpstreamError {}

impl From<io::Error> for UpstreamError {
    fn from(error: io::Error) -> Self {
        Self::Ended(error)
    }
}

impl From<Bug> for UpstreamError {
    fn from(bug: Bug) -> Self {
        Self::Bug(bug)
    }
}

impl From<ResponseError> for UpstreamError {
    fn from(error: ResponseError) -> Self {
        Self::Malformed(error)
    }
}

impl From<UpstreamError> for io::Error {
    fn from(error: UpstreamError) -> Self {
        match error {
            UpstreamError::Ended(error) => error,
            UpstreamError::Bug(bug) => bug.into(),
            UpstreamError::TimedOut => Self::new(io::ErrorKind::TimedOut, error),
            _ => Self::new(io::ErrorKind::InvalidData, error),
        }
    }
}
