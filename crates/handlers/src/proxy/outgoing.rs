//! The request that a server gets for a client's, written from its parsed parts. Nothing that a client says about itself or
//! about this connection reaches a server.

use std::borrow::Cow;
use std::io::Write as _;
use std::net::IpAddr;
use std::num::NonZero;

use kettle_config::ANY_NAME;
use kettle_exchange::request::{Client, Head, Request};
use kettle_http::field::{are_one_to_gateways, is_of_proxies};
use kettle_http::h1::framing::BodyFraming;
use kettle_http::target::{Target, reference};
use kettle_http::trailers::TrailerFilter;
use kettle_runtime::client_address::ClientHost;
use kettle_upstream::backend::balance::hash;
use kettle_upstream::{CONNECTION_OPTIONS_MAX, OutgoingRequest};

use super::ProxyRoute;
use crate::words::{Words, asked_host};

impl ProxyRoute {
    /// The request for a server, with this path if not the one asked for; none if there is no host to ask for, or `Connection` has too many members. It
    /// asks for WebSocket if `asks_upgrade`. A body that `is_stored` is announced once it is.
    pub(crate) fn outgoing(
        &self,
        path: Option<&str>,
        request: &Request<'_>,
        asks_upgrade: bool,
        is_stored: bool,
    ) -> Option<OutgoingRequest> {
        if let Some(program) = &self.program {
            return self.to_program(program, path, request, is_stored);
        }
        let head = &*request.head;
        if head.connection_options() > CONNECTION_OPTIONS_MAX {
            return None;
        }
        let asked = self.host_of(head, request.presented().server_name);
        let target = head.target().ok()?;
        let path = path.unwrap_or(target.path);
        let path = match &self.prefix {
            Some(prefix) => prefix.there(path)?,
            None => Cow::Borrowed(path),
        };
        let target = Target { path: &path, ..target };
        let reference = reference(target, head.raw_target(), self.slash_runs)?;
        let client = request.client;
        let words = self.words_for(request, asked.as_deref(), target.path, &reference);
        let method = self.method_of(head);
        let host = words.host(self.host.as_ref())?;
        let mut outgoing =
            OutgoingRequest::new(method, &reference, &host, client.host(), self.timeout)?;
        let hop_by_hop = head.hop_by_hop();
        for (name, value) in head.headers().filter(|_| self.replaced.passes_headers) {
            let is_kept = is_ours(name) || client.is_named_by(name);
            if !is_kept && !hop_by_hop.has(name) && !self.is_own(name) {
                outgoing.field(name, value);
            }
        }
        outgoing.key = self.key_of(&words);
        self.add_own(&mut outgoing, &words);
        self.vouched(request).for_each(|(name, value)| outgoing.field(name, value));
        self.add_forwarded(&mut outgoing, client, asked.as_deref());
        let is_named = self.replaced.passes_headers
            && head.header(REQUEST_ID).is_some()
            && !hop_by_hop.has(REQUEST_ID.as_bytes());
        if !is_named && !self.is_own(REQUEST_ID.as_bytes()) {
            outgoing.field_with(REQUEST_ID, |value| client.request_id.write(value));
        }
        outgoing.is_doubtful = !is_stored && self.doubts_length(request);
        let closes = outgoing.is_doubtful || !self.upstream.keeps_connections();
        match (asks_upgrade, head.takes_trailers()) {
            (true, _) => {
                outgoing.field("connection", "upgrade");
                outgoing.field("upgrade", "websocket");
            }
            (false, true) => {
                outgoing.field("connection", if closes { "close, te" } else { "te" });
                outgoing.field("te", "trailers");
            }
            (false, false) if closes => outgoing.field("connection", "close"),
            (false, false) => {}
        }
        if is_stored {
            // Its body is announced once it is there.
            return Some(outgoing);
        }
        // A request that changes its protocol has no body, and some servers take a length of zero for one.
        let framing = if asks_upgrade { BodyFraming::None } else { request.body.framing() };
        if !framing.is_empty() && head.expects_continue() {
            outgoing.field("expect", "100-continue");
        }
        outgoing.announce_body(framing);
        Some(outgoing.ended())
    }

