//! From bytes to a request head, strictly: what RFC 9112 lets a server refuse is refused.
//!
//! The request line is read here; field lines are read by httparse and checked for what it
//! tolerates. Input is checked from left to right, so that it does not matter how it arrives.

use crate::error::RequestError;
use crate::field;
use crate::fields::{Extent, Fields};
use crate::host::host_and_port;
use crate::message::{
    AuthorityParts, HEAD_BYTES_MAX, HEADERS_MAX, HeadLimits, MethodParts, RequestHead,
};
use crate::method::{HttpVersion, Method};
use crate::target::{self, TargetParts};

/// The outcome of parsing the bytes so far.
#[derive(Debug)]
pub enum ParseRequest<'b> {
    /// The head has not ended yet.
    Partial,
    /// The head has ended.
    Complete {
        /// The head, in its own bytes.
        head: RequestHead<&'b [u8]>,
        /// Its length with the empty line, and with empty lines before it.
        bytes: usize,
    },
}

/// Parses the request head at the beginning of `buffer`.
///
/// # Errors
/// The first rule or limit that the head breaks. More bytes cannot mend it.
pub fn parse_request<'b>(
    buffer: &'b [u8],
    limits: &HeadLimits,
) -> Result<ParseRequest<'b>, RequestError> {
    let head_bytes_max = limits.head_bytes_max.min(HEAD_BYTES_MAX);
    // Bytes beyond the limit must not change the outcome, or it would depend on how many of
    // them arrived together.
    let visible = buffer.get(..head_bytes_max).unwrap_or(buffer);
    match parse_visible(visible, limits)? {
        ParseRequest::Partial if visible.len() < head_bytes_max => Ok(ParseRequest::Partial),
        ParseRequest::Partial if visible.contains(&b'\n') => Err(RequestError::HeadTooLarge),
        ParseRequest::Partial => Err(RequestError::TargetTooLong),
        complete => Ok(complete),
    }
}

/// Spares a slow sender's head from being parsed again at every byte.
///
/// Same outcome as [`parse_request`], at a total cost linear in the size of the head: a parse
/// is tried when an empty line has arrived or the input has doubled since the last one.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadProgress {
    seen_bytes: usize,
    parsed_bytes: usize,
}

impl HeadProgress {
    /// Parses `buffer`, which begins with the bytes of the previous call.
    ///
    /// # Errors
    /// As [`parse_request`]; an error may be found a few calls later than there.
    pub fn parse<'b>(
        &mut self,
        buffer: &'b [u8],
        limits: &HeadLimits,
    ) -> Result<ParseRequest<'b>, RequestError> {
        if !self.is_worthwhile(buffer, limits.head_bytes_max.min(HEAD_BYTES_MAX)) {
            return Ok(ParseRequest::Partial);
        }
        let parse = parse_request(buffer, limits)?;
        if matches!(parse, ParseRequest::Complete { .. }) {
            *self = HeadProgress::default();
        }
        Ok(parse)
    }

    /// True if a parse may find more than the one before. The longest head has `head_bytes_max`.
    pub(crate) fn is_worthwhile(&mut self, buffer: &[u8], head_bytes_max: usize) -> bool {
        // An empty line may have begun with the last three bytes of the previous call.
        let fresh = buffer.get(self.seen_bytes.saturating_sub(3)..).unwrap_or(buffer);
        self.seen_bytes = buffer.len();
        let is_worthwhile = buffer.len() >= self.parsed_bytes.saturating_mul(2)
            || buffer.len() >= head_bytes_max
            || has_empty_line(fresh);
        if is_worthwhile {
            self.parsed_bytes = buffer.len();
        }
        is_worthwhile
    }
}

/// True if a head may end in these bytes, however strictly it is read.
fn has_empty_line(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| pair == b"\n\n") || bytes.windows(3).any(|it| it == b"\n\r\n")
}

