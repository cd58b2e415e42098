//! The life of a stream: its request's head, the response as over HTTP/1.1, its body, the log.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use kettle_config::TxPathChoice;
use kettle_http::h1::framing::BodyFraming;

use super::Shared;
use super::body::Outgoing;
use super::priority::Priority;
use crate::connection::cycle::Arrival;
use crate::deliver::{Delivered, DeliveryError, Demand, PathPreference};
use crate::error_page;
use crate::http1::{Edge, write_head};
use crate::http2::{HeadError, OutboundStream, interim_head, request_head, response_head};
use crate::limits::LazyDeadline;
use crate::proxy::{self, CLIENT_GONE};
use crate::request::{BodyError, Head, Request, StreamSource};
use crate::respond::respond;
use crate::response::{Body, Response, ResponseFields};
use crate::setup::Snapshot;
use crate::tx_path::{Reason as PathReason, TxPath};
use crate::worker_state::WorkerState;

impl Shared {
    /// Answers a request; without a snapshot, with 421.
    pub(super) async fn serve(
        self: Rc<Self>,
        request: http::Request<RecvStream>,
        respond_with: SendResponse<Bytes>,
        outbound: OutboundStream,
        snapshot: Option<Arc<Snapshot>>,
        number: u64,
    ) {
        let (worker, client, own, head_limits) = {
            let connection = self.connection.borrow();
            let own = Arc::clone(&connection.snapshot);
            (connection.worker.shared(), connection.remote.ip(), own, connection.head_limits())
        };
        let limits = &own.config.limits;
        let arrival = Arrival::now(number);
        let (parts, body) = request.into_parts();
        let respond_with = RefCell::new(respond_with);
        let (has_body, is_head) = (!body.is_end_stream(), parts.method == http::Method::HEAD);
        let (head, framing) = match request_head(&parts, has_body, &head_limits) {
            Ok(read) => read,
            Err(HeadError::Malformed) => {
                worker.metrics.http2_refused("malformed");
                return respond_with.borrow_mut().send_reset(Reason::PROTOCOL_ERROR);
            }
            Err(HeadError::Status(status)) => {
                let response = error_page::plain(&status.into());
                let delivered =
                    self.deliver(&respond_with, &outbound, None, is_head, response, &arrival);
                return delivered.await;
            }
        };
        drop(parts);
        let deadline = LazyDeadline::new(&worker.deadlines);
        let shut_ticks = || self.outbound.shut_ticks(worker.deadlines.ticks());
        let send_interim = |head: &[u8]| {
            let sent = respond_with.borrow_mut().send_informational(interim_head(head)?);
            sent.map_err(|_| BodyError::Ended)
        };
        let poll_taken_back =
            |context: &mut Context<'_>| poll_taken_back(&respond_with, &outbound, context);
        let source = StreamSource {
            body,
            trailers: Vec::new(),
            send_interim: &send_interim,
            poll_taken_back: &poll_taken_back,
            shut_ticks: &shut_ticks,
            deadline: &deadline,
            timeout: limits.request_timeout,
            discard_bytes_max: limits.body_discard_bytes,
            session: &self.session,
        };
        let mut request = Request::of_stream(head, framing, source, client);
        let response = match &snapshot {
            None => Some(error_page::plain(&421.into())),
            Some(snapshot) => {
                let asked = (&*worker, &**snapshot, &mut request);
                respond_unless_taken_back(asked, &poll_taken_back).await
            }
        };
        let Request { head, body: mut request_body, .. } = request;
        let response = match response {
            Some(response) if !proxy::is_for_nobody(&response) => response,
            unsent => return self.log_taken_back(unsent, snapshot.as_deref(), &head, &arrival),
        };
        if matches!(response.body, Body::Upgraded(_)) {
            let Some(receive) = request_body.into_stream() else { return };
            // It may outlive many configurations.
            drop((own, snapshot));
            let carry = self.carry(&respond_with, receive, outbound, head, response, arrival);
            return Box::pin(carry).await;
        }
        self.deliver(&respond_with, &outbound, Some(&head), is_head, response, &arrival).await;
        drop(head);
        if framing != BodyFraming::None {
            // What is left of it after that is of no interest (RFC 9113 §8.1).
            let _ = request_body.discard().await;
        }
    }