    /// Returns the values of words in a request for this host, path and reference.
    pub(super) fn words_for<'w>(
        &'w self,
        request: &'w Request<'_>,
        host: Option<&'w str>,
        path: &'w str,
        reference: &'w str,
    ) -> Words<'w> {
        Words {
            head: Some(&request.head),
            host: host.map(Cow::Borrowed),
            reference: Cow::Borrowed(reference),
            path: Some(path),
            scheme: request.client.scheme,
            client: Some(request.client),
            certificate: request.certificate().filter(|_| self.words.asks_certificates),
            answer: None,
            vouched: None,
            source: &self.words,
        }
    }

    /// Returns the text that chooses the server of a request, if that is a text of it, and not empty.
    pub(super) fn key_of(&self, words: &Words<'_>) -> Option<NonZero<u64>> {
        let template = self.upstream.backend.settings.hash.as_ref()?;
        // One that is never 0 takes half of the memory, in each request that is passed on.
        NonZero::new(hash(&words.fill(template)?).max(1))
    }

    /// The method that servers are asked by.
    pub(super) fn method_of<'r>(&self, head: &'r Head) -> &'r str {
        match self.replaced.method {
            Some(method) => method.as_str(),
            None => head.method().as_str(),
        }
    }

    /// The body that servers get in place of the client's, for this path if not the one asked for.
    pub(super) fn own_body(&self, path: Option<&str>, request: &Request<'_>) -> Option<Vec<u8>> {
        let template = self.replaced.body.as_ref()?;
        let asked = self.host_of(&request.head, request.presented().server_name);
        let target = request.head.target().ok()?;
        let path = path.unwrap_or(target.path);
        let sent = Target { path, ..target };
        let reference = reference(sent, request.head.raw_target(), self.slash_runs)?;
        let words = self.words_for(request, asked.as_deref(), path, &reference);
        Some(words.text_with(template, |_| &[]))
    }

    /// Which of a request's trailers a server gets.
    pub(super) fn request_trailers(&self, head: &Head, client: &Client) -> TrailerFilter {
        let own = self.request_headers.iter().map(|(name, _)| name.to_ascii_lowercase());
        let own = own.chain(client.reserved_field().map(str::to_owned));
        TrailerFilter::of_request(head.header_values("connection"), own)
    }

    /// The host that a request is for, in lower case: what the client asks for, with its port, or the connection's name where it
    /// says none, if the site has that name; else the site's first name, without a port. Only a site that has no exact name
    /// passes on whatever it is asked for.
    ///
    /// Caches count on it: what servers learn of the host is this or the operator's `backend_host`, and nothing else that a
    /// client says. So a key has to hold what this returns, and not what the client asked for.
    pub(super) fn host_of<'r>(
        &'r self,
        head: &'r Head,
        server_name: Option<&'r str>,
    ) -> Option<Cow<'r, str>> {
        let asked = asked_host(head, server_name);
        let own = self.names.iter().find(|name| !name.contains('*') && **name != ANY_NAME);
        let host = asked.filter(|host| own.is_none() || self.has_name(host));
        let port = head.authority().and_then(|authority| authority.port);
        Some(match (host, port) {
            (Some(host), Some(port)) => format!("{host}:{port}").into(),
            (Some(host), None) => host,
            (None, _) => own?.into(),
        })
    }

    /// True if it is a name of the site: in full, below a star or two, behind the beginning of `example.*`, or by a regular
    /// expression.
    fn has_name(&self, host: &str) -> bool {
        let below = host.find('.').and_then(|dot| host.get(dot..));
        let begins = |it: &str| host.len() > it.len() && host.starts_with(it);
        let ends = |it: &str| host.len() > it.len() && host.ends_with(it);
        let is_it = |name: &String| {
            name == host
                || name.strip_prefix('*').is_some_and(|it| Some(it) == below)
                || name.strip_prefix("**").is_some_and(ends)
                || name.strip_suffix('*').is_some_and(begins)
        };
        self.names.iter().any(is_it) || self.patterns.iter().any(|pattern| pattern.fits(host))
    }

    /// True if the operator says a field of this name, or one that servers may take for it.
    pub(super) fn is_own(&self, name: &[u8]) -> bool {
        let mut names = self.request_headers.iter();
        names.any(|(own, _)| are_one_to_gateways(own.as_bytes(), name))
    }

    /// Returns what a service has said of the client, as far as this route is to tell it.
    pub(super) fn vouched<'r>(
        &'r self,
        request: &'r Request<'_>,
    ) -> impl Iterator<Item = (&'r str, &'r [u8])> {
        let fields = request.vouched.iter().flat_map(|vouched| vouched.fields.iter());
        let told = fields.filter(|(name, _)| self.copied.contains(name));
        told.map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// Adds the operator's fields.
    pub(super) fn add_own(&self, outgoing: &mut OutgoingRequest, words: &Words<'_>) {
        for (name, values) in &self.request_headers {
            for value in values.iter().filter_map(|value| words.fill(value)) {
                outgoing.field(name, value);
            }
        }
    }

    /// Names the client and the proxies in between, by both sets of fields in use (RFC 7239, and what came before it), unless the
    /// operator says it.
    pub(super) fn add_forwarded(
        &self,
        outgoing: &mut OutgoingRequest,
        client: &Client,
        host: Option<&str>,
    ) {
        let scheme = client.scheme.as_str();
        let address = client.host();
        let is_ours = |name: &str| !self.is_own(name.as_bytes());
        if let Some(host) = host.filter(|_| is_ours("x-forwarded-host")) {
            outgoing.field("x-forwarded-host", host);
        }
        if is_ours("forwarded") {
            outgoing.field_with("forwarded", |value| {
                add_node(value, address);
                for part in [";proto=", scheme] {
                    value.extend_from_slice(part.as_bytes());
                }
                for part in host.iter().flat_map(|host| [";host=\"", host, "\""]) {
                    value.extend_from_slice(part.as_bytes());
                }
                for proxy in &client.proxies {
                    value.extend_from_slice(b", ");
                    add_node(value, *proxy);
                }
            });
        }
        if is_ours("x-forwarded-for") {
            outgoing.field_with("x-forwarded-for", |value| {
                add_host(value, address);
                for proxy in &client.proxies {
                    value.extend_from_slice(b", ");
                    add_host(value, *proxy);
                }
            });
        }
        if is_ours("x-forwarded-proto") {
            outgoing.field("x-forwarded-proto", scheme);
        }
        if let Some(name) = client.naming_field().filter(|name| is_ours(name)) {
            outgoing.field_with(name, |value| add_host(value, address));
        }
    }
}

