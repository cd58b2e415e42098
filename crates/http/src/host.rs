//! The host and port a request is for: the value of Host and the authority of a target.
//!
//! Only what can be a DNS name or an IP address is accepted, a subset of RFC 3986 §3.2.2.

use std::net::Ipv6Addr;

use crate::RequestError;
use crate::field;

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
        let (host, port) = host_and_port(text)?;
        let host = std::str::from_utf8(host).map_err(|_| RequestError::HostInvalid)?;
        Ok(Self { host, port })
    }
}

/// Returns what [`Authority::parse`] finds. The host is ASCII: who needs no text is spared the proof.
pub(crate) fn host_and_port(text: &[u8]) -> Result<(&[u8], Option<u16>), RequestError> {
    let host_end = match text {
        [b'[', ..] => text.iter().position(|byte| *byte == b']').map(|bracket| bracket + 1),
        _ => text.iter().position(|byte| *byte == b':'),
    };
    let host_end = host_end.unwrap_or(text.len());
    let (host, port) = text.split_at_checked(host_end).ok_or(RequestError::HostInvalid)?;
    let is_host = if host.starts_with(b"[") { is_ipv6(host) } else { is_name(host) };
    if !is_host {
        return Err(RequestError::HostInvalid);
    }
    Ok((host.strip_suffix(b".").unwrap_or(host), port_number(port)?))
}

fn is_ipv6(host: &[u8]) -> bool {
    let address = host.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]"));
    let address = address.and_then(|address| std::str::from_utf8(address).ok());
    address.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
}

/// Labels of letters, digits, hyphens and underscores, none of them empty; a dot at the end means
/// the root and is allowed.
fn is_name(host: &[u8]) -> bool {
    let mut previous = b'.';
    for byte in host {
        let is_allowed = match byte {
            b'.' => previous != b'.',
            byte => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'),
        };
        if !is_allowed {
            return false;
        }
        previous = *byte;
    }
    (1..=HOST_BYTES_MAX).contains(&host.len())
}

/// Returns the port behind the host: nothing, or a colon and digits. No digits means the scheme's own port
/// (RFC 3986 §3.2.3).
fn port_number(text: &[u8]) -> Result<Option<u16>, RequestError> {
    let digits = match text {
        [] | [b':'] => return Ok(None),
        [b':', digits @ ..] => digits,
        _ => return Err(RequestError::HostInvalid),
    };
    let port = field::saturating_decimal(digits).and_then(|port| u16::try_from(port).ok());
    port.map(Some).ok_or(RequestError::HostInvalid)
}

/// The longest DNS name (RFC 1035 §2.3.4).
const HOST_BYTES_MAX: usize = 255;

#[cfg(test)]
mod tests;
