//! Every round of every subject as a dot, with the median and its interval.

use super::axis::Axis;
use super::canvas::{Anchor, Canvas, Drawing, Room, fitted, text_width};
use super::scale::Scale;
use super::style::Style;
use crate::stats::Estimate;

#[derive(Clone, Debug)]
pub struct Dots {
    /// The meaning of their places.
    pub axis: Axis,
    /// From top to bottom.
    pub rows: Vec<DotRow>,
}

#[derive(Clone, Debug)]
pub struct DotRow {
    pub label: String,
    pub style: Style,
    /// A value of each round.
    pub values: Vec<f64>,
    pub estimate: Estimate,
}

impl Dots {
    pub fn draw(&self, room: Room) -> Drawing {
        let width = room.width();
        let ends = self.axis.range(self.rows.iter().flat_map(|row| row.values.iter().copied()));
        let widest = |texts: &mut dyn Iterator<Item = String>| {
            texts.map(|text| text_width(&text, SIZE)).fold(0.0, f64::max)
        };
        let labels = widest(&mut self.rows.iter().map(|row| row.label.clone()));
        let values = widest(&mut self.rows.iter().map(|row| self.value(row)));
        let (left, right) = match room {
            Room::Narrow => (6.0, width - 6.0),
            _ => (labels.min(width * 0.4) + 14.0, width - values - 14.0),
        };
        let ends = self.axis.roomy(ends);
        let x = Scale::new(self.axis.kind, ends, (left, right));
        let row_height = if room.is_wide() { 34.0 } else { 52.0 };
        let top = 26.0;
        let bottom = top + row_height * self.rows.len() as f64;
        let mut canvas = Canvas::new();
        canvas.text("axis", (0.0, 14.0), Anchor::Start, &self.axis.caption(ends.1));
        for (value, name) in self.axis.ticks(&x, ends, ((right - left) / 58.0) as usize) {
            canvas.line("grid", (x.at(value), top), (x.at(value), bottom));
            canvas.text("tick", (x.at(value), bottom + 17.0), Anchor::Middle, &name);
        }
        for (index, row) in self.rows.iter().enumerate() {
            let y = top + row_height * index as f64;
            canvas
                .series(row.style, |canvas| self.draw_row(canvas, row, &x, y, (left, width), room));
        }
        canvas.line("base", (left, bottom), (right, bottom));
        canvas.finish(width, bottom + 24.0)
    }

    fn draw_row(
        &self,
        canvas: &mut Canvas,
        row: &DotRow,
        x: &Scale,
        top: f64,
        (left, width): (f64, f64),
        room: Room,
    ) {
        let middle = if room.is_wide() {
            let middle = top + 17.0;
            let label = fitted(&row.label, SIZE, left);
            canvas.text("label", (left - 11.0, middle + 4.5), Anchor::End, &label);
            canvas.text("value", (width, middle + 4.5), Anchor::End, &self.value(row));
            middle
        } else {
            canvas.text("label", (0.0, top + 15.0), Anchor::Start, &row.label);
            canvas.text("value", (width, top + 15.0), Anchor::End, &self.value(row));
            top + 35.0
        };
        let low = x.at(row.estimate.low);
        let high = x.at(row.estimate.high);
        canvas.rectangle("interval", (low, middle - 9.0), ((high - low).max(2.0), 18.0), "");
        for (round, value) in row.values.iter().enumerate() {
            let title =
                format!("{}, round {}: {}", row.label, round + 1, self.axis.exactly(*value));
            canvas.circle("round", (x.at(*value), middle + jitter(round)), 2.6, &title);
        }
        let at = x.at(row.estimate.median);
        canvas.line("median", (at, middle - 11.0), (at, middle + 11.0));
    }

    fn value(&self, row: &DotRow) -> String {
        self.axis.exactly(row.estimate.median)
    }
}

/// Spreads the dots of a row so that equal values stay visible; the same for each drawing.
fn jitter(round: usize) -> f64 {
    (round as f64 * GOLDEN).fract() * 13.0 - 6.5
}

const GOLDEN: f64 = 0.618_033_988_749_895;
const SIZE: f64 = 12.5;
