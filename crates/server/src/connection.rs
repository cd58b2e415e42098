//! The life of a connection: handshake, requests one after the other, a reload in between, a truthful end.
//!
//! A connection lives and dies on one worker. Its states, where each leads, and what a server that stops does in it:
//!
//! | state | in | until | then | a stop |
//! |---|---|---|---|---|
//! | PROXY header | `read_proxy_header` | its end, `PROXY_HEADER_TIMEOUT` | handshake | gives it a moment |
//! | handshake | `handshake` | keys, an alert, `tls.handshake_timeout` | read head, or `http2`; for plain text `not_tls` | as above |
//! | read head | `receive` and `take_head` in `http1` | the empty line, 408 after `limits.request_timeout` | respond; what is no request: `refuse` in `http1`, lingering close | gives it a moment |
//! | respond | `respond` in `kettle_handlers::respond` | there is a response | deliver | waits |
//! | deliver | `deliver` in `http1` | the kernel has it, nothing taken for `limits.write_timeout` | discard body; after 101 `upgraded` | waits |
//! | discard body | `RequestBody::discard` | its end, `limits.body_discard_bytes`, `limits.request_timeout` | idle, or with the next request here already respond; lingering close where the response announced it | ends it |
//! | idle | `receive` in `http1` | the first byte of a request, `limits.idle_timeout` | read head, or lingering close | ends it |
//! | lingering close | `finish` | the peer closes its side, or has taken long enough | | waits for the response only |
//!
//! A state that fails leads to `finish` with an [`End`], which says whether the peer hears a close_notify. HTTP/2 has a table of its
//! own in `http2`; listeners that are not HTTPS go to `plain` or `tunnel` in place of all this.

mod http1;
mod http2;
mod log;
mod plain;
mod proxy_header;
mod starttls;
mod tunnel;

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use kettle_config::{HttpsListener, Listener, ListenerKind, TxPathChoice};
use kettle_exchange::request::{Client, Head};
use kettle_exchange::response::{Response, Upgraded};
use kettle_http::HeadLimits;
use kettle_http::h2::PREFACE;
use kettle_preamble::proxy;
use kettle_runtime::client_address::ClientAddress;
use kettle_runtime::deadlines::{Deadline, Interrupt, Stage};
use kettle_runtime::tx_path::Reason;
use kettle_tls::stream::{Accepting, Filled, Handshaking, Stream, StreamError};
use kettle_tls::{Acceptors, Session};
use tokio::net::TcpStream;

use crate::deliver::PathPreference;
use crate::relay::poll_end_arrived;
use crate::setup::{Answering, Snapshot};
use crate::worker_state::{OpenConnection, WorkerState, next_connection_number};
use http1::Http1State;
use plain::poll_read;

/// One accepted connection.
pub(crate) struct Connection {
    worker: Rc<WorkerState>,
    open: OpenConnection,
    deadline: Rc<Deadline>,
    snapshot: Arc<Snapshot>,
    /// Index into the snapshot's listeners.
    listener: usize,
    /// The client, by its PROXY header where it came with one.
    remote: ClientAddress,
    /// The address to which the client connected, where that header says so.
    destination: Option<SocketAddr>,
    /// In which version that header was.
    proxy_header: Option<proxy::Version>,
    accepted: Instant,
    /// Unique while this process lives.
    number: u64,
}

/// Why a connection ends.
#[derive(Debug)]
enum End {
    /// The last response announced it.
    Announced,
    /// The peer closed its side, or the time for a next request is over, or the server stops.
    Quiet,
    /// The peer broke the protocol; the alert that says so is queued.
    Violation,
    /// A response could not be completed: the peer must not take what it has for the whole.
    CutShort,
    /// The socket is of no more use.
    Broken,
    /// It goes on as a tunnel.
    Upgraded(Box<Upgraded>),
}

