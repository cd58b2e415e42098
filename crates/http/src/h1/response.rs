//! From bytes to a response head and the framing of its body, as strictly as requests are read: what comes from a backend
//! is passed on to others, so where one response ends must not be a matter of opinion (RFC 9112 §11). A response that is taken
//! though a request may not be so says nothing of that.

use std::fmt;

use super::framing::{self, BodyFraming};
use super::parse::{HeadProgress, checked_fields, field_error};
use crate::error::RequestError;
use crate::field::{self, HopByHop};
use crate::fields::Fields;
use crate::message::{HEAD_BYTES_MAX, HEADERS_MAX};
use crate::method::HttpVersion;

/// A status line and its field lines, and the bytes they stand in. `B` holds the bytes.
#[derive(Clone)]
pub struct ResponseHead<B> {
    bytes: B,
    status: u16,
    version: HttpVersion,
    fields: Fields,
}

/// The outcome of parsing the bytes so far.
#[derive(Debug)]
pub enum ParseResponse<'b> {
    /// The head has not ended yet.
    Partial,
    /// The head has ended.
    Complete {
        /// The head, in its own bytes.
        head: ResponseHead<&'b [u8]>,
        /// Its length with the empty line.
        bytes: usize,
    },
}

/// The fields in which a server names what is to be sent in place of its answer: nginx's, and that of Apache and lighttpd.
pub const HANDING_OVER: [&str; 2] = ["x-accel-redirect", "x-sendfile"];

/// The marking of the end of a response's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFraming {
    /// By its length, by chunks, or there is none.
    Marked(BodyFraming),
    /// By the end of the connection.
    UntilClose,
}

/// Why bytes are no response that anybody else would read in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResponseError {
    /// The status line is not one of HTTP/1.
    StatusLine,
    /// It is none, but what a server begins with that speaks HTTP/2 only, as gRPC's do.
    Http2,
    /// The status is less than 100.
    Status,
    /// A field line, the framing, or the chunked coding breaks a rule that holds for requests as well.
    Message(RequestError),
}

impl ResponseError {
    /// A word for logs and metrics, in snake case.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            ResponseError::StatusLine => "status_line",
            ResponseError::Http2 => "http2_server",
            ResponseError::Status => "status",
            ResponseError::Message(error) => error.reason(),
        }
    }
}

impl fmt::Display for ResponseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "malformed response: {}", self.reason())
    }
}

impl std::error::Error for ResponseError {}

impl From<RequestError> for ResponseError {
    fn from(error: RequestError) -> Self {
        ResponseError::Message(error)
    }
}

/// Spares a slow sender's head from being parsed again at every byte, as [`HeadProgress`] does.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResponseProgress(HeadProgress);

impl ResponseProgress {
    /// Parses `buffer`, which begins with the bytes of the previous call.
    ///
    /// # Errors
    /// As [`parse_response`]; an error may be found a few calls later than there.
    pub fn parse<'b>(&mut self, buffer: &'b [u8]) -> Result<ParseResponse<'b>, ResponseError> {
        if !self.0.is_worthwhile(buffer, HEAD_BYTES_MAX) {
            return Ok(ParseResponse::Partial);
        }
        let parse = parse_response(buffer)?;
        if matches!(parse, ParseResponse::Complete { .. }) {
            *self = Self::default();
        }
        Ok(parse)
    }
}

/// Parses the response head at the beginning of `buffer`: at most [`HEAD_BYTES_MAX`] bytes and [`HEADERS_MAX`] field lines.
///
/// # Errors
/// The first rule or limit that the head breaks. More bytes cannot mend it.
pub fn parse_response(buffer: &[u8]) -> Result<ParseResponse<'_>, ResponseError> {
    // Bytes beyond the limit must not change the outcome, or it would depend on how many of them arrived together.
    let visible = buffer.get(..HEAD_BYTES_MAX).unwrap_or(buffer);
    match parse_visible(visible)? {
        ParseResponse::Partial if visible.len() == HEAD_BYTES_MAX => {
            Err(RequestError::HeadTooLarge.into())
        }
        outcome => Ok(outcome),
    }
}

fn parse_visible(visible: &[u8]) -> Result<ParseResponse<'_>, ResponseError> {
    let Some((version, status, after_line)) = status_line(visible)? else {
        return Ok(ParseResponse::Partial);
    };
    let mut room = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let (field_bytes, headers) = match httparse::parse_headers(after_line, &mut room) {
        Ok(httparse::Status::Partial) => return Ok(ParseResponse::Partial),
        Ok(httparse::Status::Complete(complete)) => complete,
        Err(error) => return Err(field_error(error).into()),
    };
    let bytes = visible.len() - after_line.len() + field_bytes;
    let head = visible.get(..bytes).ok_or(RequestError::HeadTooLarge)?;
    let fields = checked_fields(head, headers)?;
    Ok(ParseResponse::Complete {
        head: ResponseHead { bytes: head, status, version, fields },
        bytes,
    })
}

