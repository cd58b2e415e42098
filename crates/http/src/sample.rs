//! Requests for the tests of this crate, and the one way to parse and check them as the server does.

use crate::h1::framing::{BodyFraming, body_framing};
use crate::h1::parse::{ParseRequest, parse_request};
use crate::message::{HeadLimits, RequestHead};
use crate::target::Target;
use crate::{HttpVersion, RequestError};

/// Everything the parsers say about a request, in a form that outlives its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) version: HttpVersion,
    pub(crate) host: Option<String>,
    pub(crate) path: String,
    pub(crate) framing: BodyFraming,
    pub(crate) bytes: usize,
}

/// `None` while the head is not complete.
pub(crate) fn checked(parse: ParseRequest<'_>) -> Result<Option<Request>, RequestError> {
    let ParseRequest::Complete { head, bytes } = parse else {
        return Ok(None);
    };
    let framing = body_framing(&head)?;
    let target = head.target()?;
    Ok(Some(Request {
        method: head.method().as_str().to_owned(),
        version: head.version(),
        host: head.host().map(str::to_owned),
        path: target.path.to_owned(),
        framing,
        bytes,
    }))
}

/// The head of a request that is known to be well-formed.
pub(crate) fn head(bytes: &[u8]) -> RequestHead<&[u8]> {
    match parse_request(bytes, &HeadLimits::default()) {
        Ok(ParseRequest::Complete { head, .. }) => head,
        other => panic!("{:?} gave {other:?}", bytes.escape_ascii().to_string()),
    }
}

/// The bytes of a GET request with these field lines besides Host.
pub(crate) fn get(lines: &str) -> Vec<u8> {
    format!("GET / HTTP/1.1\r\nHost: example.com\r\n{lines}\r\n").into_bytes()
}

/// The target of a GET request for `raw`, which must be possible to send.
pub(crate) fn target(raw: &str) -> Result<Target<'static>, RequestError> {
    let request = format!("GET {raw} HTTP/1.1\r\nHost: example.com\r\n\r\n").into_bytes();
    Box::leak(Box::new(head(request.leak()))).target()
}
