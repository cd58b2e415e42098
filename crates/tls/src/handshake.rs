//! The handshake: rustls' unbuffered state machine from the ClientHello to extracted keys.
//!
//! No I/O happens here. rustls sees one record at a time and none behind the handshake; the moment it
//! is complete rustls is given up: its keys go to a [`RecordSealer`] and a [`RecordOpener`], so that
//! nothing can be pending inside it later.

mod feed;
mod guard;

use std::fmt;
use std::sync::Arc;

use kettle_kernel::ktls::Version;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, InsufficientSizeError, UnbufferedStatus,
};
use rustls::{
    AlertDescription, CommonState, ExtractedSecrets, HandshakeKind, ProtocolVersion, ServerConfig,
    Tls13CipherSuite,
};

use crate::buffers::Queue;
use crate::control::{Alert, Violation};
use crate::observed::{self, Observed};
use crate::records::{ContentType, Keys, RecordOpener, RecordSealer};
use crate::secrets::{Secret, TrafficSecret};
use crate::session::{Resumption, Session};
use crate::updater::{ServerUpdater, Updater};
pub(crate) use feed::Feed;
use guard::{Guard, Known, Verdict};

/// The configuration of the server's side of handshakes, shared by all connections.
#[derive(Clone)]
pub struct Acceptor {
    config: Arc<ServerConfig>,
    allows_tls13: bool,
}

impl Acceptor {
    /// Takes a configuration, and the versions that it was made for.
    #[must_use]
    pub fn new(config: &ServerConfig, versions: &[Version]) -> Self {
        let mut config = config.clone();
        config.enable_secret_extraction = true;
        observed::observe(&mut config);
        Self { config: Arc::new(config), allows_tls13: versions.contains(&Version::Tls13) }
    }
}

/// A handshake under way.
pub(crate) struct Handshake {
    connection: UnbufferedServerConnection,
    guard: Guard,
    observed: Observed,
    client_handshake_secret: Option<TrafficSecret>,
    /// Received and not yet processed.
    pub(crate) feed: Feed,
    /// To be sent, in order.
    pub(crate) outgoing: Queue,
}

/// What a step of the handshake led to.
pub(crate) enum Step {
    /// Send what is in `outgoing`, then receive more.
    Blocked(Box<Handshake>),
    /// The peer speaks plain HTTP; this is what it said so far.
    PlainHttp(Queue),
    /// The handshake is complete; `outgoing` may still hold its last messages.
    Complete(Box<Established>),
    /// It failed; the queue holds the alert that says so, unless the peer ended it.
    Failed(HandshakeError, Queue),
}

/// What is left of a handshake when it is complete.
pub(crate) struct Established {
    pub(crate) sealer: RecordSealer,
    pub(crate) opener: RecordOpener,
    /// Makes the keys that follow a KeyUpdate; TLS 1.2 has none.
    pub(crate) updater: Option<Updater>,
    pub(crate) session: Session,
    /// Received behind the handshake, as it came.
    pub(crate) incoming: Queue,
    /// Tickets or a Finished that still have to be sent.
    pub(crate) outgoing: Queue,
}

/// Why a handshake failed.
#[derive(Debug)]
pub enum HandshakeError {
    /// The peer broke the protocol, or shares no version, suite or group with us.
    Rustls(rustls::Error),
    /// The peer broke the protocol where rustls would have let it pass.
    Violation(Violation),
    /// A bug of ours: rustls negotiated what we cannot carry on.
    Unsupported(&'static str),
}

impl HandshakeError {
    /// One word for logs and metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            HandshakeError::Unsupported(_) => "internal",
            HandshakeError::Rustls(error) => reason(error),
            HandshakeError::Violation(_) => "peer_misbehaved",
        }
    }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeError::Rustls(error) => write!(formatter, "{error}"),
            HandshakeError::Violation(violation) => write!(formatter, "the peer: {violation}"),
            HandshakeError::Unsupported(what) => write!(formatter, "cannot carry on: {what}"),
        }
    }
}

impl std::error::Error for HandshakeError {}

impl From<Violation> for HandshakeError {
    fn from(violation: Violation) -> Self {
        HandshakeError::Violation(violation)
    }
}

impl HandshakeError {
    /// The alert with which the peer ended the handshake itself: it waits for no answer (RFC 8446 §6.2).
    pub(crate) fn alert_received(&self) -> Option<AlertDescription> {
        match self {
            HandshakeError::Rustls(rustls::Error::AlertReceived(alert)) => Some(*alert),
            _ => None,
        }
    }

