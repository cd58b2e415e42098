//! Waking at exact times. The runtime's own timers count milliseconds, which would end up in every latency of an open loop.

use std::cell::{Cell, RefCell};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// The exact clock of one thread: one kernel timer, set to the earliest of all who wait.
pub(super) struct Pacer {
    timer: AsyncFd<OwnedFd>,
    /// At most one entry for each task that waits; one whose task gave up wakes it once for nothing.
    waiting: RefCell<BinaryHeap<Reverse<Waiting>>>,
    set_to: Cell<Option<Instant>>,
}

struct Waiting {
    due: Instant,
    waker: Waker,
}

impl Pacer {
    /// Must be called within the thread's runtime.
    #[allow(
        deprecated,
        reason = "sound with an owned descriptor; its successor is `unsafe` because of types whose descriptor may change"
    )]
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = AsyncFd::new(timerfd_create(TimerfdClockId::Monotonic, flags)?)?;
        Ok(Self { timer, waiting: RefCell::default(), set_to: Cell::new(None) })
    }

    /// Waits until `due`; [`drive`](Self::drive) must run beside it.
    pub(super) async fn until(&self, due: Instant) {
        let mut is_queued = false;
        poll_fn(|context| {
            let now = Instant::now();
            if now >= due {
                return Poll::Ready(());
            }
            if !is_queued {
                let waiting = Waiting { due, waker: context.waker().clone() };
                self.waiting.borrow_mut().push(Reverse(waiting));
                is_queued = true;
                // If the timer cannot be set, `drive` reports it: both make the same call.
                let _ = self.set(due, now);
            }
            Poll::Pending
        })
        .await;
    }

    /// Wakes whoever is due, for ever.
    pub(super) async fn drive(&self) -> io::Result<()> {
        loop {
            self.timer.readable().await?.clear_ready();
            self.set_to.set(None);
            let now = Instant::now();
            while let Some(waiting) = self.take_due(now) {
                waiting.waker.wake();
            }
            let next = self.waiting.borrow().peek().map(|Reverse(waiting)| waiting.due);
            if let Some(due) = next {
                self.set(due, now)?;
            }
        }
    }

    fn take_due(&self, now: Instant) -> Option<Waiting> {
        let mut waiting = self.waiting.borrow_mut();
        let is_due = waiting.peek().is_some_and(|Reverse(first)| first.due <= now);
        if is_due { waiting.pop().map(|Reverse(first)| first) } else { None }
    }

    /// Sets the timer, unless it is to ring earlier already.
    fn set(&self, due: Instant, now: Instant) -> io::Result<()> {
        if self.set_to.get().is_some_and(|set_to| set_to <= due) {
            return Ok(());
        }
        // Zero would switch the timer off.
        let wait = due.saturating_duration_since(now).max(Duration::from_nanos(1));
        let value = Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(wait.subsec_nanos()),
        };
        let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
        // Setting it also forgets an expiry that nobody has read, so the descriptor is never read at all.
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        self.set_to.set(Some(due));
        Ok(())
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        self.due.cmp(&other.due)
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Waiting {}

#[cfg(test)]
mod tests;
