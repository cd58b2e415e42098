//! Metrics as the encoder for Prometheus wants them, one a call.

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// The name of a counter towards Prometheus.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Without the prefix of all and the suffix of its type.
    pub name: &'static str,
    /// The text on what is counted.
    pub help: &'static str,
    /// The names of its labels, in the order of their values.
    pub labels: &'static [&'static str],
}

/// Declares counters that the operator's names tell apart, and writes them: `shape "name", "help" by "label", … = readings;`, where a
/// shape is a function of [`MetricWriter`] and readings are what it takes.
#[macro_export]
macro_rules! write_named {
    ($writer:ident: $($shape:ident $name:literal, $help:literal by $($label:literal),+ = $readings:expr;)+) => {
        $($writer.$shape(
            &$crate::metrics::Metric { name: $name, help: $help, labels: &[$($label),+] },
            $readings,
        )?;)+
    };
}

/// The number of durations in each bucket of a histogram, by its upper bound in seconds.
pub type Buckets = Vec<(f64, u64)>;

/// Writes one metric a call; counters get `_total` from the encoder.
pub struct MetricWriter<'e> {
    encoder: DescriptorEncoder<'e>,
}

impl<'e> MetricWriter<'e> {
    pub(super) fn new(encoder: DescriptorEncoder<'e>) -> Self {
        Self { encoder }
    }

    pub(super) fn info(&mut self, name: &str, help: &str, labels: &[(&str, &str)]) -> fmt::Result {
        self.encoder.encode_descriptor(name, help, None, MetricType::Info)?.encode_info(&labels)
    }

    /// A gauge without labels.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }

    pub(super) fn counter(&mut self, metric: &Metric, value: u64) -> fmt::Result {
        self.encoder
            .encode_descriptor(metric.name, metric.help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    pub(super) fn seconds(&mut self, metric: &Metric, value: Duration) -> fmt::Result {
        self.encoder
            .encode_descriptor(metric.name, metric.help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&value.as_secs_f64(), None)
    }

    /// One counter for each combination of label values.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn counters<Value: AsRef<str>>(
        &mut self,
        metric: &Metric,
        counts: impl IntoIterator<Item = (Vec<Value>, u64)>,
    ) -> fmt::Result {
        let Metric { name, help, labels } = *metric;
        let mut family = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (values, count) in counts {
            family
                .encode_family(&pairs(labels, &values).as_slice())?
                .encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        Ok(())
    }

    /// One gauge for each combination of label values.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn gauges<Value: AsRef<str>>(
        &mut self,
        metric: &Metric,
        values: impl IntoIterator<Item = (Vec<Value>, u64)>,
    ) -> fmt::Result {
        let Metric { name, help, labels } = *metric;
        let mut family = self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (words, value) in values {
            family.encode_family(&pairs(labels, &words).as_slice())?.encode_gauge(&value)?;
        }
        Ok(())
    }

    /// One histogram for each combination of label values.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn durations_by<Value: AsRef<str>>(
        &mut self,
        metric: &Metric,
        readings: impl IntoIterator<Item = (Vec<Value>, Buckets, Duration)>,
    ) -> fmt::Result {
        let Metric { name, help, labels } = *metric;
        let mut family = self.encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (words, buckets, sum) in readings {
            let count = buckets.iter().map(|(_, count)| count).sum();
            family
                .encode_family(&pairs(labels, &words).as_slice())?
                .encode_histogram::<NoLabelSet>(sum.as_secs_f64(), count, &buckets, None)?;
        }
        Ok(())
    }

    /// A histogram: how many durations each bucket holds, by its upper bound in seconds.
    pub(super) fn durations(
        &mut self,
        metric: &Metric,
        buckets: &[(f64, u64)],
        sum: Duration,
    ) -> fmt::Result {
        let count = buckets.iter().map(|(_, count)| count).sum();
        self.encoder
            .encode_descriptor(metric.name, metric.help, None, MetricType::Histogram)?
            .encode_histogram::<NoLabelSet>(sum.as_secs_f64(), count, buckets, None)
    }
}

/// The names of labels with their values.
fn pairs<'v, Value: AsRef<str>>(
    labels: &[&'static str],
    values: &'v [Value],
) -> Vec<(&'static str, &'v str)> {
    labels.iter().copied().zip(values.iter().map(AsRef::as_ref)).collect()
}
