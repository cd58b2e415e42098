use kettle_kernel::ktls::Version;
use rustls::CipherSuite;

use super::TrafficSecrets;
use crate::buffers::Queue;
use crate::records::{ContentType, Keys, RecordOpener, RecordSealer};
use crate::stream::tests::handshake_in_memory;

#[test]
fn twenty_key_updates_give_the_keys_that_rustls_gives_the_client() {
    for suite in [
        CipherSuite::TLS13_AES_128_GCM_SHA256,
        CipherSuite::TLS13_AES_256_GCM_SHA384,
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    ] {
        let (established, _, mut client) = handshake_in_memory(suite);
        let TrafficSecrets { mut tx, mut rx } = established.secrets.expect("TLS 1.3");
        for _ in 0..20 {
            let theirs = |(sequence, secrets)| Keys::new(Version::Tls13, sequence, &secrets);
            let sent = tx.next().expect("a key");
            assert_same(sent, &theirs(client.update_rx_secret().expect("a key")).expect("a suite"));
            let received = theirs(client.update_tx_secret().expect("a key")).expect("a suite");
            assert_same(received, &rx.next().expect("a key"));
        }
    }
}

/// Checks that bytes sealed with the one open with the other.
fn assert_same(tx: Keys, rx: &Keys) {
    let mut sealer = RecordSealer::new(tx).expect("a suite");
    let mut opener = RecordOpener::new(rx).expect("a suite");
    let mut wire = Queue::default();
    wire.append_sealed(&mut sealer, ContentType::ApplicationData, b"data").expect("a record");
    let opened = opener.open(wire.filled_mut()).expect("the same key");
    assert_eq!(wire.filled().get(opened.plaintext), Some(b"data".as_slice()));
}
