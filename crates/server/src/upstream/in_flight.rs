//! One request and its response on one connection.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kettle_http::h1::response::{ParseResponse, ResponseHead, ResponseProgress};
use kettle_kernel::bug;
use kettle_tls::buffers;
use kettle_tls::stream::Stream;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::time::{Instant, timeout, timeout_at};

use super::error::tls_failure;
use super::pool::{Lease, LinkKey};
use super::{
    CONNECTION_OPTIONS_MAX, Link, OutgoingRequest, Pool, Reuse, Trace, Upstream, UpstreamError,
};
use crate::backend::{Attempts, Backend, Failure, Outcome, Server, Slot, Socket, UseCount};

/// A request in flight: the connection to a server that carries it.
pub struct InFlight {
    pub(super) link: Link,
    /// What came and was not used yet.
    pub(super) received: BytesMut,
    pub(super) lease: Lease,
    pub(super) timeout: Duration,
    progress: ResponseProgress,
    /// Since when there was a connection for it, over which it is sent at once.
    started: Instant,
    is_reused: bool,
    /// Whether the server took no more before it had the head of the request.
    pub(super) is_cut: bool,
    /// Since when something came back.
    answered: Option<Instant>,
    /// Interim responses that came.
    interim: usize,
}

impl InFlight {
    /// Takes a connection to the next server of `attempts`, a kept one if `reuse` says so and there is one. If a reload has put
    /// another in the place of `upstream` meanwhile, that is what it is from then on: `attempts` are at its servers.
    ///
    /// # Errors
    /// [`UpstreamError::Connect`].
    pub async fn begin(
        upstream: &mut Arc<Upstream>,
        pool: &Rc<Pool>,
        attempts: &mut Attempts,
        reuse: Reuse,
        trace: &mut Trace,
    ) -> Result<Self, UpstreamError> {
        loop {
            trace.backend = Some(Arc::clone(&upstream.backend));
            // A request that waits during a reload goes on with the servers that the backend has then.
            let followed = Cell::new(None);
            let successor = || {
                let next = pool.successor(upstream)?;
                let backend = Arc::clone(&next.backend);
                followed.set(Some(next));
                Some(backend)
            };
            let attempt = attempts.next(successor).await.map_err(UpstreamError::Connect)?;
            if let Some(next) = followed.take() {
                *upstream = next;
                trace.backend = Some(Arc::clone(&upstream.backend));
            }
            let (server, now) = (attempt.server(), attempt.started());
            trace.server = Some(Arc::clone(server));
            let may_reuse = match reuse {
                Reuse::Any => true,
                Reuse::OfSteady => !server.state.is_fickle(now),
                Reuse::Nothing => false,
            };
            let kept = if may_reuse { pool.take(upstream, server, now) } else { None };
            let is_reused = kept.is_some();
            trace.is_reused = is_reused;
            let (kept, slot, started) = match kept {
                Some(kept) => (kept, attempt.without_connecting(), now),
                None => {
                    let open = async |socket, server: &Server| open(upstream, socket, server).await;
                    // Boxed: most requests take a connection that is kept.
                    match Box::pin(attempt.connect_with(&open)).await {
                        Ok(link) => {
                            let connected = attempts.succeeded(attempt, link);
                            trace.connect_time = Some(connected.connect_time);
                            let link = connected.socket;
                            let destination = LinkKey::new(upstream, &connected.server, &link);
                            ((link, destination), connected.slot, Instant::now())
                        }
                        Err(failure) => {
                            attempts.failed(attempt, failure);
                            continue;
                        }
                    }
                }
            };
            return Ok(Self::new(upstream, pool, kept, slot, started, is_reused));
        }
    }

    fn new(
        upstream: &Arc<Upstream>,
        pool: &Rc<Pool>,
        (link, destination): (Link, LinkKey),
        slot: Slot,
        started: Instant,
        is_reused: bool,
    ) -> Self {
        let backend = Arc::clone(&upstream.backend);
        let count = UseCount::active(&backend);
        Self {
            link,
            received: BytesMut::new(),
            lease: Lease { pool: Rc::clone(pool), destination, backend, slot, count },
            timeout: Duration::MAX,
            progress: ResponseProgress::default(),
            started,
            is_reused,
            is_cut: false,
            answered: None,
            interim: 0,
        }
    }

