//! An axis of a chart: what it shows, in which unit, and what its values are called.

use super::number;
use super::scale::{Scale, ScaleKind};

#[derive(Clone, Debug)]
pub struct Axis {
    pub label: String,
    /// The unit of its values; `×` for ratios.
    pub unit: String,
    pub kind: ScaleKind,
    /// Values that have names of their own; then no others are named.
    pub named: Vec<(f64, String)>,
    /// Values that must be on it.
    pub includes: Vec<f64>,
}

impl Axis {
    pub fn new(label: impl Into<String>, unit: impl Into<String>, kind: ScaleKind) -> Self {
        let label = label.into();
        let unit = unit.into();
        Self { label, unit, kind, named: Vec::new(), includes: Vec::new() }
    }

    /// An even axis that begins at zero.
    pub fn from_zero(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { includes: vec![0.0], ..Self::new(label, unit, ScaleKind::Linear) }
    }

    /// The axis of a point by its name in results: sizes by powers of two, all others evenly.
    pub fn of_point(name: &str) -> Self {
        let known = crate::figure::axis(name);
        let label = known.map_or(name, |axis| axis.label);
        let unit = known.map_or("", |axis| axis.unit);
        let kind = if unit == "B" { ScaleKind::Log2 } else { ScaleKind::Linear };
        Self::new(label, unit, kind)
    }

    /// The axis of a figure by its name in results, from zero.
    pub fn of_figure(name: &str) -> Self {
        let known = crate::figure::find(name);
        Self::from_zero(known.map_or(name, |f| f.label), known.map_or("", |f| f.unit))
    }

    /// The same, divided by ratios.
    pub fn by_ratios(mut self) -> Self {
        self.kind = ScaleKind::Log10;
        self.includes.clear();
        self
    }

    /// The ends of an axis that shows all these values.
    pub fn range(&self, values: impl Iterator<Item = f64>) -> (f64, f64) {
        let usable =
            |value: &f64| value.is_finite() && (self.kind == ScaleKind::Linear || *value > 0.0);
        let ends =
            values.chain(self.includes.iter().copied()).filter(usable).fold(None, |ends, value| {
                match ends {
                    None => Some((value, value)),
                    Some((low, high)) => Some((value.min(low), value.max(high))),
                }
            });
        ends.unwrap_or((1.0, 2.0))
    }

    /// The ends moved out a little, so that nothing lies on the edge.
    pub fn roomy(&self, (low, high): (f64, f64)) -> (f64, f64) {
        match self.kind {
            ScaleKind::Linear => {
                let air = (high - low) * 0.06;
                let is_floor = self.includes.contains(&low);
                (if is_floor { low } else { low - air }, high + air)
            }
            _ => {
                let air = (high / low).powf(0.06).max(1.03);
                (low / air, high * air)
            }
        }
    }

    /// The label with the unit its values are named in.
    pub fn caption(&self, high: f64) -> String {
        match self.common_unit(high) {
            "" => self.label.clone(),
            "1/s" => format!("{}, per second", self.label),
            unit => format!("{}, {unit}", self.label),
        }
    }

    /// The values that are named, with their names; about `most` at most.
    pub fn ticks(&self, scale: &Scale, (low, high): (f64, f64), most: usize) -> Vec<(f64, String)> {
        if self.named.is_empty() {
            let ticks = scale.ticks(most).into_iter();
            return ticks.map(|value| (value, self.name(value, high))).collect();
        }
        let within = |(value, _): &&(f64, String)| (low..=high * 1.001).contains(value);
        self.named.iter().filter(within).cloned().collect()
    }

    /// Returns the name of a value where the reader wants it exactly.
    pub fn exactly(&self, value: f64) -> String {
        match self.unit.as_str() {
            "×" => format!("{}×", number::digits(value)),
            "1/s" => format!("{}/s", number::digits(value)),
            "B" if value % number::KIB == 0.0 => self.roughly(value),
            // Of what, the axis says.
            unit if unit.starts_with('%') => number::quantity(value, "%"),
            unit => number::quantity(value, unit),
        }
    }

    /// Returns where a point lies, in words: `at the 55th percentile`, `for 64 KiB`, `at 1,600/s`.
    pub fn place(&self, value: f64) -> String {
        if self.label == PERCENTILE {
            return format!("at the {} percentile", ordinal(value));
        }
        if let Some((_, name)) = self.named.iter().find(|(known, _)| *known == value) {
            return format!("at {name}");
        }
        let exactly = self.exactly(value);
        match self.unit.as_str() {
            "B" => format!("for {exactly}"),
            "" => format!("at {} {exactly}", self.label.to_lowercase()),
            _ => format!("at {exactly}"),
        }
    }

    /// Returns the name of a value where only its size matters.
    pub fn roughly(&self, value: f64) -> String {
        let (divisor, unit) = number::fitting(&self.unit, value);
        let text = number::digits_of(value / divisor, if value >= 100.0 * divisor { 3 } else { 2 });
        number::joined(text.strip_suffix(".0").unwrap_or(&text), unit)
    }

    fn name(&self, value: f64, high: f64) -> String {
        if self.unit == "×" {
            return format!("{}×", number::short(value));
        }
        if self.unit == "1/s" || self.unit.is_empty() {
            return number::thousands(value);
        }
        if self.names_units() {
            let (divisor, unit) = number::fitting(&self.unit, value);
            return number::joined(&number::short(value / divisor), unit);
        }
        number::short(value / number::fitting(&self.unit, high).0)
    }

    /// True if each value on the axis has a unit of its own, because one for all would not do.
    fn names_units(&self) -> bool {
        self.kind != ScaleKind::Linear && matches!(self.unit.as_str(), "B" | "ns" | "µs")
    }

    fn common_unit(&self, high: f64) -> &str {
        if self.names_units() || self.unit == "×" {
            return "";
        }
        number::fitting(&self.unit, high).1
    }
}

/// The axis of latencies; its values tell how many requests there are to one that waits longer.
pub const PERCENTILE: &str = "Percentile";

/// `55th`, `99.9th`: the percentile that one request of `of` is above.
fn ordinal(of: f64) -> String {
    let percent = 100.0 * (1.0 - 1.0 / of);
    let decimals = ((of.log10() - 2.0).ceil().max(0.0)) as usize;
    let text = format!("{percent:.decimals$}");
    let teens = ["11", "12", "13"].iter().any(|teen| text == *teen);
    let ending = match text.chars().last() {
        Some('1') if !teens => "st",
        Some('2') if !teens => "nd",
        Some('3') if !teens => "rd",
        _ => "th",
    };
    text + ending
}

#[cfg(test)]
mod tests;
