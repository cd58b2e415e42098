//! From an object, whole or growing, to a response: preconditions, ranges, its age.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use kettle_cache::{Fill, FillState, ObjectHead, Times};
use kettle_exchange::request::Head;
use kettle_exchange::response::{Body, ConfiguredFields, Growing, Response, ResponseFields};
use kettle_http::caching::{Freshness, Use};
use kettle_http::conditional::{self, ModifiedSince, Selection, SelectionError, Validators};
use kettle_http::date::{self, write_imf_fixdate};
use kettle_http::h1::response::ResponseHead;
use kettle_http::range::{self, ByteRange};
use kettle_runtime::disk::Device;
use kettle_runtime::open_file::OpenFile;

use crate::files::entry::Content;
use crate::files::object::ReadyObject;
use crate::stores::FetchBody;

/// An object and where its bytes are.
pub(super) struct StoredResponse<'k> {
    head: &'k ObjectHead,
    /// The object, where all of it is stored.
    pub(super) object: Option<&'k Rc<ReadyObject>>,
    source: StoredResponseSource,
    /// Its length, if that is known.
    bytes: Option<u64>,
}

/// Where the bytes of a body are.
enum StoredResponseSource {
    Memory(Bytes),
    /// In a file, from this byte on.
    File(Arc<OpenFile>, u64),
    /// In one that grows, and how long nothing may come.
    Growing(Fill, Arc<OpenFile>, Duration),
}

impl<'k> StoredResponse<'k> {
    /// An object of the store.
    pub(super) fn whole(object: &'k Rc<ReadyObject>) -> Self {
        let source = match &object.content {
            Content::Memory(bytes) => StoredResponseSource::Memory(bytes.clone()),
            Content::File(file) => StoredResponseSource::File(Arc::clone(file), object.body.offset),
        };
        let bytes = Some(object.body.bytes);
        Self { head: &object.head, object: Some(object), source, bytes }
    }

    pub(super) fn arriving(
        head: &'k ObjectHead,
        body: &FetchBody,
        device: Arc<Device>,
        patience: Duration,
    ) -> Self {
        let fill = match body {
            FetchBody::InFile { fill, .. } => fill,
            FetchBody::Whole { bytes, .. } => {
                let source = StoredResponseSource::Memory(bytes.clone());
                let bytes = Some(bytes.len() as u64);
                return Self { head, object: None, source, bytes };
            }
        };
        // Its length in the file changes.
        let file = Arc::new(OpenFile::shared(fill.clone(), device));
        let progress = fill.progress();
        let is_complete = progress.state == FillState::Complete;
        let bytes = fill.announced_bytes().or(is_complete.then_some(progress.filled));
        let source = StoredResponseSource::Growing(fill.clone(), file, patience);
        Self { head, object: None, source, bytes }
    }

    /// The response to GET or HEAD.
    pub(super) fn respond(
        &self,
        configured: &ConfiguredFields,
        head: &Head,
        now: SystemTime,
    ) -> Result<Response, SelectionError> {
        let status = self.head.status;
        let operators = if status < 400 { configured.all() } else { configured.for_errors() };
        let age = freshness(&self.head.times).age + here(&self.head.times, now);
        let fields = ResponseFields::ready(operators.clone())
            .with_lines(&self.head.lines)
            .with("age", age.as_secs().to_string());
        if status != 200 {
            return Ok(Response::new(status, fields, self.body(None)));
        }
        let etag = std::str::from_utf8(&self.head.etag).unwrap_or_default();
        let modified = self.head.modified.map(date_of);
        let shares_date = !self.head.vary.is_empty();
        let since = ModifiedSince::Before;
        let validators = Validators { etag, modified, shares_date, since };
        // A date is strong by the clock that it was made by, and not because it has been here for a while.
        let Times { arrived, age: aged, .. } = self.head.times;
        let made = date_of(arrived.saturating_sub(aged));
        let span = match conditional::select(head, &validators, self.bytes, made)? {
            Selection::NotModified => return Ok(Response::new(304, fields, Body::Empty)),
            Selection::Ranges(spans) if spans.len() == 1 => spans.first().copied(),
            // Several ranges may be answered with the whole (RFC 9110 §14.2).
            Selection::Ranges(_) | Selection::Whole => None,
        };
        let fields = fields.with("accept-ranges", "bytes");
        let Some((part, length)) = span.zip(self.bytes) else {
            return Ok(Response::new(200, fields, self.body(None)));
        };
        let mut content_range = Vec::new();
        range::write_content_range(&mut content_range, part, length);
        let fields = fields.with("content-range", content_range);
        Ok(Response::new(206, fields, self.body(span)))
    }

    fn body(&self, span: Option<ByteRange>) -> Body {
        let span_bytes = span.map(|span| span.bytes).or(self.bytes);
        let start = span.map_or(0, |span| span.start);
        match (&self.source, span_bytes) {
            (_, Some(0)) => Body::Empty,
            (StoredResponseSource::Memory(all), bytes) => {
                let position = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(all.len());
                let end = start + bytes.unwrap_or_default();
                Body::Memory(all.slice(position(start)..position(end)))
            }
            (StoredResponseSource::File(file, offset), bytes) => {
                let span = ByteRange { start: offset + start, bytes: bytes.unwrap_or_default() };
                Body::File { file: Arc::clone(file), span }
            }
            (StoredResponseSource::Growing(fill, file, patience), bytes) => {
                let file = Arc::clone(file);
                Body::Growing(Box::new(Growing::new(fill, file, start, bytes, *patience)))
            }
        }
    }
}

/// A date that a backend named; later ones than HTTP can say are the last that it can.
fn date_of(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds.min(SECONDS_MAX))
}

