//! The table of what became of the files, with its sums.

use std::collections::BTreeMap;

use super::Source;
use super::trial::{Outcome, Tried};

#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
    missing: Vec<String>,
    lost: BTreeMap<String, usize>,
}

#[derive(Clone, Default)]
struct Row {
    name: String,
    files: usize,
    taken: usize,
    imported: usize,
    checked: usize,
    started: usize,
    places: usize,
    carried: usize,
}

impl Table {
    /// Counts a source that is out of reach.
    pub fn missing(&mut self, source: &Source) {
        self.missing.push(source.source.clone());
    }

    /// Counts a file, and tells why it did not start.
    pub fn add(&mut self, source: &Source, file: &str, outcome: Outcome) {
        let name = &source.source;
        let row = match self.rows.iter_mut().find(|row| row.name == *name) {
            Some(row) => row,
            None => {
                self.rows.push(Row { name: name.clone(), ..Row::default() });
                let Some(row) = self.rows.last_mut() else { return };
                row
            }
        };
        row.files += 1;
        let tried = match outcome {
            Outcome::Refused(why) => {
                println!("{name} {file}: nginx: {why}");
                return;
            }
            Outcome::Tried(tried) => tried,
        };
        let Tried { is_imported, is_checked, is_started, places, carried, lost, why } = tried;
        row.taken += 1;
        row.imported += usize::from(is_imported);
        row.checked += usize::from(is_checked);
        row.started += usize::from(is_started);
        row.places += places;
        row.carried += carried;
        if !is_started {
            println!("{name} {file}: kettle: {why}");
        }
        let mut lost = lost;
        lost.sort();
        lost.dedup();
        for directive in lost {
            *self.lost.entry(directive).or_default() += 1;
        }
    }

    /// Prints all of it. Of what nginx takes the rest is a part.
    pub fn print(&self) {
        println!(
            "\n| source | files | nginx takes | imported | checked | started | places | carried over |"
        );
        println!("|---|--:|--:|--:|--:|--:|--:|--:|");
        let mut sum = Row { name: "**all**".to_owned(), ..Row::default() };
        for row in &self.rows {
            row.print(false);
            sum.files += row.files;
            sum.taken += row.taken;
            sum.imported += row.imported;
            sum.checked += row.checked;
            sum.started += row.started;
            sum.places += row.places;
            sum.carried += row.carried;
        }
        sum.print(true);
        let mut lost: Vec<(&String, &usize)> = self.lost.iter().collect();
        lost.sort_by_key(|(_, files)| std::cmp::Reverse(**files));
        println!("\n| places are closed because of | in files |\n|---|--:|");
        for (directive, files) in lost.into_iter().take(LOST_MAX) {
            println!("| `{directive}` | {files} |");
        }
        if !self.missing.is_empty() {
            println!("\nout of reach: {}", self.missing.join(", "));
        }
    }
}

impl Row {
    fn print(&self, is_sum: bool) {
        let Self { name, files, taken, imported, checked, started, places, carried } = self;
        let part = |count: &usize, of: &usize| match is_sum && *of > 0 {
            true => format!("{count} ({} %)", count * 100 / of),
            false => count.to_string(),
        };
        println!(
            "| {name} | {files} | {} | {} | {} | {} | {places} | {} |",
            part(taken, files),
            part(imported, taken),
            part(checked, taken),
            part(started, taken),
            part(carried, places)
        );
    }
}

/// The most frequent ones.
const LOST_MAX: usize = 25;
