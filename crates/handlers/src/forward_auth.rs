//! Routes that ask a service whether a request may go on (`auth_request` of nginx). Whatever is not a clear yes or no lets nobody in.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use kettle_config::Route;
use kettle_exchange::error_page::HttpError;
use kettle_exchange::request::{Request, Vouched, VouchedFields};
use kettle_exchange::response::{Body, ConfiguredFields, LogNotes, Response, ResponseFields};
use kettle_http::h1::response::ResponseHead;
use kettle_runtime::clock::{Clock as _, CoarseClock, OnceAMinute};
use kettle_tls::mac::{Mac, MacKey};
use kettle_upstream::{OutgoingRequest, Pool, Trace, UpstreamError, Upstreams, fetch};
use quick_cache::unsync::Cache;

use crate::guard::{CacheControl, Refusal};
use crate::proxy::ProxyRoute;
use crate::words::WordSource;

/// The service that a route asks.
#[derive(Debug)]
pub struct ForwardAuth {
    settings: Arc<kettle_config::ForwardAuth>,
    /// The way to it; a valid configuration has one.
    service: Option<ProxyRoute>,
    /// Names, in lower case, of the client's fields that it is sent.
    request_headers: Vec<String>,
    /// Which requests may go on without being asked about once more, where that is so.
    passed: Option<Remembered>,
    /// True if caches are told for whom responses are.
    marks_private: bool,
    /// The memory whether it was said lately that there is no answer.
    unreachable: OnceAMinute,
}

/// Why a request does not go on.
pub enum Stopped {
    /// The service says so, and what its client gets.
    Denied(Response),
    /// There is no answer, or the client gets another than the service's.
    Refused(Refusal),
    /// Its client has left.
    Gone,
}

enum ServiceAnswer {
    Yes {
        head: ResponseHead<Bytes>,
        fields: VouchedFields,
        cookies: Vec<Vec<u8>>,
    },
    No {
        head: ResponseHead<Bytes>,
        /// None if it is too long.
        body: Option<Bytes>,
    },
}

/// Why it says nothing.
enum Silent {
    Upstream(UpstreamError),
    TimedOut,
    /// An answer that is neither yes nor no.
    Status(u16),
}

impl From<UpstreamError> for Silent {
    fn from(error: UpstreamError) -> Self {
        Self::Upstream(error)
    }
}

impl ForwardAuth {
    /// That of a route, if it asks one.
    pub fn of(
        site: &kettle_config::Site,
        route: &Route,
        upstreams: &Upstreams,
        words: &WordSource,
    ) -> Option<Self> {
        let settings = route.forward_auth.as_ref()?;
        // No client tells it what it is to say, unless that is how clients say who they are.
        let copied = settings.copied().flat_map(|(from, to)| [from, to]);
        let copied = copied.map(str::to_ascii_lowercase).filter(|name| {
            let is_asked = settings.request_headers.iter().any(|it| it.eq_ignore_ascii_case(name));
            !is_asked && !CREDENTIALS.contains(&name.as_str())
        });
        let mut request_headers = settings.headers.clone();
        request_headers.extend(copied.map(|name| (name, Vec::new())));
        let way = Route {
            backend_host: settings.backend_host.clone(),
            request_headers,
            timeout: settings.timeout,
            ..Route::default()
        };
        let upstream = upstreams.find(&settings.backend);
        let service = upstream.map(|it| ProxyRoute::new(site, &way, Arc::clone(it), words.clone()));
        let names = settings.request_headers.iter().map(|it| it.to_ascii_lowercase());
        Some(Self {
            settings: Arc::new(settings.clone()),
            service,
            request_headers: names.collect(),
            passed: (!settings.cache.is_zero()).then(Remembered::default),
            marks_private: route.mark_private,
            unreachable: OnceAMinute::default(),
        })
    }

