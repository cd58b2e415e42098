//! Why a handshake did not come to its end.

use std::fmt;
use std::io;

use kettle_tls::HandshakeError;
use kettle_tls::connector::CertificateRefusal;
use kettle_tls::stream::StreamError;

/// Why a handshake did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The server sent this alert.
    Alert(String),
    /// The server closed the connection.
    Closed,
    /// The server, or something on the way, reset the connection.
    Reset,
    /// Nothing more came.
    TimedOut,
    /// The bytes that came are no TLS.
    NotTls,
    /// The certificate is not taken.
    Certificate(CertificateRefusal),
    /// The server wants a certificate from us.
    CertificateWanted,
    /// There is no TCP connection any more.
    Unconnected(String),
    /// It was not tried: the time was over.
    OutOfTime,
    /// Something else.
    Other(String),
}

impl Failure {
    /// The meaning of an error; `was_reset` if the connection beyond our own end of it was.
    pub(super) fn of(error: &StreamError, was_reset: bool) -> Self {
        match error {
            StreamError::Io(error) => match error.kind() {
                _ if was_reset => Self::Reset,
                io::ErrorKind::ConnectionReset => Self::Reset,
                io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => Self::Closed,
                _ => Self::Other(error.to_string()),
            },
            StreamError::Handshake(HandshakeError::NotTls) => Self::NotTls,
            StreamError::Handshake(HandshakeError::CertificateWanted(_)) => Self::CertificateWanted,
            StreamError::Handshake(HandshakeError::Certificate(refusal)) => {
                Self::Certificate((**refusal).clone())
            }
            _ if error.reason() == "certificate_required" => Self::CertificateWanted,
            _ => {
                let text = error.to_string();
                match text.strip_prefix(ALERT) {
                    Some(alert) => Self::Alert(alert.to_owned()),
                    None => Self::Other(text),
                }
            }
        }
    }

    /// True if the server said no, rather than nothing.
    pub(super) fn is_answer(&self) -> bool {
        !matches!(self, Self::TimedOut | Self::OutOfTime | Self::Unconnected(_))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alert(alert) => write!(f, "alert {alert}"),
            Self::Closed => f.write_str("closed"),
            Self::Reset => f.write_str("reset"),
            Self::TimedOut => f.write_str("no answer in time"),
            Self::NotTls => f.write_str("an answer that is not TLS"),
            Self::Certificate(refusal) => write!(f, "{refusal}"),
            Self::CertificateWanted => {
                f.write_str("the server wants a certificate from its clients")
            }
            Self::Unconnected(error) => write!(f, "no connection ({error})"),
            Self::OutOfTime => f.write_str("not tried for want of time"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

/// As rustls writes it.
const ALERT: &str = "received fatal alert: ";
