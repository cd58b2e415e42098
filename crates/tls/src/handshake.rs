//! The handshake: rustls' unbuffered state machine from the ClientHello to extracted keys.
//!
//! No I/O happens here. rustls sees one record at a time and none behind the handshake; the moment it
//! is complete rustls is given up: its keys go to a [`RecordSealer`] and a [`RecordOpener`], so that
//! nothing can be pending inside it later.

mod error;
mod feed;
mod guard;

use std::sync::Arc;

use kettle_kernel::bug;
use kettle_kernel::ktls::Version;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, InsufficientSizeError, UnbufferedStatus,
};
use rustls::{
    AlertDescription, CommonState, ExtractedSecrets, HandshakeKind, ProtocolVersion,
    SupportedCipherSuite, Tls13CipherSuite,
};

use crate::acceptors::{Acceptor, Acceptors};
use crate::buffers::Queue;
use crate::control::Alert;
use crate::hello::MESSAGE_HEADER_BYTES;
use crate::peer_identity::PeerIdentity;
use crate::policy::Group;
use crate::records::{
    ContentType, HEADER_BYTES, Keys, ProtectionError, RecordOpener, RecordSealer,
};
use crate::rustls_callbacks::{CachedSession, Observed};
use crate::secrets::{RANDOM_BYTES, Secret, TrafficSecret, TrafficSecrets};
use crate::session::{Alpn, Resumption, Session};
use crate::ticket_reader::TicketReader;
pub use error::HandshakeError;
pub(crate) use feed::Feed;
pub(crate) use guard::check_alert;
use guard::{Guard, Known, Verdict};

/// A handshake under way.
pub(crate) struct Handshake {
    connection: UnbufferedServerConnection,
    guard: Guard,
    observed: Observed,
    client_handshake_secret: Option<TrafficSecret>,
    /// Ours, once a ServerHello has said it.
    server_random: Option<[u8; RANDOM_BYTES]>,
    /// Received and not yet processed.
    pub(crate) feed: Feed,
    /// To be sent, in order.
    pub(crate) outgoing: Queue,
}

/// The outcome of a step of the handshake.
pub(crate) enum Step {
    /// Send what is in `outgoing`, then receive more.
    Blocked(Box<Handshake>),
    /// The peer speaks plain HTTP; this is what it said so far.
    PlainHttp(Queue),
    /// An authority has seen the certificate of a challenge; the queue holds what ends the connection.
    Challenged(Queue),
    /// The handshake is complete; `outgoing` may still hold its last messages.
    Complete(Box<Established>),
    /// It failed; the queue holds the alert that says so, unless the peer ended it.
    Failed(HandshakeError, Queue),
}

/// The store of a TLS 1.2 session is kept that a fatal alert ends (RFC 5246 §7.2.2): in the server's cache, for clients that
/// resume by ID, or in a client's memory, with its ticket if it has one. A server's ticket is its client's alone, and one of
/// TLS 1.3 is for one connection.
pub(crate) trait KeptSession: Send + Sync {
    fn forget(&self);
}

impl KeptSession for CachedSession {
    fn forget(&self) {
        Self::forget(self);
    }
}

/// The parts left of a handshake when it is complete.
pub(crate) struct Established {
    pub(crate) sealer: RecordSealer,
    pub(crate) opener: RecordOpener,
    /// The secrets from which the keys behind a KeyUpdate follow; TLS 1.2 has none.
    pub(crate) secrets: Option<TrafficSecrets>,
    /// Takes a server's tickets (TLS 1.3).
    pub(crate) tickets: Option<Box<TicketReader>>,
    pub(crate) session: Session,
    /// The store of the session, to be resumed.
    pub(crate) kept_session: Option<Arc<dyn KeptSession>>,
    /// Received behind the handshake, as it came.
    pub(crate) incoming: Queue,
    /// Tickets or a Finished that still have to be sent.
    pub(crate) outgoing: Queue,
}

impl Handshake {
    pub(crate) fn new(acceptors: &Acceptors) -> Result<Self, HandshakeError> {
        Ok(Self {
            connection: connection_of(acceptors.default())?,
            guard: Guard::new(acceptors.clone()),
            observed: Observed::default(),
            client_handshake_secret: None,
            server_random: None,
            feed: Feed::default(),
            outgoing: Queue::default(),
        })
    }

