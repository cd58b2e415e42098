//! Version 1: a line of text.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use super::{Endpoints, Header, Parse, ProxyError, Tlvs, Version};

/// The longest line with its CR LF (§2.1).
pub const HEADER_BYTES_MAX: usize = 107;

/// The shortest: `PROXY UNKNOWN` and its end.
pub(super) const HEADER_BYTES_MIN: usize = 15;

pub(super) const SIGNATURE: &[u8] = b"PROXY ";

pub(super) fn parse(received: &[u8]) -> Result<Parse<'_>, ProxyError> {
    let visible = received.get(..HEADER_BYTES_MAX).unwrap_or(received);
    if !SIGNATURE.iter().zip(visible).all(|(expected, byte)| expected == byte) {
        return Err(ProxyError::Missing);
    }
    let Some(end) = visible.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
        return match HEADER_BYTES_MAX - visible.len() {
            0 => Err(ProxyError::TooLong),
            _ => Ok(Parse::Partial {
                missing_bytes: HEADER_BYTES_MIN.saturating_sub(visible.len()).max(1),
            }),
        };
    };
    let (line, rest) = visible.split_at(end);
    let endpoints =
        line.strip_prefix(SIGNATURE).and_then(endpoints).ok_or(ProxyError::Malformed)?;
    match rest {
        [b'\r', b'\n', ..] => {
            let header = Header { version: Version::V1, endpoints, tlvs: Tlvs::default() };
            Ok(Parse::Complete { header, bytes: end + 2 })
        }
        [b'\r'] if visible.len() < HEADER_BYTES_MAX => Ok(Parse::Partial { missing_bytes: 1 }),
        [b'\r'] => Err(ProxyError::TooLong),
        _ => Err(ProxyError::Malformed),
    }
}

fn endpoints(text: &[u8]) -> Option<Endpoints<'static>> {
    // "The receiver must ignore anything presented before the CRLF."
    if text == b"UNKNOWN" || text.starts_with(b"UNKNOWN ") {
        return Some(Endpoints::Socket);
    }
    let text = std::str::from_utf8(text).ok()?;
    let mut words = text.split(' ');
    let family = words.next()?;
    let source = words.next()?;
    let destination = words.next()?;
    let source_port = port(words.next()?)?;
    let destination_port = port(words.next()?)?;
    if words.next().is_some() {
        return None;
    }
    let address: fn(&str) -> Option<IpAddr> = match family {
        "TCP4" => |text| Ipv4Addr::from_str(text).ok().map(IpAddr::V4),
        "TCP6" => |text| Ipv6Addr::from_str(text).ok().map(IpAddr::V6),
        _ => return None,
    };
    Some(Endpoints::Inet {
        source: SocketAddr::new(address(source)?, source_port),
        destination: SocketAddr::new(address(destination)?, destination_port),
    })
}

/// A port as the protocol writes it: digits without a sign or a leading zero.
fn port(text: &str) -> Option<u16> {
    let is_plain =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    is_plain.then(|| text.parse().ok()).flatten()
}

pub(super) fn write(endpoints: Option<(SocketAddr, SocketAddr)>, target: &mut Vec<u8>) {
    let (family, source, destination) = match endpoints {
        Some((from @ SocketAddr::V4(_), to @ SocketAddr::V4(_))) => ("TCP4", from, to),
        Some((from @ SocketAddr::V6(_), to @ SocketAddr::V6(_))) => ("TCP6", from, to),
        _ => {
            target.extend_from_slice(b"PROXY UNKNOWN\r\n");
            return;
        }
    };
    let from = source.ip();
    let to = destination.ip();
    // Writing to memory cannot fail.
    let _ =
        write!(target, "PROXY {family} {from} {to} {} {}\r\n", source.port(), destination.port());
}