fn parse_visible<'b>(
    visible: &'b [u8],
    limits: &HeadLimits,
) -> Result<ParseRequest<'b>, RequestError> {
    let Some(after_empty_lines) = skip_empty_lines(visible)? else {
        return Ok(ParseRequest::Partial);
    };
    let Some((line, after_line)) = request_line(after_empty_lines, limits)? else {
        return Ok(ParseRequest::Partial);
    };
    let mut few = [httparse::EMPTY_HEADER; HEADERS_USUAL];
    let usual = HEADERS_USUAL.min(limits.headers_max);
    let first_try = httparse::parse_headers(after_line, few.get_mut(..usual).unwrap_or_default());
    let mut many;
    let outcome = match first_try {
        Err(httparse::Error::TooManyHeaders) => {
            many = [httparse::EMPTY_HEADER; HEADERS_MAX];
            let all = limits.headers_max.min(HEADERS_MAX);
            httparse::parse_headers(after_line, many.get_mut(..all).unwrap_or_default())
        }
        outcome => outcome,
    };
    let (field_bytes, headers) = match outcome {
        Ok(httparse::Status::Partial) => return Ok(ParseRequest::Partial),
        Ok(httparse::Status::Complete(complete)) => complete,
        Err(error) => return Err(field_error(error)),
    };
    let bytes = visible.len() - after_line.len() + field_bytes;
    let head_bytes = visible.get(..bytes).ok_or(RequestError::HeadTooLarge)?;
    let fields = checked_fields(head_bytes, headers)?;
    let authority = authority(&line, &fields, head_bytes)?;
    let head = head_of(&line, authority, fields, head_bytes).ok_or(RequestError::HeadTooLarge)?;
    Ok(ParseRequest::Complete { head, bytes })
}

/// Keeps positions of what was found. `None` if one does not fit, which the limit rules out.
fn head_of<'b>(
    line: &RequestLine<'b>,
    authority: Option<AuthorityParts>,
    fields: Fields,
    bytes: &'b [u8],
) -> Option<RequestHead<&'b [u8]>> {
    let extent = |part: &str| Extent::of(part.as_bytes(), bytes);
    let method = match line.method {
        Method::Get => MethodParts::Get,
        Method::Head => MethodParts::Head,
        Method::Options => MethodParts::Options,
        Method::Other(token) => MethodParts::Other(extent(token)?),
    };
    let raw_target = extent(line.target)?;
    let target = TargetParts::parse(line.method, line.target, bytes);
    let version = line.version;
    Some(RequestHead {
        bytes,
        method,
        raw_target,
        target,
        version,
        authority,
        fields,
        query: None,
        handed: None,
    })
}

/// RFC 9112 §2.2 asks servers to ignore at least one empty line before a request.
fn skip_empty_lines(mut bytes: &[u8]) -> Result<Option<&[u8]>, RequestError> {
    for _ in 0..=LEADING_LINES_MAX {
        bytes = match bytes {
            [b'\r', b'\n', rest @ ..] => rest,
            [] | [b'\r'] => return Ok(None),
            [b'\r' | b'\n', ..] => return Err(RequestError::LineEnding),
            _ => return Ok(Some(bytes)),
        };
    }
    Err(RequestError::LeadingLines)
}

struct RequestLine<'b> {
    method: Method<'b>,
    target: &'b str,
    version: HttpVersion,
}

/// Reads `method SP target SP version CRLF` (RFC 9112 §3): `None` while it is not all there.
fn request_line<'b>(
    bytes: &'b [u8],
    limits: &HeadLimits,
) -> Result<Option<(RequestLine<'b>, &'b [u8])>, RequestError> {
    let (method, rest) = match word(bytes, METHOD_BYTES_MAX, field::is_token_byte) {
        Word::Partial => return Ok(None),
        Word::TooLong => return Err(RequestError::MethodTooLong),
        Word::Invalid => return Err(RequestError::Method),
        Word::Complete(method, rest) => (method, rest),
    };
    let (target, rest) = match word(rest, limits.target_bytes_max, is_target_byte) {
        Word::Partial => return Ok(None),
        Word::TooLong => return Err(RequestError::TargetTooLong),
        Word::Invalid => return Err(RequestError::TargetCharacter),
        Word::Complete(target, rest) => (target, rest),
    };
    let Some((version, rest)) = version(rest)? else {
        return Ok(None);
    };
    let rest = match rest {
        [b'\r', b'\n', rest @ ..] => rest,
        [] | [b'\r'] => return Ok(None),
        _ => return Err(RequestError::LineEnding),
    };
    let method = match method {
        b"GET" => Method::Get,
        b"HEAD" => Method::Head,
        b"OPTIONS" => Method::Options,
        other => Method::Other(std::str::from_utf8(other).map_err(|_| RequestError::Method)?),
    };
    let target = std::str::from_utf8(target).map_err(|_| RequestError::TargetCharacter)?;
    Ok(Some((RequestLine { method, target, version }, rest)))
}

enum Word<'b> {
    Partial,
    TooLong,
    Invalid,
    /// The word, and what follows the space after it.
    Complete(&'b [u8], &'b [u8]),
}

