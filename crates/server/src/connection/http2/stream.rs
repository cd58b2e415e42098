//! The life of a stream: whose task serves it, its request's head, the response as over HTTP/1.1, its body or the tunnel that it
//! becomes (extended CONNECT, RFC 8441), the log.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Context;

use kettle_config::TxPathChoice;
use kettle_exchange::request::{ConcurrentUpload, Head, Request, RequestStream, StreamSource};
use kettle_exchange::response::{Answer, Edge, Nothing, Response, Upgraded, write_head};
use kettle_handlers::respond::{self, respond};
use kettle_handlers::route::Router;
use kettle_http::h1::framing::BodyFraming;
use kettle_http::h2::{ErrorCode, NewRequest, Priority};
use kettle_runtime::deadlines::LazyDeadline;
use kettle_runtime::tx_path::{Reason as PathReason, TxPath};
use tokio::task::JoinSet;

use super::Shared;
use super::body::Outgoing;
use crate::connection::log::RequestStart;
use crate::deliver::{Delivered, DeliveryError, Demand, PathPreference, Sending};
use crate::http2::{HeadError, Http2Stream, Http2Tunnel, StreamProgress, request_head};
use crate::relay::Side;
use crate::setup::Answering;
use crate::worker_state::WorkerState;

impl Shared {
    /// Answers a request; without a configuration that does, with 421.
    pub(super) async fn serve(
        self: Rc<Self>,
        request: NewRequest,
        stream: Http2Stream,
        answering: Option<Answering>,
        number: u64,
    ) {
        let (worker, own, head_limits, mut start) = {
            let connection = self.connection.borrow();
            let own = connection.own();
            let start = RequestStart::now(number, connection.client(None, number));
            (Rc::clone(&connection.worker), own, connection.head_limits(), start)
        };
        let limits = &own.snapshot.served.config.limits;
        let is_head = request.text.is_head;
        let (head, framing) = match request_head(request, &head_limits) {
            Ok(read) => read,
            Err(HeadError::Malformed) => {
                worker.metrics.http2_refused("malformed");
                return stream.reset(ErrorCode::PROTOCOL_ERROR);
            }
            Err(error) => {
                let status = match error {
                    HeadError::Status(status) => status,
                    _ => {
                        worker.metrics.http2_refused("fields_too_large");
                        431
                    }
                };
                let mut response = self.refuse(&worker, &own, None, status, &start).await;
                return self.deliver(&stream, None, None, is_head, &mut response, &start).await;
            }
        };
        start.client = self.connection.borrow().client(Some(&head), number);
        let deadline = LazyDeadline::new(&worker.deadlines);
        let timeout = limits.request_timeout;
        let discard_bytes_max = limits.body_discard_bytes;
        let source = StreamSource::new(
            &stream,
            self.session.as_ref(),
            &deadline,
            timeout,
            discard_bytes_max,
        );
        let mut request = Request::of_stream(head, framing, source, &start.client);
        let mut response = {
            let answer = match &answering {
                None => self.refuse(&worker, &own, Some(&request.head), 421, &start).await.into(),
                Some(answering) => {
                    let asked = (&*worker, answering.router(), &mut request);
                    let answer = respond_unless_taken_back(asked, &stream).await;
                    answer.unwrap_or_else(|| self.taken_back(answering, &request.head))
                }
            };
            match answer {
                Answer::Response(response) => response,
                Answer::Tunnel(response, upgraded) => {
                    let Request { head, body, .. } = request;
                    drop(body);
                    // It may outlive many configurations.
                    drop((own, answering));
                    return Box::pin(self.carry(stream, head, response, *upgraded, start)).await;
                }
                Answer::Nothing(nothing) => {
                    return self.end_unsent(&stream, &request.head, &nothing, &start);
                }
            }
        };
        let upload = request.body.upload();
        let head = Some(&*request.head);
        self.deliver(&stream, upload, head, is_head, &mut response, &start).await;
        // Their memory is given back before the rest of the request's body is waited for.
        drop((request.head, response));
        if framing != BodyFraming::None {
            // The rest of it after that is of no interest (RFC 9113 §8.1).
            let _ = request.body.discard().await;
        }
    }

    /// Sends the head of a response that makes a tunnel of its stream, logs it, and carries the tunnel to its end.
    pub(super) async fn carry(
        &self,
        stream: Http2Stream,
        head: Box<Head>,
        mut response: Response,
        upgraded: Upgraded,
        start: RequestStart,
    ) {
        let worker = Rc::clone(&self.connection.borrow().worker);
        let edge = Edge::of_http2(worker.date_line(), false, self.session.is_some());
        let edge = Edge { begins_tunnel: true, ..edge };
        let mut bytes = worker.heads.take();
        write_head(&mut bytes, &mut response, &edge);
        let completed = stream.send_head(response.status, &bytes, false).is_ok();
        let path = stream.path();
        let delivered = Delivered { path, reason: None, body_bytes: 0, completed };
        let ends = {
            let connection = self.connection.borrow();
            let bytes_sent = bytes.len() as u64;
            let head = Some(&*head);
            connection.log(
                self.session.as_ref(),
                head,
                response.logged(),
                bytes_sent,
                &delivered,
                &start,
            );
            connection.tunnel_ends(upgraded, self.peer)
        };
        worker.heads.give(bytes);
        drop((head, response, start));
        let Some(ends) = ends.filter(|_| completed) else { return self.note_end(false) };
        let progress = stream.progress();
        let client = Side::Stream(Box::new(Http2Tunnel::new(stream, self.session.clone())));
        let deadline = self.take_deadline();
        let number = self.connection.borrow().number;
        ends.carry((client, Vec::new()), (worker, None), Rc::clone(&deadline), number).await;
        self.deadlines.borrow_mut().push(deadline);
        self.note_end(progress.is_taken());
    }

