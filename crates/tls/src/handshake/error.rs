//! Why handshakes fail: the word for it, and the alert for the peer.

use std::fmt;

use kettle_kernel::bug::Bug;
use rustls::AlertDescription;

use crate::control::{Alert, Violation};
use crate::refusal::CertificateRefusal;

/// Why a handshake failed.
#[derive(Debug)]
pub enum HandshakeError {
    /// The peer broke the protocol, or shares no version, suite or group with us.
    Rustls(rustls::Error),
    /// The peer broke the protocol where rustls would have let it pass.
    Violation(Violation),
    /// The first bytes of the server are no TLS record.
    NotTls,
    /// The server's certificate was not taken.
    Certificate(Box<CertificateRefusal>),
    /// The server asked for a certificate, got none, and ended the handshake with this alert.
    CertificateWanted(AlertDescription),
    /// Our certificate for the name is fetched and not there yet.
    CertificateAwaited,
    /// A bug of ours: rustls negotiated what we cannot carry on.
    Unsupported(&'static str),
    /// Another bug of ours.
    Bug(Bug),
}

impl HandshakeError {
    /// One word for logs and metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            HandshakeError::Unsupported(_) | HandshakeError::Bug(_) => "internal",
            HandshakeError::Rustls(error) => reason(error),
            HandshakeError::NotTls => "not_tls",
            HandshakeError::Certificate(refusal) => refusal.reason(),
            HandshakeError::CertificateWanted(_) => "certificate_required",
            HandshakeError::CertificateAwaited => "certificate_awaited",
            HandshakeError::Violation(violation) => match violation.alert {
                Alert::UNRECOGNIZED_NAME => "unrecognized_name",
                Alert::NO_APPLICATION_PROTOCOL => "no_application_protocol",
                _ => "peer_misbehaved",
            },
        }
    }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeError::Rustls(error) => write!(formatter, "{error}"),
            HandshakeError::Violation(violation) => write!(formatter, "the peer: {violation}"),
            HandshakeError::NotTls => formatter.write_str(
                "the server does not answer in TLS; is it one for plain text, or for STARTTLS first?",
            ),
            HandshakeError::Certificate(refusal) => write!(formatter, "{refusal}"),
            HandshakeError::CertificateWanted(alert) => write!(
                formatter,
                "the server asked for a certificate, got none and sent alert {alert:?}; name one by `certificate`"
            ),
            HandshakeError::CertificateAwaited => {
                formatter.write_str("the certificate for this name is fetched and not there yet")
            }
            HandshakeError::Unsupported(what) => write!(formatter, "cannot carry on: {what}"),
            HandshakeError::Bug(bug) => write!(formatter, "{bug}"),
        }
    }
}

impl std::error::Error for HandshakeError {}

impl From<Bug> for HandshakeError {
    fn from(bug: Bug) -> Self {
        HandshakeError::Bug(bug)
    }
}

impl From<Violation> for HandshakeError {
    fn from(violation: Violation) -> Self {
        HandshakeError::Violation(violation)
    }
}

impl HandshakeError {
    /// The alert with which the peer ended the handshake itself: it waits for no answer (RFC 8446 §6.2).
    pub(crate) fn alert_received(&self) -> Option<AlertDescription> {
        match self {
            HandshakeError::Rustls(rustls::Error::AlertReceived(alert))
            | HandshakeError::CertificateWanted(alert) => Some(*alert),
            _ => None,
        }
    }

    pub(super) fn is_without_certificate(&self) -> bool {
        matches!(self, HandshakeError::Rustls(rustls::Error::NoCertificatesPresented))
    }

    /// Returns the alert to the peer where rustls says nothing.
    pub(crate) fn alert(&self) -> Alert {
        use rustls::{Error, PeerMisbehaved};
        match self {
            HandshakeError::Violation(violation) => violation.alert,
            HandshakeError::CertificateAwaited => Alert::UNRECOGNIZED_NAME,
            // A client's: there rustls says something, or nobody would understand.
            HandshakeError::NotTls
            | HandshakeError::Certificate(_)
            | HandshakeError::CertificateWanted(_)
            | HandshakeError::Unsupported(_)
            | HandshakeError::Bug(_) => Alert::INTERNAL_ERROR,
            HandshakeError::Rustls(error) => match error {
                Error::InvalidMessage(_) => Alert::DECODE_ERROR,
                Error::PeerSentOversizedRecord => Alert::RECORD_OVERFLOW,
                Error::DecryptError
                | Error::PeerMisbehaved(
                    PeerMisbehaved::RejectedEarlyDataInterleavedWithHandshakeMessage,
                ) => Alert::BAD_RECORD_MAC,
                Error::PeerIncompatible(_) => Alert::HANDSHAKE_FAILURE,
                Error::PeerMisbehaved(
                    PeerMisbehaved::InvalidKeyShare | PeerMisbehaved::ServerNameDifferedOnRetry,
                ) => Alert::ILLEGAL_PARAMETER,
                Error::PeerMisbehaved(PeerMisbehaved::UnsolicitedCertExtension) => {
                    Alert::UNSUPPORTED_EXTENSION
                }
                // A case in which rustls would send the alert of TLS 1.3 (RFC 5246 §7.4.6).
                Error::NoCertificatesPresented => Alert::HANDSHAKE_FAILURE,
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
        Error::PeerMisbehaved(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. } => "peer_misbehaved",
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => "no_application_protocol",
        Error::AlertReceived(_) => "alert_received",
        Error::InvalidMessage(_) => "not_tls",
        Error::NoApplicationProtocol => "no_application_protocol",
        Error::DecryptError => "decrypt_error",
        Error::PeerSentOversizedRecord => "oversized_record",
        Error::NoCertificatesPresented => "certificate_required",
        Error::InvalidCertificate(error) => certificate_reason(error),
        _ => "other",
    }
}

fn certificate_reason(error: &rustls::CertificateError) -> &'static str {
    use rustls::CertificateError as Error;
    match error {
        Error::Expired | Error::ExpiredContext { .. } => "certificate_expired",
        Error::NotValidYet | Error::NotValidYetContext { .. } => "certificate_not_yet_valid",
        Error::Revoked => "certificate_revoked",
        Error::UnknownIssuer => "unknown_ca",
        Error::UnknownRevocationStatus
        | Error::ExpiredRevocationList
        | Error::ExpiredRevocationListContext { .. } => "revocation_unknown",
        Error::NotValidForName | Error::NotValidForNameContext { .. } => "wrong_name",
        _ => "bad_certificate",
    }
}
