//! Which frames a client sends and how many: each has to be looked at, most are answered, and most cost a client nothing.

use super::frame::{
    CONTINUATION, DATA, END_STREAM, FrameHead, HEADERS, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE,
};

/// Counts frames by their kinds, within times of [`WINDOW_TICKS`].
#[derive(Debug, Default)]
pub(super) struct Flood {
    window_began: u32,
    /// The bytes that the client had been sent by then, and those it has been sent ever.
    sent_before: u64,
    sent_bytes: u64,
    /// DATA frames that it has been sent ever.
    sent_data: u64,
    /// Window updates of earlier times that answered what it was sent.
    covered_updates: u64,
    requests: u32,
    resets: u32,
    faults: u32,
    empty_data: u32,
    settings: u32,
    pings: u32,
    window_updates: u32,
    others: u32,
}

impl Flood {
    /// Says what time it is, in seconds, and how much the client has been sent ever: who receives may say so.
    pub(super) fn tick(&mut self, ticks: u32, sent_bytes: u64) {
        if ticks.saturating_sub(self.window_began) >= WINDOW_TICKS {
            let left = self.updates_left().min(self.window_updates.into());
            *self = Self {
                window_began: ticks,
                sent_before: sent_bytes,
                sent_data: self.sent_data,
                covered_updates: self.covered_updates + left,
                ..Self::default()
            };
        }
        self.sent_bytes = sent_bytes;
    }

    pub(super) fn count(&mut self, head: FrameHead) {
        let counter = match head.kind {
            DATA if head.payload_bytes == 0 && !head.has(END_STREAM) => &mut self.empty_data,
            DATA | HEADERS | CONTINUATION => return,
            RST_STREAM => &mut self.resets,
            SETTINGS => &mut self.settings,
            PING => &mut self.pings,
            WINDOW_UPDATE => &mut self.window_updates,
            _ => &mut self.others,
        };
        *counter = counter.saturating_add(1);
    }

    /// A PING was the answer to one of ours.
    pub(super) fn forgive_ping(&mut self) {
        self.pings = self.pings.saturating_sub(1);
    }

    /// Counts a DATA frame that the client is sent.
    pub(super) fn count_sent_data(&mut self) {
        self.sent_data = self.sent_data.saturating_add(1);
    }

    /// Counts a request that is served.
    pub(super) fn count_request(&mut self) {
        self.requests = self.requests.saturating_add(1);
    }

    /// Counts a DATA frame that turned out to be padding only.
    pub(super) fn count_empty_data(&mut self) {
        self.empty_data = self.empty_data.saturating_add(1);
    }

    /// Counts a stream that had to be reset for what the client did wrong in it (CVE-2025-8671).
    pub(super) fn count_fault(&mut self) {
        self.faults = self.faults.saturating_add(1);
    }

    /// One word for what there is too much of, if there is.
    pub(super) fn excess(&self) -> Option<&'static str> {
        let sent_since = self.sent_bytes.saturating_sub(self.sent_before);
        let sent = u32::try_from(sent_since / SENT_BYTES_PER_FRAME).unwrap_or(u32::MAX);
        let for_sent = FRAMES_MAX.saturating_add(sent);
        let for_data = self.updates_left().saturating_add(FRAMES_MAX.into());
        let kept_requests = self.requests.saturating_sub(self.resets);
        let for_requests = FRAMES_MAX.saturating_add(self.requests.saturating_mul(2));
        [
            (self.resets > RESETS_MAX.saturating_add(kept_requests), "rapid_reset"),
            (self.faults > FAULTS_MAX, "made_you_reset"),
            (self.empty_data > EMPTY_DATA_MAX, "small_data_flood"),
            (self.settings > SETTINGS_MAX, "settings_flood"),
            (self.pings > for_sent, "ping_flood"),
            (u64::from(self.window_updates) > for_data, "window_update_flood"),
            (self.others > for_requests, "priority_flood"),
        ]
        .into_iter()
        .find_map(|(is_too_much, word)| is_too_much.then_some(word))
    }

    /// Returns how many window updates the client may still answer what it was sent with, before those of this time. It may
    /// take that out of its buffers much later, in small pieces: what it was sent is not forgotten as time passes, but each
    /// update is held against it.
    fn updates_left(&self) -> u64 {
        // However small a DATA frame is: a client may give the window of its stream back, and that of the connection.
        let for_data = self.sent_data.saturating_mul(2);
        let all = (self.sent_bytes / SENT_BYTES_PER_FRAME).saturating_add(for_data);
        all.saturating_sub(self.covered_updates)
    }
}

/// Seconds after which counting begins anew.
const WINDOW_TICKS: u32 = 10;

/// Of requests taken back (CVE-2023-44487), besides one for each that was not. A browser that leaves a page takes back what the
/// page still waited for, which may be every stream that there can be: that is forgiven twice.
const RESETS_MAX: u32 = 256;

const FAULTS_MAX: u32 = 200;

/// DATA frames that carry nothing and end nothing.
const EMPTY_DATA_MAX: u32 = 100;

const SETTINGS_MAX: u32 = 100;

/// Of pings, window updates, priorities and frames that nobody knows, each.
const FRAMES_MAX: u32 = 1_000;

/// A receiver may answer this many bytes with another frame.
const SENT_BYTES_PER_FRAME: u64 = 512;

#[cfg(test)]
mod tests;
