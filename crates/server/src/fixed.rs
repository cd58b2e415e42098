//! Answers that stand in the configuration, and those to authorities.

use bytes::Bytes;
use kettle_config::Respond;
use kettle_http::Method;
use kettle_tls::Challenges;

use crate::error_page::HttpError;
use crate::request::Head;
use crate::response::{Body, ConfiguredFields, Response, ResponseFields};

/// An answer that is the same to all.
#[derive(Debug)]
pub struct Fixed {
    status: u16,
    body: Bytes,
    media_type: Option<String>,
    /// True if there is none: the connection ends.
    pub closes: bool,
    /// The operator's fields.
    pub configured: ConfiguredFields,
}

impl Fixed {
    /// That of a configuration.
    #[must_use]
    pub fn new(respond: &Respond, configured: ConfiguredFields) -> Self {
        Self {
            status: respond.status,
            body: Bytes::copy_from_slice(respond.body.as_bytes()),
            media_type: respond.media_type.clone(),
            closes: respond.close,
            configured,
        }
    }

    /// The answer.
    ///
    /// # Errors
    /// An error without a text of its own, which has the page of its status.
    pub fn response(&self) -> Result<Response, HttpError> {
        let is_error = self.status >= 400;
        if is_error && self.body.is_empty() {
            return Err(self.status.into());
        }
        let configured = &self.configured;
        let ready = if is_error { configured.for_errors() } else { configured.all() };
        let fields = ResponseFields::ready(ready.clone());
        let media_type = self.media_type.as_deref();
        Ok(match (self.body.is_empty(), media_type) {
            (true, None) => Response::new(self.status, fields, Body::Empty),
            (true, Some(media_type)) => {
                Response::new(self.status, fields.with("content-type", media_type), Body::Empty)
            }
            (false, _) => {
                let fields = fields.with("content-type", media_type.unwrap_or(TEXT));
                Response::new(self.status, fields, Body::Memory(self.body.clone()))
            }
        })
    }
}

/// What an authority asks for while it validates a name (RFC 8555 §8.3), whatever the name is; nothing for all else, which goes the
/// usual way.
pub(crate) fn challenge(challenges: &Challenges, head: &Head) -> Option<Response> {
    let token = head.target().ok()?.path.strip_prefix(CHALLENGES)?;
    let is_read = matches!(head.method(), Method::Get | Method::Head);
    let key_authorization = challenges.http(token).filter(|_| is_read)?;
    // Nothing of the request is in it, so that nobody can have it say what he likes.
    let fields = ResponseFields::ready(Bytes::from_static(CHALLENGE_LINES));
    let body = Bytes::copy_from_slice(key_authorization.as_bytes());
    Some(Response::new(200, fields, Body::Memory(body)))
}

/// Where authorities ask for tokens.
const CHALLENGES: &str = "/.well-known/acme-challenge/";

const CHALLENGE_LINES: &[u8] =
    b"content-type: text/plain\r\nx-content-type-options: nosniff\r\ncache-control: no-store\r\n";

/// The type of a text of which nothing is said.
const TEXT: &str = "text/plain";
