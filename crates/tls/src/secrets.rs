//! The traffic secrets of a TLS 1.3 connection, and the keys that follow from them (RFC 8446 §7.1 to §7.3); the master
//! secret of a TLS 1.2 one.
//!
//! rustls tells them through its key log during the handshake, and is not needed for keys afterwards.

use rustls::crypto::tls13::{HkdfExpander, OkmBlock};
use rustls::{Tls12CipherSuite, Tls13CipherSuite};
use zeroize::Zeroizing;

use crate::records::{IV_BYTES, Keys, ProtectionError};

/// One direction's `[sender]_application_traffic_secret_N` or `[sender]_handshake_traffic_secret`.
pub(crate) struct TrafficSecret {
    suite: &'static Tls13CipherSuite,
    secret: Secret,
}

/// Both directions' `[sender]_application_traffic_secret_N`, seen from here.
pub(crate) struct TrafficSecrets {
    pub(crate) tx: TrafficSecret,
    pub(crate) rx: TrafficSecret,
}

impl TrafficSecret {
    pub(crate) fn new(suite: &'static Tls13CipherSuite, secret: Secret) -> Self {
        Self { suite, secret }
    }

    /// The length of the suite's hash, and so of a Finished (RFC 8446 §4.4.4).
    pub(crate) fn hash_bytes(&self) -> usize {
        self.secret.0.len()
    }

    /// The keys of the first record under this secret and those behind it.
    pub(crate) fn keys(&self) -> Result<Keys, ProtectionError> {
        let mut key = Zeroizing::new(vec![0; self.suite.aead_alg.key_len()]);
        let mut iv = [0; IV_BYTES];
        self.expand(b"key", &mut key)?;
        self.expand(b"iv", &mut iv)?;
        Keys::of_suite(self.suite.common.suite, key, iv, 0)
    }

    /// Goes on to the secret behind a KeyUpdate (RFC 8446 §7.2), and returns its keys.
    pub(crate) fn next(&mut self) -> Result<Keys, ProtectionError> {
        let mut next = self.secret.clone();
        self.expand(b"traffic upd", &mut next.0)?;
        self.secret = next;
        self.keys()
    }

    /// HKDF-Expand-Label with an empty context (RFC 8446 §7.1).
    fn expand(&self, label: &[u8], output: &mut [u8]) -> Result<(), ProtectionError> {
        let expander = self.expander();
        let length = u16::try_from(output.len()).map_err(|_| ProtectionError)?.to_be_bytes();
        let label_bytes =
            [u8::try_from(LABEL_PREFIX.len() + label.len()).map_err(|_| ProtectionError)?];
        let info: [&[u8]; 5] = [&length, &label_bytes, LABEL_PREFIX, label, &[0]];
        expander.expand_slice(&info, output).map_err(|_| ProtectionError)
    }

    fn expander(&self) -> Box<dyn HkdfExpander> {
        self.suite.hkdf_provider.expander_for_okm(&OkmBlock::new(&self.secret.0))
    }
}

/// The secret from which the keys of a TLS 1.2 connection come, with the randoms of its two sides (RFC 5246 §6.3).
pub(crate) struct MasterSecret {
    secret: Secret,
    client_random: [u8; RANDOM_BYTES],
}

impl MasterSecret {
    pub(crate) fn new(client_random: &[u8], secret: &[u8]) -> Option<Self> {
        let client_random = client_random.try_into().ok()?;
        Some(Self { secret: Secret::copy_of(secret), client_random })
    }

    /// The keys of what the server sends behind its Finished, the one record before under the same keys.
    pub(crate) fn server_keys(
        &self,
        suite: &Tls12CipherSuite,
        server_random: [u8; RANDOM_BYTES],
    ) -> Result<Keys, ProtectionError> {
        let shape = suite.aead_alg.key_block_shape();
        let key_bytes = shape.enc_key_len;
        let iv_bytes = shape.fixed_iv_len;
        let block_bytes = 2 * (key_bytes + iv_bytes) + shape.explicit_nonce_len;
        let mut block = Zeroizing::new(vec![0; block_bytes]);
        let randoms = [server_random, self.client_random].concat();
        suite.prf_provider.for_secret(&mut block, &self.secret.0, b"key expansion", &randoms);
        // Two keys, two IVs, the client's first, and what rustls counts explicit nonces from.
        let key = block.get(key_bytes..2 * key_bytes).ok_or(ProtectionError)?;
        let iv = block.get(2 * key_bytes + iv_bytes..).ok_or(ProtectionError)?;
        let iv = iv.try_into().map_err(|_| ProtectionError)?;
        Keys::of_suite(suite.common.suite, Zeroizing::new(key.to_vec()), iv, 1)
    }
}

/// The bytes of a secret: as many as the suite's hash has. Never shown, zeroed when dropped; on the heap, since what is
/// moved leaves its bytes behind.
#[derive(Clone)]
pub(crate) struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    pub(crate) fn copy_of(secret: &[u8]) -> Self {
        Self(Zeroizing::new(secret.to_vec()))
    }
}

/// `Random` (RFC 5246 §7.4.1.2).
pub(crate) const RANDOM_BYTES: usize = 32;
const LABEL_PREFIX: &[u8] = b"tls13 ";

#[cfg(test)]
mod tests;
