//! The two shapes a worker counts in: counters told apart by labels, and histograms of fixed buckets.
//!
//! Both are relaxed atomics that one worker writes and a scrape reads. Neither takes a lock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Counters under `LABELS` label values each, with room for `SLOTS` different combinations.
///
/// The labels are words of this program (suites, reasons), never a peer's, so there are few. What
/// finds no slot is counted under [`OTHER`], so a sum over all slots is always right.
#[derive(Debug)]
pub struct LabelledCounter<const LABELS: usize, const SLOTS: usize> {
    slots: [Slot<LABELS>; SLOTS],
    other: AtomicU64,
}

#[derive(Debug)]
struct Slot<const LABELS: usize> {
    labels: OnceLock<[&'static str; LABELS]>,
    count: AtomicU64,
}

impl<const LABELS: usize, const SLOTS: usize> LabelledCounter<LABELS, SLOTS> {
    /// Counts one more under these labels.
    pub fn add_one(&self, labels: [&'static str; LABELS]) {
        for slot in &self.slots {
            if *slot.labels.get_or_init(|| labels) == labels {
                slot.count.fetch_add(1, Relaxed);
                return;
            }
        }
        self.other.fetch_add(1, Relaxed);
    }

    /// Every combination counted so far, in the order of first use.
    pub fn read(&self) -> Vec<(Vec<&'static str>, u64)> {
        let mut counts = Vec::new();
        for slot in &self.slots {
            if let Some(labels) = slot.labels.get() {
                counts.push((labels.to_vec(), slot.count.load(Relaxed)));
            }
        }
        let other = self.other.load(Relaxed);
        if other > 0 {
            counts.push((vec![OTHER; LABELS], other));
        }
        counts
    }
}

impl<const LABELS: usize, const SLOTS: usize> Default for LabelledCounter<LABELS, SLOTS> {
    fn default() -> Self {
        let slot = || Slot { labels: OnceLock::new(), count: AtomicU64::new(0) };
        Self { slots: std::array::from_fn(|_| slot()), other: AtomicU64::new(0) }
    }
}

/// Durations counted in [`BUCKETS`].
#[derive(Debug, Default)]
pub struct DurationHistogram {
    /// One more than there are bounds: the last one is for what exceeds them all.
    buckets: [AtomicU64; BUCKETS.len() + 1],
    sum_microseconds: AtomicU64,
}

impl DurationHistogram {
    /// Counts one duration.
    pub fn observe(&self, duration: Duration) {
        let bucket = BUCKETS.partition_point(|bound| *bound < duration);
        if let Some(count) = self.buckets.get(bucket) {
            count.fetch_add(1, Relaxed);
        }
        let microseconds = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.sum_microseconds.fetch_add(microseconds, Relaxed);
    }

    /// What was counted so far.
    pub fn read(&self) -> DurationCounts {
        let mut counts = DurationCounts::default();
        for (sum, count) in counts.buckets.iter_mut().zip(&self.buckets) {
            *sum = count.load(Relaxed);
        }
        counts.sum = Duration::from_micros(self.sum_microseconds.load(Relaxed));
        counts
    }
}

/// A histogram as a scrape sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DurationCounts {
    /// How many durations each bucket holds (not cumulative); the last exceed every bound.
    pub buckets: [u64; BUCKETS.len() + 1],
    /// All durations together.
    pub sum: Duration,
}

impl DurationCounts {
    /// Adds another worker's counts.
    pub fn add(&mut self, other: &Self) {
        for (sum, count) in self.buckets.iter_mut().zip(other.buckets) {
            *sum += count;
        }
        self.sum += other.sum;
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// Stands for label combinations beyond the room a counter has.
pub const OTHER: &str = "other";

/// The upper bounds of the buckets: from a cached small file to a large one on a slow line.
pub const BUCKETS: [Duration; 14] = [
    Duration::from_micros(100),
    Duration::from_micros(250),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2_500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(10),
    Duration::from_secs(60),
];
