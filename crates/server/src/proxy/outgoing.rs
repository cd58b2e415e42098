//! The request that a server gets for a client's, written from its parsed parts. Nothing that a client says about itself or
//! about this connection reaches a server.

use std::borrow::Cow;
use std::net::IpAddr;

use kettle_http::h1::framing::BodyFraming;
use kettle_http::target::{Form, Target};

use super::ProxyRoute;
use crate::redirect::path_and_query;
use crate::request::{Head, Request};
use crate::upstream::OutgoingRequest;

impl ProxyRoute {
    /// The request for a server, with this path; none if there is no host to ask for. `upgrade` is the protocol that the client may change to.
    pub(crate) fn outgoing(
        &self,
        path: &str,
        request: &Request<'_>,
        upgrade: Option<&[u8]>,
    ) -> Option<OutgoingRequest> {
        let head = &*request.head;
        let asked = asked_host(head, request.server_name());
        let host = self.host.as_deref().or(asked.as_deref())?;
        let target = Target { path, ..head.target().ok()? };
        let reference = reference(target, head.raw_target())?;
        let method = head.method().as_str();
        let mut outgoing =
            OutgoingRequest::new(method, &reference, host, request.client, self.timeout)?;
        let is_own = |name: &[u8]| {
            let mut names = self.request_headers.iter();
            names.any(|(own, _)| name.eq_ignore_ascii_case(own.as_bytes()))
        };
        for (name, value) in head.headers() {
            if !is_ours(name) && !head.is_hop_by_hop(name) && !is_own(name) {
                outgoing.field(std::str::from_utf8(name).unwrap_or_default(), value);
            }
        }
        for (name, value) in &self.request_headers {
            outgoing.field(name, value);
        }
        add_forwarded(&mut outgoing, request.client, asked.as_deref());
        match upgrade {
            Some(protocol) => {
                outgoing.field("connection", "upgrade");
                outgoing.field("upgrade", protocol);
            }
            None if !self.upstream.keeps_connections() => outgoing.field("connection", "close"),
            None => {}
        }
        let framing = request.body.framing();
        if framing != BodyFraming::None && head.expects_continue() {
            outgoing.field("expect", "100-continue");
        }
        outgoing.announce_body(framing);
        Some(outgoing)
    }
}

/// The host that a client asks for, in lower case, with its port; that of the connection where it says none.
fn asked_host(head: &Head, server_name: Option<&str>) -> Option<String> {
    let authority = head.authority();
    let host = authority.as_ref().map(|authority| authority.host).or(server_name)?;
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    Some(match authority.and_then(|authority| authority.port) {
        Some(port) => format!("{host}:{port}"),
        None => host,
    })
}

/// Path and query as the server gets them. A path that was only encoded in its own way stays as it was sent: decoded once it
/// is the path that the route was chosen by. Any other, rewritten or with segments that were resolved, is encoded anew.
///
/// `None` for one that would have to be encoded anew and has an encoded slash, since it could mean two things then.
fn reference<'t>(target: Target<'t>, raw: &'t str) -> Option<Cow<'t, str>> {
    let (raw_path, _) = raw.split_once('?').unwrap_or((raw, ""));
    match target.form == Form::Origin && is_same_path(raw_path, target.path) {
        true => Some(Cow::Borrowed(raw)),
        false if target.has_encoded_slash => None,
        false => Some(Cow::Owned(path_and_query(target, ""))),
    }
}

/// Whether a path decodes to another one byte for byte, with nothing to be resolved. An encoded slash stays encoded.
fn is_same_path(raw: &str, path: &str) -> bool {
    let mut raw = raw.bytes();
    let mut decoded = path.bytes();
    while let Some(byte) = raw.next() {
        let is_encoded = byte == b'%';
        let byte = match byte {
            b'%' => {
                let mut digit = || char::from(raw.next()?).to_digit(16);
                match digit()
                    .zip(digit())
                    .and_then(|(high, low)| u8::try_from(high * 16 + low).ok())
                {
                    Some(byte) => byte,
                    None => return false,
                }
            }
            byte => byte,
        };
        let is_same = match (byte, is_encoded) {
            (b'/', true) => decoded.by_ref().take(3).eq(*b"%2F"),
            _ => decoded.next() == Some(byte),
        };
        if !is_same {
            return false;
        }
    }
    decoded.next().is_none()
}

/// Whether a field of a client's is not passed on, because we say it ourselves, because only a proxy can know it, or because
/// programs behind gateways (CGI) take it for another: `a_b` and `a-b` are one name there, and `Proxy` is a setting.
fn is_ours(name: &[u8]) -> bool {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    let begins = name.get(..FORWARDED_PREFIX.len());
    name.contains(&b'_')
        || OURS.into_iter().any(is)
        || begins.is_some_and(|begins| begins.eq_ignore_ascii_case(FORWARDED_PREFIX))
}

/// Says who asks, by both sets of fields in use (RFC 7239, and what came before it).
fn add_forwarded(outgoing: &mut OutgoingRequest, client: IpAddr, host: Option<&str>) {
    let client = client.to_canonical();
    let node = match client {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("\"[{address}]\""),
    };
    let mut forwarded = format!("for={node};proto=https");
    if let Some(host) = host {
        forwarded.push_str(&format!(";host=\"{host}\""));
        outgoing.field("x-forwarded-host", host);
    }
    outgoing.field("forwarded", forwarded);
    outgoing.field("x-forwarded-for", client.to_string());
    outgoing.field("x-forwarded-proto", "https");
}

const OURS: [&str; 7] =
    ["host", "content-length", "expect", "forwarded", "x-real-ip", "early-data", "proxy"];

const FORWARDED_PREFIX: &[u8] = b"x-forwarded-";

#[cfg(test)]
mod tests;
