//! A chart with the question it answers, what it found, and its numbers as a table.

use super::bars::Bars;
use super::canvas::{Anchor, Canvas, Drawing, Room, wrapped};
use super::dots::Dots;
use super::markup::{Attributes, Markup};
use super::plot::Plot;
use super::table::Table;
use super::theme;

#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// Its name in addresses and file names: letters, digits and hyphens.
    pub name: String,
    pub question: String,
    /// The conclusion, computed; empty if nothing can be said.
    pub conclusion: String,
    /// The findings, where that is more than a sentence.
    pub answers: Table,
    /// The panels, where a question has several drawings: one key size, one way of resuming.
    pub panels: Vec<Part>,
    /// True if it takes the whole width of the page, with its parts side by side, and not a column of two.
    pub is_wide: bool,
    /// A word on how to read it, where that is not plain.
    pub note: String,
    pub table: Table,
}

/// One drawing of a chart.
#[derive(Clone, Debug)]
pub struct Part {
    /// The heading it and its neighbours stand under, empty where there is none.
    pub group: String,
    /// The label of the content, empty where there is only one.
    pub label: String,
    pub picture: Picture,
}

#[derive(Clone, Debug)]
pub enum Picture {
    Plot(Plot),
    Bars(Bars),
    Dots(Dots),
}

impl Part {
    /// A drawing under no heading of its own.
    pub fn new(label: impl Into<String>, picture: Picture) -> Self {
        Self { group: String::new(), label: label.into(), picture }
    }

    pub fn title(&self) -> String {
        let words = [self.label.as_str(), self.group.as_str()];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

impl Picture {
    pub fn draw(&self, room: Room) -> Drawing {
        match self {
            Picture::Plot(plot) => plot.draw(room),
            Picture::Bars(bars) => bars.draw(room),
            Picture::Dots(dots) => dots.draw(room),
        }
    }

    /// True if there is something in it, and not all of it is 0.
    pub fn has_values(&self) -> bool {
        self.values().into_iter().any(|value| value != 0.0)
    }

    fn values(&self) -> Vec<f64> {
        match self {
            Picture::Plot(plot) => {
                let curves = plot.panels.iter().flat_map(|panel| &panel.curves);
                curves.flat_map(|curve| curve.points.iter().map(|point| point.middle)).collect()
            }
            Picture::Bars(bars) => {
                let bars = bars.groups.iter().flat_map(|group| &group.bars);
                bars.flat_map(|bar| bar.ends.iter().copied()).collect()
            }
            Picture::Dots(dots) => {
                dots.rows.iter().flat_map(|row| row.values.iter().copied()).collect()
            }
        }
    }
}

impl Chart {
    /// A chart of those of the drawings that show anything. One takes a column, several take the whole width.
    pub fn new(
        name: impl Into<String>,
        question: impl Into<String>,
        mut panels: Vec<Part>,
    ) -> Self {
        panels.retain(|part| !part.picture.values().is_empty());
        let is_wide = panels.len() > 1;
        Self { name: name.into(), question: question.into(), panels, is_wide, ..Self::default() }
    }

    /// The chart as a file of its own; `caption` says where its numbers come from.
    pub fn to_svg(&self, caption: &str) -> String {
        let room = if self.panels.len() > 1 { Room::Narrow } else { Room::Half };
        let columns = if self.panels.len() > 1 { self.panels.len().min(3) } else { 1 };
        let width = columns as f64 * (room.width() + GAP) - GAP;
        let mut head = Canvas::new();
        let mut y = 22.0;
        for (class, size, text) in [
            ("title", 19.0, &self.question),
            ("finding", 14.5, &self.conclusion),
            ("axis", 13.0, &self.note),
        ] {
            for line in wrapped(text, size, width).iter().filter(|line| !line.is_empty()) {
                head.text(class, (0.0, y), Anchor::Start, line);
                y += size * 1.4;
            }
            y += 3.0;
        }
        let mut body = Markup::new();
        let groups = self.panels.chunk_by(|a, b| a.group == b.group);
        for row in groups.flat_map(|group| group.chunks(columns)) {
            y += draw_row(&mut body, row, room, y);
        }
        let mut foot = Canvas::new();
        for line in wrapped(caption, 11.5, width) {
            foot.text("tick", (0.0, y + 8.0), Anchor::Start, &line);
            y += 16.0;
        }
        let mut sheet = Markup::new();
        sheet.open("g", &[("transform", &format!("translate({EDGE:.0} {EDGE:.0})"))]);
        for part in [head.finish(0.0, 0.0).content, body, foot.finish(0.0, 0.0).content] {
            sheet.append(&part);
        }
        sheet.close("g");
        standing_alone(&sheet, (width + 2.0 * EDGE, y + 2.0 * EDGE), &self.question)
    }
}

/// A picture as a file of its own; `label` says what it shows.
pub fn standing_alone(content: &Markup, (width, height): (f64, f64), label: &str) -> String {
    let mut inside = Markup::new();
    theme::chart_style(&mut inside);
    let [wide, high] = [width, height].map(|length| format!("{length:.0}"));
    inside.empty("rect", &[("class", "paper"), ("width", &wide), ("height", &high)]);
    inside.append(content);
    let mut svg = Markup::new();
    let namespace = ("xmlns", "http://www.w3.org/2000/svg");
    write_svg(&mut svg, &[namespace, ("class", "chart")], (width, height), label, &inside);
    svg.into_string()
}

/// Writes a picture with what is in it; `label` says what it shows.
pub fn write_svg(
    out: &mut Markup,
    first: Attributes,
    (width, height): (f64, f64),
    label: &str,
    content: &Markup,
) {
    let [width, height] = [width, height].map(|length| format!("{length:.0}"));
    let view = format!("0 0 {width} {height}");
    let size = [("width", &*width), ("height", &height), ("viewBox", &view)];
    out.open("svg", &[first, &size, &[("role", "img"), ("aria-label", label)]].concat());
    out.append(content);
    out.close("svg");
}

/// Drawings side by side; how high they are.
fn draw_row(body: &mut Markup, row: &[Part], room: Room, y: f64) -> f64 {
    let mut height: f64 = 0.0;
    for (column, part) in row.iter().enumerate() {
        let drawing = part.picture.draw(room);
        let x = column as f64 * (room.width() + GAP);
        let title = part.title();
        let mut label = Canvas::new();
        label.text("group", (0.0, 16.0), Anchor::Start, &title);
        let lift = if title.is_empty() { 0.0 } else { 26.0 };
        body.open("g", &[("transform", &format!("translate({x:.0} {y:.0})"))]);
        body.append(&label.finish(0.0, 0.0).content);
        body.open("g", &[("transform", &format!("translate(0 {lift:.0})"))]);
        body.append(&drawing.content);
        body.close("g");
        body.close("g");
        height = height.max(drawing.height + lift + 18.0);
    }
    height
}

const GAP: f64 = 36.0;
const EDGE: f64 = 20.0;
