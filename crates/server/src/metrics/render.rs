//! The counters as text for Prometheus (OpenMetrics 1.0; `text_format` makes the older one of it).

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::counter::{BUCKETS, DurationCounts};
use super::numbers::{Labelled, Numbers};
use super::{KeyDirection, Metrics};
use crate::path::Path;

/// Everything counted, as a scrape expects it.
///
/// # Errors
///
/// Writing to a `String` cannot fail, so neither does this; the encoder's signature says otherwise.
pub fn render(metrics: &Metrics, uptime: Duration) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("kettle");
    registry.register_collector(Box::new(Scrape {
        numbers: metrics.total(),
        uptime,
        workers: metrics.workers().len() as u64,
        reloads_done: metrics.reloads_done.load(Relaxed),
        reloads_refused: metrics.reloads_refused.load(Relaxed),
        log_lines_dropped: metrics.log_lines_dropped.load(Relaxed),
    }));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Scrape {
    numbers: Numbers,
    uptime: Duration,
    workers: u64,
    reloads_done: u64,
    reloads_refused: u64,
    log_lines_dropped: u64,
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut writer = Writer { encoder };
        self.write_process(&mut writer)?;
        self.write_connections(&mut writer)?;
        self.write_responses(&mut writer)?;
        self.write_offload(&mut writer)?;
        self.write_files(&mut writer)
    }
}

impl Scrape {
    fn write_process(&self, writer: &mut Writer<'_>) -> fmt::Result {
        writer.info("build", "Version of kettle", &[("version", env!("CARGO_PKG_VERSION"))])?;
        writer.gauge("uptime_seconds", "Time since the start", self.uptime.as_secs())?;
        writer.gauge("workers", "Worker threads", self.workers)?;
        let reloads = [("done", self.reloads_done), ("refused", self.reloads_refused)];
        writer.counters(
            "reloads",
            "Configuration reloads by outcome",
            reloads.iter().map(|(outcome, count)| ([("outcome", *outcome)], *count)),
        )?;
        writer.counter(
            "access_log_lines_dropped",
            "Access log lines lost because the log could not be written fast enough",
            self.log_lines_dropped,
        )
    }

    fn write_connections(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let numbers = &self.numbers;
        writer.counter("connections", "Connections accepted", numbers.connections_opened)?;
        writer.gauge("connections_open", "Connections open now", numbers.connections_open())?;
        writer.labelled(
            "connections_rejected",
            "Connections turned away before their handshake by reason",
            ["reason"],
            &numbers.connections_rejected,
        )?;
        writer.labelled(
            "handshakes",
            "Finished handshakes by TLS version and resumption",
            ["version", "resumption"],
            &numbers.handshakes,
        )?;
        writer.labelled(
            "handshake_suites",
            "Finished handshakes by cipher suite",
            ["suite"],
            &numbers.handshake_suites,
        )?;
        writer.labelled(
            "handshake_groups",
            "Finished handshakes by key exchange group",
            ["group"],
            &numbers.handshake_groups,
        )?;
        writer.labelled(
            "handshakes_failed",
            "Failed handshakes by reason",
            ["reason"],
            &numbers.handshakes_failed,
        )?;
        writer.durations(
            "handshake_duration_seconds",
            "Time from accept to the end of the handshake",
            &numbers.handshake_durations,
        )
    }

    fn write_responses(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let numbers = &self.numbers;
        let responses: Vec<_> = numbers
            .responses
            .iter()
            .map(|((path, status), count)| (*path, status.to_string(), *count))
            .collect();
        writer.counters(
            "responses",
            "Responses by the path that encrypted them and by status",
            responses
                .iter()
                .map(|(path, status, count)| ([("path", *path), ("status", status)], *count)),
        )?;
        writer.counters(
            "response_bytes",
            "Bytes of heads and bodies before encryption by path",
            Path::ALL
                .iter()
                .zip(numbers.response_bytes)
                .map(|(path, bytes)| ([("path", path.as_str())], bytes)),
        )?;
        writer.counter(
            "responses_truncated",
            "Responses that ended before their announced length",
            numbers.responses_truncated,
        )?;
        writer.labelled(
            "responses_not_preferred",
            "Responses that did not take their preferred path by reason",
            ["reason"],
            &numbers.not_preferred,
        )?;
        writer.durations(
            "request_duration_seconds",
            "Time from a complete request head to the last byte given to the kernel",
            &numbers.request_durations,
        )
    }

