//! The protocol that a server is asked in: what there is of a request before it is bytes goes through here, and so does what comes
//! back until it is a response. All else (queues, slots, connections that are kept, retries, stores) knows nothing of it.

use bytes::{Buf, Bytes, BytesMut};
use kettle_config::BackendProtocol;
use kettle_http::cgi::CgiProgress;
use kettle_http::fcgi;
use kettle_http::h1::framing::{BodyFraming, BodyWriter};
use kettle_http::h1::response::{ParseResponse, ResponseError, ResponseHead, ResponseProgress};

use super::application::Application;

/// A response on its way, by the protocol that its server speaks.
pub(super) enum Origin {
    /// HTTP/1.1, as it comes over the connection.
    Http1(ResponseProgress),
    /// FastCGI. Boxed: most connections are none of it.
    FastCgi(Box<Application>),
    /// uwsgi or SCGI: what an application says is all that comes, up to the end of the connection.
    Plain(CgiProgress),
}

/// The way a server gets the body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyCoding {
    /// Of a length that its head announced.
    AsItIs,
    /// In chunks of HTTP/1.1.
    Chunked,
    /// In records of FastCGI.
    Records,
}

impl Origin {
    pub(super) fn of(protocol: BackendProtocol) -> Self {
        match protocol {
            BackendProtocol::Http1 => Self::Http1(ResponseProgress::default()),
            BackendProtocol::FastCgi => Self::FastCgi(Box::default()),
            BackendProtocol::Uwsgi | BackendProtocol::Scgi => {
                Self::Plain(CgiProgress::with_status_line())
            }
        }
    }

    /// Takes the next head out of what was received; `None` while it has not ended.
    pub(super) fn next_head(
        &mut self,
        received: &mut BytesMut,
    ) -> Result<Option<ResponseHead<Bytes>>, ResponseError> {
        match self {
            // Nobody has to look for a head before anything came.
            Self::Http1(_) if received.is_empty() => Ok(None),
            Self::Http1(progress) => match progress.parse(received)? {
                ParseResponse::Complete { head, bytes } => {
                    let head = head.moved_to(());
                    Ok(Some(head.moved_to(take_front(received, bytes))))
                }
                ParseResponse::Partial => Ok(None),
            },
            Self::FastCgi(application) => next_cgi_head(&mut application.head, received),
            Self::Plain(progress) => next_cgi_head(progress, received),
        }
    }

    /// True if its server says 100 when it wants the body of a request.
    pub(super) fn says_go_on(&self) -> bool {
        matches!(self, Self::Http1(_))
    }

    /// True if the end of a response is none of the connection: the server says itself that a request is over.
    pub(super) fn says_end(&self) -> bool {
        matches!(self, Self::FastCgi(_))
    }

    /// True if the server has said that the request is over, whatever came behind that.
    pub(super) fn has_ended(&self) -> bool {
        match self {
            Self::Http1(_) | Self::Plain(_) => true,
            Self::FastCgi(application) => application.has_ended(),
        }
    }

    /// True if nothing of the request is still to come, as far as its server says so.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Http1(_) | Self::Plain(_) => true,
            Self::FastCgi(application) => application.is_over(),
        }
    }

    pub(super) fn body_coding(&self, framing: BodyFraming) -> BodyCoding {
        match self {
            Self::FastCgi(_) => BodyCoding::Records,
            Self::Http1(_) if framing == BodyFraming::Chunked => BodyCoding::Chunked,
            Self::Http1(_) | Self::Plain(_) => BodyCoding::AsItIs,
        }
    }
}

fn next_cgi_head(
    progress: &mut CgiProgress,
    received: &mut BytesMut,
) -> Result<Option<ResponseHead<Bytes>>, ResponseError> {
    let Some(parsed) = progress.parse(received)? else { return Ok(None) };
    received.advance(parsed.bytes);
    let (head, bytes) = parsed.head.into_parts();
    Ok(Some(head.moved_to(Bytes::from(bytes))))
}

impl BodyCoding {
    /// Appends a piece.
    pub fn write(self, out: &mut Vec<u8>, data: &[u8]) {
        match self {
            Self::Records => fcgi::input(out, data),
            Self::AsItIs | Self::Chunked => self.writer().write_piece(out, data),
        }
    }

    /// Appends what ends the body, with the lines of its trailer section where there can be one.
    pub fn end(self, out: &mut Vec<u8>, trailers: &[u8]) {
        match self {
            Self::Records => fcgi::end_input(out),
            Self::AsItIs | Self::Chunked => self.writer().end(out, trailers),
        }
    }

    /// A piece of a body that was stored, whose length was announced. The last one has the end with it.
    pub fn of_stored(self, piece: Vec<u8>, is_last: bool) -> Vec<u8> {
        if self == Self::AsItIs {
            return piece;
        }
        let mut coded = Vec::with_capacity(piece.len() + 16);
        self.write(&mut coded, &piece);
        if is_last {
            self.end(&mut coded, &[]);
        }
        coded
    }

    fn writer(self) -> BodyWriter {
        BodyWriter::new(self == Self::Chunked)
    }
}

/// Takes a head out of what was received. A large one goes with its memory, once it is passed on: what came behind it may have
/// to wait long.
fn take_front(received: &mut BytesMut, bytes: usize) -> Bytes {
    if bytes <= SMALL_HEAD_BYTES {
        return received.split_to(bytes).freeze();
    }
    let rest = BytesMut::from(received.split_at(bytes).1);
    let mut head = std::mem::replace(received, rest);
    head.truncate(bytes);
    head.freeze()
}

/// The size of a head that stays in the memory into which it was received.
const SMALL_HEAD_BYTES: usize = 4 * 1_024;