/// Reads `HTTP/1.x SP status [ SP reason ] CRLF` (RFC 9112 §4): `None` while it is not all there. Many servers that have no
/// reason to give leave out the space before it, too.
fn status_line(bytes: &[u8]) -> Result<Option<StatusLine<'_>>, ResponseError> {
    match bytes {
        // A SETTINGS frame, of less than 256 bytes (RFC 9113 §3.4).
        [0, 0, _, 4, 0, ..] => return Err(ResponseError::Http2),
        [0] | [0, 0] | [0, 0, _] | [0, 0, _, 4] => return Ok(None),
        _ => {}
    }
    let pattern = b"HTTP/1._ ___";
    for (byte, wanted) in bytes.iter().zip(pattern) {
        let fits = if *wanted == b'_' { byte.is_ascii_digit() } else { byte == wanted };
        if !fits {
            return Err(ResponseError::StatusLine);
        }
    }
    let Some((line, rest)) = bytes.split_at_checked(pattern.len()) else { return Ok(None) };
    let [.., minor, _, hundreds, tens, ones] = line else { return Ok(None) };
    let digit = |byte: &u8| u16::from(byte - b'0');
    let status = digit(hundreds) * 100 + digit(tens) * 10 + digit(ones);
    // HTTP has none above 599, but servers do, and clients know what to make of it (RFC 9110 §15).
    if status < 100 {
        return Err(ResponseError::Status);
    }
    let version = if *minor == b'0' { HttpVersion::Http10 } else { HttpVersion::Http11 };
    let reason_bytes = rest.iter().position(|byte| !field::is_value_byte(*byte));
    let (reason, end) = rest.split_at(reason_bytes.unwrap_or(rest.len()));
    if !matches!(reason, [] | [b' ', ..]) {
        return Err(ResponseError::StatusLine);
    }
    match end {
        [b'\r', b'\n', after @ ..] => Ok(Some((version, status, after))),
        [] | [b'\r'] => Ok(None),
        _ => Err(ResponseError::StatusLine),
    }
}

/// Version and status, and what follows the line.
type StatusLine<'b> = (HttpVersion, u16, &'b [u8]);

/// Decides the framing of the body that follows `head`, the answer to a HEAD or to another request.
///
/// # Errors
/// Whenever another recipient might find another end (RFC 9112 §6.3 and §11.2).
pub fn response_framing(
    head: &ResponseHead<impl AsRef<[u8]>>,
    is_head: bool,
) -> Result<ResponseFraming, ResponseError> {
    let mut lengths = head.header_values("content-length");
    let mut codings = head.header_values("transfer-encoding");
    let announced = match (lengths.next(), codings.next()) {
        (None, None) => ResponseFraming::UntilClose,
        (Some(_), Some(_)) => return Err(RequestError::TransferEncodingWithContentLength.into()),
        (Some(_), None) if lengths.next().is_some() => {
            return Err(RequestError::ContentLengthRepeated.into());
        }
        (Some(value), None) => {
            ResponseFraming::Marked(BodyFraming::Length(framing::content_length(value)?))
        }
        (None, Some(_)) if head.version == HttpVersion::Http10 => {
            return Err(RequestError::TransferEncodingInHttp10.into());
        }
        (None, Some(first)) => {
            let all = std::iter::once(first).chain(codings);
            ResponseFraming::Marked(framing::transfer_coding(all)?)
        }
    };
    let has_none = is_head || matches!(head.status, 100..=199 | 204 | 304);
    Ok(if has_none { ResponseFraming::Marked(BodyFraming::None) } else { announced })
}

impl<B> ResponseHead<B> {
    /// The same head in other bytes, which begin with those it was read from.
    #[must_use]
    pub fn moved_to<C>(self, bytes: C) -> ResponseHead<C> {
        let Self { status, version, fields, .. } = self;
        ResponseHead { bytes, status, version, fields }
    }

    /// The same head without its bytes, and these.
    #[must_use]
    pub fn into_parts(self) -> (ResponseHead<()>, B) {
        let Self { bytes, status, version, fields } = self;
        (ResponseHead { bytes: (), status, version, fields }, bytes)
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The protocol version.
    #[must_use]
    pub fn version(&self) -> HttpVersion {
        self.version
    }
}

impl<B: AsRef<[u8]>> ResponseHead<B> {
    /// The values of all field lines of this name, in any case, in the order they were sent.
    pub fn header_values<'h, 'n>(
        &'h self,
        name: &'n str,
    ) -> impl Iterator<Item = &'h [u8]> + Clone + use<'h, 'n, B> {
        self.fields.values(self.bytes.as_ref(), name.as_bytes())
    }

    /// Every field line: name and value, in the order they were sent.
    pub fn headers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter(self.bytes.as_ref())
    }

    /// The length that the head announces; of the answer to a HEAD that of what a GET would get.
    #[must_use]
    pub fn announced_length(&self) -> Option<u64> {
        framing::content_length(self.header_values("content-length").next()?).ok()
    }

    /// True if a list of tokens has this member, in any case.
    #[must_use]
    pub fn has_member(&self, name: &str, member: &str) -> bool {
        field::has_member(self.header_values(name), member.as_bytes())
    }

    /// The names of its fields that are for the next hop only: by RFC 9110 §7.6.1, or because `Connection` names them.
    #[must_use]
    pub fn hop_by_hop(&self) -> HopByHop<'_> {
        HopByHop::of(self.header_values("connection"))
    }

    /// True if something else is to be sent in its place, which it names.
    #[must_use]
    pub fn hands_over(&self) -> bool {
        HANDING_OVER.iter().any(|name| self.header_values(name).next().is_some())
    }

    /// The number of members `Connection` has; what [`hop_by_hop`](Self::hop_by_hop) costs grows
    /// with them.
    #[must_use]
    pub fn connection_options(&self) -> usize {
        field::connection_options(self.header_values("connection"))
    }

    /// True if the server lets the connection be used again (RFC 9112 §9.3). The extensions of HTTP/1.0 are not relied on.
    #[must_use]
    pub fn persists(&self) -> bool {
        self.version == HttpVersion::Http11 && !self.has_member("connection", "close")
    }
}

impl<B> fmt::Debug for ResponseHead<B> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ResponseHead").field("status", &self.status).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
