//! From a request head to a response: site, route, file, or a refusal.
//!
//! A file looked at a moment ago is answered without a system call or a wait; everything else
//! takes the boxed way, so that the usual case does not carry its size around.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use kettle_config::Limits;
use kettle_http::target::{Form, Target, parse_target};
use kettle_http::uri::percent_encode_path;
use kettle_http::{Method, RequestHead, negotiate};

use crate::answer::{Body, Response};
use crate::clock::{Clock, CoarseClock, DateLine};
use crate::disk::Disks;
use crate::error_page::{self, Page, Refusal};
use crate::files::entry::Entry;
use crate::files::find::{Finder, Sighting};
use crate::files::listing::{CONTENT_SECURITY_POLICY, Listing, View, write_html, write_json};
use crate::files::locate::{self, Found, Located};
use crate::files::open_cache::{KeyRef, OpenCache};
use crate::files::precompressed::Preference;
use crate::files::respond::{Unfit, respond};
use crate::files::root::Root;
use crate::files::rules::Rules;
use crate::head::{self, Ending, ExtraLines};
use crate::metrics::WorkerMetrics;
use crate::route::{Router, Site};

/// Answers the requests of a worker. All its connections share one.
pub struct Answerer {
    clock: Box<dyn Clock>,
    date_line: DateLine,
    cache: RefCell<OpenCache>,
    finder: Finder,
    revalidate: Duration,
    metrics: Arc<WorkerMetrics>,
    no_extra: ExtraLines,
}

impl Answerer {
    /// An answerer that remembers nothing yet.
    #[must_use]
    pub fn new(limits: &Limits, metrics: Arc<WorkerMetrics>) -> Self {
        Self::with_clock(limits, metrics, Box::new(CoarseClock))
    }

    /// The same with another source of time.
    #[must_use]
    pub fn with_clock(limits: &Limits, metrics: Arc<WorkerMetrics>, clock: Box<dyn Clock>) -> Self {
        let keeps_bytes = limits.hot_memory_bytes > 0;
        Self {
            clock,
            date_line: DateLine::new(),
            cache: RefCell::new(OpenCache::new(limits.open_files, limits.hot_memory_bytes)),
            finder: Finder::new(
                Disks::new(limits.disk_timeout),
                keeps_bytes.then_some(limits.hot_file_bytes),
                limits.revalidate,
            ),
            revalidate: limits.revalidate,
            metrics,
            no_extra: ExtraLines::default(),
        }
    }

    /// Answers a request from a file that was looked at within the period of revalidation, or
    /// refuses it; `None` if the answer takes a look at the file system.
    ///
    /// `server_name` is the name the connection was made with, `is_secure` whether it is
    /// encrypted, `closes` whether it ends with this response. The buffer is used for the head.
    pub fn answer_at_once(
        &self,
        routes: &Router,
        request: &RequestHead<'_>,
        server_name: Option<&str>,
        is_secure: bool,
        closes: bool,
        buffer: &mut Vec<u8>,
    ) -> Option<Response> {
        match self.exchange(routes, request, server_name, is_secure, closes, buffer) {
            Ok(exchange) => self.answer_from_cache(&exchange, buffer),
            Err(refused) => Some(*refused),
        }
    }

    /// Answers a request, looking at the file system where it must.
    ///
    /// The parameters are those of [`answer_at_once`](Self::answer_at_once).
    pub async fn answer(
        &self,
        routes: &Router,
        request: &RequestHead<'_>,
        server_name: Option<&str>,
        is_secure: bool,
        closes: bool,
        mut buffer: Vec<u8>,
    ) -> Response {
        let exchange =
            match self.exchange(routes, request, server_name, is_secure, closes, &mut buffer) {
                Ok(exchange) => exchange,
                Err(refused) => return *refused,
            };
        if let Some(response) = self.answer_from_cache(&exchange, &mut buffer) {
            return response;
        }
        Box::pin(self.answer_in_time(&exchange, buffer)).await
    }

