//! From a file to a response: preconditions, ranges, and the head that fits them.

use std::hash::{BuildHasher, RandomState};

use bytes::Bytes;
use kettle_http::conditional::{self, Precondition, Validators};
use kettle_http::multipart::Boundary;
use kettle_http::range::{self, RangeOutcome, Span};
use kettle_http::{Method, RequestHead};

use super::entry::Entry;
use crate::answer::{Body, Part, Response};
use crate::clock::Clock;
use crate::head::{self, Ending};

/// An error that a request for an existing file ends in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// 412: a condition of the request does not hold.
    PreconditionFailed,
    /// 416: no range lies inside the file.
    RangeNotSatisfiable {
        /// The file's length.
        bytes: u64,
    },
}

/// Answers GET or HEAD from a file. The buffer is only taken for a response.
pub fn respond(
    entry: &Entry,
    request: &RequestHead<'_>,
    clock: &dyn Clock,
    ending: &Ending<'_>,
    buffer: &mut Vec<u8>,
) -> Result<Response, Unfit> {
    if !is_conditional_or_ranged(request) {
        return Ok(whole(entry, request, ending, buffer));
    }
    let validators = Validators { etag: &entry.etag, modified: entry.modified };
    match conditional::evaluate(request, &validators) {
        Precondition::Proceed => {}
        Precondition::NotModified => return Ok(not_modified(entry, ending, buffer)),
        Precondition::Failed => return Err(Unfit::PreconditionFailed),
    }
    let ranges = range::requested(request)
        .filter(|_| conditional::if_range_matches(request, &validators, clock.wall()));
    let bytes = entry.content.bytes();
    match ranges.map_or(RangeOutcome::Whole, |ranges| range::parse_ranges(ranges, bytes)) {
        RangeOutcome::Whole => Ok(whole(entry, request, ending, buffer)),
        RangeOutcome::Unsatisfiable => Err(Unfit::RangeNotSatisfiable { bytes }),
        RangeOutcome::Ranges(spans) => Ok(match *spans {
            [span] => one_range(entry, span, ending, buffer),
            _ => several_ranges(entry, &spans, ending, buffer),
        }),
    }
}

/// One pass over the names instead of a search for each of the six that matter. May err on the
/// side of `true`.
fn is_conditional_or_ranged(request: &RequestHead<'_>) -> bool {
    request.headers().any(|(name, _)| match name {
        [b'i' | b'I', b'f' | b'F', b'-', ..] => true,
        [b'r' | b'R', ..] => name.eq_ignore_ascii_case(b"range"),
        _ => false,
    })
}

fn whole(
    entry: &Entry,
    request: &RequestHead<'_>,
    ending: &Ending<'_>,
    buffer: &mut Vec<u8>,
) -> Response {
    head::begin(buffer, 200);
    buffer.extend_from_slice(entry.lines.whole());
    let is_head = request.method == Method::Head;
    ending.finish(200, if is_head { Body::Empty } else { entry.content.whole() }, buffer)
}

fn not_modified(entry: &Entry, ending: &Ending<'_>, buffer: &mut Vec<u8>) -> Response {
    head::begin(buffer, 304);
    buffer.extend_from_slice(entry.lines.shared());
    ending.finish(304, Body::Empty, buffer)
}

fn one_range(entry: &Entry, span: Span, ending: &Ending<'_>, buffer: &mut Vec<u8>) -> Response {
    head::begin(buffer, 206);
    buffer.extend_from_slice(entry.lines.with_type());
    buffer.extend_from_slice(b"content-range: ");
    range::write_content_range(buffer, span, entry.content.bytes());
    buffer.extend_from_slice(b"\r\n");
    head::line_u64(buffer, "content-length", span.bytes);
    let body = match entry.content.part(span) {
        Part::Memory(bytes) => Body::Memory(bytes),
        Part::File { file, span } => Body::File { file, span },
    };
    ending.finish(206, body, buffer)
}

/// `multipart/byteranges` (RFC 9110 §14.6).
fn several_ranges(
    entry: &Entry,
    spans: &[Span],
    ending: &Ending<'_>,
    buffer: &mut Vec<u8>,
) -> Response {
    let boundary = Boundary::new(unpredictable_seed());
    let mut parts = Vec::with_capacity(2 * spans.len() + 1);
    let mut length = 0;
    for span in spans {
        let mut part_head = Vec::with_capacity(PART_HEAD_BYTES);
        let content_type = Some(entry.content_type.as_bytes());
        boundary.write_part_head(&mut part_head, content_type, *span, entry.content.bytes());
        length += part_head.len() as u64 + span.bytes;
        parts.push(Part::Memory(part_head.into()));
        parts.push(entry.content.part(*span));
    }
    let mut end = Vec::new();
    boundary.write_end(&mut end);
    length += end.len() as u64;
    parts.push(Part::Memory(Bytes::from(end)));

    head::begin(buffer, 206);
    buffer.extend_from_slice(entry.lines.with_coding());
    head::line(buffer, "content-type", &boundary.content_type());
    head::line_u64(buffer, "content-length", length);
    ending.finish(206, Body::Parts(parts), buffer)
}

/// Keyed hashes of nothing: nobody who writes a file can foresee them, and guessing one only
/// confuses the client that asked for several ranges of that file.
fn unpredictable_seed() -> u128 {
    let half = || u128::from(RandomState::new().hash_one(()));
    half() << 64 | half()
}

/// A part's head, about.
const PART_HEAD_BYTES: usize = 160;
