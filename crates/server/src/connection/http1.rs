//! The life of a request: read its head, respond, deliver, log, and read past its body.

use std::io::ErrorKind;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use kettle_config::{HttpsListener, Listener, TxPathChoice};
use kettle_exchange::request::{
    BodyError, Client, ConcurrentUpload, ConnectionSource, Head, Request,
};
use kettle_exchange::response::{Answer, Body, Edge, Logged, Nothing, Response, write_head};
use kettle_handlers::respond::{self, respond};
use kettle_http::h1::framing::{BodyFraming, BodyReader, body_framing};
use kettle_http::h1::parse::{HeadProgress, ParseRequest};
use kettle_http::{HeadLimits, HttpVersion, Method};
use kettle_kernel::{bug, socket};
use kettle_runtime::access_log::ResponseEntry;
use kettle_runtime::deadlines::{Interrupt, Stage};
use kettle_runtime::open_file::OpenFile;
use kettle_runtime::tx_path::{Reason, TxPath};
use kettle_tls::Session;
use kettle_tls::stream::{Filled, Stream};
use kettle_upstream::Trace;

use super::{Connection, End};
use crate::deliver::{Delivered, Delivery, DeliveryError, Outset, PathPreference, Sending};
use crate::setup::Answering;

/// Where a connection is in its sequence of requests.
#[derive(Default)]
pub(super) struct Http1State {
    /// Requests answered so far.
    answered: u64,
    /// True if the time for the current request's head is running.
    is_started: bool,
    progress: HeadProgress,
}

impl Http1State {
    /// In front of the first request, whose time is running already if it `is_started`.
    pub(super) fn first(is_started: bool) -> Self {
        Self { is_started, ..Self::default() }
    }
}

/// When a request's head was complete, which of its connection it is, and whose.
pub(super) struct RequestStart {
    time: SystemTime,
    instant: Instant,
    number: u64,
    pub(super) client: Client,
}

impl RequestStart {
    pub(super) fn now(number: u64, client: Client) -> Self {
        Self { time: SystemTime::now(), instant: Instant::now(), number, client }
    }
}

/// The part of a request that was received.
enum ReceivedHead {
    /// Less than its head.
    Part,
    /// Its head, and how its body is framed.
    Head(Box<Head>, BodyFraming),
    /// A request that cannot be answered but with an error: the head as far as it is one, and the status.
    Refused(Option<Box<Head>>, u16),
}

impl Connection {
    /// Serves the next request.
    pub(super) async fn exchange(
        &mut self,
        stream: &mut Stream,
        state: &mut Http1State,
    ) -> Result<(), End> {
        let (head, framing) = loop {
            match self.take_head(stream, state) {
                ReceivedHead::Part => self.receive(stream, state).await?,
                ReceivedHead::Head(head, framing) => break (head, framing),
                // Where the next request would begin is unknown: answer, then close.
                ReceivedHead::Refused(head, status) => {
                    let refused = self.refuse(stream, head.as_deref(), status, state.answered + 1);
                    return Err(Box::pin(refused).await);
                }
            }
        };
        state.is_started = false;
        state.answered += 1;
        // The newest configuration answers. If a reload changed what the connection was made with, such as its limits, the
        // connection keeps its own.
        let Some(answering) = self.adopt_for_request(stream.session()) else {
            let refused = self.refuse(stream, Some(&head), 421, state.answered);
            return Err(Box::pin(refused).await);
        };
        let start = RequestStart::now(state.answered, self.client(Some(&head), state.answered));
        let deadline = Rc::clone(&self.deadline);
        let limits = &self.snapshot.served.config.limits;
        let source = ConnectionSource {
            stream: &mut *stream,
            deadline: &deadline,
            timeout: limits.request_timeout,
            discard_bytes_max: limits.body_discard_bytes,
        };
        let mut request = Request::new(head, framing, source, &start.client);
        let responder = &self.worker.responder;
        // In a block: what is moved out of would keep its room in the connection's task.
        let (mut response, upgraded) = {
            let answer = respond(responder, answering.router(), &mut request).await;
            #[cfg(test)]
            let answer = self.worker.noted(answer);
            match answer {
                Answer::Response(response) => (response, None),
                Answer::Tunnel(response, upgraded) => (response, Some(upgraded)),
                // Its next requests need no answer either.
                Answer::Nothing(nothing) => {
                    let Request { head, body, .. } = request;
                    drop(body);
                    self.log_unsent(stream.session(), &head, &nothing, &start);
                    return Err(End::Quiet);
                }
            }
        };
        let closes = upgraded.is_none() && self.closes_after(&mut request, state, &response.body);
        let Some((client, upload)) = request.body.stream_and_upload() else {
            let _ = bug!("a request over HTTP/1.1 has its connection");
            return Err(End::Broken);
        };
        let head = Some(&*request.head);
        self.deliver(client, upload, head, &mut response, closes, &start).await?;
        if let Some(mut upgraded) = upgraded {
            upgraded.path = self.preference(&response).choice;
            return Err(End::Upgraded(upgraded));
        }
        // Their memory is given back before the rest of the request's body is waited for.
        drop((request.head, response));
        if framing != BodyFraming::None {
            request.body.discard().await.map_err(|error| self.body_failed(error))?;
        }
        if closes || stream.must_close() { Err(End::Announced) } else { Ok(()) }
    }

