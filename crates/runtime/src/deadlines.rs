//! Deadlines without timers; `pace` has the least rate of a client.
//!
//! A worker ticks once a second and looks at every connection's deadline. Setting one is a store
//! to a cell: the hot path starts and stops no timer. Deadlines are therefore up to a second late.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

mod pace;

pub use pace::{BYTES_PER_SECOND_MIN, Pace};

/// Time between two ticks.
pub const TICK: Duration = Duration::from_secs(1);

/// Why a wait ended before what it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// Its deadline passed.
    Expired,
    /// The server is stopping, and no request was under way or its time to drain is over.
    Draining,
}

impl Interrupt {
    /// The word in metrics for what it ended.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "timed_out",
            Self::Draining => "server_stopping",
        }
    }
}

/// The stage in the middle of which a connection waits. It decides how long a server that stops waits with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A request that is complete, or its response: as long as the drain may take.
    UnderWay,
    /// Part of a handshake or of a request head: [`BEGUN_TICKS`], for a client that is in the middle of sending.
    Begun,
    /// Its first request is due, or one may be on its way that it sent before it heard of the stop: [`DUE_TIME`].
    Due,
    /// Nothing is owed to the client: not at all.
    Idle,
}

/// Ticks that a stopping server leaves to what has only begun: one whole tick, and the rest of the
/// tick in which the stop came.
const BEGUN_TICKS: u32 = 2;

/// Ticks after which a connection may make room for another: one whole tick, and the rest of that in which its wait began.
const IDLE_TICKS: u32 = 2;

/// Connections that are looked at to find one that makes room: some 50 µs, however many there are.
const LOOKED_AT_MAX: usize = 1_024;

/// The time that a stopping server leaves to requests of which nothing has come.
pub const DUE_TIME: Duration = Duration::from_millis(500);

/// The deadlines of one worker's connections.
#[derive(Default)]
pub struct Deadlines {
    state: Rc<TickState>,
    deadlines: RefCell<Vec<Weak<Deadline>>>,
    /// Where the next look for an idle connection begins.
    looked_at: Cell<usize>,
}

#[derive(Default)]
struct TickState {
    ticks: Cell<u32>,
    draining_since: Cell<Option<u32>>,
    /// Requests of which nothing has come are no reason to stay any more.
    is_due_over: Cell<bool>,
    /// Requests under way are no reason to stay any more.
    is_drain_over: Cell<bool>,
}

impl Deadlines {
    /// A deadline for a new connection.
    #[must_use]
    pub fn register(&self) -> Rc<Deadline> {
        // A client that comes while the server stops may have waited for the room that others made: its time begins with the
        // next tick.
        let is_late = self.state.is_due_over.get();
        let deadline = Rc::new(Deadline {
            state: Rc::clone(&self.state),
            registered_ticks: self.state.ticks.get() + u32::from(is_late),
            extended_ticks: Cell::new(self.state.ticks.get()),
            deadline_ticks: Cell::new(u32::MAX),
            stage: Cell::new(Stage::UnderWay),
            waker: RefCell::new(None),
        });
        self.deadlines.borrow_mut().push(Rc::downgrade(&deadline));
        deadline
    }

    /// Lets a tick pass, and wakes the connections whose deadline has come.
    pub fn tick(&self) {
        self.state.ticks.set(self.state.ticks.get().saturating_add(1));
        self.wake_interrupted();
    }

    /// The number of ticks that have passed.
    #[must_use]
    pub fn ticks(&self) -> u32 {
        self.state.ticks.get()
    }

    /// From now on only requests are a reason to stay, and for [`DUE_TIME`] those that are due.
    pub fn drain(&self) {
        self.state.draining_since.set(Some(self.state.ticks.get()));
        self.wake_interrupted();
    }

    /// That time is over.
    pub fn end_due(&self) {
        self.state.is_due_over.set(true);
        self.wake_interrupted();
    }

    /// From now on nothing is a reason to stay.
    pub fn end_drain(&self) {
        self.state.is_drain_over.set(true);
        self.wake_interrupted();
    }

    /// True if the server is stopping.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.state.draining_since.get().is_some()
    }

    /// Ends one connection whose client has asked for nothing for a second at least, so that another has its room: the one that
    /// has waited for the longest, of the next thousand.
    pub fn end_idle(&self) {
        let deadlines = self.deadlines.borrow();
        let (before, next) = deadlines.split_at(self.looked_at.get().min(deadlines.len()));
        let looked_at = next.iter().chain(before).take(LOOKED_AT_MAX).filter_map(Weak::upgrade);
        let idle = looked_at.filter(|it| it.is_idle()).min_by_key(|it| it.extended_ticks.get());
        self.looked_at.set((self.looked_at.get() + LOOKED_AT_MAX) % deadlines.len().max(1));
        if let Some(idle) = idle {
            idle.deadline_ticks.set(0);
            idle.wake();
        }
    }

    fn wake_interrupted(&self) {
        self.deadlines.borrow_mut().retain(|deadline| {
            let Some(deadline) = deadline.upgrade() else {
                return false;
            };
            // While the server stops all are woken: some wait for the peer to have it all, of which
            // no event tells.
            if self.is_draining() || deadline.interrupt().is_some() {
                deadline.wake();
            }
            true
        });
    }
}

