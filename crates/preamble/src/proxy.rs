//! The PROXY protocol: whom a load balancer speaks for, said in front of everything else.
//!
//! Source: HAProxy's `doc/proxy-protocol.txt` (versions 1 and 2). The caller decides whether a peer may be believed, and how
//! long it may take. A header is whole or refused: it is never skipped, and nothing behind it is touched.

mod crc32c;
mod tlv;
mod v1;
mod v2;

use std::fmt;
use std::net::SocketAddr;

pub use tlv::{TlsFacts, Tlv, Tlvs};
pub use v1::HEADER_BYTES_MAX as V1_BYTES_MAX;
pub use v2::HEADER_BYTES_MAX as V2_BYTES_MAX;

/// A whole header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'b> {
    /// Which form it has.
    pub version: Version,
    /// The endpoints for which it speaks.
    pub endpoints: Endpoints<'b>,
    /// The other facts it says; nothing in version 1.
    pub tlvs: Tlvs<'b>,
}

/// The form of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// A line of text.
    V1,
    /// Binary, with room for more than addresses.
    V2,
}

impl Version {
    /// The word used in logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Version::V1 => "v1",
            Version::V2 => "v2",
        }
    }
}

/// The endpoints for which a header speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoints<'b> {
    /// The sender itself (a health check), or somebody it cannot name: the addresses of the socket hold.
    Socket,
    /// A client over IP.
    Inet {
        /// The client.
        source: SocketAddr,
        /// The address the client connected to.
        destination: SocketAddr,
    },
    /// A client over a Unix socket; the paths without their padding, empty where unnamed.
    Unix {
        /// The client.
        source: &'b [u8],
        /// The path the client connected to.
        destination: &'b [u8],
    },
}

/// The state of parsing after the bytes so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parse<'b> {
    /// The header has not ended yet: at least this many more bytes belong to it.
    Partial {
        /// At least 1.
        missing_bytes: usize,
    },
    /// The header has ended.
    Complete {
        /// The header.
        header: Header<'b>,
        /// Its length: what follows belongs to the protocol behind it.
        bytes: usize,
    },
}

/// Why bytes are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyError {
    /// They begin with no signature of either version.
    Missing,
    /// The header is longer than allowed: [`V1_BYTES_MAX`] or [`V2_BYTES_MAX`].
    TooLong,
    /// It breaks the form.
    Malformed,
    /// Its checksum is not that of its bytes.
    WrongChecksum,
}

impl ProxyError {
    /// One word for logs and metrics.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            ProxyError::Missing => "missing",
            ProxyError::TooLong => "too_long",
            ProxyError::Malformed => "malformed",
            ProxyError::WrongChecksum => "wrong_checksum",
        }
    }
}

impl fmt::Display for ProxyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            ProxyError::Missing => "no PROXY header",
            ProxyError::TooLong => "a PROXY header longer than allowed",
            ProxyError::Malformed => "a malformed PROXY header",
            ProxyError::WrongChecksum => "a PROXY header with a wrong checksum",
        })
    }
}

impl std::error::Error for ProxyError {}

/// Reads the header at the front of what was received. Checked from left to right: more bytes never mend an error, and
/// what follows the header does not change the outcome.
///
/// # Errors
/// [`ProxyError`]: the connection must be closed.
pub fn parse(received: &[u8]) -> Result<Parse<'_>, ProxyError> {
    match received.first() {
        None => Ok(Parse::Partial { missing_bytes: v1::HEADER_BYTES_MIN.min(v2::PREFIX_BYTES) }),
        Some(b'P') => v1::parse(received),
        Some(b'\r') => v2::parse(received),
        Some(_) => Err(ProxyError::Missing),
    }
}

/// True if all of a header's signature is there: what [`parse`] calls partial may be less, and something else.
#[must_use]
pub fn has_signature(received: &[u8]) -> bool {
    received.starts_with(v1::SIGNATURE) || received.starts_with(&v2::SIGNATURE)
}

impl Endpoints<'_> {
    /// The client's address, if it has one.
    #[must_use]
    pub fn client(&self) -> Option<SocketAddr> {
        match self {
            Endpoints::Inet { source, .. } => Some(*source),
            Endpoints::Socket | Endpoints::Unix { .. } => None,
        }
    }

    /// The address that the client connected to, if it has one.
    #[must_use]
    pub fn destination(&self) -> Option<SocketAddr> {
        match self {
            Endpoints::Inet { destination, .. } => Some(*destination),
            Endpoints::Socket | Endpoints::Unix { .. } => None,
        }
    }
}

/// For whom a header of version 2 speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// For us ourselves (LOCAL).
    Ourselves,
    /// For a client without an address.
    Nameless,
    /// For a client at the first address, which connected to the second.
    Client((SocketAddr, SocketAddr)),
}

/// Writes a header of version 1 for a client at the first address, which connected to the second. Version 1 has no words for
/// addresses of two families, nor for a client without one: these are `UNKNOWN`.
pub fn write_v1(endpoints: Option<(SocketAddr, SocketAddr)>, target: &mut Vec<u8>) {
    v1::write(endpoints, target);
}

/// Writes a header of version 2 with what was said in TLS, if anything was.
///
/// Values that would make it longer than [`V2_BYTES_MAX`] are left out, the client's certificate first, then the last: a
/// receiver may refuse more.
pub fn write_v2(speaker: Speaker, tlvs: &[Tlv<'_>], target: &mut Vec<u8>) {
    v2::write(speaker, tlvs, target);
}

#[cfg(test)]
mod tests;
