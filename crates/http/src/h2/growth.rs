//! Windows for bodies that grow with the distance of the client. A PING goes around while a body comes; if about a whole window
//! came meanwhile, and whoever reads the body has passed all of it on, the windows of the stream and of the connection grow by the
//! same. What they have more than at first comes out of one budget for the process.
//!
//! What was granted cannot be taken back (RFC 9113 §6.9): a window shrinks by what is read and not granted anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::connection::Connection;
use super::frame::PING;

/// What all connections of a process may grant beyond their first windows.
#[derive(Debug)]
pub struct WindowBudget {
    free_bytes: AtomicUsize,
}

/// What one connection has of the budget: granted, and not read yet. Given back when it is dropped.
#[derive(Debug, Default)]
pub(super) struct Granted {
    budget: Option<Arc<WindowBudget>>,
    bytes: usize,
}

/// What is known of the distance of a client.
#[derive(Debug)]
pub(super) struct Growth {
    granted: Granted,
    probe: Option<Probe>,
    /// Data that came since the last probe came back.
    unprobed_bytes: i64,
    /// How much has to come before the next probe.
    pause_bytes: i64,
}

/// A PING on its way to the client and back, and what comes meanwhile.
#[derive(Debug)]
struct Probe {
    stream: u32,
    /// The windows that bound what comes in its time.
    windows: Sizes,
    came: Sizes,
    /// True once whoever reads the body had passed on all of it, when most of a window had come: what sockets hold in between does
    /// not count as taken.
    is_passed_on: bool,
    /// True if nothing is known of where in the client's burst it was sent: in front of the next one it comes back early.
    is_first: bool,
}

/// Bytes of one stream, and of all.
#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    stream: i64,
    connection: i64,
}

impl WindowBudget {
    /// One of so many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self { free_bytes: AtomicUsize::new(bytes) })
    }

    /// What is left of it.
    #[must_use]
    pub fn free_bytes(&self) -> usize {
        self.free_bytes.load(Ordering::Relaxed)
    }
}

impl Granted {
    /// Takes so much more, or nothing.
    fn take(&mut self, bytes: usize) -> bool {
        let Some(budget) = &self.budget else { return false };
        let less = |free: usize| free.checked_sub(bytes);
        let free_bytes = &budget.free_bytes;
        let is_taken = free_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
        if is_taken {
            self.bytes += bytes;
        }
        is_taken
    }

    /// Gives back all but so much.
    fn keep(&mut self, bytes: usize) {
        let returned = self.bytes.saturating_sub(bytes);
        self.bytes -= returned;
        if let Some(budget) = &self.budget {
            budget.free_bytes.fetch_add(returned, Ordering::Relaxed);
        }
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        self.keep(0);
    }
}

impl Default for Growth {
    fn default() -> Self {
        Self {
            granted: Granted::default(),
            probe: None,
            unprobed_bytes: 0,
            pause_bytes: PAUSE_BYTES_MIN,
        }
    }
}

impl Growth {
    /// Counts data that came of a stream.
    pub(super) fn count(&mut self, number: u32, bytes: usize) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.unprobed_bytes = self.unprobed_bytes.saturating_add(bytes);
        if let Some(probe) = &mut self.probe {
            probe.came.connection += bytes;
            if probe.stream == number {
                probe.came.stream += bytes;
            }
        }
    }
}

impl Connection {
    /// Has its windows grow out of this budget.
    pub fn grow_within(&mut self, budget: Arc<WindowBudget>) {
        self.growth.granted = Granted { budget: Some(budget), bytes: 0 };
    }

    /// Notes that all that was given out of a body has been passed on, as far as the kernel can tell.
    pub fn note_passed_on(&mut self, number: u32) {
        if let Some(probe) = self.growth.probe.as_mut().filter(|probe| probe.stream == number) {
            probe.is_passed_on |= probe.came.stream >= probe.windows.stream / 2;
        }
    }

    /// True while a note of what was [passed on](Self::note_passed_on) is of use.
    #[must_use]
    pub fn is_probing(&self, number: u32) -> bool {
        self.growth.probe.as_ref().is_some_and(|probe| probe.stream == number)
    }

    /// Sends a probe, if enough came of bodies since the last one, and a larger window would be of use to this stream.
    pub(super) fn probe_if_due(&mut self, number: u32) {
        let growth = &self.growth;
        let is_off = growth.granted.budget.is_none() || growth.probe.is_some();
        if is_off || growth.unprobed_bytes < growth.pause_bytes {
            return;
        }
        let stream = self.stream(number).filter(|stream| stream.is_receiving());
        let stream = stream.filter(|it| it.wanted_bytes() > it.receive_window.size);
        if let Some(size) = stream.map(|stream| stream.receive_window.size) {
            let windows = Sizes { stream: size, connection: self.receive_window.size };
            self.probe(number, windows, true);
        }
    }

