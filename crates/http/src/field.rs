//! The bytes of field names and values: which are allowed, and how lists are taken apart.

use crate::fields::{name_bit, name_bits};

/// True if a byte may stand in a token (RFC 9110 §5.6.2): methods and field names.
pub(crate) fn is_token_byte(byte: u8) -> bool {
    TOKEN_BYTES.get(usize::from(byte)).is_some_and(|is_token| *is_token)
}

/// True if a byte may stand in a field value (RFC 9110 §5.5): anything but control characters.
pub(crate) fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// The value without the spaces and tabs around it.
pub(crate) fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// The members of a comma-separated list, trimmed; empty ones are skipped (RFC 9110 §5.6.1.2).
///
/// Quoted strings are not looked into: use it only for lists whose members are tokens.
pub(crate) fn members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(trim).filter(|member| !member.is_empty())
}

/// True if a list of tokens that goes over these values has this member, in any case.
pub fn has_member<'v>(mut values: impl Iterator<Item = &'v [u8]>, member: &[u8]) -> bool {
    let is_it = |it: &[u8]| it.eq_ignore_ascii_case(member);
    // Most values have one member.
    values.any(|value| match memchr::memchr(b',', value) {
        None => is_it(trim(value)),
        Some(_) => members(value).any(is_it),
    })
}

/// A decimal number of digits only. One that does not fit becomes [`u64::MAX`].
pub(crate) fn saturating_decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    let mut number = 0_u64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    }
    Some(number)
}

/// The names of fields that are for the next hop only in a message: by RFC 9110 §7.6.1 and what came before it, or because a value of
/// its `Connection` names them.
pub struct HopByHop<'v> {
    /// Values that name others than the known ones. Most messages have none, since most values are one of the known names.
    others: Vec<&'v [u8]>,
}

impl<'v> HopByHop<'v> {
    /// Those of a message with these values of `Connection`.
    pub fn of(connection: impl Iterator<Item = &'v [u8]>) -> Self {
        Self { others: connection.filter(|value| !is_known_hop_by_hop(value)).collect() }
    }

    /// True if this name is one of them.
    #[must_use]
    pub fn has(&self, name: &[u8]) -> bool {
        is_known_hop_by_hop(name) || has_member(self.others.iter().copied(), name)
    }
}

/// True if a field of this name is for the next hop only in each message.
#[must_use]
pub fn is_known_hop_by_hop(name: &[u8]) -> bool {
    name_bit(name) & HOP_BY_HOP_BITS != 0
        && HOP_BY_HOP.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// The number of members values of `Connection` have: for each field that is passed on those are
/// looked at that are not known.
pub(crate) fn connection_options<'v>(connection: impl Iterator<Item = &'v [u8]>) -> usize {
    let options = |value| if is_known_hop_by_hop(value) { 1 } else { members(value).count() };
    connection.map(options).sum()
}

/// True if no client's field of this name may reach a server, because only a proxy can know what it says, or because programs
/// behind gateways (CGI) take it for another: with any other mark `a-b` is one name there (lighttpd, PHP), and `Proxy` is a setting.
#[must_use]
pub fn is_of_proxies(name: &[u8]) -> bool {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    !name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        || (name_bit(name) & OF_PROXIES_BITS != 0 && OF_PROXIES.into_iter().any(is))
        || begins(name, b"x-forwarded-")
        || is_accel(name)
}

/// True if a field of this name is between a server and the program in front of it: what is to be sent in place of an answer, and how. Of
/// requests it says which names such answers have, and a client could choose another file by it (CVE-2025-61780).
#[must_use]
pub fn is_accel(name: &[u8]) -> bool {
    begins(name, b"x-accel-") || begins(name, b"x-sendfile")
}

/// True if a name begins so, in any case. Most begin with another letter.
fn begins(name: &[u8], prefix: &[u8]) -> bool {
    let is_near = name.first().map(u8::to_ascii_lowercase) == prefix.first().copied();
    is_near && name.get(..prefix.len()).is_some_and(|it| it.eq_ignore_ascii_case(prefix))
}

/// True if programs behind gateways (CGI) take two names for one: of their bytes they see letters and digits.
#[must_use]
pub fn are_one_to_gateways(name: &[u8], other: &[u8]) -> bool {
    let seen =
        |byte: &u8| if byte.is_ascii_alphanumeric() { byte.to_ascii_lowercase() } else { b'-' };
    name.len() == other.len() && name.iter().map(seen).eq(other.iter().map(seen))
}

/// Besides those that begin with `x-forwarded-`, and [those](is_accel) about what is sent in place of an answer.
const OF_PROXIES: [&str; 6] =
    ["client-cert", "client-cert-chain", "early-data", "forwarded", "proxy", "x-real-ip"];

const OF_PROXIES_BITS: u64 = name_bits(&OF_PROXIES);

/// `close` is no field, and must not be one (RFC 9110 §18.4).
const HOP_BY_HOP: [&str; 12] = [
    "close",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-authentication-info",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
];
const HOP_BY_HOP_BITS: u64 = name_bits(&HOP_BY_HOP);

/// Looked up, since each name that is passed on is looked at byte by byte.
#[expect(clippy::indexing_slicing, reason = "the compiler does it")]
static TOKEN_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_usize;
    while byte < table.len() {
        table[byte] = is_of_tokens(byte as u8);
        byte += 1;
    }
    table
};

const fn is_of_tokens(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}
