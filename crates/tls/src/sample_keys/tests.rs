//! Sample keys work like those of a handshake.

use super::*;
use crate::records::{ContentType, RecordOpener, RecordSealer};

fn sealed(sealer: &mut RecordSealer) -> Vec<u8> {
    let mut record = vec![0; sealer.prefix_bytes()];
    record.extend_from_slice(b"hello");
    record.resize(record.len() + sealer.suffix_bytes(), 0);
    sealer.seal(ContentType::ApplicationData, &mut record).expect("a record");
    record
}

#[test]
fn sample_keys_seal_and_go_to_the_kernel_for_every_suite() {
    for version in Version::ALL {
        for cipher in Cipher::ALL {
            let keys = keys_of(version, cipher, [7; SECRET_BYTES]).expect("keys");
            let mut opener = RecordOpener::new(&keys).expect("an opener");
            let mut sealer = RecordSealer::new(keys).expect("a sealer");
            let mut record = sealed(&mut sealer);

            let opened = opener.open(&mut record).expect("a plaintext");
            assert_eq!(&record[opened.plaintext], b"hello");
            assert!(sealer.into_kernel_keys().is_some());
        }
    }
}
