//! The meaning of a chart, in one computed sentence: the subject that needs least, and where curves cross.

mod compared;

pub use compared::compared;

use super::plot::{Curve, PlotPoint};

/// From where on a ratio stays below one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Crossing {
    Always,
    /// From here on.
    From(f64),
    /// Not even at the right end.
    Never,
}

/// From where on the points stay below one; between two points along the straight line on a logarithmic axis.
pub fn crossing(points: &[PlotPoint]) -> Crossing {
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

/// `a`, `a and b`, `a, b and c`.
pub fn joined(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// The value of a curve at one of its points.
fn value_at(curve: &Curve, x: f64) -> Option<f64> {
    curve.points.iter().find(|point| point.x == x).map(|point| point.middle)
}

#[cfg(test)]
mod tests;