    fn write_offload(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let numbers = &self.numbers;
        writer.counter(
            "switches",
            "Connections whose sending side moved into the kernel",
            numbers.switched,
        )?;
        writer.labelled(
            "refusals",
            "Switches the kernel refused by reason",
            ["reason"],
            &numbers.refused,
        )?;
        writer.counters(
            "key_updates",
            "TLS 1.3 KeyUpdates by direction",
            KeyDirection::ALL
                .iter()
                .zip(numbers.keys_updated)
                .map(|(direction, count)| ([("direction", direction.as_str())], count)),
        )?;
        writer.counter(
            "kernel_rekeys",
            "New keys the kernel took on connections it encrypts for",
            numbers.kernel_rekeys,
        )
    }

    fn write_files(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let numbers = &self.numbers;
        writer.gauge("open_files", "Files open now", numbers.open_files)?;
        let lookups = [("hit", numbers.cache_hits), ("miss", numbers.cache_misses)];
        writer.counters(
            "file_lookups",
            "Lookups in the cache of open files by outcome",
            lookups.iter().map(|(outcome, count)| ([("outcome", *outcome)], *count)),
        )?;
        writer.counter(
            "worker_stalls",
            "Turns of a worker during which other connections waited too long",
            numbers.stalls,
        )?;
        writer.counter_seconds(
            "worker_stalled_seconds",
            "Duration of these turns together",
            numbers.stalled,
        )
    }
}

/// Writes one metric a call; counters get `_total` from the encoder.
struct Writer<'e> {
    encoder: DescriptorEncoder<'e>,
}

impl Writer<'_> {
    fn info(&mut self, name: &str, help: &str, labels: &[(&str, &str)]) -> fmt::Result {
        self.encoder.encode_descriptor(name, help, None, MetricType::Info)?.encode_info(&labels)
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.encoder
            .encode_descriptor(name, help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    fn counter_seconds(&mut self, name: &str, help: &str, value: Duration) -> fmt::Result {
        self.encoder
            .encode_descriptor(name, help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&value.as_secs_f64(), None)
    }

    fn counters<Labels: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        counts: impl IntoIterator<Item = (Labels, u64)>,
    ) -> fmt::Result {
        let mut metric = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, count) in counts {
            metric.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        Ok(())
    }

    fn labelled<const LABELS: usize>(
        &mut self,
        name: &str,
        help: &str,
        names: [&'static str; LABELS],
        counts: &Labelled,
    ) -> fmt::Result {
        let with_names = |values: &[&'static str]| -> Vec<(&'static str, &'static str)> {
            names.iter().copied().zip(values.iter().copied()).collect()
        };
        let counts: Vec<_> =
            counts.iter().map(|(values, count)| (with_names(values), *count)).collect();
        let pairs = counts.iter().map(|(labels, count)| (labels.as_slice(), *count));
        self.counters(name, help, pairs)
    }

    fn durations(&mut self, name: &str, help: &str, counts: &DurationCounts) -> fmt::Result {
        let bounds = BUCKETS.iter().map(Duration::as_secs_f64).chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(counts.buckets).collect();
        self.encoder
            .encode_descriptor(name, help, None, MetricType::Histogram)?
            .encode_histogram::<NoLabelSet>(
                counts.sum.as_secs_f64(),
                counts.count(),
                &buckets,
                None,
            )
    }
}
