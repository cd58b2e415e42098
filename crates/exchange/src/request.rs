//! A request as its handler sees it: a head that was parsed once, and a body with where it comes from, which `body` reads when
//! somebody wants it.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use kettle_config::ForwardAuth;
use kettle_http::RequestError;
use kettle_http::h1::framing::{BodyFraming, BodyReader};
use kettle_http::h1::response::ResponseHead;
use kettle_runtime::deadlines::{BYTES_PER_SECOND_MIN, Deadline, LazyDeadline};
use kettle_tls::stream::{Received, Stream, StreamError};
use kettle_tls::{PeerIdentity, Session};
use tokio::sync::Semaphore;

mod body;
mod client;
mod concurrent_upload;
mod disconnect;
mod file_facts;
mod handed;
mod parameters;
mod source;
mod stream_source;
mod websocket;

pub use client::Client;
pub use concurrent_upload::{ConcurrentUpload, PieceSource, Rest, UploadEnd};
pub use disconnect::{ClientWatch, Disconnected, disconnect};
pub use file_facts::{FileFacts, FileQuestion, Program, There};
pub use handed::{Handed, HandedTo};
pub use parameters::as_read_otherwise;
use source::Source;
pub use stream_source::{RequestStream, StreamClosed};
pub use websocket::{websocket_accept, websocket_key};

/// A request's head, in the bytes that were received.
pub type Head = kettle_http::RequestHead<Received>;

/// A request, from its complete head to the end of its response.
pub struct Request<'c> {
    /// The head of the request. Boxed: an idle connection keeps no room for one.
    pub head: Box<Head>,
    /// The body behind the head.
    pub body: RequestBody<'c>,
    /// The client that asks.
    pub client: &'c Client,
    /// The user that it is, if its route has asked for a name and a password.
    pub user: Option<Arc<str>>,
    /// The words of a service on it, if its route asks one.
    pub vouched: Option<Box<Vouched>>,
    /// The target that its server names in place of an answer, until a route is asked for that.
    pub handed: Option<Box<Handed>>,
    /// The program that was found for it, where its route has files and an application.
    pub program: Option<Box<Program>>,
    /// The facts on files about which conditions ask.
    pub files: FileFacts,
}

/// Names, in lower case, and values that a backend is told in place of the client's.
pub type VouchedFields = Arc<[(String, Vec<u8>)]>;

/// The word of a service, for as long as its request lasts.
#[derive(Debug)]
pub struct Vouched {
    /// The service that was asked, and how: what another route would ask alike is known.
    pub by: Arc<ForwardAuth>,
    /// The status of its refusal; `None` if the request may go on.
    pub refused: Option<u16>,
    /// The fields for a backend.
    pub fields: VouchedFields,
    /// Cookies that the client gets with the answer.
    pub cookies: Vec<Vec<u8>>,
    /// Its answer, unless that is remembered from before.
    pub answer: Option<ResponseHead<Bytes>>,
}

impl Vouched {
    /// The first header of this name in the service's answer.
    pub fn said(&self, name: &str) -> Option<&[u8]> {
        self.answer.as_ref()?.header_values(name).next()
    }
}

/// The facts that a client presented when it connected.
#[derive(Clone, Copy, Debug, Default)]
pub struct Presented<'c> {
    /// The name its connection was made with (SNI).
    pub server_name: Option<&'c str>,
    /// True if it has shown a certificate that was asked for.
    pub is_verified: bool,
}

/// Over a plain connection it presents nothing.
impl<'c> From<Option<&'c Session>> for Presented<'c> {
    fn from(session: Option<&'c Session>) -> Self {
        Self {
            server_name: session.and_then(|session| session.server_name.as_deref()),
            is_verified: session.is_some_and(|session| session.peer.is_some()),
        }
    }
}

impl<'c> Request<'c> {
    /// A request without a body, over no connection: for tests of what answers.
    pub fn without_body(head: Box<Head>, server_name: Option<&'c str>) -> Self {
        let source = Source::Nothing { server_name };
        Self::from_source(head, BodyFraming::None, source, &NOBODY)
    }

    /// A request whose body, if any, comes from `source`.
    pub fn new(
        head: Box<Head>,
        framing: BodyFraming,
        source: ConnectionSource<'c>,
        client: &'c Client,
    ) -> Self {
        Self::from_source(head, framing, Source::Connection(source), client)
    }

    /// A request that is one stream of its connection's. A body of unknown length is `Chunked`.
    pub fn of_stream(
        head: Box<Head>,
        framing: BodyFraming,
        source: StreamSource<'c>,
        client: &'c Client,
    ) -> Self {
        Self::from_source(head, framing, Source::Stream(source), client)
    }

    fn from_source(
        head: Box<Head>,
        framing: BodyFraming,
        source: Source<'c>,
        client: &'c Client,
    ) -> Self {
        // A body of no bytes needs no `100 Continue`.
        let is_awaited = !framing.is_empty() && head.expects_continue();
        let body = RequestBody {
            source,
            framing,
            reader: BodyReader::new(framing),
            lent_bytes: 0,
            is_awaited,
            is_broken: false,
            waited: Duration::ZERO,
            total_bytes: 0,
            upload: None,
        };
        Self {
            head,
            body,
            client,
            user: None,
            vouched: None,
            handed: None,
            program: None,
            files: FileFacts::default(),
        }
    }

