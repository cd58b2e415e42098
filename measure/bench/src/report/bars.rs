//! Bars in groups, whole or in parts, with intervals and their values written beside them.

use super::axis::Axis;
use super::canvas::{Anchor, Canvas, Drawing, Room, fitted, text_width, wrapped};
use super::scale::Scale;
use super::style::Style;

#[derive(Clone, Debug)]
pub struct Bars {
    /// The meaning of their lengths.
    pub axis: Axis,
    /// From top to bottom.
    pub groups: Vec<Group>,
    /// The names of the parts of each bar, from the left; empty for bars in one piece.
    pub parts: Vec<String>,
    /// Which part's end the written value is: the last, or the first where later parts are only more of the same.
    pub value_is_first: bool,
}

#[derive(Clone, Debug)]
pub struct Group {
    /// The heading, empty if there is only one group.
    pub label: String,
    /// From top to bottom.
    pub bars: Vec<Bar>,
}

#[derive(Clone, Debug)]
pub struct Bar {
    pub label: String,
    pub style: Style,
    /// The ends of the parts, from left to right.
    pub ends: Vec<f64>,
    pub interval: (f64, f64),
}

impl Bar {
    fn whole(&self) -> f64 {
        self.ends.last().copied().unwrap_or(0.0)
    }
}

impl Bars {
    pub fn draw(&self, room: Room) -> Drawing {
        let width = room.width();
        let bars = || self.groups.iter().flat_map(|group| &group.bars);
        let longest = bars().map(|bar| bar.whole().max(bar.interval.1)).fold(0.0, f64::max);
        let longest = if longest > 0.0 { longest } else { 1.0 };
        let widest =
            |texts: &mut dyn Iterator<Item = f64>| texts.fold(0.0, f64::max).min(width * 0.4);
        let values = widest(&mut bars().map(|bar| text_width(&self.value(bar), SIZE))) + 10.0;
        let labels = widest(&mut bars().map(|bar| text_width(&bar.label, SIZE))) + 12.0;
        let left = if room.is_wide() { labels } else { 0.0 };
        let x = Scale::new(self.axis.kind, (0.0, longest), (left, width - values));
        let mut canvas = Canvas::new();
        canvas.text("axis", (0.0, 14.0), Anchor::Start, &self.axis.caption(longest));
        let mut y = 24.0 + self.draw_parts(&mut canvas, 24.0, width);
        for group in &self.groups {
            if !group.label.is_empty() {
                for line in wrapped(&group.label, HEADING, width) {
                    canvas.text("group", (0.0, y + 16.0), Anchor::Start, &line);
                    y += 18.0;
                }
                y += 6.0;
            }
            let top = y;
            for bar in &group.bars {
                if !room.is_wide() {
                    canvas.text("label", (0.0, y + 13.0), Anchor::Start, &bar.label);
                    y += 18.0;
                }
                self.draw_bar(&mut canvas, bar, &x, (left, y), room);
                y += if room.is_wide() { 24.0 } else { 22.0 };
            }
            // Without room the labels stand where the line would be.
            if room.is_wide() {
                canvas.line("base", (left, top), (left, y));
            }
            y += 8.0;
        }
        canvas.finish(width, y)
    }

    fn draw_bar(&self, canvas: &mut Canvas, bar: &Bar, x: &Scale, at: (f64, f64), room: Room) {
        let (left, y) = at;
        let height = if room.is_wide() { 16.0 } else { 13.0 };
        let middle = y + height / 2.0;
        canvas.series(bar.style, |canvas| {
            if room.is_wide() {
                let name = fitted(&bar.label, SIZE, left);
                canvas.text("label", (left - 9.0, middle + 4.5), Anchor::End, &name);
            }
            let mut from = left;
            for (index, end) in bar.ends.iter().enumerate() {
                let to = x.at(*end).max(from);
                let part = self.parts.get(index).map(String::as_str).unwrap_or_default();
                let title = self.spoken(bar, index, part);
                canvas.rectangle(PARTS[index.min(2)], (from, y), (to - from, height), &title);
                from = to;
            }
            let low = x.at(bar.interval.0);
            let high = x.at(bar.interval.1);
            if high - low > 1.0 {
                canvas.line("error", (low, middle), (high, middle));
                canvas.line("error", (low, middle - 3.0), (low, middle + 3.0));
                canvas.line("error", (high, middle - 3.0), (high, middle + 3.0));
            }
            let place = (from.max(high) + 7.0, middle + 4.5);
            canvas.text("value", place, Anchor::Start, &self.value(bar));
        });
    }

    /// `nginx: 14.7 KiB in the process`; for a later part of a sum, the whole too.
    fn spoken(&self, bar: &Bar, index: usize, part: &str) -> String {
        let end = bar.ends.get(index).copied().unwrap_or(0.0);
        let before = index.checked_sub(1).and_then(|before| bar.ends.get(before));
        let before = before.copied().filter(|_| !self.value_is_first).unwrap_or(0.0);
        let own = self.axis.exactly(end - before);
        let part = if part.is_empty() { String::new() } else { format!(" {part}") };
        if before > 0.0 {
            format!("{}: {own}{part}, {} in all", bar.label, self.axis.exactly(end))
        } else {
            format!("{}: {own}{part}", bar.label)
        }
    }

    fn value(&self, bar: &Bar) -> String {
        let shown = if self.value_is_first { bar.ends.first() } else { bar.ends.last() };
        self.axis.exactly(shown.copied().unwrap_or(0.0))
    }

    fn draw_parts(&self, canvas: &mut Canvas, top: f64, width: f64) -> f64 {
        let mut x = 0.0;
        let mut y = top;
        for (index, part) in self.parts.iter().enumerate() {
            let needed = 20.0 + text_width(part, SIZE);
            if x > 0.0 && x + needed > width {
                (x, y) = (0.0, y + 19.0);
            }
            canvas.group("c-other", |canvas| {
                canvas.rectangle(PARTS[index.min(2)], (x, y), (13.0, 13.0), "");
            });
            canvas.text("label plain", (x + 19.0, y + 11.0), Anchor::Start, part);
            x += needed + 14.0;
        }
        if self.parts.is_empty() { 0.0 } else { y - top + 24.0 }
    }
}

const PARTS: [&str; 3] = ["bar first", "bar second", "bar third"];
const SIZE: f64 = 12.5;
/// Of a heading whose letters are bold, and as wide as those of this size.
const HEADING: f64 = 15.1;
