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
use kettle_http::h1::framing::BodyFraming;
use kettle_http::h1::response::ResponseHead;
use kettle_kernel::bug;
use kettle_tls::buffers;
use kettle_tls::stream::Stream;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::task::spawn_local;
use tokio::time::{Instant, timeout, timeout_at};

use super::error::tls_failure;
use super::origin::{BodyCoding, Origin};
use super::pool::{Lease, LinkKey};
use super::{
    CONNECTION_OPTIONS_MAX, Link, OutgoingRequest, Pool, Reuse, Trace, Upstream, UpstreamError,
};
use crate::backend::{Attempts, Backend, Failure, Outcome, Server, Slot, Socket, UseCount};

/// A request in flight: the connection to a server that carries it.
pub struct InFlight {
    pub(super) link: Link,
    /// The bytes that came and were not used yet.
    pub(super) received: BytesMut,
    pub(super) lease: Lease,
    pub(super) timeout: Duration,
    pub(super) origin: Origin,
    /// Since when there was a connection for it, over which it is sent at once.
    started: Instant,
    is_reused: bool,
    /// True if the server took no more of the request. A reset is told once, so that the end of what it sent may look like any other.
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
            let server = attempt.server();
            let now = attempt.started();
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
            origin: Origin::of(upstream.backend.settings.protocol),
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
        if request.protocol() != self.lease.backend.settings.protocol {
            return Err(bug!("a request is written for the protocol of its backend").into());
        }
        self.timeout = request.timeout;
        let deadline = self.started + self.timeout;
        let head = request.head();
        let mut left = &*head;
        let sent = poll_fn(|context| self.poll_send(context, &mut left));
        let sent = timeout_at(deadline, sent).await.unwrap_or(Err(UpstreamError::TimedOut));
        let Err(UpstreamError::Ended(error)) = sent else { return sent };
        let answer = poll_fn(|context| self.poll_receive(context));
        match timeout(request.timeout, answer).await {
            Ok(Ok(1..)) => Ok(()),
            Ok(Err(why)) => Err(why),
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
        let sent = ready!(self.poll_write_all(context, left));
        self.is_cut |= sent.is_err();
        Poll::Ready(sent)
    }

