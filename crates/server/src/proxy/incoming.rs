//! What a client gets of a server's response: its status, the fields that are meant for it, and the body as it comes.

use bytes::Bytes;
use kettle_http::date;
use kettle_http::h1::response::ResponseHead;
use kettle_http::h1::write::{write_field, write_status_line};

use super::ProxyRoute;
use crate::response::{Body, Response, ResponseFields, has_line};
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
        let configured = self.configured_for(head.status());
        let mut fields = ResponseFields::ready(configured.clone());
        for (name, value) in self.passed_on(head) {
            fields = fields.with(&name, value);
        }
        fields
    }

    /// An interim response as the client gets it.
    pub(crate) fn interim(&self, head: &ResponseHead<impl AsRef<[u8]>>) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_status_line(&mut bytes, head.status());
        for (name, value) in self.passed_on(head) {
            write_field(&mut bytes, &name, value);
        }
        bytes.extend_from_slice(b"\r\n");
        bytes
    }

    /// The server's fields, by names in lower case, that are neither the operator's, nor ours, nor for one hop only.
    fn passed_on<'h>(
        &self,
        head: &'h ResponseHead<impl AsRef<[u8]>>,
    ) -> impl Iterator<Item = (String, &'h [u8])> {
        let configured = self.configured_for(head.status());
        head.headers().filter_map(move |(name, value)| {
            let name = String::from_utf8_lossy(name).to_ascii_lowercase();
            let is_own = OURS.contains(&&*name)
                || (name == "date" && !is_date(head, value))
                || self.own_fields.contains(&&*name)
                || has_line(configured, &name);
            (!is_own && !head.is_hop_by_hop(name.as_bytes())).then_some((name, value))
        })
    }

    fn configured_for(&self, status: u16) -> &Bytes {
        match status {
            400..=599 => self.configured.without_caching(),
            _ => self.configured.all(),
        }
    }
}

/// Whether it is when the response was made. Where it is not, we say when it came (RFC 9110 §6.6.1).
fn is_date(head: &ResponseHead<impl AsRef<[u8]>>, value: &[u8]) -> bool {
    head.header_values("date").count() == 1 && date::parse(value).is_some()
}

/// What we say of each response ourselves. Trailers are not passed on.
const OURS: [&str; 2] = ["content-length", "server"];
