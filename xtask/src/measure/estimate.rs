//! A median and the interval it lies in.

use std::fmt;

/// The median of some samples with the order statistics between which the true one lies in 95 of 100 cases; for fewer than nine
/// samples these are the smallest and the largest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

impl Estimate {
    /// Of samples in any order; none for none.
    pub fn of(samples: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = samples.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let upper = *sorted.get(count / 2)?;
        let lower = *sorted.get((count - 1) / 2)?;
        let rank = rank(count);
        Some(Self {
            median: f64::midpoint(lower, upper),
            low: *sorted.get(rank)?,
            high: *sorted.get(count - 1 - rank)?,
        })
    }
}

/// Returns how many of so many sorted samples to leave out at each end, so that the true median lies between the rest in 95 of
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

impl fmt::Display for Estimate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if self.median.abs() < 10.0 { 2 } else { 1 };
        let Self { median, low, high } = self;
        write!(formatter, "{median:.digits$} ({low:.digits$} to {high:.digits$})")
    }
}

/// The part of cases in which the true median may lie outside its interval.
const OUTSIDE_MAX: f64 = 0.05;

#[cfg(test)]
mod tests;
