//! The code of Appendix B against its own list of codes, and what must not be in a string (§5.2).

use proptest::prelude::*;

use super::*;

/// The codes of the bytes as Appendix B lists them, aligned to the right.
const CODES: [u32; 256] = [
    0x1ff8, 0x7fffd8, 0xfffffe2, 0xfffffe3, 0xfffffe4, 0xfffffe5, 0xfffffe6, 0xfffffe7, 0xfffffe8,
    0xffffea, 0x3ffffffc, 0xfffffe9, 0xfffffea, 0x3ffffffd, 0xfffffeb, 0xfffffec, 0xfffffed,
    0xfffffee, 0xfffffef, 0xffffff0, 0xffffff1, 0xffffff2, 0x3ffffffe, 0xffffff3, 0xffffff4,
    0xffffff5, 0xffffff6, 0xffffff7, 0xffffff8, 0xffffff9, 0xffffffa, 0xffffffb, 0x14, 0x3f8,
    0x3f9, 0xffa, 0x1ff9, 0x15, 0xf8, 0x7fa, 0x3fa, 0x3fb, 0xf9, 0x7fb, 0xfa, 0x16, 0x17, 0x18,
    0x0, 0x1, 0x2, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x5c, 0xfb, 0x7ffc, 0x20, 0xffb,
    0x3fc, 0x1ffa, 0x21, 0x5d, 0x5e, 0x5f, 0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68,
    0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f, 0x70, 0x71, 0x72, 0xfc, 0x73, 0xfd, 0x1ffb, 0x7fff0,
    0x1ffc, 0x3ffc, 0x22, 0x7ffd, 0x3, 0x23, 0x4, 0x24, 0x5, 0x25, 0x26, 0x27, 0x6, 0x74, 0x75,
    0x28, 0x29, 0x2a, 0x7, 0x2b, 0x76, 0x2c, 0x8, 0x9, 0x2d, 0x77, 0x78, 0x79, 0x7a, 0x7b, 0x7ffe,
    0x7fc, 0x3ffd, 0x1ffd, 0xffffffc, 0xfffe6, 0x3fffd2, 0xfffe7, 0xfffe8, 0x3fffd3, 0x3fffd4,
    0x3fffd5, 0x7fffd9, 0x3fffd6, 0x7fffda, 0x7fffdb, 0x7fffdc, 0x7fffdd, 0x7fffde, 0xffffeb,
    0x7fffdf, 0xffffec, 0xffffed, 0x3fffd7, 0x7fffe0, 0xffffee, 0x7fffe1, 0x7fffe2, 0x7fffe3,
    0x7fffe4, 0x1fffdc, 0x3fffd8, 0x7fffe5, 0x3fffd9, 0x7fffe6, 0x7fffe7, 0xffffef, 0x3fffda,
    0x1fffdd, 0xfffe9, 0x3fffdb, 0x3fffdc, 0x7fffe8, 0x7fffe9, 0x1fffde, 0x7fffea, 0x3fffdd,
    0x3fffde, 0xfffff0, 0x1fffdf, 0x3fffdf, 0x7fffeb, 0x7fffec, 0x1fffe0, 0x1fffe1, 0x3fffe0,
    0x1fffe2, 0x7fffed, 0x3fffe1, 0x7fffee, 0x7fffef, 0xfffea, 0x3fffe2, 0x3fffe3, 0x3fffe4,
    0x7ffff0, 0x3fffe5, 0x3fffe6, 0x7ffff1, 0x3ffffe0, 0x3ffffe1, 0xfffeb, 0x7fff1, 0x3fffe7,
    0x7ffff2, 0x3fffe8, 0x1ffffec, 0x3ffffe2, 0x3ffffe3, 0x3ffffe4, 0x7ffffde, 0x7ffffdf,
    0x3ffffe5, 0xfffff1, 0x1ffffed, 0x7fff2, 0x1fffe3, 0x3ffffe6, 0x7ffffe0, 0x7ffffe1, 0x3ffffe7,
    0x7ffffe2, 0xfffff2, 0x1fffe4, 0x1fffe5, 0x3ffffe8, 0x3ffffe9, 0xffffffd, 0x7ffffe3, 0x7ffffe4,
    0x7ffffe5, 0xfffec, 0xfffff3, 0xfffed, 0x1fffe6, 0x3fffe9, 0x1fffe7, 0x1fffe8, 0x7ffff3,
    0x3fffea, 0x3fffeb, 0x1ffffee, 0x1ffffef, 0xfffff4, 0xfffff5, 0x3ffffea, 0x7ffff4, 0x3ffffeb,
    0x7ffffe6, 0x3ffffec, 0x3ffffed, 0x7ffffe7, 0x7ffffe8, 0x7ffffe9, 0x7ffffea, 0x7ffffeb,
    0xffffffe, 0x7ffffec, 0x7ffffed, 0x7ffffee, 0x7ffffef, 0x7fffff0, 0x3ffffee,
];

