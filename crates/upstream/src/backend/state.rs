//! The state of one server, by all workers and over reloads: its connections, its health, where it is.
//!
//! Reading it takes no lock but for the addresses of a name, and that one only to connect. The facts that failures and checks
//! change are behind locks, for they are rare.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use kettle_config::ServerAddress;
use kettle_runtime::metrics::{By, Label};
use tokio::time::Instant;

use super::failure::{Failure, Outcome};

/// The state of one server.
#[derive(Debug)]
pub struct ServerState {
    /// The moment that `out_until` counts from.
    made: Instant,
    connections: AtomicU32,
    is_draining: AtomicBool,
    /// True if checks say that it is down.
    is_down: AtomicBool,
    /// Until when failed connects keep it out, in milliseconds since `made`; 0: they do not; the largest: until a check is
    /// passed.
    out_until: AtomicU64,
    /// The number of times in turn that something spoke against it since anything last spoke for it.
    bad_in_a_row: AtomicU32,
    located: AtomicU8,
    addresses: RwLock<Arc<[SocketAddr]>>,
    /// The number of times they were others than before.
    address_changes: AtomicU32,
    /// Which of them led to a connection last.
    first_address: AtomicUsize,
    failed_connects: Mutex<FailedConnects>,
    checked: Mutex<Checked>,
    last_failure: Mutex<Option<Failure>>,
    /// Until when it counts as one that lets kept connections die under requests, in milliseconds since `made`.
    fickle_until: AtomicU64,
    pub(super) connects: By<Outcome, { Outcome::WORDS.len() }>,
    pub(super) checks: By<CheckOutcome, { CheckOutcome::WORDS.len() }>,
}

#[derive(Debug)]
struct FailedConnects {
    /// Bounded by `fails` of the configuration.
    recent: VecDeque<Instant>,
    /// When the last of those that took nobody out was told of.
    told: Option<Instant>,
    /// True if checks bring a server back, or else time. As the configuration has it that is in force: whoever connects may have
    /// begun under another.
    is_checked: bool,
}

#[derive(Debug, Default)]
struct Checked {
    last: Option<Instant>,
    /// The number of checks that had the same outcome as the last, and which.
    streak: u32,
    is_passing: bool,
}

/// The address to which a connection leads whose server has a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddress {
    address: SocketAddr,
    /// At which of the name's changes it was one of its addresses.
    seen: Option<u32>,
}

impl From<SocketAddr> for PeerAddress {
    fn from(address: SocketAddr) -> Self {
        Self { address, seen: None }
    }
}

/// The standing of a server: whether it gets connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It does.
    In,
    /// Only if every other is out too, and has as much against it.
    Out { bad_in_a_row: u32 },
    /// Its name is being looked up for the first time.
    Pending,
    /// Not at all: it is drained, or its name has no address.
    Unusable,
}

/// When failed connects take a server out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tolerance {
    /// The number of failures within `fail_time` that take it out; 0: never.
    pub(super) fails: u32,
    /// The time it is out where no checks bring it back.
    pub(super) fail_time: Duration,
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckOutcome {
    Passed,
    Failed,
}

impl Label for CheckOutcome {
    const WORDS: &'static [&'static str] = &["passed", "failed"];

    fn index(self) -> usize {
        self as usize
    }
}

impl ServerState {
    pub(super) fn new(address: &ServerAddress, is_checked: bool) -> Self {
        let (located, addresses): (u8, Arc<[SocketAddr]>) = match address {
            ServerAddress::Socket(address) => (KNOWN, Arc::new([*address])),
            ServerAddress::Unix(_) => (KNOWN, Arc::new([])),
            ServerAddress::Name(..) => (PENDING, Arc::new([])),
        };
        Self {
            made: Instant::now(),
            connections: AtomicU32::new(0),
            is_draining: AtomicBool::new(false),
            is_down: AtomicBool::new(false),
            out_until: AtomicU64::new(0),
            bad_in_a_row: AtomicU32::new(0),
            located: AtomicU8::new(located),
            addresses: RwLock::new(addresses),
            address_changes: AtomicU32::new(0),
            first_address: AtomicUsize::new(0),
            failed_connects: Mutex::new(FailedConnects {
                recent: VecDeque::new(),
                told: None,
                is_checked,
            }),
            checked: Mutex::default(),
            last_failure: Mutex::default(),
            fickle_until: AtomicU64::new(0),
            connects: By::default(),
            checks: By::default(),
        }
    }

    /// Its connections now, of all workers together, those being made included.
    #[must_use]
    pub fn connections(&self) -> u32 {
        self.connections.load(SeqCst)
    }

    /// Counts one connection more, unless that were more than the limit. Exact, also while other workers do the same.
    pub(super) fn reserve(&self, limit: Option<u32>) -> bool {
        let limit = limit.unwrap_or(u32::MAX);
        let one_more = |now| (now < limit).then_some(now + 1);
        self.connections.fetch_update(SeqCst, SeqCst, one_more).is_ok()
    }

