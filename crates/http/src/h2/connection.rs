//! A server's half of a connection: what a client may say at each moment, and what has to be said in return.
//!
//! Nothing is sent or received here. Bytes that came are given in, frames that are due are taken out of
//! [`output`](Connection::output), and whoever serves a stream waits for it by its number. Every buffer is bounded: bodies by
//! their windows, fields by the longest head, answers by how much is received before they are taken out.

use std::collections::VecDeque;

use super::fields::{FieldsError, RequestText};
use super::flood::Flood;
use super::frame::{
    ErrorCode, FrameHead, FrameReader, GOAWAY, HEADERS, PING, PREFACE, SETTINGS, STREAM_MAX,
    WINDOW_BYTES_INITIAL, WINDOW_UPDATE, write_frame,
};
use super::growth::Growth;
use super::hpack::Decoder;
use super::priority::Priority;
use super::stream::{Stream, Window};

/// The bounds of the server for its clients.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Requests under way at a time.
    pub streams_max: u32,
    /// The bytes that may be sent ahead of a body's reader, in one stream.
    pub stream_window_bytes: u32,
    /// The same in all streams together.
    pub connection_window_bytes: u32,
    /// The longest head, as HTTP/1.1 writes it.
    pub head_bytes_max: usize,
}

/// One connection, as its server sees it.
pub struct Connection {
    pub(super) settings: Settings,
    /// The bytes of the client's preface that are still to come.
    pub(super) preface_left_bytes: usize,
    pub(super) frames: FrameReader,
    /// The frame under way, and what has come of its payload if it is read as a whole.
    pub(super) frame: FrameHead,
    pub(super) payload: Vec<u8>,
    pub(super) data: DataFrame,
    /// Fields whose end has not come.
    pub(super) block: Option<Box<Block>>,
    pub(super) decoder: Decoder,
    /// Memory for the pseudo-fields of the next request.
    pub(super) pseudo_values: Vec<u8>,
    pub(super) has_settings: bool,
    /// The first word of the client on the priorities of RFC 7540; it must not say anything else later.
    pub(super) is_without_tree: bool,
    pub(super) flood: Flood,
    pub(super) requests: VecDeque<NewRequest>,
    /// In the order of their numbers.
    pub(super) streams: Vec<Stream>,
    /// The last one that the client began.
    pub(super) last_stream: u32,
    /// The last one that the client was told may be served.
    said_last: u32,
    /// The priorities from PRIORITY_UPDATE of streams that have not begun, at most as many as may be under way.
    pub(super) to_come: Vec<(u32, Priority)>,
    /// Streams that were reset here while the client could still send: what is on its way is expected.
    pub(super) left_behind: VecDeque<u32>,
    pub(super) receive_window: Window,
    pub(super) growth: Growth,
    /// When the window for bodies was last found shut, in seconds.
    shut_ticks: Option<u32>,
    /// True if it was shut until after that was last noted.
    is_reopened: bool,
    /// The bytes that the client lets us send in all streams.
    pub(super) send_bytes: i64,
    /// The bytes that it lets us send in a new one.
    pub(super) initial_send_bytes: i64,
    pub(super) output: Vec<u8>,
    /// True if the client said how much its decoder may remember: ours is told to remember nothing.
    pub(super) has_table_size: bool,
    pub(super) leaving: Leaving,
    pub(super) is_left_by_client: bool,
    pub(super) is_closed: bool,
    pub(super) end: Option<ConnectionEnd>,
}

/// Fields whose end has not come.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) stream: u32,
    pub(super) is_end: bool,
    /// True if their stream depends on itself (RFC 7540 §5.3.1).
    pub(super) is_circular: bool,
    pub(super) bytes: Vec<u8>,
    pub(super) frames: usize,
}

/// The progress in the DATA frame under way.
#[derive(Debug, Default)]
pub(super) struct DataFrame {
    /// True if what comes next says how much padding there is.
    pub(super) is_padding_due: bool,
    pub(super) data_bytes: usize,
    /// True if its stream wanted it when it began. Of others it takes no window.
    pub(super) is_wanted: bool,
}

