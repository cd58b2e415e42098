//! Two results files held against each other: the same subject at the same point, a verdict for each figure.
//!
//! Time is compared by intervals over the rounds, counted work by fixed tolerances, and the two never by each other.

mod circumstances;
pub mod text;
pub mod work;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::figure::{self, Better, Figure};
use crate::results::read::Results;
use crate::results::{Clock, DOUBTED, Point, Sample, Value};
use crate::stats::comparison::{Comparison, Interval, SAMPLES_MIN, Verdict, rounds_to_decide};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// The clock of the figures of both.
    pub clock: Clock,
    /// The other differences between the two, a sentence each: machine, versions, rules.
    pub circumstances: Vec<String>,
    /// A row for each figure both have; what became most worse first, undecided ones last.
    pub rows: Vec<DiffRow>,
    pub only_a: usize,
    pub only_b: usize,
}

/// One figure of one subject at one point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiffRow {
    pub scenario: String,
    pub subject: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub part: String,
    pub point: Point,
    #[serde(serialize_with = "name_of")]
    pub figure: &'static Figure,
    /// Figures that say the same in another unit, such as seconds for a GiB beside nanoseconds for a byte.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<&'static str>,
    /// Its median in the first file.
    pub a: f64,
    /// Its median in the second.
    pub b: f64,
    /// The number of rounds each rests on.
    pub rounds: [usize; 2],
    /// The change from the first to the second as a part of the first: 0.1 is ten percent more. Nothing where a sample is zero.
    pub change: Option<Interval>,
    /// The certainty of the interval, from 0 to 1.
    pub confidence: f64,
    /// The number of samples with warnings.
    pub doubtful: usize,
    pub verdict: Verdict,
    /// If that is undecided: how many rounds a side would probably decide it, if these tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds_to_decide: Option<u32>,
}

/// Holds `b` against `a`.
///
/// # Errors
/// A sentence for the user: a file holds no run, or one holds times and the other counted work.
pub fn compare(a: &Results, b: &Results) -> Result<Diff, String> {
    let (Some(clock), Some(other)) = (a.clock(), b.clock()) else {
        return Err("a file without a run has nothing to compare".to_owned());
    };
    if clock != other {
        return Err("one file has times, the other counted work; no figure of one says anything about the other".to_owned());
    }
    let mut paired: BTreeMap<SampleKey<'_>, [Vec<&Sample>; 2]> = BTreeMap::new();
    for (side, results) in [a, b].into_iter().enumerate() {
        // A sample that was measured again does not count.
        for sample in results.samples.iter().filter(|sample| sample.part != DOUBTED) {
            let of_place = paired.entry(key_of(sample)).or_default();
            if let Some(samples) = of_place.get_mut(side) {
                samples.push(sample);
            }
        }
    }
    let mut diff = Diff {
        clock,
        circumstances: circumstances::differences(a, b),
        rows: Vec::new(),
        only_a: 0,
        only_b: 0,
    };
    for [a, b] in paired.values() {
        let mut rows = Vec::new();
        for figure in figure::FIGURES.iter().filter(|figure| figure.better != Better::Neither) {
            if let Some(row) = diff.compare_figure(figure, a, b) {
                keep(&mut rows, row, clock);
            }
        }
        diff.rows.append(&mut rows);
    }
    let is_shared = |[a, b]: &[Vec<&Sample>; 2]| !a.is_empty() && !b.is_empty();
    if !paired.is_empty() && !paired.values().any(is_shared) {
        return Err(format!(
            "nothing was measured in both files at the same point\n  the first has   {}\n  the second has  {}\nRun both with the \
             same comparison, --servers, --paths and --sizes.",
            contents(a),
            contents(b)
        ));
    }
    if clock == Clock::Work {
        work::keep_what_holds_for_all_copies(&mut diff.rows);
    }
    diff.rows.sort_by(|one, other| {
        let order = |row: &DiffRow| (row.verdict, -row.size_of_change());
        let ((verdict, size), (other_verdict, other_size)) = (order(one), order(other));
        verdict.cmp(&other_verdict).then(size.total_cmp(&other_size))
    });
    Ok(diff)
}

/// Says what a file measured: `web-sizes of kettle user, nginx user`.
fn contents(results: &Results) -> String {
    let mut measured: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for sample in &results.samples {
        measured.entry(&sample.scenario).or_default().insert(&sample.subject);
    }
    let in_words = measured.into_iter().map(|(scenario, subjects)| {
        format!("{scenario} of {}", subjects.into_iter().collect::<Vec<_>>().join(", "))
    });
    let words = in_words.collect::<Vec<_>>().join("; ");
    if words.is_empty() { "no sample".to_owned() } else { words }
}