/// Adds a client as text. Most have an address of IPv4, and need none of what formatting has to offer.
pub(super) fn add_host(value: &mut Vec<u8>, client: ClientHost) {
    let ClientHost::Ip(IpAddr::V4(address)) = client else {
        // Writing to memory cannot fail.
        let _ = write!(value, "{client}");
        return;
    };
    for (number, octet) in address.octets().into_iter().enumerate() {
        if number > 0 {
            value.push(b'.');
        }
        value.extend_from_slice(itoa::Buffer::new().format(octet).as_bytes());
    }
}

/// Adds a client as `Forwarded` has it (RFC 7239 §6): an address of IPv6, which has colons, in brackets. One on a Unix socket has
/// no address.
fn add_node(value: &mut Vec<u8>, client: ClientHost) {
    value.extend_from_slice(b"for=");
    match client {
        ClientHost::Unix => value.extend_from_slice(b"unknown"),
        ClientHost::Ip(IpAddr::V4(_)) => add_host(value, client),
        // Writing to memory cannot fail.
        ClientHost::Ip(IpAddr::V6(address)) => _ = write!(value, "\"[{address}]\""),
    }
}

/// True if a field of a client's is not passed on, because we say it ourselves or because it is none of a client's.
pub(super) fn is_ours(name: &[u8]) -> bool {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    is_of_proxies(name) || ["host", "content-length", "expect"].into_iter().any(is)
}

/// The header with the name of a request, if its client says it; else it is ours.
pub(super) const REQUEST_ID: &str = "x-request-id";

#[cfg(test)]
mod tests;
