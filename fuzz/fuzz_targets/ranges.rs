//! Range fields: spans lie within the length, in order and apart, and never cover a byte nobody
//! asked for.

#![no_main]

use kettle_http::range::{RANGES_MAX, RangeOutcome, Span, parse_ranges, write_content_range};
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
    let mut end_before = None;
    for span in set.iter() {
        assert!(span.bytes > 0);
        assert!(span.start.checked_add(span.bytes).is_some_and(|end| end <= length));
        assert!(end_before.is_none_or(|end: u64| span.start > end));
        end_before = Some(span.end());
    }
    assert_same_alone(&set, length);
});

/// What was answered, asked for again in so many words, gives the same answer.
fn assert_same_alone(set: &[Span], length: u64) {
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
