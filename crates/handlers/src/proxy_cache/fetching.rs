//! Letting an object arrive: one request, for whichever client, and a body that is written as it comes. The task belongs to
//! nobody: a client that goes away holds up nobody, and leaves nothing undone.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use kettle_cache::{FillState, Name, ObjectHead, ObjectWriter, StoreError, Waiting};
use kettle_http::caching::{self, NotKept, vary};
use kettle_http::h1::response::ResponseHead;
use kettle_runtime::client_address::ClientHost;
use kettle_runtime::disk::{Device, Disks, Reservation};
use kettle_runtime::rate_limit::Counted;
use kettle_upstream::{
    OutgoingRequest, Pool, SharedRequest, Trace, UpstreamBody, UpstreamError, UpstreamResponse,
    fetch,
};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::abandoned_fetch::AbandonedFetch;
use super::cache_request::CacheRequest;
use super::stored_response::{self, ObjectVersion};
use super::{CachedRoute, TAGS_MAX, WRITE_TIME_MAX, is_failure};
use crate::proxy::Asker;
use crate::stores::{FetchBody, FetchState, FetchWriter, OpenStore};

/// An object that is asked for.
pub(super) struct Fetching {
    pub(super) route: Arc<CachedRoute>,
    pub(super) open: OpenStore,
    pub(super) device: Arc<Device>,
    /// For all that a client waits for. A piece of the body may take longer.
    pub(super) disks: Disks,
    pub(super) pool: Rc<Pool>,
    pub(super) asked: Arc<CacheRequest>,
    pub(super) outgoing: OutgoingRequest,
    /// The object that is there, where the backend is asked if it is still good.
    pub(super) validated: Option<ObjectVersion>,
    /// True if what is there is better than an error.
    pub(super) may_be_stale: bool,
    /// True if waiters get the stale object when the worker shuts down.
    pub(super) will_do: bool,
    /// The place of who began it among the requests of its client, which a client that leaves does not give back before its server
    /// has answered.
    pub(super) place: Option<Rc<Counted>>,
    /// True if it is for later requests: it has no reader, and is wanted.
    pub(super) is_ahead: bool,
    pub(super) arriving: FetchWriter,
    /// The client that asked first, as the network that counts as one.
    pub(super) network: ClientHost,
    /// Room for a body that is written behind its answer.
    pub(super) reservation: Option<Reservation>,
    pub(super) begun: Instant,
    /// Lets the worker wait for it when it stops.
    pub(super) shared: SharedRequest,
}

/// The outcome of it, for the request that began it.
pub(super) enum Fetched {
    /// With a place among its readers: from here on it is not given up, however long the request is in passing on an interim
    /// response.
    Growing(Arc<(ObjectHead, FetchBody)>, Option<Waiting>, Option<Box<Trace>>),
    Validated(Option<Box<Trace>>),
    /// It has come meanwhile, or went away: the store has to be asked again.
    Again,
    /// The response is for one client; it is whose request went out.
    Alone(Option<(Box<UpstreamResponse>, Box<Trace>)>),
    Failed(u16, Box<Trace>),
}

impl Fetched {
    pub(super) fn growing(
        arriving: Arc<(ObjectHead, FetchBody)>,
        trace: Option<Box<Trace>>,
    ) -> Self {
        let place = arriving.1.place();
        Self::Growing(arriving, place, trace)
    }
}

impl From<FetchState> for Fetched {
    fn from(state: FetchState) -> Self {
        match state {
            FetchState::Growing(arriving) => Fetched::growing(arriving, None),
            FetchState::Validated => Fetched::Validated(None),
            FetchState::Ended => Fetched::Again,
            FetchState::Asked | FetchState::Alone => Fetched::Alone(None),
            FetchState::Failed(status) => Fetched::Failed(status, Box::default()),
        }
    }
}

