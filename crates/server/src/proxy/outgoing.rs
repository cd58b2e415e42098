//! The request that a server gets for a client's, written from its parsed parts. Nothing that a client says about itself or
//! about this connection reaches a server.

use std::net::IpAddr;

use kettle_config::ANY_NAME;
use kettle_http::field::{are_one_to_gateways, is_of_proxies};
use kettle_http::h1::framing::BodyFraming;
use kettle_http::target::Target;
use kettle_http::trailers::TrailerFilter;

use super::ProxyRoute;
use crate::redirect::reference;
use crate::request::{Head, Request};
use crate::upstream::{CONNECTION_OPTIONS_MAX, OutgoingRequest};

impl ProxyRoute {
    /// The request for a server, with this path; none if there is no host to ask for, or `Connection` has too many members. It
    /// asks for WebSocket if `asks_upgrade`, and has a body of `stored_bytes` where that was stored.
    pub(crate) fn outgoing(
        &self,
        path: &str,
        request: &Request<'_>,
        asks_upgrade: bool,
        stored_bytes: Option<u64>,
    ) -> Option<OutgoingRequest> {
        let head = &*request.head;
        if head.connection_options() > CONNECTION_OPTIONS_MAX {
            return None;
        }
        let asked = self.host_of(head, request.presented().server_name);
        let host = self.host.as_deref().or(asked.as_deref())?;
        let target = Target { path, ..head.target().ok()? };
        let reference = reference(target, head.raw_target())?;
        let method = head.method().as_str();
        let mut outgoing =
            OutgoingRequest::new(method, &reference, host, request.client, self.timeout)?;
        for (name, value) in head.headers() {
            if !is_ours(name) && !head.is_hop_by_hop(name) && !self.is_own(name) {
                outgoing.field(std::str::from_utf8(name).unwrap_or_default(), value);
            }
        }
        for (name, value) in &self.request_headers {
            outgoing.field(name, value);
        }
        self.add_forwarded(&mut outgoing, request.client, asked.as_deref());
        let closes = !self.upstream.keeps_connections();
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
        let framing = stored_bytes.map_or(request.body.framing(), BodyFraming::Length);
        if stored_bytes.is_none() && !framing.is_empty() && head.expects_continue() {
            outgoing.field("expect", "100-continue");
        }
        outgoing.announce_body(framing);
        Some(outgoing)
    }

    /// Which of a request's trailers a server gets.
    pub(super) fn request_trailers(&self, head: &Head) -> TrailerFilter {
        let own = self.request_headers.iter().map(|(name, _)| name.to_ascii_lowercase());
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

    /// Names the client, by both sets of fields in use (RFC 7239, and what came before it), unless the operator says it.
    fn add_forwarded(&self, outgoing: &mut OutgoingRequest, client: IpAddr, host: Option<&str>) {
        let client = client.to_canonical();
        let node = match client {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("\"[{address}]\""),
        };
        let part = host.map(|host| format!(";host=\"{host}\"")).unwrap_or_default();
        let fields = [
            ("x-forwarded-host", host.map(str::to_owned)),
            ("forwarded", Some(format!("for={node};proto=https{part}"))),
            ("x-forwarded-for", Some(client.to_string())),
            ("x-forwarded-proto", Some("https".to_owned())),
        ];
        for (name, value) in fields {
            if let Some(value) = value.filter(|_| !self.is_own(name.as_bytes())) {
                outgoing.field(name, value);
            }
        }
    }
}

/// Whether a field of a client's is not passed on, because we say it ourselves or because it is none of a client's.
fn is_ours(name: &[u8]) -> bool {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    is_of_proxies(name) || ["host", "content-length", "expect"].into_iter().any(is)
}

#[cfg(test)]
mod tests;
