//! Curves over an axis, in one panel or several above each other that share it.

use super::axis::Axis;
use super::canvas::{Anchor, Canvas, Drawing, Room, text_width};
use super::legend;
use super::scale::{Scale, ScaleKind};
use super::style::Style;

#[derive(Clone, Debug)]
pub struct Plot {
    pub x: Axis,
    /// From top to bottom.
    pub panels: Vec<Panel>,
    /// Places on the axis worth naming.
    pub marks: Vec<Mark>,
}

#[derive(Clone, Debug)]
pub struct Panel {
    pub y: Axis,
    /// The curves, the most important first.
    pub curves: Vec<Curve>,
    /// Values worth a line across.
    pub guides: Vec<(f64, String)>,
    /// A broad band below the curves: the best there is.
    pub envelope: Vec<(f64, f64)>,
}

#[derive(Clone, Debug)]
pub struct Curve {
    pub name: String,
    pub style: Style,
    /// From left to right.
    pub points: Vec<PlotPoint>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlotPoint {
    pub x: f64,
    pub low: f64,
    pub middle: f64,
    pub high: f64,
}

#[derive(Clone, Debug)]
pub struct Mark {
    pub x: f64,
    pub label: String,
    /// The colour of what it belongs to.
    pub style: Style,
}

#[derive(Clone, Copy)]
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Plot {
    pub fn new(x: Axis, panels: Vec<Panel>) -> Self {
        Self { x, panels, marks: Vec::new() }
    }

    pub fn draw(&self, room: Room) -> Drawing {
        let width = room.width();
        let mut canvas = Canvas::new();
        let panel_height = self.panel_height(room);
        let labels = if room.is_wide() { self.labels_width() } else { 0.0 };
        let right = width - labels - 12.0;
        let left = self.ticks_width(panel_height) + 10.0;
        let x_ends = self.x.range(self.xs());
        let x = Scale::new(self.x.kind, x_ends, (left + 8.0, right - 8.0));
        let mut y = 0.0;
        let mut legend_before: Vec<(String, Style)> = Vec::new();
        for (index, panel) in self.panels.iter().enumerate() {
            let entries: Vec<(String, Style)> =
                panel.curves.iter().map(|curve| (curve.name.clone(), curve.style)).collect();
            if !room.is_wide() && entries != legend_before {
                y += legend::draw(&mut canvas, &entries, (0.0, y), width);
                legend_before = entries;
            }
            let marks = if index == 0 { self.marks_height() } else { 0.0 };
            let top = y + 26.0 + marks;
            let frame = Frame { left, right, top, bottom: top + panel_height };
            self.draw_marks(&mut canvas, &x, frame, index == 0);
            self.draw_panel(&mut canvas, panel, &x, frame, room);
            y = frame.bottom + 12.0;
        }
        let foot = Frame { left, right, top: y, bottom: y };
        self.draw_x_axis(&mut canvas, &x, x_ends, foot);
        canvas.finish(width, y + 36.0)
    }

    fn panel_height(&self, room: Room) -> f64 {
        match (room, self.panels.len()) {
            (Room::Narrow, 1) => 200.0,
            (Room::Narrow, _) => 130.0,
            (_, 1) => 260.0,
            _ => 170.0,
        }
    }

    fn marks_height(&self) -> f64 {
        let count = self.marks.len() as f64;
        if count > 0.0 { count * 16.0 + 6.0 } else { 0.0 }
    }

    fn xs(&self) -> impl Iterator<Item = f64> {
        let curves = self.panels.iter().flat_map(|panel| &panel.curves);
        curves.flat_map(|curve| curve.points.iter().map(|point| point.x))
    }

    fn labels_width(&self) -> f64 {
        let names = self.panels.iter().flat_map(|panel| &panel.curves);
        names.map(|curve| text_width(&curve.name, LABEL)).fold(0.0, f64::max) + 10.0
    }

    fn ticks_width(&self, height: f64) -> f64 {
        let widths = self.panels.iter().flat_map(|panel| {
            let (scale, ends) = panel.scale((height, 0.0));
            let ticks = panel.y.ticks(&scale, ends, ticks_most(height));
            let names = ticks.into_iter().chain(panel.guides.iter().cloned());
            names.map(|(_, name)| text_width(&name, TICK))
        });
        widths.fold(0.0, f64::max)
    }

    fn draw_x_axis(&self, canvas: &mut Canvas, x: &Scale, ends: (f64, f64), frame: Frame) {
        let widest = if self.x.unit == "B" { 62.0 } else { 52.0 };
        let most = ((frame.right - frame.left) / widest) as usize;
        let mut free = f64::NEG_INFINITY;
        for (value, name) in self.x.ticks(x, ends, most) {
            let at = x.at(value);
            let half = text_width(&name, TICK) / 2.0;
            // A name at the right end may not hang over.
            let at = at.min(frame.right + 12.0 - half);
            if at - half >= free {
                canvas.text("tick", (at, frame.top + 4.0), Anchor::Middle, &name);
                free = at + half + 4.0;
            }
        }
        let caption = self.x.caption(ends.1);
        canvas.text("axis", (frame.right, frame.top + 26.0), Anchor::End, &caption);
    }

    fn draw_marks(&self, canvas: &mut Canvas, x: &Scale, frame: Frame, is_named: bool) {
        for (index, mark) in self.marks.iter().enumerate() {
            let at = x.at(mark.x);
            let top = frame.top - self.marks_height() + index as f64 * 16.0;
            let from = if is_named { top } else { frame.top };
            canvas.group(&format!("m {}", mark.style.colour), |canvas| {
                canvas.line("mark", (at, from), (at, frame.bottom));
                if is_named {
                    let width = text_width(&mark.label, LABEL);
                    let is_right = at + width + 8.0 < frame.right;
                    let place = if is_right { at + 5.0 } else { (at - 5.0 - width).max(0.0) };
                    canvas.text("note halo", (place, top + 8.0), Anchor::Start, &mark.label);
                }
            });
        }
    }

    fn draw_panel(&self, canvas: &mut Canvas, panel: &Panel, x: &Scale, frame: Frame, room: Room) {
        let (y, ends) = panel.scale((frame.bottom, frame.top));
        let height = frame.bottom - frame.top;
        for (value, name) in panel.y.ticks(&y, ends, ticks_most(height)) {
            let at = y.at(value);
            canvas.line("grid", (frame.left, at), (frame.right, at));
            let is_free = |(value, label): &(f64, String)| {
                label.is_empty() || (y.at(*value) - at).abs() > TICK * 1.5
            };
            if panel.guides.iter().all(is_free) {
                canvas.text("tick", (frame.left - 7.0, at + 4.0), Anchor::End, &name);
            }
        }
        let caption = (0.0, frame.top - 12.0 - self.caption_lift(panel));
        canvas.text("axis", caption, Anchor::Start, &panel.y.caption(ends.1));
        for (value, label) in &panel.guides {
            let at = y.at(*value);
            canvas.line("guide", (frame.left, at), (frame.right, at));
            canvas.text("tick", (frame.left - 7.0, at + 4.0), Anchor::End, label);
        }
        canvas.line("base", (frame.left, frame.bottom), (frame.right, frame.bottom));
        let envelope: Vec<_> = panel.envelope.iter().map(|(a, b)| (x.at(*a), y.at(*b))).collect();
        if envelope.len() > 1 {
            canvas.polyline("envelope", &envelope);
        }
        // The first is painted last and lies on top.
        for curve in panel.curves.iter().rev() {
            canvas.series(curve.style, |canvas| self.draw_curve(canvas, panel, curve, x, &y));
        }
        if room.is_wide() {
            let ends = panel.curves.iter().filter_map(|curve| {
                let last = curve.drawable(&panel.y).last()?;
                Some((curve.name.clone(), curve.style, (x.at(last.x), y.at(last.middle))))
            });
            legend::beside(canvas, ends.collect(), frame.right, (frame.top, frame.bottom));
        }
    }

    fn caption_lift(&self, panel: &Panel) -> f64 {
        let is_first = self.panels.first().is_some_and(|first| std::ptr::eq(first, panel));
        if is_first { self.marks_height() } else { 0.0 }
    }

    fn draw_curve(&self, canvas: &mut Canvas, panel: &Panel, curve: &Curve, x: &Scale, y: &Scale) {
        let place = |point: &PlotPoint| (x.at(point.x), y.at(point.middle));
        let points: Vec<PlotPoint> = curve.drawable(&panel.y).copied().collect();
        let is_sparse = points.len() <= MARKED_MAX;
        let has_width = |point: &&PlotPoint| y.at(point.low) - y.at(point.high) > 1.0;
        if is_sparse {
            for point in points.iter().filter(has_width) {
                let at = x.at(point.x);
                canvas.line("whisker", (at, y.at(point.low)), (at, y.at(point.high)));
            }
        } else if points.iter().any(|point| has_width(&point)) {
            let upper = points.iter().map(|point| (x.at(point.x), y.at(point.high)));
            let lower = points.iter().rev().map(|point| (x.at(point.x), y.at(point.low)));
            canvas.polygon("spread", &upper.chain(lower).collect::<Vec<_>>());
        }
        canvas.polyline("line", &points.iter().map(place).collect::<Vec<_>>());
        for point in &points {
            if is_sparse {
                canvas.marker(curve.style.marker, place(point));
            }
            let title = format!(
                "{}: {} {}",
                curve.name,
                panel.y.exactly(point.middle),
                self.x.place(point.x)
            );
            canvas.circle("hit", place(point), 8.0, &title);
        }
    }
}

impl Panel {
    pub fn new(y: Axis, curves: Vec<Curve>) -> Self {
        Self { y, curves, guides: Vec::new(), envelope: Vec::new() }
    }

    fn scale(&self, places: (f64, f64)) -> (Scale, (f64, f64)) {
        let curves = self.curves.iter().flat_map(|curve| &curve.points);
        let values = curves.flat_map(|point| [point.low, point.middle, point.high]);
        let guides = self.guides.iter().map(|(value, _)| *value);
        let ends = self.y.roomy(self.y.range(values.chain(guides)));
        (Scale::new(self.y.kind, ends, places), ends)
    }
}

impl Curve {
    /// Its points as far as the axis can show them.
    fn drawable<'a>(&'a self, y: &'a Axis) -> impl Iterator<Item = &'a PlotPoint> {
        self.points.iter().filter(|point| {
            point.x.is_finite()
                && point.middle.is_finite()
                && (y.kind == ScaleKind::Linear || point.middle > 0.0)
        })
    }
}

fn ticks_most(height: f64) -> usize {
    (height / 27.0) as usize
}

/// With more points than this a curve has no markers, and a band in place of whiskers.
const MARKED_MAX: usize = 16;
const LABEL: f64 = 12.5;
const TICK: f64 = 12.0;
