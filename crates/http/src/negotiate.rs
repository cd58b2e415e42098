//! Content negotiation (RFC 9110 §12.5): which coding and which media type a client prefers.

use crate::field;

/// The preference for each content coding. Qualities are thousandths: 1000 is best, 0 is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encodings {
    br: Option<u16>,
    zstd: Option<u16>,
    gzip: Option<u16>,
    identity: Option<u16>,
    any: Option<u16>,
}

/// Reads all lines of Accept-Encoding as one list (RFC 9110 §5.3). Without any only the identity is
/// used, although any coding would be allowed: clients that do not ask for compression often cannot
/// undo it.
#[must_use]
pub fn encodings<'v>(accept_encoding: impl IntoIterator<Item = &'v [u8]>) -> Encodings {
    let mut encodings = Encodings { br: None, zstd: None, gzip: None, identity: None, any: None };
    let members = accept_encoding.into_iter().flat_map(field::members);
    for (coding, quality) in members.filter_map(member) {
        let slot = if coding.eq_ignore_ascii_case(b"br") {
            &mut encodings.br
        } else if coding.eq_ignore_ascii_case(b"zstd") {
            &mut encodings.zstd
        } else if coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip") {
            &mut encodings.gzip
        } else if coding.eq_ignore_ascii_case(b"identity") {
            &mut encodings.identity
        } else if coding == b"*" {
            &mut encodings.any
        } else {
            continue;
        };
        *slot = Some(quality);
    }
    encodings
}

impl Encodings {
    /// The quality of `br`, `zstd`, `gzip` or `identity`; that of `*` for any other coding.
    ///
    /// An identity that is not mentioned is acceptable, but comes after everything that is: 1.
    #[must_use]
    pub fn quality(&self, coding: &str) -> u16 {
        let named = match coding {
            "br" => self.br,
            "zstd" => self.zstd,
            "gzip" => self.gzip,
            "identity" => return self.identity.or(self.any).unwrap_or(1),
            _ => None,
        };
        named.or(self.any).unwrap_or(0)
    }
}

/// True if a listing should be JSON: `application/json` is preferred to `text/html`, or is just
/// as good but named more exactly. All lines of Accept are one list.
#[must_use]
pub fn prefers_json<'v>(accept: impl Iterator<Item = &'v [u8]> + Clone) -> bool {
    let json = media_type_rank(accept.clone(), b"application", b"json");
    json.0 > 0 && json > media_type_rank(accept, b"text", b"html")
}

/// The quality of a media type, and how exactly it was named (0 to 3). The most exact range
/// decides (RFC 9110 §12.5.1).
fn media_type_rank<'v>(
    accept: impl Iterator<Item = &'v [u8]>,
    kind: &[u8],
    subtype: &[u8],
) -> (u16, u8) {
    let mut best = (0, 0);
    for (range, quality) in accept.flat_map(field::members).filter_map(member) {
        let Some(slash) = range.iter().position(|byte| *byte == b'/') else {
            continue;
        };
        let (Some(range_kind), Some(range_subtype)) = (range.get(..slash), range.get(slash + 1..))
        else {
            continue;
        };
        let exactness = match (range_kind, range_subtype) {
            (b"*", b"*") => 1,
            (range_kind, b"*") if range_kind.eq_ignore_ascii_case(kind) => 2,
            (range_kind, range_subtype)
                if range_kind.eq_ignore_ascii_case(kind)
                    && range_subtype.eq_ignore_ascii_case(subtype) =>
            {
                3
            }
            _ => continue,
        };
        if exactness > best.1 {
            best = (quality, exactness);
        }
    }
    best
}

/// A member's name and quality; `None` if its quality is malformed, which takes the member out.
/// Other parameters are passed over.
fn member(member: &[u8]) -> Option<(&[u8], u16)> {
    let mut parts = member.split(|byte| *byte == b';').map(field::trim);
    let name = parts.next()?;
    for parameter in parts {
        if let [b'q' | b'Q', b'=', weight @ ..] = parameter {
            return Some((name, quality(weight)?));
        }
    }
    Some((name, 1000))
}

/// A weight: `0` or `1` with at most three decimals, at most 1 (RFC 9110 §12.4.2).
fn quality(weight: &[u8]) -> Option<u16> {
    let (whole, decimals) = match weight {
        [whole] => (*whole, [].as_slice()),
        [whole, b'.', decimals @ ..] => (*whole, decimals),
        _ => return None,
    };
    if decimals.len() > 3 || !decimals.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let thousandths = decimals
        .iter()
        .chain(b"000".iter())
        .take(3)
        .fold(0, |number, digit| number * 10 + u16::from(digit - b'0'));
    match (whole, thousandths) {
        (b'0', thousandths) => Some(thousandths),
        (b'1', 0) => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
