//! Which frames a client sends and how many: the library answers each, and most cost a client nothing.
//!
//! Only heads of frames are looked at, as they come. What is held here is bounded. Endless CONTINUATION frames, small
//! DATA frames and streams that the library has to reset are counted by the library.

use std::collections::BTreeSet;

use super::frame_heads::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, FrameHead, FrameHeads, HEADERS, PING,
    PREFACE_BYTES, RST_STREAM, SETTINGS, Step, WINDOW_UPDATE,
};

/// Counts frames by their kinds, within times of [`WINDOW_TICKS`].
#[derive(Debug)]
pub(crate) struct Flood {
    frames: FrameHeads,
    /// Payload of DATA frames, which takes from the window of the connection, ever.
    data_bytes: u64,
    /// Whether a request's fields have begun and not ended.
    is_in_fields: bool,
    /// Streams that the client has not ended, and that were not reset here.
    unended: BTreeSet<u32>,
    window_began: u32,
    /// What the client had been sent by then.
    sent_before: u64,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    requests: u64,
    resets: u64,
    settings: u64,
    pings: u64,
    window_updates: u64,
    others: u64,
}

impl Default for Flood {
    fn default() -> Self {
        Self {
            frames: FrameHeads::behind(PREFACE_BYTES),
            data_bytes: 0,
            is_in_fields: false,
            unended: BTreeSet::new(),
            window_began: 0,
            sent_before: 0,
            counts: Counts::default(),
        }
    }
}

impl Flood {
    /// Whether the client is in the middle of a request's fields.
    pub(crate) fn is_in_fields(&self) -> bool {
        self.is_in_fields
    }

    /// Whether all that the client has begun is whole: frames, and requests but for those that it took back. Where there are more
    /// of those than anybody serves, it is said to be not.
    pub(crate) fn is_whole(&self) -> bool {
        self.frames.is_between() && !self.is_in_fields && self.unended.is_empty()
    }

    /// How much of bodies the client began to send, ever.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// Nothing more of these streams is waited for.
    pub(crate) fn forget(&mut self, streams: Vec<u32>) {
        for stream in streams {
            self.unended.remove(&stream);
        }
    }

    /// Takes in what the client sent. `sent_bytes` is what it has been sent ever: who reads may say so. The word for what
    /// there is too much of, if there is.
    pub(crate) fn observe(
        &mut self,
        received: &[u8],
        ticks: u32,
        sent_bytes: u64,
    ) -> Option<&'static str> {
        if ticks.saturating_sub(self.window_began) >= WINDOW_TICKS {
            (self.window_began, self.sent_before) = (ticks, sent_bytes);
            self.counts = Counts::default();
        }
        let mut left = received;
        while let Some(step) = self.frames.step(&mut left) {
            if let Step::Head(head) = step {
                self.count(head);
            }
        }
        self.excess(sent_bytes.saturating_sub(self.sent_before))
    }

    fn count(&mut self, head: FrameHead) {
        let FrameHead { payload_bytes, kind, flags, stream } = head;
        let is_end = flags & END_STREAM != 0 && matches!(kind, HEADERS | DATA);
        if is_end || kind == RST_STREAM {
            self.unended.remove(&stream);
        } else if kind == HEADERS && self.unended.len() < UNENDED_MAX {
            self.unended.insert(stream);
        }
        let counts = &mut self.counts;
        match kind {
            DATA => self.data_bytes += payload_bytes as u64,
            HEADERS | CONTINUATION => {
                counts.requests += u64::from(kind == HEADERS);
                self.is_in_fields = flags & END_HEADERS == 0;
            }
            RST_STREAM => counts.resets += 1,
            SETTINGS => counts.settings += 1,
            PING => counts.pings += 1,
            WINDOW_UPDATE => counts.window_updates += 1,
            _ => counts.others += 1,
        }
    }

    fn excess(&self, sent_bytes: u64) -> Option<&'static str> {
        let Counts { requests, resets, settings, pings, window_updates, others, .. } = self.counts;
        let for_sent = FRAMES_MAX + sent_bytes / SENT_BYTES_PER_FRAME;
        [
            (resets > RESETS_MAX, "rapid_reset"),
            (settings > SETTINGS_MAX, "settings_flood"),
            (pings > for_sent, "ping_flood"),
            (window_updates > for_sent, "window_update_flood"),
            (others > FRAMES_MAX + 2 * requests, "priority_flood"),
        ]
        .into_iter()
        .find_map(|(is_too_much, word)| is_too_much.then_some(word))
    }
}

/// More than there can be streams at a time.
const UNENDED_MAX: usize = 1_024;

/// Seconds after which counting begins anew.
const WINDOW_TICKS: u32 = 10;

/// A browser that leaves a page takes back what the page still waited for: fewer than there can be streams.
pub(crate) const RESETS_MAX: u64 = 100;

const SETTINGS_MAX: u64 = 100;

/// Of pings, window updates, priorities and frames that nobody knows, each.
const FRAMES_MAX: u64 = 1_000;

/// Who receives may answer each so many bytes with another frame.
const SENT_BYTES_PER_FRAME: u64 = 512;

#[cfg(test)]
mod tests;
