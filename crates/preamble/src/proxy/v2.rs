//! Version 2: binary.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::crc32c::crc32c;
use super::tlv::CHECKSUM;
use super::{Endpoints, Header, Parse, ProxyError, Speaker, Tlv, Tlvs, Version};

/// The longest header that is taken. The protocol's own limit is 64 KiB; what real senders say fits a tenth of this.
pub const HEADER_BYTES_MAX: usize = 4_096;

/// Signature, version and command, family, length.
pub(super) const PREFIX_BYTES: usize = 16;

pub(super) const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

pub(super) fn parse(received: &[u8]) -> Result<Parse<'_>, ProxyError> {
    if !SIGNATURE.iter().zip(received).all(|(expected, byte)| expected == byte) {
        return Err(ProxyError::Missing);
    }
    let is_local = match received.get(SIGNATURE.len()) {
        None | Some(&PROXY) => false,
        Some(&LOCAL) => true,
        Some(_) => return Err(ProxyError::Malformed),
    };
    let Some(&[.., family, high, low]) = received.first_chunk::<PREFIX_BYTES>() else {
        return Ok(Parse::Partial { missing_bytes: PREFIX_BYTES - received.len() });
    };
    let bytes = PREFIX_BYTES + usize::from(u16::from_be_bytes([high, low]));
    if bytes > HEADER_BYTES_MAX {
        return Err(ProxyError::TooLong);
    }
    let Some(whole) = received.get(..bytes) else {
        return Ok(Parse::Partial { missing_bytes: bytes - received.len() });
    };
    let block = whole.get(PREFIX_BYTES..).unwrap_or_default();
    // Of LOCAL the whole block is ignored, "including the family" (§2.2).
    let (endpoints, tlvs) = match is_local {
        true => (Endpoints::Socket, [].as_slice()),
        false => endpoints(family, block).ok_or(ProxyError::Malformed)?,
    };
    let tlvs = Tlvs::new(tlvs).ok_or(ProxyError::Malformed)?;
    check(whole, tlvs)?;
    Ok(Parse::Complete { header: Header { version: Version::V2, endpoints, tlvs }, bytes })
}

/// The addresses at the front of a block, and what follows them.
fn endpoints(family: u8, block: &[u8]) -> Option<(Endpoints<'_>, &[u8])> {
    match family {
        UNSPECIFIED => Some((Endpoints::Socket, block)),
        TCP_OVER_IPV4 => inet::<4>(block, |bytes| Ipv4Addr::from(bytes).into()),
        TCP_OVER_IPV6 => inet::<16>(block, |bytes| Ipv6Addr::from(bytes).into()),
        UNIX_STREAM => {
            let (source, rest) = block.split_at_checked(UNIX_PATH_BYTES)?;
            let (destination, rest) = rest.split_at_checked(UNIX_PATH_BYTES)?;
            Some((Endpoints::Unix { source: path(source), destination: path(destination) }, rest))
        }
        // Datagrams do not come over a stream.
        _ => None,
    }
}

fn inet<const ADDRESS_BYTES: usize>(
    block: &[u8],
    address: impl Fn([u8; ADDRESS_BYTES]) -> IpAddr,
) -> Option<(Endpoints<'_>, &[u8])> {
    let (source, rest) = block.split_first_chunk::<ADDRESS_BYTES>()?;
    let (destination, rest) = rest.split_first_chunk::<ADDRESS_BYTES>()?;
    let (source_port, rest) = rest.split_first_chunk::<2>()?;
    let (destination_port, rest) = rest.split_first_chunk::<2>()?;
    let endpoints = Endpoints::Inet {
        source: SocketAddr::new(address(*source), u16::from_be_bytes(*source_port)),
        destination: SocketAddr::new(address(*destination), u16::from_be_bytes(*destination_port)),
    };
    Some((endpoints, rest))
}

