//! Tells whether a device that does not say what is in memory is quick enough to be read by the worker itself.
//!
//! Such a device is read on threads until it proves quick there, then by the worker until a read has to wait for long.
//! Only waiting counts: a worker that just loses the processor in the middle of a read has learned nothing about the device.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use kettle_kernel::process::voluntary_context_switches;

/// The pace of a device of late. Only one worker writes it.
#[derive(Debug, Default)]
pub struct ReadPace {
    /// Reads on threads since the last that was slow.
    quick_there: AtomicU32,
    /// Milliseconds on the worker's clock until which it is read on threads.
    slow_until: AtomicU64,
}

impl ReadPace {
    /// That of a device which needs no proof.
    pub fn proved() -> Self {
        Self { quick_there: AtomicU32::new(PROOF_READS), slow_until: AtomicU64::new(0) }
    }

    /// True if the worker may read it.
    pub fn is_quick(&self, now: Duration) -> bool {
        self.quick_there.load(Relaxed) >= PROOF_READS
            && milliseconds(now) >= self.slow_until.load(Relaxed)
    }

    /// Notes how long the worker waited in a read that ended now.
    pub fn held_up(&self, waited: Duration, now: Duration) {
        if waited >= QUICK_MAX {
            self.quick_there.store(0, Relaxed);
            self.slow_until.store(milliseconds(now + PAUSE), Relaxed);
        }
    }

    /// Notes how long a thread waited in a read.
    pub fn took(&self, waited: Duration) {
        let quick = self.quick_there.load(Relaxed);
        let quick = if waited < QUICK_MAX { quick.saturating_add(1) } else { 0 };
        self.quick_there.store(quick, Relaxed);
    }
}

/// Reads, and says how long this thread waited in the read: not at all if it never gave up its processor.
pub fn waited<T>(read: impl FnOnce() -> T) -> (T, Duration) {
    let switches = voluntary_context_switches();
    let started = Instant::now();
    let outcome = read();
    let took = started.elapsed();
    let has_waited = took >= QUICK_MAX && voluntary_context_switches() != switches;
    (outcome, if has_waited { took } else { Duration::ZERO })
}

fn milliseconds(moment: Duration) -> u64 {
    u64::try_from(moment.as_millis()).unwrap_or(u64::MAX)
}

/// A read that waits for less got its bytes from memory, or from a disk so quick that waiting for it harms nobody.
const QUICK_MAX: Duration = Duration::from_millis(1);
/// The time a device that held up the worker is left to threads at least.
const PAUSE: Duration = Duration::from_millis(500);
/// Reads on threads, one after the other, by which a device proves that it is quick.
const PROOF_READS: u32 = 16;
