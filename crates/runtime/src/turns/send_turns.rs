//! Fairness between connections that send: after its turn a connection waits until all others that can send have had theirs.

use std::cell::Cell;

use tokio::sync::Notify;
use tokio::task::yield_now;

/// The turns of a worker's connections. After a round the runtime looks at the sockets, so that new requests have their first
/// turn in the next one.
///
/// `yield_now` alone does that too, but tokio (1.54, `runtime::scheduler::defer`) resumes the tasks that used it in reverse order:
/// the connection that ended its turn first would wait for two rounds, and the last for none.
#[derive(Debug, Default)]
pub struct SendTurns {
    /// A connection waits for the round to end and will wake the others.
    is_led: Cell<bool>,
    others: Notify,
}

impl SendTurns {
    /// Ends a turn and waits for the next one. Turns come in the order in which this is called.
    pub async fn end(&self) {
        if self.is_led.replace(true) {
            return self.others.notified().await;
        }
        // The others are called even if this connection ends meanwhile.
        let _round = Round(self);
        yield_now().await;
    }

    /// True if a connection has ended its turn, and others have theirs.
    #[must_use]
    pub fn is_led(&self) -> bool {
        self.is_led.get()
    }
}

/// A round, held by the connection that ended its turn first.
struct Round<'t>(&'t SendTurns);

impl Drop for Round<'_> {
    fn drop(&mut self) {
        self.0.is_led.set(false);
        self.0.others.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
