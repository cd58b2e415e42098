//! Routes that pass requests to a backend, streaming both ways, nothing kept in between.
//!
//! `outgoing` writes the request, `program` that for a program, `buffering` stores its body where that is wanted, `upload` sends it, `answer` waits
//! for the response with an eye on the client, and
//! `incoming` makes of it what the client gets.

mod answer;
mod buffering;
mod incoming;
mod outgoing;
mod prefix;
mod program;
mod question;
mod rewrites;
mod shared;
mod upload;

use std::sync::Arc;
use std::time::Duration;

use kettle_config::{
    AccelRedirect, BackendHost, EarlyHints, FieldTemplate, ForwardAuth, NamePattern,
    RequestBuffering, Route, Site,
};
use kettle_exchange::response::ConfiguredFields;
use kettle_http::HttpVersion;
use kettle_http::target::SlashRuns;
use kettle_tls::names::asked_name;
use kettle_upstream::{Retries, Upstream};

use crate::words::WordSource;

pub(crate) use answer::note_client_gone;
pub use answer::respond;
pub use buffering::BodyStore;
use buffering::Replaced;
pub(crate) use buffering::buffer_response;
pub(crate) use incoming::Asker;
use prefix::PrefixChange;
use program::ProgramRoute;
use rewrites::Rewrites;
pub use shared::SharedTarget;

/// A prefix and the backend that answers below it.
#[derive(Debug)]
pub struct ProxyRoute {
    /// The upstream that answers.
    pub upstream: Arc<Upstream>,
    /// The operator's fields.
    pub configured: ConfiguredFields,
    /// The `host` that servers are sent, if not that of the request.
    host: Option<BackendHost>,
    /// Names of the site, in lower case. The first that is exact stands for whatever no name fits.
    names: Vec<String>,
    /// Those that are regular expressions.
    patterns: Vec<NamePattern>,
    /// The operator's fields for servers. Without values: no server gets the client's.
    request_headers: Vec<(String, Vec<FieldTemplate>)>,
    /// The parts that servers get in place of what clients send.
    replaced: Replaced,
    /// Names, in lower case, of fields that a service says in place of clients.
    copied: Vec<String>,
    timeout: Duration,
    request_body_bytes_max: u64,
    buffering: RequestBuffering,
    /// True if responses are taken at the speed of their servers; none if it is theirs to say.
    takes_at_once: Option<bool>,
    /// Where its servers may lead in place of an answer.
    accel_redirect: AccelRedirect,
    /// For which answers and failures of a server the next is asked.
    retries: Retries,
    /// True if clients may change to another protocol.
    takes_upgrades: bool,
    /// True if a path may have an encoded slash, which servers get as it was sent.
    pub takes_encoded_slashes: bool,
    early_hints: EarlyHints,
    /// True if a request says nothing but its path and that this is signed.
    pub(crate) is_signed: bool,
    words: WordSource,
    /// The way servers get slashes in a row.
    slash_runs: SlashRuns,
    /// The parameters of programs, if servers run them.
    program: Option<Box<ProgramRoute>>,
    /// The difference of their paths from those of clients.
    prefix: Option<PrefixChange>,
    /// The parts that clients get in place of what servers say; most have nothing.
    rewrites: Option<Rewrites>,
    /// Names of fields of responses that are ours to send, or for us alone, in lower case.
    own_fields: Vec<String>,
}

impl ProxyRoute {
    /// True if its servers run programs.
    pub fn runs_programs(&self) -> bool {
        self.program.is_some()
    }

    /// The route of a configuration.
    pub fn new(site: &Site, route: &Route, upstream: Arc<Upstream>, words: WordSource) -> Self {
        let mut own_fields = Vec::new();
        if site.hsts.is_some() {
            own_fields.push("strict-transport-security".to_owned());
        }
        if route.cors.is_some() {
            own_fields.extend(CORS.map(str::to_owned));
        }
        let tags = route.cache.as_ref().and_then(|cache| cache.tags.as_ref());
        own_fields.extend(tags.map(|name| name.to_ascii_lowercase()));
        let auth = route.forward_auth.iter();
        let copied: Vec<String> =
            auth.flat_map(ForwardAuth::copied).map(|(_, name)| name.to_ascii_lowercase()).collect();
        let mut request_headers = route.request_headers.clone();
        request_headers.extend(copied.iter().map(|name| (name.clone(), Vec::new())));
        let protocol = upstream.backend.settings.protocol;
        let runs_programs = protocol.runs_programs();
        let texts = site.names.iter().filter(|name| site.pattern(name).is_none());
        Self {
            upstream,
            configured: ConfiguredFields::of(site, route),
            host: route.backend_host.clone(),
            names: texts.map(|name| asked_name(&name.value)).collect(),
            patterns: site.names.iter().filter_map(|name| site.pattern(name).cloned()).collect(),
            request_headers,
            replaced: Replaced::of(route),
            copied,
            timeout: route.timeout,
            request_body_bytes_max: route.request_body,
            buffering: route.request_buffering,
            takes_at_once: route.response_buffering.or(runs_programs.then_some(true)),
            accel_redirect: route.accel_redirect,
            retries: Retries::new(&route.retry_on),
            takes_upgrades: route.websocket && !runs_programs,
            takes_encoded_slashes: route.encoded_slashes,
            early_hints: route.early_hints,
            is_signed: route.signed_urls.is_some(),
            words,
            slash_runs: slash_runs(route),
            program: runs_programs.then(|| Box::new(ProgramRoute::of(site, route, protocol))),
            prefix: PrefixChange::of(route).filter(|_| !runs_programs),
            rewrites: Rewrites::of(route),
            own_fields,
        }
    }

    /// True if a client that speaks this version gets interim responses. HTTP/1.0 has none.
    pub(crate) fn passes_interim(&self, version: HttpVersion) -> bool {
        match self.early_hints {
            EarlyHints::Off => false,
            EarlyHints::Http2 => version == HttpVersion::Http2,
            EarlyHints::All => version != HttpVersion::Http10,
        }
    }
}

/// A stored response has one name, and the signed path is the one that was decided by. Otherwise they are as they were sent
/// behind the prefix: a server that compares paths as they are would not find this prefix in `/a//b`. Nor may a path begin with
/// two in any case, since some servers read `//host/path` (RFC 3986 §4.2), and find a path there that may be another route's.
fn slash_runs(route: &Route) -> SlashRuns {
    let is_changed = PrefixChange::of(route).is_some();
    match route.merge_slashes || route.cache.is_some() || route.signed_urls.is_some() || is_changed
    {
        true => SlashRuns::Merged,
        false => {
            // Of an expression nobody knows which segments it went by.
            let Some(place) = route.place().filter(|_| route.regex.is_none()) else {
                return SlashRuns::Merged;
            };
            let segments = place.text().split('/').filter(|segment| !segment.is_empty()).count();
            SlashRuns::AsSentBehind(segments.max(1))
        }
    }
}

/// The headers that a route with CORS settings sends itself.
const CORS: [&str; 3] = [
    "access-control-allow-origin",
    "access-control-allow-credentials",
    "access-control-expose-headers",
];
