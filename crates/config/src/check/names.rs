//! Names by which one thing of a configuration speaks of another, and names that repeat.

use std::collections::HashMap;

use crate::diagnostic::Help;
use crate::located::Located;
use crate::nearest::closest;
use crate::read::Reader;

/// The names of all things of one kind, such as `backend`. There may be ten thousand.
pub(super) struct Names<'c> {
    what: &'static str,
    all: Vec<&'c str>,
    numbers: HashMap<&'c str, usize>,
    /// The number of names mistyped ones are still compared with.
    compared_left: usize,
}

impl<'c> Names<'c> {
    pub(super) fn of(what: &'static str, names: impl Iterator<Item = &'c Located<String>>) -> Self {
        let all: Vec<&str> = names.map(|name| name.value.as_str()).collect();
        let mut numbers = HashMap::new();
        for (number, name) in all.iter().enumerate() {
            numbers.entry(*name).or_insert(number);
        }
        Self { what, all, numbers, compared_left: COMPARED_MAX }
    }

    /// The number of the first that has this name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    /// Records that something is spoken of that is not there.
    pub(super) fn check(&mut self, named: &Located<String>, reader: &mut Reader<'_>) {
        if self.find(named).is_none() && named.at.is_written() {
            let what = self.what;
            let message = format!("no [[{what}]] is named \"{named}\"");
            let add = || format!("add [[{what}]] with name = \"{named}\"");
            let help = self.guess(named).unwrap_or_else(|| Help::act(add()));
            reader.report_located(named, message, help);
        }
    }

    /// The name that a mistyped one may stand for. If much is mistyped, nobody reads the last guesses.
    pub(super) fn guess(&mut self, written: &str) -> Option<Help> {
        Some(Help::write(format!("\"{}\"", self.nearest(written)?)))
    }

    pub(super) fn nearest(&mut self, written: &str) -> Option<&'c str> {
        self.compared_left = self.compared_left.checked_sub(self.all.len())?;
        closest(written, &self.all)
    }
}

/// Records the names that stand twice.
pub(super) fn find_repeated<'n>(
    names: impl Iterator<Item = &'n Located<String>>,
    what: &str,
    reader: &mut Reader<'_>,
) {
    let mut first: HashMap<&str, usize> = HashMap::new();
    for name in names.filter(|name| name.at.is_written()) {
        match first.get(name.value.as_str()) {
            Some(line) => {
                let message =
                    format!("the {what} on {} is named \"{name}\" already", reader.line(*line));
                let help = Help::act("write another name for one of both");
                reader.report_located(name, message, help);
            }
            None => _ = first.insert(&name.value, name.at.line),
        }
    }
}

/// Ten guesses among ten thousand names take a tenth of a second.
const COMPARED_MAX: usize = 100_000;