    /// Finds out what a request is for.
    fn exchange<'e>(
        &self,
        routes: &'e Router,
        request: &'e RequestHead<'e>,
        server_name: Option<&str>,
        is_secure: bool,
        closes: bool,
        buffer: &mut Vec<u8>,
    ) -> Result<Exchange<'e>, Box<Response>> {
        let refuse = |status, ending: &Ending<'_>, buffer: &mut Vec<u8>| {
            Box::new(self.refuse_plainly(status, request, ending, std::mem::take(buffer)))
        };
        // Who sends a target without meaning may mean something else by what follows, too.
        let target = parse_target(request)
            .map_err(|error| refuse(error.status(), &self.ending(request, true), buffer))?;
        let ending = self.ending(request, closes);
        let site =
            routes.site(request.host(), server_name).ok_or_else(|| refuse(421, &ending, buffer))?;
        let ending =
            ending.with_hsts(site.hsts_line.as_deref().filter(|_| is_secure)).with_path(site.path);
        Ok(Exchange { request, target, site, ending })
    }

    /// Sends the client of a plain listener to the same address over HTTPS.
    #[must_use]
    pub fn redirect(
        &self,
        request: &RequestHead<'_>,
        https_port: u16,
        status: u16,
        mut buffer: Vec<u8>,
    ) -> Response {
        let ending = self.ending(request, true);
        match https_location(request, https_port) {
            Ok(location) => redirect(status, &location, &self.no_extra, &ending, &mut buffer),
            Err(status) => self.refuse_plainly(status, request, &ending, buffer),
        }
    }

    /// Tells a client that speaks plain HTTP to an HTTPS listener where to go.
    #[must_use]
    pub fn refuse_plain_http(
        &self,
        request: &RequestHead<'_>,
        https_port: u16,
        mut buffer: Vec<u8>,
    ) -> Response {
        let ending = self.ending(request, true);
        let page = match https_location(request, https_port) {
            Ok(location) => Page::plain_http(&location),
            Err(status) => return self.refuse_plainly(status, request, &ending, buffer),
        };
        let is_head = request.method == Method::Head;
        error_page::write(&400.into(), page, is_head, &self.no_extra, &ending, &mut buffer)
    }

    /// What the files lie on.
    #[must_use]
    pub fn disks(&self) -> &Disks {
        self.finder.disks()
    }

    /// Forgets all files, so that none stays open for a configuration that is gone.
    pub fn forget_files(&self) {
        self.forget_entries();
        self.finder.forget_roots();
    }

    fn forget_entries(&self) {
        self.cache.borrow_mut().clear();
        self.metrics.open_files(0);
    }

    fn ending(&self, request: &RequestHead<'_>, closes: bool) -> Ending<'static> {
        Ending::new(self.date_line.at(self.clock.wall()), Some(request), closes)
    }

    /// The answer from a file that was looked at within the period of revalidation.
    fn answer_from_cache(&self, exchange: &Exchange<'_>, buffer: &mut Vec<u8>) -> Option<Response> {
        if !matches!(exchange.request.method, Method::Get | Method::Head) {
            return None;
        }
        let (rules, below) = exchange.route()?;
        let entry = self.cache.borrow().find(exchange.key(rules, below))?;
        let age = self.clock.monotonic().saturating_sub(entry.checked.get());
        if age >= self.revalidate {
            return None;
        }
        let response =
            respond(&entry, exchange.request, &*self.clock, &exchange.ending, buffer).ok()?;
        self.metrics.cache_hit();
        Some(response)
    }

    async fn answer_in_time(&self, exchange: &Exchange<'_>, mut buffer: Vec<u8>) -> Response {
        match self.answer_or_refuse(exchange, &mut buffer).await {
            Ok(response) => response,
            Err(refusal) => self.refuse(exchange, &refusal, buffer).await,
        }
    }

    async fn answer_or_refuse(
        &self,
        exchange: &Exchange<'_>,
        buffer: &mut Vec<u8>,
    ) -> Result<Response, Refusal> {
        match exchange.request.method {
            Method::Get | Method::Head => {}
            Method::Options => return Ok(exchange.allow(buffer)),
            Method::Other(_) => {
                return Err(Refusal { status: 405, line: Some(("allow", METHODS.to_owned())) });
            }
        }
        let (rules, below) = exchange.route().ok_or(404)?;
        let Some(relative) = below.strip_prefix('/') else {
            return Ok(exchange.add_slash(rules, buffer));
        };
        let key = exchange.key(rules, below);
        let now = self.clock.monotonic();
        let sighting = self.finder.find(rules, relative, key.preference, now).await;
        let sighting = sighting.map_err(locate::status_of)?;
        if sighting.is_root_new {
            self.forget_entries();
        }
        let Sighting { found, root, looked, .. } = sighting;
        match found {
            Located::File(found) => {
                let entry = self.entry(rules, key, found, &root, looked).await;
                respond(&entry, exchange.request, &*self.clock, &exchange.ending, buffer)
                    .map_err(refusal)
            }
            Located::SlashMissing => Ok(exchange.add_slash(rules, buffer)),
            Located::Directory if rules.listing => {
                let view = View::from_query(exchange.target.query);
                let path = exchange.target.path.as_ref().to_owned();
                let is_json = negotiate::prefers_json(exchange.request.header_values("accept"));
                let write = if is_json { write_json } else { write_html };
                let listed = move |listing: &Listing, view: &View| write(listing, &path, view);
                let page = self.finder.list(rules, relative, now, view, listed).await;
                let page = page.map_err(locate::status_of)?;
                Ok(exchange.list(rules, page, is_json, buffer))
            }
            Located::Directory => Err(403.into()),
            Located::Refused(status) => {
                // Out of descriptors or a failing disk: the file may well be there again.
                if status < 500 {
                    self.cache.borrow_mut().forget(key);
                }
                Err(status.into())
            }
            Located::WouldBlock => Err(503.into()),
        }
    }

    /// The remembered entry if it is still the file that was found, otherwise a new one.
    ///
    /// It is true for as long as its root is, so that all files of a root are looked at again
    /// together: a new release is not mixed with what is remembered of the old one.
    async fn entry(
        &self,
        rules: &Rules,
        key: KeyRef<'_>,
        found: Found,
        root: &Arc<Root>,
        looked: Duration,
    ) -> Rc<Entry> {
        let remembered = self.cache.borrow().find(key);
        if let Some(entry) = remembered.filter(|entry| entry.is_still(&found.facts)) {
            entry.checked.set(looked);
            self.finder.release(found);
            self.metrics.cache_hit();
            return entry;
        }
        self.metrics.cache_miss();
        let (facts, content) = self.finder.content(found).await;
        let entry = Rc::new(Entry::new(rules, &facts, content, self.clock.wall(), looked));
        if self.finder.is_current(rules, root) {
            let mut cache = self.cache.borrow_mut();
            cache.remember(key, Rc::clone(&entry));
            self.metrics.open_files(cache.open_files() as u64);
        }
        entry
    }

    /// Refuses with the site's own page, if it has one that can be read.
    async fn refuse(
        &self,
        exchange: &Exchange<'_>,
        refusal: &Refusal,
        mut buffer: Vec<u8>,
    ) -> Response {
        let extra = match exchange.route() {
            Some((rules, _)) => &rules.extra,
            None => &exchange.site.extra,
        };
        let mut page = None;
        if let Some(path) = exchange.site.error_pages.get(&refusal.status) {
            let content_type = error_page::content_type_of(path);
            match self.finder.page(path.clone(), content_type).await {
                Ok(read) => page = Some(read),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "cannot read the error page");
                }
            }
        }
        let page = page.unwrap_or_else(|| Page::plain(refusal.status));
        let is_head = exchange.request.method == Method::Head;
        error_page::write(refusal, page, is_head, extra, &exchange.ending, &mut buffer)
    }

    /// Refuses a request that belongs to no site.
    fn refuse_plainly(
        &self,
        status: u16,
        request: &RequestHead<'_>,
        ending: &Ending<'_>,
        mut buffer: Vec<u8>,
    ) -> Response {
        let is_head = request.method == Method::Head;
        let page = Page::plain(status);
        error_page::write(&status.into(), page, is_head, &self.no_extra, ending, &mut buffer)
    }
}

