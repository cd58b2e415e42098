//! The host and port a request is for: the value of Host and the authority of a target.
//!
//! Only what can be a DNS name or an IP address is accepted, a subset of RFC 3986 §3.2.2.

use std::net::Ipv6Addr;

use crate::RequestError;

/// A host with an optional port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority<'b> {
    /// A name without its final dot, an IPv4 address, or an IPv6 address in brackets.
    pub host: &'b str,
    /// The port, if one was given.
    pub port: Option<u16>,
}

impl<'b> Authority<'b> {
    /// Parses `host`, `host:port` or `[address]:port`.
    ///
    /// # Errors
    /// [`RequestError::HostInvalid`] for an empty host (RFC 9110 §4.2.2), user information
    /// (§4.2.4), and everything else that is not of these forms.
    pub fn parse(text: &'b [u8]) -> Result<Self, RequestError> {
        let text = std::str::from_utf8(text).map_err(|_| RequestError::HostInvalid)?;
        let (host, port) = match text.rfind(']') {
            Some(bracket) => {
                let (host, port) =
                    text.split_at_checked(bracket + 1).ok_or(RequestError::HostInvalid)?;
                match port.strip_prefix(':') {
                    Some(port) => (host, port),
                    None if port.is_empty() => (host, ""),
                    None => return Err(RequestError::HostInvalid),
                }
            }
            None => text.split_once(':').unwrap_or((text, "")),
        };
        let host = if host.starts_with('[') { ipv6(host)? } else { name(host)? };
        Ok(Authority { host, port: port_number(port)? })
    }
}

fn ipv6(host: &str) -> Result<&str, RequestError> {
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match address.map(str::parse::<Ipv6Addr>) {
        Some(Ok(_)) => Ok(host),
        _ => Err(RequestError::HostInvalid),
    }
}

fn name(host: &str) -> Result<&str, RequestError> {
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_name_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if host.is_empty() || host.len() > HOST_BYTES_MAX || !host.bytes().all(is_name_byte) {
        return Err(RequestError::HostInvalid);
    }
    if host.starts_with('.') || host.ends_with('.') || host.contains("..") {
        return Err(RequestError::HostInvalid);
    }
    Ok(host)
}

/// An empty port is allowed and means the scheme's own (RFC 3986 §3.2.3).
fn port_number(digits: &str) -> Result<Option<u16>, RequestError> {
    if digits.is_empty() {
        return Ok(None);
    }
    // `str::parse` would also accept a sign.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(RequestError::HostInvalid);
    }
    digits.parse().map(Some).map_err(|_| RequestError::HostInvalid)
}

/// The longest DNS name (RFC 1035 §2.3.4).
const HOST_BYTES_MAX: usize = 255;

#[cfg(test)]
mod tests;
