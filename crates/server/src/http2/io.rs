//! The state that the streams of a connection share: its frames and its socket, what is received, the room for what is sent, and
//! whose turn it is (RFC 9218): the most urgent response goes first, of those alike the one that was asked for first, and then the
//! incremental ones in turns. A stream that waits for its window, a disk or a server is in nobody's way.

mod send;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use kettle_http::h2::{self, Priority};
use kettle_runtime::head_buffers::HeadBuffers;
use kettle_runtime::offloads::Offloads;
use kettle_runtime::tx_path::Reason;
use kettle_tls::buffers::RECORDS_PER_WRITE;
use kettle_tls::records::{PLAINTEXT_BYTES_MAX, RECORD_BYTES_MAX};
use kettle_tls::stream::{Filled, Stream, StreamError};
use tokio::sync::Semaphore;

pub(crate) use send::StreamProgress;
use send::{SealedBy, Written};

/// The state that the connection and its streams share.
pub(crate) struct Http2Io {
    tls: RefCell<Box<Stream>>,
    /// HTTP/2 itself, an `h2::Connection`: what frames mean, and those that are due.
    pub(super) frames: RefCell<h2::Connection>,
    written: RefCell<Written>,
    /// The queue of streams that wait to send.
    pub(super) queue: Rc<SendQueue>,
    /// The queue of streams that wait until a thread may read for them.
    pub(super) readers: Rc<SendQueue>,
    offloads: Rc<Offloads>,
    /// Memory for what is staged.
    heads: Rc<HeadBuffers>,
    /// The task that receives, and sends what is due.
    driver: RefCell<Option<Waker>>,
    /// True if it is at work: it sends what is due at the end of that.
    is_driven: Cell<bool>,
    ticks: Cell<u32>,
    turn_bytes_left: Cell<usize>,
    /// The bytes that threads read, or have read, and that are not sent yet.
    pub(super) read_bytes: Cell<usize>,
    /// Room for bodies that are made as a whole, once a stream asks for it.
    body_permits: OnceCell<Arc<Semaphore>>,
    /// Bytes of bodies that were written, of all streams.
    pub(super) written_bytes: Cell<u64>,
    is_blocked: Cell<bool>,
    /// When the client was last not listened to.
    unheard_ticks: Cell<Option<u32>>,
    /// True if it was not in this turn, or in front of it.
    was_unheard: Cell<bool>,
    /// True if nothing more is sent of any stream.
    is_over: Cell<bool>,
    /// True if the client says nothing more: no window of its opens again.
    is_input_over: Cell<bool>,
    /// True if it has ended the connection behind that.
    has_left: Cell<bool>,
    sealed_by: Cell<SealedBy>,
    is_plain: bool,
    /// Why the kernel was last refused.
    refusal: Cell<Option<Reason>>,
    /// The failure where nobody could be told.
    failure: Cell<Option<StreamError>>,
}

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

impl Http2Io {
    /// One for these frames.
    pub(crate) fn new(
        tls: Box<Stream>,
        frames: h2::Connection,
        offloads: Rc<Offloads>,
        heads: Rc<HeadBuffers>,
    ) -> Self {
        let sealed_by = if tls.takes_plaintext() { SealedBy::Kernel } else { SealedBy::User };
        Self {
            is_plain: tls.is_plain(),
            tls: RefCell::new(tls),
            frames: RefCell::new(frames),
            written: RefCell::default(),
            queue: Rc::default(),
            readers: Rc::default(),
            offloads,
            heads,
            driver: RefCell::default(),
            is_driven: Cell::default(),
            ticks: Cell::default(),
            turn_bytes_left: Cell::default(),
            read_bytes: Cell::default(),
            body_permits: OnceCell::new(),
            written_bytes: Cell::default(),
            is_blocked: Cell::default(),
            unheard_ticks: Cell::default(),
            was_unheard: Cell::default(),
            is_over: Cell::default(),
            is_input_over: Cell::default(),
            has_left: Cell::default(),
            sealed_by: Cell::new(sealed_by),
            refusal: Cell::default(),
            failure: Cell::default(),
        }
    }

