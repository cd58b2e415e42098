//! The handler of files: remembered ones at once, others after a look at the file system.

mod methods;
mod objects;
mod programs;
mod there;
mod tries;

pub use methods::allow;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kettle_config::Limits;
use kettle_exchange::error_page::{self, ErrorPage, ErrorPages, HttpError};
use kettle_exchange::request::{Head, Program, Request};
use kettle_exchange::response::{Body, Response, ResponseFields};
use kettle_http::target::Target;
use kettle_http::{Method, negotiate, range};
use kettle_runtime::clock::{Clock, CoarseClock, OnceAMinute};
use kettle_runtime::disk::{DiskDeadline, Disks};
use kettle_runtime::encoder::EncoderPermits;
use kettle_runtime::metrics::WorkerMetrics;
use rustix::io::Errno;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::current_roots::RootLookup;
use super::entry::{Entry, Look, Mark};
use super::file_route::FileRoute;
use super::find::Finder;
use super::listing::{CONTENT_SECURITY_POLICY, Listing, View, write_html, write_json};
use super::locate::{self, Found, LocateOutcome};
use super::marks::Marks;
use super::open_cache::{KeyRef, OpenCache, Remembered};
use super::precompressed::CodingPreference;
use super::root::Root;
use crate::redirect::{path_and_query, redirect};

/// The files of a worker. All its connections share them.
pub struct Files {
    clock: Box<dyn Clock>,
    cache: RefCell<OpenCache>,
    marks: RefCell<Marks>,
    finder: Finder,
    revalidate: Duration,
    error_pages: RefCell<ErrorPages>,
    looks: RefCell<there::Looks>,
    programs: RefCell<programs::KnownPrograms>,
    /// Bounds how often it is said that one cannot be read: clients choose how often that happens.
    warning: OnceAMinute,
    /// When files were last closed that nobody asked for.
    released: Cell<Duration>,
    /// The time a listing may wait for others that its client does not take.
    patience: Duration,
    metrics: Arc<WorkerMetrics>,
}

/// The answer of files to a request.
#[derive(Debug)]
pub enum FileAnswer {
    /// This.
    Response(Response),
    /// The file that answers for a folder is another route's, by this path.
    Elsewhere(String),
    /// An application runs this.
    Program(Box<Program>),
    /// No file is there, and a backend answers then.
    Missing,
}

impl Files {
    /// Files of which nothing is remembered yet.
    #[must_use]
    pub fn new(limits: &Limits, metrics: Arc<WorkerMetrics>, encoders: EncoderPermits) -> Self {
        Self::with_clock(limits, metrics, encoders, Box::new(CoarseClock))
    }

    /// The same with another source of time.
    #[must_use]
    pub fn with_clock(
        limits: &Limits,
        metrics: Arc<WorkerMetrics>,
        encoders: EncoderPermits,
        clock: Box<dyn Clock>,
    ) -> Self {
        let marks = Marks::beside(limits.hot_memory_bytes);
        let hot_memory_bytes = limits.hot_memory_bytes.saturating_sub(marks.bytes());
        Self {
            clock,
            cache: RefCell::new(OpenCache::new(limits.open_files, hot_memory_bytes)),
            marks: RefCell::new(marks),
            finder: Finder::new(limits, encoders),
            revalidate: limits.revalidate,
            error_pages: RefCell::default(),
            looks: RefCell::default(),
            programs: RefCell::new(programs::known()),
            warning: OnceAMinute::default(),
            released: Cell::default(),
            patience: limits.write_timeout,
            metrics,
        }
    }

    /// Returns the disks on which the files lie.
    #[must_use]
    pub fn disks(&self) -> &Disks {
        self.finder.disks()
    }

    /// The permits of encoders.
    #[must_use]
    pub fn encoders(&self) -> &EncoderPermits {
        self.finder.encoders()
    }

    /// Forgets all files, so that none stays open for a configuration that is gone.
    pub fn forget(&self) {
        self.forget_entries();
        self.finder.forget_roots();
        self.error_pages.borrow_mut().forget();
        self.looks.borrow_mut().clear();
    }

    fn forget_entries(&self) {
        self.cache.borrow_mut().clear();
        self.programs.borrow_mut().clear();
        self.metrics.open_files(0);
    }

    /// The answer from a file that was looked at within the period of revalidation; `None` if it
    /// takes a look at the file system, or is an error. `path` is that of the request's target.
    pub fn ready(&self, route: &FileRoute, path: &str, request: &Request<'_>) -> Option<Response> {
        let head = &*request.head;
        if route.tries.is_some() || !matches!(head.method(), Method::Get | Method::Head) {
            return None;
        }
        self.remembered(route, key(route, route.below(path)?, request), head)?.ok()
    }

