//! From place to place: a request that needs more than a look at what is remembered. A rewrite may lead it to another route, whose
//! guard is asked then.

mod handed;
mod handling;
mod in_place;
mod start;

use std::borrow::Cow;

use kettle_exchange::error_page::{self, ErrorPage, HttpError};
use kettle_exchange::request::{Handed, Head, Request, as_read_otherwise};
use kettle_exchange::response::{Answer, ConfiguredFields, Held, LogNotes, Nothing, Response};
use kettle_http::RequestError;
use kettle_http::target::{Target, climbs};
use kettle_runtime::disk::DiskDeadline;

use super::{Led, Responder, Start, own_page};
use crate::forward_auth::{self, Stopped};
use crate::guard::{CacheControl, Refusal};
use crate::proxy_cache::Begun;
use crate::route::{Handler, Route, Site};
use crate::words::Asked;
use handed::HandedOver;
use handling::{Looked, by_handler, not_found};
pub(super) use handling::{fixed_answer, path_of};
use in_place::{in_place_of, intercepted};
use start::knowing;
pub(super) use start::{look, take_query};

/// The reason why a request gets an error.
pub(super) enum Failure {
    /// The rules of its route refuse it.
    Refused(Refusal),
    /// A service does, by this answer.
    Denied(Box<Response>),
    /// Anything else.
    Error(HttpError),
}

/// The outcome of asking a route.
pub(super) enum Step {
    Answer(Answer),
    /// The path belongs to another route.
    Elsewhere(String),
    /// A file stands for what is looked for.
    Led(String),
    /// A server names what is to be sent.
    Handed(Box<Handed>),
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

/// True if the path has an encoded slash that this route does not take: not all servers would read it alike.
pub(super) fn is_slash_refused(head: &Head, route: Option<&Route>) -> bool {
    head.has_encoded_slash() && !route.is_some_and(Route::takes_encoded_slashes)
}

/// Why it is refused there: no file has such a name, and a server might read it otherwise.
fn slash_refusal(head: &Head, route: Option<&Route>) -> Failure {
    let error = match (route.is_some_and(|route| route.proxy().is_some()), head.path()) {
        (true, _) => RequestError::PathCharacter,
        (false, Ok(path)) if !climbs(path) => RequestError::PathAmbiguous,
        (false, _) => RequestError::PathTraversal,
    };
    error.status().into()
}

/// True if a path is of this route too as servers may read it: without parameters (`/a;b`), or with encoded slashes as slashes.
pub(super) fn is_whole_of(site: &Site, route: &Route, path: &str, asked: Asked<'_>) -> bool {
    match as_read_otherwise(path) {
        // There is only one way to read the path, and the route was found by it.
        Some(Cow::Borrowed(_)) => true,
        Some(Cow::Owned(plain)) => {
            site.before().take_alike(path, &plain, asked, site.words())
                && site.route(&plain, asked).is_some_and(|it| std::ptr::eq(it, route))
        }
        None => false,
    }
}

/// The outcome of a request that went from route to route.
pub(super) struct Outcome<'s> {
    pub(super) answer: Answer,
    /// The route that the request came to, whose log has it.
    pub(super) route: Option<&'s Route>,
    /// The route whose fields and times the answer has: another one where that answers in place of an error.
    pub(super) said_by: Option<&'s Route>,
    /// The word to caches about it, because it is not for everybody.
    pub(super) control: Option<CacheControl>,
}

