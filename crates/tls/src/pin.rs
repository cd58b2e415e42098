//! A server's public key by its hash, as it is written in configurations.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The SHA-256 of a SubjectPublicKeyInfo (RFC 7469 §2.4), written `sha256/` and Base64; with a second slash it is
/// what curl's `--pinnedpubkey` takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pin(pub [u8; 32]);

/// The text is no pin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPin(String);

impl FromStr for Pin {
    type Err = BadPin;

    fn from_str(text: &str) -> Result<Self, BadPin> {
        let bad = || BadPin(text.to_owned());
        let hash = text.strip_prefix("sha256/").ok_or_else(bad)?;
        // curl writes two slashes, and Base64 may begin with one.
        let hash = if hash.len() > BASE64_BYTES { hash.strip_prefix('/') } else { Some(hash) };
        let hash = hash.ok_or_else(bad)?;
        let bytes = STANDARD.decode(hash).map_err(|_| bad())?;
        bytes.try_into().map(Self).map_err(|_| bad())
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256/{}", STANDARD.encode(self.0))
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for BadPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no pin; write \"sha256/\" and the Base64 of the 32 bytes that `openssl x509 -in CERT -pubkey \
             -noout | openssl pkey -pubin -outform der | openssl sha256 -binary | openssl base64` prints",
            self.0
        )
    }
}

impl std::error::Error for BadPin {}

/// Of 32 bytes, with padding.
const BASE64_BYTES: usize = 44;

#[cfg(test)]
mod tests;
