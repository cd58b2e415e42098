//! Pure decisions about the order of samples: which subject is next, what is there already, how long the rest takes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::results::{Point, Sample, Value};

/// The key of a sample. Two samples with the same key are the same measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    pub scenario: String,
    pub subject: String,
    /// Which kind of sample within the scenario; empty for the usual one.
    pub part: String,
    pub point: Point,
    /// Which round, from 0.
    pub round: u32,
}

impl Key {
    pub fn of(sample: &Sample) -> Self {
        Self {
            scenario: sample.scenario.clone(),
            subject: sample.subject.clone(),
            part: sample.part.clone(),
            point: sample.point.clone(),
            round: sample.round,
        }
    }

    pub fn sample(&self, figures: BTreeMap<String, f64>) -> Sample {
        let Self { scenario, subject, part, point, round } = self.clone();
        Sample { scenario, subject, part, point, round, figures, ..Sample::default() }
    }

    /// The same as text that can be ordered and compared. Numbers are exact in it.
    fn text(&self) -> String {
        let Self { scenario, subject, part, point, round } = self;
        let mut text = format!("{scenario}\n{subject}\n{part}\n{round}");
        for (axis, value) in point {
            text += &match value {
                Value::Number(number) => format!("\n{axis}={number:?}"),
                Value::Word(word) => format!("\n{axis}={word}"),
            };
        }
        text
    }
}

/// The samples that are there.
#[derive(Clone, Debug, Default)]
pub struct Taken(BTreeSet<String>);

impl Taken {
    pub fn add(&mut self, key: &Key) {
        self.0.insert(key.text());
    }

    pub fn has(&self, key: &Key) -> bool {
        self.0.contains(&key.text())
    }
}

/// Rounds over subjects, A B C A B C: what disturbs the machine for a while disturbs all of them alike.
pub fn interleaved<T>(rounds: u32, subjects: &[T]) -> impl Iterator<Item = (u32, &T)> {
    (0..rounds).flat_map(move |round| subjects.iter().map(move |subject| (round, subject)))
}

/// The rest of a scenario's samples, and how long it takes.
#[derive(Clone, Debug, Default)]
pub struct Remaining {
    planned: usize,
    pub there: usize,
    /// The time that a sample was said to take, before any was seen.
    expected: Duration,
    /// The times that samples took in this run, with everything around them.
    seen: Vec<Duration>,
}

impl Remaining {
    /// A scenario with `planned` samples, of which some may be there already; each takes about as long as `expected`.
    pub fn new(planned: usize, there: usize, expected: Duration) -> Self {
        Self { planned, there, expected, seen: Vec::new() }
    }

    pub fn took(&mut self, time: Duration) {
        self.there += 1;
        self.seen.push(time);
    }

    /// Samples in all.
    pub fn planned(&self) -> usize {
        self.planned.max(self.there)
    }

    /// The time the rest takes, given that the sample being taken has run for so long.
    pub fn left(&self, of_this_sample: Duration) -> Duration {
        let rest = u32::try_from(self.planned.saturating_sub(self.there)).unwrap_or(u32::MAX);
        self.mean().saturating_mul(rest).saturating_sub(of_this_sample)
    }

    fn mean(&self) -> Duration {
        let recent = self.seen.iter().rev().take(RECENT);
        match u32::try_from(recent.len()) {
            Ok(count) if count > 0 => recent.sum::<Duration>() / count,
            _ => self.expected,
        }
    }
}

/// The number of the last samples that say how long the next ones take.
const RECENT: usize = 20;

#[cfg(test)]
mod tests;