    /// Follows a reload. Where that changed nothing the connection was made with, the new
    /// configuration is the connection's from here on; otherwise it keeps its own to its end.
    ///
    /// Returns the configuration that answers the next request. It is `None` if the newest one does not accept the session:
    /// the client was asked for no certificate, or its certificate is no longer accepted, so it has to connect again.
    pub(super) fn adopt_for_request(&mut self, session: Option<&Session>) -> Option<Answering> {
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
    pub(super) fn own(&self) -> Answering {
        Answering { snapshot: Arc::clone(&self.snapshot), listener: Some(self.listener) }
    }

    /// Follows a reload, if there was one. Returns whether the connection has the newest configuration now; where the reload
    /// gave its listener other settings, it has not, and ends after the response under way.
    pub(super) fn follow_reload(&mut self, session: Option<&Session>) -> bool {
        if !self.worker.is_current(&self.snapshot) {
            let _ = self.adopt_for_request(session);
        }
        self.worker.is_current(&self.snapshot)
    }

    /// Answers what never became a request with an error, and logs it. The connection's own configuration does.
    pub(super) async fn refuse(
        &self,
        stream: &mut Stream,
        head: Option<&Head>,
        status: u16,
        number: u64,
    ) -> End {
        let start = RequestStart::now(number, self.client(head, number));
        let files = &self.worker.responder.files;
        let router = self.snapshot.served.router(self.listener);
        let presented = stream.session().into();
        let id = &start.client.request_id;
        let mut response = respond::refuse(files, router, head, presented, status, id).await;
        match self.deliver(stream, None, head, &mut response, true, &start).await {
            Ok(()) => End::Announced,
            Err(end) => end,
        }
    }

    /// Waits for more of the next request: long for its first byte, shortly for its end. Before
    /// the first request a connection is not idle: a server that stops gives it a moment to come.
    async fn receive(&self, stream: &mut Stream, state: &mut Http1State) -> Result<(), End> {
        let limits = &self.snapshot.served.config.limits;
        let has_begun_one = has_begun(stream.received().bytes());
        let filled = if !has_begun_one && state.answered > 0 {
            self.deadline
                .idle_within(limits.idle_timeout, |context| stream.poll_fill(context))
                .await
        } else {
            if !std::mem::replace(&mut state.is_started, true) {
                self.deadline.extend(limits.request_timeout);
            }
            let stage = if has_begun_one { Stage::Begun } else { Stage::Due };
            self.deadline.wait(stage, |context| stream.poll_fill(context)).await
        };
        match filled {
            Ok(Ok(Filled::Data)) => Ok(()),
            Ok(Ok(Filled::Closed | Filled::Truncated)) => Err(End::Quiet),
            Ok(Err(error)) => Err(self.stream_failed(error)),
            // A client whose request took too long is told (RFC 9110 §15.5.9).
            Err(Interrupt::Expired) if has_begun(stream.received().bytes()) => {
                Err(Box::pin(self.refuse(stream, None, 408, state.answered + 1)).await)
            }
            Err(Interrupt::Draining | Interrupt::Expired) => Err(End::Quiet),
        }
    }

    /// Takes the head of a request out of what was received.
    fn take_head(&self, stream: &mut Stream, state: &mut Http1State) -> ReceivedHead {
        let received = stream.received().bytes();
        if received.is_empty() {
            return ReceivedHead::Part;
        }
        let (head, bytes) = match state.progress.parse(received, &self.head_limits()) {
            Ok(ParseRequest::Partial) => return ReceivedHead::Part,
            Ok(ParseRequest::Complete { head, bytes }) => (head, bytes),
            Err(error) => return ReceivedHead::Refused(None, error.status()),
        };
        let framing = body_framing(&head).and_then(|framing| {
            if framing == BodyFraming::Chunked {
                // The bytes that came with the head can still be refused with a status.
                BodyReader::new(framing).consume(received.get(bytes..).unwrap_or_default())?;
            }
            Ok(framing)
        });
        // Lets go of what was received, which then becomes the head's.
        let head = head.moved_to(());
        let head = Box::new(head.moved_to(stream.take_front(bytes)));
        match framing {
            Ok(framing) => ReceivedHead::Head(head, framing),
            Err(error) => ReceivedHead::Refused(Some(head), error.status()),
        }
    }

    /// True if the connection ends with the response to this request.
    fn closes_after(&mut self, request: &mut Request<'_>, state: &Http1State, body: &Body) -> bool {
        let Some(stream) = request.body.stream() else { return true };
        if stream.must_close() || !self.follow_reload(stream.session()) {
            return true;
        }
        let limits = &self.snapshot.served.config.limits;
        !request.head.persists()
            // A body of unknown length ends where the connection does.
            || (request.head.version() == HttpVersion::Http10 && body.length().is_none())
            || state.answered >= limits.requests_per_connection
            // Where the target has no meaning, what follows may not be what it seems either.
            || !request.head.has_target()
            || request.body.is_last()
            || self.worker.deadlines.is_draining()
    }

    /// The client of a request with this head, and which of the connection's it is.
    pub(super) fn client(&self, head: Option<&Head>, number: u64) -> Client {
        let client = match head {
            Some(head) => Client::of(head, self.remote, self.listener()),
            None => Client::connected(self.remote, self.listener()),
        };
        client.named(head, self.number, number)
    }

    pub(super) fn head_limits(&self) -> HeadLimits {
        let limits = &self.snapshot.served.config.limits;
        HeadLimits {
            head_bytes_max: limits.head_bytes,
            headers_max: limits.headers,
            target_bytes_max: limits.target_bytes,
        }
    }

    pub(super) fn preference(&self, response: &Response) -> PathPreference {
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

    /// Sends a response and logs it, whatever became of it.
    async fn deliver(
        &self,
        stream: &mut Stream,
        upload: Option<ConcurrentUpload<'_>>,
        request: Option<&Head>,
        response: &mut Response,
        closes: bool,
        start: &RequestStart,
    ) -> Result<(), End> {
        let edge = Edge {
            date_line: self.worker.date_line(),
            version: request.map(|head| head.version()),
            is_head: match request {
                Some(head) => head.method() == Method::Head,
                None => is_head(stream.received().bytes()),
            },
            is_tls: !stream.is_plain(),
            closes,
            begins_tunnel: response.status == 101,
        };
        let mut head = self.worker.heads.take();
        write_head(&mut head, response, &edge);
        let worker = &*self.worker;
        let deadline = &*self.deadline;
        let write_timeout = self.snapshot.served.config.limits.write_timeout;
        let is_chunked = edge.is_chunked(&response.body);
        let ends_with_connection = !is_chunked && response.body.length().is_none();
        let preference = self.preference(response);
        let rate = response.rate.as_deref().copied();
        let outset = Outset { head, is_chunked, is_last: closes, preference };
        let sending = Sending::new(worker, deadline, write_timeout, rate, upload);
        let mut delivery = Delivery::new(sending, stream, outset);
        let outcome = delivery.send(&mut response.body).await;
        let delivered = delivery.delivered();
        if let Err(DeliveryError::BodyCutShort(error)) = &outcome {
            response.note_cut(error);
        }
        let begun_bytes = delivery.begun_bytes();
        let head = delivery.into_buffer();
        let bytes_sent = begun_bytes + delivered.body_bytes;
        let session = stream.session();
        self.log(session, request, response.logged(), bytes_sent, &delivered, start);
        self.worker.heads.give(head);
        outcome.map_err(|error| {
            self.log_delivery_failure(&error, response);
            if ends_with_connection && stream.is_plain() {
                // FIN would be the end of the body, and nothing else tells that it was cut.
                let _ = socket::reset_on_close(stream.socket());
            }
            match stream.has_fatal_alert() {
                // A client that broke TLS meanwhile is told. As little as a cut, the alert says that this was all.
                true => End::Violation,
                // Of a response that never began nothing can be taken for the whole.
                false if stream.is_key_refused() && begun_bytes == 0 => End::Quiet,
                false => End::CutShort,
            }
        })
    }

    pub(super) fn log_delivery_failure(&self, error: &DeliveryError, response: &Response) {
        match error {
            DeliveryError::BodyCutShort(error) if error.kind() == ErrorKind::StorageFull => {
                tracing::debug!(remote = %self.remote, "a store took no more of a response");
            }
            DeliveryError::BodyCutShort(error) if response.body.is_arriving() => {
                let trace = response.notes.as_ref().and_then(|notes| notes.upstream.as_ref());
                let entry = trace.map(Trace::entry);
                let backend = entry.as_ref().and_then(|entry| entry.backend);
                let server = entry.as_ref().and_then(|entry| entry.server);
                tracing::debug!(
                    remote = %self.remote, backend, server, %error, "a server did not end its response"
                );
            }
            DeliveryError::BodyCutShort(error) => {
                let file = response.body.file().and_then(OpenFile::path).unwrap_or_default();
                tracing::warn!(
                    remote = %self.remote, ?file, %error, "a body ended before its announced length"
                );
            }
            DeliveryError::Stalled => {
                tracing::debug!(remote = %self.remote, "the peer took nothing for too long");
            }
            DeliveryError::Stream(error) => {
                tracing::debug!(remote = %self.remote, %error, "a response was not delivered");
            }
        }
    }

    fn body_failed(&self, error: BodyError) -> End {
        match error {
            BodyError::TooLong | BodyError::Malformed(_) => End::Announced,
            BodyError::Ended | BodyError::TimedOut => End::Quiet,
            BodyError::Stream(error) => self.stream_failed(error),
        }
    }

    /// Logs a request whose client did not wait for its response.
    pub(super) fn log_unsent(
        &self,
        session: Option<&Session>,
        head: &Head,
        nothing: &Nothing,
        start: &RequestStart,
    ) {
        self.log(session, Some(head), nothing.logged(), 0, &Delivered::NOTHING, start);
    }

    /// Counts an answer, and writes its line; over plain HTTP there is no session.
    pub(super) fn log(
        &self,
        session: Option<&Session>,
        head: Option<&Head>,
        Logged { status, notes, destination }: Logged<'_>,
        bytes_sent: u64,
        delivered: &Delivered,
        start: &RequestStart,
    ) {
        let metrics = &self.worker.metrics;
        let duration = start.instant.elapsed();
        metrics.response(delivered.path, status, bytes_sent, duration);
        // A plain response has no preferred path.
        if let Some(reason) = delivered.reason.filter(|_| delivered.path != TxPath::Plain) {
            metrics.not_preferred(reason);
        }
        if !delivered.completed {
            metrics.response_truncated();
        }
        if let Some(reason) = notes.and_then(|notes| notes.refusal) {
            metrics.request_refused(reason);
        }
        if let Some(time) = notes.and_then(|notes| notes.auth_time) {
            metrics.auth_asked(time);
        }
        if !self.worker.log.is_on(destination) {
            return;
        }
        let entry = ResponseEntry {
            time: start.time,
            remote: start.client.address,
            host: head.and_then(|head| head.host_bytes()),
            method: head.map_or(&[], |head| head.method().as_str().as_bytes()),
            target: head.map_or(&[], |head| head.raw_target().as_bytes()),
            version: head.map_or("", |head| head.version().as_str()),
            status,
            user: notes.and_then(|notes| notes.user.as_deref()),
            refusal: notes.and_then(|notes| notes.refusal),
            cache: notes.and_then(|notes| notes.cache),
            upstream: notes.and_then(|notes| notes.upstream.as_ref()).map(Trace::entry),
            bytes_sent,
            body_bytes: delivered.body_bytes,
            path: delivered.path,
            reason: delivered.reason,
            session,
            referer: head.and_then(|head| head.header("referer")),
            user_agent: head.and_then(|head| head.header("user-agent")),
            duration,
            connection: self.number,
            request_number: start.number,
            request_id: &start.client.request_id,
            completed: delivered.completed,
        };
        self.worker.log.record(destination, &entry);
    }
}

/// True if a request has begun. Ends of lines are none: some clients send one behind a body (RFC 9112 §2.2).
fn has_begun(received: &[u8]) -> bool {
    received.iter().any(|byte| !matches!(byte, b'\r' | b'\n'))
}

/// True if what is no request would have been a HEAD: its answer has no body either.
pub(super) fn is_head(received: &[u8]) -> bool {
    received.trim_ascii_start().starts_with(b"HEAD ")
}
