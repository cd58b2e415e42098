//! The growth of windows for bodies in one process, the part of a connection in that, and what it knows of the distance of its
//! client.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that all connections of a process may grant beyond their first windows.
#[derive(Debug)]
pub struct WindowBudget {
    free_bytes: AtomicUsize,
}

/// The part of one connection in the budget: granted, and not read yet. Given back when it is dropped.
#[derive(Debug, Default)]
pub(super) struct Granted {
    pub(super) budget: Option<Arc<WindowBudget>>,
    pub(super) bytes: usize,
}

/// The distance of a client, as far as it is known.
#[derive(Debug)]
pub(super) struct Growth {
    pub(super) granted: Granted,
    pub(super) probe: Option<Probe>,
    /// True for a client that is far away, until it has acknowledged our settings: until then it sends no more than the protocol's own
    /// windows have room for (RFC 9113 §6.9.2), and then waits.
    pub(super) is_first_flight: bool,
    /// Data that came since the last probe came back.
    pub(super) unprobed_bytes: i64,
    /// The bytes that have to come before the next probe.
    pub(super) pause_bytes: i64,
}

/// A PING on its way to the client and back, and what comes meanwhile.
#[derive(Debug, Default)]
pub(super) struct Probe {
    pub(super) stream: u32,
    /// The windows that bound what comes in its time.
    pub(super) windows: Sizes,
    pub(super) came: Sizes,
    /// True once whoever reads the body had passed on all of it, when most of a window had come: what sockets hold in between does
    /// not count as taken.
    pub(super) is_passed_on: bool,
    /// True if nothing is known of where in the client's burst it was sent: in front of the next one it comes back early.
    pub(super) is_first: bool,
    /// True once it came back: nothing more counts as come in its time.
    pub(super) is_back: bool,
    /// The bytes that have come since of any stream.
    pub(super) behind_bytes: i64,
}

/// Bytes of one stream, and of all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    pub(super) stream: i64,
    pub(super) connection: i64,
}

impl WindowBudget {
    /// One of so many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self { free_bytes: AtomicUsize::new(bytes) })
    }

    /// Returns the bytes left.
    #[must_use]
    pub fn free_bytes(&self) -> usize {
        self.free_bytes.load(Ordering::Relaxed)
    }
}

impl Granted {
    /// Takes so much more, or nothing: one connection has no more than is left, and so at most half.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let Some(budget) = &self.budget else { return false };
        let own = self.bytes.saturating_add(bytes);
        let less = |free: usize| free.checked_sub(bytes).filter(|left| bytes == 0 || own <= *left);
        let free_bytes = &budget.free_bytes;
        let is_taken = free_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
        if is_taken {
            self.bytes += bytes;
        }
        is_taken
    }

    /// Gives back all but so much.
    pub(super) fn keep(&mut self, bytes: usize) {
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
            is_first_flight: false,
            unprobed_bytes: 0,
            pause_bytes: PAUSE_BYTES_MIN,
        }
    }
}

impl Growth {
    /// True if enough came of bodies since the last probe.
    pub(super) fn is_due(&self) -> bool {
        let is_off = self.granted.budget.is_none() || self.probe.is_some();
        !is_off && self.unprobed_bytes >= self.pause_bytes
    }

    /// A probe through windows of this size. The first flight is known from its beginning.
    pub(super) fn next_probe(&self, stream: u32, windows: Sizes) -> Probe {
        let of_both = |bytes| Sizes { stream: bytes, connection: bytes };
        match self.is_first_flight {
            true => Probe {
                stream,
                windows: of_both(FIRST_FLIGHT_BYTES),
                came: of_both(self.unprobed_bytes),
                ..Probe::default()
            },
            false => Probe { stream, windows, is_first: true, ..Probe::default() },
        }
    }

    /// Counts data that came of a stream.
    pub(super) fn count(&mut self, number: u32, bytes: usize) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.unprobed_bytes = self.unprobed_bytes.saturating_add(bytes);
        let Some(probe) = &mut self.probe else { return };
        if probe.is_back {
            probe.behind_bytes += bytes;
        } else {
            probe.came.connection += bytes;
            if probe.stream == number {
                probe.came.stream += bytes;
            }
        }
    }
}

impl Probe {
    /// True if it came back, and a whole window behind it without a note that what came before was passed on.
    pub(super) fn is_over(&self) -> bool {
        self.is_back && self.behind_bytes >= self.windows.stream
    }

    /// True if the windows, or one of them, kept more from coming.
    pub(super) fn is_bound(&self) -> bool {
        let is_filled = |came: i64, window: i64| came >= window / 3 * 2;
        is_filled(self.came.stream, self.windows.stream)
            || is_filled(self.came.connection, self.windows.connection)
    }
}

pub(super) const WINDOW_PING: &[u8; 8] = b"windows.";

/// The windows before the first that we tell of (RFC 9113 §6.9.2).
const FIRST_FLIGHT_BYTES: i64 = 65_535;

/// The bytes of bodies between two probes: more where the last one was of no use. The first probe goes around with the first
/// 64 KiB, which is all that clients send before they know the windows.
pub(super) const PAUSE_BYTES_MIN: i64 = 32 << 10;
