//! The identity of the peer, by the certificate whose key it proved to have: for routing, logs and pins.
//!
//! Nothing is verified here: that is done in the handshake, before.

use std::fmt::{self, Write as _};
use std::net::IpAddr;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::CertificateDer;
use x509_parser::asn1_rs::ToDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// The identity of a peer by its certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerIdentity {
    /// The subject in one line (RFC 4514): `CN=alice,O=Example`. Whatever the certificate has in it, no two subjects
    /// that differ in their parts are written alike, and there is no control character in it.
    pub subject: Box<str>,
    /// The subject's first common name, as it is.
    pub common_name: Option<Box<str>>,
    /// The subject alternative names of the kinds that [`AlternativeName`] has, in the certificate's order.
    pub names: Box<[AlternativeName]>,
    /// The SHA-256 of the SubjectPublicKeyInfo, which a pin names.
    pub spki_sha256: [u8; 32],
    /// The certificates that the peer showed, in DER, its own first.
    pub chain: Box<[Box<[u8]>]>,
}

/// A subject alternative name (RFC 5280 §4.2.1.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlternativeName {
    /// A DNS name, perhaps a wildcard, as it was written.
    Dns(Box<str>),
    /// An IP address.
    Address(IpAddr),
    /// A URI, such as a SPIFFE ID.
    Uri(Box<str>),
    /// A mail address.
    Email(Box<str>),
}

/// The certificate is not well formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// A value that is no text is nobody's name.
fn common_name(subject: &X509Name<'_>) -> Option<Box<str>> {
    subject.iter_common_name().next()?.as_str().ok().map(Box::from)
}

impl PeerIdentity {
    /// Reads what the first certificate of a chain says.
    pub(crate) fn of(chain: &[CertificateDer<'_>]) -> Result<Self, Malformed> {
        let leaf = chain.first().ok_or(Malformed)?;
        let Ok(([], certificate)) = X509Certificate::from_der(leaf) else {
            return Err(Malformed);
        };
        let names = certificate.subject_alternative_name().map_err(|_| Malformed)?;
        let names = names.map_or(&[][..], |extension| &extension.value.general_names);
        Ok(Self {
            subject: line(certificate.subject()).into(),
            common_name: common_name(certificate.subject()),
            names: names.iter().filter_map(AlternativeName::of).collect(),
            spki_sha256: sha256(certificate.public_key().raw),
            chain: chain.iter().map(|one| Box::from(one.as_ref())).collect(),
        })
    }
}

impl PeerIdentity {
    /// The peer's own certificate in PEM.
    #[must_use]
    pub fn certificate_pem(&self) -> Option<String> {
        let text = STANDARD.encode(self.chain.first()?);
        let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
        for (index, letter) in text.chars().enumerate() {
            if index > 0 && index % PEM_LINE_LETTERS == 0 {
                pem.push('\n');
            }
            pem.push(letter);
        }
        pem.push_str("\n-----END CERTIFICATE-----\n");
        Some(pem)
    }
}

/// RFC 7468 §2.
const PEM_LINE_LETTERS: usize = 64;

impl AlternativeName {
    fn of(name: &GeneralName<'_>) -> Option<Self> {
        Some(match name {
            GeneralName::DNSName(name) => Self::Dns((*name).into()),
            GeneralName::URI(uri) => Self::Uri((*uri).into()),
            GeneralName::RFC822Name(address) => Self::Email((*address).into()),
            GeneralName::IPAddress(bytes) => Self::Address(match bytes.len() {
                4 => <[u8; 4]>::try_from(*bytes).ok()?.into(),
                _ => <[u8; 16]>::try_from(*bytes).ok()?.into(),
            }),
            _ => return None,
        })
    }
}

impl fmt::Display for AlternativeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns(text) | Self::Uri(text) | Self::Email(text) => f.write_str(text),
            Self::Address(address) => write!(f, "{address}"),
        }
    }
}

/// The last part first (RFC 4514 §2.1).
pub(crate) fn line(name: &X509Name<'_>) -> String {
    let mut line = String::new();
    let parts: Vec<_> = name.iter_rdn().collect();
    for part in parts.into_iter().rev() {
        for (index, attribute) in part.iter().enumerate() {
            match index {
                _ if line.is_empty() => {}
                0 => line.push(','),
                _ => line.push('+'),
            }
            push_attribute(&mut line, attribute);
        }
    }
    line
}

fn push_attribute(line: &mut String, attribute: &AttributeTypeAndValue<'_>) {
    let oid = attribute.attr_type().to_id_string();
    let keyword = KEYWORDS.iter().find(|(known, _)| *known == oid).map(|(_, keyword)| keyword);
    line.push_str(keyword.unwrap_or(&oid.as_str()));
    line.push('=');
    match (keyword, attribute.as_str()) {
        (Some(_), Ok(value)) => push_escaped(line, value),
        // A value that is no text, or of a kind unknown here, stands there in DER (RFC 4514 §2.4).
        _ => {
            line.push('#');
            for byte in attribute.attr_value().to_der_vec().unwrap_or_default() {
                // Writing to a string cannot fail.
                let _ = write!(line, "{byte:02x}");
            }
        }
    }
}

fn push_escaped(line: &mut String, value: &str) {
    let last = value.chars().count().saturating_sub(1);
    for (index, character) in value.chars().enumerate() {
        match character {
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' | '=' => line.push('\\'),
            ' ' if index == 0 || index == last => line.push('\\'),
            '#' if index == 0 => line.push('\\'),
            _ if character.is_control() => {
                let mut bytes = [0; 4];
                for byte in character.encode_utf8(&mut bytes).bytes() {
                    let _ = write!(line, "\\{byte:02x}");
                }
                continue;
            }
            _ => {}
        }
        line.push(character);
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    hash
}

/// RFC 4514 §3, and two that everybody writes as words.
const KEYWORDS: [(&str, &str); 11] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.6", "C"),
    ("2.5.4.9", "STREET"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("2.5.4.5", "serialNumber"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

#[cfg(test)]
mod tests;
