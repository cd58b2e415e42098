//! A request head as the rest of the server sees it: positions in the bytes it was read from.

use std::fmt;

use crate::error::RequestError;
use crate::field::{self, HopByHop};
use crate::fields::{Extent, Fields};
use crate::host::Authority;
use crate::method::{HttpVersion, Method};
use crate::target::{Form, Target, TargetParts};

/// The most field lines a head can have, whatever [`HeadLimits`] allow.
pub const HEADERS_MAX: usize = 128;

/// The longest head, whatever [`HeadLimits`] allow: positions in it are kept as 16-bit numbers.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The bounds of a head that is read before the request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Bytes of the whole head with its empty line; at most [`HEAD_BYTES_MAX`]. Beyond: 431.
    pub head_bytes_max: usize,
    /// Field lines; at most [`HEADERS_MAX`]. Beyond: 431.
    pub headers_max: usize,
    /// Bytes of the request target. Beyond: 414.
    pub target_bytes_max: usize,
}

impl Default for HeadLimits {
    fn default() -> Self {
        HeadLimits { head_bytes_max: 16 * 1024, headers_max: 64, target_bytes_max: 8 * 1024 }
    }
}

/// A request line and its field lines, and the bytes they stand in; only [`crate::h1::parse`] makes
/// one. `B` holds the bytes: borrowed ones at first, then whatever the head is to live in.
#[derive(Clone)]
pub struct RequestHead<B> {
    pub(crate) bytes: B,
    pub(crate) method: MethodParts,
    pub(crate) raw_target: Extent,
    pub(crate) target: Result<TargetParts, RequestError>,
    pub(crate) version: HttpVersion,
    pub(crate) authority: Option<AuthorityParts>,
    pub(crate) fields: Fields,
    /// The query that a rule put in the place of the client's; empty if there is none any more.
    pub(crate) query: Option<Box<str>>,
    /// The path that a server has named in place of the client's.
    pub(crate) handed: Option<Box<str>>,
}

/// The form of a request before it became one for a page, or for what a server has named.
pub struct AsAsked {
    method: MethodParts,
    fields: Fields,
    query: Option<Box<str>>,
    handed: Option<Box<str>>,
}

/// A [`Method`] without its bytes.
#[derive(Clone, Copy)]
pub(crate) enum MethodParts {
    Get,
    Head,
    Options,
    Other(Extent),
}

/// An [`Authority`] without its bytes.
#[derive(Clone, Copy)]
pub(crate) struct AuthorityParts {
    pub(crate) host: Extent,
    pub(crate) port: Option<u16>,
}

impl<B> RequestHead<B> {
    /// The same head in other bytes, which begin with those it was read from.
    #[must_use]
    pub fn moved_to<C>(self, bytes: C) -> RequestHead<C> {
        let Self { method, raw_target, target, version, authority, fields, query, handed, .. } =
            self;
        RequestHead { bytes, method, raw_target, target, version, authority, fields, query, handed }
    }

    /// The same head, of a request that came over HTTP/2.
    #[must_use]
    pub fn over_http2(self) -> Self {
        Self { version: HttpVersion::Http2, ..self }
    }

    /// The protocol version.
    #[must_use]
    pub fn version(&self) -> HttpVersion {
        self.version
    }

    /// The bytes the head lives in.
    pub fn into_bytes(self) -> B {
        self.bytes
    }

    /// Puts another query in the place of the client's, which [`raw_target`](Self::raw_target) still has. An empty one is none.
    pub fn set_query(&mut self, query: String) {
        self.query = Some(query.into());
    }
}