    /// Asks whether a request may go on, and notes what is said of it. Another route that asks the same of the request knows it then.
    ///
    /// # Errors
    /// [`Stopped`], also if nothing is said.
    pub async fn ask(
        &self,
        pool: &Rc<Pool>,
        configured: &ConfiguredFields,
        request: &mut Request<'_>,
        notes: &mut LogNotes,
    ) -> Result<(), Stopped> {
        if let Some(known) = request.vouched.as_ref().filter(|it| it.by == self.settings) {
            return match known.refused {
                Some(status) => Err(Stopped::Refused(Refusal::new(WORD, status))),
                None => Ok(()),
            };
        }
        let service = self.service.as_ref();
        let path = &self.settings.path;
        let question = service.and_then(|it| it.question(path, &self.request_headers, request));
        let (Some(service), Some(question)) = (service, question) else {
            // The request names no host, or more of it is for one hop than may be.
            self.note(request, Some(400), None);
            return Err(Stopped::Refused(Refusal::new(UNREACHABLE, 400)));
        };
        let tag = self.passed.as_ref().map(|passed| passed.key.hash(&[&question.head()]));
        if let Some(fields) = tag.as_ref().and_then(Remembered::find) {
            self.note(request, None, None);
            request.vouched.iter_mut().for_each(|it| it.fields = Arc::clone(&fields));
            return Ok(());
        }
        let begun = Instant::now();
        let asked = Box::pin(self.exchange(service, pool, &question));
        let asked = pin!(tokio::time::timeout(self.settings.timeout, asked));
        let said = request.body.while_there(asked).await;
        *notes.auth_time.get_or_insert_default() += begun.elapsed();
        let Ok(said) = said else { return Err(Stopped::Gone) };
        match said.unwrap_or(Err(Silent::TimedOut)) {
            Ok(ServiceAnswer::Yes { head, fields, cookies }) => {
                if let Some(tag) = tag {
                    Remembered::remember(tag, &fields, &cookies, self.settings.cache);
                }
                self.note(request, None, Some(head));
                if let Some(vouched) = &mut request.vouched {
                    vouched.fields = fields;
                    vouched.cookies.extend(cookies);
                }
                Ok(())
            }
            Ok(ServiceAnswer::No { head, body }) => {
                let denied = denied(&head, body, configured);
                self.note(request, Some(head.status()), Some(head));
                Err(denied)
            }
            Err(why) => {
                self.tell(&why);
                self.note(request, Some(503), None);
                Err(Stopped::Refused(Refusal::new(UNREACHABLE, 503)))
            }
        }
    }

    /// Returns the `Cache-Control` of a response behind it, if nothing else is said.
    pub fn cache_control(&self, is_refused: bool) -> Option<CacheControl> {
        let control = if is_refused { CacheControl::NoStore } else { CacheControl::Private };
        self.marks_private.then_some(control)
    }

    async fn exchange(
        &self,
        service: &ProxyRoute,
        pool: &Rc<Pool>,
        question: &OutgoingRequest,
    ) -> Result<ServiceAnswer, Silent> {
        let mut trace = Trace::default();
        let answer = fetch(&service.upstream, pool, question, &mut trace, |_| {}).await?;
        let head = answer.head;
        let mut body = answer.body;
        let status = head.status();
        let is_redirect = matches!(status, 301 | 302 | 303 | 307 | 308);
        let leads = head.header_values("location").count() == 1;
        let is_yes = matches!(status, 200..=299);
        if !(is_yes || matches!(status, 401 | 403) || is_redirect && leads) {
            return Err(Silent::Status(status));
        }
        // An answer that breaks off is none.
        let is_whole = poll_fn(|context| body.poll_whole(context, BODY_BYTES_MAX)).await?;
        if !is_yes {
            let body = is_whole.then(|| body.take_ahead());
            return Ok(ServiceAnswer::No { head, body });
        }
        let hop_by_hop = head.hop_by_hop();
        let copied = self.settings.copied().filter_map(|(from, to)| {
            let values = head.header_values(from).filter(|value| !value.is_empty());
            let values: Vec<&[u8]> = values.collect();
            let is_said = !values.is_empty() && !hop_by_hop.has(from.as_bytes());
            is_said.then(|| (to.to_ascii_lowercase(), values.join(&b", "[..])))
        });
        let cookies = head.header_values("set-cookie").map(<[u8]>::to_vec).collect();
        let fields = copied.collect();
        Ok(ServiceAnswer::Yes { head, fields, cookies })
    }

    /// Notes that it was asked, and what came of it. Cookies of a service that was asked before stay.
    fn note(
        &self,
        request: &mut Request<'_>,
        refused: Option<u16>,
        answer: Option<ResponseHead<Bytes>>,
    ) {
        let cookies = request.vouched.take().map(|it| it.cookies).unwrap_or_default();
        let by = Arc::clone(&self.settings);
        let fields = Arc::default();
        request.vouched = Some(Box::new(Vouched { by, refused, fields, cookies, answer }));
    }

