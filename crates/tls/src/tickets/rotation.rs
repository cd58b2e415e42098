//! Ticket keys that change each period: random ones of this process, or those of a secret that other hosts have as well.

use std::fmt;
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use zeroize::Zeroizing;

use super::audience::Audience;
use super::clock::{Clocks, nanoseconds};
use super::key::TicketKey;
use super::secret::TicketSecret;
use crate::rustls_callbacks::{self, KeyName, SessionOrigin, TicketEpoch};

/// The keys of the moment.
pub(super) struct RotatingKeys {
    keys: RwLock<TicketKeys>,
    clocks: Clocks,
}

struct TicketKeys {
    source: KeySource,
    /// Absent until the first use.
    current: Option<TicketKey>,
    previous: Option<TicketKey>,
    /// Hosts whose clock is ahead of ours seal under it.
    next: Option<TicketKey>,
    /// By the clock of the source.
    rotate_at: Duration,
    period: Duration,
}

enum KeySource {
    /// Periods begin when the first key is made, and are counted by a clock that nobody can set.
    Random,
    /// Periods are the same on every host, so they are counted from 1970.
    Secret(TicketSecret),
}

impl RotatingKeys {
    pub(super) fn new(period: Duration, clocks: Clocks) -> Self {
        Self { keys: RwLock::new(TicketKeys::to_be_made(KeySource::Random, period)), clocks }
    }

    /// Takes over what a start or a reload has read. Random keys stay when only their period changes, which then counts
    /// from the next key on.
    pub(super) fn configure(&self, period: Duration, secret: Option<&TicketSecret>) {
        let mut keys = self.write();
        match (&keys.source, secret) {
            (KeySource::Random, None) => keys.period = bounded(period),
            (KeySource::Secret(_), None) => {
                *keys = TicketKeys::to_be_made(KeySource::Random, period)
            }
            // Of the same secret come the same keys.
            (_, Some(secret)) => {
                *keys = TicketKeys::to_be_made(KeySource::Secret(secret.clone()), period);
            }
        }
    }

    /// Absent when a new key is due and the system has no randomness.
    pub(super) fn rotate_if_due(&self) -> Option<()> {
        self.with_keys(|_, _| Some(()))
    }

    /// Runs `work` with keys that are in their time. Absent when a new key is due and cannot be made: better no ticket
    /// than one under an overdue key.
    fn with_keys<T>(&self, work: impl FnOnce(&TicketKeys, Duration) -> Option<T>) -> Option<T> {
        {
            let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
            let now = keys.source.now(&self.clocks);
            if now < keys.rotate_at {
                return work(&keys, now);
            }
        }
        let mut keys = self.write();
        let now = keys.source.now(&self.clocks);
        // Another worker may have been first.
        if now >= keys.rotate_at {
            keys.rotate(now)?;
        }
        work(&keys, now)
    }

    fn write(&self) -> RwLockWriteGuard<'_, TicketKeys> {
        self.keys.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Seals the state of the session whose handshake is under way: a new one under the current
    /// key, a resumed one under the key it came with. Absent when that key is gone.
    pub(super) fn seal(&self, state: &[u8], audience: Audience) -> Option<Vec<u8>> {
        let until = rustls_callbacks::session_until();
        let plain = Zeroizing::new([&until.to_be_bytes(), state].concat());
        self.with_keys(|keys, _| {
            let key = match rustls_callbacks::session_key() {
                None => keys.current.as_ref(),
                Some(name) => keys.named(&name).map(|(_, key)| key),
            };
            key?.seal(&plain, audience)
        })
    }