impl<B: AsRef<[u8]>> RequestHead<B> {
    /// The method.
    #[must_use]
    pub fn method(&self) -> Method<'_> {
        match self.method {
            MethodParts::Get => Method::Get,
            MethodParts::Head => Method::Head,
            MethodParts::Options => Method::Options,
            MethodParts::Other(token) => Method::Other(token.text(self.bytes.as_ref())),
        }
    }

    /// The request target as it was sent.
    #[must_use]
    pub fn raw_target(&self) -> &str {
        self.raw_target.text(self.bytes.as_ref())
    }

    /// The request target, taken apart.
    ///
    /// # Errors
    /// If the form does not fit the method, or the path cannot or must not be decoded.
    pub fn target(&self) -> Result<Target<'_>, RequestError> {
        let mut target = self.target_as_sent()?;
        if let Some(path) = &self.handed {
            (target.path, target.has_encoded_slash, target.has_lookalike_slash) =
                (path, false, false);
        }
        Ok(match &self.query {
            Some(query) => Target { query: Some(&**query).filter(|it| !it.is_empty()), ..target },
            None => target,
        })
    }

    /// The path of the target alone, which takes less than all of it.
    ///
    /// # Errors
    /// As [`target`](Self::target).
    pub fn path(&self) -> Result<&str, RequestError> {
        let parts = self.target.as_ref().map_err(|error| *error)?;
        Ok(self.handed.as_deref().unwrap_or_else(|| parts.path(self.bytes.as_ref())))
    }

    /// True if the target is the server as a whole.
    #[must_use]
    pub fn is_for_server(&self) -> bool {
        self.target.as_ref().is_ok_and(|parts| parts.form() == Form::Asterisk)
    }

    /// True if the path of the target has an encoded slash.
    #[must_use]
    pub fn has_encoded_slash(&self) -> bool {
        self.handed.is_none() && self.target.as_ref().is_ok_and(TargetParts::has_encoded_slash)
    }

    /// True if slashes were sent in a row in the path of the target, encoded ones among them. They are one in the path.
    #[must_use]
    pub fn has_slash_runs(&self) -> bool {
        self.target.as_ref().is_ok_and(TargetParts::has_slash_runs)
    }

    /// The same with path and query that the client sent, whatever became of them.
    ///
    /// # Errors
    /// As [`target`](Self::target).
    pub fn target_as_sent(&self) -> Result<Target<'_>, RequestError> {
        let target = self.target.as_ref().map(|parts| parts.of(self.bytes.as_ref()));
        target.map_err(|error| *error)
    }

    /// Makes it the request for the page that is sent in place of an error: a GET, unless it is a HEAD, for all of that page. Returns
    /// what it was, for [`end_page`](Self::end_page).
    #[must_use]
    pub fn begin_page(&mut self) -> AsAsked {
        let fields = self.fields.without(self.bytes.as_ref(), &OF_THE_ANSWER);
        let asked = self.begin_reading(None);
        AsAsked { fields: std::mem::replace(&mut self.fields, fields), ..asked }
    }

    /// Makes it the request for what a server has named in place of its answer: a GET, unless it is a HEAD, of this path and query, for
    /// as much of it as the client asks for. Returns what it was, for [`end_page`](Self::end_page).
    #[must_use]
    pub fn begin_handed(&mut self, path: String, query: Option<String>) -> AsAsked {
        let handed = self.handed.replace(path.into());
        let fields = self.fields.without(self.bytes.as_ref(), &[b"upgrade"]);
        let asked = self.begin_reading(query);
        let fields = std::mem::replace(&mut self.fields, fields);
        AsAsked { handed, fields, ..asked }
    }

    fn begin_reading(&mut self, query: Option<String>) -> AsAsked {
        let method = match self.method {
            MethodParts::Head => MethodParts::Head,
            _ => MethodParts::Get,
        };
        AsAsked {
            method: std::mem::replace(&mut self.method, method),
            fields: self.fields.clone(),
            query: self.query.replace(query.unwrap_or_default().into()),
            handed: self.handed.clone(),
        }
    }

    /// Makes it again what it was.
    pub fn end_page(&mut self, asked: AsAsked) {
        let AsAsked { method, fields, query, handed } = asked;
        (self.method, self.fields, self.query, self.handed) = (method, fields, query, handed);
    }

    /// True if there is a [`target`](Self::target).
    #[must_use]
    pub fn has_target(&self) -> bool {
        self.target.is_ok()
    }

    /// The value of the first field line of this name, in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.header_values(name).next()
    }

    /// The values of all field lines of this name, in any case, in the order they were sent.
    pub fn header_values<'h, 'n>(
        &'h self,
        name: &'n str,
    ) -> impl Iterator<Item = &'h [u8]> + Clone + use<'h, 'n, B> {
        self.fields.values(self.bytes.as_ref(), name.as_bytes())
    }

    /// The value of the only field line of this name; `None` if there are several.
    #[must_use]
    pub fn sole_header(&self, name: &str) -> Option<&[u8]> {
        let mut values = self.header_values(name);
        let value = values.next()?;
        values.next().is_none().then_some(value)
    }

    /// Every field line: name and value, in the order they were sent.
    pub fn headers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter(self.bytes.as_ref())
    }

    /// The host the request is for, without port, as it was sent; an IPv6 address keeps its
    /// brackets. The authority of an absolute target comes before Host (RFC 9112 §3.2.2).
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        self.authority().map(|authority| authority.host)
    }

    /// The [`host`](Self::host) for those who only compare it.
    #[must_use]
    pub fn host_bytes(&self) -> Option<&[u8]> {
        self.authority.map(|authority| authority.host.slice(self.bytes.as_ref()))
    }

    /// The host the request is for and its port.
    #[must_use]
    pub fn authority(&self) -> Option<Authority<'_>> {
        let AuthorityParts { host, port } = self.authority?;
        Some(Authority { host: host.text(self.bytes.as_ref()), port })
    }

    /// True if the client wants to use the connection again (RFC 9112 §9.3).
    #[must_use]
    pub fn persists(&self) -> bool {
        match self.version {
            HttpVersion::Http2 => true,
            HttpVersion::Http11 => !self.has_member("connection", "close"),
            HttpVersion::Http10 => {
                self.has_member("connection", "keep-alive")
                    && !self.has_member("connection", "close")
            }
        }
    }

    /// True if the client waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1).
    #[must_use]
    pub fn expects_continue(&self) -> bool {
        self.version != HttpVersion::Http10 && self.has_member("expect", "100-continue")
    }

    /// The names of its fields that are for the next hop only: by RFC 9110 §7.6.1, or because `Connection` names them.
    #[must_use]
    pub fn hop_by_hop(&self) -> HopByHop<'_> {
        HopByHop::of(self.header_values("connection"))
    }

    /// The number of members `Connection` has; what [`hop_by_hop`](Self::hop_by_hop) costs grows
    /// with them.
    #[must_use]
    pub fn connection_options(&self) -> usize {
        field::connection_options(self.header_values("connection"))
    }

    /// The protocol that the client asks to change to, as it was sent (RFC 9110 §7.8). One in HTTP/1.0 counts as not there. In
    /// HTTP/2 no request has these fields but an extended CONNECT that was written as HTTP/1.1 has it.
    #[must_use]
    pub fn upgrade(&self) -> Option<&[u8]> {
        let is_asked =
            self.version != HttpVersion::Http10 && self.has_member("connection", "upgrade");
        self.sole_header("upgrade").filter(|protocol| is_asked && !protocol.is_empty())
    }

    /// True if the client has use for trailers (RFC 9110 §10.1.4).
    #[must_use]
    pub fn takes_trailers(&self) -> bool {
        self.has_member("te", "trailers")
    }

    /// True if it is an extended CONNECT (RFC 8441): to its client a response of success is the beginning of a tunnel.
    #[must_use]
    pub fn is_extended_connect(&self) -> bool {
        self.version == HttpVersion::Http2 && self.upgrade().is_some()
    }

    /// True if a list of tokens has this member, in any case.
    fn has_member(&self, name: &str, member: &str) -> bool {
        field::has_member(self.header_values(name), member.as_bytes())
    }
}

impl<B: AsRef<[u8]>> fmt::Debug for RequestHead<B> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RequestHead")
            .field("method", &self.method())
            .field("raw_target", &self.raw_target())
            .field("version", &self.version)
            .field("field_lines", &self.headers().count())
            .finish_non_exhaustive()
    }
}

/// The fields of a request on the answer that it waits for, on its body, and on what its connection is to become.
const OF_THE_ANSWER: [&[u8]; 9] = [
    b"if-match",
    b"if-none-match",
    b"if-modified-since",
    b"if-unmodified-since",
    b"if-range",
    b"range",
    b"upgrade",
    b"expect",
    b"content-length",
];

#[cfg(test)]
mod tests;
