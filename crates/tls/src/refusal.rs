//! Why a server's certificate is not taken, and what to do about it.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::{CertificateError, Error};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::identity::Utc;
use crate::peer_identity::{self, PeerIdentity};
use crate::pin::Pin;

/// Why a server's certificate is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateRefusal {
    /// No trusted authority vouches for it.
    UnknownIssuer {
        /// Its signer, by its own account (RFC 4514).
        issuer: Box<str>,
    },
    /// It is for another name.
    WrongName {
        /// The name or address that it should be for.
        expected: Box<str>,
        /// Those that it is for.
        names: Vec<Box<str>>,
    },
    /// It, or one above it, was valid until then.
    Expired(SystemTime),
    /// It, or one above it, will be valid then.
    NotYetValid(SystemTime),
    /// It is an authority's, which may sign others but not stand for a server.
    IsAuthority {
        /// The key that it has.
        pin: Pin,
    },
    /// Its key is not among those that are trusted.
    WrongKey {
        /// The key that it has.
        pin: Pin,
    },
    /// Its purposes leave out being a server (RFC 5280 §4.2.1.12), or its key usage signing (§4.2.1.3).
    WrongPurpose,
    /// The server signed the handshake with another key, or in a way that is not supported.
    NoProof,
    /// Something else, as rustls calls it.
    Unusable(Box<str>),
}

impl CertificateRefusal {
    /// Tells what rustls found, with what the certificate says.
    pub(crate) fn of(
        error: &Error,
        end_entity: &CertificateDer<'_>,
        name: &ServerName<'_>,
    ) -> Self {
        use CertificateError as Bad;
        let unusable = || Self::Unusable(error.to_string().into());
        let Error::InvalidCertificate(bad) = error else {
            return unusable();
        };
        match bad {
            Bad::ExpiredContext { not_after, .. } => Self::Expired(moment(*not_after)),
            Bad::NotValidYetContext { not_before, .. } => Self::NotYetValid(moment(*not_before)),
            Bad::InvalidPurpose | Bad::InvalidPurposeContext { .. } => Self::WrongPurpose,
            _ => Self::of_certificate(bad, end_entity, name).unwrap_or_else(unusable),
        }
    }

    /// Says what can be told only of a certificate that can be read.
    fn of_certificate(
        bad: &CertificateError,
        end_entity: &CertificateDer<'_>,
        name: &ServerName<'_>,
    ) -> Option<Self> {
        use CertificateError as Bad;
        let (_, certificate) = X509Certificate::from_der(end_entity).ok()?;
        let identity = PeerIdentity::of(std::slice::from_ref(end_entity)).ok()?;
        Some(match bad {
            Bad::UnknownIssuer => {
                Self::UnknownIssuer { issuer: peer_identity::line(certificate.issuer()).into() }
            }
            Bad::NotValidForName | Bad::NotValidForNameContext { .. } => Self::WrongName {
                expected: name.to_str().into(),
                names: identity.names.iter().map(|name| name.to_string().into()).collect(),
            },
            // rustls has no word for it.
            Bad::Other(_) if certificate.is_ca() => {
                Self::IsAuthority { pin: Pin(identity.spki_sha256) }
            }
            _ => return None,
        })
    }

    /// One word for logs and metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::UnknownIssuer { .. } => "unknown_ca",
            Self::WrongName { .. } => "wrong_name",
            Self::Expired(_) => "certificate_expired",
            Self::NotYetValid(_) => "certificate_not_yet_valid",
            Self::WrongKey { .. } => "pin_mismatch",
            Self::IsAuthority { .. } | Self::WrongPurpose | Self::NoProof | Self::Unusable(_) => {
                "bad_certificate"
            }
        }
    }
}

/// In one line, whatever the certificate says.
impl fmt::Display for CertificateRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownIssuer { issuer } => write!(
                f,
                "the server's certificate is signed by an authority that is not trusted ({}); \
                 name that authority's certificate by `roots`, or trust the server's key by `pins`",
                shown(issuer)
            ),
            Self::WrongName { expected, names } => {
                write!(f, "the server's certificate is not for {expected} but for ")?;
                write_names(names, f)?;
                f.write_str("; set `name` to one it has, if this is the right server")
            }
            Self::Expired(until) => write!(
                f,
                "the server's certificate, or one that vouches for it, expired on {}; renew it there",
                Utc(*until)
            ),
            Self::NotYetValid(from) => write!(
                f,
                "the server's certificate, or one that vouches for it, is not valid before {}; look at the clocks",
                Utc(*from)
            ),
            Self::IsAuthority { pin } => write!(
                f,
                "the server's certificate is an authority's own, which stands for no server; give it one that is \
                 signed by it, or trust its key by `pins = [\"{pin}\"]`, if this is the right server"
            ),
            Self::WrongKey { pin } => write!(
                f,
                "the server's key is none of those in `pins`: it is {pin}; add that, if this is the right server"
            ),
            Self::WrongPurpose => f.write_str(
                "the server's certificate is not for servers; give it one with the purpose serverAuth and, where it has a \
                 key usage, digitalSignature",
            ),
            Self::NoProof => f.write_str(
                "the server did not prove to have its certificate's key; look at what answers there",
            ),
            Self::Unusable(what) => {
                write!(f, "the server's certificate cannot be used: {}", shown(what))
            }
        }
    }
}

/// A name is whatever the server's certificate says.
fn write_names(names: &[Box<str>], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if names.is_empty() {
        return f.write_str("no name at all (the subject's common name does not count)");
    }
    for (index, name) in names.iter().take(NAMES_MAX).enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        write!(f, "{comma}{}", shown(name))?;
    }
    match names.len().saturating_sub(NAMES_MAX) {
        0 => Ok(()),
        more => write!(f, " and {more} more"),
    }
}

/// As much of a text as a line bears. Escapes characters that would not be seen, or would turn the line around.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    for character in text.chars().take(TEXT_CHARACTERS_MAX) {
        let escaped = character.escape_debug();
        match character.is_control() || escaped.len() > ESCAPED_QUOTE_CHARACTERS {
            true => shown.extend(escaped),
            false => shown.push(character),
        }
    }
    shown
}

fn moment(time: UnixTime) -> SystemTime {
    // Beyond what the clock of the system can say it is far away all the same.
    UNIX_EPOCH.checked_add(Duration::from_secs(time.as_secs())).unwrap_or(UNIX_EPOCH)
}

/// More would hide the rest of the line.
const NAMES_MAX: usize = 8;
/// As long as a DNS name may be.
const TEXT_CHARACTERS_MAX: usize = 255;
/// Quotes and backslashes are escaped by one more character, and may stay.
const ESCAPED_QUOTE_CHARACTERS: usize = 2;