const EOS: u32 = 0x3fff_ffff;

/// Codes and their lengths one behind the other, padded with ones.
fn join(codes: impl Iterator<Item = (u32, u8)>) -> Vec<u8> {
    let mut joined = Vec::new();
    let mut window = 0_u64;
    let mut window_bits = 0;
    for (code, bits) in codes {
        window = window << bits | u64::from(code);
        window_bits += bits;
        while window_bits >= 8 {
            window_bits -= 8;
            joined.push((window >> window_bits) as u8);
        }
    }
    if window_bits > 0 {
        joined.push((window << (8 - window_bits)) as u8 | 0xff >> window_bits);
    }
    joined
}

fn encode(text: &[u8]) -> Vec<u8> {
    join(text.iter().map(|byte| (CODES[usize::from(*byte)], CODE_BITS[usize::from(*byte)])))
}

fn decoded(coded: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    decode(coded, &mut text).map(|()| text)
}

#[test]
fn every_byte_has_the_code_of_the_appendix() {
    for byte in 0..=255 {
        assert_eq!(decoded(&encode(&[byte])), Some(vec![byte]), "{byte}");
        assert_eq!(decoded(&encode(&[byte; 40])), Some(vec![byte; 40]), "{byte}");
    }
}

/// The others are searched for.
#[test]
fn codes_of_up_to_a_byte_are_found_at_once() {
    let found = SHORT_CODES.iter().filter(|(_, code_bits)| *code_bits > 0).count();
    // 10 codes of five bits, 26 of six, 32 of seven, 6 of eight.
    assert_eq!(found, 10 * 8 + 26 * 4 + 32 * 2 + 6);
}

#[test]
fn nothing_stands_for_nothing() {
    assert_eq!(decoded(b""), Some(Vec::new()));
}

#[test]
fn text_is_appended() {
    let mut text = b"www.".to_vec();
    decode(&encode(b"example.com"), &mut text).unwrap();
    assert_eq!(text, b"www.example.com");
}

#[test]
fn padding_of_a_byte_or_more_is_refused() {
    // Eight letters of five bits, so that the padding is whole bytes.
    let coded = encode(b"accessio");
    assert_eq!(decoded(&coded), Some(b"accessio".to_vec()));
    for padding in 1..8 {
        let padded = [coded.as_slice(), &vec![0xff; padding]].concat();
        assert_eq!(decoded(&padded), None, "{padding}");
    }
    // Seven bits are allowed, eight are not, wherever a byte begins.
    for length in 1..8 {
        let coded = encode(&vec![b'a'; length]);
        assert!(decoded(&coded).is_some(), "{length}");
        assert_eq!(decoded(&[coded.as_slice(), &[0xff]].concat()), None, "{length}");
    }
}

#[test]
fn padding_that_is_not_ones_is_refused() {
    // The five bits of `a` leave three.
    assert_eq!(decoded(&[0b0001_1111]), Some(b"a".to_vec()));
    for padding in 0..7 {
        assert_eq!(decoded(&[0b0001_1000 | padding]), None, "{padding}");
    }
    // The six bits of a space leave two.
    for padding in 0..3 {
        assert_eq!(decoded(&[0b0101_0000 | padding]), None, "{padding}");
    }
}

#[test]
fn the_code_of_eos_is_refused() {
    let of = |byte: u8| (CODES[usize::from(byte)], CODE_BITS[usize::from(byte)]);
    assert_eq!(decoded(&join([(EOS, 30)].into_iter())), None);
    assert_eq!(decoded(&join([of(b'a'), (EOS, 30)].into_iter())), None);
    assert_eq!(decoded(&join([(EOS, 30), of(b'a')].into_iter())), None);
    assert_eq!(decoded(&join([of(b'a'), (EOS, 30), of(b'a'), of(b'a')].into_iter())), None);
}

#[test]
fn a_code_that_is_cut_is_refused() {
    for byte in (0..=255).filter(|byte| CODE_BITS[usize::from(*byte)] > 8) {
        let coded = encode(&[byte]);
        let cut = &coded[..coded.len() - 1];
        assert!(decoded(cut).is_none_or(|text| text != [byte]), "{byte}");
    }
}

proptest! {
    #[test]
    fn any_text_comes_back(text in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(decoded(&encode(&text)), Some(text));
    }

    /// No two strings stand for the same text, so what is read can only have been written one way.
    #[test]
    fn any_bytes_are_refused_or_come_back(coded in proptest::collection::vec(any::<u8>(), 0..60)) {
        if let Some(text) = decoded(&coded) {
            prop_assert!(text.len() * CODE_BITS_MIN <= coded.len() * 8);
            prop_assert_eq!(encode(&text), coded);
        }
    }
}
