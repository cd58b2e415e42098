//! The source of an answer: an object of the store, one that arrives for another request, or the backend, which is asked now.

use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use kettle_exchange::error_page::HttpError;
use kettle_exchange::request::{Disconnected, Request};
use kettle_exchange::response::{Answer, Body, Held, LogNotes, Nothing, Response};
use kettle_http::Method;
use kettle_http::caching::Use;
use kettle_runtime::disk::{self, Device, Disks};
use kettle_runtime::rate_limit::Counted;
use kettle_upstream::Pool;
use tokio::sync::oneshot;
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::at_hand::{self, Sought};
use super::cache_request::CacheRequest;
use super::fetching::{Fetched, Fetching};
use super::interim::while_asked;
use super::stored_response::{self, ObjectVersion, StoredResponse};
use super::{ANSWER_TIME_MAX, CachedRoute, device, hit, refused, with_status};
use crate::files::handler::Files;
use crate::files::object::{FoundObject, ObjectLook, ReadyObject};
use crate::proxy;
use crate::proxy::{Asker, buffer_response};
use crate::stores::{CacheOutcome, Fetch, FetchBody, FetchState, OpenStore};

pub(super) enum CacheAnswer {
    Ready(Result<Answer, HttpError>),
    /// The backend answers, for the reason that stands in `Cache-Status`; if it fails, what there is that is better.
    Pass(&'static str, Option<Rc<ReadyObject>>),
}

impl From<Result<Response, HttpError>> for CacheAnswer {
    fn from(response: Result<Response, HttpError>) -> Self {
        Self::Ready(response.map(Answer::from))
    }
}

/// The parts for the lookup of an answer.
pub(super) struct CacheLookup<'l> {
    pub(super) route: &'l Arc<CachedRoute>,
    pub(super) files: &'l Files,
    pub(super) disks: &'l Disks,
    pub(super) open: &'l OpenStore,
    pub(super) pool: &'l Rc<Pool>,
}

/// The finding of the store for a request.
enum Found<T> {
    Object(T),
    /// Only what others sent fields for that no backend sees here.
    Others,
    Nothing,
    /// The disk did not answer in time.
    Unknown,
}

