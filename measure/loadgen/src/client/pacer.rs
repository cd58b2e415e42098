//! Waking at exact times. The runtime's own timers count milliseconds, which would end up in every latency of an open loop.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
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
    /// Tasks by the time they are due, apart by a number where several are due at once. At most one entry for each task that waits; one whose
    /// task gave up wakes it once for nothing.
    waiting: RefCell<BTreeMap<(Instant, u64), Waker>>,
    next_number: Cell<u64>,
    set_to: Cell<Option<Instant>>,
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
        Ok(Self {
            timer,
            waiting: RefCell::default(),
            next_number: Cell::default(),
            set_to: Cell::default(),
        })
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
                let number = self.next_number.replace(self.next_number.get() + 1);
                self.waiting.borrow_mut().insert((due, number), context.waker().clone());
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
            while let Some(waker) = self.take_due(now) {
                waker.wake();
            }
            let next = self.waiting.borrow().first_key_value().map(|((due, _), _)| *due);
            if let Some(due) = next {
                self.set(due, now)?;
            }
        }
    }

    fn take_due(&self, now: Instant) -> Option<Waker> {
        let mut waiting = self.waiting.borrow_mut();
        let first = waiting.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
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

#[cfg(test)]
mod tests;
