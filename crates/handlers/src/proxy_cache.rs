//! Routes whose backend's responses are kept: from the store where it may answer, from what is arriving where another client
//! has asked, and else from the backend, by a task that outlives the request.
//!
//! A request goes through these states:
//!
//! | state | it waits for | what comes next | where |
//! |---|---|---|---|
//! | at hand | nothing | the answer, if an object that is remembered, or that the kernel has in memory, is fresh; else *asked* | [`ready`], `at_hand` |
//! | asked | the store to be open | *looked for*; past the store what is no GET or HEAD | [`respond`], `cache_request` |
//! | looked for | the store's disk, unless an object was at hand | fresh, or good while it is updated: the answer; else a *miss* | `lookup` |
//! | miss: joined | what another has asked for | the answer from it as it arrives; *looked for* again; past the store | `lookup`, `interim` |
//! | miss: leads | the task that it begins | the same | `lookup` |
//! | past the store | the backend | its answer, or what is stale if that is better than an error | [`respond`] |
//!
//! The task that lets an object arrive, `fetching`, belongs to no request: it asks the backend, sees whether what was there is still good (`validating`),
//! keeps a small body behind its answer (`whole`) and writes others as they come, until nobody wants them (`abandoned_fetch`). `stored_response` makes a response of
//! an object, `coded_form` finds the compressed form of one.

mod abandoned_fetch;
mod at_hand;
mod cache_request;
mod coded_form;
mod fetching;
mod interim;
mod lines;
mod lookup;
mod stored_head;
mod stored_response;
mod validating;
mod whole;

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kettle_cache::StoreError;
use kettle_config::RouteCache;
use kettle_exchange::error_page::HttpError;
use kettle_exchange::request::{Head, Request};
use kettle_exchange::response::{Answer, Held, LogNotes, Response};
use kettle_http::Method;
use kettle_http::caching::{self, Defaults, FieldLines, invalidates};
use kettle_http::conditional::SelectionError;
use kettle_runtime::disk::{Device, Disks, WaitError};
use kettle_upstream::Pool;
use rustix::io::Errno;
use tokio::sync::watch;
use tokio::task::spawn_local;

use crate::files::file_route::next_number;
use crate::files::handler::Files;
use crate::files::object::ReadyObject;
use crate::proxy::{self, BodyStore, ProxyRoute, SharedTarget};
use crate::stores::{CacheOutcome, KeptStore, OpenStore, Stores};
pub use at_hand::{Begun, ready};
pub use coded_form::{CodedForm, coded_form};
use lookup::{CacheAnswer, CacheLookup};
use stored_response::StoredResponse;

/// A route to a backend, and the store for its responses.
#[derive(Debug)]
pub struct CachedRoute {
    /// No other route of this process has or had this number, reloads included.
    number: u64,
    /// The route that answers what the store cannot.
    pub proxy: Arc<ProxyRoute>,
    store: Arc<KeptStore>,
    defaults: Defaults,
    /// The fields of requests that the backend sees, in lower case.
    vary: Vec<String>,
    ignores_cookies: bool,
    /// The field of responses that lists their tags.
    tags: Option<String>,
    /// The field of responses that is for this cache alone.
    targeted: Option<String>,
    /// True if compressed forms are kept beside objects.
    keeps_forms: bool,
}

impl CachedRoute {
    /// The route of a configuration, which may compress what it answers; `None` if there is no such store.
    pub fn new(
        settings: &RouteCache,
        proxy: Arc<ProxyRoute>,
        stores: &Stores,
        compresses: bool,
    ) -> Option<Self> {
        let mut vary: Vec<_> = settings.vary.iter().map(|it| it.to_ascii_lowercase()).collect();
        vary.sort_unstable();
        vary.dedup();
        Some(Self {
            number: next_number(),
            proxy,
            store: Arc::clone(stores.find(&settings.store.value)?),
            defaults: Defaults {
                fresh_for: settings.default,
                heuristic_max: settings.heuristic,
                stale_if_error: settings.stale_if_error,
            },
            vary,
            ignores_cookies: settings.ignore_cookies,
            tags: settings.tags.as_ref().map(|it| it.to_ascii_lowercase()),
            targeted: settings.targeted.clone(),
            keeps_forms: compresses,
        })
    }

    /// True if what one of both keeps is known by the same name to the other.
    pub fn keeps_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.store, &other.store) && self.proxy.is_signed == other.proxy.is_signed
    }

    /// A response of the backend, with what decides here whether it may be kept.
    fn answer<'a>(
        &'a self,
        status: u16,
        fields: FieldLines<'a>,
        asked: SystemTime,
        answered: SystemTime,
    ) -> caching::Answer<'a> {
        caching::Answer { status, fields, asked, answered, targeted: self.targeted.as_deref() }
    }
}

