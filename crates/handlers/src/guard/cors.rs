//! Pages of other origins (the CORS protocol, <https://fetch.spec.whatwg.org/#http-cors-protocol>).

use kettle_exchange::request::Head;
use kettle_exchange::response::{Body, ConfiguredFields, Response, ResponseFields};
use kettle_http::Method;

/// Whose scripts may read a route's responses.
#[derive(Debug)]
pub(super) struct Cors {
    origins: Vec<String>,
    is_any: bool,
    credentials: bool,
    methods: String,
    headers: String,
    expose: String,
    max_age: String,
}

impl Cors {
    pub(super) fn new(settings: &kettle_config::Cors) -> Self {
        let origins: Vec<_> = settings.origins.iter().map(|origin| origin.value.clone()).collect();
        Self {
            is_any: origins.iter().any(|origin| origin == "*"),
            origins,
            credentials: settings.credentials,
            methods: settings.methods.join(", "),
            headers: settings.headers.join(", "),
            expose: settings.expose.join(", "),
            max_age: settings.max_age.as_secs().to_string(),
        }
    }

    /// The answer to a preflight: whether a request may be sent, without sending it.
    pub(super) fn preflight(&self, head: &Head, configured: &ConfiguredFields) -> Option<Response> {
        head.sole_header("origin")?;
        head.sole_header("access-control-request-method")?;
        if head.method() != Method::Options {
            return None;
        }
        let mut fields = ResponseFields::ready(configured.for_errors().clone());
        if self.allowed(head).is_some() {
            fields = fields.with("access-control-allow-methods", &self.methods);
            if !self.headers.is_empty() {
                fields = fields.with("access-control-allow-headers", &self.headers);
            }
            fields = fields.with("access-control-max-age", &self.max_age);
        }
        Some(Response::new(204, fields, Body::Empty))
    }

    /// Adds to any response of the route whether the page that asked may read it.
    pub(super) fn add(&self, head: &Head, fields: ResponseFields) -> ResponseFields {
        let mut fields = match self.is_any {
            true => fields,
            // A cache keeps the response for one origin only.
            false => fields.with("vary", "origin"),
        };
        let Some(origin) = self.allowed(head) else { return fields };
        fields = fields.with("access-control-allow-origin", origin);
        if self.credentials {
            fields = fields.with("access-control-allow-credentials", "true");
        }
        if !self.expose.is_empty() {
            fields = fields.with("access-control-expose-headers", &self.expose);
        }
        fields
    }

    /// The origin to name to a page that may read; `*` where every one may.
    fn allowed(&self, head: &Head) -> Option<&str> {
        // A cache may show a response to pages, although no page asked for it.
        if self.is_any {
            return Some("*");
        }
        let asking = head.sole_header("origin")?;
        self.origins.iter().map(String::as_str).find(|origin| origin.as_bytes() == asking)
    }
}