    fn tell(&self, why: &Silent) {
        let backend = &*self.settings.backend;
        let why = match why {
            Silent::Upstream(error) => error.to_string(),
            Silent::TimedOut => "it took longer than `timeout`".to_owned(),
            Silent::Status(status) => format!("it answered with {status}"),
        };
        if self.unreachable.is_due(Instant::now()) {
            tracing::warn!(
                backend,
                why,
                "requests get 503, because the service of `forward_auth` does not say whether they may go on"
            );
        } else {
            tracing::debug!(backend, why, "the service of `forward_auth` did not answer");
        }
    }
}

/// Returns the part of a refusal that a client gets. A body that is too long is left out.
fn denied(
    head: &ResponseHead<Bytes>,
    body: Option<Bytes>,
    configured: &ConfiguredFields,
) -> Stopped {
    let status = head.status();
    let is_redirect = status < 400;
    let has_body = body.is_some();
    let ready = if is_redirect { configured.for_redirects() } else { configured.for_errors() };
    let names = PASSED_ON.iter().chain(OF_BODY.iter().filter(|_| has_body));
    let mut fields = ResponseFields::ready(ready.clone());
    for name in names {
        for value in head.header_values(name) {
            fields = fields.with_own(name, value);
        }
    }
    let body = body.filter(|bytes| !bytes.is_empty()).map_or(Body::Empty, Body::Memory);
    let response = Response::new(status, fields, body);
    match is_redirect || has_body {
        true => Stopped::Denied(response),
        false => Stopped::Refused(refusal_of(&response)),
    }
}

/// A refusal of a service as an error of ours, which may have a page.
pub fn refusal_of(response: &Response) -> Refusal {
    let values = PASSED_ON.iter().flat_map(|name| {
        let values = response.fields.values(name);
        values.map(|value| (*name, String::from_utf8_lossy(value).into_owned()))
    });
    let error = HttpError { status: response.status, fields: values.collect() };
    Refusal::new(WORD, error)
}

/// The memory of requests that may go on, of all routes together: its memory is the process's.
static KNOWN: LazyLock<Mutex<Cache<Mac, Known>>> =
    LazyLock::new(|| Mutex::new(Cache::new(PASSED_MAX)));

/// Requests of a route that may go on, by what would be asked about them.
#[derive(Debug)]
struct Remembered {
    /// The route's own: nobody else finds what it remembers, and after a reload nobody does. No field of a client's is kept.
    key: MacKey,
}

#[derive(Clone, Debug)]
struct Known {
    fields: VouchedFields,
    until: Duration,
}

impl Default for Remembered {
    fn default() -> Self {
        Self { key: MacKey::random() }
    }
}

impl Remembered {
    fn find(tag: &Mac) -> Option<VouchedFields> {
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(tag).cloned()?;
        (CoarseClock.monotonic() < known.until).then_some(known.fields)
    }

    /// Remembers what is short, and has no cookie, which is for one answer.
    fn remember(tag: Mac, fields: &VouchedFields, cookies: &[Vec<u8>], time: Duration) {
        let bytes: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
        if !cookies.is_empty() || bytes > FIELD_BYTES_MAX {
            return;
        }
        let known = Known { fields: Arc::clone(fields), until: CoarseClock.monotonic() + time };
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(tag, known);
    }
}

/// The log's word for a refusal of the service's,
pub const WORD: &str = "auth";
/// and for one in its place.
const UNREACHABLE: &str = "auth-unreachable";
/// Fields by which clients say who they are.
const CREDENTIALS: [&str; 2] = ["authorization", "cookie"];
/// The fields of a refusal that are passed on,
const PASSED_ON: [&str; 3] = ["location", "www-authenticate", "set-cookie"];
/// and what belongs to its body.
const OF_BODY: [&str; 3] = ["content-type", "content-encoding", "content-language"];
/// The longest body that is passed on.
const BODY_BYTES_MAX: u64 = 64 * 1_024;
/// Requests that are remembered, and the fields of one.
const PASSED_MAX: usize = 8_192;
const FIELD_BYTES_MAX: usize = 1_024;
