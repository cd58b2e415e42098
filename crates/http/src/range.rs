//! Byte ranges (RFC 9110 §14): which bytes of a representation a request asks for.

use std::ops::Deref;

use crate::field;
use crate::message::RequestHead;
use crate::method::Method;

/// Some bytes of a file or representation in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The position of the first byte.
    pub start: u64,
    /// The number of bytes.
    pub bytes: u64,
}

impl ByteRange {
    /// The whole of something that is `length` bytes long.
    #[must_use]
    pub fn whole(length: u64) -> Self {
        ByteRange { start: 0, bytes: length }
    }

    /// The position after the last byte.
    #[must_use]
    pub fn end(self) -> u64 {
        self.start.saturating_add(self.bytes)
    }
}

/// The answer to a Range field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a box would be an allocation for each request")]
pub enum RangeOutcome {
    /// Ignore it and send everything with 200.
    Whole,
    /// None of the ranges lies within the representation: 416.
    Unsatisfiable,
    /// Send these with 206.
    Ranges(RangeSet),
}

/// One to [`RANGES_MAX`] spans in the order they were asked for, with at least one byte between any
/// two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeSet {
    /// Empty ones behind the last.
    spans: [ByteRange; RANGES_MAX],
    count: usize,
}

impl Deref for RangeSet {
    type Target = [ByteRange];

    fn deref(&self) -> &[ByteRange] {
        self.spans.get(..self.count).unwrap_or_default()
    }
}

/// The Range field of a request, if it is to be looked at: only for GET (RFC 9110 §14.2), and
/// only if there is one.
#[must_use]
pub fn requested(head: &RequestHead<impl AsRef<[u8]>>) -> Option<&[u8]> {
    if head.method() == Method::Get { head.sole_header("range") } else { None }
}

/// Decides what the Range field `value` means for a representation of `length` bytes.
///
/// Ranges that overlap or touch are merged; the result stands where the first of them was asked for
/// (RFC 9110 §15.3.7.2). A field that §14.2 allows to be ignored is ignored: other units, invalid syntax, and more ranges than
/// anyone needs.
#[must_use]
pub fn parse_ranges(value: &[u8], length: u64) -> RangeOutcome {
    let Some(specs) = byte_range_specs(value) else {
        return RangeOutcome::Whole;
    };
    let mut asked = [(0, ByteRange::whole(0)); RANGE_SPECS_MAX];
    let mut count = 0;
    let mut specs_seen = 0;
    for spec in field::members(specs) {
        specs_seen += 1;
        let span = match parse_spec(spec, length) {
            Some(Spec::Satisfiable(span)) => span,
            Some(Spec::Unsatisfiable) if specs_seen <= RANGE_SPECS_MAX => continue,
            Some(Spec::Empty | Spec::Unsatisfiable) | None => return RangeOutcome::Whole,
        };
        match asked.get_mut(count) {
            Some(free) if specs_seen <= RANGE_SPECS_MAX => *free = (count, span),
            _ => return RangeOutcome::Whole,
        }
        count += 1;
    }
    match (specs_seen, asked.get_mut(..count)) {
        (1.., Some([])) => RangeOutcome::Unsatisfiable,
        (1.., Some(asked)) => merged(asked).map_or(RangeOutcome::Whole, RangeOutcome::Ranges),
        _ => RangeOutcome::Whole,
    }
}

/// Appends the value of Content-Range for one part (RFC 9110 §14.4).
pub fn write_content_range(out: &mut Vec<u8>, span: ByteRange, length: u64) {
    let mut digits = itoa::Buffer::new();
    out.extend_from_slice(b"bytes ");
    out.extend_from_slice(digits.format(span.start).as_bytes());
    out.push(b'-');
    out.extend_from_slice(digits.format(span.end().saturating_sub(1)).as_bytes());
    out.push(b'/');
    out.extend_from_slice(digits.format(length).as_bytes());
}

/// Returns the ranges behind `bytes=`. Range units are not case-sensitive (RFC 9110 §14.1).
fn byte_range_specs(value: &[u8]) -> Option<&[u8]> {
    let (unit, specs) = value.split_at_checked(b"bytes=".len())?;
    unit.eq_ignore_ascii_case(b"bytes=").then_some(specs)
}

enum Spec {
    Satisfiable(ByteRange),
    Unsatisfiable,
    /// The beginning or the end of an empty representation: all there is, which no Content-Range
    /// can say. Clients that put a range into every request must get it all the same.
    Empty,
}

/// `first-last`, `first-` or `-suffix` (RFC 9110 §14.1.2); `None` if it is neither.
fn parse_spec(spec: &[u8], length: u64) -> Option<Spec> {
    let dash = spec.iter().position(|byte| *byte == b'-')?;
    let first = spec.get(..dash)?;
    let last = spec.get(dash + 1..)?;
    // Positions beyond 64 bits become the last 64-bit one, which no file reaches.
    if first.is_empty() {
        let suffix = field::saturating_decimal(last)?;
        return Some(match (suffix, length) {
            (0, _) => Spec::Unsatisfiable,
            (_, 0) => Spec::Empty,
            _ => {
                let bytes = suffix.min(length);
                Spec::Satisfiable(ByteRange { start: length - bytes, bytes })
            }
        });
    }
    let first = field::saturating_decimal(first)?;
    let last = if last.is_empty() { u64::MAX } else { field::saturating_decimal(last)? };
    if last < first {
        return None;
    }
    if first >= length {
        return Some(if length == 0 && first == 0 { Spec::Empty } else { Spec::Unsatisfiable });
    }
    let end = last.saturating_add(1).min(length);
    Some(Spec::Satisfiable(ByteRange { start: first, bytes: end - first }))
}

/// Merges spans, each with its turn in the request; `None` if more than [`RANGES_MAX`] remain.
fn merged(asked: &mut [(usize, ByteRange)]) -> Option<RangeSet> {
    asked.sort_unstable_by_key(|(_, span)| span.start);
    let mut kept = [(0, ByteRange::whole(0)); RANGES_MAX];
    let mut count: usize = 0;
    for (turn, span) in asked {
        match count.checked_sub(1).and_then(|last| kept.get_mut(last)) {
            Some((first_turn, last)) if span.start <= last.end() => {
                last.bytes = span.end().max(last.end()) - last.start;
                *first_turn = (*first_turn).min(*turn);
            }
            _ => {
                *kept.get_mut(count)? = (*turn, *span);
                count += 1;
            }
        }
    }
    kept.get_mut(..count)?.sort_unstable_by_key(|(turn, _)| *turn);
    Some(RangeSet { spans: kept.map(|(_, span)| span), count })
}

/// Ranges sent in one response. More, after merging, and the whole representation is sent.
pub const RANGES_MAX: usize = 16;

/// Ranges looked at in one request, satisfiable or not. More, and the field is ignored.
pub const RANGE_SPECS_MAX: usize = 64;

#[cfg(test)]
mod tests;