    fn remembered(
        &self,
        route: &FileRoute,
        key: KeyRef<'_>,
        head: &Head,
    ) -> Option<Result<Response, HttpError>> {
        let entry = self.remembered_file(key)?;
        let look = entry.checked.get();
        let age = self.clock.monotonic().saturating_sub(look.at);
        if age >= self.revalidate || look.generation != route.generation.now() {
            return None;
        }
        // The rest of one content must not follow the beginning of another, nor may a small file be another than its hash says.
        if (range::requested(head).is_some() || key.by_sendfile) && !entry.is_unchanged() {
            return None;
        }
        let response = entry.respond(head, &*self.clock);
        if response.is_ok() {
            self.metrics.cache_hit();
        }
        Some(response)
    }

    fn remembered_file(&self, key: KeyRef<'_>) -> Option<Rc<Entry>> {
        match self.cache.borrow().find(key)? {
            Remembered::File(entry) => Some(entry),
            Remembered::Object(_) => None,
        }
    }

    /// Answers a request, looking at the file system. Its target's path is another than `asked`, which clients know, where a
    /// rewrite leads to it.
    ///
    /// # Errors
    /// The status to answer with instead.
    pub async fn respond(
        &self,
        route: &Arc<FileRoute>,
        target: Target<'_>,
        asked: &str,
        request: &Request<'_>,
    ) -> Result<FileAnswer, HttpError> {
        let refused = allow(request.head.method(), &route.configured, route.answers_options);
        match refused {
            None => self.look_up(route, target, asked, request).await,
            Some(refused) if !route.takes_all_methods => refused.map(FileAnswer::Response),
            Some(refused) => match self.look_up(route, target, asked, request).await? {
                FileAnswer::Response(_) => refused.map(FileAnswer::Response),
                other => Ok(other),
            },
        }
    }

    async fn look_up(
        &self,
        route: &Arc<FileRoute>,
        target: Target<'_>,
        asked: &str,
        request: &Request<'_>,
    ) -> Result<FileAnswer, HttpError> {
        let head = &*request.head;
        let below = route.below(target.path).ok_or(404_u16)?;
        if let Some(tries) = &route.tries {
            return self.try_each(route, tries, target, (asked, below), request).await;
        }
        let is_rewritten = asked != target.path;
        let falls_back = || route.falls_back_for(target.path) && route.falls_back_for(asked);
        let Some(relative) = below.strip_prefix('/') else {
            return add_slash(route, target, asked).map(FileAnswer::Response);
        };
        if target.has_encoded_slash && route.leaves_missing {
            return self.leave_missing(route, relative, request).await;
        }
        let key = key(route, below, request);
        let (found, root, look) = self.lookup(route, relative, key).await?;
        let response = match found {
            LocateOutcome::Elsewhere(path) => return Ok(FileAnswer::Elsewhere(path)),
            LocateOutcome::Program { path, path_info } => {
                return programs::answer(route, relative, path, path_info);
            }
            LocateOutcome::File(found) => self.answer(route, key, found, &root, look, head).await,
            LocateOutcome::SlashMissing => add_slash(route, target, asked),
            // From the path that was asked for its links would lead elsewhere.
            LocateOutcome::Directory if route.listing && !is_rewritten => {
                self.list(route, relative, target, request).await
            }
            LocateOutcome::Directory if route.falls_back_for_folders && falls_back() => {
                return self.fall_back(route, relative, request).await;
            }
            LocateOutcome::Directory | LocateOutcome::Refused(404) | LocateOutcome::Link
                if route.leaves_missing =>
            {
                return self.leave_missing(route, relative, request).await;
            }
            LocateOutcome::Directory => Err(403.into()),
            LocateOutcome::Refused(404) | LocateOutcome::Link if falls_back() => {
                return self.fall_back(route, relative, request).await;
            }
            LocateOutcome::Link => Err(403.into()),
            LocateOutcome::Refused(status) => Err(status.into()),
            LocateOutcome::WouldBlock | LocateOutcome::Beyond(_) => Err(503.into()),
        };
        response.map(FileAnswer::Response)
    }

    /// Answers from a file that was found. For a method that only programs take, nothing is read of it.
    async fn answer(
        &self,
        route: &FileRoute,
        key: KeyRef<'_>,
        found: Found,
        root: &Arc<Root>,
        look: Look,
        head: &Head,
    ) -> Result<Response, HttpError> {
        if let Some(refused) = allow(head.method(), &route.configured, route.answers_options) {
            self.finder.release(found);
            return refused;
        }
        let entry = self.entry(route, key, found, root, look).await.map_err(locate::status_of)?;
        entry.respond(head, &*self.clock)
    }