    /// Opens what `seal` made for the same audience, and notes where it came from for the tickets that follow in this
    /// handshake. Besides it says whose key it is under.
    pub(super) fn open(&self, sealed: &[u8], audience: Audience) -> (TicketEpoch, Option<Vec<u8>>) {
        let opened = self.with_keys(|keys, _| {
            let name: KeyName = *sealed.first_chunk()?;
            let (epoch, key) = keys.named(&name)?;
            Some((epoch, name, key.open(sealed, audience)))
        });
        match opened {
            None => (TicketEpoch::None, None),
            Some((epoch, key, plain)) => (epoch, plain.and_then(|plain| admit(key, plain))),
        }
    }

    /// The time a ticket of this moment will be accepted: as long as the key it is under.
    pub(super) fn lifetime(&self) -> u32 {
        let lifetime = self.with_keys(|keys, now| {
            let of_period = keys.rotate_at.saturating_sub(now);
            let epoch = rustls_callbacks::session_key().and_then(|name| Some(keys.named(&name)?.0));
            Some(match epoch {
                Some(TicketEpoch::Previous) => of_period,
                // Its own host gives it no more than two periods.
                Some(TicketEpoch::Next) => 2 * keys.period,
                _ => of_period + keys.period,
            })
        });
        u32::try_from(lifetime.unwrap_or_default().as_secs()).unwrap_or(u32::MAX)
    }
}

/// The state of a session that has not ended with the certificate of its client.
fn admit(key: KeyName, mut plain: Vec<u8>) -> Option<Vec<u8>> {
    let until = u64::from_be_bytes(*plain.first_chunk()?);
    if until <= seconds_since_epoch() {
        return None;
    }
    rustls_callbacks::note_session(SessionOrigin { key, until });
    plain.drain(..size_of::<u64>());
    Some(plain)
}

/// By the clock that decides whether certificates are valid.
fn seconds_since_epoch() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(u64::MAX, |since| since.as_secs())
}

impl TicketKeys {
    fn to_be_made(source: KeySource, period: Duration) -> Self {
        let period = bounded(period);
        let current = None;
        let previous = None;
        let next = None;
        Self { source, current, previous, next, rotate_at: Duration::ZERO, period }
    }

    /// Makes the keys of this moment, if that can be done. Otherwise they stay overdue.
    fn rotate(&mut self, now: Duration) -> Option<()> {
        match &self.source {
            KeySource::Random => self.rotate_random(now),
            KeySource::Secret(secret) => {
                let period = nanoseconds(self.period).max(1);
                let number = nanoseconds(now) / period;
                let key = |number| secret.key(self.period, number);
                let current = key(number)?;
                (self.previous, self.next) = (number.checked_sub(1).and_then(key), key(number + 1));
                self.current = Some(current);
                self.rotate_at = Duration::from_nanos(period.saturating_mul(number + 1));
                Some(())
            }
        }
    }

    fn rotate_random(&mut self, now: Duration) -> Option<()> {
        let retired = self.current.replace(TicketKey::generate()?);
        let Some(retired) = retired else {
            self.rotate_at = now + self.period;
            return Some(());
        };
        let overdue = now.saturating_sub(self.rotate_at);
        // A key that nobody used in its whole successor's period has had both of its periods.
        self.previous = (overdue < self.period).then_some(retired);
        // Counted from when the change was due, so that late changes do not add to a key's life.
        let into_period = nanoseconds(overdue) % nanoseconds(self.period).max(1);
        self.rotate_at = now + self.period.saturating_sub(Duration::from_nanos(into_period));
        Some(())
    }

    fn named(&self, name: &KeyName) -> Option<(TicketEpoch, &TicketKey)> {
        let all = [
            (TicketEpoch::Own, &self.current),
            (TicketEpoch::Previous, &self.previous),
            (TicketEpoch::Next, &self.next),
        ];
        let mut present = all.into_iter().filter_map(|(epoch, key)| Some((epoch, key.as_ref()?)));
        present.find(|(_, key)| key.name() == name)
    }
}

impl KeySource {
    fn now(&self, clocks: &Clocks) -> Duration {
        match self {
            Self::Random => clocks.since_boot(),
            Self::Secret(_) => clocks.since_1970(),
        }
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
