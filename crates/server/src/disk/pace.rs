//! Whether a device that does not say what is in memory is quick enough to be read by the worker itself.
//!
//! Such a device is trusted until it holds the worker up, then read on threads for a while and until it is quick there.
//! One read that takes a little too long proves nothing: the worker may have lost its processor in the middle of it.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How a device did of late. Only one worker writes it.
#[derive(Debug)]
pub struct Pace {
    /// Reads by the worker since the last that held it up.
    quick_here: AtomicU32,
    /// Reads on threads since the last that was slow.
    quick_there: AtomicU32,
    /// Milliseconds on the worker's clock until which it is read on threads; zero if it never had to be.
    slow_until: AtomicU64,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            quick_here: AtomicU32::new(DOUBT_READS),
            quick_there: AtomicU32::new(0),
            slow_until: AtomicU64::new(0),
        }
    }
}

impl Pace {
    /// Whether the worker may read it.
    pub fn is_quick(&self, now: Duration) -> bool {
        let slow_until = self.slow_until.load(Relaxed);
        slow_until == 0
            || (milliseconds(now) >= slow_until && self.quick_there.load(Relaxed) >= PROOF_READS)
    }

    /// Notes how long the worker was held up by a read that ended now.
    pub fn held_up(&self, took: Duration, now: Duration) {
        let quick = self.quick_here.load(Relaxed);
        if took < QUICK_MAX {
            self.quick_here.store(quick.saturating_add(1), Relaxed);
            return;
        }
        self.quick_here.store(0, Relaxed);
        if took >= STALL_MIN || quick < DOUBT_READS {
            self.quick_there.store(0, Relaxed);
            self.slow_until.store(milliseconds(now + PAUSE), Relaxed);
        }
    }

    /// Notes how long a read took on a thread.
    pub fn took(&self, took: Duration) {
        let quick = self.quick_there.load(Relaxed);
        self.quick_there.store(if took < QUICK_MAX { quick.saturating_add(1) } else { 0 }, Relaxed);
    }
}

fn milliseconds(moment: Duration) -> u64 {
    u64::try_from(moment.as_millis()).unwrap_or(u64::MAX)
}

/// A read that takes less came from memory, or from a disk so quick that waiting for it harms nobody.
const QUICK_MAX: Duration = Duration::from_millis(1);
/// A read that takes longer was slow, whoever else had the processor meanwhile.
const STALL_MIN: Duration = Duration::from_millis(20);
/// Two reads that took too long with fewer than this between them were no accident.
const DOUBT_READS: u32 = 64;
/// How long a device that held up the worker is left to threads at least.
const PAUSE: Duration = Duration::from_millis(500);
/// Reads on threads, one after the other, by which a device proves that it is quick again.
const PROOF_READS: u32 = 16;
