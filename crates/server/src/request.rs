//! A request as its handler sees it: a head that was parsed once, and a body that is read when
//! somebody wants it.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use kettle_http::RequestError;
use kettle_http::h1::framing::{BodyFraming, BodyReader};
use kettle_tls::stream::{Filled, Received, StreamError, TlsStream};
use kettle_tls::{PeerIdentity, Session};
use tokio::sync::Semaphore;

use crate::deadlines::{BYTES_PER_SECOND_MIN, Stage};

mod client;
mod concurrent_upload;
mod departure;
mod parameters;
mod stream_body;
mod tls_body;

pub use client::Client;
pub(crate) use concurrent_upload::PieceSource;
pub use concurrent_upload::{ConcurrentUpload, Rest, UploadEnd};
pub(crate) use departure::{ClientWatch, Departed, departure};
pub use parameters::as_read_otherwise;
pub use stream_body::StreamSource;
pub use tls_body::TlsSource;

/// A request's head, in the bytes that were received.
pub type Head = kettle_http::RequestHead<Received>;

/// A request, from its complete head to the end of its response.
pub struct Request<'c> {
    /// What it asks for. Boxed: an idle connection keeps no room for one.
    pub head: Box<Head>,
    /// What follows the head.
    pub body: RequestBody<'c>,
    /// The client that asks.
    pub client: Client,
}

/// What a client presented when it connected.
#[derive(Clone, Copy, Debug, Default)]
pub struct Presented<'c> {
    /// The name its connection was made with (SNI).
    pub server_name: Option<&'c str>,
    /// Whether it has shown a certificate that was asked for.
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
    #[must_use]
    pub fn without_body(head: Box<Head>, server_name: Option<&'c str>) -> Self {
        let source = BodySource::Nothing { server_name };
        Self::from_source(head, BodyFraming::None, source, Client::default())
    }

    /// A request whose body is announced and nowhere.
    #[cfg(test)]
    pub(crate) fn announced(head: Box<Head>, framing: BodyFraming) -> Self {
        let source = BodySource::Nothing { server_name: None };
        Self::from_source(head, framing, source, Client::default())
    }

    /// A request whose body, if any, comes from `source`.
    #[must_use]
    pub fn new(
        head: Box<Head>,
        framing: BodyFraming,
        source: TlsSource<'c>,
        client: Client,
    ) -> Self {
        Self::from_source(head, framing, BodySource::Tls(source), client)
    }

    /// A request that is one stream of its connection's. A body of unknown length is `Chunked`.
    #[must_use]
    pub fn of_stream(
        head: Box<Head>,
        framing: BodyFraming,
        source: StreamSource<'c>,
        client: Client,
    ) -> Self {
        Self::from_source(head, framing, BodySource::Stream(source), client)
    }

    fn from_source(
        head: Box<Head>,
        framing: BodyFraming,
        source: BodySource<'c>,
        client: Client,
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
        Self { head, body, client }
    }

    /// What the client presented when it connected.
    #[must_use]
    pub fn presented(&self) -> Presented<'_> {
        match &self.body.source {
            BodySource::Nothing { server_name } => {
                Presented { server_name: *server_name, is_verified: false }
            }
            BodySource::Tls(source) => source.stream.session().into(),
            BodySource::Stream(source) => source.session.into(),
        }
    }

    /// The certificate that its client has shown and that was verified, if any.
    #[must_use]
    pub fn certificate(&self) -> Option<&PeerIdentity> {
        let session = match &self.body.source {
            BodySource::Nothing { .. } => return None,
            BodySource::Tls(source) => source.stream.session(),
            BodySource::Stream(source) => source.session,
        };
        session?.peer.as_deref()
    }

    /// Where to take a permit before a body is made as a whole. `None` where responses are sent one after the other.
    #[must_use]
    pub fn body_places(&self) -> Option<&Arc<Semaphore>> {
        match &self.body.source {
            BodySource::Nothing { .. } | BodySource::Tls(_) => None,
            BodySource::Stream(source) => Some(source.stream.channel().body_places()),
        }
    }
}

/// The body of a request: a stream with limits over the connection's receiving side.
///
/// What lies behind the body stays in the stream: it is the front of the next request.
pub struct RequestBody<'c> {
    source: BodySource<'c>,
    framing: BodyFraming,
    reader: BodyReader,
    /// The data that the last call gave out, still at the front of what was received.
    lent_bytes: usize,
    /// Whether the client waits for `100 Continue`.
    is_awaited: bool,
    /// Whether where the body ends will never be known.
    is_broken: bool,
    /// How long the client was waited for.
    waited: Duration,
    /// How much there has been, of a body without framing of its own.
    total_bytes: u64,
    /// The rest of it, if that goes on beside the response.
    upload: Option<Box<concurrent_upload::UploadState>>,
}

