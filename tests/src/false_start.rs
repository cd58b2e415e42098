//! The bytes that a TLS 1.2 client seals before it has seen the server's Finished (False Start, RFC 7918), which rustls' own
//! never does.

use std::fmt;
use std::sync::Mutex;

use aws_lc_rs::aead::{AES_128_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use rustls::{KeyLog, SupportedCipherSuite};

use crate::suite::Suite;

/// Hears the master secret of one handshake with AES-128-GCM or ChaCha20, and seals with the keys that follow from it.
pub struct EarlyKeys {
    suite: Suite,
    secret: Mutex<Option<Secret>>,
}

struct Secret {
    client_random: Vec<u8>,
    master: Vec<u8>,
}

impl EarlyKeys {
    /// For a handshake with this suite.
    pub fn of(suite: Suite) -> Self {
        Self { suite, secret: Mutex::default() }
    }

    /// The first records behind the client's Finished; `received` is all that came from the server, from its ServerHello on.
    pub fn seal(&self, received: &[u8], records: &[(u8, &[u8])]) -> Vec<u8> {
        let (key, iv) = self.client_keys(server_random(received));
        let has_explicit_nonce = self.suite.explicit_nonce_bytes > 0;
        let mut wire = Vec::new();
        // The Finished was number 0.
        for (sequence, (content_type, content)) in (1_u64..).zip(records) {
            let sequence = sequence.to_be_bytes();
            let mut nonce = [0; 12];
            nonce[..iv.len()].copy_from_slice(&iv);
            for (byte, of_sequence) in nonce[4..].iter_mut().zip(sequence) {
                *byte ^= of_sequence;
            }
            let length = u16::try_from(content.len()).unwrap().to_be_bytes();
            let aad = [&sequence[..], &[*content_type, 3, 3], &length].concat();
            let mut sealed = content.to_vec();
            let nonce = Nonce::assume_unique_for_key(nonce);
            key.seal_in_place_append_tag(nonce, Aad::from(aad), &mut sealed).unwrap();
            let explicit_nonce = if has_explicit_nonce { &sequence[..] } else { &[] };
            let length = u16::try_from(explicit_nonce.len() + sealed.len()).unwrap().to_be_bytes();
            wire.extend([&[*content_type, 3, 3], &length[..], explicit_nonce, &sealed].concat());
        }
        wire
    }

    /// Key and IV of what the client sends (RFC 5246 §6.3).
    fn client_keys(&self, server_random: &[u8]) -> (LessSafeKey, Vec<u8>) {
        let SupportedCipherSuite::Tls12(suite) = self.suite.supported else { unreachable!() };
        let secret = self.secret.lock().unwrap();
        let secret = secret.as_ref().expect("the handshake has got to its keys");
        // The nonce is half in each record, or all here (RFC 7905 §2).
        let (algorithm, iv_bytes) = match self.suite.explicit_nonce_bytes {
            0 => (&CHACHA20_POLY1305, 12),
            _ => (&AES_128_GCM, 4),
        };
        let key_bytes = algorithm.key_len();
        let mut block = vec![0; 2 * (key_bytes + iv_bytes)];
        let randoms = [server_random, &secret.client_random].concat();
        suite.prf_provider.for_secret(&mut block, &secret.master, b"key expansion", &randoms);
        let key = UnboundKey::new(algorithm, &block[..key_bytes]).unwrap();
        (LessSafeKey::new(key), block[2 * key_bytes..][..iv_bytes].to_vec())
    }
}

/// Where a ServerHello that begins the connection has its random: behind the headers of record and message, and the version.
fn server_random(received: &[u8]) -> &[u8] {
    &received[5 + 4 + 2..][..32]
}

impl KeyLog for EarlyKeys {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        assert_eq!(label, "CLIENT_RANDOM", "a handshake with TLS 1.2");
        let secret = Secret { client_random: client_random.to_vec(), master: secret.to_vec() };
        *self.secret.lock().unwrap() = Some(secret);
    }
}

impl fmt::Debug for EarlyKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("EarlyKeys")
    }
}
