//! A bound on the time of an operation: one timer a connection, moved along instead of made anew for every transaction.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Poll, ready};
use std::time::Instant;

use tokio::time::{Sleep, sleep_until};

use super::failure::Failure;

/// The timer of one connection.
pub(super) struct Deadline(Pin<Box<Sleep>>);

impl Deadline {
    /// Must be called within the thread's runtime.
    pub(super) fn new() -> Self {
        Self(Box::pin(sleep_until(Instant::now().into())))
    }

    /// Does `work`, but gives it up at `end`.
    pub(super) async fn within<T>(
        &mut self,
        end: Instant,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        // Moving a timer that is already set to a later time costs one atomic store.
        self.0.as_mut().reset(end.into());
        let mut work = pin!(work);
        poll_fn(|context| {
            if let Poll::Ready(result) = work.as_mut().poll(context) {
                return Poll::Ready(result);
            }
            // A socket that is always ready uses up the task's budget, and without one the timer does not look at the clock.
            if Instant::now() < end {
                ready!(self.0.as_mut().poll(context));
            }
            Poll::Ready(Err(Failure::Timeout))
        })
        .await
    }
}
