//! A request as its handler sees it: a head that was parsed once, and a body that is read when
//! somebody wants it.

use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use kettle_config::ForwardAuth;
use kettle_http::RequestError;
use kettle_http::h1::framing::{BodyFraming, BodyReader};
use kettle_http::h1::response::ResponseHead;
use kettle_runtime::deadlines::BYTES_PER_SECOND_MIN;
use kettle_tls::stream::{Received, Stream, StreamError};
use kettle_tls::{PeerIdentity, Session};
use tokio::sync::Semaphore;

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
pub use source::ConnectionSource;
use source::Source;
pub use stream_source::{RequestStream, StreamClosed, StreamSource};
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
    pub fn body_places(&self) -> Option<&Arc<Semaphore>> {
        self.body.source.body_places()
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

impl<'c> RequestBody<'c> {
    /// The next data of a body of at most `bytes_max` bytes, without its transfer coding; `None`
    /// at its end. The first call tells a client that waits for it to go on (RFC 9110 §10.1.1).
    ///
    /// # Errors
    /// [`BodyError`], also if the body is announced to be too long.
    pub async fn chunk(&mut self, bytes_max: u64) -> Result<Option<&[u8]>, BodyError> {
        Ok(self.chunk_and_client(bytes_max).await?.map(|(data, _)| data))
    }

    /// As [`chunk`](Self::chunk), with the client to look at as long as the data is used.
    ///
    /// # Errors
    /// As `chunk`.
    pub async fn chunk_and_client(
        &mut self,
        bytes_max: u64,
    ) -> Result<Option<(&[u8], ClientWatch<'_>)>, BodyError> {
        let outcome = self.next(bytes_max).await;
        self.is_broken |= outcome.is_err();
        let Some(data_bytes) = outcome? else { return Ok(None) };
        self.lent_bytes = data_bytes;
        Ok(Some((self.source.data(data_bytes)?, self.source.client())))
    }

    async fn next(&mut self, bytes_max: u64) -> Result<Option<usize>, BodyError> {
        // It is not kept while the next one is waited for.
        self.source.release(std::mem::take(&mut self.lent_bytes));
        if matches!(self.framing, BodyFraming::Length(bytes) if bytes > bytes_max) {
            return Err(BodyError::TooLong);
        }
        self.go_on().await?;
        let (source, reading) = self.reading();
        source.next(reading, bytes_max).await
    }

    fn reading(&mut self) -> (&mut Source<'c>, Reading<'_>) {
        let Self { source, framing, reader, total_bytes, waited, .. } = self;
        (source, Reading { framing: *framing, reader, total_bytes, waited })
    }

    /// True while a note of what was [passed on](Self::note_passed_on) is of use.
    pub fn is_probing(&self) -> bool {
        self.source.stream().is_some_and(|stream| stream.is_probing())
    }

    /// Notes that all that was given out has been passed on: the client may be far away, and get a larger window.
    pub fn note_passed_on(&self) {
        self.source.stream().inspect(|stream| stream.note_passed_on());
    }

    /// The lines of its trailer section, as HTTP/1.1 has them: once its end was read.
    pub fn trailers(&self) -> &[u8] {
        self.source.trailers(&self.reader)
    }

    /// Returns the marking of its end.
    pub fn framing(&self) -> BodyFraming {
        self.framing
    }

    /// Says that its end is marked in another way, for somebody who is to see nothing of it; how it was marked before.
    pub fn set_framing(&mut self, framing: BodyFraming) -> BodyFraming {
        std::mem::replace(&mut self.framing, framing)
    }

    /// True if the client waits to be told to go on before it sends the body. One that has begun does not (RFC 9110 §10.1.1).
    pub fn is_awaited(&self) -> bool {
        self.is_awaited && !self.source.has_begun()
    }

    /// Ready when the client has begun it, or will not.
    pub fn poll_begun(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.source.poll_begun(context).map(|begun| self.is_awaited &= begun.is_ok())
    }

    /// Tells a client that waits for it to go on. To be waited for to its end.
    ///
    /// # Errors
    /// [`BodyError`].
    pub async fn go_on(&mut self) -> Result<(), BodyError> {
        if std::mem::take(&mut self.is_awaited) && !self.source.has_begun() {
            self.source.send_interim(CONTINUE).await?;
        }
        Ok(())
    }

    /// Sends an interim response (RFC 9110 §15.2), its head written as for HTTP/1.1. To be waited for to its end.
    ///
    /// # Errors
    /// [`BodyError`].
    pub async fn send_interim(&mut self, head: &[u8]) -> Result<(), BodyError> {
        self.source.send_interim(head).await
    }

    /// True if nothing can follow this request on its connection, as far as its body goes.
    pub fn is_last(&self) -> bool {
        let Some(bytes_max) = self.source.discard_bytes_max() else { return true };
        let is_too_long = matches!(self.framing, BodyFraming::Length(bytes) if bytes > bytes_max);
        // With a final status in place of `100 Continue`, whether the body follows is open.
        self.is_awaited || self.is_broken || (is_too_long && !self.reader.is_done())
    }

    /// Reads past what nobody wanted, up to the limit, in the time that a client may be silent.
    ///
    /// # Errors
    /// [`BodyError`] if that is not the end of it.
    pub async fn discard(&mut self) -> Result<(), BodyError> {
        self.upload = None;
        self.source.release(std::mem::take(&mut self.lent_bytes));
        if self.is_broken {
            return Ok(());
        }
        let is_awaited = self.is_awaited;
        let (source, reading) = self.reading();
        source.discard(reading, is_awaited).await
    }

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

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

#[cfg(test)]
mod tests;