impl fmt::Debug for Answerer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Answerer").finish_non_exhaustive()
    }
}

/// A request that found its site.
struct Exchange<'e> {
    request: &'e RequestHead<'e>,
    target: Target<'e>,
    site: &'e Site,
    ending: Ending<'e>,
}

impl Exchange<'_> {
    /// The rules for the path, and what of it lies below their prefix: nothing, or a slash and
    /// more.
    fn route(&self) -> Option<(&Arc<Rules>, &str)> {
        self.site.route(&self.target.path)
    }

    fn key<'k>(&self, rules: &Rules, below: &'k str) -> KeyRef<'k> {
        let preference = if rules.codings.is_empty() {
            Preference::NONE
        } else {
            Preference::negotiate(&rules.codings, self.request.header_values("accept-encoding"))
        };
        KeyRef { rules: rules.number, preference, path: below }
    }

    /// The answer to OPTIONS, for a path or for the server as a whole.
    fn allow(&self, buffer: &mut Vec<u8>) -> Response {
        let extra = match self.route() {
            Some((rules, _)) if self.target.form != Form::Asterisk => &rules.extra,
            _ => &self.site.extra,
        };
        head::begin(buffer, 204);
        buffer.extend_from_slice(extra.without_caching());
        head::line(buffer, "allow", METHODS.as_bytes());
        self.ending.finish(204, Body::Empty, buffer)
    }

    /// Sends the client to the path of the folder, relative to which its links are meant.
    fn add_slash(&self, rules: &Rules, buffer: &mut Vec<u8>) -> Response {
        let location = path_and_query(&self.target, "/");
        redirect(301, &location, &rules.extra, &self.ending, buffer)
    }

    fn list(&self, rules: &Rules, page: String, is_json: bool, buffer: &mut Vec<u8>) -> Response {
        let content_type = if is_json { "application/json" } else { "text/html; charset=utf-8" };
        head::begin(buffer, 200);
        buffer.extend_from_slice(rules.extra.all());
        head::line(buffer, "content-type", content_type.as_bytes());
        for (name, value) in LISTING_FIELDS {
            if !rules.extra.has(name) {
                head::line(buffer, name, value.as_bytes());
            }
        }
        head::line(buffer, "vary", b"accept");
        head::line_u64(buffer, "content-length", page.len() as u64);
        let is_head = self.request.method == Method::Head;
        let body = if is_head { Body::Empty } else { Body::Memory(page.into()) };
        self.ending.finish(200, body, buffer)
    }
}

