//! From a request to its response: site, route, handler, and a page for what went wrong.
//!
//! A file looked at a moment ago is answered without a system call or a wait; everything else
//! takes the boxed way, so that the usual case does not carry its size around.

use kettle_http::target::Form;

use crate::error_page::{self, HttpError, Page};
use crate::files::handler::{Files, allow};
use crate::request::Request;
use crate::response::{ConfiguredFields, Response};
use crate::route::{Handler, Router, Site};

/// Answers a request: the one seam between protocols and handlers.
pub async fn respond(files: &Files, router: &Router, request: &mut Request<'_>) -> Response {
    let head = &request.head;
    // Who sends a target without meaning gets no site's page: whose it is, is not known.
    let target = match head.target() {
        Ok(target) => target,
        Err(error) => return error_page::plain(&error.status().into()),
    };
    let Some(site) = router.site(head.host_bytes(), request.server_name()) else {
        return error_page::plain(&421.into());
    };
    let ready = match site.route(target.path) {
        Some(Handler::Files(route)) => files.ready(route, target.path, head),
        _ => None,
    };
    let mut response = match ready {
        Some(response) => response,
        None => Box::pin(respond_for(files, site, request)).await,
    };
    response.tx_path = site.path;
    response.fields.set_tls_only(site.hsts_line.clone());
    response
}

/// Answers a request to a plain listener, which has one handler for all.
pub async fn respond_by(handler: &Handler, files: &Files, request: &mut Request<'_>) -> Response {
    match handle(handler, files, request).await {
        Ok(response) => response,
        Err(error) => error_page::plain(&error),
    }
}

async fn respond_for(files: &Files, site: &Site, request: &mut Request<'_>) -> Response {
    let target = request.head.target().ok().filter(|target| target.form != Form::Asterisk);
    let handler = target.and_then(|target| site.route(target.path));
    let configured = handler.and_then(Handler::configured).unwrap_or(&site.configured);
    let outcome = match handler {
        Some(handler) => handle(handler, files, request).await,
        // A path that no route has, or the server as a whole.
        None => allow(request.head.method(), configured).unwrap_or_else(|| Err(404.into())),
    };
    match outcome {
        Ok(response) => response,
        Err(error) => error_response(files, site, configured, &error).await,
    }
}

async fn handle(
    handler: &Handler,
    files: &Files,
    request: &mut Request<'_>,
) -> Result<Response, HttpError> {
    match handler {
        Handler::Files(route) => files.respond(route, &request.head).await,
        Handler::Redirect(redirect) => redirect.respond(&request.head),
        #[cfg(test)]
        Handler::Echo(echo) => echo.respond(request).await,
    }
}

/// An error with the site's own page, if it has one that can be read.
async fn error_response(
    files: &Files,
    site: &Site,
    configured: &ConfiguredFields,
    error: &HttpError,
) -> Response {
    let mut page = None;
    if let Some(path) = site.error_pages.get(&error.status) {
        match files.error_page(path).await {
            Ok(read) => page = Some(read),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot read the error page");
            }
        }
    }
    error_page::response(error, page.unwrap_or_else(|| Page::plain(error.status)), configured)
}

#[cfg(test)]
mod tests;