impl Fetching {
    /// Asks the backend, and sees to what comes. `leader` may have gone.
    pub(super) async fn run(mut self, leader: oneshot::Sender<Fetched>) {
        if !self.has_room(&leader).await || self.has_come_meanwhile().await {
            self.arriving.tell(FetchState::Ended);
            let _ = leader.send(Fetched::Again);
            return;
        }
        let mut trace = Box::<Trace>::default();
        let asked = SystemTime::now();
        let Some(response) = self.ask(&leader, &mut trace).await else { return };
        let answered = SystemTime::now();
        self.place = None;
        if let Err(UpstreamError::InternalRedirect) = response {
            return self.leave_to_each(leader).await;
        }
        let mut response = match response {
            Ok(response) if !(self.may_be_stale && is_failure(response.head.status())) => response,
            // A request that has joined comes behind its time, and gets the backend's own answer rather than our page.
            Ok(_) if self.is_ahead => return self.arriving.tell(FetchState::Alone),
            failed => {
                let status = failed.map_or_else(|error| error.status(), |it| it.head.status());
                return self.fail(status, leader, trace);
            }
        };
        if let (304, Some(version)) = (response.head.status(), &self.validated) {
            let (state, fetched) =
                match self.validate(version, &response.head, asked, answered).await {
                    true => (FetchState::Validated, Fetched::Validated(Some(trace))),
                    false => (FetchState::Ended, Fetched::Again),
                };
            self.arriving.tell(state);
            let _ = leader.send(fetched);
            return;
        }
        let fields: Vec<_> = response.head.headers().collect();
        let answer = self.route.answer(response.head.status(), &fields, asked, answered);
        let writer = match caching::evaluate(&answer, &self.route.defaults) {
            Ok(freshness) => {
                let times = stored_response::times(freshness, answered);
                let stored = ObjectHead { times, ..self.stored(&response.head, answered) };
                match self.whole(&stored, &mut response.body).await {
                    Ok(Some(body)) => return self.keep(stored, body, leader, trace).await,
                    Ok(None) => {
                        self.reservation = None;
                        self.begin(stored, response.body.length()).await.ok_or(None)
                    }
                    Err(error) => {
                        trace.failure = Some(error.reason());
                        return self.fail(error.status(), leader, trace);
                    }
                }
            }
            Err(not_kept) => Err(Some(not_kept)),
        };
        let writer = match writer {
            Ok(writer) => writer,
            Err(not_kept) => return self.leave_alone(response, not_kept, leader, trace).await,
        };
        let fill = writer.fill().clone();
        let UpstreamResponse { head, body: incoming } = response;
        let body = FetchBody::InFile { fill: fill.clone(), has_ranges: has_ranges(&head) };
        // The store has all of it. The body may take long, and heads are large.
        drop(head);
        let arriving = Arc::new((writer.head().clone(), body));
        self.arriving.tell(FetchState::Growing(Arc::clone(&arriving)));
        let _ = leader.send(Fetched::growing(arriving, Some(trace)));
        self.write(writer, incoming).await;
        let Self { arriving, device, .. } = self;
        drop(arriving);
        // Without a name and readers it ends here, and its blocks with it.
        let bytes = fill.progress().filled;
        device.close(fill, bytes);
    }

    /// Hands a response that is not kept to the client that asked first. Without `not_kept` it is the store that cannot keep it.
    async fn leave_alone(
        &self,
        response: UpstreamResponse,
        not_kept: Option<NotKept>,
        leader: oneshot::Sender<Fetched>,
        trace: Box<Trace>,
    ) {
        let status = response.head.status();
        if let Some(not_kept) = not_kept {
            self.remember(status, not_kept);
        }
        // A response that was old when it was sent is no better than one that may still be used in its place.
        if !(self.may_be_stale && not_kept == Some(NotKept::Outlived)) {
            self.displace(status).await;
        }
        self.arriving.tell(FetchState::Alone);
        // Where it may be another with the fields that were not sent, the leader asks for itself.
        let depends = vary::names(&response.head.headers().collect::<Vec<_>>());
        let is_others = depends.is_some_and(|names| self.asked.is_others(names));
        let response = (!is_others).then(|| (Box::new(response), trace));
        // Where nobody waits, nobody reads it.
        let _ = leader.send(Fetched::Alone(response));
    }

