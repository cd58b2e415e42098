//! The rate that a response is held to: how much of it may go now, and how long to wait for more. `ClientSide` sends by it.
//!
//! A response goes in portions, each of a quarter of a second. One that could not go when it was due is made up for by the next, so
//! that in any time no more goes than the rate says and two portions.

use std::time::Duration;

use kettle_exchange::response::SendRate;

/// The bytes that a response may still send.
#[derive(Debug)]
pub(crate) struct Throttle {
    bytes_per_second: u64,
    /// The bytes that go at once, before the rate counts.
    free_bytes: u64,
    portion_bytes: u64,
    /// Up to when the rate has what was sent, by the worker's clock.
    paid_until: Duration,
}

impl Throttle {
    /// For a response that begins now.
    pub(crate) fn new(rate: SendRate, now: Duration) -> Box<Self> {
        let SendRate { bytes_per_second, after_bytes } = rate;
        let bytes_per_second = bytes_per_second.get();
        let quarter = bytes_per_second / PORTIONS_PER_SECOND;
        let portion_bytes = match quarter % RECORD_BYTES {
            // Each portion ends a record where the kernel encrypts.
            rest if quarter >= RECORD_BYTES => quarter - rest,
            _ => quarter.max(1),
        };
        Box::new(Self { bytes_per_second, free_bytes: after_bytes, portion_bytes, paid_until: now })
    }

    /// The number of bytes that may go now.
    ///
    /// # Errors
    /// The time for which none may.
    pub(super) fn allowance(&self, now: Duration) -> Result<u64, Duration> {
        match self.paid_until.saturating_sub(now) {
            _ if self.free_bytes > 0 => Ok(self.free_bytes),
            Duration::ZERO => Ok(self.portion_bytes),
            wait => Err(wait),
        }
    }

    /// So many went.
    pub(super) fn took(&mut self, bytes: u64, now: Duration) {
        let of_free = bytes.min(self.free_bytes);
        self.free_bytes -= of_free;
        let begun = self.paid_until.max(now.saturating_sub(self.time_of(self.portion_bytes)));
        self.paid_until = begun.saturating_add(self.time_of(bytes - of_free));
    }

    fn time_of(&self, bytes: u64) -> Duration {
        let nanoseconds =
            (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(self.bytes_per_second.max(1)));
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }
}

/// The time by which a pause may be over later than its end: a worker may have much to do.
pub(crate) const PAUSE_SPARE: Duration = Duration::from_secs(60);

/// Few enough that ten thousand clients cost a worker little, and enough that none shows a jolt.
const PORTIONS_PER_SECOND: u64 = 4;
const RECORD_BYTES: u64 = kettle_tls::records::PLAINTEXT_BYTES_MAX as u64;

#[cfg(test)]
mod tests;
