//! The meaning of a chart, in one computed sentence: the subject that needs least, and where curves cross.

mod compared;

pub use compared::compared;

use super::plot::{Curve, PlotPoint};

/// From where on the points stay below one; between two points along the straight line on a logarithmic axis. `None` where all of
/// them do, or not even the last.
pub fn crossing(points: &[PlotPoint]) -> Option<f64> {
    let last_above = points.iter().rposition(|point| point.middle >= 1.0)?;
    let above = points.get(last_above)?;
    let below = points.get(last_above + 1)?;
    let share = (above.middle - 1.0) / (above.middle - below.middle);
    Some(above.x * (below.x / above.x).powf(share))
}

/// The best value of any of the curves at each place that all of them have.
pub fn envelope(curves: &[&Curve]) -> Vec<(f64, f64)> {
    let Some(first) = curves.first() else { return Vec::new() };
    let best_at = |x: f64| {
        let here = |curve: &&Curve| Some(curve.points.iter().find(|point| point.x == x)?.middle);
        let all: Option<Vec<f64>> = curves.iter().map(here).collect();
        all.map(|all| all.into_iter().fold(f64::INFINITY, f64::min))
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

#[cfg(test)]
mod tests;
