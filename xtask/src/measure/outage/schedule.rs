//! The times of a run: scaled to minutes, or the days themselves.

use std::time::Duration;

use super::Scenario;

pub struct Schedule {
    pub scenarios: &'static [Scenario],
    pub lifetime: Duration,
    /// The time the authority is away.
    pub away: Duration,
    /// The time it is looked in all from the first certificates on where the authority goes away.
    pub looked: Duration,
    /// The time it is looked after the first certificates have ended, to see others that are late.
    pub margin: Duration,
    /// The time by which the clock is ahead after a sleep.
    pub slept: Duration,
    pub between_looks: Duration,
    /// The interval at which Caddy looks at its certificates, where that is not its own 10 minutes.
    pub renew_interval: Option<&'static str>,
}

impl Schedule {
    /// Returns the time after the first certificates at which the authority goes away.
    pub fn before(&self, scenario: Scenario) -> Duration {
        match scenario {
            // Just before certificates of six days are renewed, by pebble's word from the third day on.
            Scenario::Late => self.lifetime / 2 - self.lifetime / 120,
            _ => self.lifetime / 4,
        }
    }
}

/// As six days are to ten minutes, so are the three days of an outage to five.
pub const MINUTES: Schedule = Schedule {
    scenarios: &[Scenario::Away, Scenario::Killed, Scenario::Changed, Scenario::Replaced],
    lifetime: Duration::from_mins(10),
    away: Duration::from_mins(5),
    looked: Duration::from_mins(13),
    margin: Duration::from_secs(30),
    slept: Duration::ZERO,
    between_looks: Duration::from_secs(3),
    renew_interval: Some("5s"),
};

/// Three days.
pub const DAYS: Schedule = Schedule {
    scenarios: &[Scenario::Slept, Scenario::Late],
    lifetime: Duration::from_hours(6 * 24),
    away: Duration::from_hours(3 * 24),
    looked: Duration::from_hours(6 * 24 + 6),
    margin: Duration::from_hours(6),
    slept: Duration::from_hours(132),
    between_looks: Duration::from_hours(1),
    renew_interval: None,
};
