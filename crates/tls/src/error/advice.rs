//! The advice on certificates, keys and other files that cannot be used.

use std::io;

use super::{FileRole, IdentityError};

impl IdentityError {
    /// Returns the command to run, where one mends it.
    fn command(&self) -> String {
        let path = self.path().display();
        match self {
            Self::LooksLikeDer { role, .. } => {
                let tool = if *role == FileRole::Key { "pkey" } else { "x509" };
                format!("convert it with `openssl {tool} -inform der -in {path} -out {path}.pem`")
            }
            Self::LooksLikePkcs12 { .. } => {
                format!(
                    "convert it with `openssl pkcs12 -in {path} -nodes -out identity.pem` and name \
                     that file for both the certificate and the key"
                )
            }
            Self::KeyEncrypted { .. } => {
                format!("remove it with `openssl pkey -in {path} -out key.pem`")
            }
            Self::ByteOrderMark { is_utf16: true, .. } => {
                format!("run `iconv -f UTF-16 -t ASCII//TRANSLIT {path}` to convert it")
            }
            Self::ByteOrderMark { .. } => {
                format!("take it away: `sed -i 's/\\xEF\\xBB\\xBF//' {path}`")
            }
            Self::WeakSecret { .. } => {
                format!("make one with `openssl rand -out {path} 32` and copy it to every host")
            }
            _ => String::new(),
        }
    }

    /// Returns the advice.
    pub(super) fn advice(&self) -> String {
        let path = self.path().display();
        let advice = match self {
            Self::Unreadable { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => "check the path",
                io::ErrorKind::PermissionDenied => {
                    "let the user kettle starts as read the file and enter its directories"
                }
                _ => "name a regular file",
            },
            Self::TooLarge { .. } => "check the path",
            Self::NoCertificate { holds_key: true, .. } => {
                "are the certificate and key settings swapped?"
            }
            Self::NoCertificate { .. } => {
                "it must be PEM with a section that starts with `-----BEGIN CERTIFICATE-----`"
            }
            Self::NoKey { holds_certificate: true, .. } => "name the key's own file",
            Self::NoKey { .. } => {
                "it must be PEM with a section that starts with `-----BEGIN PRIVATE KEY-----`, \
                 `-----BEGIN RSA PRIVATE KEY-----` or `-----BEGIN EC PRIVATE KEY-----`"
            }
            Self::BadPem { .. } | Self::BadCertificate { .. } | Self::BadRevocationList { .. } => {
                "copy the file again from its source"
            }
            Self::NotAuthority { .. } => {
                "name the authority that signs, not a certificate it signed; a server's own key is trusted by a pin"
            }
            Self::NamesTooLong { .. } => "leave those in it that issue certificates to clients",
            Self::NoSystemRoots { .. } => {
                "install them (Debian's package is ca-certificates), or name a file of authorities"
            }
            Self::NoRevocationList { .. } => {
                "it must be one list in DER, or PEM with a section that starts with \
                 `-----BEGIN X509 CRL-----`"
            }
            Self::LooksLikeDer { .. }
            | Self::LooksLikePkcs12 { .. }
            | Self::KeyEncrypted { .. }
            | Self::ByteOrderMark { .. }
            | Self::WeakSecret { .. } => return self.command(),
            Self::UnsupportedKey { .. } => {
                "use ECDSA on P-256, P-384 or P-521, RSA of 2048 to 8192 bits, Ed25519, or ML-DSA"
            }
            Self::KeyMismatch { fits_position: Some(_), .. } => {
                "put that certificate first in its file, followed by the one that issued it"
            }
            Self::KeyMismatch { .. } => "name the key that the certificate was requested with",
            Self::BadStaple { .. } => {
                return format!(
                    "fetch it again with `openssl ocsp -issuer ISSUER -cert CERT -url URL \
                     -respout {path}`"
                );
            }
        };
        advice.to_owned()
    }
}
