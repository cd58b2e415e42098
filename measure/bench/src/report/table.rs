//! The numbers of a chart as a table.

use super::markup::Markup;

/// A table: what stands left is text, the rest numbers.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub head: Vec<String>,
    /// As long as the head.
    pub rows: Vec<Vec<String>>,
    /// The number of columns from the left that are text.
    pub words: usize,
}

impl Table {
    pub fn new(words: usize, head: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { head: head.into_iter().map(Into::into).collect(), rows: Vec::new(), words }
    }

    pub fn push(&mut self, row: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(row.into_iter().map(Into::into).collect());
    }

    /// Writes it, in a box that scrolls sideways by itself.
    pub fn write(&self, page: &mut Markup) {
        page.raw("<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>");
        for (column, head) in self.head.iter().enumerate() {
            page.element("th", &[("scope", "col"), ("class", self.class(column))], head);
        }
        page.raw("</tr></thead><tbody>");
        for row in &self.rows {
            page.raw("<tr>");
            for (column, cell) in row.iter().enumerate() {
                if column == 0 {
                    page.element("th", &[("scope", "row")], cell);
                } else {
                    page.element("td", &[("class", self.class(column))], cell);
                }
            }
            page.raw("</tr>");
        }
        page.raw("</tbody></table></div>");
    }

    fn class(&self, column: usize) -> &'static str {
        if column < self.words { "word" } else { "number" }
    }
}
