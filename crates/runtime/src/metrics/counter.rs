//! The shapes a worker counts in. All are relaxed atomics that one worker writes and a scrape reads; none takes a lock.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::writer::{Buckets, Metric, MetricWriter};
use crate::tx_path::TxPath;

/// A way to count: how it is read, added up over workers and written.
pub trait Shape {
    /// The numbers at one moment.
    type Reading;

    /// Reads it.
    fn read(&self) -> Self::Reading;

    /// Adds what another worker counted.
    fn add(sum: &mut Self::Reading, other: &Self::Reading);

    /// Writes it for Prometheus.
    ///
    /// # Errors
    /// Those of the writer.
    fn write(
        reading: &Self::Reading,
        metric: &Metric,
        writer: &mut MetricWriter<'_>,
    ) -> fmt::Result;
}

/// The number of times something happened.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Counts this many more.
    pub fn add_many(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }
}

impl Shape for Count {
    type Reading = u64;

    fn read(&self) -> u64 {
        self.0.load(Relaxed)
    }

    fn add(sum: &mut u64, other: &u64) {
        *sum += other;
    }

    fn write(reading: &u64, metric: &Metric, writer: &mut MetricWriter<'_>) -> fmt::Result {
        writer.counter(metric, *reading)
    }
}

/// The number of things there are now.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// There are this many now.
    pub fn set(&self, now: u64) {
        self.0.store(now, Relaxed);
    }
}

impl Shape for Gauge {
    type Reading = u64;

    fn read(&self) -> u64 {
        self.0.load(Relaxed)
    }

    fn add(sum: &mut u64, other: &u64) {
        *sum += other;
    }

    fn write(reading: &u64, metric: &Metric, writer: &mut MetricWriter<'_>) -> fmt::Result {
        writer.gauge(metric.name, metric.help, *reading)
    }
}

/// Time in which something happened.
#[derive(Debug, Default)]
pub struct Seconds(AtomicU64);

impl Seconds {
    /// It happened for so long.
    pub fn add_duration(&self, duration: Duration) {
        self.0.fetch_add(microseconds(duration), Relaxed);
    }
}

impl Shape for Seconds {
    type Reading = Duration;

    fn read(&self) -> Duration {
        Duration::from_micros(self.0.load(Relaxed))
    }

    fn add(sum: &mut Duration, other: &Duration) {
        *sum += *other;
    }

    fn write(reading: &Duration, metric: &Metric, writer: &mut MetricWriter<'_>) -> fmt::Result {
        writer.seconds(metric, *reading)
    }
}

/// Things that begin and end: how many began, and how many there are now.
#[derive(Debug, Default)]
pub struct Lifetimes {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// Lifetimes as a scrape sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lived {
    /// The number of those that began.
    pub begun: u64,
    /// The number of those that ended.
    pub ended: u64,
}

impl Lived {
    /// Returns the number there are now.
    #[must_use]
    pub fn now(self) -> u64 {
        self.begun.saturating_sub(self.ended)
    }
}

impl Lifetimes {
    /// One more begins.
    pub fn begin(&self) {
        self.begun.fetch_add(1, Relaxed);
    }

    /// One of them ends.
    pub fn end(&self) {
        self.ended.fetch_add(1, Relaxed);
    }
}

impl Shape for Lifetimes {
    type Reading = Lived;

    fn read(&self) -> Lived {
        // Ended before begun: one may end between the reads, never the other way round.
        let ended = self.ended.load(Relaxed);
        Lived { ended, begun: self.begun.load(Relaxed) }
    }

    fn add(sum: &mut Lived, other: &Lived) {
        sum.begun += other.begun;
        sum.ended += other.ended;
    }

    fn write(reading: &Lived, metric: &Metric, writer: &mut MetricWriter<'_>) -> fmt::Result {
        writer.counter(metric, reading.begun)?;
        let help = format!("{} and open now", metric.help);
        writer.gauge(&format!("{}_open", metric.name), &help, reading.now())
    }
}

