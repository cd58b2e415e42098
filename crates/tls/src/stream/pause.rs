//! Pauses that get longer, to wait for what sends no event.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// A pause, and how long it is.
pub struct Pause {
    sleep: Pin<Box<Sleep>>,
    length: Duration,
}

impl Default for Pause {
    fn default() -> Self {
        Self { sleep: Box::pin(sleep(PAUSE_MIN)), length: PAUSE_MIN }
    }
}

impl Pause {
    /// Waits for its end; then it is twice as long, up to a limit.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        ready!(self.sleep.as_mut().poll(context));
        self.length = (self.length * 2).min(PAUSE_MAX);
        self.sleep.as_mut().reset(Instant::now() + self.length);
        Poll::Ready(())
    }
}

/// Ever longer, for a client that does not read.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(640);
