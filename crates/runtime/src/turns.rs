//! Fairness between handshakes and established connections: a bounded number of steps a turn, and a queue for the rest;
//! `send_turns` has that between connections that send.
//!
//! A waiting handshake is woken once, when there is a step for it: the cost of a turn does not grow with the number that wait.

mod send_turns;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;
use tokio::task::yield_now;

pub use send_turns::SendTurns;

/// Bounds the handshake steps that a worker takes before it looks after other connections.
pub struct HandshakeTurns {
    steps_max: usize,
    /// Steps of this turn that were neither taken nor granted.
    steps_left: Cell<usize>,
    /// First come, first served.
    queue: RefCell<VecDeque<Rc<TurnWaiter>>>,
    someone_waits: Notify,
}

/// A handshake that waits in the queue.
#[derive(Default)]
struct TurnWaiter {
    state: Cell<State>,
    waker: RefCell<Option<Waker>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Waiting,
    /// A step is there, and not taken yet.
    Granted,
    /// It no longer waits.
    Left,
}

impl HandshakeTurns {
    /// At most `steps_max` steps a turn.
    #[must_use]
    pub fn new(steps_max: usize) -> Self {
        let steps_max = steps_max.max(1);
        Self {
            steps_max,
            steps_left: Cell::new(steps_max),
            queue: RefCell::default(),
            someone_waits: Notify::new(),
        }
    }

    /// Waits until another handshake step may be taken. Dropping it gives up the place, and a step that was granted.
    pub fn take(&self) -> Take<'_> {
        Take { turns: self, waiter: None }
    }

    /// Begins one turn after the other while handshakes wait; never returns.
    pub async fn run(&self) {
        loop {
            self.someone_waits.notified().await;
            while !self.queue.borrow().is_empty() {
                // Comes back after the runtime has polled the sockets and run what was ready.
                yield_now().await;
                self.steps_left.set(self.steps_max);
                self.grant();
            }
        }
    }

    /// Grants the steps that are left, to those that have waited longest.
    fn grant(&self) {
        while self.steps_left.get() > 0 {
            let Some(waiter) = self.queue.borrow_mut().pop_front() else { return };
            if waiter.state.get() == State::Left {
                continue;
            }
            waiter.state.set(State::Granted);
            self.steps_left.set(self.steps_left.get() - 1);
            if let Some(waker) = waiter.waker.take() {
                waker.wake();
            }
        }
    }
}

/// The wait for a step.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Take<'t> {
    turns: &'t HandshakeTurns,
    waiter: Option<Rc<TurnWaiter>>,
}

impl Future for Take<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let turns = self.turns;
        let Some(waiter) = &self.waiter else {
            let mut queue = turns.queue.borrow_mut();
            if queue.is_empty() && turns.steps_left.get() > 0 {
                turns.steps_left.set(turns.steps_left.get() - 1);
                return Poll::Ready(());
            }
            let waiter = Rc::<TurnWaiter>::default();
            waiter.waker.replace(Some(context.waker().clone()));
            queue.push_back(Rc::clone(&waiter));
            drop(queue);
            self.waiter = Some(waiter);
            turns.someone_waits.notify_one();
            return Poll::Pending;
        };
        if waiter.state.get() == State::Granted {
            self.waiter = None;
            return Poll::Ready(());
        }
        let mut waker = waiter.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for Take<'_> {
    fn drop(&mut self) {
        let Some(waiter) = self.waiter.take() else { return };
        if waiter.state.replace(State::Left) == State::Granted {
            self.turns.steps_left.set(self.turns.steps_left.get() + 1);
            self.turns.grant();
        }
    }
}