    /// Sends a response and logs it, whatever became of it.
    async fn deliver(
        &self,
        respond_with: &RefCell<SendResponse<Bytes>>,
        outbound: &OutboundStream,
        request: Option<&Head>,
        is_head: bool,
        mut response: Response,
        arrival: &Arrival,
    ) {
        let (worker, preference, write_timeout) = {
            let connection = self.connection.borrow();
            let write_timeout = connection.snapshot.config.limits.write_timeout;
            (connection.worker.shared(), connection.preference(&response), write_timeout)
        };
        let edge = Edge {
            date_line: worker.date_line(),
            version: None,
            is_head,
            is_tls: true,
            closes: false,
        };
        let mut head = worker.head_buffer();
        write_head(&mut head, &mut response, &edge);
        let length = response.body.length();
        let (bytes, is_file) = (length.unwrap_or(0), response.body.file().is_some());
        let demand = Demand { bytes, is_file, is_last: false };
        let mut delivered =
            Delivered { path: TxPath::User, reason: None, body_bytes: 0, completed: false };
        let obstacle = self.ask_for_home(&worker, preference, demand);
        let fields = response_head(response.status, &head);
        outbound.begin_head();
        let begun = respond_with.borrow_mut().send_response(fields, length == Some(0));
        match begun {
            Ok(stream) => {
                let deadline = self.take_deadline();
                let (priority, worker) = (Priority::of(request), &*worker);
                let mut outgoing = Outgoing::new(
                    self,
                    worker,
                    stream,
                    outbound,
                    &deadline,
                    write_timeout,
                    priority,
                );
                let sent = outgoing.send(&mut response.body).await;
                delivered.completed = sent.is_ok();
                if let Err(DeliveryError::BodyCutShort(error)) = &sent {
                    response.note_cut(error);
                }
                if let Err(error) = sent {
                    // It logs why.
                    let _ = self.connection.borrow().delivery_failed(&error, &response);
                    // A client must not take what it has for the whole.
                    match error {
                        DeliveryError::BodyCutShort(_) => outgoing.cut().await,
                        DeliveryError::Stream(_) => outgoing.reset(Reason::INTERNAL_ERROR),
                        DeliveryError::Stalled => {
                            worker.metrics.http2_refused("stalled");
                            outgoing.reset(Reason::CANCEL);
                        }
                    }
                }
                self.deadlines.borrow_mut().push(Rc::clone(&deadline));
            }
            // It was taken back, or the connection is over.
            Err(error) => tracing::debug!(%error, "a response was not delivered"),
        }
        delivered.body_bytes = outbound.sent_bytes();
        (delivered.path, delivered.reason) = self.home(preference, demand, obstacle);
        if let Some(reason) = delivered.reason {
            worker.metrics.not_preferred(reason);
        }
        self.note_end(delivered.completed);
        // As it was before compression: what became of it there is the library's.
        let bytes_sent = head.len() as u64 + delivered.body_bytes;
        let connection = self.connection.borrow();
        connection.log(&self.session, request, &response, bytes_sent, &delivered, arrival);
        worker.recycle(head);
    }

    /// Has the connection move into the kernel if this response is to be encrypted there; why it does not try, if so.
    fn ask_for_home(
        &self,
        worker: &WorkerState,
        preference: PathPreference,
        demand: Demand,
    ) -> Option<PathReason> {
        if self.outbound.path() != TxPath::User || !preference.wants_kernel(demand) {
            return None;
        }
        if preference.choice == TxPathChoice::Auto {
            return Some(PathReason::Http2);
        }
        let obstacle = worker.offloads.obstacle(&self.session);
        if obstacle.is_none() {
            self.outbound.ask_for_kernel();
        }
        obstacle
    }

    /// Where the end of a response was encrypted, and why not where that was preferred. The connection may have moved since its
    /// beginning.
    fn home(
        &self,
        preference: PathPreference,
        demand: Demand,
        obstacle: Option<PathReason>,
    ) -> (TxPath, Option<PathReason>) {
        let path = self.outbound.path();
        let reason = match (path, preference.choice) {
            (TxPath::User, TxPathChoice::Auto) => obstacle,
            (TxPath::User, TxPathChoice::User) => None,
            (TxPath::User, _) => obstacle.or(self.outbound.refusal()),
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

    /// The library answered a request whose fields are longer than anybody looks at.
    pub(super) fn log_too_large(&self, number: u64) {
        let connection = self.connection.borrow();
        connection.worker.metrics.http2_stream();
        connection.worker.metrics.http2_refused("fields_too_large");
        let response = error_page::plain(&431.into());
        let path = self.outbound.path();
        let delivered = Delivered { path, reason: None, body_bytes: 0, completed: true };
        connection.log(&self.session, None, &response, 0, &delivered, &Arrival::now(number));
    }

    /// The client took its request back before there was a response, or the connection ends. `unsent` says what is known of it.
    fn log_taken_back(
        &self,
        unsent: Option<Response>,
        snapshot: Option<&Snapshot>,
        head: &Head,
        arrival: &Arrival,
    ) {
        self.note_end(false);
        let response = unsent.unwrap_or_else(|| {
            let name = self.session.server_name.as_deref();
            let log = snapshot.map(|snapshot| snapshot.router.log(head, name)).unwrap_or_default();
            let gone = Response::new(CLIENT_GONE, ResponseFields::default(), Body::Empty);
            Response { log, ..gone }
        });
        self.connection.borrow().log_unsent(&self.session, head, &response, arrival);
    }
}

/// Ready when a request was taken back, or its connection is over.
fn poll_taken_back(
    respond_with: &RefCell<SendResponse<Bytes>>,
    outbound: &OutboundStream,
    context: &mut Context<'_>,
) -> Poll<()> {
    match outbound.poll_sent(context) {
        Poll::Ready(_) => Poll::Ready(()),
        Poll::Pending => respond_with.borrow_mut().poll_reset(context).map(drop),
    }
}

/// The response to a request, unless that was taken back before: nobody is kept busy for it then.
async fn respond_unless_taken_back(
    (worker, snapshot, request): (&WorkerState, &Snapshot, &mut Request<'_>),
    poll_taken_back: &dyn Fn(&mut Context<'_>) -> Poll<()>,
) -> Option<Response> {
    tokio::select! {
        biased;
        response = respond(&worker.responder, &snapshot.router, request) => Some(response),
        () = poll_fn(poll_taken_back) => None,
    }
}
