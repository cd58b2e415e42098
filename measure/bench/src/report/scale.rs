//! From values to places on the page, and the round values an axis names.

/// The division of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleKind {
    Linear,
    /// By ratios, named at 1, 2, 5 of each decade.
    Log10,
    /// By ratios, named at powers of two: sizes.
    Log2,
}

/// An axis with its ends in values and in places.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    kind: ScaleKind,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// The scale that maps `low` to `from` and `high` to `to`. On a logarithmic one, what is not above zero lies at the low end.
    pub fn new(kind: ScaleKind, (low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let (low, high) = match kind {
            ScaleKind::Linear if high > low => (low, high),
            ScaleKind::Linear => (low - 0.5, low + 0.5),
            _ if low > 0.0 && high > low => (low, high),
            _ if low > 0.0 => (low / 2.0, low * 2.0),
            _ if high > 0.0 => (high / 1000.0, high),
            _ => (1.0, 10.0),
        };
        Self { kind, low, high, from, to }
    }

    /// Returns the place of the value lies; outside values are held at the ends.
    pub fn at(&self, value: f64) -> f64 {
        let value = if value.is_finite() { value.clamp(self.low, self.high) } else { self.low };
        let share = match self.kind {
            ScaleKind::Linear => (value - self.low) / (self.high - self.low),
            _ => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        self.from + share * (self.to - self.from)
    }

    /// Round values within; about `most` at most.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        let most = most.max(2);
        match self.kind {
            ScaleKind::Linear => self.linear_ticks(most),
            ScaleKind::Log10 => self.decade_ticks(most),
            ScaleKind::Log2 => self.binary_ticks(most),
        }
    }

    fn linear_ticks(&self, most: usize) -> Vec<f64> {
        let step = round_step((self.high - self.low) / most as f64);
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last.min(first + TICKS_MAX)).map(|n| n as f64 * step).collect()
    }

    fn decade_ticks(&self, most: usize) -> Vec<f64> {
        // From the densest choice to the sparsest; the first that fits is taken.
        let within: [&[f64]; 5] = [
            &[1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
            &[1.0, 2.0, 5.0],
            &[1.0, 3.0],
            &[1.0],
        ];
        let mut ticks = Vec::new();
        for steps in within {
            ticks = self.multiples(steps, 1);
            if ticks.len() <= most {
                return ticks;
            }
        }
        for every in 2..20 {
            ticks = self.multiples(&[1.0], every);
            if ticks.len() <= most {
                break;
            }
        }
        ticks
    }

    fn multiples(&self, steps: &[f64], every: i32) -> Vec<f64> {
        let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        decades
            .filter(|decade| decade.rem_euclid(every) == 0)
            .flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade)))
            .filter(|tick| self.contains(*tick))
            .collect()
    }

    fn binary_ticks(&self, most: usize) -> Vec<f64> {
        let first = (self.low.log2() - 1e-9).ceil() as i32;
        let last = (self.high.log2() + 1e-9).floor() as i32;
        let mut step = 1;
        while (last - first) / step + 1 > most as i32 && step < 64 {
            step += 1;
        }
        // Powers of four and of sixteen are counted from 1 KiB, so that charts of different ranges agree.
        (first..=last)
            .filter(|power| (power - 10).rem_euclid(step) == 0)
            .map(|power| 2_f64.powi(power))
            .collect()
    }

    fn contains(&self, value: f64) -> bool {
        (self.low * (1.0 - 1e-9)..=self.high * (1.0 + 1e-9)).contains(&value)
    }
}

/// The smallest of 1, 2, 2.5, 5 × 10ⁿ that is not below the step.
pub fn round_step(step: f64) -> f64 {
    if step <= 0.0 || !step.is_finite() {
        return 1.0;
    }
    let decade = 10_f64.powf(step.log10().floor());
    let within = [1.0, 2.0, 2.5, 5.0].into_iter().find(|n| n * decade >= step * (1.0 - 1e-9));
    within.unwrap_or(10.0) * decade
}

/// An axis never names more values than this, whatever its ends are.
const TICKS_MAX: i64 = 100;

#[cfg(test)]
mod tests;