    /// Returns the lookup. If the root was replaced, all remembered entries are dropped first, by any worker.
    fn accept_lookup<T>(
        &self,
        route: &FileRoute,
        generation: u64,
        lookup: Result<RootLookup<T>, Errno>,
    ) -> Result<RootLookup<T>, HttpError> {
        let lookup = lookup.map_err(locate::status_of)?;
        if lookup.is_root_new {
            self.forget_entries();
            route.generation.tell((), lookup.root.identity(), generation, true);
        }
        Ok(lookup)
    }

    /// A site's own page for an error, if it can be read. As long as it stays the same, all responses have one copy of it; as long as
    /// its disk does not answer, the last one. The deadline is that of the answer.
    pub async fn error_page(&self, path: &Path, deadline: DiskDeadline) -> Option<ErrorPage> {
        let now = self.clock.monotonic();
        let known = self.error_pages.borrow().find(path, now, self.revalidate);
        if known.is_some() {
            return known;
        }
        let device = self.error_pages.borrow().device_of(path);
        let content_type = error_page::content_type_of(path);
        let read = self.finder.page(path.to_owned(), content_type, device, deadline).await;
        let mut pages = self.error_pages.borrow_mut();
        let (page, error) = match read {
            Ok(Ok((page, device))) => return Some(pages.remember(path, page, device, now)),
            Ok(Err(error)) => (None, error),
            Err(why) => (pages.outdated(path, self.clock.monotonic()), io::Error::other(why)),
        };
        if self.warning.is_due(Instant::now()) {
            tracing::warn!(path = %path.display(), %error, "cannot read the error page");
        } else {
            tracing::debug!(path = %path.display(), %error, "cannot read the error page");
        }
        page
    }

    /// The remembered entry if it is still the file that was found, otherwise a new one.
    ///
    /// It is true for as long as its root is, so that all files of a root are looked at again
    /// together: a new release is not mixed with what is remembered of the old one.
    async fn entry(
        &self,
        route: &FileRoute,
        key: KeyRef<'_>,
        mut found: Found,
        root: &Arc<Root>,
        mut look: Look,
    ) -> Result<Rc<Entry>, Errno> {
        let remembered = self.remembered_file(key);
        let identity = found.facts.identity;
        let is_other = remembered.as_ref().is_some_and(|entry| entry.identity != identity);
        let what = (key.path, found.facts.coding);
        look.generation = route.generation.tell(what, identity, look.generation, is_other);
        let is_still = |entry: &Rc<Entry>| {
            entry.is_still(&found.facts) && (!found.is_readable || self.stays(key, entry))
        };
        let is_known = remembered.is_some();
        if let Some(entry) = remembered.filter(is_still) {
            entry.checked.set(look);
            self.finder.release(found);
            self.metrics.cache_hit();
            return Ok(entry);
        }
        self.metrics.cache_miss();
        let preference = key.preference;
        let deadline = found.deadline;
        let wall = self.clock.wall();
        found.by_sendfile = key.leaves(identity.bytes) && self.finder.is_at_hand(&found);
        let is_for_all = key.by_sendfile;
        let key = KeyRef { by_sendfile: found.by_sendfile, ..key };
        let (is_met_before, is_kept) = self.meet(route, is_known, &mut found);
        let (facts, content, mark) = self.finder.content(found).await?;
        if let (Mark::Hash(hash), false) = (mark, is_met_before)
            && identity.has_settled(wall)
        {
            self.marks.borrow_mut().note(&identity, hash);
        }
        let (facts, content, is_final) =
            self.finder.compressed(route, preference, facts, content, deadline).await;
        let mut entry = Entry::new(route, &facts, (content, mark), self.clock.wall(), look);
        entry.is_for_all = is_for_all;
        let entry = Rc::new(entry);
        if is_kept && is_final && self.finder.is_current(route, root) {
            let mut cache = self.cache.borrow_mut();
            cache.remember(key, Remembered::File(Rc::clone(&entry)));
            self.metrics.open_files(cache.open_files() as u64);
        }
        Ok(entry)
    }

    /// True if an entry's bytes stay where they are: they are in memory, nothing has room for them, or sendfile takes them.
    fn stays(&self, key: KeyRef<'_>, entry: &Entry) -> bool {
        key.leaves(entry.content.bytes()) || !self.finder.has_room_for(&entry.content)
    }