/// An enumeration whose values are the values of one label.
pub trait Label: Copy {
    /// The words, in the order the metrics list them.
    const WORDS: &'static [&'static str];

    /// The position of this value's word.
    fn index(self) -> usize;
}

/// One counter for each of the `VALUES` values of a label: found without a comparison.
#[derive(Debug)]
pub struct By<L, const VALUES: usize>([AtomicU64; VALUES], PhantomData<L>);

impl<L: Label, const VALUES: usize> By<L, VALUES> {
    /// Counts this many more under this value.
    pub fn add_many(&self, value: L, more: u64) {
        if let Some(count) = self.0.get(value.index()) {
            count.fetch_add(more, Relaxed);
        }
    }
}

impl<L, const VALUES: usize> Default for By<L, VALUES> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)), PhantomData)
    }
}

impl<L: Label, const VALUES: usize> Shape for By<L, VALUES> {
    type Reading = [u64; VALUES];

    fn read(&self) -> [u64; VALUES] {
        self.0.each_ref().map(|count| count.load(Relaxed))
    }

    fn add(sum: &mut [u64; VALUES], other: &[u64; VALUES]) {
        for (sum, count) in sum.iter_mut().zip(other) {
            *sum += count;
        }
    }

    fn write(
        reading: &[u64; VALUES],
        metric: &Metric,
        writer: &mut MetricWriter<'_>,
    ) -> fmt::Result {
        let counts = L::WORDS.iter().zip(reading);
        writer.counters(metric, counts.map(|(word, count)| (vec![*word], *count)))
    }
}

/// Counters under `LABELS` label values each, with room for `SLOTS` different combinations.
///
/// The labels are words of this program (suites, reasons), never a peer's, so there are few. A label that
/// finds no slot is counted under [`OTHER`], so a sum over all slots is always right.
#[derive(Debug)]
pub struct Labelled<const LABELS: usize, const SLOTS: usize> {
    slots: [LabelSlot<LABELS>; SLOTS],
    other: AtomicU64,
}

#[derive(Debug)]
struct LabelSlot<const LABELS: usize> {
    labels: OnceLock<[&'static str; LABELS]>,
    count: AtomicU64,
}

/// Counts by their label values.
pub type LabelledCounts = BTreeMap<Vec<&'static str>, u64>;

impl<const LABELS: usize, const SLOTS: usize> Labelled<LABELS, SLOTS> {
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
}

impl<const LABELS: usize, const SLOTS: usize> Default for Labelled<LABELS, SLOTS> {
    fn default() -> Self {
        let slot = || LabelSlot { labels: OnceLock::new(), count: AtomicU64::new(0) };
        Self { slots: std::array::from_fn(|_| slot()), other: AtomicU64::new(0) }
    }
}

impl<const LABELS: usize, const SLOTS: usize> Shape for Labelled<LABELS, SLOTS> {
    type Reading = LabelledCounts;

    fn read(&self) -> LabelledCounts {
        let mut counts = LabelledCounts::new();
        for slot in &self.slots {
            if let Some(labels) = slot.labels.get() {
                counts.insert(labels.to_vec(), slot.count.load(Relaxed));
            }
        }
        let other = self.other.load(Relaxed);
        if other > 0 {
            // One of the labels may be this word too.
            *counts.entry(vec![OTHER; LABELS]).or_default() += other;
        }
        counts
    }

    fn add(sum: &mut LabelledCounts, other: &LabelledCounts) {
        for (labels, count) in other {
            *sum.entry(labels.clone()).or_default() += count;
        }
    }