/// Why a handshake led to no session.
enum NoSession {
    Failed(StreamError),
    Interrupted(Interrupt),
    /// The client does not speak TLS, and was answered.
    PlainHttp,
    /// The client is an authority, and has seen what it came for.
    Challenged,
}

impl From<StreamError> for NoSession {
    fn from(error: StreamError) -> Self {
        Self::Failed(error)
    }
}

impl From<Interrupt> for NoSession {
    fn from(interrupt: Interrupt) -> Self {
        Self::Interrupted(interrupt)
    }
}

impl Connection {
    pub(crate) fn new(
        worker: Rc<WorkerState>,
        snapshot: Arc<Snapshot>,
        listener: usize,
        remote: ClientAddress,
    ) -> Self {
        let deadline = worker.deadlines.register();
        let number = next_connection_number();
        let open = OpenConnection::new(Rc::clone(&worker));
        Self {
            worker,
            open,
            deadline,
            snapshot,
            listener,
            remote,
            destination: None,
            proxy_header: None,
            accepted: Instant::now(),
            number,
        }
    }

    /// Serves the connection to its end. Boxed: each future that it goes through has room for it twice.
    pub(crate) async fn serve(mut self: Box<Self>, mut socket: TcpStream) {
        let mut received = Vec::new();
        let peer = self.remote;
        if self.listener().is_some_and(|listener| !listener.accept_proxy.is_empty()) {
            match Box::pin(self.read_proxy_header(&mut socket)).await {
                Some(behind) => received = behind,
                None => return,
            }
        }
        match self.listener().map(|listener| &listener.kind) {
            Some(ListenerKind::Https(_)) => {
                // Boxed: handshakes are large and over soon, and idle connections are many.
                let Some(acceptors) = self.snapshot.served.acceptors(self.listener) else { return };
                let stage = self.stage(&received);
                let handshake = self.handshake(socket, received, acceptors, stage);
                let Some(stream) = Box::pin(handshake).await else { return };
                let alpn = stream.session().and_then(|session| session.alpn.as_ref());
                match alpn.is_some_and(|it| it.as_bytes() == b"h2") {
                    true => Box::pin(self.http2(stream, peer)).await,
                    false => self.http1(stream, peer, Http1State::default()).await,
                }
            }
            Some(ListenerKind::Http(http)) => {
                let mut stream = Box::new(Stream::plain(socket, received));
                let looks = http.http2;
                match looks && Box::pin(self.begins_http2(&mut stream)).await {
                    true => Box::pin(self.http2(stream, peer)).await,
                    // The time for the first head has begun with the look.
                    false => self.http1(stream, peer, Http1State::first(looks)).await,
                }
            }
            Some(ListenerKind::Redirect(_)) => Box::pin(self.plain(socket, received)).await,
            Some(ListenerKind::Tls(_) | ListenerKind::Tcp(_) | ListenerKind::Passthrough(_)) => {
                Box::pin(self.tunnel(socket, received, peer)).await;
            }
            None => {}
        }
    }

    fn listener(&self) -> Option<&Listener> {
        self.snapshot.served.config.listeners.get(self.listener)
    }

    /// Returns the rest of the time from connecting to the end of the handshake, with all that comes before it.
    fn handshake_time_left(&self) -> Duration {
        self.snapshot.served.config.tls.handshake_timeout.saturating_sub(self.accepted.elapsed())
    }

    /// The stage of a client of which `received` is all that came since it connected, or since the end of its PROXY header.
    fn stage(&self, received: &[u8]) -> Stage {
        match received.is_empty() && self.proxy_header.is_none() {
            // Its bytes may be on their way, and would be answered by a reset.
            true => Stage::Due,
            false => Stage::Begun,
        }
    }

