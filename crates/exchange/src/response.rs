//! The parts of a response: a status, its fields, and a body that says where its bytes are.
//!
//! A handler decides these. An edge writes the head, with what only the connection knows; the body gets to the socket by `send` in
//! `deliver`, for all protocols.

mod answer;
mod configured;
mod expires;
mod growing;

use std::any::Any;
use std::io;
use std::num::NonZeroU64;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use kettle_config::TxPathChoice;
use kettle_http::HttpVersion;
use kettle_http::h1::write::{write_content_length, write_field, write_status_line};
use kettle_http::range::ByteRange;
use kettle_runtime::access_log::Destination;
use kettle_runtime::clock::DATE_LINE_BYTES;
use kettle_runtime::encoder::Encoder;
use kettle_runtime::open_file::OpenFile;
use kettle_upstream::UpstreamBody;

pub use answer::{Answer, Held, LogNotes, Logged, Nothing, Upgraded};
pub use configured::{CACHE_CONTROL, ConfiguredFields, forbidding};
pub use expires::{make_private, set_expires};
pub use growing::{Growing, GrowingNext};

/// A response, whatever protocol it leaves by.
#[derive(Debug)]
pub struct Response {
    /// The HTTP status code.
    pub status: u16,
    /// The fields besides its length, its date and the state of the connection.
    pub fields: ResponseFields,
    /// The place of the body's bytes. That of a GET, even if the request is a HEAD.
    pub body: Body,
    /// The path its site prefers to the listener's.
    pub tx_path: Option<TxPathChoice>,
    /// The greatest rate, if not as fast as its client takes it. Boxed: most have no rate.
    pub rate: Option<Box<SendRate>>,
    /// The further notes for the log; most have nothing.
    pub notes: Option<Box<LogNotes>>,
    /// Which log has its line.
    pub log: Destination,
    /// The guards that are dropped once it is sent, or given up.
    pub held: Held,
    /// The stored object that the body is the whole of, on a route that compresses. Only the cache knows what it is.
    pub stored: Option<Rc<dyn Any>>,
}

impl Response {
    /// A response that leaves the path to its listener, and goes to the log of the process.
    pub fn new(status: u16, fields: ResponseFields, body: Body) -> Self {
        Self {
            status,
            fields,
            body,
            tx_path: None,
            rate: None,
            notes: None,
            log: Destination::Common,
            held: Held::default(),
            stored: None,
        }
    }

    /// Returns the log's words on it.
    pub fn logged(&self) -> Logged<'_> {
        let Self { status, notes, log, .. } = self;
        Logged { status: *status, notes: notes.as_deref(), destination: log }
    }

    /// Notes that a server did not send its body to the end, unless it was a store that could not take it.
    pub fn note_cut(&mut self, error: &io::Error) {
        if error.kind() == io::ErrorKind::StorageFull {
            return;
        }
        let trace = self.notes.as_mut().and_then(|notes| notes.upstream.as_mut());
        if let Some(trace) = trace {
            trace.failure = Some(match error.kind() {
                io::ErrorKind::TimedOut => "timeout",
                io::ErrorKind::InvalidData => "malformed",
                _ => "closed_early",
            });
        }
    }
}

/// The rate of a response, from some byte on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendRate {
    /// Bytes of the body in a second.
    pub bytes_per_second: NonZeroU64,
    /// Bytes that go at once before that.
    pub after_bytes: u64,
}

impl SendRate {
    /// That of a route; none if it has none.
    pub fn of(route: &kettle_config::Route) -> Option<Self> {
        let bytes_per_second = NonZeroU64::new(route.limit_rate?)?;
        Some(Self { bytes_per_second, after_bytes: route.limit_rate_after })
    }
}

/// The fields of a response, as lines of lower-case names: `name: value` and CR LF.
#[derive(Clone, Debug, Default)]
pub struct ResponseFields {
    ready: Bytes,
    own: Vec<u8>,
    tls_only: Bytes,
    is_dated: bool,
}

impl ResponseFields {
    /// Begins with lines that are shared with other responses.
    pub fn ready(lines: Bytes) -> Self {
        Self { ready: lines, ..Self::default() }
    }

