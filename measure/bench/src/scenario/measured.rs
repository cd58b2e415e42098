//! The parts of a sample: the client's figures and the server's, on one clock.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use kettle_loadgen::client::outcome::Outcome;
use kettle_loadgen::measure::server::Usage;

use super::plan::Key;
use crate::figure;
use crate::results::Sample;
use crate::stats::relative;

#[derive(Clone, Debug)]
pub struct Measured {
    /// The outcome for the client, without the warm-up.
    pub outcome: Outcome,
    /// The usage of the server. See [`Measured::cpu`] for the part that belongs to the outcome.
    pub usage: Usage,
    /// True if `usage` covers the whole load to its end, rather than a window that lies within it.
    pub is_whole: bool,
    /// Connections whose sending side the kernel took over, warm-up included; `None` without kernel TLS.
    pub kernel_connections: Option<u64>,
    /// The number of processors the server can use.
    pub server_cpus: usize,
    /// The number of processors that the client has, and with it the backend of terminators and caches.
    pub client_cpus: usize,
    pub warnings: Vec<String>,
    /// Why it is implausible and to be measured again.
    pub implausible: Option<String>,
    /// Figures of the scenario's own, in place of those that follow from the rest; `None` takes one out.
    pub replaced: BTreeMap<&'static str, Option<f64>>,
}

impl Measured {
    /// The server's processor time for what `outcome` counts. The window of a timed load is some milliseconds off the
    /// client's, so the time is scaled to it: a load that lasts costs the same in every millisecond.
    pub fn cpu(&self) -> Duration {
        let mine = self.outcome.elapsed.as_secs_f64();
        let theirs = self.usage.elapsed.as_secs_f64();
        match self.is_whole || theirs <= 0.0 {
            true => self.usage.cpu,
            false => self.usage.cpu.mul_f64(mine / theirs),
        }
    }

    /// Returns how busy the client's side was, from 0 to 1: its busiest thread, or its processors with all that runs on them.
    pub fn client_busy(&self) -> f64 {
        let used = self.usage.client.as_secs_f64();
        match self.outcome.thread_busy.iter().copied().reduce(f64::max) {
            Some(busiest) => {
                let there = self.usage.elapsed.as_secs_f64() * self.client_cpus as f64;
                busiest.max(relative(used, there))
            }
            // Of a client that does not know how busy its one thread was, the processes know.
            None => relative(used, self.outcome.elapsed.as_secs_f64()),
        }
    }

    /// A sentence if the client's side, not the server, may have set the figures.
    pub fn client_limited(&self) -> Option<String> {
        let busy = self.client_busy();
        let of_side = || {
            format!(
                "the client's side used {:.0} % of its processors: it may be the bottleneck",
                busy * 100.0
            )
        };
        self.outcome.client_limited().or_else(|| (busy > BUSY_MAX).then(of_side))
    }

    /// All figures that follow, by the names of [`crate::figure`].
    pub fn figures(&self) -> BTreeMap<String, f64> {
        let mut figures = Figures::default();
        self.of_client(&mut figures);
        self.of_server(&mut figures);
        for (name, value) in &self.replaced {
            match value {
                Some(value) => figures.put(name, *value),
                None => _ = figures.0.remove(*name),
            }
        }
        figures.0
    }

    fn of_client(&self, figures: &mut Figures) {
        let outcome = &self.outcome;
        let seconds = outcome.elapsed.as_secs_f64();
        let succeeded = outcome.succeeded as f64;
        let bytes = outcome.body_bytes as f64;
        let failed: u64 = outcome.failures.values().sum();
        figures.ratio(figure::REQUESTS_PER_SECOND.name, succeeded, seconds);
        figures.ratio(figure::SUCCEEDED_PER_SECOND.name, succeeded, seconds);
        figures.ratio(figure::ATTEMPTED_PER_SECOND.name, outcome.attempted as f64, seconds);
        figures.ratio(figure::FAILED_PER_SECOND.name, failed as f64, seconds);
        if let Some(rate) = outcome.gigabits_per_second() {
            figures.put(figure::GIGABITS_PER_SECOND.name, rate);
        }
        figures.ratio(figure::GIGABYTES_PER_SECOND.name, bytes / 1e9, seconds);
        let latency = &outcome.latency;
        if !latency.is_empty() {
            figures.put(figure::MEAN_US.name, latency.mean());
            figures.put(figure::P50_US.name, latency.value_at_quantile(0.5) as f64);
            figures.put(figure::P99_US.name, latency.value_at_quantile(0.99) as f64);
            figures.put(figure::P999_US.name, latency.value_at_quantile(0.999) as f64);
            figures.put(figure::MAX_US.name, latency.max() as f64);
        }
        if !outcome.first_byte.is_empty() {
            let first_byte = outcome.first_byte.value_at_quantile(0.99);
            figures.put(figure::FIRST_BYTE_P99_US.name, first_byte as f64);
        }
        let handshakes = &outcome.handshakes;
        let all = handshakes.full + handshakes.resumed();
        figures.ratio(figure::FULL_SHARE.name, handshakes.full as f64, all as f64);
        for (figure, bytes) in [
            (figure::WIRE_BYTES_PER_FULL_HANDSHAKE, handshakes.bytes_per_full()),
            (figure::WIRE_BYTES_PER_RESUMED_HANDSHAKE, handshakes.bytes_per_resumed()),
        ] {
            if let Some(bytes) = bytes {
                figures.put(figure.name, bytes);
            }
        }
        figures.put(figure::CLIENT_BUSY.name, self.client_busy());
    }

