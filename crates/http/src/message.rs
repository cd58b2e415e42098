//! A request head as the rest of the server sees it, borrowed from the connection's buffer.

use std::fmt;

use crate::field;
use crate::host::Authority;

/// The most field lines a head can have, whatever [`Limits`] allow.
pub const HEADERS_MAX: usize = 128;

/// The longest head, whatever [`Limits`] allow: positions inside it are 16-bit numbers.
pub const HEAD_BYTES_MAX: usize = 65_535;

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
    pub(crate) fn new(token: &'b str) -> Self {
        match token {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "OPTIONS" => Method::Options,
            other => Method::Other(other),
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
    pub fn header_values<'h>(&'h self, name: &'h str) -> impl Iterator<Item = &'b [u8]> + 'h {
        let wanted = name.as_bytes();
        self.fields.iter().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted)).map(|f| f.1)
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
            .field("field_lines", &self.fields.count)
            .finish_non_exhaustive()
    }
}

/// The field lines: positions in the head's bytes, an eighth of the memory that slices would
/// take, because a head is moved several times on its way to whoever answers it.
#[derive(Clone)]
pub(crate) struct Fields<'b> {
    head: &'b [u8],
    lines: [FieldLine; HEADERS_MAX],
    count: usize,
}

#[derive(Clone, Copy)]
struct FieldLine {
    name_start: u16,
    name_end: u16,
    value_start: u16,
    value_end: u16,
}

impl<'b> Fields<'b> {
    pub(crate) fn new(head: &'b [u8]) -> Self {
        Fields { head, lines: [FieldLine::EMPTY; HEADERS_MAX], count: 0 }
    }

    /// Adds a line whose name and value lie within the head. `None` if it does not fit.
    pub(crate) fn push(&mut self, name: &'b [u8], value: &'b [u8]) -> Option<()> {
        let (name_start, name_end) = self.position(name)?;
        let (value_start, value_end) = self.position(value)?;
        *self.lines.get_mut(self.count)? =
            FieldLine { name_start, name_end, value_start, value_end };
        self.count += 1;
        Some(())
    }

    fn position(&self, part: &[u8]) -> Option<(u16, u16)> {
        let start = part.as_ptr().addr().checked_sub(self.head.as_ptr().addr())?;
        let end = start.checked_add(part.len())?;
        Some((u16::try_from(start).ok()?, u16::try_from(end).ok()?))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'b [u8], &'b [u8])> + '_ {
        let lines = self.lines.get(..self.count).unwrap_or_default();
        lines.iter().filter_map(|line| {
            let name = self.head.get(usize::from(line.name_start)..usize::from(line.name_end))?;
            let value =
                self.head.get(usize::from(line.value_start)..usize::from(line.value_end))?;
            Some((name, value))
        })
    }
}

impl FieldLine {
    const EMPTY: FieldLine = FieldLine { name_start: 0, name_end: 0, value_start: 0, value_end: 0 };
}

#[cfg(test)]
mod tests;
