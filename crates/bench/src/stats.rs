//! Medians with intervals, and the signs of a machine that is too busy to measure on.
//!
//! Nothing is assumed about how samples are distributed: processor times are skewed and have
//! outliers, so everything rests on their order.

pub mod comparison;
pub mod summary;
pub mod welch;

/// A median with an interval that holds the true one in 95 of 100 cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub median: f64,
    pub low: f64,
    pub high: f64,
    /// How far the medians of the earlier and the later half of the samples are apart, relative
    /// to the median: what changed while measuring.
    pub drift: f64,
    pub samples: usize,
}

impl Estimate {
    /// Summarises samples in the order they were taken; `None` without any.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median = median_of_sorted(&sorted)?;
        let (low, high) = interval_of_sorted(&sorted)?;
        Some(Self { median, low, high, drift: drift(samples, median), samples: sorted.len() })
    }

    /// Half the interval relative to the median: the `±` of a table.
    pub fn spread(&self) -> f64 {
        relative((self.high - self.low) / 2.0, self.median)
    }

    /// Whether the whole interval lies below the other.
    pub fn is_surely_below(&self, other: &Self) -> bool {
        self.high < other.low
    }
}

fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    Some(f64::midpoint(lower, upper))
}

/// The order statistics between which the median lies: how many of `n` samples fall below it
/// follows a binomial distribution with mean n/2 and standard deviation √n/2.
fn interval_of_sorted(sorted: &[f64]) -> Option<(f64, f64)> {
    let count = sorted.len() as f64;
    // Truncation is meant: it widens the interval.
    let rank = ((count - DEVIATIONS_OF_95_PERCENT * count.sqrt()) / 2.0).max(0.0) as usize;
    let low = *sorted.get(rank)?;
    let high = *sorted.get(sorted.len().checked_sub(1 + rank)?)?;
    Some((low, high))
}

fn drift(samples: &[f64], median: f64) -> f64 {
    let (early, late) = samples.split_at(samples.len() / 2);
    let middle = |half: &[f64]| {
        let mut sorted = half.to_vec();
        sorted.sort_by(f64::total_cmp);
        median_of_sorted(&sorted)
    };
    match (middle(early), middle(late)) {
        (Some(early), Some(late)) => relative((late - early).abs(), median),
        _ => 0.0,
    }
}

/// A part of a whole; nothing of nothing is nothing.
pub fn relative(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

const DEVIATIONS_OF_95_PERCENT: f64 = 1.96;

#[cfg(test)]
mod tests;
