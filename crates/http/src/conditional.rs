//! Conditional requests (RFC 9110 §13): whether to answer in full, with 304, or with 412.

use std::time::{Duration, SystemTime};

use crate::date;
use crate::field;
use crate::message::RequestHead;
use crate::method::Method;
use crate::range::{self, RangeOutcome, RangeSet};

/// The values that identify the representation that would be sent.
#[derive(Clone, Copy, Debug)]
pub struct Validators<'v> {
    /// An entity tag with its quotation marks, weak or strong; empty where there is none.
    pub etag: &'v str,
    /// The time of its last change, if that is known; the second counts.
    pub modified: Option<SystemTime>,
    /// True if another representation may have changed at the same time: the date tells no part of one from a part of the
    /// other (RFC 9110 §8.8.2.2).
    pub shares_date: bool,
    /// Which dates say that it is unchanged.
    pub since: ModifiedSince,
}

/// Which dates in If-Modified-Since say that a client has a representation already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModifiedSince {
    /// Those of its last change and later ones (RFC 9110 §13.1.3).
    #[default]
    Before,
    /// That of its last change. If the field says another date, tags are not asked (nginx's `if_modified_since exact`).
    Exact,
    /// None: who sends the field has nothing (nginx's `if_modified_since off`).
    Off,
}

/// The part of a representation that goes to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a box would be an allocation for each request")]
pub enum Selection {
    /// All of it: 200.
    Whole,
    /// These of its bytes: 206.
    Ranges(RangeSet),
    /// Nothing, it has it already: 304.
    NotModified,
}

/// Why nothing does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectionError {
    /// A condition of the request does not hold: 412.
    PreconditionFailed,
    /// No byte that was asked for is there: 416.
    Unsatisfiable {
        /// The number of bytes.
        length: u64,
    },
}

/// Selects what a GET or HEAD request gets of a representation, in the order of RFC 9110 §13.2.2. If its length is not known
/// yet, that is never a part of it. `now` is when it was looked at; of one that is kept, when it was made.
///
/// # Errors
/// If that is an error response.
pub fn select(
    head: &RequestHead<impl AsRef<[u8]>>,
    validators: &Validators<'_>,
    length: Option<u64>,
    now: SystemTime,
) -> Result<Selection, SelectionError> {
    match evaluate(head, validators) {
        Precondition::Proceed => {}
        Precondition::NotModified => return Ok(Selection::NotModified),
        Precondition::Failed => return Err(SelectionError::PreconditionFailed),
    }
    let asked = range::requested(head).filter(|_| if_range_matches(head, validators, now));
    let Some((asked, length)) = asked.zip(length) else { return Ok(Selection::Whole) };
    match range::parse_ranges(asked, length) {
        RangeOutcome::Whole => Ok(Selection::Whole),
        RangeOutcome::Ranges(ranges) => Ok(Selection::Ranges(ranges)),
        RangeOutcome::Unsatisfiable => Err(SelectionError::Unsatisfiable { length }),
    }
}

/// The outcome of the preconditions of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Precondition {
    /// Answer as if there were none.
    Proceed,
    /// The client has it already: 304.
    NotModified,
    /// The client has something else: 412.
    Failed,
}

/// Evaluates the preconditions of a GET or HEAD request in the order of RFC 9110 §13.2.2.
///
/// Requests by other methods proceed: none of those served here selects a representation.
fn evaluate(head: &RequestHead<impl AsRef<[u8]>>, validators: &Validators<'_>) -> Precondition {
    if !matches!(head.method(), Method::Get | Method::Head) {
        return Precondition::Proceed;
    }
    let current = match etag_condition(head, "if-match", validators.etag, Comparison::Strong) {
        Some(is_match) => is_match,
        None => date_condition(head, "if-unmodified-since", validators).unwrap_or(true),
    };
    if !current {
        return Precondition::Failed;
    }
    if !may_be_unchanged(head, validators) {
        return Precondition::Proceed;
    }
    let unchanged = match etag_condition(head, "if-none-match", validators.etag, Comparison::Weak) {
        Some(is_match) => is_match,
        None => date_condition(head, "if-modified-since", validators).unwrap_or(false),
    };
    if unchanged { Precondition::NotModified } else { Precondition::Proceed }
}

