//! The point where a ramp broke: the first second from which on answers failed or came late.

use kettle_loadgen::client::Outcome;
use kettle_loadgen::client::outcome::Second;
use kettle_loadgen::load::{Arrivals, Load, LoadModel};

use crate::number::{digits, latency};

/// A line about a ramp; nothing about another load.
pub(super) fn in_words(outcome: &Outcome, load: &Load) -> Option<String> {
    let LoadModel::Open { arrivals: Arrivals::Ramp { .. }, .. } = load.model else { return None };
    let seconds = outcome.seconds.as_slice();
    let held = |until: usize| {
        let most = seconds.iter().take(until).map(|second| second.succeeded).max();
        digits(most.unwrap_or(0) as f64)
    };
    let Some((place, second)) = broken(seconds) else {
        return Some(format!("The ramp: held to its end, up to {}/s", held(seconds.len())));
    };
    let mut why = Vec::new();
    if second.failed > 0 {
        why.push(format!("{:.1} % failed", 100.0 * share_failed(second)));
    }
    if second.mean_us() > MEAN_US_MAX {
        why.push(format!("answers took {} on average", latency(second.mean_us())));
    }
    let at = digits(second.attempted() as f64);
    let before = match place {
        0 => String::new(),
        _ => format!("; held up to {}/s", held(place)),
    };
    Some(format!("The ramp broke in second {} at {at}/s: {}{before}", place + 1, why.join(", ")))
}

/// The first of two seconds in a row that break a bound; the last one stands for itself.
fn broken(seconds: &[Second]) -> Option<(usize, &Second)> {
    let breaks =
        |second: &Second| share_failed(second) > FAILED_MAX || second.mean_us() > MEAN_US_MAX;
    seconds
        .iter()
        .enumerate()
        .find(|(place, second)| breaks(second) && seconds.get(place + 1).is_none_or(breaks))
}

fn share_failed(second: &Second) -> f64 {
    second.failed as f64 / second.attempted().max(1) as f64
}

/// One in a thousand may fail, and answers may take 100 ms on average: the bounds of `tps-ramp`.
const FAILED_MAX: f64 = 0.001;
const MEAN_US_MAX: f64 = 100_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(rows: &[(u64, u64, f64)]) -> Vec<Second> {
        let second = |(attempted, failed, mean_us): &(u64, u64, f64)| {
            let succeeded = attempted - failed;
            Second { succeeded, failed: *failed, latency_us: mean_us * succeeded as f64 }
        };
        rows.iter().map(second).collect()
    }

    fn place(rows: &[(u64, u64, f64)]) -> Option<usize> {
        broken(&seconds(rows)).map(|(place, _)| place)
    }

    #[test]
    fn a_ramp_breaks_where_it_stays_broken() {
        let fine = (100, 0, 500.0);
        let slow = (200, 0, 250_000.0);
        let lost = (200, 20, 900.0);
        assert_eq!(place(&[fine, fine, fine]), None);
        assert_eq!(place(&[fine, slow, lost]), Some(1));
        assert_eq!(place(&[fine, slow, fine, lost]), Some(3));
        assert_eq!(place(&[slow, slow]), Some(0));
        assert_eq!(place(&[]), None);
    }
}
