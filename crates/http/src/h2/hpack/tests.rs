//! The examples of RFC 7541 Appendix C, with the table after each; what is written reads back.

use proptest::prelude::*;

use super::*;

/// Names and values.
pub(super) type Lines = Vec<(Vec<u8>, Vec<u8>)>;

pub(super) fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Lines, Malformed> {
    let mut lines = Vec::new();
    decoder.decode(block, |name, value| lines.push((name.to_vec(), value.to_vec())))?;
    Ok(lines)
}

/// The dynamic table, as asked for by index. That leaves it as it is.
pub(super) fn table(decoder: &mut Decoder) -> Lines {
    let indexed = |index: u8| [0xff, index - 127].to_vec();
    let blocks = (62..127).map(|index| vec![0x80 | index]).chain((127..255).map(indexed));
    blocks.map_while(|block| decode(decoder, &block).ok()).flatten().collect()
}

/// Returns the size that a table counts (§4.1).
pub(super) fn size(table: &Lines) -> usize {
    table.iter().map(|(name, value)| name.len() + value.len() + 32).sum()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn lines(expected: &[(&str, &str)]) -> Lines {
    expected.iter().map(|(name, value)| (name.as_bytes().into(), value.as_bytes().into())).collect()
}

/// A block in hexadecimal, what it says, the table after it, and the size of that.
type Example = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static [(&'static str, &'static str)],
    usize,
);

/// Decodes blocks of one connection.
fn assert_examples(table_bytes_max: usize, examples: [Example; 3]) {
    let mut decoder = Decoder::new(table_bytes_max);
    for (hex, said, kept, bytes_kept) in examples {
        assert_eq!(decode(&mut decoder, &bytes(hex)), Ok(lines(said)), "{hex}");
        let table = table(&mut decoder);
        assert_eq!(table, lines(kept), "{hex}");
        assert_eq!(size(&table), bytes_kept, "{hex}");
    }
}

#[test]
fn single_field_lines_are_those_of_appendix_c_2() {
    let custom: &[_] = &[("custom-key", "custom-header")];
    let examples: [Example; 4] = [
        ("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572", custom, custom, 55),
        ("040c 2f73 616d 706c 652f 7061 7468", &[(":path", "/sample/path")], &[], 0),
        ("1008 7061 7373 776f 7264 0673 6563 7265 74", &[("password", "secret")], &[], 0),
        ("82", &[(":method", "GET")], &[], 0),
    ];
    for (hex, said, kept, bytes_kept) in examples {
        let mut decoder = Decoder::new(4096);
        assert_eq!(decode(&mut decoder, &bytes(hex)), Ok(lines(said)), "{hex}");
        let table = table(&mut decoder);
        assert_eq!((size(&table), table), (bytes_kept, lines(kept)), "{hex}");
    }
}

/// The requests of C.3 and C.4: as literals and in the Huffman code, they say the same.
fn requests(blocks: [&'static str; 3]) -> [Example; 3] {
    let [first, second, third] = blocks;
    [
        (
            first,
            &[
                (":method", "GET"),
                (":scheme", "http"),
                (":path", "/"),
                (":authority", "www.example.com"),
            ],
            &[(":authority", "www.example.com")],
            57,
        ),
        (
            second,
            &[
                (":method", "GET"),
                (":scheme", "http"),
                (":path", "/"),
                (":authority", "www.example.com"),
                ("cache-control", "no-cache"),
            ],
            &[("cache-control", "no-cache"), (":authority", "www.example.com")],
            110,
        ),
        (
            third,
            &[
                (":method", "GET"),
                (":scheme", "https"),
                (":path", "/index.html"),
                (":authority", "www.example.com"),
                ("custom-key", "custom-value"),
            ],
            &[
                ("custom-key", "custom-value"),
                ("cache-control", "no-cache"),
                (":authority", "www.example.com"),
            ],
            164,
        ),
    ]
}

#[test]
fn requests_are_those_of_appendix_c_3() {
    let blocks = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    assert_examples(4096, requests(blocks));
}

#[test]
fn requests_in_the_huffman_code_are_those_of_appendix_c_4() {
    let blocks = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    assert_examples(4096, requests(blocks));
}

const FIRST_DATE: (&str, &str) = ("date", "Mon, 21 Oct 2013 20:13:21 GMT");
const SECOND_DATE: (&str, &str) = ("date", "Mon, 21 Oct 2013 20:13:22 GMT");
const LOCATION: (&str, &str) = ("location", "https://www.example.com");
const PRIVATE: (&str, &str) = ("cache-control", "private");
const GZIP: (&str, &str) = ("content-encoding", "gzip");
const COOKIE: (&str, &str) =
    ("set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1");

/// The responses of C.5 and C.6, whose table of 256 bytes does not hold all of them.
fn responses(blocks: [&'static str; 3]) -> [Example; 3] {
    let [first, second, third] = blocks;
    [
        (
            first,
            &[(":status", "302"), PRIVATE, FIRST_DATE, LOCATION],
            &[LOCATION, FIRST_DATE, PRIVATE, (":status", "302")],
            222,
        ),
        (
            second,
            &[(":status", "307"), PRIVATE, FIRST_DATE, LOCATION],
            &[(":status", "307"), LOCATION, FIRST_DATE, PRIVATE],
            222,
        ),
        (
            third,
            &[(":status", "200"), PRIVATE, SECOND_DATE, LOCATION, GZIP, COOKIE],
            &[COOKIE, GZIP, SECOND_DATE],
            215,
        ),
    ]
}

#[test]
fn responses_are_those_of_appendix_c_5() {
    let blocks = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 \
         2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 \
         6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d \
         54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 \
         5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e \
         3d31",
    ];
    assert_examples(256, responses(blocks));
}

#[test]
fn responses_in_the_huffman_code_are_those_of_appendix_c_6() {
    let blocks = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 \
         2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab \
         77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f \
         9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ];
    assert_examples(256, responses(blocks));
}

#[test]
fn every_status_reads_back() {
    let mut decoder = Decoder::new(0);
    for status in 100..=999 {
        let mut block = Vec::new();
        encode_status(status, &mut block);
        let expected = lines(&[(":status", &status.to_string())]);
        assert_eq!(decode(&mut decoder, &block), Ok(expected));
    }
}

/// A name that HTTP allows, in any case, as likely as not one of the static table.
fn name() -> impl Strategy<Value = String> {
    let known = (1..=static_table::ENTRIES).prop_map(|index| {
        let (name, _) = static_table::field_line(index).unwrap();
        String::from_utf8(name.to_vec()).unwrap()
    });
    prop_oneof![known, "[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}"]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..300)
}

proptest! {
    #[test]
    fn what_is_written_reads_back(
        fields in proptest::collection::vec((name(), value()), 0..12),
    ) {
        let mut block = Vec::new();
        encode_table_of_nothing(&mut block);
        for (name, value) in &fields {
            encode_field(name.as_bytes(), value, &mut block);
        }
        let mut decoder = Decoder::new(4096);
        let expected: Lines = fields
            .into_iter()
            .map(|(name, value)| (name.to_ascii_lowercase().into_bytes(), value))
            .collect();
        prop_assert_eq!(decode(&mut decoder, &block), Ok(expected));
        prop_assert_eq!(table(&mut decoder), Lines::new());
    }
}
