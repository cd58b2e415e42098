//! File contents that are never the same at two places, and their comparison.

/// `bytes` bytes in which every aligned group of eight is different from all others.
pub fn content(bytes: usize) -> Vec<u8> {
    let mut content = Vec::with_capacity(bytes + 8);
    let mut position: u64 = 0;
    while content.len() < bytes {
        // An odd factor is a bijection on 64 bits, and the high bits look like noise.
        let word = (position + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        content.extend_from_slice(&word.to_be_bytes());
        position += 1;
    }
    content.truncate(bytes);
    content
}

/// Compares contents too long to print.
#[track_caller]
pub fn assert_same(received: &[u8], expected: &[u8], what: &str) {
    let first_difference = received.iter().zip(expected).position(|(one, other)| one != other);
    assert!(
        received == expected,
        "{what}: received {} bytes, expected {}, first difference at {first_difference:?}",
        received.len(),
        expected.len(),
    );
}

/// Sizes around the borders of records, of the crossover, and well beyond them.
pub const SIZES: [usize; 9] = [0, 1, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 1 << 20];

/// More than Linux keeps of a connection by default (`tcp_wmem`: 4 MiB) for a client that reads slowly: whoever sends this
/// much has to wait.
pub const LARGE: usize = 6 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_piece_of_the_content_can_be_taken_for_another() {
        let content = content(80_003);
        let words: std::collections::BTreeSet<_> = content.chunks_exact(8).collect();
        assert_eq!((content.len(), words.len()), (80_003, 10_000));
    }

    #[test]
    #[should_panic(expected = "a body: received 9 bytes, expected 10, first difference at Some(8)")]
    fn a_difference_is_told_by_its_place() {
        let mut other = content(9);
        other[8] ^= 1;
        assert_same(&other, &content(10), "a body");
    }
}
