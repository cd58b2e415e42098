//! Judging an outcome: whether sessions were resumed as planned, and whether the client was the bottleneck.

use std::fmt;

use super::outcome::Outcome;
use crate::load::{Load, LoadModel};
use crate::offer::ResumeBy;

/// Why the mix of handshakes is not the one asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum MixError {
    /// The server did not resume sessions that it was to resume.
    NotResumed {
        /// So many of them.
        not_resumed: u64,
        /// So many were to be resumed.
        of: u64,
    },
    /// Sessions were resumed in another way.
    OtherWay {
        /// So many of them.
        otherwise: u64,
        /// The way asked for.
        asked: ResumeBy,
    },
    /// The server took no early data, or not always.
    NoEarlyData {
        /// So often.
        refused: u64,
        /// So many times it was sent.
        of: u64,
    },
    /// The share of full handshakes is another, most often because the load was too short for whole sessions.
    Share {
        /// What it was.
        full: f64,
        /// What it was to be.
        asked: f64,
    },
}

impl Outcome {
    /// Whether handshakes were full ones and resumed ones as the load asked, as far as failures do not explain it.
    ///
    /// # Errors
    /// [`MixError`] says in what they differ.
    pub fn check_mix(&self, load: &Load) -> Result<(), MixError> {
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
            return Err(MixError::NotResumed {
                not_resumed: counts.not_resumed,
                of: was_to_resume,
            });
        }
        let otherwise = match offer.resume_by {
            ResumeBy::Nothing => resumed,
            ResumeBy::SessionId => counts.by_ticket,
            ResumeBy::Ticket | ResumeBy::EarlyData => counts.by_session_id,
        };
        if otherwise > 0 {
            return Err(MixError::OtherWay { otherwise, asked: offer.resume_by });
        }
        let refused = resumed.saturating_sub(counts.early_data);
        if offer.resume_by == ResumeBy::EarlyData && is_more_than_explained(refused, resumed) {
            return Err(MixError::NoEarlyData { refused, of: resumed });
        }
        self.check_share(total, failed, load)
    }

    fn check_share(&self, total: u64, failed: u64, load: &Load) -> Result<(), MixError> {
        let asked = 1.0 / f64::from(load.reuse.connections_per_session.max(1));
        let expected = total as f64 * asked;
        let full = self.handshakes.full as f64;
        // Clients are anywhere in their sessions when counting begins and ends, which scatters the count a little.
        let scatter = expected * SHARE_TOLERANCE + DEVIATIONS * expected.sqrt();
        let tolerance = scatter + failed as f64 + self.sessions_cut_short(load) * (1.0 - asked);
        if (full - expected).abs() > tolerance {
            return Err(MixError::Share { full: full / total as f64, asked });
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

impl fmt::Display for MixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MixError::NotResumed { not_resumed, of } => write!(
                f,
                "the server did not resume {not_resumed} of {of} sessions; check its tickets and its session cache"
            ),
            MixError::OtherWay { otherwise, asked } => {
                let asked = match asked {
                    ResumeBy::Nothing => "not at all",
                    ResumeBy::SessionId => "by session ID",
                    ResumeBy::Ticket | ResumeBy::EarlyData => "by ticket",
                };
                write!(
                    f,
                    "{otherwise} sessions were resumed otherwise than asked, which was {asked}"
                )
            }
            MixError::NoEarlyData { refused, of } => {
                write!(f, "the server refused early data {refused} times of {of}")
            }
            MixError::Share { full, asked } => write!(
                f,
                "{:.2} % of the handshakes were full ones, not {:.2} %; a longer load or fewer connections give whole sessions",
                full * 100.0,
                asked * 100.0
            ),
        }
    }
}

impl std::error::Error for MixError {}

const UNEXPLAINED_SHARE: f64 = 0.001;
const SHARE_TOLERANCE: f64 = 0.05;
const DEVIATIONS: f64 = 3.0;
const BUSY_MAX: f64 = 0.9;
const LATE_MAX: f64 = 0.01;

#[cfg(test)]
mod tests;
