//! The answer to plain HTTP: the same address over HTTPS, as a redirect or as a page that says so.

pub mod pattern;
pub mod tries;

use kettle_exchange::error_page::{self, ErrorPage, HttpError};
use kettle_exchange::request::Head;
use kettle_exchange::response::{Body, ConfiguredFields, Response, ResponseFields};
use kettle_http::target::{SlashRuns, Target, reference};
use kettle_http::uri::percent_encode_path;
use kettle_runtime::access_log::RequestId;

/// The target for a client of plain HTTP.
#[derive(Clone, Copy, Debug)]
pub struct Redirect {
    /// The port that speaks HTTPS.
    pub https_port: u16,
    /// The status that sends the client there; `None` to tell a person only.
    pub status: Option<u16>,
}

impl Redirect {
    /// Answers a request of whatever method.
    ///
    /// # Errors
    /// 400 if the request does not say which host it wants, and that of a target without meaning.
    pub fn respond(self, head: &Head, id: &RequestId) -> Result<Response, HttpError> {
        let target = head.target().map_err(|error| error.status())?;
        // HTTP/1.0 need not say which host it wants, and nothing else does.
        let host = head.host().ok_or(400_u16)?;
        let port = match self.https_port {
            HTTPS_PORT => String::new(),
            port => format!(":{port}"),
        };
        let reference = reference(target, head.raw_target(), SlashRuns::AS_SENT).ok_or(400_u16)?;
        let location = format!("https://{host}{port}{reference}");
        let configured = ConfiguredFields::default();
        Ok(match self.status {
            Some(status) => redirect(status, &location, &configured),
            None => {
                let page = ErrorPage::plain_http(&location, id);
                error_page::response(&400.into(), page, &configured)
            }
        })
    }
}

/// A redirect to another address, without a page.
pub fn redirect(status: u16, location: &str, configured: &ConfiguredFields) -> Response {
    let fields = ResponseFields::ready(configured.for_redirects().clone());
    Response::new(status, fields.with_own("location", location), Body::Empty)
}

/// The path of a target with something after it, and its query as it came, as a reference that stays on
/// the host: a normal path never begins with two slashes, and nothing in it but letters, digits,
/// slashes and a few marks is left unencoded.
pub fn path_and_query(target: Target<'_>, after_path: &str) -> String {
    let mut reference = percent_encode_path(target.path.as_bytes());
    reference.push_str(after_path);
    if let Some(query) = target.query {
        reference.push('?');
        reference.push_str(query);
    }
    reference
}

/// The port that goes without saying.
const HTTPS_PORT: u16 = 443;
