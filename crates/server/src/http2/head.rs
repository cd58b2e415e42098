//! From the fields of a stream to a request's head, and from a response's head to fields.
//!
//! A request is written as HTTP/1.1 would have it and read by the same parser, so that each rule on targets, hosts and
//! fields stands once. What makes a message malformed in HTTP/2 only is refused before that, here or by the library: names
//! in upper case, fields about connections, `te` but `trailers`, bytes that no value may hold, a length that the data break.

use bytes::Bytes;
use h2::ext::Protocol;
use http::header::{
    CONNECTION, CONTENT_LENGTH, COOKIE, HOST, HeaderName, HeaderValue, SEC_WEBSOCKET_KEY,
    TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use kettle_http::Limits;
use kettle_http::h1::framing::{BodyFraming, body_framing};
use kettle_http::h1::parse::{Parse, parse_request};
use kettle_tls::stream::Received;

use super::websocket::websocket_key;
use crate::request::{BodyError, Head};

/// Why a request is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadError {
    /// It is malformed: a stream error (RFC 9113 §8.1.1).
    Malformed,
    /// It is answered with this status.
    Status(u16),
}

/// The head of a request and how its body is framed. `has_body` says that the stream goes on.
pub(crate) fn request_head(
    parts: &Parts,
    has_body: bool,
    limits: &Limits,
) -> Result<(Box<Head>, BodyFraming), HeadError> {
    let protocol = parts.extensions.get::<Protocol>().map(Protocol::as_str);
    match protocol {
        Some(protocol) if !protocol.eq_ignore_ascii_case("websocket") => {
            return Err(HeadError::Status(501));
        }
        // What follows is no body.
        Some(_) if parts.headers.contains_key(CONTENT_LENGTH) => return Err(HeadError::Malformed),
        _ => {}
    }
    let bytes = written(parts, protocol.is_some())?;
    let refused = |error: kettle_http::RequestError| HeadError::Status(error.status());
    let head = match parse_request(&bytes, limits).map_err(refused)? {
        Parse::Complete { head, bytes: parsed } if parsed == bytes.len() => head.over_http2(),
        _ => return Err(HeadError::Malformed),
    };
    let framing = match body_framing(&head).map_err(refused)? {
        // The end of the stream is the end of the body.
        BodyFraming::None if has_body && protocol.is_none() => BodyFraming::Chunked,
        framing => framing,
    };
    let head = head.moved_to(());
    Ok((Box::new(head.moved_to(Received::from(bytes))), framing))
}

/// The request as HTTP/1.1 writes it: an extended CONNECT as the GET that asks for WebSocket there (RFC 8441 §5).
fn written(parts: &Parts, is_extended_connect: bool) -> Result<Vec<u8>, HeadError> {
    let host = host(parts)?;
    let method = if is_extended_connect { "GET" } else { parts.method.as_str() };
    let target = match parts.uri.path_and_query() {
        _ if method == "CONNECT" => host,
        // A target in absolute form would name a host of its own.
        Some(target) if target.as_str().starts_with('/') => target.as_str().as_bytes(),
        Some(target) if target.as_str() == "*" => b"*",
        _ => return Err(HeadError::Malformed),
    };
    let mut bytes = Vec::with_capacity(HEAD_BYTES_USUAL);
    for piece in [method.as_bytes(), b" ", target, b" HTTP/1.1\r\n"] {
        bytes.extend_from_slice(piece);
    }
    if !host.is_empty() {
        write_line(&mut bytes, "host", host)?;
    }
    if is_extended_connect {
        write_line(&mut bytes, "connection", b"upgrade")?;
        write_line(&mut bytes, "upgrade", b"websocket")?;
        write_line(&mut bytes, SEC_WEBSOCKET_KEY.as_str(), websocket_key().as_bytes())?;
    }
    let is_own = |name: &HeaderName| {
        [HOST, COOKIE].contains(name) || (is_extended_connect && *name == SEC_WEBSOCKET_KEY)
    };
    for (name, value) in parts.headers.iter().filter(|(name, _)| !is_own(name)) {
        write_line(&mut bytes, name.as_str(), value.as_bytes())?;
    }
    // Cookies may come in pieces, which only HTTP/2 knows (RFC 9113 §8.2.3).
    let cookies: Vec<&[u8]> =
        parts.headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if !cookies.is_empty() {
        write_line(&mut bytes, "cookie", &cookies.join(&b"; "[..]))?;
    }
    bytes.extend_from_slice(b"\r\n");
    Ok(bytes)
}