/// A path without its padding. An abstract name begins with a zero byte and is kept to its last byte that is none.
fn path(padded: &[u8]) -> &[u8] {
    let bytes = match padded.first() {
        Some(0) => padded.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1),
        _ => padded.iter().position(|byte| *byte == 0).unwrap_or(padded.len()),
    };
    padded.get(..bytes).unwrap_or(padded)
}

/// A checksum that is there must be right (§2.2.3).
fn check(header: &[u8], tlvs: Tlvs<'_>) -> Result<(), ProxyError> {
    let Some(checksum) = tlvs.raw().find(|(kind, _)| *kind == CHECKSUM).map(|(_, value)| value)
    else {
        return Ok(());
    };
    let expected: [u8; 4] = checksum.try_into().map_err(|_| ProxyError::Malformed)?;
    let at = checksum.as_ptr().addr() - header.as_ptr().addr();
    let zeroed = header.iter().enumerate().map(|(position, byte)| {
        if (at..at + expected.len()).contains(&position) { 0 } else { *byte }
    });
    if crc32c(zeroed) == u32::from_be_bytes(expected) {
        Ok(())
    } else {
        Err(ProxyError::WrongChecksum)
    }
}

pub(super) fn write(speaker: Speaker, tlvs: &[Tlv<'_>], target: &mut Vec<u8>) {
    let start = target.len();
    target.extend_from_slice(&SIGNATURE);
    let command = if speaker == Speaker::Ourselves { LOCAL } else { PROXY };
    target.extend_from_slice(&[command, UNSPECIFIED, 0, 0]);
    if let Speaker::Client((source, destination)) = speaker {
        let family = match (source.ip(), destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                target.extend_from_slice(&source.octets());
                target.extend_from_slice(&destination.octets());
                TCP_OVER_IPV4
            }
            // One of each: IPv6 has words for both (RFC 4291 §2.5.5.2).
            (source, destination) => {
                target.extend_from_slice(&as_ipv6(source).octets());
                target.extend_from_slice(&as_ipv6(destination).octets());
                TCP_OVER_IPV6
            }
        };
        target.extend_from_slice(&source.port().to_be_bytes());
        target.extend_from_slice(&destination.port().to_be_bytes());
        if let Some(byte) = target.get_mut(start + SIGNATURE.len() + 1) {
            *byte = family;
        }
    }
    write_tlvs(tlvs, HEADER_BYTES_MAX - (target.len() - start), target);
    let block_bytes = (target.len() - start - PREFIX_BYTES) as u16;
    if let Some(length) = target.get_mut(start + PREFIX_BYTES - 2..start + PREFIX_BYTES) {
        length.copy_from_slice(&block_bytes.to_be_bytes());
    }
}

/// Writes the values that have room, in their order. The client's certificate, the only long one, gets what the others leave.
fn write_tlvs(tlvs: &[Tlv<'_>], mut room_bytes: usize, target: &mut Vec<u8>) {
    let is_certificate = |tlv: &Tlv<'_>| matches!(tlv, Tlv::ClientCertificate(_));
    let mut written: Vec<_> = tlvs.iter().map(|tlv| (tlv, Vec::new())).collect();
    for of_certificate in [false, true] {
        let these = written.iter_mut().filter(|(tlv, _)| is_certificate(tlv) == of_certificate);
        for (tlv, bytes) in these {
            tlv.write(bytes);
            match room_bytes.checked_sub(bytes.len()) {
                Some(left) => room_bytes = left,
                None => bytes.clear(),
            }
        }
    }
    written.iter().for_each(|(_, bytes)| target.extend_from_slice(bytes));
}

fn as_ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// Version 2 and a command (§2.2).
const LOCAL: u8 = 0x20;
const PROXY: u8 = 0x21;

/// Families and transports (§2.2).
const UNSPECIFIED: u8 = 0x00;
const TCP_OVER_IPV4: u8 = 0x11;
const TCP_OVER_IPV6: u8 = 0x21;
const UNIX_STREAM: u8 = 0x31;

/// `sun_path` (§2.2).
const UNIX_PATH_BYTES: usize = 108;
