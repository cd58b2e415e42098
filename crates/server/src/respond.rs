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
use crate::guard::Guards;
use crate::proxy::{self, BodyStore};
use crate::proxy_cache::{self, Begun};
use crate::request::{Head, Presented, Request, as_read_otherwise};
use crate::response::{Body, ConfiguredFields, Notes, Response};
use crate::route::conditions::Asked;
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
}

/// Answers a request: the one seam between protocols and handlers.
pub async fn respond(
    responder: &Responder,
    router: &Router,
    request: &mut Request<'_>,
) -> Response {
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
            return response.unwrap_or_else(|error| error_page::plain(&error, id));
        }
        let status = head.target().err().map_or(421, |error| error.status());
        return Box::pin(refuse(files, router, Some(head), presented, status, id)).await;
    };
    let route = site.route(target.path, Asked::of(request));
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
            if route.is_some_and(|it| is_whole_of(site, it, target.path, Asked::of(request))) =>
        {
            let mut notes = Notes::default();
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
    let response = match ready {
        Some(response) => response,
        None => Box::pin(respond_slowly(responder, site, request, is_refused, begun)).await,
    };
    of_site(site, route, response)
}

/// What a site says of each of its responses.
fn of_site(site: &Site, route: Option<&Route>, mut response: Response) -> Response {
    response.tx_path = site.path;
    response.log = site.log(route).clone();
    response.fields.set_tls_only(site.hsts_line.clone());
    response
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
    let response = error_page::response(&status.into(), own.unwrap_or(page), &site.configured);
    of_site(site, None, response)
}

/// `is_refused`: the path has a slash that not all would take for one. `begun` is how far it came with what a store may have.
async fn respond_slowly(
    responder: &Responder,
    site: &Site,
    request: &mut Request<'_>,
    is_refused: bool,
    begun: Option<Begun>,
) -> Response {
    let target = request.head.target().ok().filter(|target| target.form != Form::Asterisk);
    let route = target.and_then(|target| site.route(target.path, Asked::of(request)));
    let configured = route.and_then(|route| route.handler.configured());
    let configured = configured.unwrap_or(&site.configured);
    let mut notes = Notes::default();
    let deadline = responder.files.disks().deadline();
    let guard = route.and_then(|route| route.rules.as_ref()?.guard.as_ref());
    let admitted = match guard {
        Some(guard) => guard.admit(&responder.guards, configured, request, &mut notes).await,
        None => Ok(None),
    };
    let outcome = match (admitted, route) {
        (Err(error), _) => Err(error),
        (Ok(Some(answer)), _) => Ok(answer),
        // As any other request it was counted.
        (Ok(None), _) if is_refused => Err(RequestError::PathCharacter.status().into()),
        (Ok(None), Some(route)) => {
            let mut answer =
                respond_by_route(responder, site, route, request, begun, &mut notes).await;
            if let (Some(guard), Ok(response)) = (guard, &mut answer) {
                guard.take_over(response);
            }
            answer
        }
        // A path that no route has, or the server as a whole.
        (Ok(None), None) => not_found(request, configured),
    };
    let mut response = match outcome {
        Ok(response) => response,
        Err(error) => {
            let (files, id) = (&responder.files, &request.client.request_id);
            error_response(files, site, configured, &error, deadline, id).await
        }
    };
    if let Body::Upgraded(upgraded) = &mut response.body {
        // A tunnel takes its place among its client's requests until it ends.
        upgraded.in_use = notes.until_sent.take();
    }
    if let Some(guard) = guard {
        guard.finish(&request.head, &notes, &mut response);
    }
    if guard.is_some() || notes.upstream.is_some() || notes.cache.is_some() {
        response.notes = Some(Box::new(notes));
    }
    response
}

/// What a route's rules say, or else its handler.
async fn respond_by_route(
    Responder { files, pool, spool, .. }: &Responder,
    site: &Site,
    route: &Route,
    request: &mut Request<'_>,
    begun: Option<Begun>,
    notes: &mut Notes,
) -> Result<Response, HttpError> {
    let head = &request.head;
    let target = head.target().map_err(|error| error.status())?;
    let mut rewritten = None;
    if let Some(paths) = route.rules.as_ref().and_then(|rules| rules.paths.as_ref()) {
        let configured = route.handler.configured();
        let configured = configured.unwrap_or(&site.configured);
        if let Some(response) = paths.redirect(target, head, configured)? {
            return Ok(response);
        }
        rewritten = paths.rewritten(target.path)?;
        // What another route has may ask for more than this one did.
        let asked = Asked::of(request);
        let is_ours =
            |path: &String| site.route(path, asked).is_some_and(|it| std::ptr::eq(it, route));
        if !rewritten.as_ref().is_none_or(is_ours) {
            return Err(404.into());
        }
        let guard = route.rules.as_ref().and_then(|rules| rules.guard.as_ref());
        if let (Some(guard), Some(path)) = (guard, &rewritten) {
            guard.refuse_file(path, notes)?;
        }
    }
    let asked = target.path;
    let target = Target { path: rewritten.as_deref().unwrap_or(target.path), ..target };
    if route.handler.proxy().is_some() && !is_whole_of(site, route, target.path, Asked::of(request))
    {
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
            match ready {
                Some(response) => Ok(response),
                None => files.respond(files_route, target, asked, request).await,
            }
        }
        Handler::Proxy(proxied) => {
            proxy::respond(proxied, pool, bodies, rewritten.as_deref(), request, notes).await
        }
        Handler::Cached(cached) => {
            let path = target.path.to_owned();
            // As with files.
            let begun = match begun {
                Some(begun) => begun,
                None => match proxy_cache::ready(cached, files, &path, request, notes) {
                    Ok(response) => return Ok(response),
                    Err(begun) => begun,
                },
            };
            proxy_cache::respond(cached, files, pool, bodies, &path, begun, request, notes).await
        }
        Handler::Fixed(fixed) => fixed.response(),
        Handler::Nothing(configured) => not_found(request, configured),
        #[cfg(test)]
        Handler::Echo(echo) => echo.respond(request).await,
    }
}

/// Whether a path is of this route too as servers may read it: without parameters (`/a;b`), or with encoded slashes as slashes.
fn is_whole_of(site: &Site, route: &Route, path: &str, asked: Asked<'_>) -> bool {
    match as_read_otherwise(path) {
        // There is only one way to read the path, and the route was found by it.
        Some(Cow::Borrowed(_)) => true,
        Some(Cow::Owned(plain)) => {
            site.route(&plain, asked).is_some_and(|it| std::ptr::eq(it, route))
        }
        None => false,
    }
}

fn not_found(request: &Request<'_>, configured: &ConfiguredFields) -> Result<Response, HttpError> {
    allow(request.head.method(), configured).unwrap_or_else(|| Err(404.into()))
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
pub(crate) mod tests;