    /// Gives back what [`reserve`](Self::reserve) took.
    pub(super) fn release(&self) {
        self.connections.fetch_sub(1, SeqCst);
    }

    /// True if the operator wants no new connections there.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Relaxed)
    }

    pub(super) fn set_draining(&self, is_draining: bool) {
        self.is_draining.store(is_draining, Relaxed);
    }

    /// True if it takes connections, as far as is known, whether or not it is drained.
    pub(super) fn is_well(&self, now: Instant) -> bool {
        !matches!(self.located.load(Relaxed), NOWHERE | PENDING) && !self.is_out(now)
    }

    pub(super) fn standing(&self, now: Instant) -> Standing {
        match self.located.load(Relaxed) {
            _ if self.is_draining() => Standing::Unusable,
            NOWHERE => Standing::Unusable,
            PENDING => Standing::Pending,
            _ if self.is_out(now) => {
                Standing::Out { bad_in_a_row: self.bad_in_a_row.load(Relaxed) }
            }
            _ => Standing::In,
        }
    }

    /// True if checks or failed connects keep it out.
    pub(super) fn is_out(&self, now: Instant) -> bool {
        self.is_down.load(Relaxed)
            || match self.out_until.load(Relaxed) {
                0 => false,
                u64::MAX => true,
                until => milliseconds(now.duration_since(self.made)) < until,
            }
    }

    /// When failed connects keep it out no longer, if a time was set for that.
    pub(super) fn back_at(&self) -> Option<Instant> {
        match self.out_until.load(Relaxed) {
            0 | u64::MAX => None,
            until => self.made.checked_add(Duration::from_millis(until)),
        }
    }

    /// True if checks keep it out.
    pub(super) fn is_down(&self) -> bool {
        self.is_down.load(Relaxed)
    }

    /// It took a connection. Notes a connect, and says whether that brought it back.
    pub(super) fn connect_succeeded(&self) -> bool {
        if self.bad_in_a_row.load(Relaxed) > 0 {
            self.bad_in_a_row.store(0, Relaxed);
        }
        self.out_until.load(Relaxed) != 0 && self.take_back()
    }

    /// It took no connection. Notes a failed connect, and says whether that was one too many.
    pub(super) fn connect_failed(
        &self,
        failure: &Failure,
        tolerance: Tolerance,
        now: Instant,
    ) -> bool {
        self.remember(failure);
        let Tolerance { fails, fail_time } = tolerance;
        if fails == 0 {
            return false;
        }
        let mut failed = locked(&self.failed_connects);
        failed.recent.push_back(now);
        let excess = failed.recent.len().saturating_sub(fails as usize);
        failed.recent.drain(..excess);
        let is_recent = |first: &Instant| now.duration_since(*first) <= fail_time;
        if failed.recent.len() < fails as usize || !failed.recent.front().is_some_and(is_recent) {
            return false;
        }
        let until = match failed.is_checked {
            true => u64::MAX,
            false => milliseconds(now.duration_since(self.made) + fail_time).max(1),
        };
        let was_out = self.is_out(now);
        self.out_until.store(until, Relaxed);
        !was_out
    }

    /// Tells whether to tell of a failed connect that took the server out of nothing: of one a minute.
    pub(super) fn tells_failure(&self, now: Instant) -> bool {
        let mut failed = locked(&self.failed_connects);
        let is_due = failed.told.is_none_or(|told| now.duration_since(told) >= TOLD_EVERY);
        if is_due {
            failed.told = Some(now);
        }
        is_due
    }

    /// A check was passed. Notes a check that passed, and says whether that brought it back.
    pub(super) fn check_passed(&self, rise: u32) -> bool {
        self.checks.add_many(CheckOutcome::Passed, 1);
        let streak = self.check_counted(true);
        self.bad_in_a_row.store(0, Relaxed);
        let is_up = self.is_down() && streak >= rise;
        if is_up {
            self.is_down.store(false, Relaxed);
        }
        let is_taken_back = self.out_until.load(Relaxed) != 0 && self.take_back();
        (is_up || is_taken_back) && !self.is_down()
    }

    /// A check failed. Notes a failed check, and says whether that took it out.
    pub(super) fn check_failed(&self, failure: &Failure, fall: u32) -> bool {
        self.checks.add_many(CheckOutcome::Failed, 1);
        self.remember(failure);
        let is_too_many = self.check_counted(false) >= fall;
        is_too_many && !self.is_down.swap(true, Relaxed)
    }

    /// Notes whether it is checked from now on. If nobody checks it any more, the word of checks, and what only they would end,
    /// holds no longer.
    pub(super) fn set_checked(&self, is_checked: bool) {
        let mut failed = locked(&self.failed_connects);
        failed.is_checked = is_checked;
        if is_checked {
            return;
        }
        if self.out_until.load(Relaxed) == u64::MAX {
            failed.recent.clear();
            self.out_until.store(0, Relaxed);
        }
        drop(failed);
        *locked(&self.checked) = Checked::default();
        self.is_down.store(false, Relaxed);
    }

    /// It let a connection that was kept die under a request. That is its habit, so one request tells all workers.
    pub(crate) fn kept_died(&self, now: Instant) {
        let until = now.duration_since(self.made) + FICKLE_TIME;
        self.fickle_until.store(milliseconds(until), Relaxed);
    }

    /// True if it did so lately.
    pub(crate) fn is_fickle(&self, now: Instant) -> bool {
        milliseconds(now.duration_since(self.made)) < self.fickle_until.load(Relaxed)
    }

    /// When it was last checked.
    pub(super) fn last_check(&self) -> Option<Instant> {
        locked(&self.checked).last
    }

    pub(super) fn check_begins(&self, now: Instant) {
        locked(&self.checked).last = Some(now);
    }

    /// Its addresses, in the order to try them; none of a Unix socket.
    pub(super) fn addresses(&self) -> Arc<[SocketAddr]> {
        Arc::clone(&self.addresses.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The index of the address to try first, the others behind it and then from the front. It may be one of addresses that are
    /// replaced by now, and so beyond the last.
    pub(super) fn first_address(&self) -> usize {
        self.first_address.load(Relaxed)
    }

    /// One of its addresses led to a connection: it comes first from now on, if a lookup has not taken it away meanwhile.
    pub(super) fn connected_to(&self, address: SocketAddr) {
        let known = self.addresses.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = known.iter().position(|it| *it == address) {
            self.set_first_address(index);
        }
    }

    /// The caller holds the lock of the addresses.
    fn set_first_address(&self, index: usize) {
        // Most often it is that one, and all workers read it.
        if self.first_address() != index {
            self.first_address.store(index, Relaxed);
        }
    }

    /// Its name was looked up. Notes its addresses, and says whether it was known by no address before.
    pub(crate) fn found_at(&self, addresses: &[SocketAddr]) -> bool {
        let mut known = self.addresses.write().unwrap_or_else(PoisonError::into_inner);
        if **known != *addresses {
            // Resolvers change the order from answer to answer: which address works does not follow from it.
            let first = known.get(self.first_address());
            let index = first.and_then(|first| addresses.iter().position(|it| it == first));
            *known = addresses.into();
            self.address_changes.fetch_add(1, SeqCst);
            self.set_first_address(index.unwrap_or(0));
        }
        drop(known);
        self.located.swap(KNOWN, Relaxed) != KNOWN
    }

    /// True if a connection to an address that its name had is still one to it. The lock is taken only if the addresses
    /// changed since the last look at this connection.
    pub(crate) fn is_at(&self, peer: &mut PeerAddress) -> bool {
        let changes = self.address_changes.load(SeqCst);
        if peer.seen == Some(changes) {
            return true;
        }
        // The kernel does not give the scope of each address back as it was given.
        let of = |address: &SocketAddr| (address.ip(), address.port());
        let is_known = self.addresses().iter().any(|address| of(address) == of(&peer.address));
        peer.seen = is_known.then_some(changes);
        is_known
    }

    /// Its name could not be looked up: addresses known before stay. Notes that its name was not found, and says whether there
    /// are no addresses.
    pub(super) fn not_found(&self, failure: &Failure) -> bool {
        self.remember(failure);
        let is_news = |located| (located == PENDING).then_some(NOWHERE);
        let _ = self.located.fetch_update(Relaxed, Relaxed, is_news);
        self.located.load(Relaxed) == NOWHERE
    }

    /// Returns what was last wrong with it.
    pub(super) fn last_failure(&self) -> Option<Failure> {
        locked(&self.last_failure).clone()
    }

    /// Notes a failure for the status; it does not keep any client from this server.
    pub fn note(&self, failure: Failure) {
        *locked(&self.last_failure) = Some(failure);
    }

    fn remember(&self, failure: &Failure) {
        let more = |bad: u32| Some(bad.saturating_add(1));
        let _ = self.bad_in_a_row.fetch_update(Relaxed, Relaxed, more);
        self.note(failure.clone());
    }

    /// Forgets failed connects.
    fn take_back(&self) -> bool {
        locked(&self.failed_connects).recent.clear();
        self.out_until.swap(0, Relaxed) != 0
    }

    fn check_counted(&self, is_passing: bool) -> u32 {
        let mut checked = locked(&self.checked);
        checked.streak =
            if checked.is_passing == is_passing { checked.streak.saturating_add(1) } else { 1 };
        checked.is_passing = is_passing;
        checked.streak
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX - 1)
}

/// The data that these locks guard is whole between any two statements.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Each failed connect may cost a client, and an operator who looks for one must find it.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// The time for which a request that may not be sent twice takes no kept connection of a server that let one die under a
/// request.
const FICKLE_TIME: Duration = Duration::from_mins(10);

/// The knowledge of where it is: not asked yet, one address or more, nothing.
const PENDING: u8 = 0;
const KNOWN: u8 = 1;
const NOWHERE: u8 = 2;

#[cfg(test)]
mod tests;
