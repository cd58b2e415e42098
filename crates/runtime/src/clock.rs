//! The time of day, the time that only moves forward, and the `date` line made from the first.
//!
//! Both are read from the kernel's coarse clocks: they are a tick behind (1 to 10 ms) but never
//! need the hardware counter, so reading them is no system call on any machine.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kettle_http::date::write_imf_fixdate;
use kettle_kernel::process::{monotonic_time_coarse, wall_time_coarse};

/// The source of the time. Tests bring their own.
pub trait Clock {
    /// The time of day, for `date` lines.
    fn wall(&self) -> SystemTime;
    /// Time since some fixed moment, for periods.
    fn monotonic(&self) -> Duration;
}

/// The kernel's coarse clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoarseClock;

impl Clock for CoarseClock {
    fn wall(&self) -> SystemTime {
        UNIX_EPOCH + wall_time_coarse()
    }

    fn monotonic(&self) -> Duration {
        monotonic_time_coarse()
    }
}

/// The `date` line of a head, made anew once a second.
#[derive(Debug)]
pub struct DateLine {
    second: Cell<u64>,
    line: Cell<[u8; DATE_LINE_BYTES]>,
}

const DATE_NAME: &[u8; 6] = b"date: ";
/// The name, an IMF-fixdate (RFC 9110 §5.6.7) and the line end.
pub const DATE_LINE_BYTES: usize = DATE_NAME.len() + 29 + 2;

impl DateLine {
    /// A line that is made on its first use.
    #[must_use]
    pub fn new() -> Self {
        Self { second: Cell::new(u64::MAX), line: Cell::new([b' '; DATE_LINE_BYTES]) }
    }

    /// The whole line for this moment, with its CR LF.
    #[must_use]
    pub fn at(&self, wall: SystemTime) -> [u8; DATE_LINE_BYTES] {
        let second = wall.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if self.second.get() != second {
            let mut line = [b' '; DATE_LINE_BYTES];
            line[..DATE_NAME.len()].copy_from_slice(DATE_NAME);
            line[DATE_NAME.len()..DATE_LINE_BYTES - 2].copy_from_slice(&write_imf_fixdate(wall));
            line[DATE_LINE_BYTES - 2..].copy_from_slice(b"\r\n");
            self.line.set(line);
            self.second.set(second);
        }
        self.line.get()
    }
}

impl Default for DateLine {
    fn default() -> Self {
        Self::new()
    }
}

/// True if something was never done, or this long ago.
pub fn is_long_ago(moment: Option<Instant>, time: Duration) -> bool {
    moment.is_none_or(|moment| moment.elapsed() >= time)
}

/// Keeps a message that comes again and again, on all workers perhaps, to one in so many milliseconds.
#[derive(Debug)]
pub struct OnceIn<const MILLISECONDS: u64> {
    begun: Instant,
    /// When it may be said again, in milliseconds since then.
    next: AtomicU64,
}

/// One in a second.
pub type OnceASecond = OnceIn<1_000>;

/// One in a minute.
pub type OnceAMinute = OnceIn<60_000>;

impl<const MILLISECONDS: u64> Default for OnceIn<MILLISECONDS> {
    fn default() -> Self {
        Self { begun: Instant::now(), next: AtomicU64::new(0) }
    }
}

impl<const MILLISECONDS: u64> OnceIn<MILLISECONDS> {
    /// True if so long has passed by `now` since this last said so to anybody.
    pub fn is_due(&self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.begun).as_millis();
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        let next = self.next.load(Ordering::Relaxed);
        let then = passed.saturating_add(MILLISECONDS);
        let relaxed = Ordering::Relaxed;
        passed >= next && self.next.compare_exchange(next, then, relaxed, relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests;
