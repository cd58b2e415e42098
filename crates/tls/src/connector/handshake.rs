//! The client's handshake: as [`crate::handshake`] on the other side, with early data.

use std::sync::Arc;
use std::time::Instant;

use kettle_kernel::ktls::Version;
use rustls::client::UnbufferedClientConnection;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use rustls::{AlertDescription, ProtocolVersion};

use super::Connector;
use super::sessions::Sessions;
use crate::buffers::Queue;
use crate::control::{Alert, Violation};
use crate::handshake::{
    Agreed, BEHIND_FINISHED, Established, Feed, HandshakeError, KeptSession, Stepped, append_alert,
    check_alert, encode, peer_identity, traffic_secrets,
};
use crate::hello::{ClientHello, Peeked, peek};
use crate::records::{
    BODY_BYTES_MAX_TLS13, ContentType, HEADER_BYTES, Keys, PLAINTEXT_BYTES_MAX, ProtectionError,
    RecordError, whole_record_bytes,
};
use crate::rustls_callbacks::{Observed, SessionEnd};
use crate::secrets::TrafficSecret;
use crate::session::Resumption;
use crate::ticket_reader::TicketReader;

/// A client's handshake under way.
pub(crate) struct ClientHandshake<'a> {
    connection: UnbufferedClientConnection,
    sessions: Arc<Sessions>,
    observed: Observed,
    /// It would go on with a session, of either version.
    offers_session: bool,
    sent_name: Option<Arc<str>>,
    shows_certificate: bool,
    /// The server's certificate is looked at.
    proves_peer: bool,
    early_data: EarlyData<'a>,
    /// A record has been received.
    has_answer: bool,
    /// True if the ClientHello resumes a TLS 1.2 session by ticket.
    offers_ticket: bool,
    /// TLS 1.2: what we send behind our change_cipher_spec is protected.
    has_changed_cipher: bool,
    /// Received and not yet processed.
    pub(crate) feed: Feed,
    /// To be sent, in order.
    pub(crate) outgoing: Queue,
}

/// The fate of the data for the first flight.
enum EarlyData<'a> {
    Due(&'a [u8]),
    /// There was none, or no ticket allowed it.
    NotSent,
    Sent,
    Accepted,
}

/// The outcome of a step of the handshake.
pub(crate) enum ClientStep<'a> {
    /// Send what is in `outgoing`, then receive more.
    Blocked(Box<ClientHandshake<'a>>),
    /// The handshake is complete, and whether early data was accepted.
    Complete(Box<Established>, bool),
    /// It failed; the queue holds the alert that says so.
    Failed(HandshakeError, Queue),
}

impl<'a> ClientHandshake<'a> {
    pub(crate) fn new(
        connector: &Connector,
        early_data: Option<&'a [u8]>,
    ) -> Result<Self, HandshakeError> {
        let config = Arc::clone(&connector.config);
        // Here the session is chosen that is resumed.
        let mut observed = Observed::default();
        let connection = observed
            .during(|| UnbufferedClientConnection::new(config, connector.name.clone()))
            .map_err(HandshakeError::Rustls)?;
        Ok(Self {
            connection,
            sessions: Arc::clone(&connector.sessions),
            offers_session: observed.session_end.is_some(),
            observed,
            proves_peer: connector.proves_peer,
            sent_name: connector.sent_name.clone(),
            shows_certificate: connector.config.client_auth_cert_resolver.has_certs(),
            early_data: early_data.map_or(EarlyData::NotSent, EarlyData::Due),
            has_answer: false,
            offers_ticket: false,
            has_changed_cipher: false,
            feed: Feed::default(),
            outgoing: Queue::default(),
        })
    }

