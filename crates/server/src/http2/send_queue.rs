//! Which response of a connection is sent from next (RFC 9218): the most urgent, of those the one that was asked for first, and
//! then the incremental ones in turns.
//!
//! A stream that waits for its window, a disk or a server is in nobody's way here.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use kettle_http::h2::Priority;

/// Those that wait for the same, to send or for a thread to read, the next one first.
#[derive(Default)]
pub(super) struct SendQueue {
    waiting: RefCell<BTreeMap<Rank, Option<Waker>>>,
    turns: Cell<u64>,
}

/// Urgency, whether it is incremental, and its turn: the number of its stream, or one of its own each time.
type Rank = (u8, bool, u64);

/// A place in the queue, until it is dropped.
pub(crate) struct QueuePlace {
    queue: Rc<SendQueue>,
    place: Rank,
}

impl SendQueue {
    /// True if nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// Takes a place for a stream of this number.
    pub(super) fn enter(self: &Rc<Self>, priority: Priority, stream: u32) -> QueuePlace {
        let Priority { urgency, is_incremental } = priority;
        self.turns.set(self.turns.get() + 1);
        let turn = if is_incremental { self.turns.get() } else { u64::from(stream) };
        let place = (urgency, is_incremental, turn);
        self.waiting.borrow_mut().insert(place, None);
        QueuePlace { queue: Rc::clone(self), place }
    }

    /// There may be room for the first of them. A task that is woken in vain waits again.
    pub(super) fn wake_first(&self) {
        let mut waiting = self.waiting.borrow_mut();
        if let Some(waker) = waiting.first_entry().and_then(|mut first| first.get_mut().take()) {
            waker.wake();
        }
    }
}

impl QueuePlace {
    /// True if it is where this priority belongs.
    pub(super) fn is_for(&self, priority: Priority) -> bool {
        (self.place.0, self.place.1) == (priority.urgency, priority.is_incremental)
    }

    /// Ready when nobody is before it.
    pub(super) fn poll_first(&self, context: &mut Context<'_>) -> Poll<()> {
        let is_first =
            self.queue.waiting.borrow().first_key_value().is_none_or(|it| *it.0 == self.place);
        if is_first {
            return Poll::Ready(());
        }
        self.wait(context);
        Poll::Pending
    }

    /// Has it woken when there is room and it is the first.
    pub(super) fn wait(&self, context: &Context<'_>) {
        let waker = Some(context.waker().clone());
        self.queue.waiting.borrow_mut().insert(self.place, waker);
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        self.queue.waiting.borrow_mut().remove(&self.place);
        self.queue.wake_first();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_urgent_comes_first_and_those_alike_in_turns() {
        let queue = Rc::new(SendQueue::default());
        let mut context = Context::from_waker(Waker::noop());
        let [low, turns, usual] = [(5, false), (3, true), (3, false)]
            .map(|(urgency, is_incremental)| Priority { urgency, is_incremental });
        let places = [
            queue.enter(low, 7),
            queue.enter(low, 5),
            queue.enter(turns, 9),
            queue.enter(turns, 1),
            queue.enter(usual, 11),
        ];
        let mut left: Vec<_> = places.into_iter().enumerate().collect();
        let mut order = Vec::new();
        while !left.is_empty() {
            let first = left.iter().position(|(_, it)| it.poll_first(&mut context).is_ready());
            order.push(left.remove(first.unwrap()).0);
        }
        assert_eq!(order, [4, 2, 3, 1, 0]);
        assert!(queue.is_empty());
    }
}
