//! From a request to its response: site, route, handler, and a page for what went wrong.
//!
//! A file looked at a moment ago is answered without a system call or a wait; everything else
//! takes the boxed way, so that the usual case does not carry its size around.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use kettle_http::RequestError;
use kettle_http::forwarded::Scheme;
use kettle_http::target::{Form, Target};

use crate::access_log::RequestId;
use crate::disk::DiskDeadline;
use crate::error_page::{self, ErrorPage, HttpError};
use crate::files::handler::{Files, allow};
use crate::guard::{Guards, Refusal};
use crate::proxy::{self, BodyStore};
use crate::proxy_cache::{self, Begun};
use crate::request::{Head, Presented, Request, as_read_otherwise};
use crate::response::{Answer, ConfiguredFields, Held, LogNotes, Response};
use crate::route::{Handler, Route, Router, Site};
use crate::spool::Spool;
use crate::upstream::Pool;

/// What a worker answers requests with.
pub struct Responder {
    /// Files that were opened a moment ago, and the disks they are on.
    pub files: Files,
    /// Who asked how often.
    pub guards: Guards,
    /// Connections to servers of backends.
    pub pool: Rc<Pool>,
    /// Where bodies are stored that a server gets as a whole.
    pub spool: Arc<Spool>,
    /// True if the log's notes of each answer are lost on their way: all but the log must stay as it is.
    #[cfg(test)]
    pub(crate) forgets_notes: std::cell::Cell<bool>,
}

/// Answers a request: the one seam between protocols and handlers.
pub async fn respond(responder: &Responder, router: &Router, request: &mut Request<'_>) -> Answer {
    let files = &responder.files;
    let head = &request.head;
    let presented = request.presented();
    let site = router.site(head.host_bytes(), presented);
    let (Ok(target), Some(site)) = (head.target(), site) else {
        let id = &request.client.request_id;
        // A client that came by HTTPS to a proxy in front would come back for ever.
        let is_plain = request.client.scheme == Scheme::Http;
        if let Some(redirect) = router.https_for(head).filter(|_| is_plain && head.has_target()) {
            let response = redirect.respond(head, id);
            return response.unwrap_or_else(|error| error_page::plain(&error, id)).into();
        }
        let status = head.target().err().map_or(421, |error| error.status());
        return Box::pin(refuse(files, router, Some(head), presented, status, id)).await.into();
    };
    let route = site.route(target.path);
    let is_refused = target.has_encoded_slash
        && !route.is_some_and(|route| route.handler.takes_encoded_slashes());
    let mut begun = None;
    let ready = match route {
        _ if is_refused => None,
        Some(Route { handler: Handler::Files(route), rules: None, .. })
            if !head.is_extended_connect() =>
        {
            files.ready(route, target.path, head)
        }
        Some(Route { handler: Handler::Cached(cached), rules: None, .. })
            if route.is_some_and(|route| is_whole_of(site, route, target.path)) =>
        {
            let mut notes = LogNotes::default();
            match proxy_cache::ready(cached, files, target.path, request, &mut notes) {
                Ok(response) => Some(Response { notes: Some(Box::new(notes)), ..response }),
                Err(so_far) => {
                    begun = Some(so_far);
                    None
                }
            }
        }
        _ => None,
    };
    let mut answer = match ready {
        Some(response) => Answer::Response(response),
        None => Box::pin(respond_slowly(responder, site, request, is_refused, begun)).await,
    };
    match &mut answer {
        Answer::Response(response) => of_site(site, route, response),
        Answer::Tunnel(response, upgraded) => {
            of_site(site, route, response);
            upgraded.log = response.log.clone();
        }
        Answer::ClientGone(gone) => gone.log = site.log(route).clone(),
    }
    answer
}

