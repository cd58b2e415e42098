//! Addresses as hitch (`[HOST]:PORT`) and stud (`HOST,PORT`) write them.

use std::fmt;

/// The address of a listener: a host, or `*`, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Endpoint {
    pub(in super::super) host: String,
    pub(in super::super) port: u16,
}

/// The target of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Target {
    Network(Endpoint),
    Unix(String),
}

impl Endpoint {
    pub(super) fn new(host: &str, port: &str) -> Result<Self, String> {
        if host.is_empty()
            || host.chars().any(|letter| letter.is_whitespace() || letter.is_control())
        {
            return Err(format!("`{host}` is no host"));
        }
        match port.parse() {
            Ok(port @ 1..) => Ok(Self { host: host.to_owned(), port }),
            _ => Err(format!("`{port}` is no port: write a number from 1 to 65535")),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "[{}]:{}", self.host, self.port)
    }
}

/// A frontend, perhaps with its certificate: `[HOST]:PORT+CERT`.
pub(super) fn frontend(text: &str) -> Result<(Endpoint, Option<String>), String> {
    let (host, behind) = split(text)?;
    let (port, pem) = match behind.split_once('+') {
        Some((port, pem)) => (port, Some(pem.to_owned()).filter(|pem| !pem.is_empty())),
        None => (behind, None),
    };
    Ok((Endpoint::new(host, port)?, pem))
}

/// A backend: an address, or the path of a Unix socket.
pub(super) fn backend(text: &str) -> Result<Target, String> {
    if text.starts_with('/') {
        return Ok(Target::Unix(text.to_owned()));
    }
    let (host, port) = split(text)?;
    let endpoint = Endpoint::new(host, port)?;
    match endpoint.host.as_str() {
        "*" => Err("a backend is one host, not `*`".to_owned()),
        _ => Ok(Target::Network(endpoint)),
    }
}

/// Host and what follows it, in either form.
fn split(text: &str) -> Result<(&str, &str), String> {
    let wrong = || format!("`{text}` is no address");
    match text.strip_prefix('[') {
        Some(inner) => inner.rsplit_once("]:").ok_or_else(wrong),
        None => text.rsplit_once(',').filter(|(host, _)| !host.contains('[')).ok_or_else(wrong),
    }
}