    /// What the peer is told where rustls says nothing.
    fn alert(&self) -> Alert {
        use rustls::{Error, PeerMisbehaved};
        match self {
            HandshakeError::Violation(violation) => violation.alert,
            HandshakeError::Unsupported(_) => Alert::INTERNAL_ERROR,
            HandshakeError::Rustls(error) => match error {
                Error::InvalidMessage(_) => Alert::DECODE_ERROR,
                Error::PeerSentOversizedRecord => Alert::RECORD_OVERFLOW,
                Error::DecryptError
                | Error::PeerMisbehaved(
                    PeerMisbehaved::RejectedEarlyDataInterleavedWithHandshakeMessage,
                ) => Alert::BAD_RECORD_MAC,
                Error::PeerIncompatible(_) => Alert::HANDSHAKE_FAILURE,
                Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare) => Alert::ILLEGAL_PARAMETER,
                // Interleaved or empty records, padding without content, too many warnings.
                Error::PeerMisbehaved(_) => Alert::UNEXPECTED_MESSAGE,
                _ => Alert::INTERNAL_ERROR,
            },
        }
    }
}

fn reason(error: &rustls::Error) -> &'static str {
    use rustls::Error;
    match error {
        Error::PeerIncompatible(_) => "no_common_parameters",
        Error::PeerMisbehaved(_) => "peer_misbehaved",
        Error::AlertReceived(_) => "alert_received",
        Error::InvalidMessage(_) => "not_tls",
        Error::NoApplicationProtocol => "no_application_protocol",
        Error::DecryptError => "decrypt_error",
        Error::PeerSentOversizedRecord => "oversized_record",
        _ => "other",
    }
}

impl Handshake {
    pub(crate) fn new(acceptor: &Acceptor) -> Result<Self, HandshakeError> {
        let connection = UnbufferedServerConnection::new(Arc::clone(&acceptor.config))
            .map_err(HandshakeError::Rustls)?;
        Ok(Self {
            connection,
            guard: Guard::new(acceptor.allows_tls13),
            observed: Observed::default(),
            client_handshake_secret: None,
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
                return match self.establish() {
                    Ok(established) => Step::Complete(Box::new(established)),
                    Err(error) => Step::Failed(error, Queue::default()),
                };
            }
            if matches!(progress, Progress::More) {
                continue;
            }
            match self.show_next() {
                Ok(Verdict::Wait) => return Step::Blocked(self),
                Ok(Verdict::PlainHttp) => {
                    return Step::PlainHttp(self.feed.into_waiting().unwrap_or_default());
                }
                Ok(Verdict::Show(_) | Verdict::Skip(_)) => {}
                Err(error) => return self.fail(error),
            }
        }
    }

    fn step(&mut self) -> Result<Progress, HandshakeError> {
        let Self { connection, feed, observed, outgoing, .. } = self;
        let (discard, progress) = observed.during(|| {
            let UnbufferedStatus { discard, state } = connection.process_tls_records(feed.shown());
            let progress = match state {
                Ok(ConnectionState::EncodeTlsData(encode_message)) => {
                    encode(encode_message, outgoing);
                    Ok(Progress::More)
                }
                // Sent from `outgoing` later, in order with everything else.
                Ok(ConnectionState::TransmitTlsData(transmit)) => {
                    transmit.done();
                    Ok(Progress::More)
                }
                // In TLS 1.3 the server may write before the client's Finished; kettle does not.
                Ok(ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_)) => {
                    Ok(Progress::Blocked)
                }
                Ok(_) => Err(HandshakeError::Unsupported("a state without a handshake")),
                Err(error) => Err(HandshakeError::Rustls(error)),
            };
            (discard, progress)
        });
        if connection.handshake_kind() != Some(HandshakeKind::Resumed) {
            observed.forget_session();
        }
        feed.discard(discard);
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
            is_tls13: self.connection.protocol_version() == Some(ProtocolVersion::TLSv1_3),
            client_handshake_secret: self.client_handshake_secret.as_ref(),
        };
        let verdict = self.guard.judge(self.feed.waiting(), &known)?;
        match verdict {
            Verdict::Show(bytes) => self.feed.show(bytes),
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
        let bytes_before = self.outgoing.filled().len();
        match error.alert_received() {
            Some(AlertDescription::CloseNotify) if !self.connection.wants_write() => {
                self.append_alert(Alert::CLOSE_NOTIFY);
            }
            Some(_) => self.outgoing.clear(),
            None => {
                self.encode_last_words();
                if self.outgoing.filled().len() == bytes_before {
                    self.append_alert(error.alert());
                }
            }
        }
        Step::Failed(error, std::mem::take(&mut self.outgoing))
    }

    /// After an error rustls may have an alert ready for the peer.
    fn encode_last_words(&mut self) {
        // Only as long as something is to be encoded: after that rustls would go on with messages
        // it has located in the input, and panic since they are gone.
        while self.connection.wants_write()
            && let UnbufferedStatus {
                state: Ok(ConnectionState::EncodeTlsData(mut encode)), ..
            } = self.connection.process_tls_records(&mut [])
        {
            match encode.encode(self.outgoing.room(ENCODED_BYTES_USUAL)) {
                Ok(written) => self.outgoing.commit(written),
                Err(_) => break,
            }
        }
    }

    /// An alert that rustls does not send, under the key that it would have used.
    fn append_alert(&mut self, alert: Alert) {
        let Self { connection, observed, outgoing, .. } = self;
        if let (Some(suite), Some(secret)) =
            (tls13_suite(connection), observed.server_secret.take())
        {
            // Our Finished was the last under the handshake key, and nothing came behind it.
            let sealer = TrafficSecret::new(suite, secret).keys().and_then(RecordSealer::new);
            if let Ok(mut sealer) = sealer {
                let _ = outgoing.append_sealed(&mut sealer, ContentType::Alert, &alert.message());
            }
            return;
        }
        // A resumed TLS 1.2 session is protected on our side before the client has finished, under
        // keys that only rustls has: then the end says enough.
        if connection.handshake_kind() != Some(HandshakeKind::Resumed) {
            let [level, description] = alert.message();
            outgoing.append(&[ContentType::Alert.byte(), 3, 3, 0, 2, level, description]);
        }
    }

    fn establish(self: Box<Self>) -> Result<Established, HandshakeError> {
        let Handshake { connection, observed, feed, outgoing, .. } = *self;
        let agreed = Agreed::of(&connection)?;
        let resumed = match agreed.is_resumed {
            true if observed.has_read_ticket => Resumption::Ticket,
            true => Resumption::SessionId,
            false => Resumption::Full,
        };
        let updater = server_updater(&connection, observed.server_secret, observed.client_secret)?;
        let (secrets, _) =
            connection.dangerous_into_kernel_connection().map_err(HandshakeError::Rustls)?;
        let (sealer, opener, session) =
            agreed.into_session(&secrets, resumed, observed.server_name)?;
        let incoming = feed.into_waiting().ok_or(BEHIND_FINISHED)?;
        Ok(Established { sealer, opener, updater, session, incoming, outgoing })
    }
}

