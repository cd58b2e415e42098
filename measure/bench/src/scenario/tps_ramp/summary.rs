//! A ramp in one line: its points, what a transaction costs, and what is doubtful about them.

use std::collections::BTreeMap;

use super::costs::{Costs, Observation};
use super::planner::Why;
use super::points::{Points, bracket};
use super::step::{Bound, Step};
use crate::figure;

#[derive(Clone, Debug, PartialEq)]
pub struct RampSummary {
    /// By the names of [`crate::figure`].
    pub figures: BTreeMap<String, f64>,
    /// A sentence each.
    pub warnings: Vec<String>,
}

/// A ramp whose steps are all there.
#[derive(Clone, Copy, Debug)]
pub struct Ramp<'a> {
    /// The steps that count, in order of their rates.
    pub steps: &'a [Step],
    /// Why there are no more.
    pub why: Why,
    /// The costs of its own steps.
    pub own: &'a [Observation],
    /// The costs of its steps, and of those of ramps with other numbers of transactions per session on the same server.
    pub all: &'a [Observation],
}

impl RampSummary {
    pub fn of(ramp: Ramp<'_>) -> Self {
        let points = Points::of(ramp.steps);
        let mut figures = BTreeMap::new();
        let mut put = |name: &str, value: f64| figures.insert(name.to_owned(), value);
        put(figure::TPS_MAX.name, points.max);
        for (bound, rate) in &points.within {
            put(bound.figure(), *rate);
        }
        if let Some(cost) = per_transaction(ramp.own) {
            put(figure::CPU_US_PER_TRANSACTION.name, cost);
        }
        if let Some(share) = full_share(ramp.own) {
            put(figure::FULL_SHARE.name, share);
        }
        let mut warnings = warnings(&points, ramp.why);
        warnings.extend(of_the_grid(ramp.steps));
        if let Some(Costs { full_us, resumed_us }) = Costs::of(ramp.all) {
            full_us.map(|cost| put(figure::CPU_US_PER_FULL_TRANSACTION.name, cost));
            resumed_us.map(|cost| put(figure::CPU_US_PER_RESUMED_TRANSACTION.name, cost));
            warnings.extend(full_us.zip(resumed_us).and_then(dear_resumption));
        }
        Self { figures, warnings }
    }
}

/// Processor time for a transaction, at this mix of handshakes.
fn per_transaction(own: &[Observation]) -> Option<f64> {
    let together =
        |seen: &Observation| Observation { full: seen.full + seen.resumed, resumed: 0.0, ..*seen };
    Costs::of(&own.iter().map(together).collect::<Vec<_>>())?.full_us
}

fn full_share(own: &[Observation]) -> Option<f64> {
    let full: f64 = own.iter().map(|seen| seen.full).sum();
    let all: f64 = own.iter().map(|seen| seen.full + seen.resumed).sum();
    (all > 0.0).then(|| full / all)
}

fn warnings(points: &Points, why: Why) -> Vec<String> {
    let mut warnings = Vec::new();
    let of_end = match why {
        Why::Found => None,
        Why::ClientLimited => Some(
            "The client gave way before the server did: these rates are the least the server can do, not the most. Its processor \
             time for each transaction holds.",
        ),
        Why::RateMax => Some(
            "The server kept every bound up to the highest rate that was tried: these rates are the least it can do.",
        ),
        Why::Steps => Some("The ramp ended before each bound was found as closely as in others."),
        Why::Hopeless => Some("The server broke every bound at every rate that was tried."),
    };
    warnings.extend(of_end.map(str::to_owned));
    let is_missing = |bound: &Bound| !points.within.iter().any(|(of, _)| of == bound);
    let missing: Vec<_> = Bound::ALL.into_iter().filter(is_missing).map(Bound::figure).collect();
    if !missing.is_empty() && why != Why::Hopeless {
        warnings.push(format!("No rate that was tried kept {}.", missing.join(", ")));
    }
    warnings
}

/// A rate that was kept is no knee if the next one that was tried is far above: servers then share a figure because they were
/// asked the same.
fn of_the_grid(steps: &[Step]) -> Option<String> {
    let gaps = Bound::ALL.into_iter().filter_map(|bound| match bracket(steps, bound) {
        (Some(kept), Some(broken)) => Some((kept.rate, broken.rate)),
        _ => None,
    });
    let ratio = |(kept, broken): &(f64, f64)| broken / kept;
    let widest = gaps.max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    let (kept, broken) = widest.filter(|gap| ratio(gap) > GRID_MAX)?;
    Some(format!(
        "Rates of this ramp are those that were tried: {kept:.0}/s was kept, {broken:.0}/s was not, and nothing between was tried. \
         Servers may share such a figure without being alike."
    ))
}

fn dear_resumption((full_us, resumed_us): (f64, f64)) -> Option<String> {
    (resumed_us > full_us).then(|| {
        format!(
            "A resumed handshake costs more than a full one here ({resumed_us:.0} µs, {full_us:.0} µs). What it saves is one signature, \
             which is cheap with an ECDSA key; in TLS 1.3 it makes a key exchange all the same, and opens and issues tickets."
        )
    })
}

/// Rates further apart than this leave open where the knee is: twice as coarse as a quick search.
const GRID_MAX: f64 = 1.2;

#[cfg(test)]
mod tests;
