//! Samples picked and grouped for a chart: by subject, along an axis, over the rounds.

use std::collections::BTreeSet;

use super::number;
use super::plot::{Curve, PlotPoint};
use super::style;
use crate::figure;
use crate::results::{Sample, Value, distinct};
use crate::stats::Estimate;

#[derive(Clone, Debug, Default)]
pub struct Samples<'a>(Vec<&'a Sample>);

impl<'a> FromIterator<&'a Sample> for Samples<'a> {
    fn from_iter<I: IntoIterator<Item = &'a Sample>>(samples: I) -> Self {
        Self(samples.into_iter().collect())
    }
}

impl<'a> Samples<'a> {
    pub fn push(&mut self, sample: &'a Sample) {
        self.0.push(sample);
    }

    pub fn iter(&self) -> impl Iterator<Item = &'a Sample> {
        self.0.iter().copied()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn only(&self, holds: impl Fn(&Sample) -> bool) -> Self {
        Self(self.iter().filter(|sample| holds(sample)).collect())
    }

    pub fn part(&self, part: &str) -> Self {
        self.only(|sample| sample.part == part)
    }

    pub fn subject(&self, subject: &str) -> Self {
        self.only(|sample| sample.subject == subject)
    }

    pub fn having(&self, figure: &str) -> Self {
        self.only(|sample| sample.figures.get(figure).is_some_and(|value| value.is_finite()))
    }

    pub fn at(&self, axis: &str, value: &Value) -> Self {
        self.only(|sample| sample.point.get(axis) == Some(value))
    }

    /// The subjects, ours first, and each program's in the same order everywhere.
    pub fn subjects(&self) -> Vec<&'a str> {
        let names: BTreeSet<&str> = self.iter().map(|sample| sample.subject.as_str()).collect();
        let mut names: Vec<&str> = names.into_iter().collect();
        names.sort_by_key(|name| {
            (rank(PROGRAMS, style::program(name)), rank(WAYS, style::way(name)))
        });
        names
    }

    pub fn values(&self, axis: &str) -> Vec<Value> {
        let mut values = distinct(self.iter().filter_map(|sample| sample.point.get(axis)));
        values.sort_by(|a, b| order(a, b));
        values.into_iter().cloned().collect()
    }

    /// A figure of each round, in order.
    pub fn rounds(&self, figure: &str) -> Vec<f64> {
        self.rounds_of_sum(&[figure])
    }

    /// The median of a figure over the rounds.
    pub fn estimate(&self, figure: &str) -> Option<Estimate> {
        Estimate::of(&self.rounds(figure))
    }

    /// The sum of some figures of each round, in order; those a sample lacks count nothing.
    pub fn rounds_of_sum(&self, figures: &[&str]) -> Vec<f64> {
        let mut rounds: Vec<(u32, f64)> = self
            .iter()
            .filter(|sample| figures.iter().any(|figure| sample.figures.contains_key(*figure)))
            .map(|sample| {
                (
                    sample.round,
                    figures.iter().filter_map(|figure| sample.figures.get(*figure)).sum(),
                )
            })
            .collect();
        rounds.sort_by_key(|(round, _)| *round);
        rounds.into_iter().map(|(_, value)| value).filter(|value| value.is_finite()).collect()
    }

    pub fn along(&self, axis: &str, figure: &str) -> Vec<PlotPoint> {
        self.points(axis, |samples| samples.estimate(figure))
    }

    /// A figure along an axis, as a multiple of the same figure of others. Rounds are compared with the same round, since
    /// what disturbs one disturbs both.
    pub fn along_relative(&self, axis: &str, figure: &str, base: &Samples) -> Vec<PlotPoint> {
        self.points(axis, |samples| {
            let here = samples.iter().next()?.point.get(axis)?;
            let ours = samples.rounds(figure);
            let theirs = base.at(axis, here).rounds(figure);
            let ratios: Vec<f64> = if ours.len() == theirs.len() {
                ours.iter().zip(&theirs).map(|(a, b)| a / b).collect()
            } else {
                let middle = Estimate::of(&theirs)?.median;
                ours.iter().map(|a| a / middle).collect()
            };
            Estimate::of(&ratios.into_iter().filter(|r| r.is_finite()).collect::<Vec<_>>())
        })
    }

    fn points(
        &self,
        axis: &str,
        estimate: impl Fn(&Samples) -> Option<Estimate>,
    ) -> Vec<PlotPoint> {
        let numbers = self.values(axis).into_iter().filter_map(|value| match value {
            Value::Number(x) => Some((x, value)),
            Value::Word(_) => None,
        });
        let points = numbers.filter_map(|(x, value)| {
            let Estimate { median, low, high, .. } = estimate(&self.at(axis, &value))?;
            Some(PlotPoint { x, low, middle: median, high })
        });
        points.collect()
    }

    pub fn curves(&self, axis: &str, figure: &str) -> Vec<Curve> {
        let subjects = self.subjects().into_iter();
        let curves = subjects.map(|subject| Curve {
            name: subject.to_owned(),
            style: style::Style::of(subject),
            points: self.subject(subject).along(axis, figure),
        });
        curves.filter(|curve| !curve.points.is_empty()).collect()
    }

    /// The samples apart by every axis that has several values, but for those a chart shows itself.
    pub fn facets(&self, shown: &[&str]) -> Vec<(String, Self)> {
        let axes: BTreeSet<&str> =
            self.iter().flat_map(|sample| sample.point.keys().map(String::as_str)).collect();
        let varying =
            axes.into_iter().filter(|axis| !shown.contains(axis) && self.values(axis).len() > 1);
        let mut facets = vec![(Vec::<String>::new(), self.clone())];
        for axis in varying {
            let mut finer = Vec::new();
            for (labels, samples) in &facets {
                for value in samples.values(axis) {
                    let mut labels = labels.clone();
                    labels.push(describe(axis, &value));
                    finer.push((labels, samples.at(axis, &value)));
                }
            }
            facets = finer;
        }
        facets.into_iter().map(|(labels, samples)| (labels.join(", "), samples)).collect()
    }
}