fn tls13_suite(connection: &CommonState) -> Option<&'static Tls13CipherSuite> {
    connection.negotiated_cipher_suite()?.tls13()
}

fn server_updater(
    connection: &CommonState,
    tx: Option<Secret>,
    rx: Option<Secret>,
) -> Result<Option<Updater>, HandshakeError> {
    let Some(suite) = tls13_suite(connection) else {
        return Ok(None);
    };
    let (Some(tx), Some(rx)) = (tx, rx) else {
        return Err(HandshakeError::Unsupported("no traffic secrets"));
    };
    let [tx, rx] = [tx, rx].map(|secret| TrafficSecret::new(suite, secret));
    Ok(Some(Updater::Server(Box::new(ServerUpdater { tx, rx }))))
}

/// What rustls says was agreed on, on either side.
pub(crate) struct Agreed {
    pub(crate) version: Version,
    suite: &'static str,
    group: &'static str,
    pub(crate) is_resumed: bool,
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
        })
    }

    pub(crate) fn into_session(
        self,
        secrets: &ExtractedSecrets,
        resumed: Resumption,
        server_name: Option<Box<str>>,
    ) -> Result<(RecordSealer, RecordOpener, Session), HandshakeError> {
        let unsupported = |_| HandshakeError::Unsupported("cipher suite");
        let Self { version, suite, group, .. } = self;
        let tx = Keys::new(version, secrets.tx.0, &secrets.tx.1).map_err(unsupported)?;
        let rx = Keys::new(version, secrets.rx.0, &secrets.rx.1).map_err(unsupported)?;
        let sealer = RecordSealer::new(tx).map_err(unsupported)?;
        let opener = RecordOpener::new(&rx).map_err(unsupported)?;
        let cipher = sealer.cipher();
        Ok((sealer, opener, Session { version, cipher, suite, group, resumed, server_name }))
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

/// How far a step of the state machine went.
pub(crate) enum Progress {
    More,
    Blocked,
}

fn suite_name(suite: rustls::SupportedCipherSuite) -> &'static str {
    suite.suite().as_str().unwrap_or("unknown")
}

fn group_name(group: &'static dyn rustls::crypto::SupportedKxGroup) -> &'static str {
    use rustls::NamedGroup;
    match group.name() {
        NamedGroup::X25519 => "X25519",
        NamedGroup::X25519MLKEM768 => "X25519MLKEM768",
        NamedGroup::secp256r1 => "P-256",
        NamedGroup::secp384r1 => "P-384",
        _ => "other",
    }
}

/// Most messages of a handshake fit; a certificate chain tells how much more it needs.
pub(crate) const ENCODED_BYTES_USUAL: usize = 2_048;

#[cfg(test)]
mod tests;