    /// The handshake, counted. `received` was read from the socket already and comes first; as long as it is empty, the client
    /// is at `stage`.
    async fn handshake(
        &self,
        socket: TcpStream,
        received: Vec<u8>,
        acceptors: &Acceptors,
        stage: Stage,
    ) -> Option<Box<Stream>> {
        self.deadline.extend(self.handshake_time_left());
        let metrics = &self.worker.metrics;
        match self.negotiate(socket, received, acceptors, stage).await {
            Ok(stream) => {
                if let Some(session) = stream.session() {
                    metrics.handshake_finished(session, self.accepted.elapsed());
                    if session.peer.is_none() && session.is_certificate_asked {
                        metrics.client_certificate("none");
                    }
                }
                return Some(stream);
            }
            Err(NoSession::Failed(error)) => {
                tracing::debug!(remote = %self.remote, %error, "handshake failed");
                metrics.handshake_failed(error.reason());
                if error.is_about_certificate() {
                    metrics.client_certificate(error.reason());
                }
            }
            Err(NoSession::Interrupted(interrupt)) => metrics.handshake_failed(interrupt.as_str()),
            Err(NoSession::PlainHttp | NoSession::Challenged) => {}
        }
        None
    }

    async fn negotiate(
        &self,
        mut socket: TcpStream,
        mut received: Vec<u8>,
        acceptors: &Acceptors,
        stage: Stage,
    ) -> Result<Box<Stream>, NoSession> {
        // A client that only connects costs a socket, and no handshake's memory. It is read from, since a socket that was just
        // accepted counts as readable.
        if received.is_empty() {
            let read = |context: &mut Context<'_>| poll_read(&mut socket, &mut received, context);
            if self.deadline.wait(stage, read).await?.map_err(StreamError::from)? == 0 {
                return Err(StreamError::from(io::Error::from(ErrorKind::UnexpectedEof)).into());
            }
        }
        let mut accepting = Accepting::begin(socket, &received, acceptors)?;
        drop(received);
        loop {
            let progress = |context: &mut Context<'_>| accepting.poll_progress(context);
            self.deadline.wait(Stage::Begun, progress).await??;
            let mut turn = pin!(self.worker.handshake_turns.take());
            let take = |context: &mut Context<'_>| turn.as_mut().poll(context);
            self.deadline.wait(Stage::Begun, take).await?;
            match accepting.advance() {
                Handshaking::Continues(next) => accepting = next,
                Handshaking::Complete(stream) => return Ok(stream),
                Handshaking::PlainHttp(socket, received) => {
                    Box::pin(self.not_tls(socket, received.bytes().to_vec())).await;
                    return Err(NoSession::PlainHttp);
                }
                Handshaking::Challenged(mut closing) => {
                    let close = |context: &mut Context<'_>| closing.poll_close(context);
                    let _ = self.deadline.idle_within(LINGER, close).await;
                    return Err(NoSession::Challenged);
                }
                Handshaking::Failed(error, mut closing) => {
                    // Whatever becomes of the alert, the handshake has failed.
                    let close = |context: &mut Context<'_>| closing.poll_close(context);
                    let _ = self.deadline.idle_within(LINGER, close).await;
                    return Err(error.into());
                }
            }
        }
    }

    /// Answers a client that does not speak TLS: with an HTTP response on an HTTPS listener, with an alert on others.
    async fn not_tls(&self, socket: TcpStream, received: Vec<u8>) {
        if self.listener().is_some_and(|listener| listener.https().is_some()) {
            self.worker.metrics.handshake_failed("plain_http");
            return self.plain(socket, received).await;
        }
        self.worker.metrics.handshake_failed("not_tls");
        self.say_last(socket, &tunnel::UNEXPECTED_MESSAGE, LINGER).await;
    }

