//! The counters as plain numbers, for one worker or added up over all.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::counter::{DurationCounts, LabelledCounter};
use super::{KeyDirection, STATUS_MIN, WorkerMetrics};
use crate::path::Path;

/// Counts by their label values.
pub type Labelled = BTreeMap<Vec<&'static str>, u64>;

/// What was counted at one moment. Each counter is read once, so sums may differ by what happened
/// between two reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Connections accepted.
    pub connections_opened: u64,
    /// Connections gone.
    pub connections_closed: u64,
    /// Connections turned away before the handshake, by reason.
    pub connections_rejected: Labelled,
    /// Handshakes by version and resumption.
    pub handshakes: Labelled,
    /// Handshakes by suite.
    pub handshake_suites: Labelled,
    /// Handshakes by key exchange group.
    pub handshake_groups: Labelled,
    /// Failed handshakes by reason.
    pub handshakes_failed: Labelled,
    /// Time from accept to the end of the handshake.
    pub handshake_durations: DurationCounts,
    /// Responses by path and status.
    pub responses: BTreeMap<(&'static str, u16), u64>,
    /// Bytes of heads and bodies, before encryption, by path (in the order of [`Path::ALL`]).
    pub response_bytes: [u64; Path::ALL.len()],
    /// Responses that ended before their announced length.
    pub responses_truncated: u64,
    /// Responses that did not take the preferred path, by reason.
    pub not_preferred: Labelled,
    /// Time from a complete request head to the last byte handed to the kernel.
    pub request_durations: DurationCounts,
    /// Connections whose sending side moved into the kernel.
    pub switched: u64,
    /// Refusals of the kernel at the switch, by reason.
    pub refused: Labelled,
    /// KeyUpdates by direction (in the order of [`KeyDirection::ALL`]).
    pub keys_updated: [u64; KeyDirection::ALL.len()],
    /// New keys the kernel took on connections it encrypts for.
    pub kernel_rekeys: u64,
    /// Files open now.
    pub open_files: u64,
    /// Requests that found their file open.
    pub cache_hits: u64,
    /// Requests that opened their file.
    pub cache_misses: u64,
    /// Turns of a worker that took too long.
    pub stalls: u64,
    /// All these turns together.
    pub stalled: Duration,
}

impl Numbers {
    /// Reads one worker's counters.
    #[must_use]
    pub fn of(worker: &WorkerMetrics) -> Self {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        // Closed before opened: a connection may close between the reads, never the other way round.
        let connections_closed = read(&worker.connections_closed);
        Self {
            connections_closed,
            connections_opened: read(&worker.connections_opened),
            connections_rejected: labelled(&worker.connections_rejected),
            handshakes: labelled(&worker.handshakes),
            handshake_suites: labelled(&worker.handshake_suites),
            handshake_groups: labelled(&worker.handshake_groups),
            handshakes_failed: labelled(&worker.handshakes_failed),
            handshake_durations: worker.handshake_durations.read(),
            responses: responses(worker),
            response_bytes: std::array::from_fn(|path| {
                worker.response_bytes.get(path).map_or(0, read)
            }),
            responses_truncated: read(&worker.responses_truncated),
            not_preferred: labelled(&worker.not_preferred),
            request_durations: worker.request_durations.read(),
            switched: read(&worker.switched),
            refused: labelled(&worker.refused),
            keys_updated: worker.keys_updated.each_ref().map(read),
            kernel_rekeys: read(&worker.kernel_rekeys),
            open_files: read(&worker.open_files),
            cache_hits: read(&worker.cache_hits),
            cache_misses: read(&worker.cache_misses),
            stalls: read(&worker.stalls),
            stalled: Duration::from_micros(read(&worker.stalled_microseconds)),
        }
    }

    /// Adds another worker's numbers.
    pub fn add(&mut self, other: &Self) {
        self.connections_opened += other.connections_opened;
        self.connections_closed += other.connections_closed;
        add_labelled(&mut self.connections_rejected, &other.connections_rejected);
        add_labelled(&mut self.handshakes, &other.handshakes);
        add_labelled(&mut self.handshake_suites, &other.handshake_suites);
        add_labelled(&mut self.handshake_groups, &other.handshake_groups);
        add_labelled(&mut self.handshakes_failed, &other.handshakes_failed);
        self.handshake_durations.add(&other.handshake_durations);
        add_labelled(&mut self.responses, &other.responses);
        for (sum, bytes) in self.response_bytes.iter_mut().zip(other.response_bytes) {
            *sum += bytes;
        }
        self.responses_truncated += other.responses_truncated;
        add_labelled(&mut self.not_preferred, &other.not_preferred);
        self.request_durations.add(&other.request_durations);
        self.switched += other.switched;
        add_labelled(&mut self.refused, &other.refused);
        for (sum, updates) in self.keys_updated.iter_mut().zip(other.keys_updated) {
            *sum += updates;
        }
        self.kernel_rekeys += other.kernel_rekeys;
        self.open_files += other.open_files;
        self.cache_hits += other.cache_hits;
        self.cache_misses += other.cache_misses;
        self.stalls += other.stalls;
        self.stalled += other.stalled;
    }

    /// Connections open now.
    #[must_use]
    pub fn connections_open(&self) -> u64 {
        self.connections_opened.saturating_sub(self.connections_closed)
    }

    /// Responses sent by one path, whatever their status.
    #[must_use]
    pub fn responses_by(&self, path: Path) -> u64 {
        let of_path = self.responses.iter().filter(|((by, _), _)| *by == path.as_str());
        of_path.map(|(_, count)| count).sum()
    }
}

fn labelled<const LABELS: usize, const SLOTS: usize>(
    counter: &LabelledCounter<LABELS, SLOTS>,
) -> Labelled {
    counter.read().into_iter().collect()
}

fn responses(worker: &WorkerMetrics) -> BTreeMap<(&'static str, u16), u64> {
    let mut counts = BTreeMap::new();
    for (path, by_status) in Path::ALL.iter().zip(&worker.responses) {
        for (slot, count) in by_status.iter().enumerate() {
            let count = count.load(Relaxed);
            if count > 0 {
                let status = u16::try_from(STATUS_MIN + slot).unwrap_or(u16::MAX);
                counts.insert((path.as_str(), status), count);
            }
        }
    }
    counts
}

fn add_labelled<Labels: Ord + Clone>(
    sums: &mut BTreeMap<Labels, u64>,
    counts: &BTreeMap<Labels, u64>,
) {
    for (labels, count) in counts {
        *sums.entry(labels.clone()).or_default() += count;
    }
}
