//! From a file to a response: preconditions, ranges, and the fields that fit them.

use std::hash::{BuildHasher, RandomState};

use bytes::Bytes;
use kettle_exchange::error_page::HttpError;
use kettle_exchange::request::Head;
use kettle_exchange::response::{Body, Part, Response, ResponseFields};
use kettle_http::conditional::{self, Selection, Validators};
use kettle_http::multipart::Boundary;
use kettle_http::range::{self, ByteRange};
use kettle_runtime::clock::Clock;

use super::entry::Entry;
use super::file_route::Validation;

/// Answers GET or HEAD from a file.
///
/// # Errors
/// 412 if a condition of the request does not hold, 416 if no range lies inside the file.
pub fn respond(entry: &Entry, head: &Head, clock: &dyn Clock) -> Result<Response, HttpError> {
    if !is_conditional_or_ranged(head) {
        return Ok(whole(entry));
    }
    let (modified, shares_date) = (entry.modified, entry.shares_date);
    let Validation { since, ranges_max, .. } = entry.validation;
    let validators = Validators { etag: &entry.etag, modified, shares_date, since };
    let length = Some(entry.content.bytes()).filter(|_| ranges_max > 0);
    Ok(match conditional::select(head, &validators, length, clock.wall())? {
        Selection::Whole => whole(entry),
        Selection::NotModified => {
            let fields = ResponseFields::ready(entry.lines.shared());
            Response::new(304, fields, Body::Empty)
        }
        Selection::Ranges(spans) if spans.len() > usize::from(ranges_max) => whole(entry),
        Selection::Ranges(spans) => match *spans {
            [span] => one_range(entry, span),
            _ => several_ranges(entry, &spans),
        },
    })
}

/// One pass over the names instead of a search for each of the six that matter. May err on the
/// side of `true`.
fn is_conditional_or_ranged(head: &Head) -> bool {
    head.headers().any(|(name, _)| match name {
        [b'i' | b'I', b'f' | b'F', b'-', ..] => true,
        [b'r' | b'R', ..] => name.eq_ignore_ascii_case(b"range"),
        _ => false,
    })
}

fn whole(entry: &Entry) -> Response {
    Response::new(200, ResponseFields::ready(entry.lines.all()), entry.content.whole())
}

fn one_range(entry: &Entry, span: ByteRange) -> Response {
    let mut content_range = Vec::with_capacity(CONTENT_RANGE_BYTES);
    range::write_content_range(&mut content_range, span, entry.content.bytes());
    let fields = ResponseFields::ready(entry.lines.all()).with("content-range", content_range);
    let body = match entry.content.part(span) {
        Part::Memory(bytes) => Body::Memory(bytes),
        Part::File { file, span } => Body::File { file, span },
    };
    Response::new(206, fields, body)
}

/// `multipart/byteranges` (RFC 9110 §14.6).
fn several_ranges(entry: &Entry, spans: &[ByteRange]) -> Response {
    let boundary = Boundary::new(unpredictable_seed());
    let mut parts = Vec::with_capacity(2 * spans.len() + 1);
    for span in spans {
        let mut part_head = Vec::with_capacity(PART_HEAD_BYTES);
        let content_type = Some(entry.content_type.as_bytes());
        boundary.write_part_head(&mut part_head, content_type, *span, entry.content.bytes());
        parts.push(Part::Memory(part_head.into()));
        parts.push(entry.content.part(*span));
    }
    let mut end = Vec::new();
    boundary.write_end(&mut end);
    parts.push(Part::Memory(Bytes::from(end)));
    let fields = ResponseFields::ready(entry.lines.with_coding());
    let fields = fields.with("content-type", boundary.content_type());
    Response::new(206, fields, Body::Parts(parts))
}

/// Keyed hashes of nothing: nobody who writes a file can foresee them, and guessing one only
/// confuses the client that asked for several ranges of that file.
fn unpredictable_seed() -> u128 {
    let half = || u128::from(RandomState::new().hash_one(()));
    half() << 64 | half()
}

/// The longest `content-range`, about.
const CONTENT_RANGE_BYTES: usize = 64;
/// A part's head, about.
const PART_HEAD_BYTES: usize = 160;
