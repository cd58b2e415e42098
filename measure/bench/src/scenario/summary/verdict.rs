//! The last words of a run: kettle beside each other server, a ratio with its interval for each point, and a sentence.

use std::fmt::Write;

use super::{Table, differing, places, render, values};
use crate::figure::Figure;
use crate::number::digits;
use crate::peers::subject::OURS;
use crate::results::{Point, Sample, place};
use crate::stats::comparison::{Comparison, Interval, SAMPLES_MIN, Verdict, rounds_to_decide};

/// The tables and sentences; where only kettle was measured, how to have another beside it.
pub(super) fn text(samples: &[&Sample], figure: &Figure) -> String {
    let (subjects, points) = places(samples, figure);
    let is_ours = |subject: &&str| subject.starts_with("kettle");
    let own = OURS.iter().copied().find(|own| subjects.contains(own));
    let Some(own) = own.or_else(|| subjects.iter().copied().find(|subject| is_ours(subject)))
    else {
        return String::new();
    };
    let peers = subjects.iter().filter(|subject| !is_ours(subject) && !subject.ends_with(" plain"));
    let text: String = peers.map(|peer| beside(samples, figure, &points, (own, peer))).collect();
    if subjects.iter().all(is_ours) { NO_PEER.to_owned() } else { text }
}

const NO_PEER: &str =
    "\nVerdict: none, no other server was measured; `kettle bench list` names those that can be.\n";

struct Row {
    place: String,
    ratio: Interval,
    verdict: Verdict,
    rounds: usize,
    rounds_to_decide: Option<u32>,
}

fn beside(
    samples: &[&Sample],
    figure: &Figure,
    points: &[&Point],
    (own, peer): (&str, &str),
) -> String {
    let rows = rows(samples, figure, points, (own, peer));
    if rows.is_empty() {
        return String::new();
    }
    let label = spoken(figure);
    let mut text = format!("\n{own} beside {peer}, {label}:\n");
    let mut table: Table = rows.iter().map(line).collect();
    let width = table.iter().filter_map(|line| line.last()).map(|cell| cell.chars().count()).max();
    // Words begin below each other, numbers end so.
    for cell in table.iter_mut().filter_map(|line| line.last_mut()) {
        *cell = format!("{cell:<0$}", width.unwrap_or(0));
    }
    text += &render(&table);
    let _ = writeln!(text, "{}", sentence(&rows, &label, own, peer));
    text
}

fn rows(
    samples: &[&Sample],
    figure: &Figure,
    points: &[&Point],
    (own, peer): (&str, &str),
) -> Vec<Row> {
    let values = |subject: &str, point: &Point| values(samples, figure, subject, point);
    let row = |point: &&Point| {
        let theirs = values(peer, point);
        let ours = values(own, point);
        let comparison = Comparison::of(&theirs, &ours)?;
        Some(Row {
            place: place(&differing(point, points)),
            ratio: comparison.ratio?,
            verdict: comparison.verdict(figure.better),
            rounds: theirs.len().min(ours.len()),
            rounds_to_decide: rounds_to_decide(&theirs, &ours),
        })
    };
    points.iter().filter_map(row).collect()
}

fn line(row: &Row) -> Vec<String> {
    let Interval { middle, low, high } = row.ratio;
    let sureness = match row.verdict {
        Verdict::Same => "no difference".to_owned(),
        Verdict::Better => "better".to_owned(),
        Verdict::Worse => "worse".to_owned(),
        Verdict::Undecided => open(row),
    };
    let interval =
        if low == high { String::new() } else { format!("({} to {})", digits(low), digits(high)) };
    vec![row.place.clone(), format!("{}×", digits(middle)), interval, sureness]
}

/// Why a row is undecided, and what would decide it.
fn open(row: &Row) -> String {
    let advice = match row.rounds_to_decide {
        _ if row.rounds < SAMPLES_MIN => format!("--rounds {SAMPLES_MIN} is the least"),
        Some(rounds @ ..=ROUNDS_WORTHWHILE) => {
            format!("--rounds {} may tell", rounds.max(row.rounds as u32 + 1))
        }
        _ => "too alike".to_owned(),
    };
    format!("undecided: {advice}")
}

