//! A step as a line of the results: how it is written, and how a run that goes on reads it back.

use std::collections::BTreeMap;
use std::time::Duration;

use kettle_loadgen::client::outcome::Outcome;

use super::costs::Observation;
use super::step::Step;
use crate::figure;
use crate::results::{Sample, Value};
use crate::scenario::measured::Measured;
use crate::stats::relative;

impl Step {
    /// The outcome of a rate that was asked for during `length`, and how busy each of the workers was in the time they took.
    pub fn measured(
        rate: f64,
        length: Duration,
        measured: &Measured,
        workers: usize,
    ) -> (Self, f64) {
        let worked = measured.usage.cpu.div_f64(workers.max(1) as f64);
        let taken = time_taken(length, &measured.outcome, worked);
        let busy = relative(worked.as_secs_f64(), taken.as_secs_f64());
        // If both are at their end, the server's is found.
        let may_be_limited = measured.client_limited().is_some() && busy < BUSY;
        (Self::of(rate, taken, &measured.outcome, may_be_limited), busy)
    }

    /// Returns the outcome of a rate, where the server needed `taken` for it. If the client was late and every bound was kept
    /// nevertheless, it did not limit; `may_be_limited` counts where one was broken.
    pub fn of(rate: f64, taken: Duration, outcome: &Outcome, may_be_limited: bool) -> Self {
        let failed: u64 = outcome.failures.values().sum();
        let all = outcome.succeeded + failed;
        let step = Self {
            rate,
            succeeded_per_second: relative(outcome.succeeded as f64, taken.as_secs_f64()),
            failed_share: if all == 0 { 1.0 } else { failed as f64 / all as f64 },
            mean_us: outcome.latency.mean(),
            p99_us: outcome.latency.value_at_quantile(0.99) as f64,
            is_client_limited: false,
        };
        Self { is_client_limited: may_be_limited && !step.is_fine(), ..step }
    }

    /// The figures that say of a ramp's step what those of a steady load would not: rates are over the time that was needed,
    /// not over the time until the last answer, which one lost transaction makes seconds longer. They add up: what was attempted
    /// succeeded in its time, failed, or was still waiting then.
    pub fn figures(&self) -> [(&'static str, f64); 5] {
        let failed = self.rate * self.failed_share;
        [
            (figure::REQUESTS_PER_SECOND.name, self.succeeded_per_second),
            (figure::ATTEMPTED_PER_SECOND.name, self.rate),
            (figure::SUCCEEDED_PER_SECOND.name, self.succeeded_per_second),
            (figure::FAILED_PER_SECOND.name, failed),
            (
                figure::WAITING_PER_SECOND.name,
                (self.rate - failed - self.succeeded_per_second).max(0.0),
            ),
        ]
    }

    pub fn read(sample: &Sample) -> Option<Self> {
        let figure = |name: &str| sample.figures.get(name).copied();
        let rate = figure(figure::ATTEMPTED_PER_SECOND.name)?;
        Some(Self {
            rate,
            succeeded_per_second: figure(figure::SUCCEEDED_PER_SECOND.name)?,
            failed_share: relative(figure(figure::FAILED_PER_SECOND.name)?, rate),
            // Without an answer there is no latency.
            mean_us: figure(figure::MEAN_US.name).unwrap_or(0.0),
            p99_us: figure(figure::P99_US.name).unwrap_or(0.0),
            is_client_limited: sample.warnings.iter().any(|warning| warning == CLIENT_LIMITED),
        })
    }
}

impl Observation {
    /// Returns the cost of the step written as this sample. `None` beyond the knee, where a server also pays for what it does
    /// not finish.
    pub fn read(sample: &Sample) -> Option<Self> {
        let step = Step::read(sample)?;
        if !step.keeps_up() || step.failed_share >= LOST_MAX {
            return None;
        }
        let per_transaction = sample.figures.get(figure::CPU_US_PER_TRANSACTION.name)?;
        let full_share = sample.figures.get(figure::FULL_SHARE.name)?;
        let transactions = step.succeeded_per_second;
        Some(Self {
            cpu_us: per_transaction * transactions,
            full: transactions * full_share,
            resumed: transactions * (1.0 - full_share),
        })
    }
}

/// The time a server took for a rate that was asked for during `length`: until its queue was empty, and never less than the
/// processor time that each of its workers spent. A queue that is long and steady shows in that only.
pub fn time_taken(length: Duration, outcome: &Outcome, worked: Duration) -> Duration {
    (length + queue_left(outcome).saturating_sub(SCHEDULING)).max(worked)
}

/// The length of the queue with which the server was left when the last transaction was due.
///
/// A queue that grows makes latency grow evenly from the first transaction to the last, so the middle eight tenths of all
/// latencies span eight tenths of it. A server that is evenly slow has no queue by this measure.
fn queue_left(outcome: &Outcome) -> Duration {
    let at = |quantile| Duration::from_micros(outcome.latency.value_at_quantile(quantile));
    at(0.9).saturating_sub(at(0.1)).mul_f64(1.0 / 0.8)
}

/// Shares of a processor and bytes a second are over a time that a step does not have: the server works on its queue for longer
/// than it is asked.
pub fn forget_shares(figures: &mut BTreeMap<String, f64>) {
    figures.retain(|name, _| {
        !name.ends_with("_percent")
            && !name.starts_with("gigabits")
            && !name.starts_with("gigabytes")
    });
}

/// The figures of one sample with others in their place.
pub fn replace(
    figures: &mut BTreeMap<String, f64>,
    with: impl IntoIterator<Item = (&'static str, f64)>,
) {
    figures.extend(with.into_iter().map(|(name, value)| (name.to_owned(), value)));
}

/// A rate as an axis value: whole, since nobody reads the digits behind.
pub fn rate_value(rate: f64) -> Value {
    Value::Number(if rate < 10.0 { (rate * 100.0).round() / 100.0 } else { rate.round() })
}

/// The warning that makes a step useless for finding the server's limits, and not for its processor time.
pub const CLIENT_LIMITED: &str = "The client gave way before the server did, so this step says nothing of the server's limits; the server's processor time \
     for each transaction holds.";

/// A server this busy is at its end.
const BUSY: f64 = 0.92;

/// Latencies this much apart are no queue: on a machine with other work, a processor is away for so long.
const SCHEDULING: Duration = Duration::from_millis(50);

/// Steps that lose more say nothing of what a transaction costs.
const LOST_MAX: f64 = 0.001;

#[cfg(test)]
mod tests;
