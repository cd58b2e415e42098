//! A session that a client of [`raw_handshake`](crate::raw_handshake) resumes, with a key exchange (RFC 8446 §2.2).

use aws_lc_rs::hkdf;

use crate::key_schedule::{early_secret, expand_label, hash, verify_data};
use crate::raw_session::{RawSession, Received};
use crate::record::HANDSHAKE;

/// The ticket of a server, and the key that goes with it.
#[derive(Clone)]
pub struct RawTicket {
    identity: Vec<u8>,
    age_add: [u8; 4],
    key: Vec<u8>,
}

impl RawSession {
    /// The ticket that comes next.
    #[must_use]
    pub fn ticket(&mut self) -> RawTicket {
        let Received::Record(HANDSHAKE, message) = self.receive() else { panic!("no ticket") };
        // Type, length and lifetime.
        let [4, _, _, _, _, _, _, _, rest @ ..] = message.as_slice() else {
            panic!("no ticket: {message:?}")
        };
        let (age_add, rest) = rest.split_first_chunk().unwrap();
        let (nonce, rest) = rest[1..].split_at(rest[0].into());
        let (length, rest) = rest.split_first_chunk().unwrap();
        let identity = rest[..u16::from_be_bytes(*length).into()].to_vec();
        let secret = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, &self.resumption);
        let key = expand_label(&secret, "resumption", nonce, 32);
        RawTicket { identity, age_add: *age_add, key }
    }
}

impl RawTicket {
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// The extension, with room for its binder. The ticket has just come: its age is zero.
    pub(crate) fn offer(&self) -> Vec<u8> {
        let [identity_length, identities_length] =
            [0, 6].map(|more| u16::try_from(self.identity.len() + more).unwrap().to_be_bytes());
        let parts = [&identities_length[..], &identity_length, &self.identity, &self.age_add];
        [&parts.concat(), &BINDERS_FRONT[..], &[0; 32]].concat()
    }

    /// Fills in the binder, which ends the ClientHello.
    pub(crate) fn bind(&self, hello: &mut Vec<u8>) {
        let binder_at = hello.len() - 32;
        let so_far = hash(&hello[..binder_at - BINDERS_FRONT.len()]);
        let key = expand_label(&early_secret(&self.key), "res binder", &hash(&[]), 32);
        hello.truncate(binder_at);
        hello.extend(verify_data(&key, &so_far));
    }
}

/// One binder of 32 bytes.
const BINDERS_FRONT: [u8; 3] = [0, 33, 32];