    /// Returns the semaphore that bounds bodies made as a whole. A stream holds a permit until its body is sent: its client may
    /// open no window for it.
    pub(crate) fn body_permits(&self) -> &Arc<Semaphore> {
        self.body_permits.get_or_init(|| Arc::new(Semaphore::new(BODY_PERMITS)))
    }

    /// Begins a turn, at the end of which other connections have theirs.
    pub(crate) fn begin_turn(&self, context: &Context<'_>, ticks: u32) {
        let mut driver = self.driver.borrow_mut();
        if !driver.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
            *driver = Some(context.waker().clone());
        }
        self.is_driven.set(true);
        self.ticks.set(ticks);
        self.turn_bytes_left.set(TURN_BYTES);
        self.was_unheard.set(self.is_full());
    }

    /// Ends a turn, and schedules another if output is queued or reading resumed: no readiness event will come.
    pub(crate) fn end_turn(&self) {
        self.is_driven.set(false);
        let is_due = self.staged_bytes() > 0 && !self.is_blocked.get();
        if is_due || (self.was_unheard.get() && !self.is_full()) {
            self.wake_driver();
        }
    }

    /// Something is due.
    pub(super) fn wake_driver(&self) {
        if !self.is_driven.get()
            && let Some(driver) = &*self.driver.borrow()
        {
            driver.wake_by_ref();
        }
    }

    /// Receives what the client says. Pending if that is nothing, or it takes nothing of what it is told.
    pub(crate) fn poll_receive(&self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        if self.is_input_over.get() {
            self.look_for_end(context);
            return Poll::Pending;
        }
        if self.frames.borrow().end().is_some() {
            return Poll::Pending;
        }
        if self.is_unheard(self.ticks.get()) {
            self.was_unheard.set(true);
            return Poll::Pending;
        }
        if self.turn_bytes_left.get() == 0 {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let ticks = self.ticks.get();
        let sent_bytes = self.written.borrow().plaintext_bytes();
        let mut received_bytes = 0;
        let mut visit = |plaintext: &[u8]| {
            received_bytes += plaintext.len();
            self.frames.borrow_mut().receive(plaintext, ticks, sent_bytes);
        };
        let early = self.tls.borrow_mut().take_front(usize::MAX);
        let fill = match early.bytes() {
            [] => ready!(self.tls.borrow_mut().poll_visit(context, visit))?,
            // The bytes that told that a plain connection speaks HTTP/2.
            early => {
                visit(early);
                Filled::Data
            }
        };
        self.turn_bytes_left.set(self.turn_bytes_left.get().saturating_sub(received_bytes));
        match fill {
            Filled::Data => Poll::Ready(Ok(())),
            // The end is ours, not the client's.
            Filled::Closed if self.tls.borrow().is_key_refused() => {
                Poll::Ready(Err(StreamError::KeyExhausted))
            }
            // The client ended its side. Ours goes on until whole requests are answered (RFC 8446 §6.1).
            Filled::Closed => {
                self.is_input_over.set(true);
                self.frames.borrow_mut().end_input();
                Poll::Ready(Ok(()))
            }
            Filled::Truncated => {
                Poll::Ready(Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()))
            }
        }
    }

    /// Looks whether a client that said goodbye has gone. Its later bytes say nothing (RFC 8446 §6.1).
    fn look_for_end(&self, context: &mut Context<'_>) {
        if self.has_left.get() {
            return;
        }
        match self.tls.borrow_mut().poll_drain(context) {
            Poll::Pending => {}
            Poll::Ready(Ok(false)) => context.waker().wake_by_ref(),
            Poll::Ready(Ok(true) | Err(_)) => {
                self.has_left.set(true);
                self.frames.borrow_mut().wake_all();
            }
        }
    }

    /// True if so many bytes more may be held for the client. The bytes that threads read count apart: they must not keep
    /// others from being sent.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let held_bytes = self.held_bytes();
        held_bytes == 0 || held_bytes + bytes <= HELD_BYTES_MAX
    }

    /// True if so much waits for a client that takes nothing that it is not listened to: answers to it must not pile up.
    fn is_full(&self) -> bool {
        self.is_blocked.get() && self.held_bytes() > HELD_BYTES_MAX + ANSWERS_BYTES_MAX
    }

    /// True if it was so in this turn, or in front of it.
    pub(crate) fn was_unheard(&self) -> bool {
        self.was_unheard.get()
    }

    /// As [`is_full`](Self::is_full); notes the time if so.
    fn is_unheard(&self, ticks: u32) -> bool {
        let is_full = self.is_full();
        if is_full {
            self.unheard_ticks.set(Some(ticks));
        }
        is_full
    }

    /// When the client could last send no body: it had no window of the connection, or was not listened to; `ticks`, if that was
    /// so since this was last asked.
    pub(super) fn shut_ticks(&self, ticks: u32) -> Option<u32> {
        self.is_unheard(ticks);
        self.frames.borrow_mut().shut_ticks(ticks).max(self.unheard_ticks.get())
    }

    /// Returns the bytes that are due, sealed or not.
    pub(super) fn held_bytes(&self) -> usize {
        self.staged_bytes() + self.queued_bytes()
    }

    /// Returns the bytes that are due and not sealed yet.
    pub(super) fn staged_bytes(&self) -> usize {
        self.frames.borrow_mut().output().len()
    }

    fn queued_bytes(&self) -> usize {
        self.tls.borrow().queued_bytes()
    }

    /// Returns the bytes that the client has taken so far: they change by that, and not by what is said to the client.
    pub(crate) fn taken_so_far(&self) -> (u64, u64) {
        self.written.borrow().taken_so_far(self.queued_bytes())
    }

    /// True if the client had no room for what is due when that was last tried.
    pub(crate) fn is_blocked(&self) -> bool {
        self.is_blocked.get()
    }

    /// True if the client says nothing more: no window of its opens again.
    pub(crate) fn is_input_over(&self) -> bool {
        self.is_input_over.get()
    }

    /// True if it has ended the connection, too.
    pub(super) fn has_left(&self) -> bool {
        self.has_left.get()
    }

    /// Nothing more is sent of any stream: whoever serves one is told.
    pub(crate) fn end_streams(&self) {
        self.is_over.set(true);
        self.frames.borrow_mut().wake_all();
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Has the `h2::Connection` of [`frames`](Self::frames) tell of requests, or tell the client something: what that makes due
    /// is sent.
    pub(crate) fn with_frames<T>(&self, say: impl FnOnce(&mut h2::Connection) -> T) -> T {
        let outcome = say(&mut self.frames.borrow_mut());
        self.wake_driver();
        outcome
    }

    /// True if no more requests should be taken: the key cannot be changed.
    pub(crate) fn must_close(&self) -> bool {
        self.tls.borrow().must_close()
    }

    /// The connection, once nobody serves its streams.
    pub(crate) fn into_stream(self) -> Box<Stream> {
        self.tls.into_inner()
    }
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

/// The bytes that are held for a client before they are sent: half of what the largest pooled buffer holds. All of it costs a backend's
/// 1 MiB 15 % more just after a start and 6 % later, since the processor's near cache holds less of it (docs/performance.md).
const HELD_BYTES_MAX: usize = RECORDS_PER_WRITE / 2 * RECORD_BYTES_MAX;

/// The bytes that may be due besides to a client that takes nothing, and is listened to all the same.
const ANSWERS_BYTES_MAX: usize = PLAINTEXT_BYTES_MAX;

/// The bytes that one connection receives before it lets the others have a turn.
const TURN_BYTES: usize = 8 * HELD_BYTES_MAX;

/// Bodies that were made as a whole and are not sent yet.
const BODY_PERMITS: usize = 2;

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
