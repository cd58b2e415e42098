//! A file ready to be answered with: its content, its validators, and fields, and the response that these make: preconditions and
//! ranges.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use kettle_exchange::error_page::HttpError;
use kettle_exchange::request::Head;
use kettle_exchange::response::{Body, Part, Response, ResponseFields};
use kettle_http::conditional::{self, Selection, Validators};
use kettle_http::date::write_imf_fixdate;
use kettle_http::h1::write::write_field;
use kettle_http::multipart::Boundary;
use kettle_http::range::{self, ByteRange};
use kettle_kernel::file_stamp::{CLOCK_GRANULARITY_MAX, FileStamp};
use kettle_runtime::clock::Clock;

use super::OpenFile;
use super::file_route::{FileRoute, Validation};
use super::locate::{Facts, identity_of};
use super::precompressed::token;

/// A file ready to be answered with.
#[derive(Debug)]
pub struct Entry {
    /// The place of its bytes.
    pub content: Content,
    /// Which file it was, in which state, when it was opened.
    pub identity: FileStamp,
    /// The strong entity tag, with its quotes; empty if nothing tells the content from an earlier one.
    pub etag: String,
    /// When the content was last modified, as clients are told. They are told no time that is none, nor that of another content.
    pub modified: Option<SystemTime>,
    /// The value of `content-type`.
    pub content_type: String,
    /// The fields of its responses.
    pub lines: Lines,
    /// True if another form of it, or another content, may have the same date: a part of one must not follow a part of the other.
    pub shares_date: bool,
    /// True if the place of its bytes is meant for clients that sendfile would reach, too.
    pub is_for_all: bool,
    /// The rules of its validation.
    pub validation: Validation,
    /// When it was last known to be what its path names.
    pub checked: Cell<Look>,
    /// True if a later change is sure to show in the identity.
    is_settled: bool,
}

/// A look at a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// When, on the clock that only moves forward.
    pub at: Duration,
    /// The route's generation when it began.
    pub generation: u64,
}

/// The mark by which a file's content is told from every other that was or will be there. That goes by the file and the
/// configuration alone, not by what a worker remembers: all workers say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// By a hash of it: it is small.
    Hash([u8; 16]),
    /// By its length, and the times of its file.
    Times,
    /// By nothing: it was changed while it was read.
    Nothing,
}

/// The place of a file's bytes.
#[derive(Clone, Debug)]
pub enum Content {
    /// In memory, all of them.
    Memory(Bytes),
    /// In the file.
    File(Arc<OpenFile>),
}

impl Content {
    /// Its length.
    pub fn bytes(&self) -> u64 {
        match self {
            Content::Memory(bytes) => bytes.len() as u64,
            Content::File(file) => file.bytes(),
        }
    }

    /// All of it.
    pub fn whole(&self) -> Body {
        match self {
            _ if self.bytes() == 0 => Body::Empty,
            Content::Memory(bytes) => Body::Memory(bytes.clone()),
            Content::File(file) => {
                Body::File { file: Arc::clone(file), span: ByteRange::whole(file.bytes()) }
            }
        }
    }

    /// Some of it. Bytes beyond the end are left out.
    pub fn part(&self, span: ByteRange) -> Part {
        match self {
            Content::Memory(bytes) => {
                let position = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                Part::Memory(bytes.slice(position(span.start)..position(span.end())))
            }
            Content::File(file) => Part::File { file: Arc::clone(file), span },
        }
    }
}

/// Ready field lines, in one piece whose beginnings serve too.
#[derive(Debug)]
pub struct Lines {
    bytes: Bytes,
    shared_end: usize,
    coding_end: usize,
}

impl Lines {
    /// Returns the fields that a 304 has too: validators, caching and the operator's fields.
    fn shared(&self) -> Bytes {
        self.bytes.slice(..self.shared_end)
    }

    /// The above and the content coding.
    fn with_coding(&self) -> Bytes {
        self.bytes.slice(..self.coding_end)
    }

    /// The above and the content type.
    fn all(&self) -> Bytes {
        self.bytes.clone()
    }
}