    fn probe(&mut self, stream: u32, windows: Sizes, is_first: bool) {
        let came = Sizes::default();
        self.growth.probe = Some(Probe { stream, windows, came, is_passed_on: false, is_first });
        self.write(PING, 0, WINDOW_PING);
    }

    /// A probe came back: if it was the one under way, the windows grow, or shrink where so much is of no use. Returns whether it
    /// was.
    pub(super) fn end_probe(&mut self) -> bool {
        let Some(probe) = self.growth.probe.take() else { return false };
        self.growth.unprobed_bytes = 0;
        let Probe { stream: number, windows, came, is_passed_on, is_first } = probe;
        let Some(stream) = self.stream(number).filter(|stream| stream.is_receiving()) else {
            return true;
        };
        let size = stream.receive_window.size;
        let is_behind = i64::try_from(stream.held_bytes()).unwrap_or(i64::MAX) > size / 2;
        let is_taken = is_passed_on && !is_behind;
        let is_filled = |came: i64, window: i64| came >= window / 3 * 2;
        let is_bound = is_filled(came.stream, windows.stream)
            || is_filled(came.connection, windows.connection);
        let now = Sizes { stream: size, connection: self.receive_window.size };
        if is_taken && is_bound {
            if self.grow(number, size) {
                self.growth.pause_bytes = PAUSE_BYTES_MIN;
                // What comes until this one is back is still bound by the windows as they were.
                self.probe(number, now, false);
                return true;
            }
        } else if is_first {
            self.probe(number, now, false);
            return true;
        } else if (!is_taken || came.stream < size / 4)
            && let Some(stream) = self.stream(number)
        {
            stream.target_bytes = stream.target_bytes.min(size / 2);
        }
        let pause_bytes = &mut self.growth.pause_bytes;
        *pause_bytes = (*pause_bytes * 2).min(PAUSE_BYTES_MAX);
        true
    }

    /// Opens the window of a stream, and that of the connection by as much as it has none left from others; `false` if the budget
    /// does not have that.
    fn grow(&mut self, number: u32, size: i64) -> bool {
        let wanted: i64 = self.streams.iter().map(|stream| stream.excess_bytes()).sum();
        let granted = self.receive_window.size - i64::from(self.settings.connection_window_bytes);
        let left = (granted - wanted).max(0);
        let connection_most = CONNECTION_BYTES_MAX - self.receive_window.size;
        let Some(stream) = self.stream(number) else { return false };
        let most = (STREAM_BYTES_MAX - size).min(stream.wanted_bytes() - size);
        let free_bytes = self.growth.granted.budget.as_ref().map_or(0, |it| it.free_bytes());
        let share_bytes = i64::try_from(free_bytes / SHARE).unwrap_or(i64::MAX);
        for bytes in [share_bytes.max(size), size] {
            let bytes = bytes.min(most);
            let more = (bytes - left).max(0);
            let is_taken = bytes > 0
                && more <= connection_most
                && usize::try_from(more).is_ok_and(|more| self.growth.granted.take(more));
            if is_taken {
                if let Some(stream) = self.stream(number) {
                    stream.target_bytes = size + bytes;
                    stream.receive_window.grow(bytes);
                }
                self.write_window_update(number, u32::try_from(bytes).ok());
                let was_shut = self.receive_window.bytes <= 0;
                if more > 0 {
                    self.receive_window.grow(more);
                    self.note_opened(was_shut, u32::try_from(more).ok());
                }
                return true;
            }
        }
        false
    }

    /// Says how large the window of the connection may stay, before some of it is released.
    pub(super) fn bound_window(&mut self) {
        if self.growth.granted.bytes > 0 {
            let wanted: i64 = self.streams.iter().map(|stream| stream.excess_bytes()).sum();
            self.receive_window.limit = i64::from(self.settings.connection_window_bytes) + wanted;
        }
    }

    /// Gives back to the budget what the window of the connection has shrunk by.
    pub(super) fn settle_budget(&mut self) {
        let more = self.receive_window.size - i64::from(self.settings.connection_window_bytes);
        self.growth.granted.keep(usize::try_from(more).unwrap_or(0));
    }
}

pub(super) const WINDOW_PING: &[u8; 8] = b"windows.";

/// A window at least doubles. At once it grows by as much as is of use, since each further step would take a round trip: but only by
/// this part of what the budget has left, so that there is always some for others.
const SHARE: usize = 4;

/// The largest windows: 160 MiB/s at 100 ms.
const STREAM_BYTES_MAX: i64 = 16 << 20;
const CONNECTION_BYTES_MAX: i64 = 64 << 20;

/// How much of bodies comes between two probes: more where the last one was of no use.
const PAUSE_BYTES_MIN: i64 = 64 << 10;
const PAUSE_BYTES_MAX: i64 = 8 << 20;
