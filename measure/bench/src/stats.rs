//! Medians with intervals, and the signs of a machine that is too busy to measure on.
//!
//! Nothing is assumed about how samples are distributed: processor times are skewed and have
//! outliers, so everything rests on their order.

pub mod comparison;
pub mod summary;
pub mod welch;

/// A median with an interval that holds the true one in 95 of 100 cases, or with all samples where they are fewer than six.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub median: f64,
    pub low: f64,
    pub high: f64,
    /// Returns how far the medians of the earlier and the later half of the samples are apart, relative
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

    /// True if the whole interval lies below the other.
    pub fn is_surely_below(&self, other: &Self) -> bool {
        self.high < other.low
    }
}

fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    Some(f64::midpoint(lower, upper))
}

/// The order statistics between which the median lies.
fn interval_of_sorted(sorted: &[f64]) -> Option<(f64, f64)> {
    let rank = rank(sorted.len());
    let low = *sorted.get(rank)?;
    let high = *sorted.get(sorted.len().checked_sub(1 + rank)?)?;
    Some((low, high))
}

/// Returns how many of so many sorted samples to leave out at each end, so that the true median lies within the rest in 95 of
/// 100 cases: how many fall below it is binomial. None are where even all of them are too few.
fn rank(count: usize) -> usize {
    let all = count as f64;
    // By logarithms, since 2⁻ⁿ is no number for a thousand samples.
    let mut logarithm = -all * std::f64::consts::LN_2;
    let mut outside = 0.0;
    let mut rank = 0;
    for below in 0..count / 2 {
        outside += 2.0 * logarithm.exp();
        if outside > OUTSIDE_MAX {
            break;
        }
        rank = below;
        logarithm += ((all - below as f64) / (below as f64 + 1.0)).ln();
    }
    rank
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

/// The part of cases in which the true median may lie outside its interval.
const OUTSIDE_MAX: f64 = 0.05;

#[cfg(test)]
mod tests;
