//! The parameters on which a handshake agreed, for routing, logs and metrics.

use std::fmt;

use kettle_kernel::ktls::{Cipher, Version};

use crate::peer_identity::PeerIdentity;
use crate::rustls_callbacks::TicketEpoch;
use crate::tickets::Audience;

/// The parameters on which a handshake agreed.
#[derive(Clone, Debug)]
pub struct Session {
    /// The protocol version.
    pub version: Version,
    /// The cipher that protects records.
    pub cipher: Cipher,
    /// The IANA name of the cipher suite.
    pub suite: &'static str,
    /// The key exchange group, `"none"` where a TLS 1.2 resumption needed none.
    pub group: &'static str,
    /// The way an earlier session was resumed, if it was.
    pub resumed: Resumption,
    /// The name the client asked for (SNI).
    pub server_name: Option<Box<str>>,
    /// The application protocol agreed on (ALPN, RFC 7301).
    pub alpn: Option<Alpn>,
    /// True if a certificate was asked for: by us of clients, by the server of us, where it makes a new session.
    pub is_certificate_asked: bool,
    /// The identity of the peer, where it proved that by a certificate; after a resumption, where it did so in the full
    /// handshake.
    pub peer: Option<Box<PeerIdentity>>,
    /// Whose key the ticket was under that the client came with, whether or not it was resumed by that; none on the
    /// client's side.
    pub ticket_epoch: Option<TicketEpoch>,
    /// The audience of the session; none on the client's side.
    pub audience: Option<Audience>,
}

/// An application protocol by its registered name, such as `http/1.1` (RFC 7301 §6).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Alpn(Box<[u8]>);

impl Alpn {
    /// Takes a protocol's name.
    #[must_use]
    pub fn new(name: &[u8]) -> Self {
        Self(name.into())
    }

    /// The name, which need not be text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Alpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Alpn({})", self.0.escape_ascii())
    }
}

impl Session {
    /// The version as it is written in logs.
    #[must_use]
    pub fn version_name(&self) -> &'static str {
        match self.version {
            Version::Tls12 => "TLSv1.2",
            Version::Tls13 => "TLSv1.3",
        }
    }
}

/// The way an earlier session was resumed, if it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resumption {
    /// A full handshake.
    Full,
    /// By a session ticket (RFC 5077, RFC 8446 §2.2).
    Ticket,
    /// By a session ID from the server's cache (TLS 1.2).
    SessionId,
}

impl Resumption {
    /// The word used in logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Resumption::Full => "full",
            Resumption::Ticket => "ticket",
            Resumption::SessionId => "session_id",
        }
    }
}