/// Answers a request. Its first route was asked for what it has ready.
pub(super) async fn respond_slowly<'s>(
    responder: &Responder,
    site: &'s Site,
    start: Start<'s>,
    request: &mut Request<'_>,
) -> Outcome<'s> {
    let Start { mut route, mut path, mut begun, outcome, .. } = start;
    let mut held = Held::default();
    let mut notes = LogNotes::default();
    // Of the answer as a whole: a page of its error waits no longer.
    let deadline = responder.files.disks().deadline();
    let mut outcome = outcome.map(|outcome| (*outcome).map(Step::Answer));
    // The server as a whole has no route.
    if !request.head.has_target() || request.head.is_for_server() {
        route = None;
    }
    let mut is_first = true;
    let mut over = HandedOver::default();
    // A client that was not let in on the way sees nothing of where it led.
    let mut control = None;
    for _ in 0..STEPS_MAX {
        if outcome.is_some() {
            break;
        }
        let place = Place { route, path: path.as_deref(), is_first };
        control = control.max(place.control());
        let step = place.ask(responder, site, request, begun.take(), &mut held, &mut notes).await;
        match step {
            Ok(Step::Elsewhere(next)) => {
                let find = |asked: Asked<'_>| site.route(&next, asked);
                match knowing(&responder.files, site, request, find).await {
                    Ok(found) => (route, path) = (found, Some(next)),
                    Err(error) => outcome = Some(Err(error.into())),
                }
            }
            Ok(Step::Led(next)) => {
                let led = site.led(&responder.files, (next, Led::ByFile), request).await;
                (route, path) = (led.route, led.path);
                outcome = led.outcome.map(|outcome| (*outcome).map(Step::Answer));
            }
            Ok(Step::Handed(next)) => {
                match over.go_on(*next, (&responder.files, site), request, &mut notes).await {
                    Ok((found, owner)) => (path, route) = (Some(found), owner),
                    Err(error) => outcome = Some(Err(error.into())),
                }
            }
            step => outcome = Some(step),
        }
        is_first = false;
    }
    let outcome = match outcome {
        Some(Ok(Step::Answer(answer))) => intercepted(site, route, answer),
        Some(Ok(Step::Elsewhere(_) | Step::Led(_) | Step::Handed(_))) | None => {
            notes.refusal = Some("rewrite_loop");
            Err(500.into())
        }
        Some(Err(failure)) => failed(failure, route, &mut control, &mut notes),
    };
    let (mut answer, said_by) = match outcome {
        Ok(answer) => (answer, route),
        Err(error) => {
            let page = of_error((&error, deadline), responder, site, route, request, &mut held);
            Box::pin(page).await
        }
    };
    if !same(said_by, route) {
        control = control.max(cache_control(said_by, false));
    }
    over.end(request, &mut answer);
    let guard = route.and_then(Route::guard);
    if let Some(response) = answer.response_mut() {
        say_of_guards((route, said_by), request, response);
    }
    hold(&mut answer, guard.is_some(), notes, held);
    Outcome { answer, route, said_by, control }
}

/// The answer or the error that a failure leads to.
fn failed(
    failure: Failure,
    route: Option<&Route>,
    control: &mut Option<CacheControl>,
    notes: &mut LogNotes,
) -> Result<Answer, HttpError> {
    let (reason, outcome) = match failure {
        Failure::Error(error) => return Err(error),
        Failure::Denied(response) => {
            // A redirect that leads elsewhere for ever would be kept by browsers.
            let is_redirect = response.status < 400;
            *control = (*control).max(is_redirect.then_some(CacheControl::NoStore));
            (forward_auth::WORD, Ok((*response).into()))
        }
        Failure::Refused(refusal) => (refusal.reason, Err(refusal.error)),
    };
    notes.refusal = Some(reason);
    *control = (*control).max(cache_control(route, true));
    outcome
}

/// Says of an answer what follows from who may have it.
fn say_of_guards(
    (route, said_by): (Option<&Route>, Option<&Route>),
    request: &Request<'_>,
    response: &mut Response,
) {
    // Content in place of an error is an answer of the route that failed, unless its own says who may read it.
    let own = said_by.and_then(Route::guard).filter(|guard| guard.has_cors());
    let guard = own.or(route.and_then(Route::guard));
    guard.inspect(|guard| guard.add_cors(&request.head, response));
}

/// Gives an answer what the log is told of it, and what is let go of with it.
fn hold(answer: &mut Answer, is_guarded: bool, notes: LogNotes, held: Held) {
    let is_noted = is_guarded
        || notes.auth_time.is_some()
        || notes.upstream.is_some()
        || notes.cache.is_some()
        || notes.refusal.is_some();
    let notes = is_noted.then(|| Box::new(notes));
    match answer {
        Answer::Response(response) => (response.notes, response.held) = (notes, held),
        Answer::Tunnel(response, upgraded) => {
            response.notes = notes;
            // A tunnel has its places among its client's requests until it ends.
            upgraded.client_place = held.client_place;
        }
        Answer::Nothing(nothing) => nothing.notes = notes,
    }
}

