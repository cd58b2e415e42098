//! What a chart shows, in one computed sentence: who needs least, where curves cross, how near one stays to the best.

use super::axis::Axis;
use super::number;
use super::plot::{Curve, Point};
use super::sampling::Samples;
use crate::figure::{self, Better};
use crate::stats::Estimate;
use crate::stats::comparison::SAMPLES_MIN;

/// From where on a ratio stays below one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Crossing {
    /// Everywhere.
    Always,
    /// From here on.
    From(f64),
    /// Not even at the right end.
    Never,
}

/// From where on the points stay below one; between two points along the straight line on a logarithmic axis.
#[must_use]
pub fn crossing(points: &[Point]) -> Crossing {
    let Some(last_above) = points.iter().rposition(|point| point.middle >= 1.0) else {
        return if points.is_empty() { Crossing::Never } else { Crossing::Always };
    };
    match (points.get(last_above), points.get(last_above + 1)) {
        (Some(above), Some(below)) => {
            let share = (above.middle - 1.0) / (above.middle - below.middle);
            Crossing::From(above.x * (below.x / above.x).powf(share))
        }
        _ => Crossing::Never,
    }
}

/// The best value of any of the curves at each place that all of them have.
#[must_use]
pub fn envelope(curves: &[&Curve]) -> Vec<(f64, f64)> {
    let Some(first) = curves.first() else { return Vec::new() };
    let best_at = |x: f64| {
        let values = curves.iter().map(|curve| value_at(curve, x));
        values
            .collect::<Option<Vec<f64>>>()
            .map(|all| all.into_iter().fold(f64::INFINITY, f64::min))
    };
    first.points.iter().filter_map(|point| Some((point.x, best_at(point.x)?))).collect()
}

/// How near a curve stays to the best: `within 3 % of the best path at every size`, or where it does not.
#[must_use]
pub fn nearness(curve: &Curve, best: &[(f64, f64)], x: &Axis) -> Option<String> {
    let excess: Vec<(f64, f64)> = best
        .iter()
        .filter_map(|(at, best)| Some((*at, value_at(curve, *at)? / best - 1.0)))
        .collect();
    let far: Vec<&(f64, f64)> = excess.iter().filter(|(_, over)| *over > NEAR).collect();
    let near = excess.iter().map(|(_, over)| *over).filter(|over| *over <= NEAR);
    let bound = (near.fold(0.0, f64::max) * 100.0).ceil().max(1.0) / 100.0;
    let within = format!("within {}", number::joined(&format!("{:.0}", bound * 100.0), "%"));
    let exception =
        |(at, over): &&(f64, f64)| format!("{} (+{})", x.exactly(*at), number::percent(*over));
    match far.len() {
        _ if excess.is_empty() => None,
        0 => Some(format!("stays {within} of the best path at every size")),
        n if n == excess.len() => Some("is dearer than the best path at every size".to_owned()),
        n if n * 2 <= excess.len() => {
            let names: Vec<String> = far.iter().map(exception).collect();
            Some(format!("stays {within} of the best path at every size but {}", joined(&names)))
        }
        n => Some(format!(
            "is near the best path at only {} of {} sizes",
            excess.len() - n,
            excess.len()
        )),
    }
}

/// Who has the best median of a figure, or of the sum of several, and how far the next is behind.
#[must_use]
pub fn best_of(samples: &Samples, names: &[&str]) -> Option<String> {
    let name = *names.first()?;
    let figure = figure::find(name)?;
    let is_higher = figure.better == Better::Higher;
    let mut judged: Vec<(&str, Estimate)> = samples
        .subjects()
        .into_iter()
        .filter(|subject| !subject.ends_with(" plain"))
        .filter_map(|subject| Some((subject, samples.subject(subject).estimate_of_sum(names)?)))
        .collect();
    judged.sort_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
    if is_higher {
        judged.reverse();
    }
    let (best, value) = judged.first()?;
    let axis = Axis::of_figure(name);
    let amount = axis.exactly(value.median);
    let place = format!("{} is {}", figure.label, if is_higher { "highest" } else { "lowest" });
    let Some((next, other)) = judged.get(1) else {
        return Some(format!("{best}: {amount}."));
    };
    let is_behind = |other: &Estimate| match is_higher {
        true => other.is_surely_below(value),
        false => value.is_surely_below(other),
    };
    if value.samples.min(other.samples) < SAMPLES_MIN {
        return Some(format!("{place} with {best}, {amount}; too few rounds to be sure."));
    }
    if is_behind(other) {
        let gap = other.median / value.median;
        let far = match is_higher {
            _ if !gap.is_finite() => axis.exactly(other.median),
            true => format!("{} less", number::percent(1.0 - gap)),
            false if gap >= 2.0 => format!("{} times as much", number::digits_of(gap, 2)),
            false => format!("{} more", number::percent(gap - 1.0)),
        };
        return Some(format!("{place} with {best}: {amount}. {next} follows with {far}."));
    }
    if judged.iter().all(|(_, other)| !is_behind(other)) && judged.len() > 2 {
        return Some(format!(
            "{} is the same for all, about {amount}, as far as this run can tell.",
            figure.label
        ));
    }
    let equal = judged.iter().filter(|(_, other)| !is_behind(other));
    let equal: Vec<String> = equal.map(|(subject, _)| (*subject).to_owned()).collect();
    let equal = joined(&equal);
    Some(format!("{place} with {equal}, about {amount}; their intervals overlap."))
}

/// `a`, `a and b`, `a, b and c`.
#[must_use]
pub fn joined(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// The value of a curve at one of its points.
#[must_use]
pub fn value_at(curve: &Curve, x: f64) -> Option<f64> {
    curve.points.iter().find(|point| point.x == x).map(|point| point.middle)
}

/// What counts as the same as the best.
const NEAR: f64 = 0.05;

#[cfg(test)]
mod tests;