    fn write(
        reading: &LabelledCounts,
        metric: &Metric,
        writer: &mut MetricWriter<'_>,
    ) -> fmt::Result {
        writer.counters(metric, reading.iter().map(|(values, count)| (values.clone(), *count)))
    }
}

/// Responses by path and status.
#[derive(Debug)]
pub struct Statuses<const PATHS: usize>([[AtomicU64; STATUSES]; PATHS]);

impl<const PATHS: usize> Statuses<PATHS> {
    /// Counts one response. Statuses that HTTP does not have are not counted.
    pub fn add_one(&self, path: TxPath, status: u16) {
        let slot = usize::from(status).checked_sub(STATUS_MIN).unwrap_or(STATUSES);
        if let Some(count) = self.0.get(path.index()).and_then(|counts| counts.get(slot)) {
            count.fetch_add(1, Relaxed);
        }
    }
}

impl<const PATHS: usize> Default for Statuses<PATHS> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))))
    }
}

impl<const PATHS: usize> Shape for Statuses<PATHS> {
    type Reading = BTreeMap<(&'static str, u16), u64>;

    fn read(&self) -> Self::Reading {
        let mut counts = BTreeMap::new();
        for (path, by_status) in TxPath::WORDS.iter().zip(&self.0) {
            for (slot, count) in by_status.iter().enumerate() {
                let count = count.load(Relaxed);
                if count > 0 {
                    let status = u16::try_from(STATUS_MIN + slot).unwrap_or(u16::MAX);
                    counts.insert((*path, status), count);
                }
            }
        }
        counts
    }

    fn add(sum: &mut Self::Reading, other: &Self::Reading) {
        for (labels, count) in other {
            *sum.entry(*labels).or_default() += count;
        }
    }

    fn write(
        reading: &Self::Reading,
        metric: &Metric,
        writer: &mut MetricWriter<'_>,
    ) -> fmt::Result {
        let counts = reading
            .iter()
            .map(|((path, status), count)| (vec![(*path).to_owned(), status.to_string()], *count));
        writer.counters(metric, counts)
    }
}

/// Durations counted in [`BUCKETS`].
#[derive(Debug, Default)]
pub struct Durations {
    /// One more than there are bounds: the last one is for what exceeds them all.
    buckets: [AtomicU64; BUCKETS.len() + 1],
    sum_microseconds: AtomicU64,
}

impl Durations {
    /// Counts one duration.
    pub fn observe(&self, duration: Duration) {
        let bucket = BUCKETS.partition_point(|bound| *bound < duration);
        if let Some(count) = self.buckets.get(bucket) {
            count.fetch_add(1, Relaxed);
        }
        self.sum_microseconds.fetch_add(microseconds(duration), Relaxed);
    }
}

/// A histogram as a scrape sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DurationCounts {
    /// The number of durations in each bucket (not cumulative); the last exceed every bound.
    pub buckets: [u64; BUCKETS.len() + 1],
    /// All durations together.
    pub sum: Duration,
}

impl DurationCounts {
    /// Each bucket by its upper bound in seconds.
    pub fn by_bound(&self) -> Buckets {
        let bounds = BUCKETS.iter().map(Duration::as_secs_f64).chain([f64::INFINITY]);
        bounds.zip(self.buckets).collect()
    }

    /// The number of durations that were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

impl Shape for Durations {
    type Reading = DurationCounts;

    fn read(&self) -> DurationCounts {
        DurationCounts {
            buckets: self.buckets.each_ref().map(|count| count.load(Relaxed)),
            sum: Duration::from_micros(self.sum_microseconds.load(Relaxed)),
        }
    }

    fn add(sum: &mut DurationCounts, other: &DurationCounts) {
        for (bucket, count) in sum.buckets.iter_mut().zip(other.buckets) {
            *bucket += count;
        }
        sum.sum += other.sum;
    }

    fn write(
        reading: &DurationCounts,
        metric: &Metric,
        writer: &mut MetricWriter<'_>,
    ) -> fmt::Result {
        writer.durations(metric, &reading.by_bound(), reading.sum)
    }
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Stands for label combinations beyond the room a counter has.
pub const OTHER: &str = "other";

/// The lowest status code counted, and how many are: 100 to 999, which no server in HTTP has, but some behind us.
const STATUS_MIN: usize = 100;
const STATUSES: usize = 900;

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