/// Answers a request for this path for which what is [at hand](ready) is not enough.
///
/// # Errors
/// The response to send instead. `notes` say in any case what came of it.
#[expect(
    clippy::too_many_arguments,
    reason = "what a worker has, and what is known of one request"
)]
pub async fn respond(
    route: &Arc<CachedRoute>,
    files: &Files,
    pool: &Rc<Pool>,
    bodies: BodyStore<'_>,
    path: &str,
    begun: Begun,
    request: &mut Request<'_>,
    held: &mut Held,
    notes: &mut LogNotes,
) -> Result<Answer, HttpError> {
    let Begun { asked, sought } = begun;
    let asked = asked.map(|asked| Arc::new(asked.with_fields(&request.head)));
    let store = opened(route, files).await;
    let answer = match (&asked, store) {
        (Some(asked), Some(open)) if is_read(route, request) => {
            let lookup = CacheLookup { route, files, disks: files.disks(), open, pool };
            lookup.answer(asked, sought, request, held, notes).await
        }
        (_, None) => CacheAnswer::Pass("bypass; detail=store", None),
        _ => CacheAnswer::Pass("method", None),
    };
    match answer {
        CacheAnswer::Ready(answer) => answer,
        CacheAnswer::Pass(why, better) => {
            let answer =
                proxy::respond(&route.proxy, pool, bodies, Some(path), request, notes).await;
            let is_failed = match &answer {
                Ok(Answer::Response(response)) => is_failure(response.status),
                Ok(Answer::Tunnel(..) | Answer::Nothing(_)) => false,
                Err(error) => is_failure(error.status),
            };
            let better = better.filter(|it| is_failed && it.is_current());
            if let Some(answer) = better.and_then(|object| route.stale(&object, request, notes)) {
                return answer.map(Answer::from);
            }
            route.count(CacheOutcome::Bypass, notes);
            let status = format!("fwd={why}");
            if let (Some(asked), Some(own)) = (&asked, written(&answer, request)) {
                forget_written(route, &asked.target, own, (files, pool), request, held).await;
            }
            let mut answer = answer.map_err(|error| refused(error, &status))?;
            if let Some(response) = answer.response_mut() {
                add_status(response, &status);
            }
            Ok(answer)
        }
    }
}

/// The fields of an answer to a write that has succeeded.
fn written<'a>(answer: &'a Result<Answer, HttpError>, request: &Request<'_>) -> Option<&'a [u8]> {
    // Also where the server names what is to be sent in place of its answer.
    let (status, own) = match (answer, &request.handed) {
        (Ok(Answer::Response(response)), _) => (response.status, response.fields.lines()[1]),
        (Err(_), Some(handed)) => (handed.status, &b""[..]),
        _ => return None,
    };
    invalidates(request.head.method().as_str(), status).then_some(own)
}

/// Forgets what a write leaves nothing of, of whose answer these are the fields (RFC 9111 §4.4).
async fn forget_written(
    route: &Arc<CachedRoute>,
    target: &SharedTarget,
    own: &[u8],
    (files, pool): (&Files, &Rc<Pool>),
    request: &Request<'_>,
    held: &mut Held,
) {
    let keys = validating::invalid_keys(target, own);
    let device = match opened(route, files).await {
        Some(open) => device(files.disks(), open),
        None => Arc::clone(&route.store.opening),
    };
    // In a task of its own: a client that takes the request back does not undo what it did.
    let invalidate = |over, disks| {
        let keys = keys.clone();
        let device = device.clone();
        spawn_local(route.clone().invalidate_after(over, keys, disks, device, pool.share()))
    };
    let at_once = invalidate(None, files.disks().within(ANSWER_TIME_MAX));
    if request.body.is_uploaded_concurrently() {
        // A response that is kept before the write is over may be older than the rest of it. A client that takes the request
        // back while this is waited for ends the write.
        let until_over = held.invalidation.get_or_insert_with(|| Box::new(watch::Sender::new(())));
        invalidate(Some(until_over.subscribe()), Disks::new(WRITE_TIME_MAX));
    }
    let _ = at_once.await;
}

/// Passes a request on that no store answers. If it is a write, the stores of these routes may have what it changes.
///
/// # Errors
/// The response to send instead.
#[expect(clippy::too_many_arguments, reason = "as `respond` has it")]
pub async fn pass_beside(
    readers: &[Arc<CachedRoute>],
    proxy: &ProxyRoute,
    (files, pool): (&Files, &Rc<Pool>),
    bodies: BodyStore<'_>,
    path: Option<&str>,
    request: &mut Request<'_>,
    held: &mut Held,
    notes: &mut LogNotes,
) -> Result<Answer, HttpError> {
    let answer = proxy::respond(proxy, pool, bodies, path, request, notes).await;
    let Some(own) = written(&answer, request) else { return answer };
    for route in readers {
        let path = path.or(request.head.path().ok());
        if let Some(target) = path.and_then(|path| route.proxy.kept_target(path, request)) {
            forget_written(route, &target, own, (files, pool), request, held).await;
        }
    }
    answer
}

