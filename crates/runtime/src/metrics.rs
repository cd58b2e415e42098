//! The counts of the workers, and how they are added up when someone asks.
//!
//! Each worker writes its own relaxed atomics, so the hot path takes no lock and shares no cache
//! line with another worker. `table` declares the counters, `counter` their shapes; `render` writes the text for
//! Prometheus.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use kettle_tls::stream::KeyChanges;
use kettle_tls::{Resumption, Session};

use crate::tx_path::{Reason, TxPath};

mod counter;
mod render;
mod table;
mod writer;

pub use counter::{BUCKETS, DurationCounts, Label, LabelledCounts};
pub use counter::{By, Count, Durations, Lifetimes, Shape};
pub use render::{NamedCounters, render};
pub use table::{Numbers, WorkerMetrics};
pub use writer::{Metric, MetricWriter};

/// Which direction of a connection changed its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyDirection {
    /// The bytes that the peer sends.
    Rx,
    /// The bytes that we send.
    Tx,
}

impl Label for KeyDirection {
    const WORDS: &'static [&'static str] = &["rx", "tx"];

    fn index(self) -> usize {
        self as usize
    }
}

/// The outcome of a look into the cache of open files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The file was there.
    Hit,
    /// It had to be opened.
    Miss,
}

impl Label for Lookup {
    const WORDS: &'static [&'static str] = &["hit", "miss"];

    fn index(self) -> usize {
        self as usize
    }
}

impl Label for TxPath {
    const WORDS: &'static [&'static str] = &[
        TxPath::User.as_str(),
        TxPath::KernelWrite.as_str(),
        TxPath::KernelSendfile.as_str(),
        TxPath::KernelSplice.as_str(),
        TxPath::Plain.as_str(),
    ];

    fn index(self) -> usize {
        self as usize
    }
}

impl WorkerMetrics {
    /// A connection was accepted.
    pub fn connection_opened(&self) {
        self.connections.begin();
    }

    /// A connection is gone, however it ended.
    pub fn connection_closed(&self) {
        self.connections.end();
    }

    /// A connection could not be accepted. At their limit connections wait, and are not turned away.
    pub fn connection_rejected(&self, reason: &'static str) {
        self.connections_rejected.add_one([reason]);
    }

    /// A connection began with a PROXY header, or should have or should not have.
    pub fn proxy_header(&self, version: &'static str, outcome: &'static str) {
        self.proxy_headers.add_one([version, outcome]);
    }

    /// A handshake succeeded, `duration` after the connection was accepted.
    pub fn handshake_finished(&self, session: &Session, duration: Duration) {
        self.handshakes.add_one([session.version_name(), session.resumed.as_str()]);
        self.handshake_suites.add_one([session.suite]);
        self.handshake_groups.add_one([session.group]);
        self.handshake_durations.observe(duration);
        if let Some(epoch) = session.ticket_epoch {
            self.ticket_epochs.add_one([epoch.as_str()]);
        }
        if session.peer.is_some() {
            let is_new = session.resumed == Resumption::Full;
            self.client_certificate(if is_new { "verified" } else { "resumed" });
        }
    }

    /// Counts the outcome of asking a client for its certificate.
    pub fn client_certificate(&self, outcome: &'static str) {
        self.client_certificates.add_one([outcome]);
    }

    /// A handshake failed; the reason is a word of ours, never the peer's text.
    pub fn handshake_failed(&self, reason: &'static str) {
        self.handshakes_failed.add_one([reason]);
    }

    /// A response was sent by `path`: `bytes` of head and body, before encryption.
    pub fn response(&self, path: TxPath, status: u16, bytes: u64, duration: Duration) {
        self.responses.add_one(path, status);
        self.response_bytes.add_many(path, bytes);
        self.request_durations.observe(duration);
    }

    /// A request came over HTTP/2.
    pub fn http2_stream(&self) {
        self.http2_streams.add_many(1);
    }

    /// An HTTP/2 connection, or a stream of one, was ended for what the client did.
    pub fn http2_refused(&self, reason: &'static str) {
        self.http2_refused.add_one([reason]);
    }

