//! The counters as text for Prometheus (OpenMetrics 1.0; `text_format` makes the older one of it).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use kettle_kernel::{bug, keeper};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;

use super::writer::{Metric, MetricWriter};
use super::{Metrics, Numbers};

/// Counters beside those of the workers: of things that the operator names.
pub trait NamedCounters: fmt::Debug + Send + Sync {
    /// Writes them.
    ///
    /// # Errors
    /// Those of the writer.
    fn write(&self, writer: &mut MetricWriter<'_>) -> fmt::Result;
}

/// One after the other.
impl<A: NamedCounters, B: NamedCounters> NamedCounters for (Arc<A>, Arc<B>) {
    fn write(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        self.0.write(writer)?;
        self.1.write(writer)
    }
}

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
        sources: metrics.sources(),
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
    sources: Vec<Arc<dyn NamedCounters>>,
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut writer = MetricWriter::new(encoder);
        self.write_process(&mut writer)?;
        self.numbers.write(&mut writer)?;
        self.sources.iter().try_for_each(|source| source.write(&mut writer))
    }
}

impl Scrape {
    fn write_process(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        writer.info("build", "Version of kettle", &[("version", env!("CARGO_PKG_VERSION"))])?;
        writer.gauge("uptime_seconds", "Time since the start", self.uptime.as_secs())?;
        writer.gauge("workers", "Worker threads", self.workers)?;
        if let Some(is_alive) = keeper::is_alive() {
            let help = "Whether the process is there that stays root for reloads";
            writer.gauge("keeper_up", help, u64::from(is_alive))?;
        }
        let reloads = Metric {
            name: "reloads",
            help: "Configuration reloads by outcome",
            labels: &["outcome"],
        };
        let outcomes = [(vec!["done"], self.reloads_done), (vec!["refused"], self.reloads_refused)];
        writer.counters(&reloads, outcomes)?;
        let bugs = Metric {
            name: "bugs",
            help: "States that the code rules out and met all the same, each of which ended one connection or less, by source file",
            labels: &["file"],
        };
        let files = bug::counts().into_iter().map(|(file, count)| (vec![file], count));
        writer.counters(&bugs, files)?;
        let lines_dropped = Metric {
            name: "access_log_lines_dropped",
            help: "Access log lines lost because the log could not be written fast enough",
            labels: &[],
        };
        writer.counter(&lines_dropped, self.log_lines_dropped)
    }
}