enum BodySource<'c> {
    Nothing { server_name: Option<&'c str> },
    Tls(TlsSource<'c>),
    Stream(StreamSource<'c>),
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
    #[must_use]
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
    pub(crate) async fn chunk_and_client(
        &mut self,
        bytes_max: u64,
    ) -> Result<Option<(&[u8], ClientWatch<'_>)>, BodyError> {
        let outcome = match self.source {
            BodySource::Stream(_) => self.next_of_stream(bytes_max, Stage::UnderWay).await,
            _ => self.next_chunk(bytes_max).await,
        };
        self.is_broken |= outcome.is_err();
        let Some(data_bytes) = outcome? else { return Ok(None) };
        let client = self.source.client();
        match &self.source {
            BodySource::Nothing { .. } => Ok(None),
            BodySource::Tls(source) => {
                self.lent_bytes = data_bytes;
                let data = source.stream.received().bytes().get(..data_bytes);
                Ok(data.map(|data| (data, client)))
            }
            BodySource::Stream(source) => Ok(Some((&source.data, client))),
        }
    }

    async fn next_of_stream(
        &mut self,
        bytes_max: u64,
        stage: Stage,
    ) -> Result<Option<usize>, BodyError> {
        let BodySource::Stream(source) = &mut self.source else { return Ok(None) };
        if matches!(self.framing, BodyFraming::Length(bytes) if bytes > bytes_max) {
            return Err(BodyError::TooLong);
        }
        if std::mem::take(&mut self.is_awaited) && !source.stream.has_body_begun() {
            source.send_interim(CONTINUE)?;
        }
        // It is not kept while the next one is waited for.
        source.data = Bytes::new();
        // What nobody wants earns no time.
        let earning_bytes = if stage == Stage::Idle { 0 } else { self.total_bytes };
        let next = source.next(stage, &mut self.waited, earning_bytes).await?;
        let Some(next) = next else { return Ok(None) };
        self.total_bytes = self.total_bytes.saturating_add(next.len() as u64);
        if self.total_bytes > bytes_max {
            return Err(BodyError::TooLong);
        }
        source.data = next;
        Ok(Some(source.data.len()))
    }

    async fn next_chunk(&mut self, bytes_max: u64) -> Result<Option<usize>, BodyError> {
        let BodySource::Tls(source) = &mut self.source else { return Ok(None) };
        source.stream.consume(std::mem::take(&mut self.lent_bytes));
        if matches!(self.framing, BodyFraming::Length(bytes) if bytes > bytes_max) {
            return Err(BodyError::TooLong);
        }
        if std::mem::take(&mut self.is_awaited) && source.stream.received().bytes().is_empty() {
            source.send(CONTINUE).await?;
        }
        loop {
            let received = source.stream.received().bytes();
            let piece = self.reader.next_piece(received).map_err(BodyError::Malformed)?;
            source.stream.consume(piece.coding_bytes);
            if self.reader.is_longer_than(bytes_max) {
                return Err(BodyError::TooLong);
            }
            if piece.data_bytes > 0 {
                return Ok(Some(piece.data_bytes));
            }
            if self.reader.is_done() {
                return Ok(None);
            }
            let patience = patience(source.timeout, self.waited, self.reader.total_bytes());
            source.deadline.extend(patience.ok_or(BodyError::TimedOut)?);
            let began = Instant::now();
            source.fill(Stage::UnderWay).await?;
            self.waited += began.elapsed();
        }
    }

    /// True while a note of what was [passed on](Self::note_passed_on) is of use.
    pub(crate) fn is_probing(&self) -> bool {
        matches!(&self.source, BodySource::Stream(source) if source.stream.is_probing())
    }

    /// Notes that all that was given out has been passed on: the client may be far away, and get a larger window.
    pub(crate) fn note_passed_on(&self) {
        if let BodySource::Stream(source) = &self.source {
            source.stream.note_passed_on();
        }
    }

    /// The lines of its trailer section, as HTTP/1.1 has them: once its end was read.
    #[must_use]
    pub fn trailers(&self) -> &[u8] {
        match &self.source {
            BodySource::Nothing { .. } => &[],
            BodySource::Tls(_) => self.reader.trailers(),
            BodySource::Stream(source) => &source.trailers,
        }
    }

    /// How its end is marked.
    #[must_use]
    pub fn framing(&self) -> BodyFraming {
        self.framing
    }

    /// Whether the client waits to be told to go on before it sends the body. One that has begun does not (RFC 9110 §10.1.1).
    #[must_use]
    pub fn is_awaited(&mut self) -> bool {
        let has_begun = match &mut self.source {
            BodySource::Nothing { .. } => false,
            BodySource::Tls(source) => !source.stream.received().bytes().is_empty(),
            BodySource::Stream(source) => source.stream.has_body_begun(),
        };
        self.is_awaited && !has_begun
    }

    /// Ready when the client has begun it, or will not.
    pub(crate) fn poll_begun(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.source {
            BodySource::Nothing { .. } => Poll::Pending,
            BodySource::Tls(source) => loop {
                if !source.stream.received().bytes().is_empty() {
                    return Poll::Ready(());
                }
                match ready!(source.stream.poll_fill(context)) {
                    Ok(Filled::Data) => {}
                    Ok(Filled::Closed | Filled::Truncated) => return Poll::Ready(()),
                    Err(_) => {
                        // It is told nothing any more; who reads next learns why.
                        self.is_awaited = false;
                        return Poll::Ready(());
                    }
                }
            },
            BodySource::Stream(source) if source.stream.has_body_begun() => Poll::Ready(()),
            // Whatever comes of the stream wakes who waits for its end.
            BodySource::Stream(source) => source.stream.poll_gone(context),
        }
    }

    /// Tells a client that waits for it to go on. To be waited for to its end.
    ///
    /// # Errors
    /// [`BodyError`].
    pub async fn go_on(&mut self) -> Result<(), BodyError> {
        let is_awaited = std::mem::take(&mut self.is_awaited);
        match &mut self.source {
            BodySource::Tls(source)
                if is_awaited && source.stream.received().bytes().is_empty() =>
            {
                source.send(CONTINUE).await
            }
            BodySource::Stream(source) if is_awaited && !source.stream.has_body_begun() => {
                source.send_interim(CONTINUE)
            }
            _ => Ok(()),
        }
    }

    /// Sends an interim response (RFC 9110 §15.2), its head written as for HTTP/1.1. To be waited for to its end.
    ///
    /// # Errors
    /// [`BodyError`].
    pub async fn send_interim(&mut self, head: &[u8]) -> Result<(), BodyError> {
        match &mut self.source {
            BodySource::Nothing { .. } => Ok(()),
            BodySource::Tls(source) => source.send(head).await,
            BodySource::Stream(source) => source.send_interim(head),
        }
    }

    /// Whether nothing can follow this request on its connection, as far as its body goes.
    #[must_use]
    pub fn is_last(&self) -> bool {
        let BodySource::Tls(source) = &self.source else { return true };
        let is_too_long =
            matches!(self.framing, BodyFraming::Length(bytes) if bytes > source.discard_bytes_max);
        // With a final status in place of `100 Continue`, whether the body follows is open.
        self.is_awaited || self.is_broken || (is_too_long && !self.reader.is_done())
    }

    /// Reads past what nobody wanted, up to the limit, in the time that a client may be silent.
    ///
    /// # Errors
    /// [`BodyError`] if that is not the end of it.
    pub async fn discard(&mut self) -> Result<(), BodyError> {
        self.upload = None;
        if let BodySource::Stream(source) = &self.source {
            if self.is_awaited || self.is_broken {
                return Ok(());
            }
            let bytes_max = self.total_bytes.saturating_add(source.discard_bytes_max);
            self.waited = Duration::ZERO;
            while self.next_of_stream(bytes_max, Stage::Idle).await?.is_some() {}
            return Ok(());
        }
        let BodySource::Tls(source) = &mut self.source else { return Ok(()) };
        source.stream.consume(std::mem::take(&mut self.lent_bytes));
        // With a final answer in place of `100 Continue` nothing need follow.
        let is_awaited = self.is_awaited && source.stream.received().bytes().is_empty();
        if self.reader.is_done() || self.is_broken || is_awaited {
            return Ok(());
        }
        let bytes_max = self.reader.total_bytes().saturating_add(source.discard_bytes_max);
        source.deadline.extend(source.timeout);
        loop {
            let received = source.stream.received().bytes();
            let consumed = self.reader.consume(received).map_err(BodyError::Malformed)?;
            source.stream.consume(consumed.bytes);
            if consumed.done {
                return Ok(());
            }
            if self.reader.total_bytes() > bytes_max {
                return Err(BodyError::TooLong);
            }
            // Its response is sent: for the body alone a server that stops does not stay.
            source.fill(Stage::Idle).await?;
        }
    }

    /// The connection that the request came over; none if that is not one with TLS.
    pub(crate) fn stream(&mut self) -> Option<&mut TlsStream> {
        match &mut self.source {
            BodySource::Nothing { .. } | BodySource::Stream(_) => None,
            BodySource::Tls(source) => Some(source.stream),
        }
    }
}

/// How long a client is waited for now, after it was waited for so long in all, for so many bytes; nothing if that was too long.
/// Whoever wants the body is kept busy all the while, so a client may not make it last by sending a byte now and then.
fn patience(timeout: Duration, waited: Duration, bytes: u64) -> Option<Duration> {
    let earned = Duration::from_secs(bytes / BYTES_PER_SECOND_MIN);
    let left = timeout.saturating_add(earned).saturating_sub(waited);
    (!left.is_zero()).then(|| left.min(timeout))
}

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

#[cfg(test)]
pub(crate) mod tests;