    /// Processes what has been received, as far as it goes and no further than the handshake does.
    pub(crate) fn advance(mut self: Box<Self>) -> Step {
        loop {
            let progress = match self.step() {
                Ok(progress) => progress,
                Err(error) => return self.fail(error),
            };
            if !self.connection.is_handshaking() && !self.connection.wants_write() {
                let is_challenge = self.guard.is_challenge();
                return match self.establish() {
                    Ok(established) if is_challenge => Step::Challenged(established.farewell()),
                    Ok(established) => Step::Complete(Box::new(established)),
                    Err(error) => Step::Failed(error, Queue::default()),
                };
            }
            if matches!(progress, Stepped::More) {
                continue;
            }
            match self.show_next() {
                Ok(Verdict::Wait) => return Step::Blocked(self),
                Ok(Verdict::PlainHttp) => {
                    return match self.feed.into_waiting() {
                        Some(waiting) => Step::PlainHttp(waiting),
                        None => {
                            let bug = bug!("rustls was shown nothing of a plain request");
                            Step::Failed(bug.into(), Queue::default())
                        }
                    };
                }
                Ok(Verdict::Show(_) | Verdict::Skip(_)) => {}
                Err(error) => return self.fail(error),
            }
        }
    }

    fn step(&mut self) -> Result<Stepped, HandshakeError> {
        let Self { connection, feed, observed, outgoing, server_random, .. } = self;
        let (discard, progress) = observed.during(|| {
            let UnbufferedStatus { discard, state } = connection.process_tls_records(feed.shown());
            let progress = match state {
                Ok(ConnectionState::EncodeTlsData(encode_message)) => {
                    let bytes_before = outgoing.filled().len();
                    encode(encode_message, outgoing);
                    let (_, encoded) = outgoing.filled().split_at(bytes_before);
                    *server_random = server_random.or_else(|| random_of_server_hello(encoded));
                    Ok(Stepped::More)
                }
                // Sent from `outgoing` later, in order with everything else.
                Ok(ConnectionState::TransmitTlsData(transmit)) => {
                    transmit.done();
                    Ok(Stepped::More)
                }
                // In TLS 1.3 the server may write before the client's Finished; kettle does not.
                Ok(ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_)) => {
                    Ok(Stepped::Blocked)
                }
                Ok(_) => Err(HandshakeError::Unsupported("a state without a handshake")),
                Err(error) => Err(HandshakeError::Rustls(error)),
            };
            (discard, progress)
        });
        if connection.handshake_kind() != Some(HandshakeKind::Resumed) {
            observed.forget_session();
        }
        feed.discard(discard)?;
        progress
    }

    /// Lets rustls look at one more record, if there is one and it may.
    fn show_next(&mut self) -> Result<Verdict, HandshakeError> {
        if let Some(suite) = tls13_suite(&self.connection)
            && let Some(secret) = self.observed.client_handshake_secret.take()
        {
            self.client_handshake_secret = Some(TrafficSecret::new(suite, secret));
        }
        let known = Known {
            is_tls13: self.is_tls13(),
            client_handshake_secret: self.client_handshake_secret.as_ref(),
        };
        let verdict = self.guard.check(self.feed.waiting(), &known)?;
        if let Some(acceptor) = self.guard.take_choice() {
            // The connection that is replaced was shown nothing but warning alerts, so nothing is lost.
            self.connection = connection_of(acceptor)?;
        }
        match verdict {
            Verdict::Show(bytes) => self.feed.show(bytes)?,
            Verdict::Skip(bytes) if self.feed.skip(bytes) => {}
            Verdict::Skip(_) => {
                return Err(HandshakeError::Unsupported("early data inside a message"));
            }
            Verdict::Wait | Verdict::PlainHttp => {}
        }
        Ok(verdict)
    }

    /// Ends a handshake that cannot go on, with a word for the peer if it still listens.
    pub(crate) fn fail(mut self: Box<Self>, error: HandshakeError) -> Step {
        self.feed = Feed::default();
        let received = error.alert_received();
        if received != Some(AlertDescription::CloseNotify)
            && let Some(session) = &self.observed.cached_session
        {
            session.forget();
        }
        let bytes_before = self.outgoing.filled().len();
        match received {
            // rustls may have an alert ready for one that was protected; a cancelled handshake is no mistake (RFC 8446 §6.1).
            Some(AlertDescription::CloseNotify) => self.append_alert(Alert::CLOSE_NOTIFY),
            Some(_) => self.outgoing.clear(),
            None if error.is_without_certificate() && !self.is_tls13() => {
                self.append_alert(error.alert());
            }
            None => {
                self.encode_last_words();
                if self.outgoing.filled().len() == bytes_before {
                    self.append_alert(error.alert());
                }
            }
        }
        Step::Failed(error, std::mem::take(&mut self.outgoing))
    }

    fn is_tls13(&self) -> bool {
        self.connection.protocol_version() == Some(ProtocolVersion::TLSv1_3)
    }

    /// After an error rustls may have an alert ready for the peer.
    fn encode_last_words(&mut self) {
        // Only as long as something is to be encoded: after that rustls would go on with messages
        // it has located in the input, and panic since they are gone.
        while self.connection.wants_write()
            && let UnbufferedStatus { state: Ok(ConnectionState::EncodeTlsData(message)), .. } =
                self.connection.process_tls_records(&mut [])
        {
            encode(message, &mut self.outgoing);
        }
    }

    fn append_alert(&mut self, alert: Alert) {
        let keys = self.last_words_keys();
        append_alert(&mut self.outgoing, alert, keys);
    }

    /// Returns the keys that protect our next record, if there are any.
    fn last_words_keys(&mut self) -> Option<Result<Keys, ProtectionError>> {
        match self.connection.negotiated_cipher_suite()? {
            // Our Finished was the last under the handshake key, and nothing came behind it.
            SupportedCipherSuite::Tls13(suite) => {
                let secret = self.observed.server_secret.take()?;
                Some(TrafficSecret::new(suite, secret).keys())
            }
            // In a resumed session, too, our Finished comes before the client's. In a full handshake it is the last message.
            SupportedCipherSuite::Tls12(suite) => {
                let secret = self.observed.master_secret.take()?;
                let random = self.server_random.ok_or(ProtectionError);
                Some(random.and_then(|random| secret.server_keys(suite, random)))
            }
        }
    }

    fn establish(self: Box<Self>) -> Result<Established, HandshakeError> {
        let Handshake { connection, guard, observed, feed, outgoing, .. } = *self;
        let agreed = Agreed::of(&connection)?;
        let audience = guard.audience_for(observed.server_name.as_deref());
        let audience = audience.ok_or(HandshakeError::Unsupported("two readings of a name"))?;
        let is_certificate_asked = guard.asks_certificate();
        let resumed = match agreed.is_resumed {
            true if observed.has_read_ticket => Resumption::Ticket,
            true => Resumption::SessionId,
            false => Resumption::Full,
        };
        let Observed { server_secret, client_secret, server_name, ticket_epoch, .. } = observed;
        let kept_session = observed.cached_session.map(|it| Arc::new(it) as Arc<dyn KeptSession>);
        let secrets = traffic_secrets(&connection, server_secret, client_secret)?;
        let peer = peer_identity(&connection)?;
        let (keys, _) =
            connection.dangerous_into_kernel_connection().map_err(HandshakeError::Rustls)?;
        let (sealer, opener, mut session) = agreed.into_session(&keys, resumed, server_name)?;
        session.is_certificate_asked = is_certificate_asked;
        session.peer = peer;
        session.ticket_epoch = ticket_epoch;
        session.audience = Some(audience);
        let incoming = feed.into_waiting().ok_or(BEHIND_FINISHED)?;
        Ok(Established {
            sealer,
            opener,
            secrets,
            tickets: None,
            session,
            kept_session,
            incoming,
            outgoing,
        })
    }
}

