//! Writing HTML and SVG such that no text can become markup: tags and names of attributes are literals, all else is escaped.

use std::fmt::Write;

/// Markup under construction.
#[derive(Clone, Debug, Default)]
pub struct Markup(String);

pub type Attributes<'a> = &'a [(&'static str, &'a str)];

impl Markup {
    pub fn new() -> Self {
        Self::default()
    }

    /// Markup of our own, as it is.
    pub fn raw(&mut self, literal: &'static str) {
        self.0.push_str(literal);
    }

    pub fn open(&mut self, tag: &'static str, attributes: Attributes) {
        self.tag(tag, attributes, ">");
    }

    pub fn close(&mut self, tag: &'static str) {
        // Writing to a string cannot fail.
        _ = write!(self.0, "</{tag}>");
    }

    /// An element without content.
    pub fn empty(&mut self, tag: &'static str, attributes: Attributes) {
        self.tag(tag, attributes, "/>");
    }

    pub fn text(&mut self, text: &str) {
        self.escape(text);
    }

    /// An element with nothing but text in it.
    pub fn element(&mut self, tag: &'static str, attributes: Attributes, text: &str) {
        self.open(tag, attributes);
        self.escape(text);
        self.close(tag);
    }

    /// An element with a text of which parts stand between backticks, as in Markdown: those are code.
    pub fn prose(&mut self, tag: &'static str, text: &str) {
        self.open(tag, &[]);
        for (index, part) in text.split('`').enumerate() {
            match index % 2 {
                0 => self.escape(part),
                _ => self.element("code", &[], part),
            }
        }
        self.close(tag);
    }

    pub fn append(&mut self, other: &Markup) {
        self.0.push_str(&other.0);
    }

    pub fn into_string(self) -> String {
        self.0
    }

    fn tag(&mut self, tag: &'static str, attributes: Attributes, end: &'static str) {
        _ = write!(self.0, "<{tag}");
        for (name, value) in attributes {
            _ = write!(self.0, " {name}=\"");
            self.escape(value);
            self.0.push('"');
        }
        self.0.push_str(end);
    }

    fn escape(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\n' | '\t' => self.0.push(character),
                // XML 1.0 has no way to write these at all.
                '\u{0}'..='\u{1f}' | '\u{7f}' | '\u{fffe}' | '\u{ffff}' => {
                    self.0.push(char::REPLACEMENT_CHARACTER);
                }
                other => self.0.push(other),
            }
        }
    }
}

#[cfg(test)]
mod tests;
