//! The means to resume sessions: ticket keys that change each period, and a cache of sessions for clients without tickets.
//! One of each serves all workers and outlives reloads. Hosts that have a secret in
//! common have their ticket keys in common.
//!
//! A session ends with the key of its full handshake. Cached sessions are sealed by that key as
//! tickets are, and a resumed connection gets its new tickets under the key of the old one, so no
//! chain of resumptions goes on for longer (RFC 8446 §4.6.1 asks for a limit; in TLS 1.2 the
//! chain has one master secret). Nor does a session outlive the certificate its client showed. rustls' own ticketer has a fixed period, keeps the keys of an
//! idle server for longer than two of them and knows no chains, hence this one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::server::{
    NoServerSessionStorage, ProducesTickets, ServerSessionMemoryCache, StoresServerSessions,
};

pub use audience::Audience;
use cache::SealedSessions;
use clock::Clocks;
use rotation::RotatingKeys;
pub use secret::TicketSecret;
use sessions::AudienceSessions;

mod audience;
mod cache;
mod clock;
mod key;
mod rotation;
mod secret;
mod sessions;

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
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn new(rotation_period: Duration, sessions_max: usize) -> Result<Self, NoRandomness> {
        Self::with_clocks(rotation_period, sessions_max, Clocks::of_system())
    }

    pub(crate) fn with_clocks(
        rotation_period: Duration,
        sessions_max: usize,
        clocks: Clocks,
    ) -> Result<Self, NoRandomness> {
        let tickets = Arc::new(RotatingKeys::new(rotation_period, clocks));
        tickets.rotate_if_due().ok_or(NoRandomness)?;
        let sessions = (sessions_max > 0).then(|| ServerSessionMemoryCache::new(sessions_max));
        Ok(Self { tickets, sessions })
    }

    /// Takes over what a start or a reload has read: a period, which counts for random keys from the next rotation on, and
    /// the secret that keys are made of, if there is one. Sessions made under another secret, or by its keys of another
    /// period, are not resumed any more: a secret may be changed because it became known.
    pub fn configure(&self, rotation_period: Duration, secret: Option<&TicketSecret>) {
        self.tickets.configure(rotation_period, secret);
    }

    /// Changes the key if its period is over.
    ///
    /// Handshakes do this themselves. An idle server calls it now and then, so that old keys
    /// leave the memory in time.
    pub fn rotate_if_due(&self) {
        // If no key can be made, the old one is not used any more, and the next handshake tries again.
        let _ = self.tickets.rotate_if_due();
    }

    /// Resumption for one audience. If its clients show certificates, sessions hold these too.
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

/// A state without client certificates takes a few hundred bytes, at most a server name and an
/// ALPN name more.
const TICKET_BYTES_MAX: usize = 4_096;
/// A chain of four large certificates takes about 8 KiB. A ClientHello carries the whole ticket.
const TICKET_BYTES_MAX_WITH_CERTIFICATES: usize = 16 * 1_024;

#[cfg(test)]
mod tests;