    /// Returns the facts that the client presented when it connected.
    pub fn presented(&self) -> Presented<'_> {
        self.body.source.presented()
    }

    /// The certificate that its client has shown and that was verified, if any.
    pub fn certificate(&self) -> Option<&PeerIdentity> {
        self.body.source.session()?.peer.as_deref()
    }

    /// True if the kernel takes a file's bytes to the client from the page cache as they are: HTTP/1.1 without TLS.
    pub fn is_sent_from_page_cache(&self) -> bool {
        self.body.source.is_sent_from_page_cache()
    }

    /// Returns the semaphore for a permit before a body is made as a whole. `None` where responses are sent one after the
    /// other.
    pub fn body_permits(&self) -> Option<&Arc<Semaphore>> {
        self.body.source.body_permits()
    }
}

/// The body of a request: a stream with limits over the connection's receiving side.
///
/// Bytes behind the body stay in the stream: they are the front of the next request.
pub struct RequestBody<'c> {
    source: Source<'c>,
    framing: BodyFraming,
    reader: BodyReader,
    /// The data that the last call gave out, still at the front of what was received.
    lent_bytes: usize,
    /// True if the client waits for `100 Continue`.
    is_awaited: bool,
    /// True if where the body ends will never be known.
    is_broken: bool,
    /// The time the client was waited for.
    waited: Duration,
    /// The bytes so far, of a body without framing of its own.
    total_bytes: u64,
    /// The rest of it, if that goes on beside the response.
    upload: Option<Box<concurrent_upload::UploadState>>,
}

/// The state of a body that is being read.
struct Reading<'r> {
    framing: BodyFraming,
    reader: &'r mut BodyReader,
    /// The bytes so far, of a body without framing of its own.
    total_bytes: &'r mut u64,
    /// The time the client was waited for.
    waited: &'r mut Duration,
}

/// Why a body ended before its end. The connection cannot be used for another request.
#[derive(Debug)]
pub enum BodyError {
    /// It is longer than who reads it allows.
    TooLong,
    /// Its coding is broken.
    Malformed(RequestError),
    /// The client closed its side in the middle of it.
    Ended,
    /// The client sent nothing for too long.
    TimedOut,
    /// The connection failed.
    Stream(StreamError),
}

impl BodyError {
    /// The status to answer with.
    pub fn status(&self) -> u16 {
        match self {
            BodyError::TooLong => 413,
            BodyError::Malformed(error) => error.status(),
            BodyError::Ended | BodyError::Stream(_) => 400,
            BodyError::TimedOut => 408,
        }
    }
}

impl RequestBody<'_> {
    /// The connection that the request came over; none if that is for many at a time.
    pub fn stream(&mut self) -> Option<&mut Stream> {
        self.source.connection()
    }

    /// The same for its response, and the rest of the body if that goes on beside it. Always there over HTTP/1.1.
    pub fn stream_and_upload(&mut self) -> Option<(&mut Stream, Option<ConcurrentUpload<'_>>)> {
        let Self { source, upload, is_broken, reader, total_bytes, .. } = self;
        let stream = source.connection()?;
        Some((stream, ConcurrentUpload::new(upload, is_broken, reader, total_bytes)))
    }

    /// The rest of the body of a stream, if that goes on beside its response.
    pub fn upload(&mut self) -> Option<ConcurrentUpload<'_>> {
        let Self { upload, is_broken, reader, total_bytes, .. } = self;
        ConcurrentUpload::new(upload, is_broken, reader, total_bytes)
    }
}

/// The source of the body of a connection's request.
pub struct ConnectionSource<'c> {
    /// The connection.
    pub stream: &'c mut Stream,
    /// Its deadline.
    pub deadline: &'c Deadline,
    /// The time the client may send nothing.
    pub timeout: Duration,
    /// The longest body that is read only to be thrown away, in bytes.
    pub discard_bytes_max: u64,
}

/// The source of the body of a stream.
pub struct StreamSource<'c> {
    stream: &'c dyn RequestStream,
    /// The session of its connection.
    session: Option<&'c Session>,
    /// The stream's own deadline.
    deadline: &'c LazyDeadline<'c>,
    /// The time the client may send nothing.
    timeout: Duration,
    /// The longest body that is read only to be thrown away, in bytes.
    discard_bytes_max: u64,
    /// The data that was given out last.
    data: Bytes,
    /// The lines of its trailer section, once its end was read.
    trailers: Vec<u8>,
}

impl<'c> StreamSource<'c> {
    /// The body of a stream whose client may send nothing for `timeout`, and of which no more than `discard_bytes_max` are
    /// read only to be thrown away.
    pub fn new(
        stream: &'c dyn RequestStream,
        session: Option<&'c Session>,
        deadline: &'c LazyDeadline<'c>,
        timeout: Duration,
        discard_bytes_max: u64,
    ) -> Self {
        Self {
            stream,
            session,
            deadline,
            timeout,
            discard_bytes_max,
            data: Bytes::new(),
            trailers: Vec::new(),
        }
    }
}

/// The time a client is waited for now, after it was waited for so long in all, for so many bytes; nothing if that was too long.
/// The task that wants the body is kept busy all the while, so a client may not make it last by sending a byte now and then.
fn patience(timeout: Duration, waited: Duration, bytes: u64) -> Option<Duration> {
    let earned = Duration::from_secs(bytes / BYTES_PER_SECOND_MIN);
    let left = timeout.saturating_add(earned).saturating_sub(waited);
    (!left.is_zero()).then(|| left.min(timeout))
}

/// The client of a request that came over no connection.
static NOBODY: LazyLock<Client> = LazyLock::new(Client::default);

#[cfg(test)]
mod tests;