    /// Has each who asks ask for itself, where the server names something to be sent in place of its answer: that depends on who asks.
    async fn leave_to_each(&self, leader: oneshot::Sender<Fetched>) {
        self.pass(NOT_KEPT_TIME, NOT_KEPT);
        self.displace(200).await;
        self.arriving.tell(FetchState::Alone);
        let _ = leader.send(Fetched::Alone(None));
    }

    fn fail(&self, status: u16, leader: oneshot::Sender<Fetched>, trace: Box<Trace>) {
        self.arriving.tell(FetchState::Failed(status));
        let _ = leader.send(Fetched::Failed(status, trace));
    }

    /// Asks the backend; `None` if nobody wants to know any more when the worker stops.
    async fn ask(
        &self,
        leader: &oneshot::Sender<Fetched>,
        trace: &mut Trace,
    ) -> Option<Result<UpstreamResponse, UpstreamError>> {
        let upstream = &self.route.proxy.upstream;
        let on_interim = |head: &ResponseHead<Bytes>| {
            self.arriving
                .tell_interim(self.route.proxy.interim(head, Asker::Many(&self.asked.target)));
        };
        let response = fetch(upstream, &self.pool, &self.outgoing, trace, on_interim);
        let is_needed = || self.is_needed(!leader.is_closed());
        let response = self.unless_stopping(response, is_needed).await;
        if response.is_none() && self.may_be_stale {
            trace.failure = Some(UpstreamError::Stopping.reason());
            return Some(Err(UpstreamError::Stopping));
        }
        response
    }

    /// True if somebody waits whom what is stale would not do instead.
    pub(super) fn is_needed(&self, leader_waits: bool) -> bool {
        (leader_waits || self.arriving.has_waiting()) && !self.will_do
    }

    /// Waits for what a backend says; when the worker stops, only as long as `is_needed`. A client is answered before the
    /// server ends, which may be sooner than a backend has to say something.
    pub(super) async fn unless_stopping<T>(
        &self,
        said: impl Future<Output = T>,
        is_needed: impl Fn() -> bool,
    ) -> Option<T> {
        let mut said = pin!(said);
        loop {
            if let Ok(said) = timeout(LOOK_TIME, &mut said).await {
                return Some(said);
            }
            if self.shared.is_draining() && !is_needed() {
                return None;
            }
        }
    }

    /// Lets the next requests go past the store with all their fields, where nothing will be kept for them.
    fn remember(&self, status: u16, not_kept: NotKept) {
        // A failure may be over at once.
        if status < 500 && not_kept != NotKept::Status {
            self.pass(NOT_KEPT_TIME, NOT_KEPT);
        }
    }

    /// Lets requests for what is longer than may be kept go past the store for a while.
    async fn outgrown(&self, status: u16) {
        self.pass(TOO_LARGE_TIME, TOO_LARGE);
        self.displace(status).await;
    }

    /// Lets requests of this variant go past the store.
    fn pass(&self, time: Duration, why: &'static str) {
        self.route.store.pass(self.asked.fetch_key(), time, why);
    }

    /// Returns the object in whose place an answer with this status comes, kept or not (RFC 9111 §4.3.3): the one about which
    /// the backend was asked. An error says nothing of that.
    pub(super) fn displaced(&self, status: u16) -> Option<Name> {
        (self.validated.is_some() && status < 500).then(|| Name::of_key(self.asked.key()))
    }

    /// Forgets it, behind an answer that is not kept.
    pub(super) async fn displace(&self, status: u16) {
        if let Some(key) = self.displaced(status) {
            self.route.invalidate(&[key].into(), &self.disks, &self.device, &self.open).await;
        }
    }