/// Returns a route's word to caches about its responses, or about its refusals.
fn cache_control(route: Option<&Route>, is_refused: bool) -> Option<CacheControl> {
    let rules = route?.rules.as_ref()?;
    let own = rules.guard.as_ref().and_then(|guard| guard.cache_control(is_refused));
    own.max(rules.forward_auth.as_ref().and_then(|auth| auth.cache_control(is_refused)))
}

fn same(one: Option<&Route>, other: Option<&Route>) -> bool {
    one.map(std::ptr::from_ref) == other.map(std::ptr::from_ref)
}

/// The answer in place of an error: what the operator says, or a page; and the route that gives it.
async fn of_error<'s>(
    (error, deadline): (&HttpError, DiskDeadline),
    responder: &Responder,
    site: &'s Site,
    route: Option<&'s Route>,
    request: &mut Request<'_>,
    held: &mut Held,
) -> (Answer, Option<&'s Route>) {
    if let Some(answered) = in_place_of(error, responder, site, route, request, held).await {
        return answered;
    }
    let page = own_page(&responder.files, site, route, error.status, deadline).await;
    let page = page.unwrap_or_else(|| ErrorPage::plain(error.status, &request.client.request_id));
    (error_page::response(error, page, configured_of(site, route)).into(), route)
}

/// A route, and the path by which it was found.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    pub(super) route: Option<&'p Route>,
    /// None if it is the one that was asked for.
    pub(super) path: Option<&'p str>,
    /// True if the route was asked for what it has ready.
    pub(super) is_first: bool,
}

