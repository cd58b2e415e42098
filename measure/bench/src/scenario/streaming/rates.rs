//! Which throughput streaming servers are held to: the same for all, far enough below what each of them can do.

use std::time::Duration;

/// A throughput that all servers are held to.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// In Gb/s of bodies.
    pub gigabits_per_second: f64,
    /// Its origin.
    pub why: String,
}

/// The most that a short test found a server to do at most.
#[derive(Clone, Debug, PartialEq)]
pub struct Most {
    pub name: String,
    /// In Gb/s of bodies.
    pub gigabits_per_second: f64,
}

/// 30 % and 60 % of what plain sendfile does here; where that is more than the slowest server can do, of what that one does.
///
/// Encryption costs more than a copy does, so on a processor that is quick at copying no server would hold 60 % of plain
/// sendfile, and a comparison at equal throughput would compare nothing.
pub fn choose(plain: Option<&Most>, encrypting: &[Most]) -> Vec<Rate> {
    let slowest = encrypting
        .iter()
        .filter(|most| most.gigabits_per_second > 0.0)
        .min_by(|a, b| a.gigabits_per_second.total_cmp(&b.gigabits_per_second));
    let of = |share: f64, most: &Most| Rate {
        gigabits_per_second: rounded(share * most.gigabits_per_second),
        why: format!(
            "{:.0} % of the {:.1} Gb/s that {} did at most",
            share * 100.0,
            most.gigabits_per_second,
            most.name
        ),
    };
    let largest = SHARES.iter().copied().fold(0.0, f64::max);
    let measure = match (plain, slowest) {
        (Some(plain), Some(slowest)) if !can_hold(slowest, largest * plain.gigabits_per_second) => {
            slowest
        }
        (Some(plain), _) => plain,
        (None, Some(slowest)) => slowest,
        (None, None) => return Vec::new(),
    };
    SHARES.iter().map(|share| of(*share, measure)).collect()
}

fn can_hold(most: &Most, gigabits_per_second: f64) -> bool {
    gigabits_per_second <= HELD_WITH_EASE * most.gigabits_per_second
}

/// A throughput to two digits, so that the same machine is asked for the same again.
pub fn rounded(rate: f64) -> f64 {
    if rate <= 0.0 || !rate.is_finite() {
        return 0.0;
    }
    let unit = 10.0_f64.powf(rate.log10().floor() - 1.0);
    // Multiplying by a unit below one leaves digits that nobody asked for.
    if unit < 1.0 {
        (rate / unit).round() / (1.0 / unit).round()
    } else {
        (rate / unit).round() * unit
    }
}

/// From one object to the next on one connection, so that all connections together reach the throughput.
pub fn interval(connections: u32, object_bytes: u64, gigabits_per_second: f64) -> Duration {
    let seconds = f64::from(connections) * object_bytes as f64 * 8.0 / (gigabits_per_second * 1e9);
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).min(INTERVAL_MAX)
}

/// Half the width of the distribution of intervals: two thirds, as a think time of 1 to 5 seconds has.
pub fn spread(interval: Duration) -> Duration {
    interval * 2 / 3
}

/// Returns the message about a sample whose throughput was not the one asked for.
pub fn deviation(asked: f64, achieved: f64) -> Option<String> {
    let is_near = ((achieved - asked) / asked).abs() <= DEVIATION_MAX;
    (!is_near).then(|| {
        format!(
            "It moved {achieved:.2} Gb/s where {asked:.2} Gb/s were asked for, so its figures are not at equal throughput."
        )
    })
}

/// Of the most a server can do.
const SHARES: [f64; 2] = [0.3, 0.6];

/// A server that must do more than this share of its most is no longer asked for a throughput but for its limit.
const HELD_WITH_EASE: f64 = 0.8;

/// Throughputs further apart are not equal.
const DEVIATION_MAX: f64 = 0.02;

const INTERVAL_MAX: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests;