    /// True if a plain client begins with the preface of HTTP/2 (RFC 9113 §3.4). Its bytes stay to be read.
    async fn begins_http2(&self, stream: &mut Stream) -> bool {
        self.deadline.extend(self.snapshot.served.config.limits.request_timeout);
        loop {
            let received = stream.received().bytes();
            match PREFACE.strip_prefix(received) {
                _ if received.starts_with(PREFACE) => return true,
                None => return false,
                Some(_) => {}
            }
            let stage = if received.is_empty() { Stage::Due } else { Stage::Begun };
            let filled = self.deadline.wait(stage, |context| stream.poll_fill(context)).await;
            if !matches!(filled, Ok(Ok(Filled::Data))) {
                return false;
            }
        }
    }

    /// Follows a reload. Where that changed nothing the connection was made with, the new
    /// configuration is the connection's from here on; otherwise it keeps its own to its end.
    ///
    /// Returns the configuration that answers the next request. It is `None` if the newest one does not accept the session:
    /// the client was asked for no certificate, or its certificate is no longer accepted, so it has to connect again.
    fn adopt_for_request(&mut self, session: Option<&Session>) -> Option<Answering> {
        let next = self.worker.snapshot();
        if Arc::ptr_eq(&next, &self.snapshot) {
            return Some(Answering { snapshot: next, listener: Some(self.listener) });
        }
        let old = &*self.snapshot.served.config;
        let new = &*next.served.config;
        let now = self.listener()?;
        let same = new.listeners.iter().position(|listener| listener == now);
        // The listener says what it reaches, also where that has other settings now.
        let is_successor = |it: &Listener| {
            it.address.value == now.address.value && it.kind.as_str() == now.kind.as_str()
        };
        let listener = same.or_else(|| new.listeners.iter().position(is_successor));
        let names_none = now.https().is_some_and(HttpsListener::is_common);
        let is_taken = match (session, listener) {
            (None, listener) => listener.is_some() && now.http().is_some(),
            (Some(session), Some(listener)) => {
                next.served.acceptors(listener).is_some_and(|it| it.takes(session))
            }
            (Some(session), None) => names_none && next.served.tls.takes(session),
        };
        if !is_taken {
            return None;
        }
        let stays = old.limits == new.limits && old.tls == new.tls;
        if let Some(same) = same.filter(|_| stays) {
            (self.snapshot, self.listener) = (Arc::clone(&next), same);
        }
        Some(Answering { snapshot: next, listener })
    }

    /// The configuration that the connection has, with what it reaches.
    fn own(&self) -> Answering {
        Answering { snapshot: Arc::clone(&self.snapshot), listener: Some(self.listener) }
    }

    /// Follows a reload, if there was one. Returns whether the connection has the newest configuration now; where the reload
    /// gave its listener other settings, it has not, and ends after the response under way.
    fn follow_reload(&mut self, session: Option<&Session>) -> bool {
        if !self.worker.is_current(&self.snapshot) {
            let _ = self.adopt_for_request(session);
        }
        self.worker.is_current(&self.snapshot)
    }

    /// The client of a request with this head, and which of the connection's it is.
    fn client(&self, head: Option<&Head>, number: u64) -> Client {
        let client = match head {
            Some(head) => Client::of(head, self.remote, self.listener()),
            None => Client::connected(self.remote, self.listener()),
        };
        client.named(head, self.number, number)
    }

    fn head_limits(&self) -> HeadLimits {
        let limits = &self.snapshot.served.config.limits;
        HeadLimits {
            head_bytes_max: limits.head_bytes,
            headers_max: limits.headers,
            target_bytes_max: limits.target_bytes,
        }
    }

    fn preference(&self, response: &Response) -> PathPreference {
        let is_unix = self.listener().is_some_and(|it| it.address.unix().is_some());
        let listener = self.listener().and_then(Listener::https);
        let choice = response.tx_path.or(listener.map(|listener| listener.path));
        PathPreference {
            choice: choice.unwrap_or(TxPathChoice::Auto),
            crossover_bytes: listener.map_or(u64::MAX, |listener| listener.crossover),
            // Nothing is encrypted over a plain one.
            obstacle: (is_unix && listener.is_some()).then_some(Reason::UnixSocket),
        }
    }

