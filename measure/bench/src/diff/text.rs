//! A comparison as a table for a terminal of 100 columns.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Diff, DiffRow};
use crate::figure::Figure;
use crate::number::{counted, digits_of, grouped};
use crate::results::{Clock, place};
use crate::stats::comparison::{Interval, Verdict};

/// The table: for each subject and point its figures, the worst change first. A figure that is neither better nor worse is
/// shown only if `all` is asked for.
pub fn render(diff: &Diff, all: bool) -> String {
    let mut text = String::new();
    if diff.clock == Clock::Work {
        text += "Counted work under an emulator: instructions, not time.\n";
    }
    for (number, difference) in diff.circumstances.iter().enumerate() {
        let lead = if number == 0 { "Differs" } else { "" };
        text += &cut(&format!("{lead:<9}{difference}"), COLUMNS);
        text.push('\n');
    }
    let shown: Vec<&DiffRow> = diff
        .rows
        .iter()
        .filter(|row| all || matches!(row.verdict, Verdict::Better | Verdict::Worse))
        .collect();
    for (heading, rows) in by_heading(&shown) {
        let _ = write!(text, "\n{}\n", cut(&heading, COLUMNS));
        for row in rows {
            text += &line(row);
        }
    }
    let _ = write!(text, "\n{}", summary(diff, all));
    text
}

/// The rows below their headings, these in the order of their first rows: the subject with the worst change comes first.
fn by_heading<'a>(rows: &[&'a DiffRow]) -> Vec<(String, Vec<&'a DiffRow>)> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut groups: Vec<(String, Vec<&DiffRow>)> = Vec::new();
    for row in rows {
        let heading = heading(row);
        let place = *places.entry(heading.clone()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((heading, vec![row])),
        }
    }
    groups
}

fn heading(row: &DiffRow) -> String {
    let mut words = vec![row.scenario.clone(), row.subject.clone()];
    if !row.part.is_empty() {
        words.push(row.part.clone());
    }
    if !row.point.is_empty() {
        words.push(place(&row.point));
    }
    words.join(" · ")
}

fn line(row: &DiffRow) -> String {
    let verdict = match row.verdict {
        Verdict::Worse => "worse",
        Verdict::Better => "better",
        Verdict::Undecided => "undecided",
        Verdict::Same => "same",
    };
    let doubt = if row.doubtful > 0 { "!" } else { "" };
    let verdict = format!("{verdict}{doubt}");
    let change = row.change.map(|change| percent(change.middle)).unwrap_or_default();
    let interval = row.change.map(interval).unwrap_or_default();
    let a = number(row.a);
    let b = number(row.b);
    let also = if row.also.is_empty() { "" } else { " (and in other units)" };
    let figure = format!("{}{also}", label(row.figure));
    let line = format!("  {verdict:<10} {change:>9} {interval:>17} {a:>9} → {b:<9} {figure}");
    format!("{}\n", cut(line.trim_end(), COLUMNS))
}

/// Labels that go on from the one before say nothing alone; the name does.
fn label(figure: &Figure) -> String {
    let goes_on = figure.label.starts_with(char::is_lowercase);
    let label = if goes_on { figure.name } else { figure.label };
    if figure.unit.is_empty() || goes_on {
        label.to_owned()
    } else {
        format!("{label}, {}", figure.unit)
    }
}

fn percent(part: f64) -> String {
    if part >= FACTOR_FROM {
        return format!("×{}", number(1.0 + part));
    }
    format!("{:+.1} %", 100.0 * part).replace('-', "−")
}

fn interval(change: Interval) -> String {
    let Interval { middle, low, high } = change;
    if low == high {
        return String::new();
    }
    if middle >= FACTOR_FROM {
        return format!("×{} … ×{}", number(1.0 + low), number(1.0 + high));
    }
    format!("{:+.1} … {:+.1}", 100.0 * low, 100.0 * high).replace('-', "−")
}