/// True if a store may answer it at all.
fn is_read(route: &CachedRoute, request: &Request<'_>) -> bool {
    matches!(request.head.method(), Method::Get | Method::Head)
        && request.body.framing().is_empty()
        && !route.proxy.is_asked_to_upgrade(request)
        // Its client would take what is kept for the server's side of a tunnel.
        && !request.head.is_extended_connect()
}

impl CachedRoute {
    fn count(&self, outcome: CacheOutcome, notes: &mut LogNotes) {
        self.store.responded(outcome);
        notes.cache = Some(outcome.as_str());
    }

    /// The answer from what is better than a failure (RFC 5861 §4), and was not purged while the backend was asked; `None` where
    /// the client asks for something else.
    fn stale(
        &self,
        object: &Rc<ReadyObject>,
        request: &Request<'_>,
        notes: &mut LogNotes,
    ) -> Option<Result<Response, HttpError>> {
        let status = "hit; detail=stale-if-error";
        let answer = self.answer_from(&StoredResponse::whole(object), request, status)?;
        self.count(CacheOutcome::Stale, notes);
        Some(answer)
    }

    /// The answer from what is kept, and where that came from: also where a range is beyond the end. `None` where If-Match or
    /// If-Unmodified-Since do not hold for it: no cache evaluates those, since the server may have what they mean (RFC 9111
    /// §4.3.2).
    fn answer_from(
        &self,
        kept: &StoredResponse<'_>,
        request: &Request<'_>,
        status: &str,
    ) -> Option<Result<Response, HttpError>> {
        match self.respond_from(kept, &request.head, SystemTime::now()) {
            Ok(response) => Some(Ok(with_status(response, status))),
            Err(SelectionError::PreconditionFailed) => None,
            Err(error) => Some(Err(refused(error.into(), status))),
        }
    }

    fn respond_from(
        &self,
        kept: &StoredResponse<'_>,
        head: &Head,
        now: SystemTime,
    ) -> Result<Response, SelectionError> {
        let mut response = kept.respond(&self.proxy.configured, head, now)?;
        if self.keeps_forms && response.status == 200 {
            response.stored = kept.object.cloned().map(|object| object as Rc<dyn Any>);
        }
        Ok(response)
    }

    /// Whatever is the operator's matter is counted and said.
    fn failed(&self, error: &StoreError) {
        if error.is_for_the_operator() {
            self.store.failed(error);
        }
    }

    /// The same of a disk that said nothing.
    fn unanswered(&self, why: WaitError) {
        match why {
            WaitError::TimedOut => self.failed(&StoreError::Slow),
            WaitError::Crowded => self.failed(&StoreError::Crowded),
            WaitError::NoThread => {
                self.failed(&StoreError::Disk { action: "start a thread", errno: Errno::AGAIN });
            }
            WaitError::Ended => {}
        }
    }
}

/// The store, opened on a thread that may wait if nobody has yet.
async fn opened<'r>(route: &'r CachedRoute, files: &Files) -> Option<&'r OpenStore> {
    if let Some(open) = route.store.get() {
        return Some(open);
    }
    if !route.store.may_open() {
        return None;
    }
    // The request that begins it has patience, since much may be read; those that come meanwhile are answered past it.
    let disks = match route.store.is_opening() {
        true => files.disks().within(ANSWER_TIME_MAX),
        false => files.disks().again(),
    };
    let store = Arc::clone(&route.store);
    let waited = disks.wait_for(&route.store.opening, move || _ = store.open()).await;
    waited.unwrap_or_else(|why| route.unanswered(why));
    route.store.get()
}

fn device(disks: &Disks, open: &OpenStore) -> Arc<Device> {
    disks.device(open.device, open.file_system)
}

/// True if an answer is one that a stale response is better than (RFC 5861 §4).
fn is_failure(status: u16) -> bool {
    matches!(status, 500 | 502..=504)
}

/// Returns the words on a response from the store that is fresh for so long.
fn hit(left: Duration) -> String {
    format!("hit; ttl={}", left.as_secs())
}

/// Says where a response came from (RFC 9211).
fn with_status(mut response: Response, status: &str) -> Response {
    add_status(&mut response, status);
    response
}

fn add_status(response: &mut Response, status: &str) {
    response.fields.add(CACHE_STATUS, by_us(status).as_bytes());
}

/// The same of an error of ours.
fn refused(mut error: HttpError, status: &str) -> HttpError {
    error.fields.push((CACHE_STATUS, by_us(status)));
    error
}

fn by_us(status: &str) -> String {
    ["kettle; ", status].concat()
}

const CACHE_STATUS: &str = "cache-status";

/// Tags that one object may have.
const TAGS_MAX: usize = 256;

/// Memory that a disk operation takes while it waits for its thread, beside the bytes that it carries.
const CALL_BYTES: usize = 1_024;

/// The time a disk may take for a look at what it has, or for the beginning of an object, before the backend answers past the store.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(3);

/// The time a disk may take for a piece of an object.
const WRITE_TIME_MAX: Duration = Duration::from_secs(30);