/// `:authority`, or `host` where there is none; both only if they say the same (RFC 9113 §8.3.1).
fn host(parts: &Parts) -> Result<&[u8], HeadError> {
    let mut hosts = parts.headers.get_all(HOST).iter().map(HeaderValue::as_bytes);
    let authority = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    let host = match (authority, hosts.next()) {
        (Some(authority), Some(host)) if !authority.eq_ignore_ascii_case(host) => {
            return Err(HeadError::Malformed);
        }
        (Some(host), _) | (None, Some(host)) => host,
        (None, None) => &[],
    };
    if hosts.next().is_some() || host.contains(&b'@') {
        return Err(HeadError::Malformed);
    }
    Ok(host)
}

fn write_line(bytes: &mut Vec<u8>, name: &str, value: &[u8]) -> Result<(), HeadError> {
    // White space around a value is no part of it in HTTP/1.1, and an error here (RFC 9113 §8.2.1).
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    if is_blank(value.first()) || is_blank(value.last()) {
        return Err(HeadError::Malformed);
    }
    for piece in [name.as_bytes(), b": ", value, b"\r\n"] {
        bytes.extend_from_slice(piece);
    }
    Ok(())
}

/// The fields of a response whose head was written for HTTP/1.1, without those about a connection (RFC 9113 §8.2.2).
pub(crate) fn response_head(status: u16, head: &[u8]) -> http::Response<()> {
    let mut response = http::Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    *response.headers_mut() = fields(&Bytes::copy_from_slice(head));
    response
}

/// An interim response whose head was written for HTTP/1.1.
///
/// # Errors
/// [`BodyError::Ended`]: it has no status, so nothing can be sent.
pub(crate) fn interim_head(head: &[u8]) -> Result<http::Response<()>, BodyError> {
    let status = head.split(|byte| *byte == b' ').nth(1).and_then(|word| word.first_chunk::<3>());
    let status = status.and_then(|word| StatusCode::from_bytes(word).ok());
    Ok(response_head(status.ok_or(BodyError::Ended)?.as_u16(), head))
}

/// The fields of a trailer section that was written for HTTP/1.1.
pub(crate) fn trailer_fields(section: Vec<u8>) -> HeaderMap {
    fields(&Bytes::from(section))
}

fn fields(head: &Bytes) -> HeaderMap {
    let mut fields = HeaderMap::with_capacity(FIELDS_USUAL);
    let mut start = 0;
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        let line_start = start;
        start += line.len();
        let line = line.trim_ascii_end();
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, rest) = line.split_at(colon);
        let value = rest.get(1..).unwrap_or_default().trim_ascii_start();
        let value_end = line_start + line.len();
        // What is shared need not be copied once more.
        let value = HeaderValue::from_maybe_shared(head.slice(value_end - value.len()..value_end));
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), value)
            && !is_about_connection(&name)
        {
            fields.append(name, value);
        }
    }
    fields
}

fn is_about_connection(name: &HeaderName) -> bool {
    [CONNECTION, TRANSFER_ENCODING, UPGRADE].contains(name)
        || matches!(name.as_str(), "keep-alive" | "proxy-connection")
}

/// Room that most heads find enough.
const HEAD_BYTES_USUAL: usize = 1_024;
const FIELDS_USUAL: usize = 16;

#[cfg(test)]
mod tests;