fn summary(diff: &Diff, all: bool) -> String {
    let count = |verdict| diff.count(verdict);
    let mut text = format!("{} worse, {} better", count(Verdict::Worse), count(Verdict::Better));
    let undecided = count(Verdict::Undecided);
    let same = count(Verdict::Same);
    if undecided > 0 || diff.clock == Clock::Time {
        let _ = write!(text, ", {undecided} undecided");
    }
    if same > 0 || diff.clock == Clock::Work {
        let _ = write!(text, ", {same} without a difference");
    }
    let is_hidden = !all && undecided + same > 0;
    text += if is_hidden { " (--all shows them).\n" } else { ".\n" };
    let lacking = diff.rows.iter().filter(|row| row.lacks_rounds()).count();
    if diff.clock == Clock::Time && lacking > 0 {
        let reason = "With fewer than 3 rounds on a side, undecided whatever they show";
        let _ = writeln!(text, "{reason}: {lacking}. `--rounds 3` is the least.");
    }
    text += &advice(diff);
    let by_chance: f64 = match diff.clock {
        Clock::Work => 0.0,
        Clock::Time => {
            let decided = diff.rows.iter().filter(|row| !row.lacks_rounds());
            decided.map(|row| 1.0 - row.confidence).sum()
        }
    };
    if by_chance >= 1.0 {
        let _ = writeln!(
            text,
            "With so many figures, about {by_chance:.0} look decided by chance alone."
        );
    }
    if diff.rows.iter().any(|row| row.doubtful > 0) {
        text += "! marks figures with samples that carry warnings, such as a neighbour at work.\n";
    }
    for (count, which) in [(diff.only_a, "first"), (diff.only_b, "second")] {
        if count > 0 {
            let _ = writeln!(
                text,
                "In the {which} file only: {}.",
                counted(count, "figure", "figures").replace('\u{a0}', " ")
            );
        }
    }
    text
}

/// The number of rounds that would decide what is open.
fn advice(diff: &Diff) -> String {
    let open = || diff.rows.iter().filter(|row| row.verdict == Verdict::Undecided);
    let mut needed: Vec<u32> = open().filter_map(|row| row.rounds_to_decide).collect();
    needed.retain(|rounds| *rounds <= ROUNDS_WORTHWHILE);
    needed.sort_unstable();
    let (Some(half), Some(all)) = (needed.get(needed.len().saturating_sub(1) / 2), needed.last())
    else {
        return match diff.clock == Clock::Time && open().next().is_some() {
            true => {
                format!("What is undecided is too alike for {ROUNDS_WORTHWHILE} rounds to tell.\n")
            }
            false => String::new(),
        };
    };
    let decided = needed.len();
    let alike = open().count() - needed.len();
    let mut text = match half == all {
        true => format!("If further rounds are like these, --rounds {all} decides {decided}"),
        false => format!(
            "If further rounds are like these, --rounds {half} decides {} of what is open, --rounds {all} {decided}",
            needed.iter().filter(|rounds| *rounds <= half).count()
        ),
    };
    if alike > 0 {
        let _ = write!(text, "; {alike} are too alike for {ROUNDS_WORTHWHILE}");
    }
    text + ".\n"
}

/// Four digits that matter, in at most nine characters: `8,123`, `0.01234`, `72.40 M`.
fn number(value: f64) -> String {
    let (scaled, suffix) = match value.abs() {
        0.0 => return "0".to_owned(),
        size if !(0.001..1e13).contains(&size) => return format!("{value:.2e}"),
        size if size >= 1e10 => (value / 1e9, " G"),
        size if size >= 1e7 => (value / 1e6, " M"),
        _ => (value, ""),
    };
    let is_whole = scaled.fract() == 0.0;
    let text = if is_whole { grouped(&format!("{scaled:.0}")) } else { digits_of(scaled, 4) };
    format!("{text}{suffix}").replace('−', "-")
}

fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(columns.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// More rounds than this are not worth their time.
const ROUNDS_WORTHWHILE: u32 = 100;
/// Changes of this part and more are told as factors.
const FACTOR_FROM: f64 = 4.0;
const COLUMNS: usize = 100;

#[cfg(test)]
mod tests;
