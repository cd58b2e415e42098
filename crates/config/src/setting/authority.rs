//! Hosts with or without a port: what `Host` says to servers.

use std::net::Ipv6Addr;

use super::rules::{ANY_NAME, Guess, TextRule, Wrong, site_name};
use super::text::Read;

/// A host, with or without a port.
pub(crate) static AUTHORITY: TextRule = TextRule {
    what: "a host name, with or without a port",
    example: "example.org",
    read: authority,
};

/// One name or address, with or without a port, as a request has it (RFC 9110 section 7.2).
fn authority(text: &str) -> Result<String, Wrong> {
    if text == ANY_NAME || text.starts_with('*') {
        return Err(Wrong::suggesting("a request is for one name", "example.org"));
    }
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Ok(format!("[{address}]"));
    }
    if let Some(behind) = text.strip_prefix('[') {
        let (address, port) = behind.split_once(']').unwrap_or_default();
        return match address.parse::<Ipv6Addr>() {
            Ok(address) => Ok(format!("[{address}]{}", port_behind(port)?)),
            Err(_) => Err(Wrong::new("only an IPv6 address stands in brackets")),
        };
    }
    match text.find(':').and_then(|colon| text.split_at_checked(colon)) {
        Some((host, port)) if !text.contains("://") => {
            Ok(format!("{}{}", site_name(host)?, port_behind(port)?))
        }
        _ => site_name(text),
    }
}

/// Nothing, or a colon and a port.
fn port_behind(text: &str) -> Result<String, Wrong> {
    let port = text.strip_prefix(':').and_then(|port| port.parse::<u16>().ok());
    match port {
        _ if text.is_empty() => Ok(String::new()),
        Some(port) if port > 0 => Ok(format!(":{port}")),
        _ => Err(Wrong::new("behind the host stand a colon and a port from 1 to 65535")),
    }
}

/// The `Host` that servers are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendHost {
    /// This one, as a request has it: an IPv6 address in brackets, and its port where it has one.
    Fixed(String),
    /// `{host}`: the host that is asked for, without its port.
    Asked,
    /// `{host}:{port}`: the same with its port.
    AskedWithPort,
}

fn read_backend_host(text: &str) -> Result<BackendHost, Wrong> {
    match text {
        "{host}" => Ok(BackendHost::Asked),
        "{host}:{port}" => Ok(BackendHost::AskedWithPort),
        text if text.contains(['{', '}']) => {
            let why = "the words that stand here are {host} and {host}:{port}".to_owned();
            Err(Wrong { why, help: Guess::Text("{host}".to_owned()) })
        }
        text => authority(text).map(BackendHost::Fixed),
    }
}

/// The `Host` that servers are sent.
pub(crate) fn backend_host() -> Read<BackendHost> {
    let none = || BackendHost::Fixed(String::new());
    Read { rule: &BACKEND_HOST, read: |text| read_backend_host(text).ok(), none }
}

static BACKEND_HOST: TextRule = TextRule {
    what: "a host name, with or without a port",
    example: "app.example.org:8080",
    read: |text| read_backend_host(text).map(|_| text.to_owned()),
};

#[cfg(test)]
mod tests;