    /// Ends a stream that gets no response, and logs its request.
    fn end_unsent(
        &self,
        stream: &Http2Stream,
        head: &Head,
        nothing: &Nothing,
        start: &RequestStart,
    ) {
        if nothing.has_client() {
            stream.reset(ErrorCode::CANCEL);
        }
        self.note_end(false);
        self.connection.borrow().log_unsent(self.session.as_ref(), head, nothing, start);
    }

    /// The answer to what never became a request of a site's.
    async fn refuse(
        &self,
        worker: &WorkerState,
        own: &Answering,
        head: Option<&Head>,
        status: u16,
        start: &RequestStart,
    ) -> Response {
        let files = &worker.responder.files;
        let presented = self.session.as_ref().into();
        let id = &start.client.request_id;
        Box::pin(respond::refuse(files, own.router(), head, presented, status, id)).await
    }

    /// Sends a response and logs it, whatever became of it.
    async fn deliver(
        &self,
        stream: &Http2Stream,
        upload: Option<ConcurrentUpload<'_>>,
        request: Option<&Head>,
        is_head: bool,
        response: &mut Response,
        start: &RequestStart,
    ) {
        let (worker, preference) = {
            let connection = self.connection.borrow();
            (Rc::clone(&connection.worker), connection.preference(response))
        };
        let edge = Edge::of_http2(worker.date_line(), is_head, self.session.is_some());
        let mut head = worker.heads.take();
        // Written as HTTP/1.1 would; `send_head` turns the lines into fields.
        write_head(&mut head, response, &edge);
        let length = response.body.length();
        let bytes = length.unwrap_or(0);
        let is_file = response.body.file().is_some();
        let demand = Demand { bytes, is_file, is_last: false };
        let mut delivered = Delivered::NOTHING;
        let obstacle = self.ask_for_kernel_path(&worker, preference, demand);
        let is_said = stream.send_head(response.status, &head, length == Some(0)).is_ok();
        let head_bytes = if is_said { head.len() as u64 } else { 0 };
        // Streams wait long for their clients, and a backend's heads are large.
        worker.heads.give(head);
        if is_said {
            let said = request.into_iter().flat_map(|head| head.header_values("priority"));
            let priority = Priority::parse(said);
            let sent = self.send_body(&worker, stream, upload, priority, response);
            delivered.completed = sent.await;
        }
        delivered.body_bytes = stream.sent_bytes();
        (delivered.path, delivered.reason) = self.path_at_end(preference, demand, obstacle);
        self.note_end(delivered.completed);
        // As it was before compression.
        let bytes_sent = head_bytes + delivered.body_bytes;
        let connection = self.connection.borrow();
        let logged = response.logged();
        connection.log(self.session.as_ref(), request, logged, bytes_sent, &delivered, start);
    }

    /// Sends the body of a response, or ends its stream so that its client takes no part of it for the whole; says which.
    async fn send_body(
        &self,
        worker: &WorkerState,
        stream: &Http2Stream,
        upload: Option<ConcurrentUpload<'_>>,
        priority: Priority,
        response: &mut Response,
    ) -> bool {
        let write_timeout = self.connection.borrow().snapshot.served.config.limits.write_timeout;
        let deadline = self.take_deadline();
        let rate = response.rate.as_deref().copied();
        let sending = Sending::new(worker, &deadline, write_timeout, rate, upload);
        let mut outgoing = Outgoing::new(sending, stream, priority);
        let sent = outgoing.send(&mut response.body).await;
        let is_complete = sent.is_ok();
        if let Err(error) = sent {
            if let DeliveryError::BodyCutShort(error) = &error {
                response.note_cut(error);
            }
            self.connection.borrow().log_delivery_failure(&error, response);
            match error {
                DeliveryError::BodyCutShort(_) => outgoing.cut().await,
                DeliveryError::Stream(_) => stream.reset(ErrorCode::INTERNAL_ERROR),
                DeliveryError::Stalled => {
                    worker.metrics.http2_refused("stalled");
                    stream.reset(ErrorCode::CANCEL);
                }
            }
        }
        self.deadlines.borrow_mut().push(Rc::clone(&deadline));
        is_complete
    }

