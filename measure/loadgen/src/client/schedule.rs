//! When transactions are due: exact times computed from the beginning, never from when the one before was done.

use std::time::Duration;

use crate::load::Arrivals;

impl Arrivals {
    /// The number of transactions that are due from the beginning to `at`, as a real number;
    /// `length` is that of the whole load.
    fn count_until(self, at: f64, length: f64) -> f64 {
        match self {
            Arrivals::Constant { per_second } => per_second * at,
            Arrivals::Ramp { from, to } => from * at + (to - from) / length * at * at / 2.0,
        }
    }

    /// When transaction `index`, counted from 0, is due: the moment until which `index` others were.
    fn seconds_until(self, index: f64, length: f64) -> f64 {
        match self {
            Arrivals::Constant { per_second } => index / per_second,
            Arrivals::Ramp { .. } if index <= 0.0 => 0.0,
            Arrivals::Ramp { from, to } => {
                let growth = (to - from) / length;
                // The root of `count_until(at) = index` in the form that loses no digits when the growth is small. Behind the
                // end of a falling ramp there is no root, and rounding may put the last transaction there.
                let rate_then = (from * from + 2.0 * growth * index).max(0.0).sqrt();
                2.0 * index / (from + rate_then)
            }
        }
    }

    /// The most transactions that are due in any second.
    pub fn per_second_max(self) -> f64 {
        match self {
            Arrivals::Constant { per_second } => per_second,
            Arrivals::Ramp { from, to } => from.max(to),
        }
    }

    /// True if these numbers describe arrivals at all.
    pub(super) fn is_sound(self) -> bool {
        let is_rate = |rate: f64| rate.is_finite() && rate >= 0.0;
        match self {
            Arrivals::Constant { per_second } => is_rate(per_second) && per_second > 0.0,
            Arrivals::Ramp { from, to } => is_rate(from) && is_rate(to) && from + to > 0.0,
        }
    }
}

/// The due times of one thread: every `threads`th arrival of the load, from the `thread`th on.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    arrivals: Arrivals,
    length: Duration,
    next: u64,
    step: u64,
    end: u64,
}

impl Schedule {
    /// The transactions of one of `threads` threads that are due within `length`.
    pub(super) fn new(arrivals: Arrivals, length: Duration, thread: usize, threads: usize) -> Self {
        let seconds = length.as_secs_f64();
        // One that is due at the very end is not: the count rounded up is the number of due times before it. The cast
        // saturates.
        let end = arrivals.count_until(seconds, seconds).ceil() as u64;
        Self { arrivals, length, next: thread as u64, step: threads.max(1) as u64, end }
    }
}

impl Iterator for Schedule {
    type Item = Duration;

    /// Returns how long after the beginning the next transaction is due.
    fn next(&mut self) -> Option<Duration> {
        if self.next >= self.end {
            return None;
        }
        let length = self.length.as_secs_f64();
        let seconds = self.arrivals.seconds_until(self.next as f64, length).min(length);
        self.next = self.next.saturating_add(self.step);
        Some(Duration::try_from_secs_f64(seconds).unwrap_or(self.length))
    }
}

/// Times between objects of a streaming client: the same on every run, different for every client.
#[derive(Clone, Debug)]
pub(super) struct Intervals {
    interval: Duration,
    spread: Duration,
    state: u64,
}

impl Intervals {
    pub(super) fn new(interval: Duration, spread: Duration, client: u64) -> Self {
        Self { interval, spread: spread.min(interval), state: client }
    }

    /// When the first object is due: somewhere in an interval that is chosen by its length, as it would be for a client that
    /// has always been there. All clients together then ask at an even rate from the beginning, not in waves.
    pub(super) fn first(&mut self) -> Duration {
        let shortest = (self.interval - self.spread).as_secs_f64();
        let longest = (self.interval + self.spread).as_secs_f64();
        let squares = shortest.powi(2) + self.part() * (longest.powi(2) - shortest.powi(2));
        let first = Duration::try_from_secs_f64(squares.sqrt() * self.part());
        first.unwrap_or(self.interval).min(self.interval + self.spread)
    }

    /// From one object's due time to the next.
    pub(super) fn next(&mut self) -> Duration {
        self.interval - self.spread + (self.spread * 2).mul_f64(self.part())
    }

    /// A number from 0 to 1, 1 excluded.
    fn part(&mut self) -> f64 {
        self.state = self.state.wrapping_add(STEP);
        // A double holds 53 bits exactly.
        (mixed(self.state) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The number at this place of the sequence of a seed, by SplitMix64 (Steele, Lea, Flood 2014).
pub(super) fn drawn(seed: u64, turn: u64) -> u64 {
    mixed(mixed(seed).wrapping_add(turn.wrapping_add(1).wrapping_mul(STEP)))
}

fn mixed(state: u64) -> u64 {
    let mut mixed = state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests;
