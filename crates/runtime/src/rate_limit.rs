//! The rate at which one client may ask, counted for all workers together.
//!
//! A client is a network. Its bucket is one time: when it would be full again. The table is made of small sets, chosen by a
//! keyed hash, each with its own lock, which is held for a few instructions. A set that is full forgets the client whose
//! bucket is full again first: a client near its limit is not forgotten because others come.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kettle_kernel::bug;

use crate::client_address::ClientHost;

/// The clients of a route.
#[derive(Debug)]
pub struct RateLimit {
    settings: kettle_config::RateLimit,
    /// The time that one request takes out of a bucket.
    interval: u64,
    table: Arc<Table>,
}

#[derive(Debug)]
struct Table {
    hash: RandomState,
    sets: Box<[Mutex<[Bucket; WAYS]>]>,
}

/// The state of a client. An empty place has network zero, which no client has: IPv4 networks have the bits of their mapped
/// form.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    network: u128,
    /// When its bucket is full again, in nanoseconds.
    full: u64,
    /// Its requests under way.
    pending: u32,
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    /// The client has used up its rate.
    Client {
        /// It may ask again after so many.
        seconds: u64,
    },
    /// There is no place to count it in: all of its set are of clients with requests under way.
    Crowd,
}

/// The place of a request under way among those of its client.
#[derive(Debug)]
struct ClientPlace {
    table: Arc<Table>,
    network: u128,
}

/// A limit that has counted a request, and those that did before: a rewrite may lead through several. Their places are free again
/// together.
#[derive(Debug)]
pub struct Counted {
    table: Arc<Table>,
    /// None where requests under way are not limited, or where this one was refused.
    _place: Option<ClientPlace>,
    before: Option<Rc<Counted>>,
}

impl RateLimit {
    /// Goes on with what one of the same settings has counted.
    pub fn new(settings: &kettle_config::RateLimit, counted: Option<&Self>) -> Self {
        let interval = settings.period.as_nanos() / u128::from(settings.requests);
        let table = match counted {
            Some(counted) if counted.settings == *settings => Arc::clone(&counted.table),
            _ => Arc::new(Table::new()),
        };
        Self {
            settings: settings.clone(),
            interval: u64::try_from(interval).unwrap_or(u64::MAX),
            table,
        }
    }

    /// Counts a request, unless it was counted here before: it comes back by a rewrite, or for the page of its own refusal.
    ///
    /// # Errors
    /// [`Exceeded`].
    pub fn count(
        &self,
        client: ClientHost,
        now: Duration,
        counted: &mut Option<Rc<Counted>>,
    ) -> Result<(), Exceeded> {
        let mut before = std::iter::successors(counted.as_ref(), |it| it.before.as_ref());
        if before.any(|it| Arc::ptr_eq(&it.table, &self.table)) {
            return Ok(());
        }
        let (place, outcome) = match self.take(client, now) {
            Ok(place) => (place, Ok(())),
            Err(exceeded) => (None, Err(exceeded)),
        };
        let table = Arc::clone(&self.table);
        let before = counted.take();
        *counted = Some(Rc::new(Counted { table, _place: place, before }));
        outcome
    }

    /// Takes one request out of a client's bucket.
    fn take(&self, client: ClientHost, now: Duration) -> Result<Option<ClientPlace>, Exceeded> {
        let network = network(client);
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let mut set = self.table.set(network);
        let client = place(&mut set, network).ok_or(Exceeded::Crowd)?;
        if self.settings.concurrent.is_some_and(|max| client.pending >= max) {
            return Err(Exceeded::Client { seconds: 1 });
        }
        let full = client.full.max(now).saturating_add(self.interval);
        let room = self.interval.saturating_mul(self.settings.burst.into());
        let missing = full.saturating_sub(now).saturating_sub(room);
        if missing > 0 {
            return Err(Exceeded::Client { seconds: missing.div_ceil(NANOSECONDS) });
        }
        client.full = full;
        Ok(self.settings.concurrent.map(|_| {
            client.pending += 1;
            ClientPlace { table: Arc::clone(&self.table), network }
        }))
    }
}

/// The bits of the network that counts as one client. Zero marks an empty place in the table, so that of address 0 is entered as 1.
fn network(client: ClientHost) -> u128 {
    let bits = match client.network() {
        ClientHost::Ip(IpAddr::V4(address)) => address.to_ipv6_mapped().to_bits(),
        ClientHost::Ip(IpAddr::V6(address)) => address.to_bits(),
        // An address of multicast, which no client has.
        ClientHost::Unix => u128::MAX,
    };
    bits.max(1)
}

impl Table {
    fn new() -> Self {
        let sets = (0..SETS).map(|_| Mutex::default()).collect();
        Self { hash: RandomState::new(), sets }
    }

    fn set(&self, network: u128) -> MutexGuard<'_, [Bucket; WAYS]> {
        let number = usize::try_from(self.hash.hash_one(network)).unwrap_or(usize::MAX);
        let set = &self.sets[number % SETS];
        set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a client, or one for it; none if all are of clients with requests under way.
fn place(set: &mut [Bucket; WAYS], network: u128) -> Option<&mut Bucket> {
    let known = set.iter().position(|client| client.network == network);
    let index = match known {
        Some(index) => index,
        None => {
            let idle = set.iter().enumerate().filter(|(_, client)| client.pending == 0);
            let (index, _) = idle.min_by_key(|(_, client)| client.full)?;
            set[index] = Bucket { network, ..Bucket::default() };
            index
        }
    };
    set.get_mut(index)
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        let mut set = self.table.set(self.network);
        if let Some(client) = set.iter_mut().find(|client| client.network == self.network) {
            match client.pending.checked_sub(1) {
                Some(left) => client.pending = left,
                None => _ = bug!("a request that ends was counted"),
            }
        }
    }
}

/// 65,536 clients a route, 2 MiB.
const SETS: usize = 4096;
const WAYS: usize = 16;
const NANOSECONDS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests;
