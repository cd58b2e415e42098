//! Heads of objects in the disk store: no panic, no more memory than the head has bytes, and what is read can be written.
#![no_main]

use kettle_cache::ObjectHead;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    let _panics = kettle_kernel::bug::panics();
    // As it is, and with the sum made right: else nearly nothing gets past it.
    let mut summed = file.to_vec();
    if summed.len() >= 16 {
        summed[..8].copy_from_slice(b"kettle\x00\x03");
        let bytes = u32::try_from(summed.len()).unwrap_or(u32::MAX);
        summed[8..12].copy_from_slice(&bytes.to_le_bytes());
        let sum = crc32fast::hash(&summed[16..]);
        summed[12..16].copy_from_slice(&sum.to_le_bytes());
    }
    for file in [file, &summed] {
        if let Ok((head, body)) = ObjectHead::decode(file) {
            assert!(body.offset.checked_add(body.bytes).is_some());
            let again = head.encode(body).expect("a head that was read is not too large");
            assert_eq!(ObjectHead::decode(&again), Ok((head, body)));
        }
    }
});
