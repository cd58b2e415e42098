//! The handshake: rustls' unbuffered state machine from the ClientHello to extracted keys.
//!
//! No I/O happens here. The moment the handshake is complete rustls is given up: its keys go to a
//! [`RecordSealer`] and a [`RecordOpener`], so that nothing can be pending inside it later.

use std::fmt;
use std::sync::Arc;

use kettle_kernel::ktls::Version;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, InsufficientSizeError, UnbufferedStatus,
};
use rustls::{CommonState, ExtractedSecrets, HandshakeKind, ProtocolVersion, ServerConfig};

use crate::buffers::Queue;
use crate::observed::{self, Observed};
use crate::records::{Keys, RecordOpener, RecordSealer};
use crate::session::{Resumption, Session};
use crate::updater::Updater;

/// The configuration of the server's side of handshakes, shared by all connections.
#[derive(Clone)]
pub struct Acceptor {
    config: Arc<ServerConfig>,
}

impl Acceptor {
    /// Takes a configuration that allows its keys to be extracted.
    #[must_use]
    pub fn new(config: &ServerConfig) -> Self {
        let mut config = config.clone();
        config.enable_secret_extraction = true;
        observed::observe(&mut config);
        Self { config: Arc::new(config) }
    }
}

/// A handshake under way.
pub(crate) struct Handshake {
    connection: UnbufferedServerConnection,
    observed: Observed,
    /// Received and not yet processed.
    pub(crate) incoming: Queue,
    /// To be sent, in order.
    pub(crate) outgoing: Queue,
}

/// What a step of the handshake led to.
pub(crate) enum Step {
    /// Send what is in `outgoing`, then receive more.
    Blocked(Box<Handshake>),
    /// The handshake is complete; `outgoing` may still hold its last messages.
    Complete(Box<Established>),
    /// It failed; `outgoing` holds the alert that says so.
    Failed(HandshakeError, Queue),
}

/// What is left of a handshake when it is complete.
pub(crate) struct Established {
    pub(crate) sealer: RecordSealer,
    pub(crate) opener: RecordOpener,
    /// Makes the keys that follow a KeyUpdate; TLS 1.2 has none.
    pub(crate) updater: Option<Updater>,
    pub(crate) session: Session,
    /// Received behind the handshake, not yet opened.
    pub(crate) incoming: Queue,
    /// Opened already.
    pub(crate) plaintext: Queue,
    /// Tickets or a Finished that still have to be sent.
    pub(crate) outgoing: Queue,
}

/// Why a handshake failed.
#[derive(Debug)]
pub enum HandshakeError {
    /// The peer broke the protocol, or shares no version, suite or group with us.
    Rustls(rustls::Error),
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
        }
    }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeError::Rustls(error) => write!(formatter, "{error}"),
            HandshakeError::Unsupported(what) => write!(formatter, "cannot carry on: {what}"),
        }
    }
}

impl std::error::Error for HandshakeError {}

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
            observed: Observed::default(),
            incoming: Queue::default(),
            outgoing: Queue::default(),
        })
    }

    /// Processes what has been received, as far as it goes.
    pub(crate) fn advance(mut self: Box<Self>) -> Step {
        let mut plaintext = Queue::default();
        loop {
            let mut observed = std::mem::take(&mut self.observed);
            let progress = observed.during(|| self.step(&mut plaintext));
            self.observed = observed;
            if self.connection.handshake_kind() != Some(HandshakeKind::Resumed) {
                self.observed.forget_session();
            }
            let progress = match progress {
                Ok(progress) => progress,
                Err(error) => return self.fail(error),
            };
            if !self.connection.is_handshaking() && !self.connection.wants_write() {
                return match self.establish(plaintext) {
                    Ok(established) => Step::Complete(Box::new(established)),
                    Err(error) => Step::Failed(error, Queue::default()),
                };
            }
            if matches!(progress, Progress::Blocked) {
                return Step::Blocked(self);
            }
        }
    }

    fn step(&mut self, plaintext: &mut Queue) -> Result<Progress, HandshakeError> {
        let UnbufferedStatus { discard, state } =
            self.connection.process_tls_records(self.incoming.filled_mut());
        let progress = match state {
            Ok(ConnectionState::EncodeTlsData(encode_message)) => {
                encode(encode_message, &mut self.outgoing);
                Ok(Progress::More)
            }
            // Sent from `outgoing` later, in order with everything else.
            Ok(ConnectionState::TransmitTlsData(transmit)) => {
                transmit.done();
                Ok(Progress::More)
            }
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                while let Some(record) = traffic.next_record() {
                    plaintext.append(record.map_err(HandshakeError::Rustls)?.payload);
                }
                Ok(Progress::More)
            }
            // In TLS 1.3 the server may write before the client's Finished; kettle does not.
            Ok(ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_)) => {
                Ok(Progress::Blocked)
            }
            Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => Err(
                HandshakeError::Rustls(rustls::Error::General("closed in the handshake".into())),
            ),
            Ok(_) => Err(HandshakeError::Unsupported("early data")),
            Err(error) => Err(HandshakeError::Rustls(error)),
        };
        self.incoming.consume(discard);
        progress
    }

    /// After an error rustls has an alert ready for the peer.
    fn fail(mut self: Box<Self>, error: HandshakeError) -> Step {
        self.incoming.clear();
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
        Step::Failed(error, std::mem::take(&mut self.outgoing))
    }

    fn establish(self: Box<Self>, plaintext: Queue) -> Result<Established, HandshakeError> {
        let Handshake { connection, observed, incoming, outgoing } = *self;
        let agreed = Agreed::of(&connection)?;
        let resumed = match agreed.is_resumed {
            true if observed.has_read_ticket => Resumption::Ticket,
            true => Resumption::SessionId,
            false => Resumption::Full,
        };
        let (secrets, updater) =
            connection.dangerous_into_kernel_connection().map_err(HandshakeError::Rustls)?;
        let (sealer, opener, session) =
            agreed.into_session(&secrets, resumed, observed.server_name)?;
        let updater =
            (session.version == Version::Tls13).then(|| Updater::Server(Box::new(updater)));
        Ok(Established { sealer, opener, updater, session, incoming, plaintext, outgoing })
    }
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
