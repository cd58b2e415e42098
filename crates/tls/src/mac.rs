//! Keyed hashes (HMAC-SHA256): names for what must not be kept, and signatures of what was given out. And hashes that tell contents
//! apart, or that handshakes of other protocols are made of.

use std::fmt;

use aws_lc_rs::{constant_time, digest, hmac, rand};

/// A key for keyed hashes.
pub struct MacKey(hmac::Key);

/// A keyed hash.
pub type Mac = [u8; 32];

impl MacKey {
    /// A key made of these bytes, however many.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// A key that nobody else has.
    #[must_use]
    pub fn random() -> Self {
        // Such hashes are no secret without randomness, and still do not tell what was hashed.
        Self::new(&random::<32>())
    }

    /// The keyed hash of pieces, one behind the other.
    #[must_use]
    pub fn hash(&self, pieces: &[&[u8]]) -> Mac {
        let mut context = hmac::Context::with_key(&self.0);
        for piece in pieces {
            context.update(piece);
        }
        let mut mac = [0; 32];
        let signed = context.sign();
        mac.iter_mut().zip(signed.as_ref()).for_each(|(to, from)| *to = *from);
        mac
    }

    /// True if this is the keyed hash of pieces; how long it takes says nothing about how wrong it is.
    #[must_use]
    pub fn verify(&self, pieces: &[&[u8]], mac: &[u8]) -> bool {
        constant_time::verify_slices_are_equal(&self.hash(pieces), mac).is_ok()
    }
}

/// Bytes that nobody can foresee.
#[must_use]
pub fn random<const BYTES: usize>() -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    // Without randomness no handshake comes this far.
    let _ = rand::fill(&mut bytes);
    bytes
}

/// The SHA-1 of pieces, one behind the other, for protocols that want it and keep no secret by it.
#[must_use]
pub fn sha1(pieces: &[&[u8]]) -> [u8; 20] {
    let mut context = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    for piece in pieces {
        context.update(piece);
    }
    let mut hash = [0; 20];
    hash.iter_mut().zip(context.finish().as_ref()).for_each(|(to, from)| *to = *from);
    hash
}

/// A SHA-256 of pieces that come one after the other: what tells a content from every other.
pub struct Sha256(digest::Context);

impl Default for Sha256 {
    fn default() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }
}

impl Sha256 {
    /// Adds a piece.
    pub fn add(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The first half of the hash.
    #[must_use]
    pub fn half(self) -> [u8; 16] {
        self.0.finish().as_ref().first_chunk().copied().unwrap_or_default()
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("MacKey")
    }
}

#[cfg(test)]
mod tests;