impl Established {
    /// Returns the last bytes to send where nothing is to be served (RFC 8737 §3).
    fn farewell(mut self) -> Queue {
        let [level, description] = Alert::CLOSE_NOTIFY.message();
        // If it cannot be sealed, the end of the connection says it.
        _ = self.outgoing.append_sealed(
            &mut self.sealer,
            ContentType::Alert,
            &[level, description],
        );
        self.outgoing
    }
}

/// Appends an alert that rustls does not send, under the keys that it would have used, if any. If there are no keys, it appends
/// nothing.
pub(crate) fn append_alert(
    outgoing: &mut Queue,
    alert: Alert,
    keys: Option<Result<Keys, ProtectionError>>,
) {
    let [level, description] = alert.message();
    match keys.map(|keys| keys.and_then(RecordSealer::new)) {
        Some(Ok(mut sealer)) => {
            let content = [level, description];
            let _ = outgoing.append_sealed(&mut sealer, ContentType::Alert, &content);
        }
        Some(Err(_)) => {}
        None => outgoing.append(&[ContentType::Alert.byte(), 3, 3, 0, 2, level, description]),
    }
}

/// The random of a ServerHello at the front of a record (RFC 5246 §7.4.1.3).
fn random_of_server_hello(record: &[u8]) -> Option<[u8; RANDOM_BYTES]> {
    let (front, behind) = record.split_first_chunk::<SERVER_RANDOM_AT>()?;
    let is_server_hello = front.first() == Some(&ContentType::Handshake.byte())
        && front.get(HEADER_BYTES) == Some(&HANDSHAKE_SERVER_HELLO);
    is_server_hello.then(|| behind.first_chunk().copied())?
}

/// Returns the identity of the certificates that rustls has verified, now or in the session's full handshake.
pub(crate) fn peer_identity(
    connection: &CommonState,
) -> Result<Option<Box<PeerIdentity>>, HandshakeError> {
    let identity = connection.peer_certificates().map(PeerIdentity::of).transpose();
    Ok(identity.map_err(|_| HandshakeError::Unsupported("certificate"))?.map(Box::new))
}

