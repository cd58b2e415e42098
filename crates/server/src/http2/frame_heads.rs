//! Where frames begin in the bytes of a connection, in either direction, however those come in pieces.

/// Walks over frames.
#[derive(Debug)]
pub(super) struct FrameHeads {
    /// Of the preface, and of the payload of a frame.
    left_bytes: usize,
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
}

/// What comes next of the frames.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'b> {
    /// A frame begins.
    Head(FrameHead),
    /// Some of its payload; the last of it if `is_last`. A frame without one has none of this.
    Payload { bytes: &'b [u8], is_last: bool },
}

/// The head of a frame (RFC 9113 §4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FrameHead {
    pub(super) payload_bytes: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl FrameHeads {
    /// Frames that begin behind so many bytes.
    pub(super) fn behind(bytes: usize) -> Self {
        Self { left_bytes: bytes, head: [0; HEAD_BYTES], head_bytes: 0 }
    }

    /// Whether a frame may begin here.
    pub(super) fn is_between(&self) -> bool {
        self.left_bytes == 0 && self.head_bytes == 0
    }

    /// The next step in `left`, which is moved on past it; none if there is no more.
    pub(super) fn step<'b>(&mut self, left: &mut &'b [u8]) -> Option<Step<'b>> {
        if self.left_bytes > 0 && !left.is_empty() {
            let (bytes, rest) = left.split_at(self.left_bytes.min(left.len()));
            *left = rest;
            self.left_bytes -= bytes.len();
            return Some(Step::Payload { bytes, is_last: self.left_bytes == 0 });
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
        let stream = u32::from_be_bytes(stream) & 0x7fff_ffff;
        Some(Step::Head(FrameHead { payload_bytes: self.left_bytes, kind, flags, stream }))
    }
}

const HEAD_BYTES: usize = 9;

pub(super) const PREFACE_BYTES: usize = 24;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

/// On DATA and HEADERS.
pub(super) const END_STREAM: u8 = 1;
/// On HEADERS and CONTINUATION.
pub(super) const END_HEADERS: u8 = 4;
