//! Decides whether two means differ, by Welch's test: what ministat prints, without its assumption that both rows scatter
//! alike. It takes samples to be distributed normally; [`super::comparison`] does not.

use super::summary::Summary;

/// The difference of two means, second minus first, with the interval that holds the true one in 95 of 100 cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanDifference {
    pub difference: f64,
    pub low: f64,
    pub high: f64,
    /// The three of them as parts of the first mean, unless that is zero.
    pub relative: Option<[f64; 3]>,
}

impl MeanDifference {
    /// `None` if a side has fewer than two samples, because one does not tell how it scatters.
    pub fn of(first: &Summary, second: &Summary) -> Option<Self> {
        if first.samples < 2 || second.samples < 2 {
            return None;
        }
        let one = first.mean_variance();
        let other = second.mean_variance();
        let both = one + other;
        let difference = second.mean - first.mean;
        let freedom_part =
            |variance: f64, samples: usize| variance.powi(2) / (samples as f64 - 1.0);
        let freedom = freedom_part(one, first.samples) + freedom_part(other, second.samples);
        // Rows without any scatter have no degrees of freedom, and then no width either.
        let freedom = if freedom > 0.0 { both.powi(2) / freedom } else { 1.0 };
        let half = quantile(freedom) * both.sqrt();
        let low = difference - half;
        let high = difference + half;
        let relative =
            (first.mean != 0.0).then(|| [difference, low, high].map(|it| it / first.mean.abs()));
        Some(Self { difference, low, high, relative })
    }

    pub fn is_proven(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// The 97.5 % quantile of Student's distribution, between the table's rows by the inverse of the degrees of freedom.
fn quantile(freedom: f64) -> f64 {
    let inverse = 1.0 / freedom.max(1.0);
    let mut above = (1.0, QUANTILE_OF_ONE);
    for (rows, value) in QUANTILES {
        let row = (1.0 / rows, *value);
        if row.0 <= inverse {
            let span = above.0 - row.0;
            let part = if span > 0.0 { (inverse - row.0) / span } else { 0.0 };
            return row.1 + part * (above.1 - row.1);
        }
        above = row;
    }
    NORMAL + inverse / above.0 * (above.1 - NORMAL)
}

/// Degrees of freedom and quantile, from any book of tables.
const QUANTILES: &[(f64, f64)] = &[
    (1.0, QUANTILE_OF_ONE),
    (2.0, 4.3027),
    (3.0, 3.1824),
    (4.0, 2.7764),
    (5.0, 2.5706),
    (6.0, 2.4469),
    (7.0, 2.3646),
    (8.0, 2.3060),
    (9.0, 2.2622),
    (10.0, 2.2281),
    (12.0, 2.1788),
    (15.0, 2.1314),
    (20.0, 2.0860),
    (30.0, 2.0423),
    (60.0, 2.0003),
    (120.0, 1.9799),
];
const QUANTILE_OF_ONE: f64 = 12.7062;
const NORMAL: f64 = 1.9600;

#[cfg(test)]
mod tests;
