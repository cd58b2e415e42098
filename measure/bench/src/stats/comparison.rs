//! Decides whether two rows of samples differ, by their order alone: the interval of Mann and Whitney's test, which holds for
//! any distribution and needs no chance of its own. Outliers widen it and never decide.

use serde::Serialize;

use super::summary::Summary;
use crate::figure::Better;

/// Two rows of samples, the second held against the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    pub a: Summary,
    pub b: Summary,
    /// The difference by which the second is larger, in the unit of the samples.
    pub difference: Interval,
    /// The number of times as large the second is; nothing if not all samples are above zero.
    pub ratio: Option<Interval>,
    /// The number of 100 such intervals hold the truth, as a part of one: at least 0.95, but only 0.9 with three samples a
    /// side.
    pub confidence: f64,
}

/// A middle and the interval that holds the true value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The median of all pairs of a sample of each side.
    pub middle: f64,
    pub low: f64,
    pub high: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The second is worse.
    Worse,
    /// The second is better.
    Better,
    /// The samples do not tell.
    Undecided,
    /// Both are the same: counts that are equal, or work within what is tolerated.
    Same,
}

impl Comparison {
    /// `None` if a side has no samples.
    pub fn of(a: &[f64], b: &[f64]) -> Option<Self> {
        let first = Summary::of(a)?;
        let second = Summary::of(b)?;
        let (rank, confidence) = rank(a.len(), b.len());
        let pairs = |of: fn(f64, f64) -> f64| {
            let mut all: Vec<f64> =
                b.iter().flat_map(|b| a.iter().map(move |a| of(*a, *b))).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let is_positive = first.min > 0.0 && second.min > 0.0;
        Some(Self {
            a: first,
            b: second,
            difference: Interval::between(&pairs(|a, b| b - a), rank)?,
            ratio: if is_positive { Interval::between(&pairs(|a, b| b / a), rank) } else { None },
            confidence,
        })
    }

    /// Tells whether the second is better, where more or less is better. Undecided with fewer than three samples on a side,
    /// unless all samples of both are one and the same number: then it is a count, and there is no difference.
    pub fn verdict(&self, better: Better) -> Verdict {
        let ends = [self.a.min, self.a.max, self.b.min, self.b.max];
        if ends.iter().all(|end| *end == self.a.min) {
            return Verdict::Same;
        }
        let (interval, same) = match self.ratio {
            Some(ratio) => (ratio, 1.0),
            None => (self.difference, 0.0),
        };
        let is_larger = match (interval.low > same, interval.high < same) {
            _ if self.a.samples.min(self.b.samples) < SAMPLES_MIN => return Verdict::Undecided,
            (true, _) => true,
            (_, true) => false,
            _ => return Verdict::Undecided,
        };
        match better {
            Better::Neither => Verdict::Undecided,
            Better::Higher if is_larger => Verdict::Better,
            Better::Lower if !is_larger => Verdict::Better,
            Better::Higher | Better::Lower => Verdict::Worse,
        }
    }
}

/// The number of rounds a side that would decide, if further ones scattered as these do and kept the
/// difference of their means: the usual estimate for a test at 5 % that finds it in four of five
/// cases. `None` where these do not differ, and where they do not scatter.
pub fn rounds_to_decide(a: &[f64], b: &[f64]) -> Option<u32> {
    let a = Summary::of(a)?;
    let b = Summary::of(b)?;
    let difference = (b.mean - a.mean).abs();
    let variance = a.deviation.powi(2) + b.deviation.powi(2);
    if difference <= 0.0 || variance <= 0.0 {
        return None;
    }
    let rounds = DEVIATIONS_OF_TEST.powi(2) * variance / difference.powi(2) / RANKS_EFFICIENCY;
    // Saturates: a difference of nothing takes for ever.
    Some((rounds.ceil() as u32).max(SAMPLES_MIN as u32))
}

impl Interval {
    /// From the rank-th of the sorted values to the rank-th from the end.
    fn between(sorted: &[f64], rank: usize) -> Option<Self> {
        let rank = rank.min(sorted.len().checked_sub(1)? / 2);
        Some(Self {
            middle: super::median_of_sorted(sorted)?,
            low: *sorted.get(rank)?,
            high: *sorted.get(sorted.len().checked_sub(1 + rank)?)?,
        })
    }
}

/// The number of pairs to leave out at each end, and how sure the interval is then. If both rows
/// came from the same source, the number of pairs in which the second is the larger would follow a
/// known distribution.
fn rank(a: usize, b: usize) -> (usize, f64) {
    if a + b > EXACT_MAX {
        let a = a as f64;
        let b = b as f64;
        let deviation = (a * b * (a + b + 1.0) / 12.0).sqrt();
        // Truncation is meant: it widens the interval.
        return ((a * b / 2.0 - DEVIATIONS_OF_95_PERCENT * deviation).max(0.0) as usize, 0.95);
    }
    let ways = ways(a, b);
    let all: f64 = ways.iter().sum();
    let mut tail = 0.0;
    let mut outside = None;
    for (rank, count) in ways.iter().enumerate() {
        tail += count / all;
        if tail > TAIL_MAX {
            return match outside {
                Some(outside) => (rank - 1, 1.0 - 2.0 * outside),
                // So few samples that even the whole range is no 95 %.
                None => (0, (1.0 - 2.0 * tail).max(0.0)),
            };
        }
        outside = Some(tail);
    }
    (0, 0.0)
}

/// For each number of pairs, in how many orders of all samples that many have the second larger: the coefficients of the Gaussian binomial, the
/// product of (1 − x^(b+i)) / (1 − x^i) for i from 1 to a.
fn ways(a: usize, b: usize) -> Vec<f64> {
    let mut counts = vec![0.0; a * b + 1];
    if let Some(first) = counts.first_mut() {
        *first = 1.0;
    }
    for i in 1..=a {
        for place in (b + i..counts.len()).rev() {
            let below = counts.get(place - (b + i)).copied().unwrap_or(0.0);
            if let Some(count) = counts.get_mut(place) {
                *count -= below;
            }
        }
        for place in i..counts.len() {
            let below = counts.get(place - i).copied().unwrap_or(0.0);
            if let Some(count) = counts.get_mut(place) {
                *count += below;
            }
        }
    }
    counts
}

/// Fewer samples on a side than this never decide anything.
pub const SAMPLES_MIN: usize = 3;
const TAIL_MAX: f64 = 0.025;
const DEVIATIONS_OF_95_PERCENT: f64 = 1.96;
/// Quantiles of the normal distribution for 5 % of false and 80 % of right decisions.
const DEVIATIONS_OF_TEST: f64 = DEVIATIONS_OF_95_PERCENT + 0.84;
/// The efficiency of a test by ranks beside one by means, for samples that are normal: 3/π.
const RANKS_EFFICIENCY: f64 = 3.0 / std::f64::consts::PI;
/// Above, the normal distribution is as good, and the counts would no longer fit.
const EXACT_MAX: usize = 40;

#[cfg(test)]
mod tests;
