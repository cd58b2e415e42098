//! The part of a server's response that a client gets: its status, the fields that are meant for it, and the body as it comes.

use kettle_exchange::request::Request;
use kettle_exchange::response::{Body, Response, ResponseFields};
use kettle_http::date;
use kettle_http::field::is_accel;
use kettle_http::h1::response::ResponseHead;
use kettle_http::h1::write::{write_field, write_status_line};
use kettle_http::trailers::TrailerFilter;
use kettle_upstream::UpstreamResponse;

use super::ProxyRoute;
use super::SharedTarget;
use super::prefix::turned_back;
use super::rewrites::url_of_refresh;
use crate::words::{Asked, Words};

/// The request that an answer is for.
#[derive(Clone, Copy)]
pub(crate) enum Asker<'r> {
    /// That of one client.
    One(&'r Request<'r>),
    /// The target for which many ask.
    Many(&'r SharedTarget),
}

impl ProxyRoute {
    /// The response for the client.
    pub(crate) fn incoming(&self, response: UpstreamResponse, asker: Asker<'_>) -> Response {
        let UpstreamResponse { head, body } = response;
        let fields = self.fields(&head, asker);
        Response::new(head.status(), fields, Body::Upstream(body))
    }

    /// The operator's fields, and those of the server's that are neither the operator's nor ours.
    pub(crate) fn fields(
        &self,
        head: &ResponseHead<impl AsRef<[u8]>>,
        asker: Asker<'_>,
    ) -> ResponseFields {
        let configured = match head.status() {
            101 | 400.. => self.configured.for_errors(),
            _ => self.configured.all(),
        };
        let mut fields = ResponseFields::ready(configured.clone());
        fields.reserve(head.headers().map(|(name, value)| name.len() + value.len() + 4).sum());
        self.pass_on(head, asker, |name, value| fields.add(name, value));
        fields.move_behind(self.configured.beside());
        fields
    }

    /// An interim response as the client gets it, or as all clients get it that wait for the same.
    pub(crate) fn interim(
        &self,
        head: &ResponseHead<impl AsRef<[u8]>>,
        asker: Asker<'_>,
    ) -> Vec<u8> {
        let is_shared = matches!(asker, Asker::Many(_));
        let mut bytes = Vec::new();
        write_status_line(&mut bytes, head.status());
        self.pass_on(head, asker, |name, value| {
            // Nobody's cookie is everybody's.
            if !is_shared || name != b"set-cookie" {
                write_field(&mut bytes, name, value);
            }
        });
        bytes.extend_from_slice(b"\r\n");
        bytes
    }

    /// Passes on the server's fields, by names in lower case, that are neither the operator's, nor ours, nor for one hop only.
    fn pass_on(
        &self,
        head: &ResponseHead<impl AsRef<[u8]>>,
        asker: Asker<'_>,
        mut pass: impl FnMut(&[u8], &[u8]),
    ) {
        let mut usual = [0; NAME_BYTES_USUAL];
        let hop_by_hop = head.hop_by_hop();
        for (sent, value) in head.headers() {
            let mut long;
            let name = match usual.get_mut(..sent.len()) {
                Some(usual) => {
                    usual.copy_from_slice(sent);
                    usual
                }
                None => {
                    long = sent.to_vec();
                    &mut *long
                }
            };
            name.make_ascii_lowercase();
            let name = &*name;
            let is_own = OURS.contains(&name)
                || is_accel(name)
                || (name == b"date" && !is_date(head, value))
                || self.has_own(name, head.status());
            if is_own || hop_by_hop.has(name) {
                continue;
            }
            let turned = match name {
                b"location" => self.location(value, asker),
                b"refresh" => url_of_refresh(value).and_then(|at| {
                    let (before, url) = value.split_at_checked(at)?;
                    Some([before, &self.location(url, asker)?].concat())
                }),
                b"set-cookie" => {
                    let rewrites = self.rewrites.as_ref();
                    rewrites.and_then(|it| it.cookie(value, &self.words_of(asker)))
                }
                _ => None,
            };
            pass(name, turned.as_deref().unwrap_or(value));
        }
    }

    /// Where a redirect leads for clients; `None` where the server says.
    fn location(&self, location: &[u8], asker: Asker<'_>) -> Option<Vec<u8>> {
        match self.rewrites.as_ref().filter(|it| it.has_redirects()) {
            Some(rewrites) => rewrites.location(location, &self.words_of(asker)),
            None => {
                let turned = turned_back(location, self.host.as_ref(), self.prefix.as_ref());
                turned.map(String::into_bytes)
            }
        }
    }

    /// Returns the values of words in an answer: for the request of one, as in the request that its server gets.
    fn words_of<'w>(&'w self, asker: Asker<'w>) -> Words<'w> {
        match asker {
            Asker::Many(target) => self.shared_words(target),
            Asker::One(request) => {
                let server_name = request.presented().server_name;
                let host = self.host_of(&request.head, server_name);
                Words { host, ..Asked::of(request).words(&self.words) }
            }
        }
    }

    /// Which of the server's trailers a client gets: none of a name that the operator or we have in the head.
    pub(crate) fn response_trailers(&self, head: &ResponseHead<impl AsRef<[u8]>>) -> TrailerFilter {
        let configured = self.configured.names().chain(self.configured.removed());
        let own = configured.map(str::to_owned).chain(self.own_fields.iter().cloned());
        TrailerFilter::of_response(head.header_values("connection"), own)
    }

    /// The lines of a response that was kept, which came under settings of another time, without what is the operator's or
    /// ours by now; `None` if all of them stay.
    pub(crate) fn still_passed_on(&self, status: u16, lines: &[u8]) -> Option<Vec<u8>> {
        let is_own = |line: &&[u8]| {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
            self.has_own(name, status)
        };
        let of_lines = || lines.split_inclusive(|byte| *byte == b'\n');
        let has_any = of_lines().any(|line| is_own(&line));
        has_any.then(|| of_lines().filter(|line| !is_own(line)).flatten().copied().collect())
    }

    /// True if a field of this name, in lower case, is the operator's or ours in a response of this status. Of two `vary` both hold, since
    /// only the server knows by what its response varies (RFC 9110 §12.5.5). In an error the operator's word on caching stands beside the
    /// server's, and the stricter holds.
    fn has_own(&self, name: &[u8], status: u16) -> bool {
        self.own_fields.iter().any(|own| own.as_bytes() == name)
            || self.configured.removes(name)
            || (self.configured.has(name)
                && name != b"vary"
                && (status < 400 || !OF_CACHING.contains(&name)))
    }
}

/// True if it is when the response was made. Where it is not, we say when it came (RFC 9110 §6.6.1).
fn is_date(head: &ResponseHead<impl AsRef<[u8]>>, value: &[u8]) -> bool {
    head.header_values("date").count() == 1 && date::is_date(value)
}

/// The fields that say how long a response may be kept.
const OF_CACHING: [&[u8]; 2] = [b"cache-control", b"expires"];

/// Room that most names find enough.
const NAME_BYTES_USUAL: usize = 64;

/// The headers that we write into each response ourselves.
const OURS: [&[u8]; 2] = [b"content-length", b"server"];
