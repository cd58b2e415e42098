//! A figure by the rounds it was measured in: servers held against each other round by round, so that what disturbed one disturbed all, and
//! against an aim.

use std::collections::BTreeMap;

use super::estimate::Estimate;

pub type Rounds = BTreeMap<usize, f64>;

/// Its median with an interval; none of no rounds.
pub fn estimate(rounds: &Rounds) -> Option<Estimate> {
    Estimate::of(rounds.values().copied())
}

/// The ratios of both in the rounds that both have.
pub fn ratio(these: &Rounds, those: &Rounds) -> Option<Estimate> {
    let each = these.iter().filter_map(|(round, value)| Some(value / those.get(round)?));
    Estimate::of(each.filter(|ratio| ratio.is_finite()))
}

pub fn better(all: &[Rounds]) -> Option<&Rounds> {
    let median = |rounds: &Rounds| estimate(rounds).map(|it| it.median);
    let there = all.iter().filter_map(|rounds| Some((median(rounds)?, rounds)));
    there.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, rounds)| rounds)
}

/// A cell of a table; empty if nothing was measured.
pub fn shown(estimate: Option<Estimate>) -> String {
    estimate.map(|it| it.to_string()).unwrap_or_default()
}

/// The aim as a cell, with a mark if the median is above it; empty without an aim or a median.
pub fn judged(aim: Option<f64>, estimate: Option<Estimate>, unit: &str) -> String {
    let (Some(aim), Some(estimate)) = (aim, estimate) else { return String::new() };
    let mark = if estimate.median > aim { " missed" } else { "" };
    let aim = if unit.is_empty() { format!("{aim:.2}") } else { format!("{aim} {unit}") };
    format!("≤ {aim}{mark}")
}