    /// Waits a moment where the disk is behind, before there is an answer that would have to be held; false if by then nobody wants one.
    async fn has_room(&mut self, leader: &oneshot::Sender<Fetched>) -> bool {
        if self.shared.is_draining() {
            return true;
        }
        self.reservation = self.device.reserve(self.network).await;
        self.begun = Instant::now();
        self.is_ahead || !leader.is_closed() || self.arriving.has_waiting()
    }

    /// True if another task was done with it between the look into the store and the beginning of this one.
    async fn has_come_meanwhile(&self) -> bool {
        if self.open.store.lacks(self.asked.key()) {
            return false;
        }
        let store = Arc::clone(&self.open.store);
        let asked = Arc::clone(&self.asked);
        let look = move || store.find(asked.key(), &|name| asked.value(name));
        match self.disks.wait_for(&self.device, look).await {
            Ok(Ok(found)) => {
                return found.is_some_and(|object| stored_response::is_fresh(&object.head));
            }
            Ok(Err(error)) => self.route.failed(&error),
            Err(why) => self.route.unanswered(why),
        }
        false
    }

    async fn begin(&self, head: ObjectHead, announced_bytes: Option<u64>) -> Option<ObjectWriter> {
        if head.tags.len() > TAGS_MAX {
            self.route.failed(&StoreError::TooManyTags);
            self.pass(NOT_KEPT_TIME, NOT_KEPT);
            return None;
        }
        if announced_bytes.is_none() && !self.route.store.takes_unannounced() {
            return None;
        }
        let store = Arc::clone(&self.open.store);
        let begin = move || store.begin(head, announced_bytes);
        match self.disks.wait_for(&self.device, begin).await {
            Ok(Ok(writer)) => return Some(writer),
            Ok(Err(error)) => {
                // The size that it announces will not change with the next request.
                if matches!(error, StoreError::TooLarge) {
                    self.pass(TOO_LARGE_TIME, TOO_LARGE);
                }
                self.route.failed(&error);
            }
            Err(why) => self.route.unanswered(why),
        }
        None
    }

    /// Returns the next piece; `None` if nobody wants it any more.
    async fn wanted(
        &self,
        body: &mut UpstreamBody,
        failed: &mut Option<UpstreamError>,
        writer: &ObjectWriter,
        unread: &mut AbandonedFetch,
    ) -> Option<Result<Vec<Bytes>, UpstreamError>> {
        // One wait with one deadline, however often the readers are counted.
        let mut next = pin!(pieces(body, failed));
        loop {
            let next = timeout(LOOK_TIME, &mut next).await;
            let fill = writer.fill();
            if (writer.is_too_large() && fill.give_up())
                || unread.is_given_up(fill, self.shared.is_draining(), self.is_ahead)
            {
                return None;
            }
            if let Ok(next) = next {
                return Some(next);
            }
        }
    }

    /// Writes what comes. Whatever goes wrong, the writer is dropped, and its readers learn of it.
    async fn write(&self, mut writer: ObjectWriter, mut body: Box<UpstreamBody>) {
        let mut unread = AbandonedFetch::default();
        let disks = Disks::new(WRITE_TIME_MAX);
        let status = writer.head().status;
        let mut failed = None;
        loop {
            let next = self.wanted(&mut body, &mut failed, &writer, &mut unread);
            let pieces = match next.await {
                Some(Ok(pieces)) => pieces,
                Some(Err(error)) => return self.cut(writer, &error),
                None => {
                    if writer.is_too_large() {
                        self.outgrown(status).await;
                    }
                    return self.device.close(writer, u64::MAX);
                }
            };
            let is_end = pieces.is_empty();
            if is_end && writer.is_too_large() {
                // Before its readers have all of it: they may ask again at once.
                self.outgrown(status).await;
            }
            let write = move || {
                if is_end {
                    return (None, writer.finish().map(|_| ()));
                }
                let appended = pieces.iter().try_for_each(|piece| writer.append(piece));
                if appended.is_ok() {
                    writer.tell();
                }
                (Some(writer), appended)
            };
            match disks.wait_for(&self.device, write).await {
                Ok((Some(rest), Ok(()))) => writer = rest,
                Ok((Some(rest), Err(error))) => return self.break_off(rest, &error).await,
                Ok((None, Ok(()))) => return self.route.store.filled(self.begun.elapsed()),
                Ok((None, Err(error))) => {
                    if !matches!(error, StoreError::WrongLength | StoreError::Purged) {
                        self.displace(status).await;
                    }
                    return self.route.failed(&error);
                }
                Err(why) => {
                    if is_end {
                        self.displace(status).await;
                    }
                    return self.route.unanswered(why);
                }
            }
        }
    }