/// Returns the way in which an object may be used now.
pub(super) fn usable(head: &ObjectHead, now: SystemTime) -> Use {
    freshness(&head.times).after(here(&head.times, now))
}

/// True if it may be used without a question.
pub(super) fn is_fresh(head: &ObjectHead) -> bool {
    matches!(usable(head, SystemTime::now()), Use::Fresh(_))
}

/// True if what says by which fields variants differ is still to be believed: while one of them is fresh, or for a while where
/// none ever was.
pub(super) fn still_varies(marker: &ObjectHead, now: SystemTime) -> bool {
    let Times { age, fresh_for, .. } = marker.times;
    let for_a_while = age.saturating_add(NEVER_FRESH_VARIES.as_secs());
    let fresh_for = if fresh_for > age { fresh_for } else { for_a_while };
    let times = Times { fresh_for, ..marker.times };
    matches!(freshness(&times).after(here(&times, now)), Use::Fresh(_))
}

/// The fields that distinguish an object from another that takes its name: a backend is asked about it by them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObjectVersion {
    pub(super) etag: Vec<u8>,
    pub(super) modified: Option<u64>,
}

impl ObjectVersion {
    /// Returns the version of a response.
    pub(super) fn said(head: &ResponseHead<Bytes>) -> Self {
        let sole = |name: &str| {
            let mut values = head.header_values(name);
            values.next().filter(|_| values.next().is_none())
        };
        let modified = sole("last-modified").and_then(date::parse);
        let modified = modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let etag = sole("etag").unwrap_or_default().to_vec();
        Self { etag, modified: modified.map(|since| since.as_secs()) }
    }

    pub(super) fn of(head: &ObjectHead) -> Self {
        Self { etag: head.etag.clone(), modified: head.modified }
    }
}

/// The fields by which a backend is asked whether it is still good.
pub(super) fn validators(head: &ObjectHead) -> Vec<(String, Vec<u8>)> {
    let etag = (!head.etag.is_empty()).then(|| ("if-none-match".to_owned(), head.etag.clone()));
    let modified = head.modified.map(|seconds| {
        let date = write_imf_fixdate(date_of(seconds));
        ("if-modified-since".to_owned(), date.to_vec())
    });
    etag.into_iter().chain(modified).collect()
}

/// The time it is to be used, as it is kept.
pub(super) fn times(freshness: Freshness, now: SystemTime) -> Times {
    Times {
        arrived: now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
        age: freshness.age.as_secs(),
        fresh_for: freshness.fresh_for.as_secs(),
        stale_while_revalidate: freshness.stale_while_revalidate.as_secs(),
        stale_if_error: freshness.stale_if_error.as_secs(),
    }
}

fn freshness(times: &Times) -> Freshness {
    Freshness {
        age: Duration::from_secs(times.age),
        fresh_for: Duration::from_secs(times.fresh_for),
        stale_while_revalidate: Duration::from_secs(times.stale_while_revalidate),
        stale_if_error: Duration::from_secs(times.stale_if_error),
    }
}

/// The time it has been here. Of one that came in the future, nobody knows that: the clock was set back since. It counts as no
/// longer fresh, so that it is validated, and not as fresh until that time has come again.
fn here(times: &Times, now: SystemTime) -> Duration {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let arrived = Duration::from_secs(times.arrived);
    match arrived.checked_sub(now) {
        Some(ahead) if ahead > CLOCK_DIFFERENCE_MAX => {
            Duration::from_secs(times.fresh_for.saturating_sub(times.age))
        }
        _ => now.saturating_sub(arrived),
    }
}

/// The time a response that is validated each time is taken to vary as it did: those it was not made for would ask for it each
/// time, and then for their own.
const NEVER_FRESH_VARIES: Duration = Duration::from_mins(1);

/// Workers look at the clock once in a while, and a clock is corrected by little at any time.
const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_secs(5);

/// The end of the year 9999, the last that an HTTP date can say.
const SECONDS_MAX: u64 = 253_402_300_799;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_in_the_future_is_no_longer_fresh() {
        let arrived = 1_000_000;
        let age = 10;
        let times = |stale_while_revalidate| Times {
            arrived,
            age,
            fresh_for: 100,
            stale_while_revalidate,
            stale_if_error: 0,
        };
        let left = |seconds| Use::Fresh(Duration::from_secs(seconds));
        for (now, stale, expected) in [
            (arrived, 0, left(90)),
            (arrived + 89, 0, left(1)),
            (arrived + 90, 0, Use::No),
            (arrived + 90, 5, Use::WhileRevalidating),
            (arrived - 5, 0, left(90)),
            (arrived - 6, 0, Use::No),
            (arrived - 3_600, 0, Use::No),
            (arrived - 3_600, 5, Use::WhileRevalidating),
            (0, 0, Use::No),
        ] {
            let head = ObjectHead { times: times(stale), ..ObjectHead::default() };
            assert_eq!(usable(&head, date_of(now)), expected, "{now} {stale}");
        }
    }

    #[test]
    fn variants_differ_as_they_did_while_one_is_fresh_or_for_a_minute() {
        let arrived = 1_000_000;
        for (age, fresh_for, holds_for) in [(10, 100, 90), (0, 0, 60), (500, 100, 60)] {
            let times = Times { arrived, age, fresh_for, ..Times::default() };
            let marker = ObjectHead { times, ..ObjectHead::default() };
            for (after, holds) in [(0, true), (holds_for - 1, true), (holds_for, false)] {
                assert_eq!(still_varies(&marker, date_of(arrived + after)), holds, "{age} {after}");
            }
        }
        // One of an earlier version says no times.
        assert!(!still_varies(&ObjectHead::default(), date_of(arrived)));
    }
}
