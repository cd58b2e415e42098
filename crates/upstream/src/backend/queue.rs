//! The queue before a backend whose servers are all at their limit: first come, first served, whatever their worker. A client
//! that has had its turn at a server, which failed it, waits before those that have not.
//!
//! A slot that becomes free is not handed over but left free, and the front waiter is called to take it. So a waiter
//! that leaves, at whatever moment, can take no slot with it: it only has to call the next. Newcomers queue up as long
//! as there is a waiter. The lock is taken by waiters, and by connections that end while there are some.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The waiters, in the order they came.
#[derive(Debug, Default)]
pub(super) struct SlotQueue {
    /// The number of those that wait. Written with the lock held; sequentially consistent, as the servers' counts are: a
    /// connection that gives its slot back and sees no waiter came before the waiter, which will then see the slot.
    waiting: AtomicUsize,
    waiters: Mutex<Waiters>,
}

#[derive(Debug, Default)]
struct Waiters {
    next_number: u64,
    by_ticket: BTreeMap<Ticket, Arc<Notify>>,
}

/// A ticket: true as long as its client has not had its turn yet, and its number.
type Ticket = (bool, u64);

impl SlotQueue {
    /// Returns the number of those that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(SeqCst)
    }

    /// Waits behind all others that are as new, if fewer than `waiters_max` wait. The front is called: there may be room by now.
    pub(super) fn join(&self, waiters_max: usize, is_new: bool) -> Option<Waiter<'_>> {
        let mut waiters = self.waiters();
        if waiters.by_ticket.len() >= waiters_max {
            return None;
        }
        let ticket = (is_new, waiters.next_number);
        let called = Arc::new(Notify::new());
        waiters.next_number += 1;
        waiters.by_ticket.insert(ticket, Arc::clone(&called));
        self.waiting.store(waiters.by_ticket.len(), SeqCst);
        waiters.call_after(None);
        drop(waiters);
        Some(Waiter { queue: self, ticket, called })
    }

    /// Calls the front waiter: a slot may be free.
    pub(super) fn call_front(&self) {
        if self.waiting() > 0 {
            self.waiters().call_after(None);
        }
    }

    fn waiters(&self) -> MutexGuard<'_, Waiters> {
        // The data that it guards is whole between any two statements.
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiters {
    fn call_after(&self, ticket: Option<Ticket>) {
        let start = ticket.map_or(Bound::Unbounded, Bound::Excluded);
        if let Some((_, called)) = self.by_ticket.range((start, Bound::Unbounded)).next() {
            called.notify_one();
        }
    }
}

/// A waiter. When it is dropped, it leaves the queue and calls the new front.
pub(super) struct Waiter<'q> {
    queue: &'q SlotQueue,
    ticket: Ticket,
    called: Arc<Notify>,
}

impl Waiter<'_> {
    /// Waits to be called. A call that came before is not lost.
    pub(super) async fn called(&self) {
        self.called.notified().await;
    }

    /// Calls the one behind: the slot that is free is none for this one.
    pub(super) fn pass_on(&self) {
        self.queue.waiters().call_after(Some(self.ticket));
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut waiters = self.queue.waiters();
        waiters.by_ticket.remove(&self.ticket);
        self.queue.waiting.store(waiters.by_ticket.len(), SeqCst);
        waiters.call_after(None);
    }
}

#[cfg(test)]
mod tests;