/// Adds what a site says of each of its responses.
fn of_site(site: &Site, route: Option<&Route>, response: &mut Response) {
    response.tx_path = site.path;
    response.log = site.log(route).clone();
    response.fields.set_tls_only(site.hsts_line.clone());
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
    let own = own_page(files, site, status, deadline).await;
    let mut response = error_page::response(&status.into(), own.unwrap_or(page), &site.configured);
    of_site(site, None, &mut response);
    response
}

/// `is_refused`: the path has a slash that not all would take for one. `begun` is how far it came with what a store may have.
async fn respond_slowly(
    responder: &Responder,
    site: &Site,
    request: &mut Request<'_>,
    is_refused: bool,
    begun: Option<Begun>,
) -> Answer {
    let target = request.head.target().ok().filter(|target| target.form != Form::Asterisk);
    let route = target.and_then(|target| site.route(target.path));
    let configured = route.and_then(|route| route.handler.configured());
    let configured = configured.unwrap_or(&site.configured);
    let (mut held, mut notes) = (Held::default(), LogNotes::default());
    let deadline = responder.files.disks().deadline();
    let guard = route.and_then(|route| route.rules.as_ref()?.guard.as_ref());
    let guards = &responder.guards;
    let admitted = match guard {
        Some(guard) => guard.admit(guards, configured, request, &mut held, &mut notes).await,
        None => Ok(None),
    };
    let outcome = match (admitted, route) {
        (Err(refusal), _) => Err(refusal.into()),
        (Ok(Some(answer)), _) => Ok(answer.into()),
        // As any other request it was counted.
        (Ok(None), _) if is_refused => Err(RequestError::PathCharacter.status().into()),
        (Ok(None), Some(route)) => {
            let answer =
                respond_by_route(responder, site, route, request, begun, &mut held, &mut notes);
            let mut answer = answer.await;
            let response = answer.as_mut().ok().and_then(Answer::response_mut);
            if let (Some(guard), Some(response)) = (guard, response) {
                guard.take_over(response);
            }
            answer
        }
        // A path that no route has, or the server as a whole.
        (Ok(None), None) => not_found(request, configured).map_err(Failure::from),
    };
    #[cfg(test)]
    if responder.forgets_notes.get() {
        notes = LogNotes::default();
    }
    let mut is_kept_out = false;
    let mut answer = match outcome {
        Ok(answer) => answer,
        Err(failure) => {
            let error = match failure {
                Failure::Refused(refusal) => {
                    is_kept_out = true;
                    notes.refusal = Some(refusal.reason);
                    refusal.error
                }
                Failure::Error(error) => error,
            };
            let (files, id) = (&responder.files, &request.client.request_id);
            error_response(files, site, configured, &error, deadline, id).await.into()
        }
    };
    if let (Some(guard), Some(response)) = (guard, answer.response_mut()) {
        guard.finish(&request.head, is_kept_out, response);
    }
    let is_noted = guard.is_some() || notes.upstream.is_some() || notes.cache.is_some();
    let notes = is_noted.then(|| Box::new(notes));
    match &mut answer {
        Answer::Response(response) => (response.notes, response.held) = (notes, held),
        Answer::Tunnel(response, upgraded) => {
            response.notes = notes;
            // A tunnel has its place among its client's requests until it ends.
            upgraded.client_place = held.client_place;
        }
        Answer::ClientGone(gone) => gone.notes = notes,
    }
    answer
}

