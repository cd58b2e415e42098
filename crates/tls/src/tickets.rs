//! What clients resume sessions with: ticket keys that change each period, and a cache of
//! sessions for clients without tickets. One of each serves all workers and outlives reloads.
//!
//! A session ends with the key of its full handshake. Cached sessions are sealed by that key as
//! tickets are, and a resumed connection gets its new tickets under the key of the old one, so no
//! chain of resumptions goes on for longer (RFC 8446 §4.6.1 asks for a limit; in TLS 1.2 the
//! chain has one master secret). Nor does a session outlive the certificate its client showed. rustls' own ticketer has a fixed period, keeps the keys of an
//! idle server for longer than two of them and knows no chains, hence this one.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kettle_kernel::process::time_since_boot;
use rustls::server::{
    NoServerSessionStorage, ProducesTickets, ServerSessionMemoryCache, StoresServerSessions,
};
use zeroize::Zeroizing;

pub use audience::Audience;
use audience::AudienceSessions;
use cache::SealedSessions;
use key::TicketKey;

use crate::observed::{self, SessionOrigin};

mod audience;
mod cache;
mod key;

/// Session resumption, shared by cloning.
#[derive(Clone, Debug)]
pub struct SharedResumption {
    tickets: Arc<RotatingKeys>,
    sessions: Option<Arc<ServerSessionMemoryCache>>,
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
        let sessions = (sessions_max > 0).then(|| ServerSessionMemoryCache::new(sessions_max));
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
        // Where no key can be made, the old one is not used any more, and the next handshake tries again.
        let _ = self.tickets.rotate_if_due((self.tickets.clock)());
    }

    /// Resumption for one audience. Where its clients show certificates, sessions hold these too.
    pub(crate) fn for_audience(
        &self,
        audience: Audience,
        has_client_auth: bool,
    ) -> (Arc<dyn ProducesTickets>, Arc<dyn StoresServerSessions>) {
        let ticket_bytes_max = match has_client_auth {
            true => TICKET_BYTES_MAX_WITH_CERTIFICATES,
            false => TICKET_BYTES_MAX,
        };
        let keys = Arc::clone(&self.tickets);
        let tickets = AudienceSessions { keys, audience, ticket_bytes_max };
        let sessions: Arc<dyn StoresServerSessions> = match &self.sessions {
            None => Arc::new(NoServerSessionStorage {}),
            Some(memory) => {
                Arc::new(SealedSessions { tickets: tickets.clone(), sealed: Arc::clone(memory) })
            }
        };
        (Arc::new(tickets), sessions)
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
        self.rotate_if_due(now)?;
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        work(&keys, now)
    }

    /// Absent when a new key is due and could not be made. Otherwise the next change is later than now.
    fn rotate_if_due(&self, now: Duration) -> Option<()> {
        if now < self.keys.read().unwrap_or_else(PoisonError::into_inner).rotate_at {
            return Some(());
        }
        let next = TicketKey::generate()?;
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        // Another worker may have been first.
        let Some(overdue) = now.checked_sub(keys.rotate_at) else {
            return Some(());
        };
        let retired = std::mem::replace(&mut keys.current, next);
        // A key that nobody used in its whole successor's period has had both of its periods.
        keys.previous = (overdue < keys.period).then_some(retired);
        // Counted from when the change was due, so that late changes do not add to a key's life.
        let into_period = overdue.as_nanos() % keys.period.as_nanos().max(1);
        let into_period = Duration::from_nanos(u64::try_from(into_period).unwrap_or(0));
        keys.rotate_at = now + keys.period.saturating_sub(into_period);
        Some(())
    }
}

impl RotatingKeys {
    /// Seals the state of the session whose handshake is under way: a new one under the current
    /// key, a resumed one under the key it came with. Absent when that key is gone.
    fn seal(&self, state: &[u8], audience: Audience) -> Option<Vec<u8>> {
        let until = observed::session_until();
        let plain = Zeroizing::new([&until.to_be_bytes(), state].concat());
        self.with_keys(|keys, _| match observed::session_key() {
            None => keys.current.seal(&plain, audience),
            Some(name) => keys.present().find(|key| *key.name() == name)?.seal(&plain, audience),
        })
    }

    /// Opens what `seal` made for the same audience, and notes where it came from for the tickets that follow in this
    /// handshake.
    fn open(&self, sealed: &[u8], audience: Audience) -> Option<Vec<u8>> {
        let (key, mut plain) = self.with_keys(|keys, _| {
            keys.present().find_map(|key| Some((*key.name(), key.open(sealed, audience)?)))
        })?;
        let until = u64::from_be_bytes(*plain.first_chunk()?);
        if until <= seconds_since_epoch() {
            return None;
        }
        observed::note_session(SessionOrigin { key, until });
        plain.drain(..size_of::<u64>());
        Some(plain)
    }
}

/// By the clock that certificates are judged by.
fn seconds_since_epoch() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(u64::MAX, |since| since.as_secs())
}

impl Keys {
    fn present(&self) -> impl Iterator<Item = &TicketKey> {
        std::iter::once(&self.current).chain(&self.previous)
    }
}

impl RotatingKeys {
    /// How long a ticket of this moment will be accepted: as long as the key it is under.
    fn lifetime(&self) -> u32 {
        let lifetime = self.with_keys(|keys, now| {
            let as_current = keys.rotate_at - now + keys.period;
            match observed::session_key() {
                Some(name) if name != *keys.current.name() => Some(keys.rotate_at - now),
                _ => Some(as_current),
            }
        });
        u32::try_from(lifetime.unwrap_or_default().as_secs()).unwrap_or(u32::MAX)
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
/// Two periods of this, seven days, are the longest life RFC 8446 §4.6.1 allows a ticket.
const PERIOD_MAX: Duration = Duration::from_hours(84);

/// A state without client certificates takes a few hundred bytes, at most a server name and an
/// ALPN name more.
const TICKET_BYTES_MAX: usize = 4_096;
/// A chain of four large certificates takes about 8 KiB. A ClientHello carries the whole ticket.
const TICKET_BYTES_MAX_WITH_CERTIFICATES: usize = 16 * 1_024;

#[cfg(test)]
mod tests;
