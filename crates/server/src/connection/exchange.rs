//! The life of a request: parse, answer, deliver, account for, and read past its body.

use std::time::{Duration, Instant, SystemTime};

use kettle_config::PathChoice;
use kettle_http::h1::framing::{BodyFraming, BodyReader, body_framing};
use kettle_http::h1::parse::{Parse, Progress, parse_request};
use kettle_http::{Limits, RequestHead};
use kettle_tls::stream::{Fill, TlsStream};

use super::{Connection, End};
use crate::access_log::Entry;
use crate::answer::Response;
use crate::deliver::{Delivery, DeliveryError, Preference, Sender, deliver};
use crate::error_page;
use crate::limits::Stage;
use crate::open_file::OpenFile;

/// Where a connection is in its sequence of requests.
#[derive(Default)]
pub(super) struct Turn {
    /// Requests answered so far.
    pub(super) answered: u64,
    /// Whether the time for the current request's head is running.
    pub(super) is_started: bool,
    progress: Progress,
}

/// A request whose head is complete, and what is to be done about it.
struct Plan {
    /// Of the request's head; all there is, if it could not be parsed.
    head_bytes: usize,
    framing: BodyFraming,
    closes: bool,
    /// `None` if the answer has to wait for a disk.
    response: Option<Response>,
}

impl Connection {
    /// Answers the request at the front of what was received. `false` if it is not complete yet.
    pub(super) async fn exchange(
        &self,
        stream: &mut TlsStream,
        turn: &mut Turn,
    ) -> Result<bool, End> {
        let Some(plan) = self.plan(stream, turn) else {
            return Ok(false);
        };
        let (time, started) = (SystemTime::now(), Instant::now());
        turn.is_started = false;
        turn.answered += 1;
        let response = match plan.response {
            Some(response) => response,
            None => Box::pin(self.answer_in_time(stream, plan.closes)).await?,
        };
        let mut received = stream.take_received();
        let (sender, mut delivery) = (self.sender(), Delivery::default());
        let preference = self.preference(&response);
        let outcome = deliver(&sender, stream, &response, preference, &mut delivery).await;
        let head = received.bytes().get(..plan.head_bytes).unwrap_or_default();
        let account = Account { time, duration: started.elapsed(), number: turn.answered };
        self.account(stream, head, &response, &delivery, &account);
        received.consume(plan.head_bytes);
        stream.put_back(received);
        if let Err(error) = outcome {
            return Err(self.delivery_failed(&error, &response));
        }
        let closes = response.closes;
        self.worker.recycle(response.head);
        if plan.framing != BodyFraming::None {
            self.discard_body(stream, plan.framing).await?;
        }
        if closes || stream.must_close() { Err(End::Announced) } else { Ok(true) }
    }

    /// Delivers a response to a request that never became one, and accounts for it.
    pub(super) async fn refuse(&self, stream: &mut TlsStream, response: &Response) -> End {
        let (time, started) = (SystemTime::now(), Instant::now());
        let mut delivery = Delivery::default();
        let outcome =
            deliver(&self.sender(), stream, response, self.preference(response), &mut delivery)
                .await;
        let account = Account { time, duration: started.elapsed(), number: 0 };
        self.account(stream, &[], response, &delivery, &account);
        match outcome {
            Ok(()) => End::Announced,
            Err(error) => self.delivery_failed(&error, response),
        }
    }

