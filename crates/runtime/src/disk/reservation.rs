//! Room for what fetches bring, reserved before they begin: a disk that is behind slows down what asks for more, and loses nothing of it.
//! Bytes that are here already wait for nothing; see [`later`](super::later) for where they go.

use std::collections::{BTreeMap, HashMap};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::timeout;

use super::{Device, QUEUE_MAX};
use crate::client_address::ClientHost;

/// Room for what one fetch brings, or the place of a fetch that waits for that. Given back when it is dropped.
#[derive(Debug)]
pub struct Reservation {
    device: Arc<Device>,
    ticket: u64,
}

/// The fetches of a device that have room, and those that wait for it.
#[derive(Debug, Default)]
pub(super) struct Reservations {
    held: usize,
    /// The bytes that one of them brings: as much as the largest of late.
    each_bytes: usize,
    /// In the order in which they came.
    waiting: BTreeMap<u64, WaitingFetch>,
    /// The number of those of each client.
    of_client: HashMap<ClientHost, usize>,
    tickets: u64,
}

#[derive(Debug)]
struct WaitingFetch {
    client: ClientHost,
    waker: Waker,
}

impl Device {
    /// Waits for room for what a fetch of this client brings, behind those that wait already; `None` where there is none in time, or
    /// too many wait. `client` is the network that counts as one.
    pub async fn reserve(self: &Arc<Self>, client: ClientHost) -> Option<Reservation> {
        self.run_queue();
        let reservation = self.begin_waiting(client)?;
        let is_held = poll_fn(|context| reservation.poll(context));
        timeout(WAIT_MAX, is_held).await.ok()?;
        Some(reservation)
    }

    fn begin_waiting(self: &Arc<Self>, client: ClientHost) -> Option<Reservation> {
        let mut queue = self.later.lock();
        let fits = queue.has_free_room();
        let ticket = queue.reservations.begin(client, fits)?;
        drop(queue);
        Some(Reservation { device: Arc::clone(self), ticket })
    }
}

impl Reservation {
    fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        match self.device.later.lock().reservations.waiting.get_mut(&self.ticket) {
            Some(waiting) => {
                waiting.waker.clone_from(context.waker());
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }

    /// Gives it back for what it was made for, which holds this many bytes.
    pub fn used(self, bytes: usize) {
        self.device.later.lock().reservations.learn(bytes);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut queue = self.device.later.lock();
        if !queue.reservations.leave(self.ticket) {
            queue.reservations.held -= 1;
        }
        let woken = queue.hand_out();
        drop(queue);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl Reservations {
    /// Nobody is overtaken.
    fn begin(&mut self, client: ClientHost, fits: bool) -> Option<u64> {
        self.tickets += 1;
        if self.waiting.is_empty() && fits {
            self.held += 1;
            return Some(self.tickets);
        }
        let of_client = self.of_client.get(&client).copied().unwrap_or(0);
        if self.waiting.len() >= WAITING_MAX || of_client >= WAITING_MAX / 2 {
            return None;
        }
        self.of_client.insert(client, of_client + 1);
        self.waiting.insert(self.tickets, WaitingFetch { client, waker: Waker::noop().clone() });
        Some(self.tickets)
    }

    /// True if it waited.
    fn leave(&mut self, ticket: u64) -> bool {
        let Some(WaitingFetch { client, .. }) = self.waiting.remove(&ticket) else { return false };
        self.is_left_by(client);
        true
    }

    /// Gives room to the one that has waited longest.
    pub(super) fn hand_over(&mut self) -> Option<Waker> {
        let (_, WaitingFetch { client, waker }) = self.waiting.pop_first()?;
        self.is_left_by(client);
        self.held += 1;
        Some(waker)
    }

    fn is_left_by(&mut self, client: ClientHost) {
        if let Some(of_client) = self.of_client.get_mut(&client) {
            *of_client -= 1;
            if *of_client == 0 {
                self.of_client.remove(&client);
            }
        }
    }

    fn learn(&mut self, bytes: usize) {
        let less = self.each_bytes.saturating_sub(bytes) / FORGOTTEN_PART;
        self.each_bytes = bytes.max(self.each_bytes - less);
    }

    pub(super) fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the number of those that have room.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Returns the bytes that these and one more will bring.
    pub(super) fn bytes_with_another(&self) -> usize {
        (self.held + 1).saturating_mul(self.each_bytes)
    }
}

/// The time the beginning of a fetch waits for room. Behind that its answer is kept if nobody is in the way.
const WAIT_MAX: Duration = Duration::from_millis(250);

/// Fetches of a worker that may wait for one device: as many as requests may. At most half of them are one client's.
const WAITING_MAX: usize = QUEUE_MAX;

/// The part of the difference to a larger one that is forgotten with each that is smaller.
const FORGOTTEN_PART: usize = 64;

#[cfg(test)]
mod tests;
