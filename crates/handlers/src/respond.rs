//! From a request to its response: site, route, handler, and a page for what went wrong.
//!
//! A file looked at a moment ago is answered without a system call or a wait; everything else
//! takes the boxed way, so that the usual case does not carry its size around.

mod compress;
mod walk;

use std::borrow::Cow;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;

use kettle_config::Expires;
use kettle_exchange::error_page::{self, ErrorPage};
use kettle_exchange::request::{FileQuestion, Head, Presented, Request, as_read_otherwise};
use kettle_exchange::response::{
    Answer, CACHE_CONTROL, ConfiguredFields, LogNotes, Response, forbidding, make_private,
    set_expires,
};
use kettle_http::forwarded::Scheme;
use kettle_http::target::Target;
use kettle_kernel::bug;
use kettle_runtime::access_log::RequestId;
use kettle_runtime::clock::{Clock as _, CoarseClock};
use kettle_runtime::disk::DiskDeadline;
use kettle_runtime::spool::Spool;
use kettle_upstream::Pool;

use crate::files::handler::Files;
use crate::guard::{CacheControl, Guards};
use crate::proxy_cache::{self, Begun};
use crate::route::before::Beforehand;
use crate::route::{Handler, Route, Router, Site};
use crate::words::{Asked, Words};
use compress::compress;
use walk::{
    Failure, Outcome, configured_of, fixed_answer, is_slash_refused, is_whole_of, look, path_of,
    respond_slowly, take_query,
};

/// The parts with which a worker answers requests.
pub struct Responder {
    /// Files that were opened a moment ago, and the disks they are on.
    pub files: Files,
    /// The counts of clients' requests.
    pub guards: Guards,
    /// Connections to servers of backends.
    pub pool: Rc<Pool>,
    /// The store of bodies that a server gets as a whole.
    pub spool: Arc<Spool>,
}

/// The progress of a request before it waited for anything.
struct Start<'s> {
    /// The route that is to answer.
    route: Option<&'s Route>,
    /// The path by which it was found, if that is not the one that was asked for.
    path: Option<String>,
    /// The progress with what a store may have.
    begun: Option<Box<Begun>>,
    /// The last of what comes before routes that has done anything.
    behind: Option<usize>,
    /// The reason for the path, if it is not the one that was asked for.
    led: Led,
    /// The outcome, if no route is asked. Boxed: most requests carry none.
    outcome: Option<Box<Result<Answer, Failure>>>,
}

/// The reason for a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Led {
    /// The client.
    Not,
    /// A file, or what a server handed over.
    ByFile,
    /// An error. The route that has answered the path that was asked for says nothing of its page.
    ByError,
}

impl<'s> Start<'s> {
    /// At the route of the path that was asked for.
    fn at(route: Option<&'s Route>) -> Self {
        Self { route, path: None, begun: None, behind: None, led: Led::Not, outcome: None }
    }

    /// At a path that files led to: an index, a fallback or a page.
    fn led(path: String, led: Led) -> Self {
        Self { path: Some(path), led, ..Self::at(None) }
    }
}

/// Answers a request: the one seam between protocols and handlers.
pub async fn respond(responder: &Responder, router: &Router, request: &mut Request<'_>) -> Answer {
    let files = &responder.files;
    let head = &request.head;
    if let Some(response) = router.challenge(head) {
        return response.into();
    }
    let presented = request.presented();
    let site = router.site(head.host_bytes(), presented);
    let (true, Some(site)) = (head.has_target(), site) else {
        return Box::pin(respond_without_site(files, router, request)).await.into();
    };
    let mut start = Start::at(None);
    if site.refuses_slash_runs && head.has_slash_runs() {
        start.outcome = Some(Box::new(Err(400_u16.into())));
    }
    if let Some(wanted) = site.go_on(&mut start, request) {
        site.go_on_knowing(files, &mut start, wanted, request).await;
    }
    let head = &request.head;
    let Ok(asked_path) = head.path() else { return lost(request) };
    let path = start.path.as_deref().unwrap_or(asked_path);
    let route = start.route;
    let ready = match route {
        _ if start.outcome.is_some() || is_slash_refused(head, route) => None,
        Some(Route { handler: Handler::Files(route), rules: None, .. })
            if !head.is_extended_connect() =>
        {
            files.ready(route, path, request)
        }
        // An error that is kept may have a page in its place.
        Some(Route {
            handler: Handler::Cached(cached),
            rules: None,
            intercepts_errors: false,
            ..
        }) if route.is_some_and(|it| is_whole_of(site, it, path, Asked::of(request))) => {
            let mut notes = LogNotes::default();
            match proxy_cache::ready(cached, files, path, request, &mut notes) {
                Ok(response) => {
                    let mut response = Response { notes: Some(Box::new(notes)), ..response };
                    compress(route, files, head, &mut response);
                    Some(response)
                }
                Err(so_far) => {
                    start.begun = Some(Box::new(so_far));
                    None
                }
            }
        }
        _ => None,
    };
    if let Some(mut response) = ready {
        add_said(site, (route, route), None, request, &mut response);
        return Answer::Response(response);
    }
    let slowly = Box::pin(respond_slowly(responder, site, start, request));
    let Outcome { mut answer, route, said_by, control } = slowly.await;
    refuse_success(&mut answer, request);
    if let Some(response) = answer.response_mut() {
        add_said(site, (route, said_by), control, request, response);
        add_cookies(request, response);
    }
    match &mut answer {
        Answer::Response(_) => {}
        Answer::Tunnel(response, upgraded) => upgraded.log = response.log.clone(),
        Answer::Nothing(nothing) => nothing.log = site.log(route).clone(),
    }
    answer
}

