//! What a client gets of a server's response: its status, the fields that are meant for it, and the body as it comes.

use bytes::Bytes;
use kettle_http::date;
use kettle_http::h1::response::ResponseHead;
use kettle_http::h1::write::{write_field, write_status_line};
use kettle_http::trailers::TrailerFilter;

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
        let configured = match head.status() {
            400.. => self.configured.for_errors(),
            _ => self.configured.all(),
        };
        let mut fields = ResponseFields::ready(configured.clone());
        fields.reserve(head.headers().map(|(name, value)| name.len() + value.len() + 4).sum());
        self.pass_on(head, |name, value| fields.add(name, value));
        fields
    }

    /// An interim response as the client gets it, or as all clients get it that wait for the same.
    pub(crate) fn interim(
        &self,
        head: &ResponseHead<impl AsRef<[u8]>>,
        is_shared: bool,
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_status_line(&mut bytes, head.status());
        self.pass_on(head, |name, value| {
            // Nobody's cookie is everybody's.
            if !is_shared || name != "set-cookie" {
                write_field(&mut bytes, name, value);
            }
        });
        bytes.extend_from_slice(b"\r\n");
        bytes
    }

    /// Passes on the server's fields, by names in lower case, that are neither the operator's, nor ours, nor for one hop only.
    fn pass_on(&self, head: &ResponseHead<impl AsRef<[u8]>>, mut pass: impl FnMut(&str, &[u8])) {
        let (configured, mut name) = (self.replacing(head.status()), String::new());
        for (sent, value) in head.headers() {
            name.clear();
            name.push_str(&String::from_utf8_lossy(sent));
            name.make_ascii_lowercase();
            let is_own = OURS.contains(&&*name)
                || name.starts_with(FOR_NGINX)
                || (name == "date" && !is_date(head, value))
                || self.has_own(&name, configured);
            if !is_own && !head.is_hop_by_hop(name.as_bytes()) {
                pass(&name, value);
            }
        }
    }

    /// Which of the server's trailers a client gets: none of a name that the operator or we have in the head.
    pub(crate) fn response_trailers(&self, head: &ResponseHead<impl AsRef<[u8]>>) -> TrailerFilter {
        let lines = self.configured.all().split(|byte| *byte == b'\n');
        let names = lines.filter_map(|line| line.split(|byte| *byte == b':').next());
        let names = names.map(|name| String::from_utf8_lossy(name).into_owned());
        let own = self.own_fields.iter().cloned();
        let own = own.chain(self.configured.removed().map(str::to_owned));
        TrailerFilter::of_response(head.header_values("connection"), names.chain(own))
    }

    /// The lines of a response that was kept, which came under settings of another time, without what is the operator's or
    /// ours by now; `None` if all of them stay.
    pub(crate) fn still_passed_on(&self, status: u16, lines: &[u8]) -> Option<Vec<u8>> {
        let configured = self.replacing(status);
        let is_own = |line: &&[u8]| {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
            self.has_own(&String::from_utf8_lossy(name), configured)
        };
        let of_lines = || lines.split_inclusive(|byte| *byte == b'\n');
        let has_any = of_lines().any(|line| is_own(&line));
        has_any.then(|| of_lines().filter(|line| !is_own(line)).flatten().copied().collect())
    }

    /// Whether a field of this name, in lower case, is the operator's or ours. By what a server's response varies it knows alone: of
    /// two `vary` both hold (RFC 9110 §12.5.5).
    fn has_own(&self, name: &str, configured: &[u8]) -> bool {
        self.own_fields.iter().any(|own| own == name)
            || self.configured.removes(name)
            || (name != "vary" && has_line(configured, name))
    }

    /// The operator's fields that take the place of a server's. What keeps caches from an error stands beside what its server says
    /// of caching, and the stricter holds.
    fn replacing(&self, status: u16) -> &Bytes {
        match status {
            400.. => self.configured.without_caching(),
            _ => self.configured.all(),
        }
    }
}

/// Whether it is when the response was made. Where it is not, we say when it came (RFC 9110 §6.6.1).
fn is_date(head: &ResponseHead<impl AsRef<[u8]>>, value: &[u8]) -> bool {
    head.header_values("date").count() == 1 && date::parse(value).is_some()
}

/// What we say of each response ourselves.
const OURS: [&str; 2] = ["content-length", "server"];
/// What servers tell a program in front of them, and nobody else.
const FOR_NGINX: &str = "x-accel-";
