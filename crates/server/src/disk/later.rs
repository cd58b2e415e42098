//! Calls on a device that nobody waits for: one after the other, on one thread, within a bound of memory. A thread that is still
//! busy goes on to the next by itself, so where many come, few are handed over.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::{Device, Disks, on_thread};

/// The calls of a device that are still to be made.
#[derive(Debug, Default)]
pub(super) struct Later {
    queue: Mutex<CallQueue>,
    emptied: Notify,
}

#[derive(Default)]
struct CallQueue {
    calls: VecDeque<(usize, Call)>,
    /// What those that are still to be made hold, and the one that is being made.
    bytes: usize,
    is_running: bool,
}

type Call = Box<dyn FnOnce() + Send>;

impl Device {
    /// Whether a call that holds this many bytes still fits. Only threads that have made one make room, so it stays true until this
    /// worker hands one over.
    #[must_use]
    pub fn has_room(self: &Arc<Self>, bytes: usize) -> bool {
        self.run_queue();
        let queue = self.later.lock();
        queue.bytes.saturating_add(bytes) <= BYTES_MAX && queue.calls.len() < CALLS_MAX
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

    /// Begins with the calls that wait, unless that was done. Where no thread can be started, they wait for the next question
    /// whether there is room.
    fn run_queue(self: &Arc<Self>) {
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
        for device in devices {
            device.run_queue();
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
            self.lock().bytes -= bytes;
        }
    }

    async fn has_run_all(&self) {
        loop {
            let emptied = self.emptied.notified();
            if !self.lock().is_running {
                return;
            }
            emptied.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, CallQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CallQueue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (calls, bytes) = (self.calls.len(), self.bytes);
        formatter.debug_struct("CallQueue").field("calls", &calls).field("bytes", &bytes).finish()
    }
}

/// What the calls that one worker leaves to one device may hold, and how many they may be: a disk that is slow for a moment is no
/// reason to lose anything, and one that hangs costs no more than this.
const BYTES_MAX: usize = 32 * 1_024 * 1_024;
const CALLS_MAX: usize = 16_384;