    /// Has the connection move into the kernel if this response is to be encrypted there; why it does not try, if so.
    fn ask_for_kernel_path(
        &self,
        worker: &WorkerState,
        preference: PathPreference,
        demand: Demand,
    ) -> Option<PathReason> {
        if self.io.path() != TxPath::User || !preference.wants_kernel(demand) {
            return None;
        }
        if preference.choice == TxPathChoice::Auto {
            return Some(PathReason::Http2);
        }
        let obstacle = || worker.offloads.obstacle(self.session.as_ref());
        let obstacle = preference.obstacle.or_else(obstacle);
        if obstacle.is_none() {
            self.io.ask_for_kernel();
        }
        obstacle
    }

    /// Where the end of a response was encrypted, and why not where that was preferred. The connection may have moved since its
    /// beginning.
    fn path_at_end(
        &self,
        preference: PathPreference,
        demand: Demand,
        obstacle: Option<PathReason>,
    ) -> (TxPath, Option<PathReason>) {
        let path = self.io.path();
        if path == TxPath::Plain {
            return (path, None);
        }
        let reason = match (path, preference.choice) {
            (TxPath::User, TxPathChoice::Auto) => obstacle,
            (TxPath::User, TxPathChoice::User) => None,
            (TxPath::User, _) => obstacle.or(self.io.refusal()),
            (_, TxPathChoice::User) => Some(PathReason::AlreadyOffloaded),
            (_, TxPathChoice::KernelSendfile) if demand.is_file => Some(PathReason::Http2),
            (_, TxPathChoice::KernelSendfile) if demand.bytes > 0 => Some(PathReason::NotAFile),
            _ => None,
        };
        (path, reason)
    }

    /// Notes how a stream ended.
    pub(super) fn note_end(&self, is_complete: bool) {
        if !is_complete && self.is_speechless.get() {
            self.has_silent_end.set(true);
        }
    }

    /// The answer to a request that was taken back before there was one, or whose connection ends.
    fn taken_back(&self, answering: &Answering, head: &Head) -> Answer {
        let name = self.session.as_ref().and_then(|it| it.server_name.as_deref());
        let log = answering.router().log(head, name);
        let mut nothing = Nothing::client_gone();
        nothing.log = log;
        Answer::Nothing(nothing)
    }
}

/// A stream that is alone on its connection: its driver polls it in each turn. It needs no task of its own, and what it waits for
/// wakes the same task that sends what comes of it.
///
/// Each of several streams has a task: their responses are made one after the other, and go out together.
#[derive(Default)]
pub(super) struct InlineStream {
    alone: Option<(ServedStream, Rc<StreamProgress>)>,
}

type ServedStream = Pin<Box<dyn Future<Output = ()>>>;

impl InlineStream {
    /// Takes a stream.
    pub(super) fn begin<F: Future<Output = ()> + 'static>(
        &mut self,
        serve: impl FnOnce() -> F,
        progress: Rc<StreamProgress>,
        tasks: &mut JoinSet<()>,
    ) {
        let is_alone = self.is_empty() && tasks.is_empty();
        // A task copies what it runs when it begins and when it ends.
        let serve: ServedStream = Box::pin(serve());
        if is_alone {
            self.alone = Some((serve, progress));
            return;
        }
        self.give_task(tasks);
        tasks.spawn_local(serve);
    }

    /// Gives the stream that was alone a task: it is no more, or nobody looks at it any more.
    pub(super) fn give_task(&mut self, tasks: &mut JoinSet<()>) {
        if let Some((serve, _)) = self.alone.take() {
            tasks.spawn_local(serve);
        }
    }

    /// True if there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.alone.is_none()
    }

    /// Looks at the stream that is alone, if there is one.
    pub(super) fn look(&mut self, context: &mut Context<'_>) {
        if let Some((serve, _)) = &mut self.alone
            && serve.as_mut().poll(context).is_ready()
        {
            self.alone = None;
        }
    }

    /// Lets it end if the kernel has its response.
    pub(super) fn end(&mut self, context: &mut Context<'_>) {
        if self.alone.as_ref().is_some_and(|(_, progress)| progress.is_taken()) {
            self.look(context);
        }
    }
}

/// The response to a request, unless that was taken back before: nobody is kept busy for it then.
async fn respond_unless_taken_back(
    (worker, router, request): (&WorkerState, &Router, &mut Request<'_>),
    stream: &Http2Stream,
) -> Option<Answer> {
    tokio::select! {
        biased;
        answer = respond(&worker.responder, router, request) => {
            #[cfg(test)]
            let answer = worker.noted(answer);
            Some(answer)
        }
        () = poll_fn(|context| stream.poll_gone(context)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There may be many streams, and each has it in memory of its own.
    #[test]
    fn a_stream_takes_no_more_memory_than_it_did() {
        let bytes = future_bytes(|(it, request, stream, answering, number)| {
            Shared::serve(it, request, stream, answering, number)
        });
        assert!(bytes <= 2_944, "{bytes}");
    }

    fn future_bytes<A, F: Future>(_: impl FnOnce(A) -> F) -> usize {
        size_of::<F>()
    }
}