impl Place<'_> {
    /// True if clients that ask for it are told that nothing is there.
    fn is_hidden(self) -> bool {
        self.path.is_none() && self.route.is_some_and(Route::is_internal)
    }

    /// Returns the word to caches about responses from there.
    fn control(self) -> Option<CacheControl> {
        if self.is_hidden() { None } else { cache_control(self.route, false) }
    }

    /// Asks the route's guard, and then the route.
    pub(super) async fn ask(
        self,
        responder: &Responder,
        site: &Site,
        request: &mut Request<'_>,
        begun: Option<Box<Begun>>,
        held: &mut Held,
        notes: &mut LogNotes,
    ) -> Result<Step, Failure> {
        let configured = configured_of(site, self.route);
        if self.is_hidden() {
            return Err(404.into());
        }
        let rules = self.route.and_then(|route| route.rules.as_ref());
        let guard = self.route.and_then(Route::guard);
        if let Some(guard) = guard {
            let guards = &responder.guards;
            let admitted = guard.admit(guards, configured, self.path, request, held, notes).await;
            if let Some(answer) = admitted? {
                return Ok(Step::Answer(answer.into()));
            }
        }
        if let Some(auth) = rules.and_then(|rules| rules.forward_auth.as_ref()) {
            match auth.ask(&responder.pool, configured, request, notes).await {
                Ok(()) => {}
                Err(Stopped::Gone) => {
                    return Ok(Step::Answer(Answer::Nothing(Nothing::client_gone())));
                }
                // The operator's own page comes first, as for any other refusal.
                Err(Stopped::Denied(it)) if site.error_page(self.route, it.status).is_some() => {
                    return Err(forward_auth::refusal_of(&it).into());
                }
                Err(Stopped::Denied(it)) => return Err(Failure::Denied(Box::new(it))),
                Err(Stopped::Refused(refusal)) => return Err(refusal.into()),
            }
        }
        let Some(route) = self.route else {
            // A path that no route has, or the server as a whole.
            return match is_slash_refused(&request.head, None) {
                true => Err(slash_refusal(&request.head, None)),
                false => Ok(Step::Answer(not_found(request, configured)?)),
            };
        };
        let step = self.answer(responder, site, route, request, begun, (held, notes)).await;
        let mut step = step?;
        if let (Some(guard), Step::Answer(answer)) = (guard, &mut step)
            && let Some(response) = answer.response_mut()
        {
            guard.take_over(response);
        }
        Ok(step)
    }

    /// Returns the answer of the route's rules, or else of its handler.
    async fn answer(
        self,
        responder: &Responder,
        site: &Site,
        route: &Route,
        request: &mut Request<'_>,
        begun: Option<Box<Begun>>,
        (held, notes): (&mut Held, &mut LogNotes),
    ) -> Result<Step, Failure> {
        let mut rewritten = None;
        let mut stays = false;
        if is_slash_refused(&request.head, Some(route)) {
            let path = path_of(&request.head, self.path)?;
            let is_whole = |asked: Asked<'_>| is_whole_of(site, route, path, asked);
            if !Box::pin(knowing(&responder.files, site, request, is_whole)).await? {
                return Err(slash_refusal(&request.head, Some(route)));
            }
        }
        if let Some(paths) = route.rules.as_ref().and_then(|rules| rules.paths.as_ref()) {
            let target = request.head.target().map_err(|error| error.status())?;
            let asked_path = target.path;
            let target = Target { path: self.path.unwrap_or(asked_path), ..target };
            let configured = configured_of(site, Some(route));
            let asked = Asked::of(request);
            if let Some(response) = paths.redirect(target, asked, site.words(), configured)? {
                return Ok(Step::Answer(response.into()));
            }
            let found = paths.rewritten(target, asked_path, asked, site.words())?;
            stays = found.as_ref().is_some_and(|it| it.stays);
            // The path is another route's then, and the one that was asked for has to be of this route in any reading.
            if stays && !is_whole_of(site, route, target.path, asked) {
                return Err(400.into());
            }
            rewritten = found.map(|found| take_query(found, request));
        }
        // Redirects and fixed answers open nothing by the path.
        let is_opened = !matches!(route.handler, Handler::Fixed(_) | Handler::Nothing(_));
        if is_opened && is_slash_refused(&request.head, Some(route)) {
            return Err(slash_refusal(&request.head, Some(route)));
        }
        if let Some(path) = &rewritten {
            let find = |asked: Asked<'_>| site.route(path, asked);
            let owner = knowing(&responder.files, site, request, find).await?;
            if !stays && !owner.is_some_and(|it| std::ptr::eq(it, route)) {
                return Ok(Step::Elsewhere(rewritten.unwrap_or_default()));
            }
            if let Some(guard) = route.guard() {
                guard.refuse_file(path)?;
            }
        }
        let path = rewritten.as_deref().or(self.path);
        let head = &request.head;
        if !stays && route.proxy().is_some() {
            let path = path_of(head, path)?;
            let is_whole = |asked: Asked<'_>| is_whole_of(site, route, path, asked);
            if !knowing(&responder.files, site, request, is_whole).await? {
                return Err(400.into());
            }
        }
        if head.is_extended_connect() && route.proxy().is_none() {
            return Err(501.into());
        }
        // Of a route without rules, `respond` has asked for a ready response already.
        let begun = Looked { is_done: self.is_first && route.rules.is_none(), begun };
        let step = by_handler(responder, (site, route), path, request, begun, (held, notes)).await;
        match (step, request.handed.take()) {
            (Err(Failure::Error(_)), Some(handed)) if handed.is_for_any || site.takes_over() => {
                // An error has its page, as in nginx.
                let has_page = site.error_page(Some(route), handed.status).is_some();
                match route.intercepts_errors && handed.status >= 300 && has_page {
                    true => Err(handed.status.into()),
                    false => Ok(Step::Handed(handed)),
                }
            }
            (step, _) => step,
        }
    }
}

/// The operator's fields for what a route answers, or none.
pub(super) fn configured_of<'c>(site: &'c Site, route: Option<&'c Route>) -> &'c ConfiguredFields {
    route.and_then(|route| route.handler.configured()).unwrap_or(&site.configured)
}

/// The number of times a route is looked for: as with nginx.
const STEPS_MAX: usize = 11;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::respond::tests::stage::future_bytes;

    /// Each request that is passed on has it in memory of its own, and each step within is moved into the one around it.
    #[test]
    fn the_way_of_a_proxied_request_takes_no_more_memory_than_it_did() {
        let bytes =
            future_bytes(|(it, site, start, request)| respond_slowly(it, site, start, request));
        assert!(bytes <= 3_200, "{bytes}");
    }
}