    fn of_server(&self, figures: &mut Figures) {
        let outcome = &self.outcome;
        let usage = &self.usage;
        let cpu = self.cpu().as_secs_f64();
        let succeeded = outcome.succeeded as f64;
        let bytes = outcome.body_bytes as f64;
        figures.ratio(figure::CPU_NS_PER_REQUEST.name, cpu * 1e9, succeeded);
        figures.ratio(figure::CPU_US_PER_TRANSACTION.name, cpu * 1e6, succeeded);
        figures.ratio(figure::CPU_NS_PER_BYTE.name, cpu * 1e9, bytes);
        figures.ratio(figure::CPU_SECONDS_PER_GIB.name, cpu * GIB, bytes);
        // A window over the whole load goes on until the server has settled.
        let elapsed = if self.is_whole { outcome.elapsed } else { usage.elapsed }.as_secs_f64();
        let used = usage.cpu.as_secs_f64() * 100.0;
        figures.ratio(figure::CPU_PERCENT.name, used, elapsed);
        figures.ratio(figure::CPU_USER_PERCENT.name, used * usage.user_share, elapsed);
        figures.ratio(figure::CPU_SYSTEM_PERCENT.name, used * (1.0 - usage.user_share), elapsed);
        figures.ratio(figure::SOFTIRQ_PERCENT.name, usage.softirq.as_secs_f64() * 100.0, elapsed);
        figures.ratio(figure::SERVER_BUSY.name, used / 100.0, elapsed * self.server_cpus as f64);
        let switches = usage.switches as f64;
        let scale = if self.is_whole { 1.0 } else { outcome.elapsed.as_secs_f64() / elapsed };
        figures.ratio(figure::CONTEXT_SWITCHES_PER_REQUEST.name, switches * scale, succeeded);
        figures.put(figure::RETRANSMITS.name, usage.retransmits as f64);
        if let Some(connections) = self.kernel_connections {
            figures.put(figure::KERNEL_TLS_CONNECTIONS.name, connections as f64);
        }
    }

    /// As a line of the results.
    pub fn sample(&self, key: &Key) -> Sample {
        let failures = &self.outcome.failures;
        Sample {
            histogram: encode(&self.outcome.latency),
            failures: failures.iter().map(|(why, count)| ((*why).to_owned(), *count)).collect(),
            warnings: self.warnings.clone(),
            ..key.sample(self.figures())
        }
    }
}

/// A histogram as other tools read it: V2 DEFLATE in base64; `None` if it is empty.
pub fn encode(histogram: &Histogram<u64>) -> Option<String> {
    if histogram.is_empty() {
        return None;
    }
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(histogram, &mut bytes).ok()?;
    Some(STANDARD.encode(bytes))
}

#[derive(Default)]
struct Figures(BTreeMap<String, f64>);

impl Figures {
    fn put(&mut self, name: &str, value: f64) {
        if value.is_finite() {
            self.0.insert(name.to_owned(), value);
        }
    }

    /// Nothing per nothing is no figure.
    fn ratio(&mut self, name: &str, part: f64, whole: f64) {
        if whole > 0.0 {
            self.put(name, part / whole);
        }
    }
}

/// A side without pauses uses nearly all of its processors.
const BUSY_MAX: f64 = 0.9;

const GIB: f64 = (1_u64 << 30) as f64;

#[cfg(test)]
pub(super) mod tests;
