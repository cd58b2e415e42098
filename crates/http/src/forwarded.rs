//! The clients that proxies speak for: addresses in `X-Forwarded-For`, in `Forwarded` (RFC 7239), and in fields that have one.
//!
//! The nearest proxy writes last, so lists are read from their end. Reading ends at the first member that is no address: what
//! stands in front of it may be anybody's word.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::field::{saturating_decimal, trim};

/// An address, and its port where that was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The address; an IPv4 address that is written as IPv6 is IPv4.
    pub address: IpAddr,
    /// The port.
    pub port: Option<u16>,
}

/// By which scheme a client asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// Over TLS.
    #[default]
    Https,
    /// In plain text.
    Http,
}

impl Node {
    /// Reads `192.0.2.1`, `192.0.2.1:567`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:567`.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(trim(text)).ok()?;
        let (address, port) = if let Some(behind) = text.strip_prefix('[') {
            let (address, port) = behind.split_once(']')?;
            (IpAddr::from(address.parse::<Ipv6Addr>().ok()?), port)
        } else if let Ok(address) = text.parse::<IpAddr>() {
            (address, "")
        } else {
            let (address, port) = text.split_at_checked(text.find(':')?)?;
            (IpAddr::from(address.parse::<Ipv4Addr>().ok()?), port)
        };
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => None,
            digits => u16::try_from(saturating_decimal(digits?.as_bytes())?).ok().map(Some)?,
        };
        Some(Self { address: address.to_canonical(), port: port.filter(|port| *port > 0) })
    }
}

impl Scheme {
    /// Reads a scheme in any case; that of a WebSocket counts as that of its handshake.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let is = |known: [&str; 2]| {
            known.iter().any(|known| trim(text).eq_ignore_ascii_case(known.as_bytes()))
        };
        match () {
            () if is(["https", "wss"]) => Some(Self::Https),
            () if is(["http", "ws"]) => Some(Self::Http),
            () => None,
        }
    }

    /// As it is written in a URI.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
        }
    }

    /// The port that goes without saying.
    #[must_use]
    pub fn usual_port(self) -> &'static str {
        match self {
            Self::Https => "443",
            Self::Http => "80",
        }
    }
}

/// The members of lists of addresses, as `X-Forwarded-For` has them, the last of the last line first.
pub fn listed<'v>(lines: &'v [&'v [u8]]) -> impl Iterator<Item = Node> + 'v {
    let members = lines.iter().rev().flat_map(|line| line.rsplit(|byte| *byte == b','));
    members.map(trim).filter(|member| !member.is_empty()).map_while(Node::parse)
}

/// The elements of `Forwarded`, the last of the last line first: who is forwarded for, and by which scheme it asked.
pub fn forwarded<'v>(lines: &'v [&'v [u8]]) -> impl Iterator<Item = (Node, Option<Scheme>)> + 'v {
    let elements = lines.iter().rev().flat_map(|line| {
        // Quotes are counted from the end: what a client has written in front of an element cannot reach into it.
        let mut is_quoted = false;
        line.rsplit(move |byte| {
            is_quoted ^= *byte == b'"';
            *byte == b',' && !is_quoted
        })
    });
    elements.map(trim).filter(|element| !element.is_empty()).map_while(element)
}

/// One element. `None` without exactly one `for` that is an address; also where something in it is quoted within quotes, as no
/// address and no name of a host needs it.
fn element(text: &[u8]) -> Option<(Node, Option<Scheme>)> {
    let mut node = None;
    let mut scheme = None;
    let mut is_quoted = false;
    let pairs = text.split(|byte| {
        is_quoted ^= *byte == b'"';
        *byte == b';' && !is_quoted
    });
    for pair in pairs.map(trim).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_at_checked(pair.iter().position(|byte| *byte == b'=')?)?;
        let value = value.strip_prefix(b"=")?;
        let value = match value.strip_prefix(b"\"") {
            Some(quoted) => quoted.strip_suffix(b"\"")?,
            None => value,
        };
        if name.iter().chain(value).any(|byte| matches!(byte, b'"' | b'\\')) {
            return None;
        }
        if name.eq_ignore_ascii_case(b"for") && node.replace(Node::parse(value)?).is_some() {
            return None;
        }
        if name.eq_ignore_ascii_case(b"proto") {
            scheme = Scheme::parse(value);
        }
    }
    node.map(|node| (node, scheme))
}

#[cfg(test)]
mod tests;