    /// Adds a field; [`write_field`] says which are left out.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.add(name, value.as_ref());
        self
    }

    /// The same, in place.
    pub fn add(&mut self, name: impl AsRef<[u8]>, value: &[u8]) {
        self.is_dated |= name.as_ref() == b"date";
        write_field(&mut self.own, name, value);
    }

    /// Makes room for lines of so many bytes, and for some that may follow.
    pub fn reserve(&mut self, bytes: usize) {
        self.own.reserve(bytes + SPARE_BYTES);
    }

    /// Adds a field that only this response can say, in place of the operator's of that name.
    #[must_use]
    pub fn with_own(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.end_shared(name);
        self.with(name, value)
    }

    /// Takes the field of a name away that is shared with other responses.
    fn end_shared(&mut self, name: &str) {
        if has_line(&self.ready, name) {
            self.ready = lines_without(&self.ready, &format!("{name}:")).into();
        }
    }

    /// True if they say when the response was made, so that it is not for us to say.
    pub fn is_dated(&self) -> bool {
        self.is_dated
    }

    /// True if there is a field of this name, which is in lower case, among those that are not for TLS only.
    pub fn has(&self, name: &str) -> bool {
        self.lines().iter().any(|lines| has_line(lines, name))
    }

    /// The values of all lines of this name, which is in lower case, among those that are not for TLS only.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let lines = self.lines().into_iter().flat_map(|lines| lines.split(|byte| *byte == b'\n'));
        lines.filter_map(move |line| {
            let value = line.strip_prefix(name.as_bytes())?.strip_prefix(b":")?;
            Some(value.trim_ascii())
        })
    }

    /// True if caches are told in a line of its own to keep nothing.
    pub fn says_no_store(&self) -> bool {
        self.values("cache-control").any(|value| value == b"no-store")
    }

    /// Without the response's own fields whose names, in lower case, begin so.
    #[must_use]
    pub fn without(mut self, beginning: &str) -> Self {
        self.own = lines_without(&self.own, beginning);
        self
    }

    /// Moves lines that are shared with other responses, and begin so, behind the response's own.
    pub fn move_behind(&mut self, beginnings: &[String]) {
        for beginning in beginnings {
            let shared = self.ready.split_inclusive(|byte| *byte == b'\n');
            let moved = shared.filter(|line| line.starts_with(beginning.as_bytes()));
            let moved = moved.collect::<Vec<_>>().concat();
            if !moved.is_empty() {
                self.ready = lines_without(&self.ready, beginning).into();
                self.own.extend_from_slice(&moved);
            }
        }
    }

    /// Without any field of this name, which is in lower case, but those for TLS.
    #[must_use]
    pub fn without_all(mut self, name: &str) -> Self {
        self.end_shared(name);
        self.without(&format!("{name}:"))
    }

    /// Without the response's own fields of these names, which are in lower case.
    #[must_use]
    pub fn without_fields(mut self, names: &[&str]) -> Self {
        let is_one = |line: &[u8]| {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
            names.iter().any(|it| it.as_bytes() == name)
        };
        let lines = self.own.split_inclusive(|byte| *byte == b'\n');
        self.own = lines.filter(|line| !is_one(line)).flatten().copied().collect();
        self
    }

    /// Adds lines that were written by [`write_field`] before.
    #[must_use]
    pub fn with_lines(mut self, lines: &[u8]) -> Self {
        self.reserve(lines.len());
        self.own.extend_from_slice(lines);
        self.is_dated |= has_line(lines, "date");
        self
    }

    /// Adds lines that are sent over TLS only.
    pub fn set_tls_only(&mut self, lines: Bytes) {
        self.tls_only = lines;
    }

    /// All lines but those for TLS, in two pieces.
    pub fn lines(&self) -> [&[u8]; 2] {
        [&self.ready, &self.own]
    }

    /// The lines for TLS.
    pub fn tls_only(&self) -> &[u8] {
        &self.tls_only
    }
}

/// True if ready lines have a field of this name, which is in lower case.
pub(crate) fn has_line(lines: &[u8], name: &str) -> bool {
    lines
        .split(|byte| *byte == b'\n')
        .any(|line| line.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b":")))
}

/// Ready lines but those that begin so.
pub(crate) fn lines_without(lines: &[u8], beginning: &str) -> Vec<u8> {
    let lines = lines.split_inclusive(|byte| *byte == b'\n');
    lines.filter(|line| !line.starts_with(beginning.as_bytes())).collect::<Vec<_>>().concat()
}

/// Room for the few fields that are added to ready lines.
const SPARE_BYTES: usize = 128;

/// The place of the bytes of a body.
#[derive(Debug)]
pub enum Body {
    /// There is none.
    Empty,
    /// In this process's memory.
    Memory(Bytes),
    /// In a file.
    File {
        /// The open file.
        file: Arc<OpenFile>,
        /// Which of its bytes.
        span: ByteRange,
    },
    /// Pieces one after the other (`multipart/byteranges`).
    Parts(Vec<Part>),
    /// In a file that is still growing.
    Growing(Box<Growing>),
    /// On their way from a backend's server.
    Upstream(Box<UpstreamBody>),
    /// In another body that is stored here, compressed on their way.
    Encoded(Box<Encoded>),
}

/// A stored body that is compressed on its way, and what compresses it.
#[derive(Debug)]
pub struct Encoded {
    /// The plain one.
    pub plain: Body,
    /// The encoder that compresses it.
    pub encoder: Encoder,
}

impl Body {
    /// The number of bytes there are; `None` if only their end will tell.
    pub fn length(&self) -> Option<u64> {
        match self {
            Body::Empty => Some(0),
            Body::Memory(bytes) => Some(bytes.len() as u64),
            Body::File { span, .. } => Some(span.bytes),
            Body::Parts(parts) => Some(parts.iter().map(Part::bytes).sum()),
            Body::Growing(growing) => growing.bytes,
            Body::Upstream(body) => body.length(),
            Body::Encoded(_) => None,
        }
    }