    /// Serves HTTP/1.1 to its end.
    async fn http1(
        mut self: Box<Self>,
        mut stream: Box<Stream>,
        peer: ClientAddress,
        first: Http1State,
    ) {
        match self.requests(&mut stream, first).await {
            End::Upgraded(upgraded) => Box::pin(self.upgraded(stream, *upgraded, peer)).await,
            end => Box::pin(self.finish(stream, end)).await,
        }
    }

    /// One request after the other, until there is a reason to end.
    async fn requests(&mut self, stream: &mut Stream, mut state: Http1State) -> End {
        loop {
            if let Err(end) = self.exchange(stream, &mut state).await {
                return end;
            }
        }
    }

    /// Ends the connection as its reason demands.
    async fn finish(&self, mut stream: Box<Stream>, end: End) {
        self.close_truthfully(&mut stream, end).await;
        // The last words may have come under new keys.
        self.worker.offloads.keys_changed(stream.session(), stream.key_changes());
    }

    async fn close_truthfully(&self, stream: &mut Stream, end: End) {
        let is_stopping = || self.worker.deadlines.is_draining();
        // Asked before our goodbye: one that a vanished peer never acknowledges holds up no stop.
        let connections_max = self.snapshot.served.config.limits.connections_per_worker;
        let makes_room = self.worker.is_full(connections_max);
        let had_all = (is_stopping() || makes_room) && stream.is_acknowledged();
        let mut limit = LINGER;
        match end {
            End::Announced | End::Quiet => {
                stream.queue_close_notify();
                // The last response may still be under way.
                limit = self.snapshot.served.config.limits.write_timeout;
            }
            End::Violation => {}
            End::CutShort | End::Broken | End::Upgraded(_) => {
                stream.cut();
                return;
            }
        }
        let flush = |context: &mut Context<'_>| stream.poll_flush_before(context, true);
        let flushed = self.deadline.within(limit, flush).await;
        if !matches!(flushed, Ok(Ok(()))) {
            return;
        }
        let closed = self.deadline.within(limit, |context| stream.poll_close(context)).await;
        if !matches!(closed, Ok(Ok(()))) {
            return;
        }
        // Closing with bytes unread would reset the connection and could take the last response,
        // or the alert, from the peer before it has read it (RFC 9112 §9.6). A server that stops
        // stays for the response only, until the peer's kernel has it; one that is full, only where there was one.
        let has_begun = Instant::now();
        let mut is_over = false;
        while !is_over && has_begun.elapsed() < LINGER_IN_ALL {
            let drain = |context: &mut Context<'_>| {
                let drained = stream.poll_drain(context);
                match drained {
                    Poll::Ready(Ok(true) | Err(_)) => drained,
                    _ if is_stopping() && (had_all || stream.is_acknowledged()) => {
                        Poll::Ready(Ok(true))
                    }
                    Poll::Pending if makes_room && had_all => Poll::Ready(Ok(true)),
                    Poll::Pending if is_stopping() => {
                        if poll_end_arrived(stream.tcp(), context).is_ready() {
                            context.waker().wake_by_ref();
                        }
                        Poll::Pending
                    }
                    _ => drained,
                }
            };
            is_over = !matches!(self.deadline.within(LINGER, drain).await, Ok(Ok(false)));
        }
    }

    fn stream_failed(&self, error: StreamError) -> End {
        tracing::debug!(remote = %self.remote, %error, "connection failed");
        match error {
            StreamError::Violation(_) => End::Violation,
            _ => End::Broken,
        }
    }
}

/// The time a peer may take to receive our last words and to close its side.
const LINGER: Duration = Duration::from_secs(5);

/// The time a peer may go on sending what nobody reads. One that falls silent is let go after [`LINGER`].
const LINGER_IN_ALL: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
