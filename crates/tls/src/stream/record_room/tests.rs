//! Bytes sealed where they were put: sizes around a record, room not used up, a key that ends in between.

use proptest::prelude::*;

use super::*;
use crate::records::{AES_GCM_RECORDS_MAX, RecordOpener, whole_record_bytes};
use crate::sample_keys::{SECRET_BYTES, keys_of};
use crate::{Cipher, Version};

const SUITES: [(Version, Cipher); 3] = [
    (Version::Tls13, Cipher::Aes128Gcm),
    (Version::Tls12, Cipher::Aes128Gcm),
    (Version::Tls12, Cipher::Chacha20Poly1305),
];

fn sealer((version, cipher): (Version, Cipher)) -> RecordSealer {
    RecordSealer::new(keys_of(version, cipher, [7; SECRET_BYTES]).expect("a suite"))
        .expect("a suite")
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|position| (position * 31 + position / 256) as u8).collect()
}

/// The plaintext of each record in the queue.
fn opened(suite: (Version, Cipher), queue: &mut Queue) -> Vec<Vec<u8>> {
    let keys = keys_of(suite.0, suite.1, [7; SECRET_BYTES]).expect("a suite");
    let mut opener = RecordOpener::new(&keys).expect("a suite");
    let mut records = Vec::new();
    let mut wire = queue.filled_mut();
    while let Some(bytes) = whole_record_bytes(wire).expect("a record") {
        let (record, rest) = wire.split_at_mut(bytes);
        let opened = opener.open(record).expect("sealed");
        records.push(record[opened.plaintext].to_vec());
        wire = rest;
    }
    assert!(wire.is_empty(), "half a record");
    records
}

/// Puts `bytes` into the room as far as it goes; returns how many.
fn put(room: &mut RecordRoom<'_>, bytes: &[u8]) -> usize {
    let mut rest = bytes;
    room.lend(|slices| {
        for slice in slices {
            let (now, later) = rest.split_at(rest.len().min(slice.len()));
            slice[..now.len()].copy_from_slice(now);
            rest = later;
        }
    });
    bytes.len() - rest.len()
}

/// Asks for `wanted` bytes behind `head`, and commits `committed` of them.
fn sealed(suite: (Version, Cipher), head: &[u8], wanted: usize, committed: usize) -> Vec<Vec<u8>> {
    let mut sealer = sealer(suite);
    let mut queue = Queue::default();
    let mut room = RecordRoom::new(Some(&mut sealer), &mut queue, head, wanted);
    let room_bytes = room.bytes();
    assert_eq!(put(&mut room, &pattern(wanted)), room_bytes.min(wanted));
    room.commit(committed).expect("sealed");
    opened(suite, &mut queue)
}

#[test]
fn sizes_around_a_record_make_as_few_records_as_possible() {
    for suite in SUITES {
        for bytes in [0, 1, 16_383, 16_384, 16_385, 32_767, 32_768] {
            let records = sealed(suite, &[], bytes, bytes);
            assert_eq!(records.concat(), pattern(bytes), "{suite:?} {bytes}");
            assert_eq!(records.len(), bytes.div_ceil(PLAINTEXT_BYTES_MAX));
        }
    }
}

#[test]
fn there_is_room_for_as_many_records_as_a_write_has_and_no_more() {
    let mut sealer = sealer(SUITES[0]);
    let mut queue = Queue::default();
    let room = RecordRoom::new(Some(&mut sealer), &mut queue, b"head", usize::MAX);
    assert_eq!(room.bytes(), 8 * PLAINTEXT_BYTES_MAX - 4);
}

#[test]
fn a_head_of_any_length_leaves_room_behind_it() {
    for head_bytes in [16_384, 32_767, 32_768, 65_536] {
        let head = vec![b'h'; head_bytes];
        let records = sealed(SUITES[0], &head, 10, 10);
        assert_eq!(records.concat(), [&head[..], &pattern(10)].concat(), "{head_bytes}");
    }
}

#[test]
fn a_commit_of_part_leaves_the_rest_out() {
    for (wanted, committed) in [(10, 3), (16_385, 16_384), (32_768, 16_384), (32_768, 16_385)] {
        let records = sealed(SUITES[0], b"head", wanted, committed);
        let expected = [b"head", &pattern(wanted)[..committed]].concat();
        assert_eq!(records.concat(), expected, "{committed} of {wanted}");
        assert_eq!(records.len(), expected.len().div_ceil(PLAINTEXT_BYTES_MAX));
    }
}

#[test]
fn a_commit_of_nothing_seals_the_head_alone_and_without_one_no_record() {
    assert_eq!(sealed(SUITES[0], b"head", 100, 0), [b"head"]);
    assert!(sealed(SUITES[0], b"", 100, 0).is_empty());
}

#[test]
fn a_commit_of_more_than_there_is_room_for_is_one_of_all() {
    assert_eq!(sealed(SUITES[0], b"", 5, usize::MAX), [pattern(5)]);
}

#[test]
fn room_that_is_not_committed_leaves_nothing_behind() {
    let mut sealer = sealer(SUITES[0]);
    let mut queue = Queue::default();
    queue.append(b"before");
    let _ = RecordRoom::new(Some(&mut sealer), &mut queue, b"head", 40_000);
    assert_eq!((queue.filled(), sealer.sequence()), (&b"before"[..], 0));
}

#[test]
fn room_that_is_not_used_keeps_no_buffer() {
    let mut sealer = sealer(SUITES[0]);
    let mut queue = Queue::default();
    RecordRoom::new(Some(&mut sealer), &mut queue, b"", 16_384).commit(0).expect("nothing");
    assert_eq!(queue.held_bytes(), 0);
}

#[test]
fn a_key_that_ends_between_two_records_seals_neither() {
    let mut sealer = sealer(SUITES[1]);
    let mut queue = Queue::default();
    sealer.skip_records(AES_GCM_RECORDS_MAX - 1);
    queue.append(b"before");
    let mut room = RecordRoom::new(Some(&mut sealer), &mut queue, b"", 20_000);
    assert_eq!(put(&mut room, &pattern(20_000)), 20_000);
    let refused = room.commit(20_000);
    assert!(matches!(refused, Err(StreamError::KeyExhausted)), "{refused:?}");
    assert_eq!(queue.filled(), b"before");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_is_committed_is_what_arrives(
        suite in 0..SUITES.len(),
        head in 0..70_000_usize,
        wanted in 0..70_000_usize,
        part in 0.0..=1.0_f64,
    ) {
        let _panics = kettle_kernel::bug::panics();
        let head = vec![b'h'; head];
        let in_last_record = head.len() % PLAINTEXT_BYTES_MAX;
        let room_bytes = wanted.min(2 * PLAINTEXT_BYTES_MAX - in_last_record);
        let committed = (room_bytes as f64 * part) as usize;
        let records = sealed(SUITES[suite], &head, wanted, committed);
        let expected = [&head[..], &pattern(wanted)[..committed]].concat();
        prop_assert!(records.concat() == expected);
        prop_assert_eq!(records.len(), expected.len().div_ceil(PLAINTEXT_BYTES_MAX));
    }
}
