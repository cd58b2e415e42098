//! A median and the interval it lies in.

use std::fmt;

/// The median of some samples with the order statistics between which the true one lies in 95 of 100 cases; for fewer than nine
/// samples these are the smallest and the largest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The middle of the samples.
    pub median: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
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
        // How many of n samples lie below the median is binomial with deviation √n/2.
        let rank = ((count as f64 - 1.96 * (count as f64).sqrt()) / 2.0).max(0.0) as usize;
        Some(Self {
            median: f64::midpoint(lower, upper),
            low: *sorted.get(rank)?,
            high: *sorted.get(count - 1 - rank)?,
        })
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if self.median.abs() < 10.0 { 2 } else { 1 };
        let Self { median, low, high } = self;
        write!(formatter, "{median:.digits$} ({low:.digits$} to {high:.digits$})")
    }
}

#[cfg(test)]
mod tests;
