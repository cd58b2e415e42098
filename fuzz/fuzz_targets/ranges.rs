//! Range fields: spans lie within the length and apart, and asking for them again gives the same
//! ones in the same order.

#![no_main]

use kettle_http::range::{ByteRange, RANGES_MAX, RangeOutcome, parse_ranges, write_content_range};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((length, value)) = data.split_first_chunk::<8>() else {
        return;
    };
    let length = u64::from_le_bytes(*length);
    let RangeOutcome::Ranges(set) = parse_ranges(value, length) else {
        return;
    };
    assert!((1..=RANGES_MAX).contains(&set.len()));
    for (index, span) in set.iter().enumerate() {
        assert!(span.bytes > 0);
        assert!(span.start.checked_add(span.bytes).is_some_and(|end| end <= length));
        let mut others = set.iter().skip(index + 1);
        assert!(others.all(|other| other.start > span.end() || other.end() < span.start));
    }
    assert_same_alone(&set, length);
});

/// Asserts that the ranges of an answer, asked for again in so many words, give the same answer.
fn assert_same_alone(set: &[ByteRange], length: u64) {
    let mut value = b"bytes=".to_vec();
    for (index, span) in set.iter().enumerate() {
        let mut written = Vec::new();
        write_content_range(&mut written, *span, length);
        let slash = written.iter().position(|byte| *byte == b'/').unwrap();
        if index > 0 {
            value.push(b',');
        }
        value.extend_from_slice(&written[b"bytes ".len()..slash]);
    }
    match parse_ranges(&value, length) {
        RangeOutcome::Ranges(again) => assert_eq!(&*again, set),
        other => panic!("{other:?}"),
    }
}