/// False if If-Modified-Since alone says that the client is to get it.
fn may_be_unchanged(head: &RequestHead<impl AsRef<[u8]>>, validators: &Validators<'_>) -> bool {
    let mut dates = head.header_values("if-modified-since");
    let modified = || validators.modified.map(date::whole_second);
    match validators.since {
        ModifiedSince::Before => true,
        ModifiedSince::Exact => {
            dates.all(|it| date::parse(it).is_some_and(|it| Some(it) == modified()))
        }
        ModifiedSince::Off => dates.next().is_none(),
    }
}

/// True if Range is to be honoured as far as If-Range is concerned (RFC 9110 §13.1.5): there is
/// none, or it names exactly the current representation.
///
/// Tags are compared strongly. A date must be the very second of the last change, and that second
/// must be over at `now`: as long as it runs, another change would leave the date as it is, so the
/// date is not strong yet (RFC 9110 §8.8.2.2).
fn if_range_matches(
    head: &RequestHead<impl AsRef<[u8]>>,
    validators: &Validators<'_>,
    now: SystemTime,
) -> bool {
    let mut values = head.header_values("if-range");
    match (values.next(), values.next()) {
        (None, _) => true,
        (Some(tag @ [b'"', ..]), None) => tag == validators.etag.as_bytes(),
        (Some(_), None) if validators.shares_date => false,
        (Some(value), None) => {
            validators.modified.map(date::whole_second).is_some_and(|modified| {
                let is_strong = modified + Duration::from_secs(1) <= now;
                is_strong && date::parse(value) == Some(modified)
            })
        }
        (Some(_), Some(_)) => false,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Strong,
    Weak,
}

/// Tells whether any tag in the field matches; `None` without the field. Several lines are one list.
fn etag_condition(
    head: &RequestHead<impl AsRef<[u8]>>,
    name: &str,
    etag: &str,
    comparison: Comparison,
) -> Option<bool> {
    let mut values = head.header_values(name);
    let first = values.next()?;
    let is_match = |value: &[u8]| value == b"*" || lists_etag(value, etag.as_bytes(), comparison);
    Some(is_match(first) || values.any(is_match))
}

/// Looks for a tag in a list of entity tags (RFC 9110 §8.8.3). Commas may stand inside of tags.
/// A malformed member ends the list: nothing after it matches.
fn lists_etag(mut list: &[u8], etag: &[u8], comparison: Comparison) -> bool {
    let etag = match etag {
        [b'W', b'/', ..] if comparison == Comparison::Strong => return false,
        [b'W', b'/', etag @ ..] => etag,
        etag => etag,
    };
    loop {
        while let [b',' | b' ' | b'\t', rest @ ..] = list {
            list = rest;
        }
        let (is_weak, tag) = match list {
            [b'W', b'/', rest @ ..] => (true, rest),
            _ => (false, list),
        };
        let [b'"', inside @ ..] = tag else {
            return false;
        };
        let Some(close) = inside.iter().position(|byte| *byte == b'"') else {
            return false;
        };
        let Some((tag, rest)) = tag.split_at_checked(close + 2) else {
            return false;
        };
        if tag == etag && !(is_weak && comparison == Comparison::Strong) {
            return true;
        }
        let rest = field::trim(rest);
        if !matches!(rest, [b',', ..]) {
            return false;
        }
        list = rest;
    }
}

/// Tells whether the representation has not changed after the date in the field; `None` without the field, with several, if it
/// is no date, or where nobody knows when it changed (RFC 9110 §13.1.3, §13.1.4).
fn date_condition(
    head: &RequestHead<impl AsRef<[u8]>>,
    name: &str,
    validators: &Validators<'_>,
) -> Option<bool> {
    let date = date::parse(head.sole_header(name)?)?;
    Some(date::whole_second(validators.modified?) <= date)
}

#[cfg(test)]
mod tests;