pub fn describe(axis: &str, value: &Value) -> String {
    let number = match value {
        Value::Word(word) => return described_word(axis, word),
        Value::Number(number) => *number,
    };
    let known = figure::axis(axis);
    match (axis, known) {
        ("k", _) if number == 1.0 => "every handshake full".to_owned(),
        ("k", _) => format!("one handshake in {} full", number::short(number)),
        ("requests", _) if number == 0.0 => "idle after the handshake".to_owned(),
        ("requests", _) if number == 1.0 => "idle after one request".to_owned(),
        ("requests", _) => format!("idle after {} requests", number::short(number)),
        ("flood", _) if number == 0.0 => "no handshakes beside it".to_owned(),
        ("flood", _) => format!("{} handshakes a second beside it", number::digits(number)),
        ("rate", _) => format!("{} attempted a second", number::digits(number)),
        ("workers", _) => number::counted(number as usize, "worker", "workers"),
        ("connections", _) => number::counted(number as usize, "connection", "connections"),
        ("size" | "throughput", Some(known)) => {
            let (divisor, unit) = number::fitting(known.unit, number);
            number::joined(&number::short(number / divisor), unit)
        }
        (_, Some(known)) => {
            let value = number::joined(&number::short(number), known.unit);
            format!("{}: {value}", known.label)
        }
        (_, None) => format!("{axis}: {}", number::short(number)),
    }
}

fn described_word(axis: &str, word: &str) -> String {
    match (axis, word) {
        ("erms", word) => format!("fast string copies {word}"),
        ("role", "files") => "serving files itself".to_owned(),
        ("role", "terminator") => "in front of another server".to_owned(),
        ("resumption", "none") => "no resumption".to_owned(),
        ("resumption", word) => format!("resumed by {}", word.replace('-', " ")),
        ("version", version) => format!("TLS {version}"),
        (_, word) => word.to_owned(),
    }
}

fn order(a: &Value, b: &Value) -> std::cmp::Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.total_cmp(b),
        (Value::Word(a), Value::Word(b)) => a.cmp(b),
        (Value::Number(_), Value::Word(_)) => std::cmp::Ordering::Less,
        (Value::Word(_), Value::Number(_)) => std::cmp::Ordering::Greater,
    }
}

fn rank(known: &[&str], name: &str) -> usize {
    known.iter().position(|other| *other == name).unwrap_or(known.len())
}

/// The programs, ours first.
pub const PROGRAMS: &[&str] = &["kettle", "nginx", "haproxy", "hitch", "stunnel"];
const WAYS: &[&str] = &[
    "auto",
    "user",
    "kernel-write",
    "kernel-sendfile",
    "terminator",
    "terminator auto",
    "terminator user",
    "terminator kernel-splice",
    "plain",
];