fn sentence(rows: &[Row], label: &str, own: &str, peer: &str) -> String {
    let of = |verdict| rows.iter().filter(move |row| row.verdict == verdict);
    let places = |verdict| {
        let places: Vec<_> =
            of(verdict).map(|row| row.place.as_str()).filter(|it| !it.is_empty()).collect();
        if places.is_empty() { String::new() } else { format!(" at {}", places.join(", ")) }
    };
    let mut parts = Vec::new();
    for (verdict, word) in [(Verdict::Better, "better"), (Verdict::Worse, "worse")] {
        let ratios: Vec<f64> = of(verdict).map(|row| row.ratio.middle).collect();
        let low = ratios.iter().copied().reduce(f64::min);
        let high = ratios.iter().copied().reduce(f64::max);
        let Some((low, high)) = low.zip(high).map(|(low, high)| (digits(low), digits(high))) else {
            continue;
        };
        let range = if low == high { low } else { format!("{low} to {high}") };
        let at = if ratios.len() == rows.len() { String::new() } else { places(verdict) };
        parts.push(format!("{range} times {peer}'s{at} ({word})"));
    }
    if of(Verdict::Same).next().is_some() {
        parts.push(format!("the same{}", places(Verdict::Same)));
    }
    if of(Verdict::Undecided).count() == rows.len() {
        return format!("Verdict: undecided whether {own} or {peer} is better.");
    }
    let open = match of(Verdict::Undecided).next() {
        Some(_) => format!("; undecided{}", places(Verdict::Undecided)),
        None => String::new(),
    };
    format!("Verdict: {own}'s {label} is {}{open}.", parts.join(", and "))
}

/// `server CPU per request`.
fn spoken(figure: &Figure) -> String {
    let mut letters = figure.label.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// More rounds than this are not worth their time.
const ROUNDS_WORTHWHILE: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure;
    use crate::scenario::summary::tests::sample;

    /// Rounds of kettle and nginx at two sizes.
    fn verdict(kettle: &[f64], nginx: &[f64], large_kettle: &[f64], large_nginx: &[f64]) -> String {
        let rounds = [
            ("kettle user", 1024.0, kettle),
            ("nginx user", 1024.0, nginx),
            ("kettle user", 65536.0, large_kettle),
            ("nginx user", 65536.0, large_nginx),
        ];
        let samples: Vec<Sample> = rounds
            .iter()
            .flat_map(|(subject, size, values)| {
                values.iter().map(|value| {
                    let mut sample = sample(subject, *size, 1.0);
                    sample.figures.insert("cpu_ns_per_request".to_owned(), *value);
                    sample
                })
            })
            .collect();
        let samples: Vec<&Sample> = samples.iter().collect();
        text(&samples, figure::find("cpu_ns_per_request").unwrap())
    }

    #[test]
    fn a_run_ends_with_ratios_and_a_sentence() {
        let text = verdict(
            &[50.0, 51.0, 52.0],
            &[100.0, 102.0, 104.0],
            &[9.0, 11.0, 13.0],
            &[10.0, 12.0, 14.0],
        );
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines[0], "kettle user beside nginx user, server CPU per request:");
        assert_eq!(lines[1], "  1 KiB   0.500×  (0.481 to 0.520)  better");
        assert!(
            lines[2].contains("undecided: --rounds") && lines[2].ends_with("may tell"),
            "{text}"
        );
        assert_eq!(
            lines[3],
            "Verdict: kettle user's server CPU per request is 0.500 times nginx user's at 1 KiB (better); undecided at 64 KiB."
        );
    }

    #[test]
    fn a_tie_has_no_winner() {
        let text = verdict(&[7.0; 3], &[7.0; 3], &[50.0, 51.0], &[100.0, 101.0]);
        assert!(
            text.contains("no difference") && text.contains("--rounds 3 is the least"),
            "{text}"
        );
        assert!(text.contains("is the same at 1 KiB; undecided at 64 KiB."), "{text}");
        let open = verdict(&[7.0, 9.0, 8.0], &[7.1, 9.0, 8.0], &[], &[]);
        assert!(open.contains("Verdict: undecided whether"), "{open}");
    }
}