fn connection_of(acceptor: &Acceptor) -> Result<UnbufferedServerConnection, HandshakeError> {
    let config = Arc::clone(&acceptor.config);
    UnbufferedServerConnection::new(config).map_err(HandshakeError::Rustls)
}

fn tls13_suite(connection: &CommonState) -> Option<&'static Tls13CipherSuite> {
    connection.negotiated_cipher_suite()?.tls13()
}

/// Returns the secrets from the key log, on either side.
pub(crate) fn traffic_secrets(
    connection: &CommonState,
    tx: Option<Secret>,
    rx: Option<Secret>,
) -> Result<Option<TrafficSecrets>, HandshakeError> {
    let Some(suite) = tls13_suite(connection) else {
        return Ok(None);
    };
    let (Some(tx), Some(rx)) = (tx, rx) else {
        return Err(HandshakeError::Unsupported("no traffic secrets"));
    };
    let [tx, rx] = [tx, rx].map(|secret| TrafficSecret::new(suite, secret));
    Ok(Some(TrafficSecrets { tx, rx }))
}

/// The parameters that rustls says were agreed on, on either side.
pub(crate) struct Agreed {
    pub(crate) version: Version,
    suite: &'static str,
    group: &'static str,
    pub(crate) is_resumed: bool,
    alpn: Option<Alpn>,
}

impl Agreed {
    pub(crate) fn of(connection: &CommonState) -> Result<Self, HandshakeError> {
        let suite = connection
            .negotiated_cipher_suite()
            .ok_or(HandshakeError::Unsupported("no cipher suite"))?;
        let version = match connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => Version::Tls13,
            Some(ProtocolVersion::TLSv1_2) => Version::Tls12,
            _ => return Err(HandshakeError::Unsupported("protocol version")),
        };
        Ok(Self {
            version,
            suite: suite_name(suite),
            group: connection.negotiated_key_exchange_group().map_or("none", group_name),
            is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            alpn: connection.alpn_protocol().map(Alpn::new),
        })
    }

    pub(crate) fn into_session(
        self,
        secrets: &ExtractedSecrets,
        resumed: Resumption,
        server_name: Option<Box<str>>,
    ) -> Result<(RecordSealer, RecordOpener, Session), HandshakeError> {
        let unsupported = |_| HandshakeError::Unsupported("cipher suite");
        let Self { version, suite, group, alpn, .. } = self;
        let tx = Keys::new(version, secrets.tx.0, &secrets.tx.1).map_err(unsupported)?;
        let rx = Keys::new(version, secrets.rx.0, &secrets.rx.1).map_err(unsupported)?;
        let sealer = RecordSealer::new(tx).map_err(unsupported)?;
        let opener = RecordOpener::new(&rx).map_err(unsupported)?;
        let cipher = sealer.cipher();
        let session = Session {
            version,
            cipher,
            suite,
            group,
            resumed,
            server_name,
            alpn,
            is_certificate_asked: false,
            peer: None,
            ticket_epoch: None,
            audience: None,
        };
        Ok((sealer, opener, session))
    }
}

/// Appends one message; returns how many bytes it is.
pub(crate) fn encode<Data>(mut message: EncodeTlsData<'_, Data>, outgoing: &mut Queue) -> usize {
    let mut bytes = ENCODED_BYTES_USUAL;
    loop {
        match message.encode(outgoing.room(bytes)) {
            Ok(written) => {
                outgoing.commit(written);
                return written;
            }
            Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) => {
                bytes = required_size;
            }
            Err(EncodeError::AlreadyEncoded) => return 0,
        }
    }
}

/// rustls refuses that itself: a Finished must end its record (RFC 8446 §5.1).
pub(crate) const BEHIND_FINISHED: HandshakeError =
    HandshakeError::Unsupported("something behind the Finished in its record");

/// The extent of a step of the state machine.
pub(crate) enum Stepped {
    More,
    Blocked,
}

fn suite_name(suite: rustls::SupportedCipherSuite) -> &'static str {
    suite.suite().as_str().unwrap_or("unknown")
}

fn group_name(group: &'static dyn rustls::crypto::SupportedKxGroup) -> &'static str {
    let known = Group::ALL.into_iter().find(|known| known.supported().name() == group.name());
    known.map_or("other", Group::title)
}

const HANDSHAKE_SERVER_HELLO: u8 = 2;
/// Behind the headers of record and message, and the version.
const SERVER_RANDOM_AT: usize = HEADER_BYTES + MESSAGE_HEADER_BYTES + 2;

/// Most messages of a handshake fit; a certificate chain tells how much more it needs.
const ENCODED_BYTES_USUAL: usize = 2_048;

#[cfg(test)]
mod tests;