/// The key of the samples that are rounds of the same measurement: scenario, subject, part and point.
type SampleKey<'a> = (&'a str, &'a str, &'a str, Vec<(&'a str, String)>);

fn key_of(sample: &Sample) -> SampleKey<'_> {
    (&sample.scenario, &sample.subject, &sample.part, words(&sample.point))
}

/// A point whose numbers are exact text.
fn words(point: &Point) -> Vec<(&str, String)> {
    let words = point.iter().map(|(axis, value)| match value {
        Value::Number(number) => (axis.as_str(), format!("{number:?}")),
        Value::Word(word) => (axis.as_str(), word.clone()),
    });
    words.collect()
}

/// Adds a row, unless its figure moved exactly as another did: then it is the same one in another unit. Figures of work have
/// tolerances of their own, so each stands for itself.
fn keep(rows: &mut Vec<DiffRow>, row: DiffRow, clock: Clock) {
    let alike = rows.iter_mut().find(|other| {
        clock == Clock::Time
            && other.figure.better == row.figure.better
            && other.rounds == row.rounds
            && other.change.zip(row.change).is_some_and(|(one, other)| are_alike(one, other))
    });
    match alike {
        Some(other) => other.also.push(row.figure.name),
        None => rows.push(row),
    }
}

impl Diff {
    fn compare_figure(
        &mut self,
        figure: &'static Figure,
        a: &[&Sample],
        b: &[&Sample],
    ) -> Option<DiffRow> {
        let values = |samples: &[&Sample]| -> Vec<f64> {
            let values = samples.iter().filter_map(|sample| sample.figures.get(figure.name));
            values.copied().filter(|value| value.is_finite()).collect()
        };
        let values_a = values(a);
        let values_b = values(b);
        let Some(found) = Comparison::of(&values_a, &values_b) else {
            self.only_a += usize::from(!values_a.is_empty());
            self.only_b += usize::from(!values_b.is_empty());
            return None;
        };
        let sample = a.first()?;
        let a_median = found.a.median;
        let b_median = found.b.median;
        let counted = (a_median > 0.0 && b_median > 0.0).then(|| b_median / a_median - 1.0);
        let counted = counted.map(|change| Interval { middle: change, low: change, high: change });
        let timed = found.ratio.map(|ratio| Interval {
            middle: ratio.middle - 1.0,
            low: ratio.low - 1.0,
            high: ratio.high - 1.0,
        });
        let (change, confidence, verdict) = match self.clock {
            Clock::Time => (timed, found.confidence, found.verdict(figure.better)),
            Clock::Work => (counted, 1.0, work::verdict(figure, a_median, b_median)),
        };
        let rounds_to_decide = match verdict {
            Verdict::Undecided => rounds_to_decide(&values_a, &values_b),
            Verdict::Worse | Verdict::Better | Verdict::Same => None,
        };
        let doubtful = a.iter().chain(b).filter(|sample| !sample.warnings.is_empty()).count();
        Some(DiffRow {
            scenario: sample.scenario.clone(),
            subject: sample.subject.clone(),
            part: sample.part.clone(),
            point: sample.point.clone(),
            figure,
            also: Vec::new(),
            a: a_median,
            b: b_median,
            rounds: [values_a.len(), values_b.len()],
            change,
            confidence,
            doubtful,
            verdict,
            rounds_to_decide,
        })
    }

    pub fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|row| row.verdict == verdict).count()
    }

    /// As one JSON object.
    ///
    /// # Errors
    /// Never in practice: no key of it is anything but a text, and JSON writes a figure that is no number as `null`.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }
}

/// The same but for rounding.
fn are_alike(one: Interval, other: Interval) -> bool {
    let is_near = |one: f64, other: f64| (one - other).abs() <= ROUNDING;
    // Figures that did not move at all are alike by chance.
    one.low < one.high
        && is_near(one.middle, other.middle)
        && is_near(one.low, other.low)
        && is_near(one.high, other.high)
}

impl DiffRow {
    /// True if it has too few rounds to be decided, whatever they show.
    pub fn lacks_rounds(&self) -> bool {
        self.rounds.iter().any(|rounds| *rounds < SAMPLES_MIN)
    }

    /// Halving and doubling are changes of the same size; anything is large beside zero.
    fn size_of_change(&self) -> f64 {
        match (self.a, self.b) {
            (a, b) if a == b => 0.0,
            (a, b) if a > 0.0 && b > 0.0 => (b / a).ln().abs(),
            _ => f64::INFINITY,
        }
    }
}

fn name_of<S: serde::Serializer>(
    figure: &&'static Figure,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(figure.name)
}

const ROUNDING: f64 = 1e-9;

#[cfg(test)]
mod tests;