/// The address of the same thing over HTTPS, or the status to answer with if there is none.
fn https_location(request: &RequestHead<'_>, port: u16) -> Result<String, u16> {
    let target = parse_target(request).map_err(|error| error.status())?;
    // HTTP/1.0 need not say which host it wants, and nothing else does.
    let host = request.host().ok_or(400_u16)?;
    let port = if port == HTTPS_PORT { String::new() } else { format!(":{port}") };
    Ok(format!("https://{host}{port}{}", path_and_query(&target, "")))
}

/// The path of a target with something after it, and its query as it came, as a reference that stays on
/// the host: a normal path never begins with two slashes, and nothing in it but letters, digits,
/// slashes and a few marks is left unencoded.
fn path_and_query(target: &Target<'_>, after_path: &str) -> String {
    let mut reference = percent_encode_path(target.path.as_bytes());
    reference.push_str(after_path);
    if let Some(query) = target.query {
        reference.push('?');
        reference.push_str(query);
    }
    reference
}

fn redirect(
    status: u16,
    location: &str,
    extra: &ExtraLines,
    ending: &Ending<'_>,
    buffer: &mut Vec<u8>,
) -> Response {
    head::begin(buffer, status);
    buffer.extend_from_slice(extra.without_caching());
    head::line(buffer, "location", location.as_bytes());
    head::line_u64(buffer, "content-length", 0);
    ending.finish(status, Body::Empty, buffer)
}

fn refusal(unfit: Unfit) -> Refusal {
    match unfit {
        Unfit::PreconditionFailed => 412.into(),
        Unfit::RangeNotSatisfiable { bytes } => {
            Refusal { status: 416, line: Some(("content-range", format!("bytes */{bytes}"))) }
        }
    }
}

/// What keeps the names in a listing from doing anything, unless the operator says otherwise.
const LISTING_FIELDS: [(&str, &str); 2] =
    [("content-security-policy", CONTENT_SECURITY_POLICY), ("x-content-type-options", "nosniff")];
/// What a file can be asked.
const METHODS: &str = "GET, HEAD, OPTIONS";
/// The port that goes without saying.
const HTTPS_PORT: u16 = 443;

#[cfg(test)]
mod tests;
