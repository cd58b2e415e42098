//! The sessions that a client remembers, each with the time it ends.
//!
//! Every connection that resumes brings new tickets, so without an end a session would go on for ever, and nobody would look at the
//! server's certificate again. The full handshake sets the end, and what follows from it by resumption inherits it: the notes
//! of [`rustls_callbacks`] carry it from where a session is taken, or a certificate verified, to where the next one is kept.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kettle_kernel::process::time_since_boot;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, NamedGroup};
use rustls_pki_types::{ServerName, UnixTime};

use crate::handshake::KeptSession;
use crate::rustls_callbacks::{self, SessionEnd};

/// The memory of one [`Connector`](super::Connector), which asks for one name and no other.
#[derive(Debug)]
pub(super) struct Sessions {
    clock: Arc<dyn TimeProvider>,
    /// True if a first ClientHello has shares of X25519MLKEM768 and of X25519, which is a part of it.
    shares_hybrid: bool,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    /// The one whose share goes in the next ClientHello, if it is not the first of all.
    group: Option<NamedGroup>,
    tls12: Option<StoredSession<Tls12ClientSessionValue>>,
    /// The newest is at the back.
    tls13: VecDeque<StoredSession<Tls13ClientSessionValue>>,
}

#[derive(Debug)]
struct StoredSession<S> {
    session: S,
    end: SessionEnd,
}

/// When a session ends whose certificates, which are verified `now`, may be relied on until then, in seconds since 1970.
pub(super) fn session_end(certificates_until: u64, now: UnixTime) -> SessionEnd {
    SessionEnd {
        until: certificates_until.min(now.as_secs().saturating_add(SESSION_SECONDS_MAX)),
        since_boot: time_since_boot() + Duration::from_secs(SESSION_SECONDS_MAX),
    }
}

impl Sessions {
    pub(super) fn new(config: &ClientConfig) -> Self {
        let first = config.crypto_provider().kx_groups.first();
        Self {
            clock: Arc::clone(&config.time_provider),
            shares_hybrid: first.is_some_and(|it| it.name() == NamedGroup::X25519MLKEM768),
            memory: Mutex::default(),
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // The memory is whole after every call.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memory, without what has ended.
    fn current(&self) -> MutexGuard<'_, Memory> {
        // A clock that tells nothing ends them all.
        let now = self.clock.current_time().map_or(u64::MAX, |now| now.as_secs());
        let since_boot = time_since_boot();
        let has_ended = |end: SessionEnd| end.until <= now || end.since_boot <= since_boot;
        let mut memory = self.memory();
        memory.tls12.take_if(|kept| has_ended(kept.end));
        memory.tls13.retain(|kept| !has_ended(kept.end));
        memory
    }

    /// Forgets what [`KeptSession::forget`] leaves.
    pub(super) fn forget_tls13_tickets(&self) {
        self.memory().tls13.clear();
    }

    /// Goes on as if that much time had passed since this machine started.
    #[cfg(test)]
    pub(super) fn grow_older(&self, by: Duration) {
        let mut memory = self.memory();
        let Memory { tls12, tls13, .. } = &mut *memory;
        let ends = tls12.iter_mut().map(|kept| &mut kept.end);
        for end in ends.chain(tls13.iter_mut().map(|kept| &mut kept.end)) {
            end.since_boot = end.since_boot.saturating_sub(by);
        }
    }
}

impl KeptSession for Sessions {
    /// A handshake has failed, or a fatal alert has ended a connection of TLS 1.2: what it may have resumed or brought is not offered
    /// again (RFC 5246 §7.2.2). The ticket of TLS 1.3 that was offered is gone already.
    fn forget(&self) {
        self.memory().tls12 = None;
    }
}

impl<S> StoredSession<S> {
    /// By a connection whose notes tell for how long.
    fn new(session: S) -> Self {
        Self { session, end: rustls_callbacks::session_end() }
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, _name: ServerName<'static>, group: NamedGroup) {
        // The share of X25519 alone would save a server nothing, and never ask it for the hybrid again, which it may have learnt.
        let is_shared_anyway = self.shares_hybrid && group == NamedGroup::X25519;
        self.memory().group = (!is_shared_anyway).then_some(group);
    }

    fn kx_hint(&self, _name: &ServerName<'_>) -> Option<NamedGroup> {
        self.memory().group
    }

    fn set_tls12_session(&self, _name: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.memory().tls12 = Some(StoredSession::new(session));
    }

    fn tls12_session(&self, _name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        let memory = self.current();
        let kept = memory.tls12.as_ref()?;
        rustls_callbacks::note_session_end(kept.end);
        Some(kept.session.clone())
    }

    fn remove_tls12_session(&self, _name: &ServerName<'static>) {
        self.forget();
    }

    fn insert_tls13_ticket(&self, _name: ServerName<'static>, session: Tls13ClientSessionValue) {
        let mut memory = self.memory();
        if memory.tls13.len() >= TICKETS_MAX {
            memory.tls13.pop_front();
        }
        memory.tls13.push_back(StoredSession::new(session));
    }

    fn take_tls13_ticket(&self, _name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let kept = self.current().tls13.pop_back()?;
        rustls_callbacks::note_session_end(kept.end);
        Some(kept.session)
    }
}

/// A day: the certificate of a server may be replaced or revoked, and there are no revocation lists for servers. RFC 8446 §4.6.1 allows
/// seven for a ticket, and says nothing of those that follow from it.
const SESSION_SECONDS_MAX: u64 = 24 * 60 * 60;

/// TLS 1.3 tickets, each of which is used once; servers send two to four at a time.
const TICKETS_MAX: usize = 8;
