//! What a TLS 1.2 client seals before it has seen the server's Finished (False Start, RFC 7918), which rustls' own never does.

use std::fmt;
use std::sync::Mutex;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::{KeyLog, SupportedCipherSuite};

use crate::suite::TLS12_AES_128;

/// Hears the master secret of one handshake with [`TLS12_AES_128`], and seals with the keys that follow from it.
#[derive(Default)]
pub struct EarlyKeys(Mutex<Option<Secret>>);

struct Secret {
    client_random: Vec<u8>,
    master: Vec<u8>,
}

impl EarlyKeys {
    /// The first record behind the client's Finished, header included; `received` is all that came from the server, from
    /// its ServerHello on.
    #[must_use]
    pub fn seal(&self, received: &[u8], content_type: u8, content: &[u8]) -> Vec<u8> {
        let (key, iv) = self.client_keys(server_random(received));
        let mut nonce = [0; 12];
        nonce[..4].copy_from_slice(&iv);
        nonce[4..].copy_from_slice(&SEQUENCE);
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        let aad = [&SEQUENCE[..], &[content_type, 3, 3], &length].concat();
        let mut sealed = content.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(nonce, Aad::from(aad), &mut sealed).unwrap();
        let body = [&SEQUENCE[..], &sealed].concat();
        let length = u16::try_from(body.len()).unwrap().to_be_bytes();
        [&[content_type, 3, 3], &length[..], &body].concat()
    }

    /// Key and IV of what the client sends (RFC 5246 §6.3).
    fn client_keys(&self, server_random: &[u8]) -> (LessSafeKey, [u8; 4]) {
        let SupportedCipherSuite::Tls12(suite) = TLS12_AES_128.supported else { unreachable!() };
        let secret = self.0.lock().unwrap();
        let secret = secret.as_ref().expect("the handshake has got to its keys");
        let mut block = [0; 2 * (KEY_BYTES + 4)];
        let randoms = [server_random, &secret.client_random].concat();
        suite.prf_provider.for_secret(&mut block, &secret.master, b"key expansion", &randoms);
        let key = UnboundKey::new(&AES_128_GCM, &block[..KEY_BYTES]).unwrap();
        (LessSafeKey::new(key), block[2 * KEY_BYTES..][..4].try_into().unwrap())
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
        *self.0.lock().unwrap() = Some(secret);
    }
}

impl fmt::Debug for EarlyKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("EarlyKeys")
    }
}

const KEY_BYTES: usize = 16;

/// The Finished was number 0.
const SEQUENCE: [u8; 8] = [0, 0, 0, 0, 0, 0, 0, 1];
