//! Dialogues in plain text that end with the beginning of TLS, for both sides.
//!
//! A dialogue is given what was received and says what to send; it never holds more than a line or a message, and comes to
//! an end after a bounded number of them. The time it may take is the caller's business. Nothing said in plain text
//! is left over when TLS begins (the class of CVE-2011-0411): more than the other side may have said is an error.

use std::fmt;

pub mod lines;
pub mod postgres;
pub mod smtp;

/// One side of a dialogue.
pub trait Dialogue {
    /// Writes what is said first, if this side begins.
    fn begin(&mut self, answer: &mut Vec<u8>);

    /// Takes what was received and writes what to answer; on an error, what to say before closing.
    ///
    /// # Errors
    /// [`StartTlsError`]: the connection is to be closed, after the answer.
    fn receive(&mut self, received: &[u8], answer: &mut Vec<u8>) -> Result<Next, StartTlsError>;
}

/// The next step of a dialogue, once the answer is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// More is to be received.
    Receive,
    /// TLS begins, with what is received from now on.
    Tls,
    /// TLS has begun already: what was received is its beginning, and none of it was taken.
    TlsBegun,
    /// The other side said goodbye.
    End,
}

/// Why a dialogue does not lead to TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartTlsError {
    /// A line or a message is longer than the protocol allows.
    TooLong,
    /// Too many commands, or lines of an answer, without a beginning of TLS.
    TooMany,
    /// Something stands behind what must be answered first.
    SaidTooMuch,
    /// It is not in the form of the protocol.
    Malformed,
    /// The client wants to go on without TLS.
    PlainText,
    /// The server does not begin TLS; its own words, made printable.
    Refused(String),
}

impl StartTlsError {
    /// One word for logs and metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::TooLong => "starttls_too_long",
            Self::TooMany => "starttls_too_many",
            Self::SaidTooMuch => "starttls_said_too_much",
            Self::Malformed => "starttls_malformed",
            Self::PlainText => "starttls_plain_text",
            Self::Refused(_) => "starttls_refused",
        }
    }

    fn refused(words: &[u8]) -> Self {
        let words = words.get(..WORDS_BYTES_MAX).unwrap_or(words);
        Self::Refused(words.trim_ascii().escape_ascii().to_string())
    }
}

impl fmt::Display for StartTlsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::TooLong => "a line or message before TLS is too long",
            Self::TooMany => "too much is said before TLS",
            Self::SaidTooMuch => "more is said before TLS than may be without an answer",
            Self::Malformed => "what is said before TLS is not in the protocol's form",
            Self::PlainText => "the client does not begin TLS",
            Self::Refused(words) => return write!(formatter, "the server refuses TLS: {words}"),
        })
    }
}

impl std::error::Error for StartTlsError {}

/// Of a server's refusal so much is told.
const WORDS_BYTES_MAX: usize = 200;

#[cfg(test)]
mod tests;