impl Site {
    /// Asks what comes before all routes, and looks for the route then. A wanted fact on files stops it: it goes on from there
    /// once that is known.
    fn go_on<'s>(
        &'s self,
        start: &mut Start<'s>,
        request: &mut Request<'_>,
    ) -> Option<FileQuestion> {
        while start.outcome.is_none() {
            let asked = Asked::of(request);
            // Most sites ask nothing before, and each request comes by here.
            if self.before().is_empty() {
                let Ok(path) = path_of(asked.head, start.path.as_deref()) else { break };
                start.route = self.route(path, asked);
                return request.files.take_wanted();
            }
            let Ok(target) = asked.head.target() else { break };
            let target = Target { path: start.path.as_deref().unwrap_or(target.path), ..target };
            let first = self.first_before(target, asked, start);
            if let Some(wanted) = request.files.take_wanted() {
                return Some(wanted);
            }
            let Some((number, outcome)) = first else {
                start.route = self.route(target.path, asked);
                return request.files.take_wanted();
            };
            // A part of the path that another program reads would be lost with it.
            if let (Ok(Beforehand::Rewritten(_)), Some(Cow::Owned(plain))) =
                (&outcome, as_read_otherwise(target.path))
                && !self.before().take_alike(target.path, &plain, asked, self.words())
            {
                start.outcome = Some(Box::new(Err(400_u16.into())));
                break;
            }
            start.behind = Some(number);
            start.outcome = Some(Box::new(match outcome {
                // The rest is held against that path.
                Ok(Beforehand::Rewritten(rewritten)) => {
                    start.path = Some(take_query(rewritten, request));
                    continue;
                }
                Ok(Beforehand::Redirect(response)) => Ok(response.into()),
                Ok(Beforehand::Fixed(fixed)) => {
                    fixed_answer(&fixed, target.path, asked, self.words())
                }
                Err(error) => Err(error.into()),
            }));
        }
        None
    }

    /// The same, with what is wanted of files.
    async fn go_on_knowing<'s>(
        &'s self,
        files: &Files,
        start: &mut Start<'s>,
        wanted: FileQuestion,
        request: &mut Request<'_>,
    ) {
        let mut wanted = Some(wanted);
        while let Some(next) = wanted {
            if let Err(error) = Box::pin(look(files, self, next, request)).await {
                start.route = None;
                start.outcome = Some(Box::new(Err(error.into())));
                return;
            }
            wanted = self.go_on(start, request);
        }
    }
}

/// Adds cookies of a service that let the client in. A response that has one is for this client, whatever is said of the rest.
fn add_cookies(request: &mut Request<'_>, response: &mut Response) {
    let cookies = request.vouched.as_mut().map(|it| mem::take(&mut it.cookies));
    let Some(cookies) = cookies.filter(|it| !it.is_empty()) else { return };
    cookies.iter().for_each(|cookie| response.fields.add("set-cookie", cookie));
    response.fields = make_private(mem::take(&mut response.fields));
}

/// Lets no success answer a request for a tunnel that is none: its client would take it for the server's side (RFC 8441 §5).
fn refuse_success(answer: &mut Answer, request: &Request<'_>) {
    if request.head.is_extended_connect()
        && let Answer::Response(response) = answer
        && (200..300).contains(&response.status)
    {
        let refused = error_page::plain(&501.into(), &request.client.request_id);
        let notes = response.notes.take();
        let held = mem::take(&mut response.held);
        *response = Response { notes, held, ..refused };
    }
}

/// Answers what is for no site: by a redirect to where it is, or by the page of whom the connection is with.
async fn respond_without_site(files: &Files, router: &Router, request: &Request<'_>) -> Response {
    let head = &request.head;
    let id = &request.client.request_id;
    // A client that came by HTTPS to a proxy in front would come back for ever.
    let is_plain = request.client.scheme == Scheme::Http;
    if let Some(redirect) = router.https_for(head).filter(|_| is_plain && head.has_target()) {
        let response = redirect.respond(head, id);
        return response.unwrap_or_else(|error| error_page::plain(&error, id));
    }
    let status = head.target().err().map_or(421, |error| error.status());
    refuse(files, router, Some(head), request.presented(), status, id).await
}

