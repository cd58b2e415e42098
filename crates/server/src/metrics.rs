//! What the workers count, and how it is added up when someone asks.
//!
//! Each worker writes its own relaxed atomics, so the hot path takes no lock and shares no cache
//! line with another worker. `counter` has the shapes, `numbers` the sums, `render` the text for
//! Prometheus, `endpoint` the place it is scraped from.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use kettle_tls::Session;
use kettle_tls::stream::KeyChanges;

use crate::path::{Path, Reason};

mod counter;
pub mod endpoint;
mod numbers;
mod render;
mod text_format;

pub use counter::{BUCKETS, DurationCounts};
pub use numbers::{Labelled, Numbers};
pub use render::render;

use counter::{DurationHistogram, LabelledCounter};

/// The counters of one worker. Only that worker writes them.
#[derive(Debug)]
pub struct WorkerMetrics {
    connections_opened: AtomicU64,
    connections_closed: AtomicU64,
    /// The most that were open at once since [`Metrics::take_most_connections`] asked.
    connections_most: AtomicU64,
    connections_rejected: LabelledCounter<1, REASONS>,
    handshakes: LabelledCounter<2, HANDSHAKES>,
    handshake_suites: LabelledCounter<1, SUITES>,
    handshake_groups: LabelledCounter<1, SUITES>,
    handshakes_failed: LabelledCounter<1, REASONS>,
    handshake_durations: DurationHistogram,
    responses: [[AtomicU64; STATUSES]; Path::ALL.len()],
    response_bytes: [AtomicU64; Path::ALL.len()],
    responses_truncated: AtomicU64,
    not_preferred: LabelledCounter<1, REASONS>,
    request_durations: DurationHistogram,
    switched: AtomicU64,
    refused: LabelledCounter<1, REASONS>,
    keys_updated: [AtomicU64; KeyDirection::ALL.len()],
    kernel_rekeys: AtomicU64,
    open_files: AtomicU64,
    cache_hits: AtomicU64,
    cache_misses: AtomicU64,
    stalls: AtomicU64,
    stalled_microseconds: AtomicU64,
}

/// Which direction of a connection changed its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyDirection {
    /// What the peer sends.
    Rx,
    /// What we send.
    Tx,
}

impl KeyDirection {
    /// Both directions, in the order the metrics list them.
    pub const ALL: [KeyDirection; 2] = [KeyDirection::Rx, KeyDirection::Tx];

    /// The word used in the metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            KeyDirection::Rx => "rx",
            KeyDirection::Tx => "tx",
        }
    }
}

impl WorkerMetrics {
    /// A connection was accepted.
    pub fn connection_opened(&self) {
        let opened = self.connections_opened.fetch_add(1, Relaxed) + 1;
        let open = opened.saturating_sub(self.connections_closed.load(Relaxed));
        self.connections_most.fetch_max(open, Relaxed);
    }

    /// A connection is gone, however it ended.
    pub fn connection_closed(&self) {
        self.connections_closed.fetch_add(1, Relaxed);
    }

    /// A connection was turned away before its handshake (connection limit, no descriptors left).
    pub fn connection_rejected(&self, reason: &'static str) {
        self.connections_rejected.add_one([reason]);
    }

    /// A handshake succeeded, `duration` after the connection was accepted.
    pub fn handshake_finished(&self, session: &Session, duration: Duration) {
        self.handshakes.add_one([session.version_name(), session.resumed.as_str()]);
        self.handshake_suites.add_one([session.suite]);
        self.handshake_groups.add_one([session.group]);
        self.handshake_durations.observe(duration);
    }

    /// A handshake failed; the reason is a word of ours, never the peer's text.
    pub fn handshake_failed(&self, reason: &'static str) {
        self.handshakes_failed.add_one([reason]);
    }

    /// A response was sent by `path`: `bytes` of head and body, before encryption.
    pub fn response(&self, path: Path, status: u16, bytes: u64, duration: Duration) {
        let slot = usize::from(status).checked_sub(STATUS_MIN).unwrap_or(STATUSES);
        if let Some(count) = self.responses.get(path.index()).and_then(|counts| counts.get(slot)) {
            count.fetch_add(1, Relaxed);
        }
        if let Some(sum) = self.response_bytes.get(path.index()) {
            sum.fetch_add(bytes, Relaxed);
        }
        self.request_durations.observe(duration);
    }

    /// A response ended before its announced length (file cut short, peer gone, write deadline).
    pub fn response_truncated(&self) {
        self.responses_truncated.fetch_add(1, Relaxed);
    }

    /// A response did not take the path its configuration prefers.
    pub fn not_preferred(&self, reason: Reason) {
        self.not_preferred.add_one([reason.as_str()]);
    }

