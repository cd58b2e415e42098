//! A drawing under construction: SVG shapes at places in CSS pixels.

use super::markup::{Attributes, Markup};
use super::style::{Marker, Style};

#[derive(Clone, Debug)]
pub struct Drawing {
    pub width: f64,
    pub height: f64,
    pub content: Markup,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// A phone, or a small panel among many.
    Narrow,
    /// One of two columns of a page.
    Half,
    /// The whole width of a page.
    Full,
}

impl Room {
    pub fn width(self) -> f64 {
        match self {
            Room::Narrow => 344.0,
            Room::Half => 544.0,
            Room::Full => 1120.0,
        }
    }

    /// True if labels stand beside what they name; else above it.
    pub fn is_wide(self) -> bool {
        self != Room::Narrow
    }
}

/// Which end of a text its place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// Shapes are added in the order in which they are painted.
#[derive(Debug, Default)]
pub struct Canvas(Markup);

impl Canvas {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn finish(self, width: f64, height: f64) -> Drawing {
        Drawing { width, height, content: self.0 }
    }

    /// Shapes drawn inside share the classes.
    pub fn group(&mut self, class: &str, draw: impl FnOnce(&mut Canvas)) {
        self.0.open("g", &[("class", class)]);
        draw(self);
        self.0.close("g");
    }

    /// Shapes drawn inside look like this and fade when another such group is pointed at.
    pub fn series(&mut self, style: Style, draw: impl FnOnce(&mut Canvas)) {
        self.group(&format!("s {} {}", style.colour, style.stroke), draw);
    }

    pub fn line(&mut self, class: &'static str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(px);
        let ends = [("class", class), ("x1", &x1), ("y1", &y1), ("x2", &x2), ("y2", &y2)];
        self.0.empty("line", &ends);
    }

    pub fn polyline(&mut self, class: &'static str, points: &[(f64, f64)]) {
        self.0.empty("polyline", &[("class", class), ("points", &places(points))]);
    }

    /// An area around which the points go.
    pub fn polygon(&mut self, class: &'static str, points: &[(f64, f64)]) {
        self.0.empty("polygon", &[("class", class), ("points", &places(points))]);
    }

    /// A rectangle; its title is shown when it is pointed at.
    pub fn rectangle(
        &mut self,
        class: &'static str,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        title: &str,
    ) {
        let [x, y, width, height] = [x, y, width.max(0.0), height].map(px);
        let place = [("x", &*x), ("y", &y), ("width", &width), ("height", &height)];
        self.titled("rect", class, &place, title);
    }

    pub fn text(&mut self, class: &'static str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let [x, y] = [x, y].map(px);
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let place = [("class", class), ("x", &x), ("y", &y), ("text-anchor", anchor)];
        self.0.element("text", &place, text);
    }

    pub fn marker(&mut self, marker: Marker, (x, y): (f64, f64)) {
        match marker {
            Marker::None => {}
            Marker::Circle => self.circle("dot", (x, y), 3.6, ""),
            Marker::Square => self.rectangle("dot", (x - 3.3, y - 3.3), (6.6, 6.6), ""),
            Marker::Triangle => {
                self.polygon("dot", &[(x, y - 4.4), (x + 4.2, y + 3.2), (x - 4.2, y + 3.2)]);
            }
            Marker::Diamond => {
                self.polygon("dot", &[(x, y - 4.6), (x + 4.6, y), (x, y + 4.6), (x - 4.6, y)]);
            }
        }
    }

    /// A circle; its title is shown when it is pointed at.
    pub fn circle(&mut self, class: &'static str, (x, y): (f64, f64), radius: f64, title: &str) {
        let [x, y, radius] = [x, y, radius].map(px);
        self.titled("circle", class, &[("cx", &x), ("cy", &y), ("r", &radius)], title);
    }

    fn titled(&mut self, tag: &'static str, class: &str, place: Attributes, title: &str) {
        self.0.open(tag, &[&[("class", class)][..], place].concat());
        if !title.is_empty() {
            self.0.element("title", &[], title);
        }
        self.0.close(tag);
    }
}

/// Returns the width of a text is at most, at a font size: no fonts are known here, so each letter counts as in a wide one.
pub fn text_width(text: &str, size: f64) -> f64 {
    let letters = text.chars().map(|letter| match letter {
        'i' | 'j' | 'l' | '.' | ',' | ':' | '\'' | '|' | '!' | ' ' | '\u{a0}' => 0.34,
        'f' | 't' | 'r' | '(' | ')' | '-' | '/' | 'I' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '–' => 0.92,
        'A'..='Z' => 0.70,
        _ => 0.62,
    });
    letters.sum::<f64>() * size
}

/// The text in lines that fit, broken between words.
pub fn wrapped(text: &str, size: f64, width: f64) -> Vec<String> {
    let together = |line: &str, word: &str| text_width(line, size) + text_width(word, size);
    wrapped_by(text, |line, word| together(line, word) + size / 3.0 <= width)
}

/// The text in lines, each with as many words as still fit.
pub fn wrapped_by(text: &str, fits: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if fits(line, word) => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The text, shortened if it has to be.
pub fn fitted(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut short = text.to_owned();
    while !short.is_empty() && text_width(&short, size) + size > width {
        short.pop();
    }
    short.push('…');
    short
}

/// A place, to a tenth of a pixel.
pub fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn places(points: &[(f64, f64)]) -> String {
    let each: Vec<String> = points.iter().map(|(x, y)| format!("{},{}", px(*x), px(*y))).collect();
    each.join(" ")
}
