//! Checks of an outcome: whether sessions were resumed as planned, and whether the client was the bottleneck.

use super::outcome::Outcome;
use crate::load::{Load, LoadModel};
use crate::offer::ResumeBy;

impl Outcome {
    /// Checks whether handshakes were full ones and resumed ones as the load asked, as far as failures do not explain it.
    ///
    /// # Errors
    /// A sentence on what differs.
    pub fn check_mix(&self, load: &Load) -> Result<(), String> {
        let Some(offer) = load.tls else { return Ok(()) };
        let counts = &self.handshakes;
        let resumed = counts.by_ticket + counts.by_session_id;
        let total = counts.full + resumed;
        // Each failed transaction ends its session, and the next one begins with a full handshake.
        let failed = self.failures.values().sum::<u64>();
        let is_more_than_explained =
            |count: u64, of: u64| count as f64 > failed as f64 + of as f64 * UNEXPLAINED_SHARE;
        let was_to_resume = resumed + counts.not_resumed;
        if is_more_than_explained(counts.not_resumed, was_to_resume) {
            return Err(format!(
                "the server did not resume {} of {was_to_resume} sessions; check its tickets and its session cache",
                counts.not_resumed
            ));
        }
        let (asked, otherwise) = match offer.resume_by {
            ResumeBy::Nothing => ("not at all", resumed),
            ResumeBy::SessionId => ("by session ID", counts.by_ticket),
            ResumeBy::Ticket | ResumeBy::EarlyData => ("by ticket", counts.by_session_id),
        };
        if otherwise > 0 {
            return Err(format!(
                "{otherwise} sessions were resumed otherwise than asked, which was {asked}"
            ));
        }
        let refused = resumed.saturating_sub(counts.early_data);
        if offer.resume_by == ResumeBy::EarlyData && is_more_than_explained(refused, resumed) {
            return Err(format!("the server refused early data {refused} times of {resumed}"));
        }
        self.check_share(total, failed, load)
    }

    fn check_share(&self, total: u64, failed: u64, load: &Load) -> Result<(), String> {
        let asked = 1.0 / f64::from(load.reuse.connections_per_session.max(1));
        let expected = total as f64 * asked;
        let full = self.handshakes.full as f64;
        // Clients are anywhere in their sessions when counting begins and ends, which scatters the count a little.
        let scatter = expected * SHARE_TOLERANCE + DEVIATIONS * expected.sqrt();
        let tolerance = scatter + failed as f64 + self.sessions_cut_short(load) * (1.0 - asked);
        if (full - expected).abs() > tolerance {
            return Err(format!(
                "{:.2} % of the handshakes were full ones, not {:.2} %; a longer load or fewer connections give whole sessions",
                full / total as f64 * 100.0,
                asked * 100.0
            ));
        }
        Ok(())
    }

    /// In an open loop the server decides how many transactions are under way at the same time, each with a session of its
    /// own: a server that falls behind makes the client begin sessions that the end of the load cuts short.
    fn sessions_cut_short(&self, load: &Load) -> f64 {
        match load.model {
            LoadModel::Open { arrivals, transactions_max } => {
                let under_way = arrivals.per_second_max() * self.latency.max() as f64 / 1e6;
                under_way.min(f64::from(transactions_max))
            }
            LoadModel::Closed { .. } | LoadModel::Streaming { .. } | LoadModel::Idle { .. } => 0.0,
        }
    }

    /// A sentence if the client, not the server, may have set the figures.
    pub fn client_limited(&self) -> Option<String> {
        let busiest = self.thread_busy.iter().copied().fold(0.0, f64::max);
        if busiest > BUSY_MAX {
            let percent = busiest * 100.0;
            return Some(format!(
                "the client used {percent:.0} % of one of its processors: it may be the bottleneck, so give it more"
            ));
        }
        let late = self.late_starts as f64 / self.attempted.max(1) as f64;
        if late > LATE_MAX {
            let percent = late * 100.0;
            return Some(format!(
                "the client began {percent:.1} % of its transactions more than a millisecond late: it had no time for them"
            ));
        }
        None
    }
}

const UNEXPLAINED_SHARE: f64 = 0.001;
const SHARE_TOLERANCE: f64 = 0.05;
const DEVIATIONS: f64 = 3.0;
const BUSY_MAX: f64 = 0.9;
const LATE_MAX: f64 = 0.01;

#[cfg(test)]
mod tests;
