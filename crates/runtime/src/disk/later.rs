//! Calls on a device that nobody waits for: one after the other, on one thread, within a bound of memory. A thread that is still
//! busy goes on to the next by itself, so where many come, few are handed over.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use tokio::sync::Notify;

use super::reservation::{Reservation, Reservations};
use super::{Device, Disks, on_thread};

/// The calls of a device that are still to be made.
#[derive(Debug, Default)]
pub(super) struct Later {
    queue: Mutex<CallQueue>,
    emptied: Notify,
}

pub(super) struct CallQueue {
    calls: VecDeque<(usize, Call)>,
    /// The bytes that those that are still to be made hold, and the one that is being made.
    bytes: usize,
    bytes_max: usize,
    is_running: bool,
    pub(super) reservations: Reservations,
}

type Call = Box<dyn FnOnce() + Send>;

impl Device {
    /// True if a call that holds this many bytes still fits. Only threads that have made one make room, so it stays true until this
    /// worker hands one over.
    #[must_use]
    pub fn has_room(self: &Arc<Self>, bytes: usize) -> bool {
        self.run_queue();
        self.later.lock().fits(bytes)
    }

    /// The same for what a fetch brought: without a reservation it takes nothing of what others have reserved or wait for.
    #[must_use]
    pub fn has_room_for(self: &Arc<Self>, bytes: usize, reservation: Option<&Reservation>) -> bool {
        self.run_queue();
        let queue = self.later.lock();
        queue.fits(bytes)
            && (reservation.is_some()
                || (queue.has_free_room() && !queue.reservations.is_waited_for()))
    }

    /// Makes a call that holds this many bytes and may wait for the device, behind those before it. The caller has asked whether
    /// it [fits](Self::has_room), and does not learn what comes of it: at the latest with the process it ends.
    pub fn run_later(self: &Arc<Self>, bytes: usize, call: impl FnOnce() + Send + 'static) {
        let mut queue = self.later.lock();
        queue.bytes += bytes;
        queue.calls.push_back((bytes, Box::new(call)));
        drop(queue);
        self.run_queue();
    }

    /// Begins with the calls that wait, unless that was done. If no thread can be started, they wait for the next question
    /// whether there is room.
    pub(super) fn run_queue(self: &Arc<Self>) {
        let mut queue = self.later.lock();
        if queue.calls.is_empty() || std::mem::replace(&mut queue.is_running, true) {
            return;
        }
        drop(queue);
        let device = Arc::clone(self);
        if on_thread(move || device.later.run()).is_none() {
            self.later.lock().is_running = false;
            self.later.emptied.notify_waiters();
        }
    }
}

impl Disks {
    /// Waits until all calls were made that nobody waits for, where a thread can be had for them.
    pub async fn have_run_all(&self) {
        let devices: Vec<_> = self.devices.borrow().values().map(Arc::clone).collect();
        // All of them first: one that hangs holds up no other.
        devices.iter().for_each(Device::run_queue);
        for device in devices {
            device.later.has_run_all().await;
        }
    }
}

impl Later {
    fn run(&self) {
        loop {
            let mut queue = self.lock();
            let Some((bytes, call)) = queue.calls.pop_front() else {
                // Before the lock is given back: what comes after it begins another thread.
                queue.is_running = false;
                drop(queue);
                return self.emptied.notify_waiters();
            };
            drop(queue);
            // One that panics, which the process has been told of, leaves those behind it to this thread all the same.
            let _ = catch_unwind(AssertUnwindSafe(call));
            let mut queue = self.lock();
            queue.bytes -= bytes;
            let woken = queue.hand_out();
            drop(queue);
            woken.into_iter().for_each(Waker::wake);
        }
    }

    pub(super) async fn has_run_all(&self) {
        loop {
            let emptied = self.emptied.notified();
            if !self.lock().is_running {
                return;
            }
            emptied.await;
        }
    }

    /// Bounds what the calls may hold.
    pub(super) fn set_bytes_max(&self, bytes: usize) {
        self.lock().bytes_max = bytes;
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, CallQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallQueue {
    fn fits(&self, bytes: usize) -> bool {
        self.bytes.saturating_add(bytes) <= self.bytes_max && self.calls.len() < CALLS_MAX
    }

    /// True if another fetch may begin. If the disk is hardly behind, that is so however many are under way: their backends may be
    /// slow.
    pub(super) fn has_free_room(&self) -> bool {
        self.is_hardly_behind() || self.has_unreserved(0)
    }

    fn is_hardly_behind(&self) -> bool {
        self.bytes <= self.bytes_max / HARDLY_PART && self.calls.len() <= CALLS_MAX / HARDLY_PART
    }

    /// True if there is so much that neither calls nor reservations take, and for one more of them.
    fn has_unreserved(&self, bytes: usize) -> bool {
        let taken = self.bytes.saturating_add(self.reservations.bytes_with_another());
        taken.saturating_add(bytes) <= self.bytes_max
            && self.calls.len() + self.reservations.held() < CALLS_MAX
    }

    /// Gives room to those that wait for it; whom to wake. Several at once: each time costs more than a call.
    pub(super) fn hand_out(&mut self) -> Vec<Waker> {
        let mut woken = Vec::new();
        if self.has_unreserved(self.bytes_max / AT_ONCE_PART) {
            while self.has_unreserved(0)
                && let Some(waker) = self.reservations.hand_over()
            {
                woken.push(waker);
            }
        }
        // One for each call that was made, and all once there is none.
        while self.is_hardly_behind()
            && (woken.is_empty() || self.calls.is_empty())
            && let Some(waker) = self.reservations.hand_over()
        {
            woken.push(waker);
        }
        woken
    }
}

impl Default for CallQueue {
    fn default() -> Self {
        let calls = VecDeque::new();
        let reservations = Reservations::default();
        Self { calls, bytes: 0, bytes_max: UNWRITTEN_BYTES_MAX, is_running: false, reservations }
    }
}

impl fmt::Debug for CallQueue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = self.calls.len();
        let bytes = self.bytes;
        formatter.debug_struct("CallQueue").field("calls", &calls).field("bytes", &bytes).finish()
    }
}

/// The bytes that the calls of one worker to one device may hold, and how many they may be: a disk that is slow for a moment is
/// no reason to lose anything, and one that hangs costs no more than this.
pub const UNWRITTEN_BYTES_MAX: usize = 32 * 1_024 * 1_024;
const CALLS_MAX: usize = 16_384;

/// The part of these that is little: it does not take long.
const HARDLY_PART: usize = 8;

/// The part that is free before those that wait get it.
const AT_ONCE_PART: usize = 128;
