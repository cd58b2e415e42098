//! The questions of a route about a request before anything is looked for: where it comes from, and which user it is.
//!
//! The rules are the route's and shared by all workers; what is remembered of clients is a worker's own.

mod basic;
mod cors;
mod denied;
mod networks;
mod password;
mod signed;
mod users;

use std::fmt;
use std::sync::Arc;

pub use denied::DeniedFiles;
pub use users::UsersMistake;

use basic::{BasicAuth, Verdicts};
use cors::Cors;
use kettle_exchange::error_page::HttpError;
use kettle_exchange::request::{Head, Request};
use kettle_exchange::response::{ConfiguredFields, Held, LogNotes, Response};
use kettle_runtime::clock::{Clock, CoarseClock};
use kettle_runtime::rate_limit::{Exceeded, RateLimit};
use networks::Networks;
use signed::SignedUrls;

/// A request that a route's rules refuse.
#[derive(Debug)]
pub struct Refusal {
    /// The word that the log has for it.
    pub reason: &'static str,
    /// The answer.
    pub error: HttpError,
}

impl Refusal {
    /// The refusal for a reason.
    pub fn new(reason: &'static str, error: impl Into<HttpError>) -> Self {
        Self { reason, error: error.into() }
    }
}

/// Which requests a route takes.
#[derive(Debug)]
pub struct Guard {
    networks: Option<Networks>,
    rate: Option<RateLimit>,
    denied: Option<DeniedFiles>,
    cors: Option<Cors>,
    signed: Option<SignedUrls>,
    basic: Option<BasicAuth>,
    /// True if caches are told for whom responses are.
    marks_private: bool,
}

impl Guard {
    /// That of a route; none if everybody may ask it. The counts of the `same` route go on.
    ///
    /// # Errors
    /// The fault of its file of users.
    pub fn load(
        route: &kettle_config::Route,
        same: Option<&Self>,
    ) -> Result<Option<Self>, UsersMistake> {
        let counted = same.and_then(|same| same.rate.as_ref());
        let guard = Self {
            networks: Networks::of(route),
            rate: route.rate_limit.as_ref().map(|settings| RateLimit::new(settings, counted)),
            denied: DeniedFiles::of(route),
            cors: route.cors.as_ref().map(Cors::new),
            signed: route
                .signed_urls
                .as_ref()
                .map(|settings| SignedUrls::load(settings, route))
                .transpose()?,
            basic: route.basic_auth.as_ref().map(BasicAuth::load).transpose()?,
            marks_private: route.mark_private,
        };
        let Self { networks, rate, denied, cors, signed, basic, .. } = &guard;
        let has_any = networks.is_some()
            || rate.is_some()
            || denied.is_some()
            || cors.is_some()
            || signed.is_some()
            || basic.is_some();
        Ok(has_any.then_some(guard))
    }

    /// Lets a request pass, by this path if not the one that was asked for, takes its place among those of its client, and notes its user. A preflight, which carries no
    /// credentials, is answered here.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn admit(
        &self,
        guards: &Guards,
        configured: &ConfiguredFields,
        path: Option<&str>,
        request: &mut Request<'_>,
        held: &mut Held,
        notes: &mut LogNotes,
    ) -> Result<Option<Response>, Refusal> {
        if self.networks.as_ref().is_some_and(|networks| !networks.allow(request.client.host())) {
            return Err(Refusal::new("network", 403));
        }
        if let Some(rate) = &self.rate {
            let now = guards.clock.monotonic();
            rate.count(request.client.host(), now, &mut held.client_place).map_err(refusal)?;
        }
        if let Ok(asked_path) = request.head.path() {
            self.refuse_file(path.unwrap_or(asked_path))?;
        }
        let preflight =
            self.cors.as_ref().and_then(|cors| cors.preflight(&request.head, configured));
        if preflight.is_some() {
            return Ok(preflight);
        }
        if let Some(signed) = &self.signed {
            let checked = signed.check(request, guards.clock.wall());
            checked.map_err(|why| Refusal::new(why, 403))?;
        }
        if let Some(basic) = &self.basic {
            let user = basic.check(guards, request).await?;
            request.user = Some(Arc::clone(&user));
            notes.user = Some(user);
        }
        Ok(None)
    }

    /// Refuses a path that the route denies: the one that was asked for, or what a rewrite made of it.
    ///
    /// # Errors
    /// 403 if that is so.
    pub fn refuse_file(&self, path: &str) -> Result<(), Refusal> {
        if self.denied.as_ref().is_some_and(|denied| denied.have(path)) {
            return Err(Refusal::new("file", 403));
        }
        Ok(())
    }

    /// True if it takes only paths that were signed.
    pub fn is_signed(&self) -> bool {
        self.signed.is_some()
    }

    /// Takes away what a backend says of other pages, where the route says it: browsers take none of two answers.
    pub fn take_over(&self, response: &mut Response) {
        if self.cors.is_some() {
            let fields = std::mem::take(&mut response.fields);
            response.fields = fields.without("access-control-");
        }
    }

    /// Returns the `Cache-Control` of a response that this route refuses, or lets not everybody have, if nothing else is said.
    pub fn cache_control(&self, is_refused: bool) -> Option<CacheControl> {
        let keeps_out = self.networks.is_some() || self.signed.is_some() || self.basic.is_some();
        match is_refused {
            _ if !self.marks_private => None,
            true => Some(CacheControl::NoStore),
            // A cache knows nothing of networks, passwords and signatures.
            false => keeps_out.then_some(CacheControl::Private),
        }
    }

    /// True if it says which pages of other origins may read responses.
    pub fn has_cors(&self) -> bool {
        self.cors.is_some()
    }

    /// Adds what browsers are told of other pages that may read a response.
    pub fn add_cors(&self, head: &Head, response: &mut Response) {
        if let Some(cors) = &self.cors {
            response.fields = cors.add(head, std::mem::take(&mut response.fields));
        }
    }
}

/// A word to caches. The later is the stricter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheControl {
    /// One client may keep it.
    Private,
    /// Nobody may.
    NoStore,
}

impl CacheControl {
    /// Says it, unless something else is said. The word of the operator, or of a backend, about caches stays.
    pub fn say(self, response: &mut Response) {
        let (control, is_said) = match self {
            Self::Private => ("private", response.fields.has("cache-control")),
            Self::NoStore => ("no-store", response.fields.says_no_store()),
        };
        if !is_said {
            let fields = std::mem::take(&mut response.fields);
            response.fields = fields.with("cache-control", control);
        }
    }
}

/// The refusal of a client that asks too much.
fn refusal(exceeded: Exceeded) -> Refusal {
    match exceeded {
        Exceeded::Client { seconds } => {
            let fields = vec![("retry-after", seconds.to_string())];
            Refusal::new("rate", HttpError { status: 429, fields })
        }
        Exceeded::Crowd => Refusal::new("clients-busy", 503),
    }
}

/// The memory of a worker for clients.
pub struct Guards {
    clock: Box<dyn Clock>,
    verdicts: Verdicts,
}

impl Guards {
    /// Nothing remembered yet, by this clock.
    pub fn with_clock(clock: Box<dyn Clock>) -> Self {
        Self { clock, verdicts: Verdicts::new() }
    }
}

impl Default for Guards {
    fn default() -> Self {
        Self::with_clock(Box::new(CoarseClock))
    }
}

impl fmt::Debug for Guards {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Guards").finish_non_exhaustive()
    }
}
