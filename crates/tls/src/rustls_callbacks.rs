//! The callbacks of rustls during a handshake, whose answers it does not tell afterwards.
//!
//! The unbuffered connection has no accessor for the server name, none for how a TLS 1.2 session was
//! resumed, and none for traffic secrets; all can be seen in the callbacks it makes. A handshake step
//! runs to its end on one thread, so notes that are laid out on the thread before the step and taken
//! up right after it belong to that handshake.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::server::{
    ClientHello, ProducesTickets, ResolvesServerCert, ServerSessionMemoryCache,
    StoresServerSessions,
};
use rustls::sign::CertifiedKey;
use rustls::{KeyLog, ServerConfig};

use crate::refusal::CertificateRefusal;
use crate::secrets::{MasterSecret, Secret};

/// Tells in nanoseconds which key a session was sealed under; random and not secret.
pub(crate) type KeyName = [u8; 16];

/// The parts of a session that are not for rustls.
#[derive(Clone, Copy)]
pub(crate) struct SessionOrigin {
    /// It was sealed under this key.
    pub(crate) key: KeyName,
    /// The certificate of its client may be relied on until then, in seconds since 1970.
    pub(crate) until: u64,
}

/// When a client's session ends: as soon as one of the clocks says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionEnd {
    /// In seconds since 1970. Somebody may set that clock back.
    pub(crate) until: u64,
    /// In time since this machine started.
    pub(crate) since_boot: Duration,
}

impl SessionEnd {
    pub(crate) const NEVER: Self = Self { until: u64::MAX, since_boot: Duration::MAX };
}

/// A session's place in the cache, for a connection that made or resumed it.
pub(crate) struct CachedSession {
    pub(crate) key: Vec<u8>,
    pub(crate) sealed: Arc<ServerSessionMemoryCache>,
}

impl CachedSession {
    /// A fatal alert has ended the connection: the session is not resumed again (RFC 5246 §7.2.2).
    pub(crate) fn forget(&self) {
        // Emptied, not taken out: for that rustls searches all of them, under the lock that every worker needs.
        if self.sealed.get(&self.key).is_some() {
            self.sealed.put(self.key.clone(), Vec::new());
        }
    }
}

/// Whose key a ticket is under, counted in periods of `ticket_rotation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TicketEpoch {
    /// That of this period.
    Own,
    /// That of the period before.
    Previous,
    /// That of the period to come: the clock of the host that made it is ahead of ours.
    Next,
    /// None of these.
    None,
}

impl TicketEpoch {
    /// The word used in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Previous => "previous",
            Self::Next => "next",
            Self::None => "none",
        }
    }
}

/// The facts that the callbacks of a handshake have shown so far.
#[derive(Default)]
pub(crate) struct Observed {
    pub(crate) server_name: Option<Box<str>>,
    pub(crate) has_read_ticket: bool,
    /// Whose key the ticket is under that the client came with.
    pub(crate) ticket_epoch: Option<TicketEpoch>,
    /// Of the session that the client offered, by ticket or in the cache.
    session: Option<SessionOrigin>,
    /// The session that was offered by its ID or made, in the cache (TLS 1.2).
    pub(crate) cached_session: Option<CachedSession>,
    /// Until when the certificate may be relied on that a client has shown, in seconds since 1970.
    certificate_until: Option<u64>,
    /// To a client: when the session ends that it offers, or that began with the server's certificate.
    pub(crate) session_end: Option<SessionEnd>,
    /// The secret from which the keys of a resumed session come (TLS 1.2).
    pub(crate) master_secret: Option<MasterSecret>,
    /// Of the client's handshake records (TLS 1.3).
    pub(crate) client_handshake_secret: Option<Secret>,
    /// Of what the client sends after the handshake (TLS 1.3).
    pub(crate) client_secret: Option<Secret>,
    /// Of what the server sends after its Finished (TLS 1.3).
    pub(crate) server_secret: Option<Secret>,
    /// Why the server's certificate was not taken.
    pub(crate) refusal: Option<Box<CertificateRefusal>>,
    /// The server wants a certificate.
    pub(crate) is_certificate_requested: bool,
}

impl Observed {
    /// Of a client's connection whose session ends then, for what follows its handshake.
    pub(crate) fn of_session(end: SessionEnd) -> Self {
        Self { session_end: Some(end), ..Self::default() }
    }

    fn session_until(&self) -> u64 {
        let session = self.session.map(|session| session.until);
        session.or(self.certificate_until).unwrap_or(u64::MAX)
    }

    /// Runs a step of the handshake these notes belong to.
    pub(crate) fn during<T>(&mut self, step: impl FnOnce() -> T) -> T {
        OBSERVED.set(Some(std::mem::take(self)));
        let outcome = step();
        *self = OBSERVED.take().unwrap_or_default();
        outcome
    }

    /// A session that was offered and not resumed says nothing about the new one.
    pub(crate) fn forget_session(&mut self) {
        self.has_read_ticket = false;
        self.session = None;
        self.master_secret = None;
    }
}