    /// A connection's sending side moved into the kernel.
    pub fn switched(&self) {
        self.switched.fetch_add(1, Relaxed);
    }

    /// The kernel refused a connection at the switch; the label is `Refusal::reason`.
    pub fn refused(&self, reason: &'static str) {
        self.refused.add_one([reason]);
    }

    /// A connection ended; its keys had changed so often.
    pub fn keys_changed(&self, changes: KeyChanges) {
        if changes == KeyChanges::default() {
            return;
        }
        let [rx, tx] = &self.keys_updated;
        rx.fetch_add(changes.received.into(), Relaxed);
        tx.fetch_add(changes.sent.into(), Relaxed);
        self.kernel_rekeys.fetch_add(changes.kernel.into(), Relaxed);
    }

    /// How many files this worker holds open now.
    pub fn open_files(&self, files: u64) {
        self.open_files.store(files, Relaxed);
    }

    /// A request found its file in the open-file cache.
    pub fn cache_hit(&self) {
        self.cache_hits.fetch_add(1, Relaxed);
    }

    /// A request had to open its file.
    pub fn cache_miss(&self) {
        self.cache_misses.fetch_add(1, Relaxed);
    }

    /// One turn of the worker took so long that other connections waited.
    pub fn stall(&self, duration: Duration) {
        self.stalls.fetch_add(1, Relaxed);
        let microseconds = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.stalled_microseconds.fetch_add(microseconds, Relaxed);
    }
}

impl Default for WorkerMetrics {
    fn default() -> Self {
        let statuses = || std::array::from_fn(|_| AtomicU64::new(0));
        Self {
            connections_opened: AtomicU64::default(),
            connections_closed: AtomicU64::default(),
            connections_most: AtomicU64::default(),
            connections_rejected: LabelledCounter::default(),
            handshakes: LabelledCounter::default(),
            handshake_suites: LabelledCounter::default(),
            handshake_groups: LabelledCounter::default(),
            handshakes_failed: LabelledCounter::default(),
            handshake_durations: DurationHistogram::default(),
            responses: std::array::from_fn(|_| statuses()),
            response_bytes: std::array::from_fn(|_| AtomicU64::new(0)),
            responses_truncated: AtomicU64::default(),
            not_preferred: LabelledCounter::default(),
            request_durations: DurationHistogram::default(),
            switched: AtomicU64::default(),
            refused: LabelledCounter::default(),
            keys_updated: std::array::from_fn(|_| AtomicU64::new(0)),
            kernel_rekeys: AtomicU64::default(),
            open_files: AtomicU64::default(),
            cache_hits: AtomicU64::default(),
            cache_misses: AtomicU64::default(),
            stalls: AtomicU64::default(),
            stalled_microseconds: AtomicU64::default(),
        }
    }
}

/// The counters of every worker, and the few of the process.
#[derive(Debug)]
pub struct Metrics {
    workers: Vec<Arc<WorkerMetrics>>,
    /// Configurations taken over since the start.
    pub reloads_done: AtomicU64,
    /// Configurations refused since the start.
    pub reloads_refused: AtomicU64,
    /// Access log lines lost because the disk did not keep up.
    pub log_lines_dropped: Arc<AtomicU64>,
}

impl Metrics {
    /// Zeroed counters for so many workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| Arc::default()).collect(),
            reloads_done: AtomicU64::default(),
            reloads_refused: AtomicU64::default(),
            log_lines_dropped: Arc::default(),
        }
    }

    /// The counters of each worker, by its index.
    #[must_use]
    pub fn workers(&self) -> &[Arc<WorkerMetrics>] {
        &self.workers
    }

    /// The most connections that were open at once since this was asked before, summed over the workers: a crowd that
    /// came and left in between has been there.
    #[must_use]
    pub fn take_most_connections(&self) -> u64 {
        self.workers.iter().map(|worker| worker.connections_most.swap(0, Relaxed)).sum()
    }

    /// The sums over all workers.
    #[must_use]
    pub fn total(&self) -> Numbers {
        let mut total = Numbers::default();
        for worker in &self.workers {
            total.add(&Numbers::of(worker));
        }
        total
    }
}

/// The lowest status code counted.
const STATUS_MIN: usize = 100;

/// How many status codes are counted: 100 to 599.
const STATUSES: usize = 500;

/// Room for reasons: the kernel's refusals, the tls crate's failures and a few to spare.
const REASONS: usize = 24;

/// Room for TLS version × kind of resumption.
const HANDSHAKES: usize = 8;

/// Room for suites (nine in rustls) and for groups.
const SUITES: usize = 12;

#[cfg(test)]
mod tests;