impl CacheLookup<'_> {
    pub(super) async fn answer(
        &self,
        asked: &Arc<CacheRequest>,
        mut sought: Sought,
        request: &mut Request<'_>,
        held: &Held,
        notes: &mut LogNotes,
    ) -> CacheAnswer {
        let mut is_validated = false;
        let mut has_looked_twice = false;
        for _ in 0..ROUNDS_MAX {
            let look = at_hand::begin(self.open, self.files, asked);
            let found = match self.find(asked, &look, mem::take(&mut sought)).await {
                Found::Others => return CacheAnswer::Pass("vary-miss", None),
                Found::Unknown => return CacheAnswer::Pass("bypass; detail=disk", None),
                Found::Nothing => None,
                Found::Object(object) => Some(object),
            };
            let reason = if found.is_some() { "stale" } else { "uri-miss" };
            let (stale, may_be_stale) = match found {
                None => (None, false),
                Some(object) => match self.stored(object, is_validated, asked, request, notes) {
                    Ok(answer) => return answer,
                    Err((object, may_be_stale)) => (Some(object), may_be_stale),
                },
            };
            let better = || stale.clone().filter(|_| may_be_stale);
            if asked.has_credentials {
                return CacheAnswer::Pass("request; detail=credentials", better());
            }
            // Something may have got its name while it was looked for.
            let has_changed = match &stale {
                Some(object) => !object.has_its_name(),
                None => !self.open.store.known(asked.key()).is(&look.known),
            };
            if has_changed && !has_looked_twice {
                has_looked_twice = true;
                continue;
            }
            let miss = if request.head.method() == Method::Head {
                // It lets nothing arrive, but what does is what it asks about.
                let fetches = &self.open.fetches;
                match fetches.find(asked.fetch_key(), &self.open.store) {
                    Some(fetch) => Miss::Joined(fetch),
                    None => return CacheAnswer::Pass(reason, better()),
                }
            } else if let Some(why) = self.route.store.passes(asked.fetch_key()) {
                return CacheAnswer::Pass(why, better());
            } else {
                let place = held.client_place.clone();
                self.begin(asked, request, stale.as_deref(), may_be_stale, place, false)
            };
            let (fetched, outcome) = match miss {
                Miss::Joined(fetch) => {
                    match self.told(&fetch, request, self.joined(&fetch)).await {
                        Ok(Some(fetched)) => (fetched, CacheOutcome::Collapsed),
                        Ok(None) => return CacheAnswer::Pass(reason, better()),
                        Err(_) => return self.gone(CacheOutcome::Collapsed, notes),
                    }
                }
                Miss::Leads(fetch, fetched) => {
                    let is_known = stale.is_some();
                    let outcome = if is_known { CacheOutcome::Expired } else { CacheOutcome::Miss };
                    match self.told(&fetch, request, fetched).await {
                        Ok(it) => (it.unwrap_or(Fetched::Failed(502, Box::default())), outcome),
                        Err(Disconnected) => return self.gone(outcome, notes),
                    }
                }
                Miss::Impossible => return CacheAnswer::Pass("bypass", better()),
            };
            is_validated = matches!(fetched, Fetched::Validated(_));
            let answer = self.fetched(fetched, outcome, reason, better(), asked, request, notes);
            if let Some(answer) = answer {
                return answer;
            }
        }
        CacheAnswer::Pass("bypass; detail=busy", None)
    }

    /// Waits until it is known what becomes of a fetch. Its client gets interim responses if the route passes them on to it.
    async fn told<T>(
        &self,
        fetch: &Fetch,
        request: &mut Request<'_>,
        known: impl Future<Output = T>,
    ) -> Result<T, Disconnected> {
        let is_told = self.route.proxy.passes_interim(request.head.version());
        while_asked(fetch, request, is_told, known).await
    }

    /// An object as the answer; or the object, and whether it is better than an error.
    fn stored(
        &self,
        object: Rc<ReadyObject>,
        is_validated: bool,
        asked: &Arc<CacheRequest>,
        request: &Request<'_>,
        notes: &mut LogNotes,
    ) -> Result<CacheAnswer, (Rc<ReadyObject>, bool)> {
        if asked.has_credentials && !object.head.is_for_everybody {
            return Ok(CacheAnswer::Pass("request; detail=credentials", None));
        }
        let (outcome, status) = match stored_response::usable(&object.head, SystemTime::now()) {
            _ if is_validated => {
                (CacheOutcome::Revalidated, "fwd=stale; fwd-status=304".to_owned())
            }
            Use::Fresh(left) => (CacheOutcome::Hit, hit(left)),
            Use::WhileRevalidating => {
                drop(self.begin(asked, request, Some(&object), true, None, true));
                (CacheOutcome::Updating, "hit; detail=stale-while-revalidate".to_owned())
            }
            Use::IfError => return Err((object, true)),
            Use::No => return Err((object, false)),
        };
        let answer = self.route.answer_from(&StoredResponse::whole(&object), request, &status);
        let Some(answer) = answer else { return Ok(CacheAnswer::Pass(PRECONDITION, None)) };
        self.route.count(outcome, notes);
        Ok(answer.into())
    }

    /// Returns the answer for a client that did not wait.
    fn gone(&self, outcome: CacheOutcome, notes: &mut LogNotes) -> CacheAnswer {
        self.route.count(outcome, notes);
        proxy::note_client_gone(&self.route.proxy, notes);
        CacheAnswer::Ready(Ok(Answer::Nothing(Nothing::client_gone())))
    }

    /// Waits for what another has asked for; `None` if that is no good for those who came so late.
    async fn joined(&self, fetch: &Fetch) -> Option<Fetched> {
        let is_late = fetch.is_growing();
        let known = fetch.known(&self.open.fetches);
        let limit = self.route.proxy.timeout().saturating_mul(WAITS);
        let known = timeout(limit, known).await.unwrap_or(FetchState::Alone);
        if let FetchState::Growing(arriving) = &known
            && is_late
            && !stored_response::is_fresh(&arriving.0)
        {
            // It was good for requests that came before it arrived, and has to be validated for others, unless it may be used
            // meanwhile: until its rest is here there is nothing to ask about.
            if !arriving.1.is_whole() {
                let usable = stored_response::usable(&arriving.0, SystemTime::now());
                return matches!(usable, Use::WhileRevalidating).then(|| Fetched::from(known));
            }
            // Bytes that are written behind its answer may wait for a disk that is slow, and clients do not.
            let limit = if arriving.1.is_in_memory() { limit.min(WRITTEN_SOON) } else { limit };
            return timeout(limit, fetch.ended()).await.is_ok().then_some(Fetched::Again);
        }
        Some(Fetched::from(known))
    }

    /// Returns the answer from an object that arrives; `None` if the store has to be asked again.
    #[expect(clippy::too_many_arguments, reason = "what is known of one request")]
    fn fetched(
        &self,
        fetched: Fetched,
        outcome: CacheOutcome,
        reason: &'static str,
        stale: Option<Rc<ReadyObject>>,
        asked: &CacheRequest,
        request: &Request<'_>,
        notes: &mut LogNotes,
    ) -> Option<CacheAnswer> {
        let collapsed = if outcome == CacheOutcome::Collapsed { "; collapsed" } else { "" };
        Some(match fetched {
            Fetched::Again => return None,
            Fetched::Validated(trace) => {
                notes.upstream = trace.map(|it| *it).or(notes.upstream.take());
                return None;
            }
            Fetched::Growing(arriving, _place, trace) => {
                notes.upstream = trace.map(|it| *it).or(notes.upstream.take());
                let (head, body) = &*arriving;
                // If it was given up before, there is another to come.
                if outcome == CacheOutcome::Collapsed && body.is_broken() {
                    return None;
                }
                let head = &*at_hand::as_passed_on(self.route, head);
                if !asked.fits(&request.head, &head.vary) {
                    return Some(CacheAnswer::Pass("vary-miss", None));
                }
                let device = device(self.disks, self.open);
                let patience = self.route.proxy.timeout().saturating_mul(WAITS);
                let kept = StoredResponse::arriving(head, body, device, patience);
                let stored = if body.is_kept() { "; stored" } else { "" };
                let status = format!("fwd={reason}{stored}{collapsed}");
                let Some(response) = self.route.answer_from(&kept, request, &status) else {
                    return Some(CacheAnswer::Pass(PRECONDITION, None));
                };
                // Not the one that lets it arrive: without a reader it would end.
                if outcome == CacheOutcome::Collapsed
                    && matches!(body, FetchBody::InFile { has_ranges: true, .. })
                    && let Ok(Response { body: Body::Growing(growing), .. }) = &response
                    && growing.is_far()
                {
                    return Some(CacheAnswer::Pass("bypass; detail=range", stale));
                }
                self.route.count(outcome, notes);
                response.into()
            }
            Fetched::Alone(Some((mut response, trace))) => {
                notes.upstream = Some(*trace);
                self.route.count(outcome, notes);
                buffer_response(&self.route.proxy, &mut response, request.client.host());
                let response = self.route.proxy.incoming(*response, Asker::Many(&asked.target));
                let response = with_status(response, &format!("fwd={reason}"));
                CacheAnswer::Ready(Ok(response.into()))
            }
            Fetched::Alone(None) => CacheAnswer::Pass(reason, stale),
            Fetched::Failed(status, trace) => {
                notes.upstream = Some(*trace);
                let stale = stale.filter(|it| it.is_current());
                match stale.and_then(|object| self.route.stale(&object, request, notes)) {
                    Some(answer) => answer.into(),
                    None => {
                        self.route.count(outcome, notes);
                        let error = HttpError::from(status);
                        CacheAnswer::Ready(Err(refused(error, &format!("fwd={reason}{collapsed}"))))
                    }
                }
            }
        })
    }

    async fn find(
        &self,
        asked: &Arc<CacheRequest>,
        look: &ObjectLook<'_>,
        sought: Sought,
    ) -> Found<Rc<ReadyObject>> {
        let route = self.route;
        let files = self.files;
        let (object, met) = match sought {
            Sought::NotYet if look.known.is_nothing() => return Found::Nothing,
            Sought::NotYet => {
                let met = at_hand::meet(route, files, asked, look);
                let value_of = |name: &str| asked.value(name);
                (at_hand::find(route, files, asked, look, &value_of, met), met)
            }
            Sought::Waits(met) => (None, met),
            Sought::Object(object) => return Found::Object(object),
        };
        if let Some(object) = object {
            return Found::Object(object);
        }
        match self.find_on_thread(asked, look.device()).await {
            Found::Object(found) => {
                Found::Object(at_hand::made_ready(route, files, asked, look, *found, met))
            }
            Found::Others => Found::Others,
            Found::Nothing => Found::Nothing,
            Found::Unknown => Found::Unknown,
        }
    }

    async fn find_on_thread(
        &self,
        asked: &Arc<CacheRequest>,
        device: &Arc<Device>,
    ) -> Found<Box<FoundObject>> {
        let store = Arc::clone(&self.open.store);
        let this = Arc::clone(asked);
        let (memory, (_, wall)) = (self.files.memory().cloned(), self.files.now());
        let pace = Arc::clone(device);
        let look = move || {
            let value_of = |name: &str| this.value(name);
            let find = || FoundObject::find(&store, this.key(), &value_of, memory);
            let (found, waited) = disk::waited(find);
            if let Some(found) = found? {
                // Where a device cannot say what is in memory, this is what proves that it is quick.
                pace.took(waited);
                return Ok(Found::Object(Box::new(found)));
            }
            let marker = store.marker(this.key())?.map(|marker| marker.head);
            let vary =
                marker.filter(|it| stored_response::still_varies(it, wall)).map(|it| it.vary);
            let names = vary.into_iter().flatten().map(|(name, _)| name).collect();
            Ok(if this.is_others(names) { Found::Others } else { Found::Nothing })
        };
        match self.disks.within(ANSWER_TIME_MAX).wait_for(device, look).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                self.route.failed(&error);
                Found::Nothing
            }
            Err(why) => {
                self.route.unanswered(why);
                Found::Unknown
            }
        }
    }

    /// Lets what is asked for arrive, or joins another for whom it does.
    fn begin(
        &self,
        asked: &Arc<CacheRequest>,
        request: &Request<'_>,
        validated: Option<&ReadyObject>,
        may_be_stale: bool,
        place: Option<Rc<Counted>>,
        is_ahead: bool,
    ) -> Miss {
        let joined = self.open.fetches.join(asked.fetch_key(), &self.open.store);
        let arriving = match joined {
            Ok(fetch) => return Miss::Joined(fetch),
            Err(arriving) => arriving,
        };
        let mut fields = asked.seen.clone();
        fields.extend(
            validated.into_iter().flat_map(|object| stored_response::validators(&object.head)),
        );
        let client = request.client.host();
        let network = client.network();
        let outgoing = self.route.proxy.shared_request(&asked.target, client, &fields);
        let Some(outgoing) = outgoing else { return Miss::Impossible };
        let (leader, fetched) = oneshot::channel();
        let fetch = arriving.fetch();
        let fetching = Fetching {
            route: Arc::clone(self.route),
            open: self.open.clone(),
            device: device(self.disks, self.open),
            disks: Disks::new(ANSWER_TIME_MAX),
            pool: Rc::clone(self.pool),
            asked: Arc::clone(asked),
            outgoing,
            validated: validated.map(|object| ObjectVersion::of(&object.head)),
            may_be_stale,
            will_do: may_be_stale && (!is_ahead || validated.is_some_and(is_good_later)),
            place,
            is_ahead,
            arriving,
            network,
            reservation: None,
            begun: Instant::now(),
            shared: self.pool.share(),
        };
        spawn_local(fetching.run(leader));
        Miss::Leads(fetch, fetched)
    }
}

/// The fate of a request that the store cannot answer.
enum Miss {
    Joined(Arc<Fetch>),
    Leads(Arc<Fetch>, oneshot::Receiver<Fetched>),
    Impossible,
}

/// True if an object may be used after an error even when its time to be used while it is validated is over.
fn is_good_later(object: &ReadyObject) -> bool {
    let times = &object.head.times;
    times.stale_if_error > times.stale_while_revalidate
}

/// The word of `Cache-Status` on requests with a condition that does not hold for what is kept.
const PRECONDITION: &str = "request; detail=precondition";

/// The number of times the store is asked for one request: an object that was validated may be gone again.
const ROUNDS_MAX: usize = 4;

/// The number of times a server's time for its next byte is waited by those who wait for another's request: it may have to be
/// connected to, and asked twice.
const WAITS: u32 = 4;

/// The time a client may wait for an object to be written that is in memory already.
const WRITTEN_SOON: Duration = Duration::from_secs(1);
