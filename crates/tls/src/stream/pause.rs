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

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Waker;

    use super::*;

    #[tokio::test]
    async fn each_is_twice_as_long_as_the_one_before_up_to_a_limit() {
        let mut pause = Pause::default();
        for length in [PAUSE_MIN * 2, PAUSE_MIN * 4] {
            poll_fn(|context| pause.poll(context)).await;
            assert_eq!(pause.length, length);
            assert!(pause.poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        let mut pause = Pause { length: PAUSE_MAX, ..Pause::default() };
        poll_fn(|context| pause.poll(context)).await;
        assert_eq!(pause.length, PAUSE_MAX);
    }
}