    /// Meets a file that is read: says if its hash is known, and if it is to be remembered. A file that is compressed here
    /// always is, and so is one that takes the place of what its path named before.
    fn meet(&self, route: &FileRoute, is_known: bool, found: &mut Found) -> (bool, bool) {
        let identity = &found.facts.identity;
        if self.finder.memory().is_some_and(|memory| memory.is_for(identity.bytes)) {
            let bytes = identity.bytes;
            found.meeting = self.marks.borrow_mut().meet(identity);
            let cache = self.cache.borrow();
            let is_worth = || match found.by_sendfile {
                true => cache.is_worth_descriptor(found.meeting.ago),
                false => cache.is_worth_memory(bytes, found.meeting.ago),
            };
            found.is_kept = is_known || !route.compression.codings.is_empty() || is_worth();
        }
        (found.meeting.hash.is_some(), found.is_kept)
    }

    async fn list(
        &self,
        route: &Arc<FileRoute>,
        relative: &str,
        target: Target<'_>,
        request: &Request<'_>,
    ) -> Result<Response, HttpError> {
        let method = request.head.method();
        if let Some(refused) = allow(method, &route.configured, route.answers_options) {
            return refused;
        }
        // Of a client that takes none of them, no more than a few lie in memory.
        let permit = match request.body_permits() {
            Some(permits) => {
                let permit = timeout(self.patience, Arc::clone(permits).acquire_owned()).await;
                Some(permit.ok().and_then(Result::ok).ok_or(503_u16)?)
            }
            None => None,
        };
        let view = View::from_query(target.query);
        let path = target.path.to_owned();
        let is_json = negotiate::prefers_json(request.head.header_values("accept"));
        let (write, content_type): (fn(&Listing, &str, &View) -> String, _) = match is_json {
            true => (write_json, "application/json"),
            false => (write_html, "text/html; charset=utf-8"),
        };
        let listed = move |listing: &Listing, view: &View| write(listing, &path, view);
        let generation = route.generation.now();
        let now = self.clock.monotonic();
        let seen = self.finder.list(route, relative, now, view, listed).await;
        let page = self.accept_lookup(route, generation, seen)?.found;
        let page = Page { text: page.map_err(locate::status_of)?.into(), _permit: permit };
        let mut fields = ResponseFields::ready(route.configured.all().clone());
        fields = fields.with("content-type", content_type);
        for (name, value) in LISTING_FIELDS {
            if !route.configured.has(name) {
                fields = fields.with(name, value);
            }
        }
        Ok(Response::new(200, fields.with("vary", "accept"), Body::Memory(Bytes::from_owner(page))))
    }
}

/// A listing, with its place among those that are in memory for one client.
struct Page {
    text: Box<str>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Page {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Files").finish_non_exhaustive()
    }
}

fn key<'k>(route: &FileRoute, below: &'k str, request: &Request<'_>) -> KeyRef<'k> {
    let head = &*request.head;
    let preference = if route.offered.is_empty() {
        CodingPreference::NONE
    } else {
        let preference =
            CodingPreference::negotiate(&route.offered, head.header_values("accept-encoding"));
        // A body that is compressed here may come out otherwise another time: no range of it is sent.
        match !route.compression.codings.is_empty()
            && (!route.compression.is_for(head) || range::requested(head).is_some())
        {
            true => preference.on_disk(&route.codings),
            false => preference,
        }
    };
    let is_compressed =
        !route.compression.codings.is_empty() && preference.codings().next().is_some();
    let by_sendfile = request.is_sent_from_page_cache() && !is_compressed;
    KeyRef { route: route.number, preference, by_sendfile, path: below }
}

/// Sends the client to the path of the folder, relative to which its links are meant: as nginx does, to the one that a rewrite has made
/// of the path that was `asked` for.
///
/// # Errors
/// 404 where clients may not know that path, and where a rewrite would take the slash off again for ever.
fn add_slash(route: &FileRoute, target: Target<'_>, asked: &str) -> Result<Response, HttpError> {
    let is_rewritten = asked != target.path;
    let comes_back = asked.strip_suffix('/') == Some(target.path);
    match is_rewritten && (route.is_internal || comes_back) {
        true => Err(404.into()),
        false => Ok(redirect(301, &path_and_query(target, "/"), &route.configured)),
    }
}

/// The headers that keep the names in a listing from doing anything, unless the operator says otherwise.
const LISTING_FIELDS: [(&str, &str); 2] =
    [("content-security-policy", CONTENT_SECURITY_POLICY), ("x-content-type-options", "nosniff")];