    fn poll_write_all(
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
        let pool = Rc::clone(&self.lease.pool);
        let time_max = self.timeout;
        let mut head = pin!(timeout(time_max, poll_fn(|context| self.poll_head(context))));
        let head = poll_fn(|context| {
            head.as_mut().poll(context).map(|head| head.unwrap_or(Err(UpstreamError::TimedOut)))
        });
        pool.until_drained(pin!(head)).await
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
            if let Some(head) = self.origin.next_head(&mut self.received)? {
                self.check(&head)?;
                return Poll::Ready(Ok(head));
            }
            if ready!(self.poll_receive(context))? == 0 {
                if self.origin.says_end() {
                    return Poll::Ready(Err(UpstreamError::NotAnswered));
                }
                return Poll::Ready(Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()));
            }
        }
    }

    /// The code that passes a head on does work for each option of `Connection` and each field, and somebody waits through all
    /// interim responses: of neither are there many.
    fn check(&mut self, head: &ResponseHead<Bytes>) -> Result<(), UpstreamError> {
        self.interim += usize::from(matches!(head.status(), 100..=199));
        if self.interim > INTERIM_MAX {
            return Err(UpstreamError::TooManyInterim);
        }
        if head.connection_options() > CONNECTION_OPTIONS_MAX {
            return Err(UpstreamError::TooManyOptions);
        }
        Ok(())
    }

    /// Returns the bytes behind the last head.
    #[must_use]
    pub fn received(&self) -> &[u8] {
        &self.received
    }

    /// Receives more of what is behind the last head; nothing is the end.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<usize, UpstreamError>> {
        let received = match (&self.origin, self.answered) {
            (Origin::FastCgi(_), _) => return self.poll_receive_records(context),
            (_, None) => self.poll_receive_first(context),
            (_, Some(_)) => {
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
        received.map_err(UpstreamError::from)
    }

    /// Receives records until one has a part of the response. The end of the connection is never the end of a response.
    fn poll_receive_records(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<usize, UpstreamError>> {
        let before = self.received.len();
        loop {
            let Origin::FastCgi(application) = &mut self.origin else {
                return Poll::Ready(Err(bug!("records come from an application").into()));
            };
            if self.received.len() > before || application.has_ended() {
                return Poll::Ready(Ok(self.received.len() - before));
            }
            let mut buffer = buffers::take(RECEIVE_BYTES);
            let mut read = ReadBuf::new(&mut buffer);
            let polled = Pin::new(&mut self.link).poll_read(context, &mut read);
            let taken = match &polled {
                Poll::Ready(Ok(())) if !read.filled().is_empty() => {
                    self.answered.get_or_insert_with(Instant::now);
                    if self.received.capacity() == 0 {
                        self.received = self.lease.pool.take_spare();
                    }
                    let whom = (&*self.lease.backend, &**self.lease.slot.server());
                    application.take(read.filled(), &mut self.received, whom)
                }
                Poll::Ready(Ok(())) => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                _ => Ok(()),
            };
            buffers::give(buffer);
            ready!(polled)?;
            taken?;
        }
    }

    /// The first bytes are short, most often, and copied out of memory that the worker has at hand.
    fn poll_receive_first(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut buffer = buffers::take(RECEIVE_BYTES);
        let mut read = ReadBuf::new(&mut buffer);
        let polled = Pin::new(&mut self.link).poll_read(context, &mut read);
        let received = polled.map_ok(|()| {
            if self.received.is_empty() && !read.filled().is_empty() {
                self.received = self.lease.pool.take_spare();
            }
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
    pub fn is_drained(&self) -> bool {
        self.link.is_drained()
    }

    /// The time the server may send nothing, and take nothing.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// True if its server says 100 when it wants the body of a request.
    pub fn says_go_on(&self) -> bool {
        self.origin.says_go_on()
    }

    /// Returns the coding of its request's body, if it is announced with this framing.
    pub fn body_coding(&self, framing: BodyFraming) -> BodyCoding {
        self.origin.body_coding(framing)
    }

    /// True if a request that failed so is to be sent again, on a new connection, and counts it if so: the server had closed
    /// the connection before it can have seen the request, since it had served one before and nothing came back. A new
    /// connection never fails so, and nothing is sent a third time. A request that may not be repeated takes a new connection
    /// from then on. An application that says itself that it took no notice of a request is followed by the next server.
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
        let is_refused = matches!(error, UpstreamError::Overloaded);
        let is_repeated = (is_stale || is_refused) && request.is_repeatable();
        if is_repeated {
            self.lease.backend.upstream_retried();
            trace.retries += 1;
        }
        is_repeated
    }

    /// True if another server is to be asked in place of this one, if one is left that is well, and counts that if so. This one is
    /// asked no more; its answer is held meanwhile if it `has_answer`.
    pub fn goes_on(&self, attempts: &mut Attempts, has_answer: bool, trace: &mut Trace) -> bool {
        let goes_on = attempts.go_on(&self.lease.slot, has_answer);
        if goes_on {
            self.lease.backend.upstream_retried();
            trace.retries += 1;
        }
        goes_on
    }

    /// The cookie by which its client comes back to this server, if it is to have one.
    pub fn cookie(&self, request: &OutgoingRequest, is_secure: bool) -> Option<String> {
        self.lease.backend.cookie_for(self.server(), request.asked_server, is_secure)
    }

    /// The server that it is asked of.
    pub fn server(&self) -> &Arc<Server> {
        self.lease.slot.server()
    }

    /// Waits for the end of a request whose response is over, while the program that answers it goes on; it has its slot for as long.
    /// Keeps the connection then, if `may_keep`. A program that has more to say is left.
    pub(super) fn see_end(mut self, may_keep: bool) {
        if self.origin.has_ended() {
            return;
        }
        spawn_local(async move {
            let limit = self.timeout;
            let mut left_bytes = UNWANTED_BYTES_MAX;
            let rest = poll_fn(|context| {
                loop {
                    self.received.clear();
                    match ready!(self.poll_receive(context)) {
                        Ok(1..) if left_bytes == 0 => return Poll::Ready(false),
                        Ok(bytes @ 1..) => left_bytes = left_bytes.saturating_sub(bytes),
                        ended => return Poll::Ready(ended.is_ok()),
                    }
                }
            });
            let has_ended = timeout(limit, rest).await.unwrap_or(false);
            let is_quiet = left_bytes == UNWANTED_BYTES_MAX && self.origin.is_over();
            if has_ended && is_quiet && may_keep && !self.is_cut {
                self.lease.keep(self.link);
            }
        });
    }

    /// Leaves the request to the next of its `attempts`, to be sent again: to the same server, or to another one if this one has
    /// refused it.
    pub fn leave_to(self, attempts: &mut Attempts, error: &UpstreamError) {
        match error {
            UpstreamError::Overloaded => attempts.pass_over(self.lease.slot),
            _ => attempts.keep(self.lease.slot),
        }
    }

    /// Notes what came back, and when.
    pub fn note(&self, head: &ResponseHead<Bytes>, trace: &mut Trace) {
        trace.status = Some(head.status());
        trace.first_byte = self.answered.map(|at| at.duration_since(self.started));
        self.lease.backend.upstream_answered(head.status());
    }

    /// Notes that an answer holds which came before another server was to be asked.
    pub fn note_again(&self, head: &ResponseHead<Bytes>, trace: &mut Trace) {
        trace.server = Some(Arc::clone(self.server()));
        (trace.status, trace.failure) = (Some(head.status()), None);
    }

    /// The connection after a change of protocol, what came behind the response, what counts it on its server, and the backend
    /// that it is of: a request that waited has that of the configuration in force.
    pub fn into_tunnel(self) -> (Link, Vec<u8>, Slot, Arc<Backend>) {
        let Lease { slot, backend, .. } = self.lease;
        (self.link, self.received.to_vec(), slot, backend)
    }
}

async fn open(upstream: &Upstream, socket: Socket, server: &Server) -> Result<Link, Failure> {
    // Most connections to programs are for one request.
    if upstream.keeps_connections() || !upstream.backend.settings.protocol.runs_programs() {
        socket.keep_alive()?;
    }
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

/// Bytes that a program may send behind the end of its response before it is left.
const UNWANTED_BYTES_MAX: usize = 64 * 1_024;

/// Interim responses before a final one.
const INTERIM_MAX: usize = 32;

/// The bytes of one read: two full records.
const RECEIVE_BYTES: usize = 32 * 1_024;

#[cfg(test)]
mod tests;