    fn sender(&self) -> Sender<'_> {
        Sender {
            worker: &self.worker,
            watch: &self.watch,
            write_timeout: self.snapshot.config.limits.write_timeout,
        }
    }

    /// Parses and, where no disk is needed, answers. Not async: what a head refers to stays here.
    fn plan(&self, stream: &TlsStream, turn: &mut Turn) -> Option<Plan> {
        let received = stream.received().bytes();
        if received.is_empty() {
            return None;
        }
        let worker = &*self.worker;
        let parsed =
            turn.progress.parse(received, &self.head_limits()).and_then(|parse| match parse {
                Parse::Partial => Ok(None),
                Parse::Complete { head, bytes } => {
                    let framing = body_framing(&head)?;
                    if framing == BodyFraming::Chunked {
                        // What came with the head can still be refused with a status.
                        let body = received.get(bytes..).unwrap_or_default();
                        BodyReader::new(framing).consume(body)?;
                    }
                    Ok(Some((head, bytes, framing)))
                }
            });
        let (head, head_bytes, framing) = match parsed {
            Ok(Some(parsed)) => parsed,
            Ok(None) => return None,
            // Where the next request would begin is unknown: answer, then close.
            Err(error) => {
                let buffer = worker.head_buffer();
                let response = error_page::respond(error.status(), buffer);
                let head_bytes = received.len();
                let framing = BodyFraming::None;
                return Some(Plan { head_bytes, framing, closes: true, response: Some(response) });
            }
        };
        let closes = self.closes_after(stream, &head, framing, turn);
        let server_name = stream.session().server_name.as_deref();
        let snapshot = worker.snapshot();
        let mut buffer = worker.head_buffer();
        let response = worker.answerer.answer_at_once(
            &snapshot.router,
            &head,
            server_name,
            true,
            closes,
            &mut buffer,
        );
        if response.is_none() {
            worker.recycle(buffer);
        }
        Some(Plan { head_bytes, framing, closes, response })
    }

    /// Whether the connection ends with the response to this request.
    fn closes_after(
        &self,
        stream: &TlsStream,
        head: &RequestHead<'_>,
        framing: BodyFraming,
        turn: &Turn,
    ) -> bool {
        let limits = &self.snapshot.config.limits;
        // With a final status in place of `100 Continue`, whether the body follows is open.
        let is_body_in_doubt = framing != BodyFraming::None && head.expects_continue();
        let is_body_too_long =
            matches!(framing, BodyFraming::Length(bytes) if bytes > limits.body_discard_bytes);
        !head.persists()
            || turn.answered + 1 >= limits.requests_per_connection
            || is_body_in_doubt
            || is_body_too_long
            || stream.must_close()
            // A connection keeps its listener's settings; those of now apply to new ones.
            || !self.worker.is_current(&self.snapshot)
            || self.worker.watches.is_draining()
    }

    /// The answer to the same request, where a disk may have to be waited for.
    async fn answer_in_time(&self, stream: &TlsStream, closes: bool) -> Result<Response, End> {
        let limits = self.head_limits();
        let Ok(Parse::Complete { head, .. }) = parse_request(stream.received().bytes(), &limits)
        else {
            return Err(End::Broken);
        };
        let server_name = stream.session().server_name.as_deref();
        let buffer = self.worker.head_buffer();
        let snapshot = self.worker.snapshot();
        let answerer = &self.worker.answerer;
        Ok(answerer.answer(&snapshot.router, &head, server_name, true, closes, buffer).await)
    }

    fn head_limits(&self) -> Limits {
        let limits = &self.snapshot.config.limits;
        Limits {
            head_bytes_max: limits.head_bytes,
            headers_max: limits.headers,
            target_bytes_max: limits.target_bytes,
        }
    }

    fn preference(&self, response: &Response) -> Preference {
        let listener = self.listener();
        let choice = response.path.or(listener.map(|listener| listener.path));
        Preference {
            choice: choice.unwrap_or(PathChoice::Auto),
            crossover_bytes: listener.map_or(u64::MAX, |listener| listener.crossover),
        }
    }

    /// Reads past a body nobody wants, up to the limit; then the connection ends.
    async fn discard_body(&self, stream: &mut TlsStream, framing: BodyFraming) -> Result<(), End> {
        let limits = &self.snapshot.config.limits;
        let mut body = BodyReader::new(framing);
        self.watch.extend(limits.request_timeout);
        loop {
            let consumed = body.consume(stream.received().bytes()).map_err(|_| End::Announced)?;
            stream.consume(consumed.bytes);
            if consumed.done {
                return Ok(());
            }
            if body.total_bytes() > limits.body_discard_bytes {
                return Err(End::Announced);
            }
            // Its response is sent: for the body alone a server that stops does not stay.
            match self.watch.wait(Stage::Idle, |context| stream.poll_fill(context)).await {
                Ok(Ok(Fill::Data)) => {}
                Ok(Ok(Fill::Closed | Fill::Truncated)) | Err(_) => return Err(End::Quiet),
                Ok(Err(error)) => return Err(self.stream_failed(error)),
            }
        }
    }

    fn delivery_failed(&self, error: &DeliveryError, response: &Response) -> End {
        match error {
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
        End::CutShort
    }

    fn account(
        &self,
        stream: &TlsStream,
        received: &[u8],
        response: &Response,
        delivery: &Delivery,
        account: &Account,
    ) {
        let metrics = &self.worker.metrics;
        let bytes_sent = response.head.len() as u64 + delivery.body_bytes;
        metrics.response(delivery.path, response.status, bytes_sent, account.duration);
        if !delivery.completed {
            metrics.response_truncated();
        }
        if !self.worker.log.is_on() {
            return;
        }
        let limits = self.head_limits();
        let head = match parse_request(received, &limits) {
            Ok(Parse::Complete { head, .. }) => Some(head),
            _ => None,
        };
        let head = head.as_ref();
        self.worker.log.record(&Entry {
            time: account.time,
            remote: self.remote,
            host: head.and_then(|head| head.host()).map(str::as_bytes),
            method: head.map_or(&[], |head| head.method.as_str().as_bytes()),
            target: head.map_or(&[], |head| head.raw_target.as_bytes()),
            version: head.map_or("", |head| head.version.as_str()),
            status: response.status,
            bytes_sent,
            body_bytes: delivery.body_bytes,
            path: Some(delivery.path),
            reason: delivery.reason,
            session: Some(stream.session()),
            referer: head.and_then(|head| head.header("referer")),
            user_agent: head.and_then(|head| head.header("user-agent")),
            duration: account.duration,
            connection: self.number,
            request_number: account.number,
            completed: delivery.completed,
        });
    }
}

/// When a request came, how long its answer took, and which of its connection it was.
struct Account {
    time: SystemTime,
    duration: Duration,
    number: u64,
}