    /// Processes what has been received, as far as it goes.
    pub(crate) fn advance(mut self: Box<Self>) -> ClientStep<'a> {
        loop {
            let mut observed = std::mem::take(&mut self.observed);
            let progress = observed.during(|| self.step());
            self.observed = observed;
            let progress = match progress {
                Ok(progress) => progress,
                Err(error) => return self.fail(error),
            };
            if !self.connection.is_handshaking() && !self.connection.wants_write() {
                let is_accepted = matches!(self.early_data, EarlyData::Accepted);
                return match self.establish() {
                    Ok(established) => ClientStep::Complete(Box::new(established), is_accepted),
                    Err(error) => ClientStep::Failed(error, Queue::default()),
                };
            }
            if matches!(progress, Stepped::More) {
                continue;
            }
            match self.next_record() {
                Ok(Some(bytes)) => {
                    self.has_answer = true;
                    if let Err(bug) = self.feed.show(bytes) {
                        return self.fail(bug.into());
                    }
                }
                Ok(None) => return ClientStep::Blocked(self),
                Err(error) => return self.fail(error),
            }
        }
    }

    /// Returns the length of the next record, once all of it is there. A record that is forbidden, which rustls would let pass,
    /// or not report, is refused.
    fn next_record(&self) -> Result<Option<usize>, HandshakeError> {
        let waiting = self.feed.waiting();
        let bytes = match whole_record_bytes(waiting) {
            Ok(bytes) => bytes,
            Err(_) if !self.has_answer => return Err(HandshakeError::NotTls),
            Err(error) => return Err(Violation::from(error).into()),
        };
        let is_tls13 = self.connection.protocol_version() == Some(ProtocolVersion::TLSv1_3);
        if let Some(&[_, _, _, high, low]) = waiting.first_chunk::<HEADER_BYTES>()
            && is_tls13
            && usize::from(u16::from_be_bytes([high, low])) > BODY_BYTES_MAX_TLS13
        {
            return Err(Violation::from(RecordError::Overflow).into());
        }
        let record = bytes.and_then(|bytes| waiting.get(..bytes)).unwrap_or_default();
        // One that is protected is longer.
        if let &[content_type, _, _, _, _, level, alert] = record
            && content_type == ContentType::Alert.byte()
        {
            check_alert(&[level, alert], is_tls13)?;
        }
        Ok(bytes)
    }

    fn step(&mut self) -> Result<Stepped, HandshakeError> {
        let UnbufferedStatus { discard, state } =
            self.connection.process_tls_records(self.feed.shown());
        let progress = match state {
            Ok(ConnectionState::EncodeTlsData(message)) => {
                let bytes = encode(message, &mut self.outgoing);
                let message = self.outgoing.filled();
                let (_, message) = message.split_at(message.len() - bytes);
                self.has_changed_cipher |=
                    message.first() == Some(&ContentType::ChangeCipherSpec.byte());
                self.offers_ticket |= offers_ticket(message);
                if matches!(self.early_data, EarlyData::Sent) && is_end_of_early_data(message) {
                    self.early_data = EarlyData::Accepted;
                }
                Ok(Stepped::More)
            }
            // Sent from `outgoing` later, in order with everything else.
            Ok(ConnectionState::TransmitTlsData(mut transmit)) => {
                if let EarlyData::Due(data) = self.early_data {
                    self.early_data = match transmit.may_encrypt_early_data() {
                        None => EarlyData::NotSent,
                        Some(mut encrypt) => {
                            let records = data.len().div_ceil(PLAINTEXT_BYTES_MAX);
                            let bytes = data.len() + records * TLS13_RECORD_OVERHEAD_BYTES;
                            // Beyond what the server takes rustls would cut the data short.
                            match encrypt.encrypt(data, self.outgoing.room(bytes)) {
                                Ok(written) if written == bytes => self.outgoing.commit(bytes),
                                _ => return Err(HandshakeError::Unsupported("so much early data")),
                            }
                            EarlyData::Sent
                        }
                    };
                }
                transmit.done();
                Ok(Stepped::More)
            }
            Ok(ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_)) => {
                Ok(Stepped::Blocked)
            }
            Ok(_) => Err(HandshakeError::Unsupported("a state without a handshake")),
            Err(error) => Err(HandshakeError::Rustls(error)),
        };
        self.feed.discard(discard)?;
        progress
    }

    /// Ends a handshake that cannot go on, with a word for the server if it still listens.
    pub(crate) fn fail(mut self: Box<Self>, error: HandshakeError) -> ClientStep<'a> {
        self.forget_session();
        let error = self.explained(error);
        self.feed = Feed::default();
        let bytes_before = self.outgoing.filled().len();
        match error.alert_received() {
            Some(AlertDescription::CloseNotify) => self.append_alert(Alert::CLOSE_NOTIFY),
            Some(_) => self.outgoing.clear(),
            None => {
                self.encode_last_words();
                if self.outgoing.filled().len() == bytes_before
                    && matches!(error, HandshakeError::Violation(_) | HandshakeError::Rustls(_))
                {
                    self.append_alert(error.alert());
                }
            }
        }
        ClientStep::Failed(error, std::mem::take(&mut self.outgoing))
    }

    /// The handshake has failed, and it may be for the session that it resumes: a server that has lost what one ticket was made
    /// with takes none of the others either.
    pub(crate) fn forget_session(&self) {
        self.sessions.forget();
        if self.offers_session {
            self.sessions.forget_tls13_tickets();
        }
    }

    /// After an error rustls may have an alert ready for the server.
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

    pub(super) fn append_alert(&mut self, alert: Alert) {
        let keys = self.last_words_keys();
        append_alert(&mut self.outgoing, alert, keys);
    }

    /// Returns the keys that protect our next record, if there are any.
    fn last_words_keys(&mut self) -> Option<Result<Keys, ProtectionError>> {
        let suite = self.connection.negotiated_cipher_suite().and_then(|suite| suite.tls13());
        match (suite, self.observed.client_handshake_secret.take()) {
            // Nothing of ours but our Finished, which is the last, would have come under this key.
            (Some(suite), Some(secret)) => Some(TrafficSecret::new(suite, secret).keys()),
            _ => self.has_changed_cipher.then_some(Err(ProtectionError)),
        }
    }

    /// Returns the reason behind an error of rustls, as far as it was noted.
    fn explained(&mut self, error: HandshakeError) -> HandshakeError {
        let misses_certificate = self.observed.is_certificate_requested && !self.shows_certificate;
        match (self.observed.refusal.take(), error) {
            (Some(refusal), HandshakeError::Rustls(rustls::Error::InvalidCertificate(_))) => {
                HandshakeError::Certificate(refusal)
            }
            (_, HandshakeError::Rustls(rustls::Error::AlertReceived(alert)))
                if misses_certificate =>
            {
                HandshakeError::CertificateWanted(alert)
            }
            (_, error) => error,
        }
    }

    fn establish(self: Box<Self>) -> Result<Established, HandshakeError> {
        let ClientHandshake {
            connection,
            sessions,
            observed,
            sent_name,
            proves_peer,
            offers_ticket,
            feed,
            outgoing,
            ..
        } = *self;
        let agreed = Agreed::of(&connection)?;
        let end = observed.session_end.unwrap_or(SessionEnd::NEVER);
        let Observed { client_secret, server_secret, is_certificate_requested, .. } = observed;
        let secrets = traffic_secrets(&connection, client_secret, server_secret)?;
        let peer = if proves_peer { peer_identity(&connection)? } else { None };
        let (keys, connection) =
            connection.dangerous_into_kernel_connection().map_err(HandshakeError::Rustls)?;
        let is_tls13 = agreed.version == Version::Tls13;
        let resumed = match agreed.is_resumed {
            true if is_tls13 || offers_ticket => Resumption::Ticket,
            true => Resumption::SessionId,
            false => Resumption::Full,
        };
        let tickets =
            is_tls13.then(|| Box::new(TicketReader::new(connection, end, Instant::now())));
        let sent_name = sent_name.as_deref().map(Box::from);
        let (sealer, opener, mut session) = agreed.into_session(&keys, resumed, sent_name)?;
        session.is_certificate_asked = is_certificate_requested;
        session.peer = peer;
        let incoming = feed.into_waiting().ok_or(BEHIND_FINISHED)?;
        Ok(Established {
            sealer,
            opener,
            secrets,
            tickets,
            session,
            kept_session: (!is_tls13).then_some(sessions as Arc<dyn KeptSession>),
            incoming,
            outgoing,
        })
    }
}

/// True if a ClientHello that we send resumes a TLS 1.2 session by ticket; rustls does not tell.
fn offers_ticket(record: &[u8]) -> bool {
    let Peeked::Hello(message) = peek(record) else {
        return false;
    };
    ClientHello::parse(&message).is_some_and(|hello| hello.offers_tls12_ticket())
}

/// A client says where its early data ends only if the server took it (RFC 8446 §4.5). rustls tells nothing else of
/// that, and no other record of a client's handshake is as short: an alert is shorter, a Finished longer.
fn is_end_of_early_data(record: &[u8]) -> bool {
    record.first() == Some(&ContentType::ApplicationData.byte())
        && record.len() == END_OF_EARLY_DATA_BYTES + TLS13_RECORD_OVERHEAD_BYTES
}

/// The message is its header (RFC 8446 §4).
const END_OF_EARLY_DATA_BYTES: usize = 4;

/// Header, inner content type and tag.
const TLS13_RECORD_OVERHEAD_BYTES: usize = HEADER_BYTES + 1 + 16;
