//! The findings of a run, for the terminal: a few tables, and kettle beside each other server in a sentence. The page has all
//! of it.

mod spread;
mod verdict;

use std::fmt::Write;

use super::SCENARIOS;
use crate::figure::{self, Figure};
use crate::results::read::Results;
use crate::results::{DOUBTED, Point, Sample, distinct, place};
use crate::stats::Estimate;

/// Tables of the figures that answer each scenario's question: medians with half their interval; where there is one point and
/// enough rounds, how they are spread. The last of the figures decides.
pub fn text(results: &Results) -> String {
    let mut text = String::new();
    for scenario in SCENARIOS {
        // The parts of a sample, and what prepared the others, are in the file.
        let is_shown = |sample: &&Sample| matches!(sample.part.as_str(), "" | "summary");
        let samples: Vec<&Sample> = results.of_scenario(scenario.name).filter(is_shown).collect();
        let figures = || scenario.headline.iter().filter_map(|name| figure::find(name));
        for figure in figures() {
            let table = spread::table(&samples, figure).unwrap_or_else(|| table(&samples, figure));
            if !table.is_empty() {
                let _ = writeln!(text, "\n{}: {}", scenario.name, figure.label);
                text += &render(&table);
            }
        }
        text += &again(results, scenario.name);
        if let Some(figure) = figures().next_back() {
            text += &verdict::text(&samples, figure);
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Rows of cells; the first row is the head.
type Table = Vec<Vec<String>>;

/// The number of samples that were implausible and were measured again. A ramp says of its own
/// steps why it repeats them.
fn again(results: &Results, scenario: &str) -> String {
    let is_implausible =
        |sample: &&Sample| sample.part == DOUBTED && !sample.point.contains_key("rate");
    match results.of_scenario(scenario).filter(is_implausible).count() {
        0 => String::new(),
        1 => "One sample could not be (neither side was busy) and was measured again.\n".to_owned(),
        count => format!(
            "{count} samples could not be (neither side was busy) and were measured again.\n"
        ),
    }
}

fn table(samples: &[&Sample], figure: &Figure) -> Table {
    let (subjects, points) = places(samples, figure);
    if subjects.is_empty() {
        return Table::new();
    }
    let cell_of = |subject: &str, point: &Point| {
        let estimate = Estimate::of(&values(samples, figure, subject, point));
        estimate.map_or_else(|| "–".to_owned(), |estimate| cell(&estimate, figure))
    };
    let mut head = vec![String::new()];
    let mut table = Table::new();
    // A terminal has more room downwards.
    if points.len() > subjects.len() {
        head.extend(subjects.iter().map(|subject| (*subject).to_owned()));
        table.push(head);
        table.extend(points.iter().map(|point| {
            let cells = subjects.iter().map(|subject| cell_of(subject, point));
            std::iter::once(place(&differing(point, &points))).chain(cells).collect()
        }));
    } else {
        head.extend(points.iter().map(|point| place(&differing(point, &points))));
        table.push(head);
        table.extend(subjects.iter().map(|subject| {
            let cells = points.iter().map(|point| cell_of(subject, point));
            std::iter::once((*subject).to_owned()).chain(cells).collect()
        }));
    }
    table
}

/// The subjects and the points that have a figure, in the order of samples.
fn places<'s>(samples: &[&'s Sample], figure: &Figure) -> (Vec<&'s str>, Vec<&'s Point>) {
    let with = || samples.iter().filter(|sample| sample.figures.contains_key(figure.name));
    let subjects = distinct(with().map(|sample| sample.subject.as_str()));
    (subjects, distinct(with().map(|sample| &sample.point)))
}

fn values(samples: &[&Sample], figure: &Figure, subject: &str, point: &Point) -> Vec<f64> {
    let of_cell = samples.iter().filter(|it| it.subject == subject && it.point == *point);
    of_cell.filter_map(|it| it.figures.get(figure.name).copied()).collect()
}

/// The axes of a point on which the points differ.
fn differing(point: &Point, points: &[&Point]) -> Point {
    let differs = |axis: &str| points.iter().any(|other| other.get(axis) != point.get(axis));
    let axes = point.iter().filter(|(axis, _)| points.len() == 1 || differs(axis));
    axes.map(|(axis, value)| (axis.clone(), value.clone())).collect()
}

/// The median and how far it may be off; of two rounds, which have no such thing, both.
fn cell(estimate: &Estimate, figure: &Figure) -> String {
    let Estimate { median, low, high, samples, .. } = *estimate;
    match samples {
        1 => figure.in_words(median),
        _ if low == high => figure.in_words(median),
        2 => format!("{} to {}", figure.in_words(low), figure.in_words(high)),
        _ => format!("{} ±{:.0}%", figure.in_words(median), estimate.spread() * 100.0),
    }
}

fn render(table: &Table) -> String {
    let columns = table.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = table.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in table {
        let mut line = String::from("  ");
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 => write!(line, "{cell:<width$}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Value;

    pub(super) fn sample(subject: &str, size: f64, value: f64) -> Sample {
        Sample {
            scenario: "web-sizes".to_owned(),
            subject: subject.to_owned(),
            point: Point::from([("size".to_owned(), Value::Number(size))]),
            round: 0,
            figures: [("requests_per_second".to_owned(), value)].into(),
            ..Sample::default()
        }
    }

    #[test]
    fn a_table_has_a_row_for_each_subject_and_a_column_for_each_point() {
        let results = Results {
            samples: vec![
                sample("kettle auto", 1024.0, 1000.0),
                sample("nginx user", 1024.0, 900.0),
                sample("kettle auto", 65536.0, 50.0),
                sample("kettle auto", 1024.0, 1010.0),
            ],
            ..Results::default()
        };
        let text = text(&results);
        let lines: Vec<_> = text.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(
            lines,
            [
                "web-sizes: Requests",
                "                            1 KiB  64 KiB",
                "  kettle auto  1,000/s to 1,010/s  50.0/s",
                "  nginx user                900/s       –",
            ]
        );
    }

    #[test]
    fn a_run_without_another_server_says_how_to_have_one() {
        let mut sample = sample("kettle auto", 1024.0, 1000.0);
        sample.figures.insert("cpu_ns_per_request".to_owned(), 27_000.0);
        let samples = vec![sample];
        let text = text(&Results { samples, ..Results::default() });
        assert!(text.contains("no other server was measured; `kettle bench list`"), "{text}");
    }

    #[test]
    fn three_rounds_have_an_interval_and_what_was_measured_again_is_counted() {
        let mut results = Results::default();
        for value in [26_000.0, 27_100.0, 28_000.0] {
            let mut sample = sample("kettle user", 1024.0, 1.0);
            sample.figures.insert("cpu_ns_per_request".to_owned(), value);
            results.samples.push(sample);
        }
        results
            .samples
            .push(Sample { part: DOUBTED.to_owned(), ..sample("kettle user", 1024.0, 9.0) });
        let text = text(&results);
        assert!(text.contains("27.1 µs ±4%"), "{text}");
        assert!(text.contains("One sample could not be"), "{text}");
    }

    #[test]
    fn nothing_measured_is_no_table() {
        assert_eq!(text(&Results::default()), "");
    }
}
