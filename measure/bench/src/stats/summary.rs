//! A row of samples in six numbers, as ministat prints them.

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    pub samples: usize,
    pub min: f64,
    pub max: f64,
    pub median: f64,
    pub mean: f64,
    /// The standard deviation, as a sample's: n − 1 below the fraction. Zero for a single one.
    pub deviation: f64,
}

impl Summary {
    /// `None` without samples.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median = super::median_of_sorted(&sorted)?;
        let min = *sorted.first()?;
        let max = *sorted.last()?;
        let count = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / count;
        let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
        let deviation = if samples.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        Some(Self { samples: samples.len(), min, max, median, mean, deviation })
    }

    pub(super) fn mean_variance(&self) -> f64 {
        self.deviation.powi(2) / self.samples as f64
    }
}

#[cfg(test)]
mod tests;
