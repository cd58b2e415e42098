//! The text of a kettle.toml as it grows, with the place each line came from.

use std::fmt::Display;

use kettle_config::{Diagnostic, Origin, Origins};

/// Lines and their origins.
#[derive(Default)]
pub(crate) struct TomlText {
    text: String,
    origins: Vec<Option<Origin>>,
}

impl TomlText {
    pub(crate) fn line(&mut self, text: impl Display, origin: Option<&Origin>) {
        let text = text.to_string();
        // One line is one entry, whatever a file had in it.
        self.text.extend(text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }));
        self.text.push('\n');
        self.origins.push(origin.cloned());
    }

    /// Adds `key = value`, whose value is TOML already.
    pub(crate) fn set(&mut self, key: &str, value: impl Display, origin: Option<&Origin>) {
        self.line(format_args!("{key} = {value}"), origin);
    }

    /// Adds a table's header after an empty line.
    pub(crate) fn table(&mut self, header: &str, origin: Option<&Origin>) {
        self.line("", None);
        self.line(header, origin);
    }

    /// Takes the header of the last table away again if nothing follows it.
    pub(crate) fn end_table(&mut self) {
        let is_empty = self.text.lines().next_back().is_some_and(|line| line.starts_with('['));
        let mut lines = self.text.trim_end_matches('\n').rsplitn(3, '\n');
        if is_empty && let (Some(_), Some(""), before) = (lines.next(), lines.next(), lines.next())
        {
            let bytes = before.map_or(0, |before| before.len() + 1);
            self.text.truncate(bytes);
            self.origins.truncate(self.origins.len().saturating_sub(2));
        }
    }

    pub(crate) fn comment(&mut self, text: impl Display) {
        self.line(format_args!("# {text}"), None);
    }

    /// Adds what was not carried over as a comment with its place.
    pub(crate) fn remark(&mut self, diagnostic: &Diagnostic) {
        self.comment(remark_line(diagnostic));
    }

    pub(crate) fn append(&mut self, other: Self) {
        self.text.push_str(&other.text);
        self.origins.extend(other.origins);
    }

    /// True if this stands somewhere.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.text.contains(text)
    }

    /// The text and where its lines came from.
    pub(crate) fn finish(self) -> (String, Origins) {
        (self.text, Origins::new(self.origins))
    }
}

/// Writes a part that was not carried over, with its place, in one line.
pub(crate) fn remark_line(diagnostic: &Diagnostic) -> String {
    let place = match diagnostic.line {
        0 => String::new(),
        line => format!("{}:{line}: ", diagnostic.path.display()),
    };
    let help = diagnostic.help.iter().map(|help| format!("; {help}"));
    format!("{place}{}{}", diagnostic.message, help.collect::<String>())
}
