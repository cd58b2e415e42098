//! The client of a request: the one that connected, or the one that a trusted proxy names.
//!
//! The words of proxies are believed from the listener's `trusted_proxies` only, and of one header. Over HTTP/2 each request of
//! a connection may be for another client.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use kettle_config::{Listener, ListenerKind};
use kettle_http::field::{are_one_to_gateways, is_of_proxies};
use kettle_http::forwarded::{Node, Scheme, forwarded, listed};
use kettle_runtime::access_log::RequestId;
use kettle_runtime::client_address::{ClientAddress, ClientHost};

use super::Head;

/// The client of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// Its address. Port 0: a proxy speaks for it and does not say its port.
    pub address: ClientAddress,
    /// The scheme it asked by.
    pub scheme: Scheme,
    /// The proxies that are believed to be between the client and this server, the nearest last.
    pub proxies: Vec<ClientHost>,
    /// True if a trusted proxy connected.
    pub is_vouched_for: bool,
    /// The name of its request.
    pub request_id: RequestId,
    /// The field, in lower case, by which proxies name clients here, unless no client's field of that name is passed on anyway.
    naming_field: Option<Box<str>>,
}

impl Client {
    /// The client at the other end of a connection to this listener.
    #[must_use]
    pub fn connected(address: ClientAddress, listener: Option<&Listener>) -> Self {
        let is_plain =
            |it: &Listener| matches!(it.kind, ListenerKind::Http(_) | ListenerKind::Redirect(_));
        Self {
            address,
            scheme: if listener.is_some_and(is_plain) { Scheme::Http } else { Scheme::Https },
            proxies: Vec::new(),
            is_vouched_for: false,
            request_id: RequestId::default(),
            naming_field: None,
        }
    }

    /// The client that a request is for which came to this listener from `peer`: who connected, by its PROXY header where it
    /// came with one.
    pub fn of(head: &Head, peer: ClientAddress, listener: Option<&Listener>) -> Self {
        let mut client = Self::connected(peer, listener);
        let Some(listener) = listener.filter(|it| !it.trusted_proxies.is_empty()) else {
            return client;
        };
        let header = listener.client_ip_header.to_ascii_lowercase();
        let trusted = &listener.trusted_proxies;
        let is_trusted = |address: IpAddr| trusted.has(Some(address));
        client.is_vouched_for = trusted.has(peer.host().ip());
        if client.is_vouched_for {
            let lines: Vec<_> = head.header_values(&header).collect();
            let said = head.sole_header("x-forwarded-proto").and_then(Scheme::parse);
            let said_with_it = match (&*header, &*lines) {
                ("x-forwarded-for", lines) => {
                    client.take(listed(lines).map(|node| (node, None)), is_trusted)
                }
                ("forwarded", lines) => client.take(forwarded(lines), is_trusted),
                // Of two nobody knows which was meant.
                (_, [line]) => {
                    client.take(Node::parse(line).map(|node| (node, None)).into_iter(), |_| false)
                }
                _ => None,
            };
            client.scheme = said_with_it.or(said).unwrap_or(client.scheme);
        }
        client.naming_field = (!is_of_proxies(header.as_bytes())).then(|| header.into());
        client
    }

    /// Names its request: as a trusted proxy does in this head, or by these numbers.
    #[must_use]
    pub fn named(mut self, head: Option<&Head>, connection: u64, number: u64) -> Self {
        let said =
            head.filter(|_| self.is_vouched_for).and_then(|it| it.sole_header("x-request-id"));
        let said = said.and_then(RequestId::said);
        self.request_id = said.unwrap_or(RequestId::Own { connection, number });
        self
    }

    /// Goes from proxy to proxy, the nearest first, to the first that is not trusted, or as far as is told. Returns the scheme
    /// that was said with that one.
    fn take(
        &mut self,
        nodes: impl Iterator<Item = (Node, Option<Scheme>)>,
        is_trusted: impl Fn(IpAddr) -> bool,
    ) -> Option<Scheme> {
        let mut scheme = None;
        for (node, said) in nodes.take(PROXIES_MAX) {
            self.proxies.push(self.host());
            self.address = SocketAddr::new(node.address, node.port.unwrap_or(0)).into();
            scheme = said;
            if !is_trusted(node.address) {
                break;
            }
        }
        self.proxies.reverse();
        scheme
    }

    /// Its address without a port; an IPv4 address that is written as IPv6 is IPv4.
    pub fn host(&self) -> ClientHost {
        self.address.host().to_canonical()
    }

    /// Its port, if that is known.
    pub fn port(&self) -> Option<u16> {
        self.address.port()
    }

    /// True if a field of this name says who the client is, and so is none that a client may say.
    pub fn is_named_by(&self, name: &[u8]) -> bool {
        self.naming_field.as_ref().is_some_and(|own| are_one_to_gateways(own.as_bytes(), name))
    }

    /// The field, in lower case, by which proxies name clients here, whoever this one is: as [`is_named_by`](Self::is_named_by) has it.
    pub fn reserved_field(&self) -> Option<&str> {
        self.naming_field.as_deref()
    }

    /// The field by which a trusted proxy has named it, for servers that know that field.
    pub fn naming_field(&self) -> Option<&str> {
        self.naming_field.as_deref().filter(|_| !self.proxies.is_empty())
    }
}

impl From<IpAddr> for Client {
    fn from(address: IpAddr) -> Self {
        Self::connected(SocketAddr::new(address, 0).into(), None)
    }
}

impl Default for Client {
    fn default() -> Self {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED).into()
    }
}

/// More than this many proxies in a row are not followed: the last of them is the client then.
const PROXIES_MAX: usize = 32;

#[cfg(test)]
mod tests;
