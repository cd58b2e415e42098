//! What clients resume sessions with: ticket keys that change each period, and a cache of
//! sessions for clients without tickets. One of each serves all workers and outlives reloads.
//!
//! A session ends with the key of its full handshake. Cached sessions are sealed by that key as
//! tickets are, and a resumed connection gets its new tickets under the key of the old one, so no
//! chain of resumptions goes on for longer (RFC 8446 §4.6.1 asks for a limit; in TLS 1.2 the
//! chain has one master secret). rustls' own ticketer has a fixed period, keeps the keys of an
//! idle server for longer than two of them and knows no chains, hence this one.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use kettle_kernel::process::time_since_boot;
use rustls::server::{NoServerSessionStorage, ProducesTickets, StoresServerSessions};

use cache::SealedSessions;
use key::TicketKey;

use crate::observed;

mod cache;
mod key;

/// Session resumption, shared by cloning.
#[derive(Clone, Debug)]
pub struct SharedResumption {
    tickets: Arc<RotatingKeys>,
    sessions: Arc<dyn StoresServerSessions>,
}

/// The system has no random numbers to make a key of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRandomness;

impl fmt::Display for NoRandomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the system gives no random numbers, so no ticket key can be made")
    }
}

impl std::error::Error for NoRandomness {}

impl SharedResumption {
    /// A first random key, used for `rotation_period` and accepted for one period more, and room
    /// for `sessions_max` cached sessions (0 caches none).
    pub fn new(rotation_period: Duration, sessions_max: usize) -> Result<Self, NoRandomness> {
        Self::with_clock(rotation_period, sessions_max, Arc::new(time_since_boot))
    }

    pub(crate) fn with_clock(
        rotation_period: Duration,
        sessions_max: usize,
        clock: Clock,
    ) -> Result<Self, NoRandomness> {
        let tickets = Arc::new(RotatingKeys::new(rotation_period, clock)?);
        let sessions: Arc<dyn StoresServerSessions> = match sessions_max {
            0 => Arc::new(NoServerSessionStorage {}),
            _ => Arc::new(SealedSessions::new(Arc::clone(&tickets), sessions_max)),
        };
        Ok(Self { tickets, sessions })
    }

    /// Changes the period from the next rotation on, as a reload may.
    pub fn set_rotation_period(&self, period: Duration) {
        let mut keys = self.tickets.keys.write().unwrap_or_else(PoisonError::into_inner);
        keys.period = bounded(period);
    }

    /// Changes the key if its period is over.
    ///
    /// Handshakes do this themselves. An idle server calls it now and then, so that old keys
    /// leave the memory in time.
    pub fn rotate_if_due(&self) {
        self.tickets.rotate_if_due((self.tickets.clock)());
    }

    pub(crate) fn ticketer(&self) -> Arc<dyn ProducesTickets> {
        Arc::clone(&self.tickets) as Arc<dyn ProducesTickets>
    }

    pub(crate) fn session_storage(&self) -> Arc<dyn StoresServerSessions> {
        Arc::clone(&self.sessions)
    }
}

/// Time since an arbitrary moment; never goes back, so that a corrected clock keeps no key alive,
/// and goes on while the machine is suspended.
pub(crate) type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

struct RotatingKeys {
    keys: RwLock<Keys>,
    clock: Clock,
}

struct Keys {
    current: TicketKey,
    previous: Option<TicketKey>,
    rotate_at: Duration,
    period: Duration,
}

impl RotatingKeys {
    fn new(period: Duration, clock: Clock) -> Result<Self, NoRandomness> {
        let period = bounded(period);
        let keys = Keys {
            current: TicketKey::generate().ok_or(NoRandomness)?,
            previous: None,
            rotate_at: clock() + period,
            period,
        };
        Ok(Self { keys: RwLock::new(keys), clock })
    }

    /// Runs `work` with keys that are in their time. Absent when a new key is due and the system
    /// has no randomness: better no ticket than one under an overdue key.
    fn with_keys<T>(&self, work: impl FnOnce(&Keys, Duration) -> Option<T>) -> Option<T> {
        let now = (self.clock)();
        self.rotate_if_due(now);
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        (now < keys.rotate_at).then(|| work(&keys, now))?
    }

    fn rotate_if_due(&self, now: Duration) {
        if now < self.keys.read().unwrap_or_else(PoisonError::into_inner).rotate_at {
            return;
        }
        let Some(next) = TicketKey::generate() else {
            return;
        };
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        // Another worker may have been first.
        let Some(overdue) = now.checked_sub(keys.rotate_at) else {
            return;
        };
        let retired = std::mem::replace(&mut keys.current, next);
        // A key that nobody used in its whole successor's period has had both of its periods.
        keys.previous = (overdue < keys.period).then_some(retired);
        // Counted from when the change was due, so that late changes do not add to a key's life.
        let into_period = overdue.as_nanos() % keys.period.as_nanos().max(1);
        let into_period = Duration::from_nanos(u64::try_from(into_period).unwrap_or(0));
        keys.rotate_at = now + keys.period.saturating_sub(into_period);
    }
}

impl RotatingKeys {
    /// Seals the state of the session whose handshake is under way: a new one under the current
    /// key, a resumed one under the key it came with. Absent when that key is gone.
    fn seal(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.with_keys(|keys, _| match observed::session_key() {
            None => keys.current.seal(plain),
            Some(name) => keys.present().find(|key| *key.name() == name)?.seal(plain),
        })
    }

    /// Opens what `seal` made, and notes the key for the tickets that follow in this handshake.
    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (name, plain) = self.with_keys(|keys, _| {
            keys.present().find_map(|key| Some((*key.name(), key.open(sealed)?)))
        })?;
        observed::note_session_key(name);
        Some(plain)
    }
}

impl Keys {
    fn present(&self) -> impl Iterator<Item = &TicketKey> {
        std::iter::once(&self.current).chain(&self.previous)
    }
}

impl ProducesTickets for RotatingKeys {
    fn enabled(&self) -> bool {
        true
    }

    /// How long a ticket of this moment will be accepted: as long as the key it is under.
    fn lifetime(&self) -> u32 {
        let lifetime = self.with_keys(|keys, now| {
            let as_current = keys.rotate_at - now + keys.period;
            match observed::session_key() {
                Some(name) if name != *keys.current.name() => Some(keys.rotate_at - now),
                _ => Some(as_current),
            }
        });
        let seconds = lifetime.unwrap_or_default().min(LIFETIME_MAX).as_secs();
        u32::try_from(seconds).unwrap_or(u32::MAX)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.seal(plain)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.open(ticket)
    }
}

impl fmt::Debug for RotatingKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RotatingKeys").finish_non_exhaustive()
    }
}

fn bounded(period: Duration) -> Duration {
    period.clamp(PERIOD_MIN, PERIOD_MAX)
}

/// Below this, a client could not even come back with its ticket.
const PERIOD_MIN: Duration = Duration::from_secs(1);
/// Two periods of this are the longest life RFC 8446 §4.6.1 allows a ticket.
const PERIOD_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60 / 2);
/// Seven days (RFC 8446 §4.6.1).
const LIFETIME_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

#[cfg(test)]
mod tests;