    /// A connection is to be carried to a backend.
    pub fn tunnel_opened(&self) {
        self.tunnels.begin();
    }

    /// It is no more: what it carried to the backend and to the client, and how.
    pub fn tunnel_ended(
        &self,
        end: &'static str,
        carried: [Option<(TxPath, u64)>; 2],
        duration: Duration,
    ) {
        self.tunnels.end();
        self.tunnels_ended.add_one([end]);
        let counters = [&self.tunnel_bytes_to_backend, &self.tunnel_bytes_to_client];
        for (counter, carried) in counters.into_iter().zip(carried) {
            if let Some((path, bytes)) = carried {
                counter.add_many(path, bytes);
            }
        }
        self.tunnel_durations.observe(duration);
    }

    /// A response ended before its announced length (file cut short, peer gone, write deadline).
    pub fn response_truncated(&self) {
        self.responses_truncated.add_many(1);
    }

    /// A response did not take the path its configuration prefers.
    pub fn not_preferred(&self, reason: Reason) {
        self.not_preferred.add_one([reason.as_str()]);
    }

    /// A connection's sending side moved into the kernel.
    pub fn switched(&self) {
        self.switched.add_many(1);
    }

    /// A route did not let a request pass; the label is the log's word.
    pub fn request_refused(&self, reason: &'static str) {
        self.requests_refused.add_one([reason]);
    }

    /// A service was asked whether a request may go on.
    pub fn auth_asked(&self, duration: Duration) {
        self.auth_durations.observe(duration);
    }

    /// The kernel refused a connection at the switch; the label is `KtlsError::reason`.
    pub fn refused(&self, reason: &'static str) {
        self.refused.add_one([reason]);
    }

    /// A connection ended; its keys had changed so often.
    pub fn keys_changed(&self, changes: KeyChanges) {
        if changes == KeyChanges::default() {
            return;
        }
        self.keys_updated.add_many(KeyDirection::Rx, changes.received.into());
        self.keys_updated.add_many(KeyDirection::Tx, changes.sent.into());
        self.kernel_rekeys.add_many(changes.kernel.into());
    }

    /// The number of files this worker holds open now.
    pub fn open_files(&self, files: u64) {
        self.open_files.set(files);
    }

    /// A request found its file in the open-file cache.
    pub fn cache_hit(&self) {
        self.file_lookups.add_many(Lookup::Hit, 1);
    }

    /// A request had to open its file.
    pub fn cache_miss(&self) {
        self.file_lookups.add_many(Lookup::Miss, 1);
    }

    /// One turn of the worker took so long that other connections waited.
    pub fn stall(&self, duration: Duration) {
        self.stalls.add_many(1);
        self.stalled.add_duration(duration);
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
    source: Mutex<Option<Arc<dyn NamedCounters>>>,
    process_source: OnceLock<Arc<dyn NamedCounters>>,
}

impl Metrics {
    /// Zeroed counters for this many workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| Arc::default()).collect(),
            reloads_done: AtomicU64::default(),
            reloads_refused: AtomicU64::default(),
            log_lines_dropped: Arc::default(),
            source: Mutex::default(),
            process_source: OnceLock::new(),
        }
    }

    /// Numbers that something of the process counts by itself, whatever the configuration, are written from here. Once.
    pub fn set_process_source(&self, source: Arc<dyn NamedCounters>) {
        let _ = self.process_source.set(source);
    }

    /// Numbers that the configuration in force counts by itself, under names of the operator's, are written from here.
    pub fn set_source(&self, source: Arc<dyn NamedCounters>) {
        *self.source.lock().unwrap_or_else(PoisonError::into_inner) = Some(source);
    }

    fn sources(&self) -> Vec<Arc<dyn NamedCounters>> {
        let of_process = self.process_source.get().cloned();
        let of_configuration = self.source.lock().unwrap_or_else(PoisonError::into_inner).clone();
        of_process.into_iter().chain(of_configuration).collect()
    }

    /// The counters of each worker, by its index.
    #[must_use]
    pub fn workers(&self) -> &[Arc<WorkerMetrics>] {
        &self.workers
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

#[cfg(test)]
mod tests;
