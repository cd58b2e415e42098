//! From the fields of a stream to a request's head.
//!
//! A request is read as HTTP/1.1 would have it, by the same parser, so that each rule on targets, hosts and fields stands once.

use kettle_exchange::request::websocket_key;
use kettle_http::h1::framing::{BodyFraming, body_framing};
use kettle_http::h1::parse::{ParseRequest, parse_request};
use kettle_http::h2::{FieldsError, NewRequest};
use kettle_http::{HeadLimits, RequestHead};
use kettle_tls::stream::Received;

/// Why a request is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadError {
    /// It is malformed: a stream error (RFC 9113 §8.1.1).
    Malformed,
    /// Its fields are more than anybody looks at: 431.
    TooLarge,
    /// It is answered with this status.
    Status(u16),
}

/// The head of a request and how its body is framed.
pub(crate) fn request_head(
    request: NewRequest,
    limits: &HeadLimits,
) -> Result<(Box<RequestHead<Received>>, BodyFraming), HeadError> {
    let NewRequest { text, outcome, is_whole, .. } = request;
    outcome.map_err(|error| match error {
        FieldsError::Malformed => HeadError::Malformed,
        FieldsError::TooLarge => HeadError::TooLarge,
    })?;
    let mut bytes = text.lines;
    let is_tunnel = text.protocol.is_some();
    match text.protocol {
        Some(protocol) if !protocol.eq_ignore_ascii_case(b"websocket") => {
            return Err(HeadError::Status(501));
        }
        // The bytes behind it are no body.
        Some(_) if text.has_length => return Err(HeadError::Malformed),
        Some(_) => {
            // The fields with which HTTP/1.1 asks for WebSocket (RFC 8441 §5).
            let key = websocket_key();
            let lines =
                ["connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: ", &key, "\r\n"];
            bytes.extend_from_slice(lines.concat().as_bytes());
        }
        None => {}
    }
    bytes.extend_from_slice(b"\r\n");
    let refused = |error: kettle_http::RequestError| HeadError::Status(error.status());
    let head = match parse_request(&bytes, limits).map_err(refused)? {
        ParseRequest::Complete { head, bytes: parsed } if parsed == bytes.len() => {
            head.over_http2()
        }
        _ => return Err(HeadError::Malformed),
    };
    let framing = match body_framing(&head).map_err(refused)? {
        // The end of the stream is the end of the body.
        BodyFraming::None if !is_whole && !is_tunnel => BodyFraming::Chunked,
        framing => framing,
    };
    let head = head.moved_to(());
    Ok((Box::new(head.moved_to(Received::from(bytes))), framing))
}

#[cfg(test)]
mod tests;
