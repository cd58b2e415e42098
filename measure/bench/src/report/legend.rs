//! The names of the curves of a chart are called: beside their ends where there is room, else in rows above.

use super::canvas::{Anchor, Canvas, text_width};
use super::style::Style;

/// Rows of samples and names above a chart; how high they are.
pub fn draw(
    canvas: &mut Canvas,
    entries: &[(String, Style)],
    (left, top): (f64, f64),
    width: f64,
) -> f64 {
    let mut x = left;
    let mut y = top + 12.0;
    for (name, style) in entries {
        let needed = SAMPLE + 6.0 + text_width(name, SIZE);
        if x > left && x + needed > left + width {
            (x, y) = (left, y + ROW);
        }
        canvas.series(*style, |canvas| {
            canvas.line("line", (x, y - 4.0), (x + SAMPLE, y - 4.0));
            canvas.marker(style.marker, (x + SAMPLE / 2.0, y - 4.0));
            canvas.text("label", (x + SAMPLE + 6.0, y), Anchor::Start, name);
        });
        x += needed + 14.0;
    }
    if entries.is_empty() { 0.0 } else { y - top + 10.0 }
}

/// Names to the right of where the curves end, moved apart where they would overlap. A line leads to a name that is far from its curve.
pub fn beside(
    canvas: &mut Canvas,
    mut ends: Vec<(String, Style, (f64, f64))>,
    x: f64,
    (top, bottom): (f64, f64),
) {
    ends.sort_by(|(_, _, (_, a)), (_, _, (_, b))| a.total_cmp(b));
    let wanted: Vec<f64> = ends.iter().map(|(_, _, (_, y))| *y).collect();
    for ((name, style, (end, wanted)), y) in ends.into_iter().zip(apart(&wanted, top, bottom)) {
        canvas.series(style, |canvas| {
            if (y - wanted).abs() > 3.0 || x - end > FAR {
                let bend = (x - 6.0, wanted);
                canvas.polyline("leader", &[(end + 2.0, wanted), bend, (x + 2.0, y), (x + 6.0, y)]);
            }
            canvas.text("label", (x + 8.0, y + 4.0), Anchor::Start, &name);
        });
    }
}

/// Heights at least a row apart, as near as may be to those wanted, which are in order.
fn apart(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut placed: Vec<f64> = Vec::with_capacity(wanted.len());
    for y in wanted {
        let after = placed.last().map_or(top, |before| before + APART);
        placed.push(y.max(after));
    }
    let mut limit = bottom;
    for y in placed.iter_mut().rev() {
        *y = y.min(limit);
        limit = *y - APART;
    }
    placed
}

const SAMPLE: f64 = 26.0;
const SIZE: f64 = 12.5;
const ROW: f64 = 19.0;
const APART: f64 = 15.0;
const FAR: f64 = 60.0;

#[cfg(test)]
mod tests;