/// The reason why a request gets an error.
enum Failure {
    /// The rules of its route refuse it.
    Refused(Refusal),
    /// Anything else.
    Error(HttpError),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl<T: Into<HttpError>> From<T> for Failure {
    fn from(error: T) -> Self {
        Self::Error(error.into())
    }
}

/// What a route's rules say, or else its handler.
async fn respond_by_route(
    Responder { files, pool, spool, .. }: &Responder,
    site: &Site,
    route: &Route,
    request: &mut Request<'_>,
    begun: Option<Begun>,
    held: &mut Held,
    notes: &mut LogNotes,
) -> Result<Answer, Failure> {
    let head = &request.head;
    let target = head.target().map_err(|error| error.status())?;
    let mut rewritten = None;
    if let Some(paths) = route.rules.as_ref().and_then(|rules| rules.paths.as_ref()) {
        let configured = route.handler.configured();
        let configured = configured.unwrap_or(&site.configured);
        if let Some(response) = paths.redirect(target, head, configured)? {
            return Ok(response.into());
        }
        rewritten = paths.rewritten(target.path)?;
        // What another route has may ask for more than this one did.
        let is_ours = |path: &String| site.route(path).is_some_and(|it| std::ptr::eq(it, route));
        if !rewritten.as_ref().is_none_or(is_ours) {
            return Err(404.into());
        }
        let guard = route.rules.as_ref().and_then(|rules| rules.guard.as_ref());
        if let (Some(guard), Some(path)) = (guard, &rewritten) {
            guard.refuse_file(path)?;
        }
    }
    let asked = target.path;
    let target = Target { path: rewritten.as_deref().unwrap_or(target.path), ..target };
    if route.handler.proxy().is_some() && !is_whole_of(site, route, target.path) {
        return Err(400.into());
    }
    if head.is_extended_connect() && route.handler.proxy().is_none() {
        return Err(501.into());
    }
    let bodies = BodyStore { spool, disks: files.disks() };
    match &route.handler {
        Handler::Files(files_route) => {
            // Of a route without rules, `respond` has asked for a ready response already.
            let ready = match route.rules {
                Some(_) => files.ready(files_route, target.path, head),
                None => None,
            };
            Ok(match ready {
                Some(response) => response,
                None => files.respond(files_route, target, asked, request).await?,
            }
            .into())
        }
        Handler::Proxy(proxied) => {
            let path = rewritten.as_deref();
            Ok(proxy::respond(proxied, pool, bodies, path, request, notes).await?)
        }
        Handler::Cached(cached) => {
            let path = target.path.to_owned();
            // As with files.
            let begun = match begun {
                Some(begun) => begun,
                None => match proxy_cache::ready(cached, files, &path, request, notes) {
                    Ok(response) => return Ok(response.into()),
                    Err(begun) => begun,
                },
            };
            let answer = proxy_cache::respond(
                cached, files, pool, bodies, &path, begun, request, held, notes,
            );
            Ok(answer.await?)
        }
        Handler::Nothing(configured) => Ok(not_found(request, configured)?),
        #[cfg(test)]
        Handler::Echo(echo) => Ok(echo.respond(request).await?.into()),
    }
}

/// Whether a path is of this route too as servers may read it: without parameters (`/a;b`), or with encoded slashes as slashes.
fn is_whole_of(site: &Site, route: &Route, path: &str) -> bool {
    match as_read_otherwise(path) {
        // There is only one way to read the path, and the route was found by it.
        Some(Cow::Borrowed(_)) => true,
        Some(Cow::Owned(plain)) => site.route(&plain).is_some_and(|it| std::ptr::eq(it, route)),
        None => false,
    }
}

fn not_found(request: &Request<'_>, configured: &ConfiguredFields) -> Result<Answer, HttpError> {
    let allowed = allow(request.head.method(), configured);
    allowed.unwrap_or_else(|| Err(404.into())).map(Answer::from)
}

/// An error with the site's own page, if it has one that can be read.
async fn error_response(
    files: &Files,
    site: &Site,
    configured: &ConfiguredFields,
    error: &HttpError,
    deadline: DiskDeadline,
    id: &RequestId,
) -> Response {
    let page = own_page(files, site, error.status, deadline).await;
    error_page::response(
        error,
        page.unwrap_or_else(|| ErrorPage::plain(error.status, id)),
        configured,
    )
}

/// The site's own page for an error, if it has one that can be read.
async fn own_page(
    files: &Files,
    site: &Site,
    status: u16,
    deadline: DiskDeadline,
) -> Option<ErrorPage> {
    files.error_page(site.error_pages.get(&status)?, deadline).await
}

#[cfg(test)]
mod tests;
