//! The life of a request: read its head, respond, deliver, log, and read past its body.

use std::rc::Rc;

use kettle_exchange::request::{BodyError, ConcurrentUpload, ConnectionSource, Head, Request};
use kettle_exchange::response::{Answer, Body, Edge, Response, write_head};
use kettle_handlers::respond::{self, respond};
use kettle_http::h1::framing::{BodyFraming, BodyReader, body_framing};
use kettle_http::h1::parse::{HeadProgress, ParseRequest};
use kettle_http::{HttpVersion, Method};
use kettle_kernel::{bug, socket};
use kettle_runtime::deadlines::{Interrupt, Stage};
use kettle_tls::stream::{Filled, Stream};

use super::log::RequestStart;
use super::{Connection, End};
use crate::deliver::{Delivery, DeliveryError, Outset, Sending};

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

/// The part of a request that was received.
enum ReceivedHead {
    /// Less than its head.
    Part,
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

    fn body_failed(&self, error: BodyError) -> End {
        match error {
            BodyError::TooLong | BodyError::Malformed(_) => End::Announced,
            BodyError::Ended | BodyError::TimedOut => End::Quiet,
            BodyError::Stream(error) => self.stream_failed(error),
        }
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
