//! Records in pieces of any size.

use super::*;

fn counted(bytes: &[u8], piece: usize) -> usize {
    let mut counter = RecordCounter::default();
    bytes.chunks(piece).for_each(|chunk| counter.take(chunk));
    counter.handshake_bytes()
}

fn record(content_type: u8, bytes: usize) -> Vec<u8> {
    let length = u16::try_from(bytes).unwrap().to_be_bytes();
    [vec![content_type, 3, 3], length.to_vec(), vec![0; bytes]].concat()
}

#[test]
fn alerts_do_not_count_and_all_else_does() {
    let wire =
        [record(22, 300), record(20, 1), record(23, 53), record(23, 19), record(21, 2)].concat();
    for piece in [1, 2, 3, 7, 400, 1_000] {
        assert_eq!(counted(&wire, piece), 305 + 6 + 58, "{piece}");
    }
    assert_eq!(counted(&[], 1), 0);
    assert_eq!(counted(&record(22, 0), 1), 5);
    assert_eq!(counted(&[22, 3, 3], 1), 0);
}
