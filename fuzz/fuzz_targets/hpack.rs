//! Field blocks of one connection: what is given out and kept stays within its bounds, and what
//! has been read says the same when it is written and read again.

#![no_main]

use kettle_http::h2::hpack::{Decoder, encode_field, encode_table_of_nothing};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(([size, cut], mut rest)) = data.split_first_chunk::<2>() else {
        return;
    };
    let table_bytes_max = usize::from(*size) * 16;
    let mut decoder = Decoder::new(table_bytes_max);
    while !rest.is_empty() {
        // Each block says its length, if the first bytes ask for that; else there is one.
        let (block, after) = match (cut, rest) {
            (1.., [length, behind @ ..]) => behind.split_at(behind.len().min(usize::from(*length))),
            _ => (rest, &[][..]),
        };
        rest = after;
        let mut lines = Vec::new();
        let mut bytes = 0;
        let outcome = decoder.decode(block, |name, value| {
            bytes += name.len() + value.len();
            // A block of entries of the table gives out far more than there is to look at.
            if bytes < 1 << 16 {
                lines.push((name.to_vec(), value.to_vec()));
            }
        });
        assert!(bytes <= block.len() * (table_bytes_max + 32));
        assert!(table_bytes(&mut decoder) <= table_bytes_max);
        assert_same_again(&lines);
        if outcome.is_err() {
            return;
        }
    }
});

/// Returns the size of the dynamic table, asked for index by index. That leaves it as it is.
fn table_bytes(decoder: &mut Decoder) -> usize {
    let mut total = 0;
    let indexes = (62..127).map(|index: u8| vec![0x80 | index]);
    for block in indexes.chain((0..65).map(|beyond| vec![0xff, beyond])) {
        let counted = decoder.decode(&block, |name, value| total += name.len() + value.len() + 32);
        if counted.is_err() {
            break;
        }
    }
    total
}

/// Writes field lines and reads them with their names in lower case.
fn assert_same_again(lines: &[(Vec<u8>, Vec<u8>)]) {
    let mut block = Vec::new();
    encode_table_of_nothing(&mut block);
    for (name, value) in lines {
        encode_field(name, value, &mut block);
    }
    let mut expected = lines.iter();
    let again = Decoder::new(4096).decode(&block, |name, value| {
        let (expected_name, expected_value) = expected.next().unwrap();
        assert_eq!(name, expected_name.to_ascii_lowercase());
        assert_eq!(value, expected_value);
    });
    assert_eq!(again, Ok(()));
    assert_eq!(expected.next(), None);
}