impl Entry {
    /// Makes an open file ready. `look` is how it was found, `wall` the time of day then.
    pub fn new(
        route: &FileRoute,
        facts: &Facts,
        (content, mark): (Content, Mark),
        wall: SystemTime,
        look: Look,
    ) -> Self {
        let identity = facts.identity;
        let validation = route.validation;
        let etag = match validation.has_etag {
            true => etag(route, facts, mark),
            false => String::new(),
        };
        // A date to come would let a client keep the file whatever happens to it (RFC 9110
        // §8.8.2.1).
        let is_told = is_dated(&identity) && mark != Mark::Nothing && validation.has_date;
        let modified = is_told.then(|| identity.modified_at().min(wall));
        let name = facts.path.rsplit('/').next().unwrap_or(&facts.path);
        let content_type = route.types.of(name);
        let mut bytes = Vec::with_capacity(HEAD_BYTES);
        let path = format!("{}/{}", route.prefix, facts.path);
        match route.cache_control(&path) {
            Some(value) => {
                bytes.extend_from_slice(route.configured.without_caching());
                write_field(&mut bytes, "cache-control", value.as_bytes());
            }
            None => bytes.extend_from_slice(route.configured.all()),
        }
        if !etag.is_empty() {
            write_field(&mut bytes, "etag", etag.as_bytes());
        }
        if let Some(modified) = modified {
            write_field(&mut bytes, "last-modified", &write_imf_fixdate(modified));
        }
        if validation.ranges_max > 0 {
            write_field(&mut bytes, "accept-ranges", b"bytes");
        }
        if !route.offered.is_empty() {
            write_field(&mut bytes, "vary", b"accept-encoding");
        }
        let shared_end = bytes.len();
        if let Some(coding) = facts.coding {
            write_field(&mut bytes, "content-encoding", token(coding).as_bytes());
        }
        let coding_end = bytes.len();
        write_field(&mut bytes, "content-type", content_type.as_bytes());
        let is_settled = wall
            .duration_since(identity.modified_at())
            .is_ok_and(|age| age > CLOCK_GRANULARITY_MAX);
        let lines = Lines { bytes: bytes.into_boxed_slice().into(), shared_end, coding_end };
        let checked = Cell::new(look);
        // A file that was given an older time may be the second content with it.
        let was_given_its_time = identity.changed.0 != identity.modified.0;
        let shares_date = !route.offered.is_empty() || was_given_its_time;
        Self {
            content,
            identity,
            etag,
            modified,
            content_type,
            lines,
            shares_date,
            is_for_all: false,
            validation,
            checked,
            is_settled,
        }
    }

    /// Answers GET or HEAD.
    ///
    /// # Errors
    /// 412 if a condition of the request does not hold, 416 if no range lies inside the file.
    pub fn respond(&self, head: &Head, clock: &dyn Clock) -> Result<Response, HttpError> {
        if !is_conditional_or_ranged(head) {
            return Ok(self.whole());
        }
        let &Self { ref etag, modified, shares_date, validation, .. } = self;
        let Validation { since, ranges_max, .. } = validation;
        let validators = Validators { etag, modified, shares_date, since };
        let length = Some(self.content.bytes()).filter(|_| ranges_max > 0);
        Ok(match conditional::select(head, &validators, length, clock.wall())? {
            Selection::Whole => self.whole(),
            Selection::NotModified => {
                let fields = ResponseFields::ready(self.lines.shared());
                Response::new(304, fields, Body::Empty)
            }
            Selection::Ranges(spans) if spans.len() > usize::from(ranges_max) => self.whole(),
            Selection::Ranges(spans) => match *spans {
                [span] => self.one_range(span),
                _ => self.several_ranges(&spans),
            },
        })
    }

    fn whole(&self) -> Response {
        Response::new(200, ResponseFields::ready(self.lines.all()), self.content.whole())
    }

    fn one_range(&self, span: ByteRange) -> Response {
        let mut content_range = Vec::with_capacity(CONTENT_RANGE_BYTES);
        range::write_content_range(&mut content_range, span, self.content.bytes());
        let fields = ResponseFields::ready(self.lines.all()).with("content-range", content_range);
        let body = match self.content.part(span) {
            Part::Memory(bytes) => Body::Memory(bytes),
            Part::File { file, span } => Body::File { file, span },
        };
        Response::new(206, fields, body)
    }

