//! `[site.route.forward_auth]`: a service that is asked about each request before the route answers.

use std::time::Duration;

use crate::located::Located;
use crate::setting::{
    BackendHost, FieldTemplate, backend_host, duration, located_text, optional, request_headers,
    required, rules, settings, texts,
};

settings! {
    /// A service that says of each request whether the route may answer it, as nginx's `auth_request` and Caddy's `forward_auth` have
    /// it. It is asked by GET, without the body, after `allow`, `deny`, `rate_limit`, `signed_urls` and `basic_auth`. With 2xx the request goes
    /// on. 301, 302, 303, 307, 308, 401 and 403 are the client's answer, with `Location`, `WWW-Authenticate`, `Set-Cookie` and up to 64 KiB of the
    /// body. With anything else, and where there is no answer, the client gets 503.
    pub struct ForwardAuth {
        /// The `[[backend]]` that is asked, by HTTP/1.1.
        pub backend: Located<String> = required(located_text(&rules::BACKEND_NAME)),
        /// The path that it is asked for, and perhaps a query. The client's request is told in
        /// `X-Forwarded-Method` and `X-Forwarded-Uri` (path and query, slashes in a row as one), beside `X-Forwarded-Host`,
        /// `X-Forwarded-Proto` and `X-Forwarded-For`.
        pub path: Located<String> = required(located_text(&rules::REQUEST_TARGET)),
        /// The `Host` that it is sent, as `backend_host` of a route has it.
        pub backend_host: Option<BackendHost> = optional(
            backend_host(), "the one the client asks for, with its port where it says one"),
        /// Headers of the client's that it is sent; no others of the client's are. `["*"]` stands for all but conditions and ranges.
        pub request_headers: Vec<String> = texts(&rules::FIELD_NAME, &["cookie", "authorization", "accept"]),
        /// Headers that it is sent besides, with the words of `request_headers` of a route.
        pub headers: Vec<(String, Vec<FieldTemplate>)> = request_headers(),
        /// Headers of its answer that the route's backend gets; `"x-auth-request-user>x-user"` under another name. The client's of these
        /// names, in any spelling, never reach that backend. Not beside `cache`: a backend that is asked for all must not learn of one.
        pub copy: Vec<String> = texts(&rules::COPIED_FIELD, &[]),
        /// The time it may take for all of its answer.
        pub timeout: Duration = duration(
            Duration::from_secs(5), Duration::from_millis(10), Duration::from_mins(1)),
        /// The time for which its word that a request may go on holds for others in which it would be asked just the same: the
        /// same client, URL and headers. One with `Set-Cookie` holds once.
        pub cache: Duration = duration(Duration::ZERO, Duration::ZERO, Duration::from_mins(1)),
    }
}

impl ForwardAuth {
    /// The headers of its answer that are copied, each with the name that the backend knows it by.
    pub fn copied(&self) -> impl Iterator<Item = (&str, &str)> {
        self.copy.iter().map(|it| it.split_once('>').unwrap_or((it, it)))
    }
}