/// The answer to a request whose target is gone.
fn lost(request: &Request<'_>) -> Answer {
    let bug = bug!("a target stays one");
    tracing::error!(%bug, "a request got no answer");
    error_page::plain(&500.into(), &request.client.request_id).into()
}

/// Adds what a site and the routes of a request, that which it came to and that which answers, say of each of their responses.
fn add_said(
    site: &Site,
    (route, said_by): (Option<&Route>, Option<&Route>),
    control: Option<CacheControl>,
    request: &Request<'_>,
    response: &mut Response,
) {
    add_by_words(site, said_by, request, response);
    of_route(site, said_by, control, request, response);
    // Behind all that the operator says, whatever that was written with.
    control.inspect(|control| control.say(response));
    of_site(site, route, response);
}

/// Adds what a route says of each of its responses. A rate that the response has stays.
fn of_route(
    site: &Site,
    route: Option<&Route>,
    control: Option<CacheControl>,
    request: &Request<'_>,
    response: &mut Response,
) {
    let Some(route) = route else { return };
    let expires = route.expires.as_ref().filter(|_| control != Some(CacheControl::NoStore));
    let by_map = match expires {
        Some(Expires::ByMap(template)) => {
            let said = words_of(site, request, response).fill(template);
            let said = said.as_deref().and_then(|it| std::str::from_utf8(it).ok());
            said.and_then(Expires::said)
        }
        _ => None,
    };
    if let Some(expires) = by_map.as_ref().or(expires) {
        let configured = configured_of(site, Some(route));
        let is_private = control == Some(CacheControl::Private);
        set_expires(response, expires, is_private, (configured, CoarseClock.wall()));
    }
    if let (Some(rate), None) = (route.rate, &response.rate) {
        response.rate = Some(Box::new(rate));
    }
}

/// Returns the values of words on a response.
fn words_of<'w>(site: &'w Site, request: &'w Request<'_>, response: &'w Response) -> Words<'w> {
    Words { answer: Some(response), ..Asked::of(request).words(site.words()) }
}

/// Adds what a site says of each of its responses.
fn of_site(site: &Site, route: Option<&Route>, response: &mut Response) {
    response.tx_path = site.path;
    response.log = site.log(route).clone();
    response.fields.set_tls_only(site.hsts_line.clone());
}

/// Adds the operator's fields that this request fills in, unless the response says them itself.
fn add_by_words(
    site: &Site,
    route: Option<&Route>,
    request: &Request<'_>,
    response: &mut Response,
) {
    let configured = configured_of(site, route);
    let fields = configured.by_words(response.status);
    if fields.is_empty() {
        return;
    }
    let words = words_of(site, request, response);
    let own =
        fields.iter().filter(|(name, _)| !(configured.has(name) && response.fields.has(name)));
    // All say what the response is by itself.
    let all: Vec<(&String, Vec<Vec<u8>>)> = own
        .map(|(name, values)| (name, values.iter().filter_map(|it| words.fill(it)).collect()))
        .collect();
    for (name, filled) in all {
        let filled = filled.into_iter();
        if name == CACHE_CONTROL && response.status >= 300 {
            let said = filled.filter_map(|it| forbidding(std::str::from_utf8(&it).ok()?));
            said.for_each(|it| response.fields.add(name, it.as_bytes()));
            continue;
        }
        for value in filled {
            response.fields.add(name, &value);
        }
    }
}

/// Answers what is no request, or none for any site, as the site would whose name it has; or else as the site of the connection
/// does, which is that of the name it was made with, or the default one. A site that demands a certificate answers nobody
/// without.
pub async fn refuse(
    files: &Files,
    router: &Router,
    head: Option<&Head>,
    presented: Presented<'_>,
    status: u16,
    id: &RequestId,
) -> Response {
    let asked = head.and_then(|head| head.host_bytes());
    let asked = asked.and_then(|host| router.site(Some(host), presented));
    let unknown = head.filter(|_| status == 421).and_then(|head| head.host());
    let page = match unknown.filter(|host| router.is_unknown(host)) {
        Some(host) => ErrorPage::unknown_host(host, id),
        None => ErrorPage::plain(status, id),
    };
    let Some(site) = asked.or_else(|| router.site(None, presented)) else {
        return error_page::response(&status.into(), page, &ConfiguredFields::default());
    };
    let deadline = files.disks().deadline();
    let own = own_page(files, site, None, status, deadline).await;
    let mut response = error_page::response(&status.into(), own.unwrap_or(page), &site.configured);
    of_site(site, None, &mut response);
    response
}

/// The operator's own page for an error, if there is one that can be read.
async fn own_page(
    files: &Files,
    site: &Site,
    route: Option<&Route>,
    status: u16,
    deadline: DiskDeadline,
) -> Option<ErrorPage> {
    let page = site.error_page(route, status)?.file()?;
    files.error_page(&page.value, deadline).await
}

#[cfg(test)]
pub(crate) mod tests;
