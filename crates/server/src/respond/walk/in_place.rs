//! What the operator says in place of an error.

use kettle_http::Method;

use super::{Place, Responder, Step, configured_of, knowing};
use crate::error_page::HttpError;
use crate::redirect::pattern::location_of;
use crate::redirect::redirect;
use crate::request::Request;
use crate::response::{Answer, Held, LogNotes};
use crate::route::{Route, Site};
use crate::words::Asked;

/// A server's own error, where the operator has something in its place.
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
            Err(response.status.into())
        }
        answer => Ok(answer),
    }
}

/// What the operator says in place of an error, if it is a redirect or what a route answers; none if that is an error, too.
pub(super) async fn in_place_of(
    error: &HttpError,
    responder: &Responder,
    site: &Site,
    failed: Option<&Route>,
    request: &mut Request<'_>,
    held: &mut Held,
) -> Option<Answer> {
    let Some(kettle_config::ErrorPage::Elsewhere(target)) = site.error_page(failed, error.status)
    else {
        return None;
    };
    if let Some(to) = &target.redirect {
        let status = target.status.unwrap_or(FOUND);
        let location = location_of(to, Asked::of(request), site.words())?;
        return Some(redirect(status, &location, configured_of(site, failed)).into());
    }
    // The body of another request was meant for the route that failed.
    if !matches!(request.head.method(), Method::Get | Method::Head)
        || !request.body.framing().is_empty()
    {
        return None;
    }
    let path = target.route.as_deref();
    let find = |asked: Asked<'_>| site.route(path.unwrap_or_default(), asked);
    let route = knowing(&responder.files, site, request, find).await.ok()?;
    let mut notes = LogNotes::default();
    let place = Place { route, path, is_first: false };
    let step = place.ask(responder, site, request, None, held, &mut notes).await;
    let Ok(Step::Answer(Answer::Response(mut response))) = step else { return None };
    // A part of a page, or word that it did not change, is not the page.
    if response.status != OK {
        return None;
    }
    response.status = target.status.unwrap_or(error.status);
    for (name, value) in &error.fields {
        response.fields = std::mem::take(&mut response.fields).with_own(name, value);
    }
    Some(response.into())
}

const OK: u16 = 200;
/// The redirect that says nothing of the method.
const FOUND: u16 = 302;