    /// True if it still comes from a server.
    pub fn is_arriving(&self) -> bool {
        match self {
            Body::Growing(_) | Body::Upstream(_) => true,
            Body::Encoded(encoded) => encoded.plain.is_arriving(),
            _ => false,
        }
    }

    /// Has it compressed on its way: only its end tells how many bytes that makes. A body of several parts stays as it is.
    pub fn encode(&mut self, encoder: Encoder) {
        match self {
            Body::Upstream(body) => body.encode(encoder),
            Body::Parts(_) | Body::Encoded(_) => {}
            _ => {
                let plain = std::mem::replace(self, Body::Empty);
                *self = Body::Encoded(Box::new(Encoded { plain, encoder }));
            }
        }
    }

    /// The file its bytes come from; a response never has several.
    pub fn file(&self) -> Option<&OpenFile> {
        match self {
            Body::Empty | Body::Memory(_) | Body::Upstream(_) => None,
            Body::File { file, .. } => Some(file),
            Body::Growing(growing) => Some(&growing.file),
            Body::Encoded(encoded) => encoded.plain.file(),
            Body::Parts(parts) => parts.iter().find_map(|part| match part {
                Part::Memory(_) => None,
                Part::File { file, .. } => Some(&**file),
            }),
        }
    }
}

/// One piece of a body of several.
#[derive(Debug)]
pub enum Part {
    /// In this process's memory.
    Memory(Bytes),
    /// In a file.
    File {
        /// The open file.
        file: Arc<OpenFile>,
        /// Which of its bytes.
        span: ByteRange,
    },
}

impl Part {
    fn bytes(&self) -> u64 {
        match self {
            Part::Memory(bytes) => bytes.len() as u64,
            Part::File { span, .. } => span.bytes,
        }
    }
}

/// The parts of a head beyond its response.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// The `date` line.
    pub date_line: [u8; DATE_LINE_BYTES],
    /// That of the request; `None` if it had none worth the name.
    pub version: Option<HttpVersion>,
    /// True if the request is a HEAD.
    pub is_head: bool,
    /// True if the connection is encrypted.
    pub is_tls: bool,
    /// True if the connection closes after the response.
    pub closes: bool,
    /// True if a tunnel follows the head, and no body.
    pub begins_tunnel: bool,
}

impl Edge {
    /// For a head that is made a stream's fields.
    pub fn of_http2(date_line: [u8; DATE_LINE_BYTES], is_head: bool, is_tls: bool) -> Self {
        Self { date_line, version: None, is_head, is_tls, closes: false, begins_tunnel: false }
    }

    /// True if a body comes in chunks: its length is not known, and its end need not be that of the connection.
    pub fn is_chunked(&self, body: &Body) -> bool {
        body.length().is_none() && self.version == Some(HttpVersion::Http11) && !self.is_head
    }
}

/// Writes the head of a response anew, status line to empty line, and takes away a body that must
/// not follow it: the answer to HEAD announces the length of what GET would get (RFC 9110 §9.3.2),
/// 204 and 304 announce none (§8.6). The fields go with that: a client may take its time for the body.
pub fn write_head(head: &mut Vec<u8>, response: &mut Response, edge: &Edge) {
    head.clear();
    write_status_line(head, response.status);
    let fields = std::mem::take(&mut response.fields);
    for lines in fields.lines() {
        match edge.is_tls || !has_line(lines, HSTS.trim_end_matches(':')) {
            true => head.extend_from_slice(lines),
            // Over plain HTTP it must not be sent, whoever wrote it (RFC 6797 §7.2).
            false => head.extend_from_slice(&lines_without(lines, HSTS)),
        }
    }
    let has_length = !edge.begins_tunnel && !matches!(response.status, 100..=199 | 204 | 304);
    match response.body.length() {
        _ if !has_length => {}
        Some(bytes) => write_content_length(head, bytes),
        None if edge.is_chunked(&response.body) => {
            head.extend_from_slice(b"transfer-encoding: chunked\r\n")
        }
        None => {}
    }
    if !fields.is_dated() {
        head.extend_from_slice(&edge.date_line);
    }
    if edge.is_tls {
        head.extend_from_slice(fields.tls_only());
    }
    head.extend_from_slice(match edge.version {
        _ if edge.closes => b"connection: close\r\n",
        // HTTP/1.0 clients take persistence only from this line (RFC 9112 §9.3).
        Some(HttpVersion::Http10) => b"connection: keep-alive\r\n",
        _ => b"",
    });
    head.extend_from_slice(b"\r\n");
    if edge.is_head || !has_length {
        response.body = Body::Empty;
    }
}

const HSTS: &str = "strict-transport-security:";

#[cfg(test)]
mod tests;
