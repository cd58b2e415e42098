//! Frames as they stand on the wire (RFC 9113 §4 and §6): where each begins in bytes that come in pieces, and how heads and
//! small frames are written.

/// Walks over the frames of a connection.
#[derive(Debug, Default)]
pub struct FrameReader {
    /// Of the payload of the frame under way.
    left_bytes: usize,
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
}

/// The next of the frames.
#[derive(Debug, PartialEq, Eq)]
pub enum FrameStep<'b> {
    /// A frame begins.
    Head(FrameHead),
    /// Some of its payload; the last of it if `is_last`. A frame without one has none of this.
    Payload {
        /// The part of it that came.
        bytes: &'b [u8],
        /// True if the frame ends here.
        is_last: bool,
    },
}

/// The head of a frame (RFC 9113 §4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameHead {
    /// The length of its payload, in bytes.
    pub payload_bytes: usize,
    /// The type of the frame.
    pub kind: u8,
    /// Flags, whose meaning depends on the kind.
    pub flags: u8,
    /// The stream it belongs to; 0 for the connection.
    pub stream: u32,
}

impl FrameReader {
    /// True if a frame may begin here.
    #[cfg(test)]
    #[must_use]
    pub fn is_between(&self) -> bool {
        self.left_bytes == 0 && self.head_bytes == 0
    }

    /// True if the payload of a frame is under way.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.left_bytes > 0
    }

    /// The next step in `left`, which is moved on past it; none if there is no more.
    pub fn step<'b>(&mut self, left: &mut &'b [u8]) -> Option<FrameStep<'b>> {
        if self.left_bytes > 0 && !left.is_empty() {
            let (bytes, rest) = left.split_at(self.left_bytes.min(left.len()));
            *left = rest;
            self.left_bytes -= bytes.len();
            return Some(FrameStep::Payload { bytes, is_last: self.left_bytes == 0 });
        }
        let (front, rest) = left.split_at((HEAD_BYTES - self.head_bytes).min(left.len()));
        *left = rest;
        let room = self.head.get_mut(self.head_bytes..self.head_bytes + front.len())?;
        room.copy_from_slice(front);
        self.head_bytes += front.len();
        if self.head_bytes < HEAD_BYTES {
            return None;
        }
        self.head_bytes = 0;
        let [high, middle, low, kind, flags, stream @ ..] = self.head;
        self.left_bytes = u32::from_be_bytes([0, high, middle, low]) as usize;
        // The highest bit means nothing.
        let stream = u32::from_be_bytes(stream) & STREAM_MAX;
        Some(FrameStep::Head(FrameHead { payload_bytes: self.left_bytes, kind, flags, stream }))
    }
}

impl FrameHead {
    /// As it is written.
    #[must_use]
    pub fn bytes(self) -> [u8; HEAD_BYTES] {
        let length = u32::try_from(self.payload_bytes).unwrap_or(u32::MAX).to_be_bytes();
        let [_, high, middle, low] = length;
        let [first, second, third, fourth] = self.stream.to_be_bytes();
        [high, middle, low, self.kind, self.flags, first, second, third, fourth]
    }

    /// True if the flag is set.
    #[must_use]
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a whole frame.
pub(super) fn write_frame(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    let head = FrameHead { payload_bytes: payload.len(), kind, flags, stream };
    out.extend_from_slice(&head.bytes());
    out.extend_from_slice(payload);
}

/// Appends a field block: HEADERS, and CONTINUATION as often as it takes.
pub(super) fn write_block(stream: u32, block: &[u8], is_end: bool, out: &mut Vec<u8>) {
    let end_stream = if is_end { END_STREAM } else { 0 };
    let mut kind = HEADERS;
    let mut flags = end_stream;
    let mut left = block;
    loop {
        let (payload, rest) = left.split_at(left.len().min(PAYLOAD_BYTES_MAX));
        let is_last = rest.is_empty();
        if is_last {
            flags |= END_HEADERS;
        }
        write_frame(kind, flags, stream, payload, out);
        if is_last {
            return;
        }
        (kind, flags, left) = (CONTINUATION, 0, rest);
    }
}

/// Why a stream or a connection ends (RFC 9113 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// Nothing is wrong.
    pub const NO_ERROR: Self = Self(0);
    /// The peer broke the protocol.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// We failed.
    pub const INTERNAL_ERROR: Self = Self(2);
    /// The peer sent more than a window allowed.
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    /// A frame came for a stream that had ended.
    pub const STREAM_CLOSED: Self = Self(5);
    /// A frame has a length that its kind cannot have.
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    /// The request was not looked at.
    pub const REFUSED_STREAM: Self = Self(7);
    /// The stream is of no use any more.
    pub const CANCEL: Self = Self(8);
    /// Compressed fields cannot be read.
    pub const COMPRESSION_ERROR: Self = Self(9);
    /// The peer makes too much work.
    pub const ENHANCE_YOUR_CALM: Self = Self(11);
}

pub(super) const HEAD_BYTES: usize = 9;

/// The first bytes of a client of HTTP/2 (RFC 9113 §3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The longest payload, as long as nobody agrees on a longer one (RFC 9113 §4.2).
pub const PAYLOAD_BYTES_MAX: usize = 16_384;

/// The highest number that a stream can have, and the largest a window can be.
pub(super) const STREAM_MAX: u32 = 0x7fff_ffff;
pub(super) const WINDOW_BYTES_MAX: i64 = 0x7fff_ffff;

/// The first size of every window (RFC 9113 §6.9.2).
pub(super) const WINDOW_BYTES_INITIAL: i64 = 65_535;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;
/// RFC 9218 §7.1.
pub(super) const PRIORITY_UPDATE: u8 = 16;

/// On DATA and HEADERS.
pub(super) const END_STREAM: u8 = 1;
/// On SETTINGS and PING.
pub(super) const ACK: u8 = 1;
/// On HEADERS and CONTINUATION.
pub(super) const END_HEADERS: u8 = 4;
/// On DATA and HEADERS.
pub(super) const PADDED: u8 = 8;
/// On HEADERS: the fields of RFC 7540's priorities stand before the block.
pub(super) const HAS_PRIORITY: u8 = 32;
