//! TLS 1.2 with AES-GCM sends part of each record's nonce: none may come twice under one key.

use std::collections::BTreeSet;

use kettle_tests::record::{CHANGE_CIPHER_SPEC, Record};
use kettle_tests::suite::TLS12_AES_256;

use super::*;

#[test]
fn no_explicit_nonce_is_sent_twice() {
    let setup = Setup::paths(paths_here()).sizes(&[100, 70_000, 400_000]).without_memory();
    let kettle = Kettle::start(setup);
    for path in paths_here() {
        for suite in [TLS12_AES_128, TLS12_AES_256] {
            // The move comes after as many records as there are small responses, and after none.
            for small_responses in [0, 1, 2, 40] {
                let mut client = kettle.connect_by(path, suite);
                for _ in 0..small_responses {
                    client.get("/100");
                }
                for target in ["/70000", "/100", "/400000", "/100"] {
                    client.get(target);
                }
                client.close_sending();
                client.end();
                let nonces: Vec<[u8; 8]> =
                    protected(client.records()).map(explicit_nonce).collect();
                let different: BTreeSet<_> = nonces.iter().collect();
                assert!(nonces.len() > 30, "{path}");
                assert_eq!(different.len(), nonces.len(), "{path}: a nonce was sent twice");
            }
        }
    }
}

/// The records that the server protected: its Finished and all that follows.
fn protected(records: Vec<Record>) -> impl Iterator<Item = Record> {
    records.into_iter().skip_while(|record| record.content_type != CHANGE_CIPHER_SPEC).skip(1)
}

fn explicit_nonce(record: Record) -> [u8; 8] {
    *record.body.first_chunk().unwrap()
}