/// One connection's deadline.
pub struct Deadline {
    state: Rc<TickState>,
    registered_ticks: u32,
    /// When the wait began, or had progress.
    extended_ticks: Cell<u32>,
    deadline_ticks: Cell<u32>,
    stage: Cell<Stage>,
    waker: RefCell<Option<Waker>>,
}

/// A deadline for what seldom waits: it is registered when it first does.
pub struct LazyDeadline<'d> {
    deadlines: &'d Deadlines,
    registered: OnceCell<Rc<Deadline>>,
}

impl<'d> LazyDeadline<'d> {
    /// One of this worker's.
    #[must_use]
    pub fn new(deadlines: &'d Deadlines) -> Self {
        Self { deadlines, registered: OnceCell::new() }
    }

    /// The deadline.
    pub fn get(&self) -> &Deadline {
        self.registered.get_or_init(|| self.deadlines.register())
    }
}

impl Deadline {
    /// Waits for `poll` with a request under way, but not longer than `limit`.
    ///
    /// # Errors
    /// [`Interrupt::Expired`].
    pub fn within<T>(
        &self,
        limit: Duration,
        poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> impl Future<Output = Result<T, Interrupt>> {
        self.extend(limit);
        self.wait(Stage::UnderWay, poll)
    }

    /// As [`within`](Self::within), for a wait with no request under way.
    ///
    /// # Errors
    /// [`Interrupt::Expired`], or [`Interrupt::Draining`] if the server is stopping.
    pub fn idle_within<T>(
        &self,
        limit: Duration,
        poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> impl Future<Output = Result<T, Interrupt>> {
        self.extend(limit);
        self.wait(Stage::Idle, poll)
    }

    /// The number of ticks that have passed on its worker.
    pub fn ticks(&self) -> u32 {
        self.state.ticks.get()
    }

    /// Starts the time again, because there was progress.
    pub fn extend(&self, limit: Duration) {
        // The current tick is partly over, so one more is counted; and a part of a second is a whole one: late, never early.
        let seconds = limit.as_secs().saturating_add(u64::from(limit.subsec_nanos() > 0));
        let ticks = u32::try_from(seconds).unwrap_or(u32::MAX).saturating_add(1);
        self.deadline_ticks.set(self.state.ticks.get().saturating_add(ticks));
        self.extended_ticks.set(self.state.ticks.get());
    }

    /// Waits for `poll` until the deadline that is set already.
    ///
    /// # Errors
    /// [`Interrupt`].
    pub fn wait<T>(
        &self,
        stage: Stage,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> impl Future<Output = Result<T, Interrupt>> {
        self.wait_for_outcome(stage, move |context| poll(context).map(Ok))
    }

    /// As [`wait`](Self::wait), for a `poll` that finds interrupts of its own.
    ///
    /// Neither this nor the others is an `async fn`: that would keep its arguments twice, before its first poll and after, and
    /// every idle connection would have them in memory.
    fn wait_for_outcome<T>(
        &self,
        stage: Stage,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<Result<T, Interrupt>>,
    ) -> impl Future<Output = Result<T, Interrupt>> {
        self.stage.set(stage);
        poll_fn(move |context| {
            if let Poll::Ready(outcome) = poll(context) {
                // Its connection is at work until the next wait.
                self.stage.set(Stage::UnderWay);
                return Poll::Ready(outcome);
            }
            self.poll_interrupt(context).map(Err)
        })
    }

    /// Ready when whoever waits for something until the deadline that is set already is to wait no longer.
    pub fn poll_interrupt(&self, context: &mut Context<'_>) -> Poll<Interrupt> {
        if let Some(interrupt) = self.interrupt() {
            return Poll::Ready(interrupt);
        }
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
        Poll::Pending
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// True if nothing of a request has come for a second at least, and the wait goes on.
    fn is_idle(&self) -> bool {
        let waited_ticks = self.state.ticks.get().saturating_sub(self.extended_ticks.get());
        matches!(self.stage.get(), Stage::Idle | Stage::Due)
            && waited_ticks >= IDLE_TICKS
            && self.interrupt().is_none()
    }

    fn interrupt(&self) -> Option<Interrupt> {
        if self.deadline_ticks.get() <= self.state.ticks.get() {
            return Some(Interrupt::Expired);
        }
        // A connection that is only accepted once there is room, while the server stops already, gets its time from then on.
        let draining_since = self.state.draining_since.get()?;
        let begun_ticks = draining_since.max(self.registered_ticks);
        let is_begun_over = self.state.ticks.get().saturating_sub(begun_ticks) >= BEGUN_TICKS;
        let was_there = self.registered_ticks <= draining_since;
        let has_to_go = match self.stage.get() {
            Stage::UnderWay => self.state.is_drain_over.get(),
            Stage::Begun => is_begun_over,
            Stage::Due => is_begun_over || (was_there && self.state.is_due_over.get()),
            Stage::Idle => is_begun_over || was_there,
        };
        has_to_go.then_some(Interrupt::Draining)
    }
}

#[cfg(test)]
mod tests;
