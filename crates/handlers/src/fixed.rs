//! Answers that stand in the configuration, and those to authorities.

use bytes::Bytes;
use kettle_config::{Expression, FieldTemplate, Respond};
use kettle_exchange::error_page::HttpError;
use kettle_exchange::request::Head;
use kettle_exchange::response::{Body, ConfiguredFields, Response, ResponseFields};
use kettle_http::Method;
use kettle_tls::Challenges;

use crate::files::mime::ContentTypes;
use crate::words::{Asked, WordSource, Words};

/// An answer to all.
#[derive(Debug)]
pub struct Fixed {
    status: u16,
    /// Nothing where an error has its page.
    body: Option<Bytes>,
    text: Option<Text>,
    media_type: Option<String>,
    by_path: Option<ContentTypes>,
    /// Those of further lines.
    more_types: Vec<String>,
    /// True if there is none: the connection ends.
    pub closes: bool,
    /// The operator's fields.
    pub configured: ConfiguredFields,
}

/// A body that each request fills in.
#[derive(Debug)]
struct Text {
    template: FieldTemplate,
    /// The expression whose groups stand in it.
    regex: Option<Expression>,
}

impl Fixed {
    /// That of a configuration, beside this expression and these types.
    pub fn new(
        respond: &Respond,
        (regex, by_path): (Option<&Expression>, Option<ContentTypes>),
        configured: ConfiguredFields,
    ) -> Self {
        let text = respond.text.as_ref();
        Self {
            status: respond.status,
            body: respond.body.as_ref().map(|body| Bytes::copy_from_slice(body.as_bytes())),
            text: text.map(|it| Text { template: it.clone(), regex: regex.cloned() }),
            media_type: respond.media_type.clone(),
            by_path: by_path.filter(|_| respond.type_by_path),
            more_types: respond.more_types.clone(),
            closes: respond.close,
            configured,
        }
    }

    /// The answer to a request that came by this path.
    ///
    /// # Errors
    /// An error without a text of its own, which has the page of its status; 500 where a text is filled in with too much.
    pub fn response(
        &self,
        path: &str,
        asked: Asked<'_>,
        source: &WordSource,
    ) -> Result<Response, HttpError> {
        let is_error = self.status >= 400;
        let body = match &self.text {
            Some(text) => Some(text.fill(path, asked, source).ok_or(500)?),
            None => self.body.clone(),
        };
        if is_error && body.is_none() {
            return Err(self.status.into());
        }
        let configured = &self.configured;
        let ready = if is_error { configured.for_errors() } else { configured.all() };
        let mut fields = ResponseFields::ready(ready.clone());
        if self.text.is_some() {
            fields = fields.with_own("x-content-type-options", "nosniff");
        }
        let body = body.filter(|it| !it.is_empty());
        let usual = body.as_ref().map(|_| TEXT);
        let by_path = self.by_path.as_ref().map(|it| it.of(path));
        let media_type = by_path.as_deref().or(self.media_type.as_deref()).or(usual);
        for media_type in media_type.into_iter().chain(self.more_types.iter().map(String::as_str)) {
            fields.add("content-type", media_type.as_bytes());
        }
        Ok(Response::new(self.status, fields, body.map_or(Body::Empty, Body::Memory)))
    }
}

impl Text {
    /// The body; `None` if it is too long.
    fn fill(&self, path: &str, asked: Asked<'_>, source: &WordSource) -> Option<Bytes> {
        let captures = self.regex.as_ref().and_then(|regex| regex.captures(path));
        let group = |name: &str| {
            let captures = captures.as_ref();
            let group = match name.parse() {
                Ok(number) => captures.and_then(|it| it.get(number)),
                Err(_) => captures.and_then(|it| it.named(name)),
            };
            group.map_or(&[][..], str::as_bytes)
        };
        let words = Words { path: Some(path), ..asked.words(source) };
        words.bounded_text_with(&self.template, group).map(Bytes::from)
    }
}

/// Returns the answer to an authority that validates a name (RFC 8555 §8.3), whatever the name is; nothing for all else, which goes the
/// usual way.
pub fn challenge(challenges: &Challenges, head: &Head) -> Option<Response> {
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
