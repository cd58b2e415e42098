//! The operator's content in place of an error.

use kettle_exchange::error_page::HttpError;
use kettle_exchange::request::Request;
use kettle_exchange::response::{Answer, ConfiguredFields, Held, LogNotes, Response};
use kettle_http::h1::framing::BodyFraming;

use super::{Place, Responder, Step, configured_of};
use crate::redirect::pattern::location_of;
use crate::redirect::redirect;
use crate::respond::{Led, Start};
use crate::route::{Route, Site};
use crate::words::Asked;

/// A server's own answer, where the operator has something in its place. A challenge stays: without it no client knows how to be let in.
pub(super) fn intercepted(
    site: &Site,
    route: Option<&Route>,
    answer: Answer,
) -> Result<Answer, HttpError> {
    match answer {
        Answer::Response(response)
            if route.is_some_and(|route| route.intercepts_errors)
                && site.error_page(route, response.status).is_some() =>
        {
            let challenges = match response.status {
                UNAUTHORIZED => response.fields.values(CHALLENGE).map(as_text).collect(),
                _ => Vec::new(),
            };
            let fields = challenges.into_iter().map(|value| (CHALLENGE, value)).collect();
            Err(HttpError { status: response.status, fields })
        }
        answer => Ok(answer),
    }
}

/// Returns the answer that the operator has set in place of an error, a redirect or a route's, with its route; none if that
/// fails, too.
pub(super) async fn in_place_of<'s>(
    error: &HttpError,
    responder: &Responder,
    site: &'s Site,
    failed: Option<&'s Route>,
    request: &mut Request<'_>,
    held: &mut Held,
) -> Option<(Answer, Option<&'s Route>)> {
    let Some(kettle_config::ErrorPage::Elsewhere(target)) = site.error_page(failed, error.status)
    else {
        return None;
    };
    if let Some(to) = &target.redirect {
        let status = target.status.unwrap_or(FOUND);
        let location = location_of(to, Asked::of(request), site.words())?;
        let mut response = redirect(status, &location, configured_of(site, failed));
        // A service that refuses a client may begin a session of it.
        for (name, value) in error.fields.iter().filter(|(name, _)| *name == COOKIE) {
            response.fields.add(name, value.as_bytes());
        }
        return Some((response.into(), failed));
    }
    let path = target.route.as_deref()?;
    // As with nginx: the page is asked for by GET, and as a whole. A body was meant for the route that failed, and so was a program.
    request.body.end_upload();
    request.program = None;
    let asked = request.head.begin_page();
    let framing = request.body.set_framing(BodyFraming::None);
    let page = page(path, responder, site, request, held).await;
    request.head.end_page(asked);
    request.body.set_framing(framing);
    let (mut response, route) = page?;
    response.status = target.status.unwrap_or(error.status);
    if response.status != OK {
        of_another_status(&mut response, configured_of(site, route));
    }
    for (name, value) in &error.fields {
        response.fields = std::mem::take(&mut response.fields).with_own(name, value);
    }
    Some((response.into(), route))
}

/// Returns a route's answer for a page, if that is a success.
async fn page<'s>(
    path: &str,
    responder: &Responder,
    site: &'s Site,
    request: &mut Request<'_>,
    held: &mut Held,
) -> Option<(Response, Option<&'s Route>)> {
    let Start { route, outcome: None, .. } =
        site.led(&responder.files, (path.to_owned(), Led::ByError), request).await
    else {
        return None;
    };
    let mut notes = LogNotes::default();
    let place = Place { route, path: Some(path), is_first: false };
    match place.ask(responder, site, request, None, held, &mut notes).await {
        Ok(Step::Answer(Answer::Response(response))) if response.status == OK => {
            Some((response, route))
        }
        _ => None,
    }
}

/// Takes away what is not said of a response that is no success: when the page was changed, and the operator's fields for successes.
fn of_another_status(response: &mut Response, configured: &ConfiguredFields) {
    let mut fields = std::mem::take(&mut response.fields).without_all("last-modified");
    fields = fields.without_all("accept-ranges");
    if response.status >= 400 {
        let own = configured.names().filter(|name| *name != "vary");
        fields = own.fold(fields, |fields, name| fields.without_all(name));
        fields = configured.lines_beside().fold(fields, |fields, line| fields.without(line));
        // The time the page may be kept says nothing of how long the error lasts.
        fields = FRESHNESS.iter().fold(fields, |fields, name| fields.without_all(name));
        fields = fields.with_lines(configured.for_errors());
    }
    response.fields = fields;
}

fn as_text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

/// The fields that say how long a response may be kept (RFC 9111 §4.2).
const FRESHNESS: [&str; 3] = ["cache-control", "expires", "age"];
const OK: u16 = 200;
const UNAUTHORIZED: u16 = 401;
/// The redirect that says nothing of the method.
const FOUND: u16 = 302;
const COOKIE: &str = "set-cookie";
const CHALLENGE: &str = "www-authenticate";