    /// Ends in the middle of a body.
    async fn break_off(&self, mut writer: ObjectWriter, error: &StoreError) {
        // The next request is answered past the store, and may be a reader of this one at once.
        match error {
            StoreError::TooLarge => self.outgrown(writer.head().status).await,
            StoreError::NoRoom if writer.is_too_large() => {
                self.outgrown(writer.head().status).await;
            }
            StoreError::NoRoom | StoreError::Disk { .. } => self.route.store.broke_off(),
            _ => {}
        }
        writer.fail(match error {
            StoreError::WrongLength => FillState::Failed,
            _ => FillState::Refused,
        });
        self.device.close(writer, u64::MAX);
        self.route.failed(error);
    }

    /// The same where the backend does: readers say why in their logs, if there are any.
    fn cut(&self, mut writer: ObjectWriter, error: &UpstreamError) {
        let key = self.asked.key();
        let reason = error.reason();
        tracing::debug!(key, reason, "a response on its way into the cache broke off");
        // At once: what is left is closed when a thread of the disk's has time.
        writer.fail(match error {
            UpstreamError::TimedOut => FillState::TimedOut,
            UpstreamError::Malformed(_) => FillState::Malformed,
            _ => FillState::Failed,
        });
        self.device.close(writer, u64::MAX);
    }
}

/// True if a backend says that it answers with ranges (RFC 9110 §14.3).
fn has_ranges(head: &ResponseHead<Bytes>) -> bool {
    head.header_values("accept-ranges").any(|unit| unit.eq_ignore_ascii_case(b"bytes"))
}

/// Returns the next piece, and all that is there with it; nothing is the end. A failure behind a piece is for the next call.
async fn pieces(
    body: &mut UpstreamBody,
    failed: &mut Option<UpstreamError>,
) -> Result<Vec<Bytes>, UpstreamError> {
    if let Some(error) = failed.take() {
        return Err(error);
    }
    let Some(first) = body.chunk().await? else { return Ok(Vec::new()) };
    let mut bytes = first.len();
    let mut pieces = vec![first];
    while bytes < PIECE_BYTES {
        let next = poll_fn(|context| {
            Poll::Ready(match body.poll_chunk(context) {
                Poll::Ready(Ok(next)) => next,
                Poll::Ready(Err(error)) => {
                    *failed = Some(error);
                    None
                }
                Poll::Pending => None,
            })
        });
        let Some(next) = next.await else { break };
        bytes += next.len();
        pieces.push(next);
    }
    Ok(pieces)
}

/// The interval at which a task looks whether anybody wants its work.
const LOOK_TIME: Duration = Duration::from_secs(1);

/// The time a key's requests go past the store after a response that is not to be kept, and after one too large.
const NOT_KEPT_TIME: Duration = Duration::from_mins(1);
const TOO_LARGE_TIME: Duration = Duration::from_mins(10);

/// The word of `Cache-Status` on those meanwhile.
const NOT_KEPT: &str = "bypass; detail=not-kept";
const TOO_LARGE: &str = "bypass; detail=too-large";

/// The bytes that are written at a time.
const PIECE_BYTES: usize = 256 * 1_024;