/// The progress of telling the client to ask elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    No,
    /// Requests may be on their way: a ping asks whether it knows.
    Told,
    /// It knows: what it asks from now on is refused.
    Known,
}

/// Why a connection has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// The client broke the protocol; GOAWAY says so.
    Error(ErrorCode),
    /// It does too much of this.
    Flood(&'static str),
}

/// A request that has begun.
#[derive(Debug)]
pub struct NewRequest {
    /// The number of its stream, to be [released](Connection::release).
    pub stream: u32,
    /// Its text, as far as it was looked at.
    pub text: RequestText,
    /// The outcome: it can be served, or not.
    pub outcome: Result<(), FieldsError>,
    /// True if this is all of it.
    pub is_whole: bool,
}

impl Connection {
    /// A connection on which nothing was said. The server's preface is due.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let mut connection = Self {
            settings,
            preface_left_bytes: PREFACE.len(),
            frames: FrameReader::default(),
            frame: FrameHead::default(),
            payload: Vec::new(),
            data: DataFrame::default(),
            block: None,
            decoder: Decoder::new(TABLE_BYTES_MAX),
            pseudo_values: Vec::new(),
            has_settings: false,
            is_without_tree: false,
            flood: Flood::default(),
            requests: VecDeque::new(),
            streams: Vec::new(),
            last_stream: 0,
            said_last: STREAM_MAX,
            to_come: Vec::new(),
            left_behind: VecDeque::new(),
            receive_window: Window::new(settings.connection_window_bytes),
            growth: Growth::default(),
            shut_ticks: None,
            is_reopened: false,
            send_bytes: WINDOW_BYTES_INITIAL,
            initial_send_bytes: WINDOW_BYTES_INITIAL,
            output: Vec::new(),
            has_table_size: false,
            leaving: Leaving::No,
            is_left_by_client: false,
            is_closed: false,
            end: None,
        };
        connection.write_preface();
        connection
    }

    fn write_preface(&mut self) {
        let Settings { streams_max, stream_window_bytes, connection_window_bytes, head_bytes_max } =
            self.settings;
        let head_bytes_max = u32::try_from(head_bytes_max).unwrap_or(u32::MAX);
        let settings = [
            (MAX_CONCURRENT_STREAMS, streams_max),
            (INITIAL_WINDOW_SIZE, stream_window_bytes),
            (MAX_HEADER_LIST_SIZE, head_bytes_max),
            (ENABLE_CONNECT_PROTOCOL, 1),
            // Clients that do not hear this say nothing by PRIORITY_UPDATE.
            (NO_RFC7540_PRIORITIES, 1),
        ];
        let mut payload = Vec::with_capacity(6 * settings.len());
        for (name, value) in settings {
            payload.extend_from_slice(&name.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        write_frame(SETTINGS, 0, 0, &payload, &mut self.output);
        let more = i64::from(connection_window_bytes) - WINDOW_BYTES_INITIAL;
        if let Some(more) = u32::try_from(more).ok().filter(|more| *more > 0) {
            write_frame(WINDOW_UPDATE, 0, 0, &more.to_be_bytes(), &mut self.output);
        }
    }

    /// Frames that are due, to be taken out from the front.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// The next request that has begun.
    pub fn next_request(&mut self) -> Option<NewRequest> {
        let Some(mut request) = self.requests.pop_front() else {
            self.requests = VecDeque::new();
            return None;
        };
        // The end may have come behind the head, in a frame of its own with nothing in it.
        request.is_whole |= self.stream(request.stream).is_some_and(|it| it.is_head_only());
        Some(request)
    }

    /// Why it has to end, if it does. Nothing is taken in any more then.
    #[must_use]
    pub fn end(&self) -> Option<ConnectionEnd> {
        self.end
    }

    /// The stream whose fields the client is in the middle of.
    #[must_use]
    pub fn stream_in_fields(&self) -> Option<u32> {
        let is_begun = self.frame.kind == HEADERS && self.frames.is_inside();
        (self.block.is_some() || is_begun).then_some(self.frame.stream)
    }

    /// True if the client said that it will ask for nothing more.
    #[must_use]
    pub fn is_left_by_client(&self) -> bool {
        self.is_left_by_client
    }

    /// True if the client knows that it is to ask elsewhere.
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.leaving == Leaving::Known
    }

    /// When the client could last not send any body for want of a window of the connection; `ticks` if it cannot now, or could
    /// not until after this was last asked. In seconds.
    pub fn shut_ticks(&mut self, ticks: u32) -> Option<u32> {
        if self.receive_window.bytes <= 0 || std::mem::take(&mut self.is_reopened) {
            // A stream that asked before may have looked at the time later.
            self.shut_ticks = self.shut_ticks.max(Some(ticks));
        }
        self.shut_ticks
    }

    /// Tells the client to ask elsewhere for what it has not asked yet, and asks whether it knows (RFC 9113 §6.8).
    pub fn leave(&mut self) {
        if self.leaving == Leaving::No && !self.is_closed {
            self.leaving = Leaving::Told;
            self.write_goaway(STREAM_MAX, ErrorCode::NO_ERROR);
            self.write(PING, 0, LEAVING_PING);
        }
    }

    /// Says the last word. Nothing is taken in or said behind it.
    pub fn close(&mut self, code: ErrorCode) {
        if !self.is_closed {
            self.write_goaway(self.last_stream, code);
            self.abandon();
        }
    }

    /// Nothing is said any more, whatever was due.
    pub fn abandon(&mut self) {
        self.is_closed = true;
        self.wake_all();
    }

    pub(super) fn end_if_flooded(&mut self) {
        if self.end.is_none() {
            self.end = self.flood.excess().map(ConnectionEnd::Flood);
        }
    }

    /// No stream is ever said to have been the last and named later (RFC 9113 §6.8).
    pub(super) fn write_goaway(&mut self, last: u32, code: ErrorCode) {
        self.said_last = last.min(self.said_last);
        let [last, code] = [self.said_last.to_be_bytes(), code.0.to_be_bytes()];
        self.write(GOAWAY, 0, &[last, code].concat());
    }

    pub(super) fn write(&mut self, kind: u8, stream: u32, payload: &[u8]) {
        if !self.is_closed {
            write_frame(kind, 0, stream, payload, &mut self.output);
        }
    }

    pub(super) fn write_window_update(&mut self, stream: u32, opened: Option<u32>) {
        if let Some(opened) = opened {
            self.write(WINDOW_UPDATE, stream, &opened.to_be_bytes());
        }
    }

    /// Gives the client room for as much as is gone.
    pub(super) fn release_window(&mut self, bytes: usize) {
        self.bound_window();
        let was_shut = self.receive_window.bytes <= 0;
        let opened = self.receive_window.release(bytes);
        self.settle_budget();
        self.note_opened(was_shut, opened);
    }

    /// Says by how much the window of the connection opens.
    pub(super) fn note_opened(&mut self, was_shut: bool, opened: Option<u32>) {
        self.is_reopened |= was_shut && opened.is_some();
        self.write_window_update(0, opened);
    }

    pub(super) fn find(&self, number: u32) -> Result<usize, usize> {
        self.streams.binary_search_by_key(&number, |stream| stream.number)
    }

    pub(super) fn stream(&mut self, number: u32) -> Option<&mut Stream> {
        let place = self.find(number).ok()?;
        self.streams.get_mut(place)
    }
}

/// The bytes that a client's encoder may have remembered here (RFC 9113 §6.5.2).
const TABLE_BYTES_MAX: usize = 4_096;

pub(super) const LEAVING_PING: &[u8; 8] = b"leaving.";

pub(super) const HEADER_TABLE_SIZE: u16 = 1;
pub(super) const ENABLE_PUSH: u16 = 2;
pub(super) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(super) const INITIAL_WINDOW_SIZE: u16 = 4;
pub(super) const MAX_FRAME_SIZE: u16 = 5;
pub(super) const MAX_HEADER_LIST_SIZE: u16 = 6;
/// RFC 8441 §3.
pub(super) const ENABLE_CONNECT_PROTOCOL: u16 = 8;
/// RFC 9218 §2.1.
pub(super) const NO_RFC7540_PRIORITIES: u16 = 9;
