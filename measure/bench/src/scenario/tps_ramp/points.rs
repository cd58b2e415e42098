//! The points of a ramp that people compare: the most a server does at all, and within each bound.

use super::step::{Bound, Step};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Points {
    /// The most successful transactions a second in any step.
    pub max: f64,
    /// The most within each bound, for those that any step keeps.
    pub within: Vec<(Bound, f64)>,
}

impl Points {
    /// Reads the points off a ramp's steps, in order of their rates.
    pub fn of(steps: &[Step]) -> Self {
        let max = steps.iter().map(|step| step.succeeded_per_second).fold(0.0, f64::max);
        let most = |bound| {
            let (counting, _) = bracket(steps, bound);
            counting.map(|step| (bound, step.succeeded_per_second))
        };
        Self { max, within: Bound::ALL.into_iter().filter_map(most).collect() }
    }
}

/// The last step up to which all count, and the first one that does not. Steps are in order of their rates.
///
/// A step counts if it keeps the bound or, by the rule of Bernat's comparison, if the mean of the next
/// eight does: one slow step does not end a ramp that goes on quickly behind it, and one quick step
/// among slow ones does not lengthen it.
pub fn bracket(steps: &[Step], bound: Bound) -> (Option<&Step>, Option<&Step>) {
    let counts = |index: usize| steps.get(index..).is_some_and(|from| first_counts(from, bound));
    let counting = (0..steps.len()).take_while(|index| counts(*index)).count();
    (counting.checked_sub(1).and_then(|last| steps.get(last)), steps.get(counting))
}

fn first_counts(steps: &[Step], bound: Bound) -> bool {
    let Some((first, others)) = steps.split_first() else {
        return false;
    };
    first.keeps(bound) || (first.may_count(bound) && next_are_quick(others, bound))
}

fn next_are_quick(steps: &[Step], bound: Bound) -> bool {
    let Some(next) = steps.get(..NEXT) else {
        return false;
    };
    let bounded: Vec<_> = next.iter().filter_map(|step| bound.latency_us(step)).collect();
    let (latencies, most): (Vec<_>, Vec<_>) = bounded.into_iter().unzip();
    match most.first() {
        Some(most) => latencies.iter().sum::<f64>() / NEXT as f64 <= *most,
        None => false,
    }
}

/// The number of points behind a slow one that say whether it was an accident.
const NEXT: usize = 8;

#[cfg(test)]
mod tests;
