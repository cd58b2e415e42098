//! What a client gets of a server's response: its status, the fields that are meant for it, and the body as it comes.

use kettle_http::h1::response::ResponseHead;

use super::ProxyRoute;
use crate::response::{Body, Response, ResponseFields};
use crate::upstream::UpstreamResponse;

impl ProxyRoute {
    /// The response for the client.
    pub(crate) fn incoming(&self, response: UpstreamResponse) -> Response {
        let UpstreamResponse { head, body } = response;
        let fields = self.fields(&head);
        Response::new(head.status(), fields, Body::Upstream(Box::new(body)))
    }

    /// The operator's fields, and those of the server's that are neither the operator's nor ours.
    pub(crate) fn fields(&self, head: &ResponseHead<impl AsRef<[u8]>>) -> ResponseFields {
        let configured = match head.status() {
            400..=599 => self.configured.without_caching(),
            _ => self.configured.all(),
        };
        let mut fields = ResponseFields::ready(configured.clone());
        for (name, value) in head.headers() {
            let name = String::from_utf8_lossy(name).to_ascii_lowercase();
            let is_own = OURS.contains(&&*name) || self.own_fields.contains(&&*name);
            if !is_own && !head.is_hop_by_hop(name.as_bytes()) && !has(configured, &name) {
                fields = fields.with(&name, value);
            }
        }
        fields
    }
}

/// Whether ready lines have a field of this name.
fn has(lines: &[u8], name: &str) -> bool {
    let is_it =
        |line: &[u8]| line.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b":"));
    lines.split(|byte| *byte == b'\n').any(is_it)
}

/// What we say of each response ourselves. Trailers are not passed on.
const OURS: [&str; 3] = ["content-length", "date", "server"];