thread_local! {
    /// Absent when no step runs: then nothing is noted.
    static OBSERVED: RefCell<Option<Observed>> = const { RefCell::new(None) };
}

/// The key of the session that the handshake of this step resumes; none in a full handshake.
pub(crate) fn session_key() -> Option<KeyName> {
    OBSERVED.with_borrow(|observed| Some(observed.as_ref()?.session?.key))
}

/// When the session of this handshake has to end, in seconds since 1970: with the certificate that was shown.
pub(crate) fn session_until() -> u64 {
    OBSERVED.with_borrow(|observed| observed.as_ref().map_or(u64::MAX, Observed::session_until))
}

/// When the session of this client ends.
pub(crate) fn session_end() -> SessionEnd {
    let end = OBSERVED.with_borrow(|observed| observed.as_ref()?.session_end);
    end.unwrap_or(SessionEnd::NEVER)
}

/// Notes where a session came from that a client offered.
pub(crate) fn note_session(session: SessionOrigin) {
    note(|observed| observed.session = Some(session));
}

/// Notes where a session is in the cache that a client offered, or that was made.
pub(crate) fn note_cached_session(session: CachedSession) {
    note(|observed| observed.cached_session = Some(session));
}

/// Notes whose key a ticket is under that a client came with. Of several, one that is known counts.
pub(crate) fn note_ticket_epoch(epoch: TicketEpoch) {
    note(|observed| {
        if epoch != TicketEpoch::None || observed.ticket_epoch.is_none() {
            observed.ticket_epoch = Some(epoch);
        }
    });
}

/// Notes until when a client's certificate may be relied on, in seconds since 1970.
pub(crate) fn note_certificate_until(until: u64) {
    note(|observed| observed.certificate_until = Some(until));
}

/// Notes when the session ends that a client offers, or that begins with the server's certificate.
pub(crate) fn note_session_end(end: SessionEnd) {
    note(|observed| observed.session_end = Some(end));
}

/// Notes why a server's certificate is not taken.
pub(crate) fn note_refusal(refusal: CertificateRefusal) {
    note(|observed| observed.refusal = Some(Box::new(refusal)));
}

/// Notes that a server wants a certificate.
pub(crate) fn note_certificate_request() {
    note(|observed| observed.is_certificate_requested = true);
}

fn note(write: impl FnOnce(&mut Observed)) {
    OBSERVED.with_borrow_mut(|observed| observed.as_mut().map(write));
}

/// Puts the observers around what a configuration calls back.
pub(crate) fn observe(config: &mut ServerConfig) {
    config.cert_resolver = Arc::new(ObservingResolver(Arc::clone(&config.cert_resolver)));
    config.ticketer = Arc::new(ObservingTicketer(Arc::clone(&config.ticketer)));
    config.key_log = key_log();
}

/// For a client, of which nothing else is observed.
pub(crate) fn key_log() -> Arc<dyn KeyLog> {
    Arc::new(ObservingKeyLog)
}

#[derive(Debug)]
struct ObservingResolver(Arc<dyn ResolvesServerCert>);

impl ResolvesServerCert for ObservingResolver {
    fn resolve(&self, client_hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let server_name = client_hello.server_name().map(Box::from);
        note(|observed| observed.server_name = server_name);
        self.0.resolve(client_hello)
    }
}

#[derive(Debug)]
struct ObservingTicketer(Arc<dyn ProducesTickets>);

impl ProducesTickets for ObservingTicketer {
    fn enabled(&self) -> bool {
        self.0.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.0.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.0.encrypt(plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let plain = self.0.decrypt(cipher);
        if plain.is_some() {
            note(|observed| observed.has_read_ticket = true);
        }
        plain
    }
}

/// The key log is the one place where rustls tells traffic secrets. Nothing is logged.
struct ObservingKeyLog;

impl KeyLog for ObservingKeyLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        note(|observed| {
            if label == MASTER_SECRET && observed.session.is_some() {
                observed.master_secret = MasterSecret::new(client_random, secret);
            } else if let Some(place) = observed.secret_mut(label) {
                *place = Some(Secret::copy_of(secret));
            }
        });
    }

    fn will_log(&self, label: &str) -> bool {
        label == MASTER_SECRET || Observed::default().secret_mut(label).is_some()
    }
}

impl Observed {
    /// By its label in the NSS key log format.
    fn secret_mut(&mut self, label: &str) -> Option<&mut Option<Secret>> {
        match label {
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => Some(&mut self.client_handshake_secret),
            "CLIENT_TRAFFIC_SECRET_0" => Some(&mut self.client_secret),
            "SERVER_TRAFFIC_SECRET_0" => Some(&mut self.server_secret),
            _ => None,
        }
    }
}

/// The label of TLS 1.2 in the NSS key log format.
const MASTER_SECRET: &str = "CLIENT_RANDOM";

impl fmt::Debug for ObservingKeyLog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ObservingKeyLog")
    }
}
