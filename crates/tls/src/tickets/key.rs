//! One ticket key: seals session states into tickets and opens them.
//!
//! A ticket is the key's name, a nonce, the sealed state and the tag; the name is authenticated
//! with it. AES-256-GCM-SIV with random nonces stays safe for any number of tickets a period
//! can see (RFC 8452 §9), with no counter that all workers would have to share.

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use crate::observed::KeyName;

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
        let key = RandomizedNonceKey::new(&AES_256_GCM_SIV, secret.as_ref()).ok()?;
        Some(Self { name, key })
    }

    pub(super) fn name(&self) -> &KeyName {
        &self.name
    }

    pub(super) fn seal(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = plain.to_vec();
        let nonce = self.key.seal_in_place_append_tag(Aad::from(self.name), &mut sealed).ok()?;
        Some([&self.name, nonce.as_ref().as_slice(), &sealed].concat())
    }

    pub(super) fn open(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        if ticket.len() > TICKET_BYTES_MAX {
            return None;
        }
        let rest = ticket.strip_prefix(&self.name)?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let mut buffer = sealed.to_vec();
        let bytes = self.key.open_in_place(nonce, Aad::from(self.name), &mut buffer).ok()?.len();
        buffer.truncate(bytes);
        Some(buffer)
    }
}

const KEY_BYTES: usize = 32;
/// A state without client certificates takes a few hundred bytes, at most a server name and an
/// ALPN name more. Longer tickets are not ours.
const TICKET_BYTES_MAX: usize = 4096;