    /// Sends the head of a request, as far as the server takes it: one that answered before it closed is heard.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub async fn send_head(&mut self, request: &OutgoingRequest) -> Result<(), UpstreamError> {
        self.timeout = request.timeout;
        let (deadline, mut left) = (self.started + self.timeout, request.head());
        let sent = poll_fn(|context| self.poll_send(context, &mut left));
        let sent = timeout_at(deadline, sent).await.unwrap_or(Err(UpstreamError::TimedOut));
        let Err(UpstreamError::Ended(error)) = sent else { return sent };
        self.is_cut = true;
        let answer = poll_fn(|context| self.poll_receive(context));
        match timeout(request.timeout, answer).await {
            Ok(Ok(1..)) => Ok(()),
            Ok(Err(why)) => Err(why.into()),
            Ok(Ok(0)) | Err(_) => Err(error.into()),
        }
    }

    /// Sends what is left of `left`, and flushes it.
    ///
    /// # Errors
    /// [`UpstreamError::Ended`].
    pub fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        left: &mut &[u8],
    ) -> Poll<Result<(), UpstreamError>> {
        while !left.is_empty() {
            let bytes = ready!(Pin::new(&mut self.link).poll_write(context, left))?;
            if bytes == 0 {
                return Poll::Ready(Err(io::Error::from(io::ErrorKind::WriteZero).into()));
            }
            let rest = left.get(bytes..);
            *left = rest.ok_or_else(|| bug!("no more is sent than there is"))?;
        }
        Poll::Ready(Ok(ready!(Pin::new(&mut self.link).poll_flush(context))?))
    }

    /// The next head that comes, an interim one among them; `TimedOut` if it is not there in time.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub async fn next_head(&mut self) -> Result<ResponseHead<Bytes>, UpstreamError> {
        let (pool, time_max) = (Rc::clone(&self.lease.pool), self.timeout);
        let head = timeout(time_max, poll_fn(|context| self.poll_head(context)));
        pool.until_drained(async { head.await.unwrap_or(Err(UpstreamError::TimedOut)) }).await
    }

    /// As [`next_head`](Self::next_head), without a limit of time.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub fn poll_head(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<ResponseHead<Bytes>, UpstreamError>> {
        loop {
            let parsed = match self.progress.parse(&self.received)? {
                ParseResponse::Complete { head, bytes } => Some((head.moved_to(()), bytes)),
                ParseResponse::Partial => None,
            };
            if let Some((head, bytes)) = parsed {
                let head = head.moved_to(self.take_front(bytes));
                self.check(&head)?;
                return Poll::Ready(Ok(head));
            }
            if ready!(self.poll_receive(context))? == 0 {
                return Poll::Ready(Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()));
            }
        }
    }

    /// Takes a head out of what was received. A large one goes with its memory, once it is passed on: what came behind it may have
    /// to wait long.
    fn take_front(&mut self, bytes: usize) -> Bytes {
        if bytes <= SMALL_HEAD_BYTES {
            return self.received.split_to(bytes).freeze();
        }
        let rest = BytesMut::from(self.received.split_at(bytes).1);
        let mut head = std::mem::replace(&mut self.received, rest);
        head.truncate(bytes);
        head.freeze()
    }

    /// What passes a head on does work for each option of `Connection` and each field, and somebody waits through all interim
    /// responses: of neither are there many.
    fn check(&mut self, head: &ResponseHead<Bytes>) -> Result<(), UpstreamError> {
        self.interim += usize::from(matches!(head.status(), 100..=199));
        if self.interim > INTERIM_MAX {
            return Err(UpstreamError::TooManyInterim);
        }
        if head.connection_options() > CONNECTION_OPTIONS_MAX {
            return Err(UpstreamError::TooManyOptions);
        }
        match head.header_values("x-accel-redirect").next() {
            Some(_) => Err(UpstreamError::InternalRedirect),
            None => Ok(()),
        }
    }

    /// What came behind the last head.
    #[must_use]
    pub(crate) fn received(&self) -> &[u8] {
        &self.received
    }

    /// Receives more of what is behind the last head; nothing is the end.
    ///
    /// # Errors
    /// What the connection says.
    pub(crate) fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let received = match self.answered {
            None => self.poll_receive_first(context),
            Some(_) => {
                self.received.reserve(RECEIVE_BYTES);
                pin!(self.link.read_buf(&mut self.received)).poll(context)
            }
        };
        match &received {
            Poll::Ready(Ok(1..)) => {
                self.answered.get_or_insert_with(Instant::now);
            }
            Poll::Ready(Err(error)) => self.note_tls_failure(error),
            // A server may take its time, and what waits for it holds nothing.
            Poll::Pending if self.received.is_empty() => self.received = BytesMut::new(),
            _ => {}
        }
        received
    }

    /// What comes first is short, most often, and copied out of memory that the worker has at hand.
    fn poll_receive_first(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut buffer = buffers::take(RECEIVE_BYTES);
        let mut read = ReadBuf::new(&mut buffer);
        let polled = Pin::new(&mut self.link).poll_read(context, &mut read);
        let received = polled.map_ok(|()| {
            self.received.extend_from_slice(read.filled());
            read.filled().len()
        });
        buffers::give(buffer);
        received
    }

    /// Most often it is an alert that refuses our certificate, which a server of TLS 1.3 sends behind the handshake.
    fn note_tls_failure(&self, error: &io::Error) {
        if let Some(error) = tls_failure(error) {
            let failure = Failure::new(Outcome::Tls, format!("TLS: {error}"));
            self.lease.slot.server().state.note(failure);
        }
    }

    /// True if the server has taken all that it was sent but a little.
    pub(crate) fn is_drained(&self) -> bool {
        self.link.is_drained()
    }

    /// How long the server may send nothing, and take nothing.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Whether a request that failed so is to be sent again, on a new connection, and counts it if so: the server had closed
    /// the connection before it can have seen the request, since it had served one before and nothing came back. A new
    /// connection never fails so, and nothing is sent a third time. What may not be repeated takes a new one from then on.
    #[must_use]
    pub fn retries(
        &self,
        request: &OutgoingRequest,
        error: &UpstreamError,
        trace: &mut Trace,
    ) -> bool {
        let is_stale =
            self.is_reused && self.answered.is_none() && matches!(error, UpstreamError::Ended(_));
        if is_stale {
            self.lease.slot.server().state.kept_died(Instant::now());
        }
        let is_repeated = is_stale && request.is_repeatable();
        if is_repeated {
            self.lease.backend.upstream_retried();
            trace.retries += 1;
        }
        is_repeated
    }

    /// The slot on its server, for a request that is sent again.
    pub(crate) fn into_slot(self) -> Slot {
        self.lease.slot
    }

    /// Notes what came back, and when.
    pub fn note(&self, head: &ResponseHead<Bytes>, trace: &mut Trace) {
        trace.status = Some(head.status());
        trace.first_byte = self.answered.map(|at| at.duration_since(self.started));
        self.lease.backend.upstream_answered(head.status());
    }

    /// The connection after a change of protocol, what came behind the response, what counts it on its server, and the backend
    /// that it is of: a request that waited has that of the configuration in force.
    pub(crate) fn into_tunnel(self) -> (Link, Vec<u8>, Slot, Arc<Backend>) {
        let Lease { slot, backend, .. } = self.lease;
        (self.link, self.received.to_vec(), slot, backend)
    }
}

async fn open(upstream: &Upstream, socket: Socket, server: &Server) -> Result<Link, Failure> {
    match (upstream.connector(server)?, socket) {
        (None, socket) => Ok(Link::Plain(socket)),
        (Some(connector), Socket::Tcp(socket)) => {
            Ok(Link::Tls(Stream::connect(socket, connector).await?))
        }
        (Some(_), Socket::Unix(_)) => {
            Err(Failure::new(Outcome::Tls, "TLS is not spoken over Unix sockets"))
        }
    }
}

/// Interim responses before a final one.
const INTERIM_MAX: usize = 32;

/// What stays in the memory that it was received into.
const SMALL_HEAD_BYTES: usize = 4 * 1_024;

/// What one read takes in: two full records.
const RECEIVE_BYTES: usize = 32 * 1_024;

#[cfg(test)]
mod tests;
