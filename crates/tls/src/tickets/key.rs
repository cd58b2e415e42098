//! One ticket key: seals session states into tickets and opens them.
//!
//! A ticket is the key's name, a nonce, the sealed state and the tag; the name and the audience are
//! authenticated with it. AES-256-GCM-SIV with random nonces stays safe for any number of tickets a period
//! can see (RFC 8452 §9), with no counter that all workers would have to share.

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use super::audience::{AUDIENCE_BYTES, Audience};
use crate::rustls_callbacks::KeyName;

pub(super) struct TicketKey {
    name: KeyName,
    key: RandomizedNonceKey,
}

impl TicketKey {
    pub(super) fn generate() -> Option<Self> {
        let random = SystemRandom::new();
        let mut name = KeyName::default();
        random.fill(&mut name).ok()?;
        let mut secret = Zeroizing::new([0; KEY_BYTES]);
        random.fill(secret.as_mut()).ok()?;
        Self::new(name, &secret)
    }

    pub(super) fn new(name: KeyName, secret: &[u8; KEY_BYTES]) -> Option<Self> {
        let key = RandomizedNonceKey::new(&AES_256_GCM_SIV, secret).ok()?;
        Some(Self { name, key })
    }

    pub(super) fn name(&self) -> &KeyName {
        &self.name
    }

    pub(super) fn seal(&self, plain: &[u8], audience: Audience) -> Option<Vec<u8>> {
        let mut sealed = plain.to_vec();
        let aad = self.authenticated_with(audience);
        let nonce = self.key.seal_in_place_append_tag(aad, &mut sealed).ok()?;
        Some([&self.name, nonce.as_ref().as_slice(), &sealed].concat())
    }

    pub(super) fn open(&self, ticket: &[u8], audience: Audience) -> Option<Vec<u8>> {
        let rest = ticket.strip_prefix(&self.name)?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let mut buffer = sealed.to_vec();
        let aad = self.authenticated_with(audience);
        let bytes = self.key.open_in_place(nonce, aad, &mut buffer).ok()?.len();
        buffer.truncate(bytes);
        Some(buffer)
    }

    fn authenticated_with(&self, audience: Audience) -> Aad<[u8; NAME_BYTES + AUDIENCE_BYTES]> {
        let mut both = [0; NAME_BYTES + AUDIENCE_BYTES];
        let (name, rest) = both.split_at_mut(NAME_BYTES);
        name.copy_from_slice(&self.name);
        rest.copy_from_slice(audience.as_bytes());
        Aad::from(both)
    }
}

pub(super) const KEY_BYTES: usize = 32;
const NAME_BYTES: usize = size_of::<KeyName>();
