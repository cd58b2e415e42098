//! A body that is sent as it arrives in a file.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use kettle_cache::{Fill, FillProgress, FillState, Waiting};
use kettle_http::range::ByteRange;
use kettle_runtime::open_file::OpenFile;

/// A body, or a part of one, that is sent as it arrives in a file.
#[derive(Debug)]
pub struct Growing {
    fill: Fill,
    /// The file.
    pub file: Arc<OpenFile>,
    /// The first byte that is sent, of the body.
    start: u64,
    /// The number of bytes; `None` if only the end will tell.
    pub bytes: Option<u64>,
    /// The time nothing may come.
    pub patience: Duration,
    /// Its one place among the readers. For as long as somebody has one, the fill is not given up.
    place: Waiting,
}

impl Growing {
    /// Takes a place among the readers of `fill`, whose file this is.
    pub fn new(
        fill: &Fill,
        file: Arc<OpenFile>,
        start: u64,
        bytes: Option<u64>,
        patience: Duration,
    ) -> Self {
        Self { fill: fill.clone(), file, start, bytes, patience, place: fill.wait() }
    }

    /// Returns the bytes of the whole body that are in the file.
    pub fn filled_bytes(&self) -> u64 {
        self.fill.progress().filled
    }

    /// Ready once there is more than `seen` bytes of the whole body, or nothing more will come.
    pub fn poll_more(&mut self, context: &mut Context<'_>, seen: u64) -> Poll<()> {
        self.place.poll(context, seen).map(drop)
    }

    /// True if it begins so far behind what is there that the backend itself is quicker.
    pub fn is_far(&self) -> bool {
        self.start > self.filled_bytes().saturating_add(FAR_BYTES)
    }

    /// Returns the part behind as much as was sent.
    ///
    /// # Errors
    /// Why it ends before its end.
    pub fn next(&self, sent_bytes: u64) -> Result<GrowingNext, io::ErrorKind> {
        let FillProgress { filled, state } = self.fill.progress();
        let there = filled.saturating_sub(self.start).min(self.bytes.unwrap_or(u64::MAX));
        if there > sent_bytes {
            let start = self.fill.body_offset() + self.start + sent_bytes;
            return Ok(GrowingNext::Bytes(ByteRange { start, bytes: there - sent_bytes }));
        }
        match state {
            _ if self.bytes == Some(there) => Ok(GrowingNext::End),
            FillState::Complete if self.bytes.is_none() => Ok(GrowingNext::End),
            FillState::Growing => Ok(GrowingNext::Later { filled }),
            FillState::Refused => Err(io::ErrorKind::StorageFull),
            FillState::TimedOut => Err(io::ErrorKind::TimedOut),
            FillState::Malformed => Err(io::ErrorKind::InvalidData),
            FillState::Complete | FillState::Failed => Err(io::ErrorKind::UnexpectedEof),
        }
    }
}

/// The next part of a body that is sent as it arrives.
pub enum GrowingNext {
    /// With these bytes of its file.
    Bytes(ByteRange),
    /// Not yet: no more than this is there.
    Later {
        /// Bytes of the body that are in the file.
        filled: u64,
    },
    /// It was all.
    End,
}

/// The distance that a client waits for that is not there yet, rather than having the backend asked for it: in 1.7 s at 10
/// MB/s.
const FAR_BYTES: u64 = 16 * 1_024 * 1_024;
