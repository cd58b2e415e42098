//! The request that a server gets for a client's, written from its parsed parts. Nothing that a client says about itself or
//! about this connection reaches a server.

use std::fmt::Write as _;
use std::net::IpAddr;

use kettle_config::ANY_NAME;
use kettle_http::field::{are_one_to_gateways, is_of_proxies};
use kettle_http::h1::framing::BodyFraming;
use kettle_http::target::{Target, reference};
use kettle_http::trailers::TrailerFilter;

use super::ProxyRoute;
use super::words::Words;
use crate::client_address::ClientHost;
use crate::request::{Client, Head, Request};
use crate::upstream::{CONNECTION_OPTIONS_MAX, OutgoingRequest};

impl ProxyRoute {
    /// The request for a server, with this path; none if there is no host to ask for, or `Connection` has too many members. It
    /// asks for WebSocket if `asks_upgrade`. A body that `is_stored` is announced once it is.
    pub(crate) fn outgoing(
        &self,
        path: &str,
        request: &Request<'_>,
        asks_upgrade: bool,
        is_stored: bool,
    ) -> Option<OutgoingRequest> {
        let head = &*request.head;
        if head.connection_options() > CONNECTION_OPTIONS_MAX {
            return None;
        }
        let asked = self.host_of(head, request.presented().server_name);
        let target = Target { path, ..head.target().ok()? };
        let reference = reference(target, head.raw_target(), self.slash_runs)?;
        let client = &request.client;
        let words = Words {
            host: asked.as_deref(),
            reference: &reference,
            scheme: client.scheme,
            client: Some(client),
            certificate: request.certificate().filter(|_| self.asks_certificates),
        };
        let (method, host) = (head.method().as_str(), words.host(self.host.as_ref())?);
        let mut outgoing =
            OutgoingRequest::new(method, &reference, &host, client.host(), self.timeout)?;
        for (name, value) in head.headers() {
            let is_kept = is_ours(name) || client.is_named_by(name);
            if !is_kept && !head.is_hop_by_hop(name) && !self.is_own(name) {
                outgoing.field(std::str::from_utf8(name).unwrap_or_default(), value);
            }
        }
        self.add_own(&mut outgoing, &words);
        self.add_forwarded(&mut outgoing, client, asked.as_deref());
        let is_named =
            head.header(REQUEST_ID).is_some() && !head.is_hop_by_hop(REQUEST_ID.as_bytes());
        if !is_named && !self.is_own(REQUEST_ID.as_bytes()) {
            outgoing.field(REQUEST_ID, client.request_id.to_string());
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
            return Some(outgoing);
        }
        // What changes its protocol has no body, and some servers take a length of zero for one.
        let framing = if asks_upgrade { BodyFraming::None } else { request.body.framing() };
        if !framing.is_empty() && head.expects_continue() {
            outgoing.field("expect", "100-continue");
        }
        outgoing.announce_body(framing);
        Some(outgoing)
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
    pub(super) fn host_of(&self, head: &Head, server_name: Option<&str>) -> Option<String> {
        let authority = head.authority();
        let asked = authority.as_ref().map(|authority| authority.host).or(server_name);
        let asked = asked.map(|host| host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase());
        let own = self.names.iter().find(|name| !name.starts_with('*') && **name != ANY_NAME);
        let host = asked.filter(|host| own.is_none() || self.has_name(host));
        let port = authority.and_then(|authority| authority.port);
        Some(match (host, port) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            (Some(host), None) => host,
            (None, _) => own?.clone(),
        })
    }

    /// Whether it is a name of the site, in full or one level below a star.
    fn has_name(&self, host: &str) -> bool {
        let below = host.find('.').and_then(|dot| host.get(dot..));
        let is_it = |name: &String| {
            name == host || name.strip_prefix('*').is_some_and(|it| Some(it) == below)
        };
        self.names.iter().any(is_it)
    }

    /// Whether the operator says a field of this name, or one that servers may take for it.
    pub(super) fn is_own(&self, name: &[u8]) -> bool {
        let mut names = self.request_headers.iter();
        names.any(|(own, _)| are_one_to_gateways(own.as_bytes(), name))
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
    fn add_forwarded(&self, outgoing: &mut OutgoingRequest, client: &Client, host: Option<&str>) {
        let (scheme, address) = (client.scheme.as_str(), client.host());
        let mut add = |name: &str, value: &str| {
            if !self.is_own(name.as_bytes()) {
                outgoing.field(name, value);
            }
        };
        host.into_iter().for_each(|host| add("x-forwarded-host", host));
        let mut text = String::with_capacity(FORWARDED_BYTES_USUAL);
        add_node(&mut text, address);
        let _ = write!(text, ";proto={scheme}");
        if let Some(host) = host {
            let _ = write!(text, ";host=\"{host}\"");
        }
        for proxy in &client.proxies {
            text.push_str(", ");
            add_node(&mut text, *proxy);
        }
        add("forwarded", &text);
        text.clear();
        let _ = write!(text, "{address}");
        for proxy in &client.proxies {
            let _ = write!(text, ", {proxy}");
        }
        add("x-forwarded-for", &text);
        add("x-forwarded-proto", scheme);
        client.naming_field().into_iter().for_each(|name| add(name, &address.to_string()));
    }
}

/// Adds an address as `Forwarded` has it (RFC 7239 §6).
fn add_node(text: &mut String, client: ClientHost) {
    let _ = match client {
        ClientHost::Ip(IpAddr::V4(address)) => write!(text, "for={address}"),
        ClientHost::Ip(IpAddr::V6(address)) => write!(text, "for=\"[{address}]\""),
        ClientHost::Unix => write!(text, "for=unknown"),
    };
}

/// Room that most find enough.
const FORWARDED_BYTES_USUAL: usize = 128;

/// Whether a field of a client's is not passed on, because we say it ourselves or because it is none of a client's.
fn is_ours(name: &[u8]) -> bool {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    is_of_proxies(name) || ["host", "content-length", "expect"].into_iter().any(is)
}

/// What a request is called, if its client says it; else by us.
const REQUEST_ID: &str = "x-request-id";

#[cfg(test)]
mod tests;
