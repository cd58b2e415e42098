//! By which fields of requests a response differs, and what of them tells variants apart.

use super::control::members;
use super::{FieldLines, values};
use crate::field;

/// The names in `Vary`, in lower case, sorted and each once; `None` for `*`, or for more than anybody needs.
#[must_use]
pub fn names(fields: FieldLines<'_>) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for line in values(fields, "vary") {
        for name in field::members(line) {
            let is_token = name.iter().all(|byte| field::is_token_byte(*byte));
            if name == b"*" || !is_token || names.len() >= NAMES_MAX {
                return None;
            }
            names.push(String::from_utf8_lossy(name).to_ascii_lowercase());
        }
    }
    names.sort_unstable();
    names.dedup();
    Some(names)
}

/// The value of a request's field as it tells variants apart, and as the backend sees it: several lines are one list, spaces at
/// its commas mean nothing, case does not in `Accept-Language`, and `Accept-Encoding` says only which of the codings in use the
/// client takes, or each browser would have its own variant.
#[must_use]
pub fn value<'f>(name: &str, lines: impl Iterator<Item = &'f [u8]>) -> Vec<u8> {
    let mut whole = Vec::new();
    for line in lines {
        if !whole.is_empty() {
            whole.extend_from_slice(b", ");
        }
        whole.extend_from_slice(field::trim(line));
    }
    if name == "accept-encoding" {
        return codings(&whole);
    }
    let list = members(&whole).collect::<Vec<_>>().join(b", ".as_slice());
    if name == "accept-language" { list.to_ascii_lowercase() } else { list }
}

/// The codings in use that a client takes, in an order of ours.
fn codings(value: &[u8]) -> Vec<u8> {
    let takes = |coding: &[u8]| {
        field::members(value).any(|member| {
            let mut parts = member.split(|byte| *byte == b';').map(field::trim);
            let is_it = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(coding));
            let is_refused = |part: &[u8]| {
                let zero = part.strip_prefix(b"q=").or_else(|| part.strip_prefix(b"Q="));
                zero.is_some_and(|zero| zero.iter().all(|byte| matches!(byte, b'0' | b'.')))
            };
            is_it && !parts.any(is_refused)
        })
    };
    let taken: Vec<&[u8]> = CODINGS.into_iter().filter(|coding| takes(coding)).collect();
    taken.join(b", ".as_slice())
}

const CODINGS: [&[u8]; 3] = [b"br", b"gzip", b"zstd"];

/// Names that one response may differ by.
const NAMES_MAX: usize = 16;