/// The bytes up to a single space, all of them allowed.
fn word(bytes: &[u8], bytes_max: usize, is_allowed: impl Fn(u8) -> bool) -> Word<'_> {
    let visible = bytes.get(..=bytes_max).unwrap_or(bytes);
    let Some(end) = visible.iter().position(|byte| !is_allowed(*byte)) else {
        return if visible.len() > bytes_max { Word::TooLong } else { Word::Partial };
    };
    match bytes.split_at_checked(end) {
        Some((word, [b' ', rest @ ..])) if !word.is_empty() => Word::Complete(word, rest),
        _ => Word::Invalid,
    }
}

/// Visible ASCII, the most that any URI can hold, without the `#` that never reaches a server.
///
/// Characters that RFC 3986 wants encoded but browsers send as they are (`|`, `{`, `^` …) pass.
fn is_target_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'#'
}

/// Reads `HTTP/1.x` (RFC 9112 §2.3).
fn version(bytes: &[u8]) -> Result<Option<(HttpVersion, &[u8])>, RequestError> {
    let known = bytes.iter().zip(b"HTTP/").all(|(byte, wanted)| byte == wanted);
    if !known {
        return Err(RequestError::VersionSyntax);
    }
    match bytes {
        [_, _, _, _, _, major, b'.', minor, rest @ ..]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            match (major, minor) {
                (b'1', b'0') => Ok(Some((HttpVersion::Http10, rest))),
                (b'1', _) => Ok(Some((HttpVersion::Http11, rest))),
                _ => Err(RequestError::VersionUnsupported),
            }
        }
        [_, _, _, _, _, _, _, _, ..] => Err(RequestError::VersionSyntax),
        _ => Ok(None),
    }
}

pub(crate) fn field_error(error: httparse::Error) -> RequestError {
    match error {
        httparse::Error::HeaderValue => RequestError::FieldValue,
        httparse::Error::NewLine => RequestError::LineEnding,
        httparse::Error::TooManyHeaders => RequestError::TooManyFields,
        _ => RequestError::FieldName,
    }
}

/// httparse takes a bare LF for a line end, as RFC 9112 §2.2 allows. Peers that do not agree
/// on where a line ends can be played off against each other, so here only CRLF ends one.
pub(crate) fn checked_fields(
    head: &[u8],
    headers: &[httparse::Header<'_>],
) -> Result<Fields, RequestError> {
    let mut fields = Fields::with_capacity(headers.len());
    for header in headers {
        let name = header.name.as_bytes();
        let name_start = name.as_ptr().addr().checked_sub(head.as_ptr().addr());
        let name_start = name_start.ok_or(RequestError::FieldName)?;
        let line_end_before = name_start.checked_sub(2).and_then(|end| head.get(end..name_start));
        if line_end_before != Some(b"\r\n") {
            return Err(RequestError::LineEnding);
        }
        fields.push(head, name, header.value).ok_or(RequestError::HeadTooLarge)?;
    }
    if head.ends_with(b"\r\n\r\n") { Ok(fields) } else { Err(RequestError::LineEnding) }
}

/// RFC 9112 §3.2: HTTP/1.1 has exactly one valid Host, even if the target makes it pointless.
fn authority(
    line: &RequestLine<'_>,
    fields: &Fields,
    head: &[u8],
) -> Result<Option<AuthorityParts>, RequestError> {
    let mut hosts = fields.values(head, b"host");
    let host = match hosts.next() {
        Some(value) => Some(host_and_port(value)?),
        None if line.version == HttpVersion::Http11 => return Err(RequestError::HostMissing),
        None => None,
    };
    if hosts.next().is_some() {
        return Err(RequestError::HostRepeated);
    }
    let authority = match target::absolute_authority(line.target) {
        Some(authority) => Some(host_and_port(authority.as_bytes())?),
        None => host,
    };
    let parts = |(host, port)| Some(AuthorityParts { host: Extent::of(host, head)?, port });
    Ok(authority.and_then(parts))
}

/// Empty lines tolerated before a request line: one that a careless client sends after a body,
/// and one to spare.
pub const LEADING_LINES_MAX: usize = 2;

/// Bytes of a method. The longest registered one has 17 (`UPDATEREDIRECTREF`).
pub const METHOD_BYTES_MAX: usize = 32;

/// Field lines for which room is made at first. Clearing room for [`HEADERS_MAX`] would cost more
/// than parsing what browsers send, about 20.
pub(crate) const HEADERS_USUAL: usize = 32;

#[cfg(test)]
mod tests;
