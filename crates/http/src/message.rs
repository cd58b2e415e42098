//! A request head as the rest of the server sees it, borrowed from the connection's buffer.

use std::fmt;

use crate::field;
use crate::fields::Fields;
use crate::host::Authority;

/// The most field lines a head can have, whatever [`Limits`] allow.
pub const HEADERS_MAX: usize = 128;

/// The longest head, whatever [`Limits`] allow: positions in it are kept as 16-bit numbers.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// How much of a head is read before the request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole head with its empty line; at most [`HEAD_BYTES_MAX`]. Beyond: 431.
    pub head_bytes_max: usize,
    /// Field lines; at most [`HEADERS_MAX`]. Beyond: 431.
    pub headers_max: usize,
    /// Bytes of the request target. Beyond: 414.
    pub target_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { head_bytes_max: 16 * 1024, headers_max: 64, target_bytes_max: 8 * 1024 }
    }
}

/// A request method (RFC 9110 §9). Methods are case-sensitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method<'b> {
    /// GET
    Get,
    /// HEAD
    Head,
    /// OPTIONS
    Options,
    /// Any other token.
    Other(&'b str),
}

impl<'b> Method<'b> {
    /// `None` if the bytes are not ASCII, so no token.
    pub(crate) fn new(token: &'b [u8]) -> Option<Self> {
        match token {
            b"GET" => Some(Method::Get),
            b"HEAD" => Some(Method::Head),
            b"OPTIONS" => Some(Method::Options),
            other => std::str::from_utf8(other).ok().map(Method::Other),
        }
    }

    /// The method as it was sent.
    #[must_use]
    pub fn as_str(self) -> &'b str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Options => "OPTIONS",
            Method::Other(token) => token,
        }
    }
}

/// A protocol version. Higher minor versions count as HTTP/1.1 (RFC 9110 §2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

impl Version {
    /// The version as it stands in a request line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
        }
    }
}

/// A request line and its field lines; only [`crate::h1::parse`] makes one.
#[derive(Clone)]
pub struct RequestHead<'b> {
    /// The method.
    pub method: Method<'b>,
    /// The request target as it was sent; see [`crate::target::parse_target`].
    pub raw_target: &'b str,
    /// The protocol version.
    pub version: Version,
    pub(crate) authority: Option<Authority<'b>>,
    pub(crate) fields: Fields<'b>,
}

impl<'b> RequestHead<'b> {
    /// The value of the first field line of this name, in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'b [u8]> {
        self.header_values(name).next()
    }

    /// The values of all field lines of this name, in any case, in the order they were sent.
    pub fn header_values<'h>(
        &'h self,
        name: &'h str,
    ) -> impl Iterator<Item = &'b [u8]> + Clone + 'h {
        self.fields.values(name.as_bytes())
    }

    /// The value of the only field line of this name; `None` if there are several.
    #[must_use]
    pub fn sole_header(&self, name: &str) -> Option<&'b [u8]> {
        let mut values = self.header_values(name);
        let value = values.next()?;
        values.next().is_none().then_some(value)
    }

    /// Every field line: name and value, in the order they were sent.
    pub fn headers(&self) -> impl Iterator<Item = (&'b [u8], &'b [u8])> + '_ {
        self.fields.iter()
    }

    /// The host the request is for, without port, as it was sent; an IPv6 address keeps its
    /// brackets. The authority of an absolute target comes before Host (RFC 9112 §3.2.2).
    #[must_use]
    pub fn host(&self) -> Option<&'b str> {
        self.authority.map(|authority| authority.host)
    }

    /// The host the request is for and its port.
    #[must_use]
    pub fn authority(&self) -> Option<Authority<'b>> {
        self.authority
    }

    /// Whether the client wants to use the connection again (RFC 9112 §9.3).
    #[must_use]
    pub fn persists(&self) -> bool {
        match self.version {
            Version::Http11 => !self.has_connection_option("close"),
            Version::Http10 => {
                self.has_connection_option("keep-alive") && !self.has_connection_option("close")
            }
        }
    }

    /// Whether the client waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1).
    #[must_use]
    pub fn expects_continue(&self) -> bool {
        self.version == Version::Http11
            && self.has_member("expect", |member| member.eq_ignore_ascii_case(b"100-continue"))
    }

    fn has_connection_option(&self, option: &str) -> bool {
        self.has_member("connection", |member| member.eq_ignore_ascii_case(option.as_bytes()))
    }

    fn has_member(&self, name: &str, is_wanted: impl Fn(&[u8]) -> bool) -> bool {
        self.header_values(name).any(|value| field::members(value).any(&is_wanted))
    }
}

impl fmt::Debug for RequestHead<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RequestHead")
            .field("method", &self.method)
            .field("raw_target", &self.raw_target)
            .field("version", &self.version)
            .field("field_lines", &self.fields.iter().count())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
