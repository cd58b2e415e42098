//! The least rate at which a client takes a response that keeps a server of a backend busy for it.
//!
//! A deadline that begins again at each byte taken would let a client keep a server's place for as long as it likes, a byte at
//! a time. So a client has some time in hand: waiting for it uses that up, and what it takes gives some back.

use std::task::{Context, Poll};
use std::time::Duration;

use super::{Deadline, Interrupt, Stage};

/// The time that a client has in hand, counted in bytes of the least rate.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    left_bytes: u64,
    max_bytes: u64,
}

impl Pace {
    /// A client that may be waited for this long before it takes anything, and never has more in hand.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        // The current tick is partly over, so one more is counted, as deadlines do.
        let seconds = limit.as_secs().saturating_add(1);
        let max_bytes = seconds.saturating_mul(BYTES_PER_SECOND_MIN);
        Self { left_bytes: max_bytes, max_bytes }
    }

    /// It took this many bytes.
    pub fn took(&mut self, bytes: u64) {
        self.left_bytes = self.left_bytes.saturating_add(bytes).min(self.max_bytes);
    }

    /// It was waited for through this many ticks.
    pub fn waited(&mut self, ticks: u32) {
        let due = u64::from(ticks).saturating_mul(BYTES_PER_SECOND_MIN);
        self.left_bytes = self.left_bytes.saturating_sub(due);
    }

    /// The time it may be waited for now if it takes nothing.
    #[must_use]
    pub fn left(&self) -> Duration {
        Duration::from_secs(self.left_bytes / BYTES_PER_SECOND_MIN)
    }
}

impl Deadline {
    /// Waits with a request under way for a client that takes what is queued for it: `poll` says how much is left of that. Each
    /// bit that it takes starts the time again, which is `limit`, and no more than the client has in hand.
    ///
    /// # Errors
    /// [`Interrupt::Expired`].
    pub fn paced<T>(
        &self,
        limit: Duration,
        mut pace: Option<&mut Pace>,
        mut queued_bytes: usize,
        mut poll: impl FnMut(&mut Context<'_>) -> (Poll<T>, usize),
    ) -> impl Future<Output = Result<T, Interrupt>> {
        let left = move |pace: &Option<&mut Pace>| {
            pace.as_ref().map_or(limit, |pace| pace.left().min(limit))
        };
        let mut ticks = self.ticks();
        self.extend(left(&pace));
        self.wait_for_outcome(Stage::UnderWay, move |context| {
            let (outcome, left_bytes) = poll(context);
            let taken_bytes = queued_bytes.saturating_sub(left_bytes);
            queued_bytes = left_bytes;
            if let Some(pace) = &mut pace {
                pace.waited(self.ticks().saturating_sub(ticks));
                pace.took(taken_bytes as u64);
                ticks = self.ticks();
            }
            match outcome {
                Poll::Ready(value) => return Poll::Ready(Ok(value)),
                Poll::Pending if left(&pace).is_zero() => {
                    return Poll::Ready(Err(Interrupt::Expired));
                }
                Poll::Pending if taken_bytes > 0 => self.extend(left(&pace)),
                Poll::Pending => {}
            }
            Poll::Pending
        })
    }
}

/// The least rate of a client that others wait behind, the same in both directions: as in Apache, slower than any modem.
pub const BYTES_PER_SECOND_MIN: u64 = 500;

#[cfg(test)]
mod tests;
