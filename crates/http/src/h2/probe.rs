//! Windows for bodies that grow with the distance of the client. A PING goes around while a body comes; if about a whole window
//! came meanwhile, and whoever reads the body has passed all of it on, the windows of the stream and of the connection grow by the
//! same. Their growth beyond the first size comes out of one budget for the process.
//!
//! A window that was granted cannot be taken back (RFC 9113 §6.9): it shrinks by what is read and not granted anew.

use std::sync::Arc;

use super::connection::Connection;
use super::frame::PING;
use super::growth::{Granted, PAUSE_BYTES_MIN, Probe, Sizes, WINDOW_PING, WindowBudget};

impl Connection {
    /// Has its windows grow out of this budget.
    pub fn grow_within(&mut self, budget: Arc<WindowBudget>) {
        self.growth.granted = Granted { budget: Some(budget), bytes: 0 };
    }

    /// Notes that the client is far away. The bytes that it sends before it knows our windows show already that they are too
    /// small.
    pub fn note_far(&mut self) {
        self.growth.is_first_flight = true;
    }

    /// Notes that all that was given out of a body has been passed on, as far as the kernel can tell.
    pub fn note_passed_on(&mut self, number: u32) {
        if let Some(probe) = self.growth.probe.as_mut().filter(|probe| probe.stream == number) {
            probe.is_passed_on |= probe.came.stream >= probe.windows.stream / 2;
            if probe.is_back && probe.is_passed_on {
                self.conclude_probe(false);
            }
        }
    }

    /// True while a note of what was [passed on](Self::note_passed_on) is of use, or will be when more of the body is asked for.
    #[must_use]
    pub fn is_probing(&self, number: u32) -> bool {
        self.growth.probe.as_ref().is_some_and(|probe| probe.stream == number)
            || self.due_windows(number).is_some()
    }

    /// Sends a probe, if enough came of bodies since the last one, and a larger window would be of use to this stream.
    pub(super) fn probe_if_due(&mut self, number: u32) {
        if self.growth.probe.as_ref().is_some_and(Probe::is_over) {
            self.conclude_probe(false);
        }
        if let Some(windows) = self.due_windows(number) {
            self.probe(self.growth.next_probe(number, windows));
        }
    }

    /// The windows that a probe is due for, and of which larger ones would be of use to this stream.
    fn due_windows(&self, number: u32) -> Option<Sizes> {
        if !self.growth.is_due() {
            return None;
        }
        let stream = self.streams.get(self.find(number).ok()?)?;
        let size = stream.receive_window.size;
        let is_of_use = stream.is_receiving() && stream.wanted_bytes() > size;
        is_of_use.then_some(Sizes { stream: size, connection: self.receive_window.size })
    }

    fn probe(&mut self, probe: Probe) {
        self.growth.probe = Some(probe);
        self.write(PING, 0, WINDOW_PING);
    }

    /// A probe came back. If only a note is missing that what came has been passed on, it waits for that, until a window more
    /// has come: a body that comes in bursts is found passed on when the next one begins, just behind the probe. Returns whether
    /// one was on its way.
    pub(super) fn end_probe(&mut self) -> bool {
        let Some(probe) = self.growth.probe.as_mut().filter(|probe| !probe.is_back) else {
            return false;
        };
        probe.is_back = true;
        let number = probe.stream;
        let lacks_note = probe.is_bound() && !probe.is_passed_on;
        let is_behind = self.stream(number).is_some_and(|stream| {
            let held_bytes = i64::try_from(stream.held_bytes()).unwrap_or(i64::MAX);
            held_bytes > stream.receive_window.size / 2
        });
        if is_behind || !lacks_note {
            self.conclude_probe(is_behind);
        }
        true
    }

    /// The windows grow, or shrink where so much is of no use.
    fn conclude_probe(&mut self, is_behind: bool) {
        let Some(probe) = self.growth.probe.take() else { return };
        self.growth.unprobed_bytes = 0;
        let Some(stream) = self.stream(probe.stream).filter(|stream| stream.is_receiving()) else {
            return;
        };
        let number = probe.stream;
        let size = stream.receive_window.size;
        let windows = Sizes { stream: size, connection: self.receive_window.size };
        let next = Probe { stream: number, windows, ..Probe::default() };
        let is_slow = is_behind || probe.is_bound() && !probe.is_passed_on;
        if probe.is_bound() && !is_slow {
            if self.grow(number, size) {
                self.growth.pause_bytes = PAUSE_BYTES_MIN;
                // The bytes that come until this one is back are still bound by the windows as they were.
                self.probe(next);
                return;
            }
        } else if probe.is_first {
            self.probe(next);
            return;
        } else if (is_slow || probe.came.stream < size / 4)
            && let Some(stream) = self.stream(number)
        {
            stream.target_bytes = stream.target_bytes.min(size / 2);
        }
        let pause_bytes = &mut self.growth.pause_bytes;
        *pause_bytes = (*pause_bytes * 2).min(PAUSE_BYTES_MAX);
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
        for bytes in [share_bytes.max(size), size, size / 2] {
            let bytes = bytes.min(most);
            let more = (bytes - left).max(0);
            let is_taken = bytes > 0
                && more <= connection_most
                && usize::try_from(more).is_ok_and(|more| self.growth.granted.take(more));
            if is_taken {
                let opened = self.stream(number).and_then(|stream| {
                    stream.target_bytes = size + bytes;
                    stream.receive_window.grow(bytes)
                });
                self.write_window_update(number, opened);
                if more > 0 {
                    let was_shut = self.receive_window.bytes <= 0;
                    let opened = self.receive_window.grow(more);
                    self.note_opened(was_shut, opened);
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

/// A window at least doubles, or grows by half where its connection may have no more: [`Granted::take`] leaves some for others. At
/// once it grows by as much as is of use, since each further step would take a round trip: but only by this part of what the budget
/// has left.
const SHARE: usize = 4;

/// The largest windows: 160 MiB/s at 100 ms.
const STREAM_BYTES_MAX: i64 = 16 << 20;
const CONNECTION_BYTES_MAX: i64 = 64 << 20;

/// The most of bodies that comes between two probes.
const PAUSE_BYTES_MAX: i64 = 8 << 20;
