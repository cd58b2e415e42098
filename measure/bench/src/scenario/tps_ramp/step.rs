//! One step of a ramp: a rate that was held for a few seconds, what came of it, and which bounds it keeps.

use crate::figure;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The rate that was asked for, in transactions a second.
    pub rate: f64,
    /// Successful transactions a second, over the time until the last of them ended.
    pub succeeded_per_second: f64,
    /// The share of those due that failed.
    pub failed_share: f64,
    /// Mean latency from the due time, in microseconds.
    pub mean_us: f64,
    /// Its 99th percentile.
    pub p99_us: f64,
    /// The client could not have made more of it, whatever the server did.
    pub is_client_limited: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A mean latency of at most 100 ms.
    Mean100,
    /// A mean latency of at most 500 ms.
    Mean500,
    /// A 99th percentile of at most 100 ms: stricter than the mean, which a few slow ones hardly move.
    P99Of100,
    /// Fewer than one in 1,000 lost.
    Loss1000,
    /// Fewer than one in 10,000 lost.
    Loss10000,
}

impl Bound {
    /// All bounds, in the order of tables.
    pub const ALL: [Bound; 5] =
        [Bound::Mean100, Bound::Mean500, Bound::P99Of100, Bound::Loss1000, Bound::Loss10000];

    /// The figure that holds the highest rate within it.
    pub fn figure(self) -> &'static str {
        match self {
            Bound::Mean100 => figure::TPS_MEAN_100MS.name,
            Bound::Mean500 => figure::TPS_MEAN_500MS.name,
            Bound::P99Of100 => figure::TPS_P99_100MS.name,
            Bound::Loss1000 => figure::TPS_LOSS_0_1_PERCENT.name,
            Bound::Loss10000 => figure::TPS_LOSS_0_01_PERCENT.name,
        }
    }

    /// The latency it bounds in a step and the most it allows; none for a bound on losses.
    pub fn latency_us(self, step: &Step) -> Option<(f64, f64)> {
        match self {
            Bound::Mean100 => Some((step.mean_us, 100_000.0)),
            Bound::Mean500 => Some((step.mean_us, 500_000.0)),
            Bound::P99Of100 => Some((step.p99_us, 100_000.0)),
            Bound::Loss1000 | Bound::Loss10000 => None,
        }
    }

    /// The share of transactions that may be lost. A server that drops what would be slow must not
    /// look quick, so the bounds on latency allow no more than the weaker bound on losses.
    pub fn loss(self) -> f64 {
        if self == Bound::Loss10000 { 0.0001 } else { 0.001 }
    }
}

impl Step {
    /// True if the server did in its time what was asked of it. Whatever its latency in a few seconds,
    /// a rate that leaves a growing queue behind cannot be held.
    pub fn keeps_up(&self) -> bool {
        self.succeeded_per_second >= KEEPS_UP * self.rate * (1.0 - self.failed_share)
    }

    pub fn keeps(&self, bound: Bound) -> bool {
        let is_quick = bound.latency_us(self).is_none_or(|(latency, most)| latency <= most);
        is_quick && self.may_count(bound)
    }

    /// True if this step can keep the bound, apart from its latency.
    pub fn may_count(&self, bound: Bound) -> bool {
        self.failed_share < bound.loss() && self.keeps_up() && !self.is_client_limited
    }

    pub fn is_fine(&self) -> bool {
        Bound::ALL.iter().all(|bound| self.keeps(*bound))
    }
}

/// A step that ends this much later than it should, in its own length, left a queue behind.
const KEEPS_UP: f64 = 0.96;