    /// `multipart/byteranges` (RFC 9110 §14.6).
    fn several_ranges(&self, spans: &[ByteRange]) -> Response {
        let boundary = Boundary::new(unpredictable_seed());
        let mut parts = Vec::with_capacity(2 * spans.len() + 1);
        for span in spans {
            let mut part_head = Vec::with_capacity(PART_HEAD_BYTES);
            let content_type = Some(self.content_type.as_bytes());
            boundary.write_part_head(&mut part_head, content_type, *span, self.content.bytes());
            parts.push(Part::Memory(part_head.into()));
            parts.push(self.content.part(*span));
        }
        let mut end = Vec::new();
        boundary.write_end(&mut end);
        parts.push(Part::Memory(Bytes::from(end)));
        let fields = ResponseFields::ready(self.lines.with_coding());
        let fields = fields.with("content-type", boundary.content_type());
        Response::new(206, fields, Body::Parts(parts))
    }

    /// True if a later change of the file is sure to be told by looking at it.
    pub fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// True if what is remembered is still true of a file found later under the same key.
    pub fn is_still(&self, facts: &Facts) -> bool {
        self.is_settled && self.identity == facts.identity
    }

    /// False if its bytes may be others by now: its file was written to as it lies there. A remote file is not asked, since
    /// that may wait.
    pub fn is_unchanged(&self) -> bool {
        match &self.content {
            Content::Memory(_) => true,
            Content::File(file) => {
                !file.device().is_remote() && identity_of(file.file()) == Some(self.identity)
            }
        }
    }

    /// Bytes of memory this entry refers to.
    pub fn memory_bytes(&self) -> usize {
        let content = match &self.content {
            Content::Memory(bytes) => bytes.len(),
            Content::File(_) => 0,
        };
        content + self.lines.bytes.len() + self.etag.len() + self.content_type.len()
    }
}

/// A tag that changes with the content (RFC 9110 §8.8.1), as far as can be known; never made of the inode.
fn etag(route: &FileRoute, facts: &Facts, mark: Mark) -> String {
    let identity = &facts.identity;
    let in_nanoseconds = |(seconds, nanoseconds): (i64, u64)| {
        i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds)
    };
    let modified = in_nanoseconds(identity.modified);
    let bytes = identity.bytes;
    let changed = in_nanoseconds(identity.changed);
    let form = facts.coding.map_or(String::new(), |coding| format!("-{}", token(coding)));
    match mark {
        Mark::Hash(hash) => format!("\"{:032x}{form}\"", u128::from_be_bytes(hash)),
        // Programs copy the time of modification along, and packages give all files one: only the kernel's own time tells then.
        Mark::Times if !route.same_files => {
            format!("\"{modified:x}-{bytes:x}-{changed:x}{form}\"")
        }
        Mark::Times if is_dated(identity) => format!("\"{modified:x}-{bytes:x}{form}\""),
        Mark::Times | Mark::Nothing => String::new(),
    }
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

/// Keyed hashes of nothing: nobody who writes a file can foresee them, and guessing one only
/// confuses the client that asked for several ranges of that file.
fn unpredictable_seed() -> u128 {
    let half = || u128::from(RandomState::new().hash_one(()));
    half() << 64 | half()
}

/// False for the times that stand for none: the beginnings of the clocks of Unix and of archives, whatever the time zone.
fn is_dated(identity: &FileStamp) -> bool {
    identity.modified.0 >= DATED_SECONDS_MIN
}

/// 1980-01-02.
const DATED_SECONDS_MIN: i64 = 315_619_200;
/// The longest `content-range`, about.
const CONTENT_RANGE_BYTES: usize = 64;
/// A part's head, about.
const PART_HEAD_BYTES: usize = 160;
/// A file's lines, about.
const HEAD_BYTES: usize = 320;

#[cfg(test)]
mod tests;
