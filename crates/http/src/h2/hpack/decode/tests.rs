//! Refused blocks, and the entries that go when the table is full.

use proptest::prelude::*;

use super::super::tests::{Lines, decode, size, table};
use super::*;

/// Returns what a decoder that is otherwise new makes of a block.
fn decoded(block: &[u8]) -> Result<Lines, Malformed> {
    decode(&mut Decoder::new(4096), block)
}

fn line(name: &str, value: &str) -> (Vec<u8>, Vec<u8>) {
    (name.as_bytes().to_vec(), value.as_bytes().to_vec())
}

/// A literal with incremental indexing whose name and value are short.
fn inserting(name: &str, value: &str) -> Vec<u8> {
    let name = name.as_bytes();
    let value = value.as_bytes();
    [&[0x40, name.len() as u8], name, &[value.len() as u8], value].concat()
}

/// The names in the table, from the newest.
fn names(decoder: &mut Decoder) -> String {
    let names = table(decoder).into_iter().map(|(name, _)| String::from_utf8(name).unwrap());
    names.collect::<Vec<_>>().join(" ")
}

const REFUSED: &[(&str, &[u8])] = &[
    ("index 0", b"\x80"),
    ("an index behind the static table, the dynamic one being empty", b"\xbe"),
    ("a large index", b"\xff\x80\x80\x80\x7f"),
    ("the index of a name behind both tables", b"\x7e\x01a"),
    ("the same, not to be indexed", b"\x0f\x2f\x01a"),
    ("an index without its end", b"\xff"),
    ("an index that goes on without end", b"\xff\x80\x80"),
    ("a literal without a name", b"\x40"),
    ("a literal whose name is cut", b"\x40\x03ab"),
    ("a literal without a value", b"\x40\x01a"),
    ("a literal with an indexed name without a value", b"\x41"),
    ("a literal whose value is cut", b"\x00\x01a\x02b"),
    ("a length without its end", b"\x00\x7f"),
    ("a length beyond every block", b"\x00\x01a\x7f\xff\xff\xff\x7f"),
    ("a string in the Huffman code that is cut", b"\x00\x01a\x82\x1f"),
    ("an integer above 2^28", b"\xff\x82\xff\xff\x7f"),
    ("an integer of six bytes behind its prefix", b"\xff\x80\x80\x80\x80\x80\x00"),
    ("an integer above 32 bits", b"\xff\xff\xff\xff\xff\x7f"),
    ("EOS in a string", b"\x00\x01a\x84\xff\xff\xff\xff"),
    ("padding of eight bits", b"\x00\x01a\x82\x1f\xff"),
    ("a string that is all padding", b"\x00\x01a\x81\xff"),
    ("padding that is not ones", b"\x00\x01a\x81\x18"),
    ("bad padding in a name", b"\x00\x81\x18\x01a"),
    ("a size update above the maximum", b"\x3f\xe2\x1f"),
    ("a size update behind a field line", b"\x82\x20"),
    ("the same before another field line", b"\x00\x01a\x01b\x20\x82"),
    ("the same that could be a literal", b"\x82\x20\x01a\x01b"),
    ("five size updates", b"\x20\x20\x20\x20\x20"),
    ("a size update without its end", b"\x3f\xe1"),
];

#[test]
fn what_the_rfc_does_not_allow_is_refused() {
    for (what, block) in REFUSED {
        assert_eq!(decoded(block), Err(Malformed), "{what}");
        let behind_another = [b"\x00\x01a\x01b", *block].concat();
        assert_eq!(decoded(&behind_another), Err(Malformed), "{what}");
    }
}

#[test]
fn a_block_that_is_cut_is_refused_or_ends_with_a_whole_line() {
    let block = b"\x82\x40\x01a\x01b\x00\x81\x1f\x81\x1f\x7f\x00\x01c";
    let ends: Vec<usize> =
        (0..=block.len()).filter(|end| decoded(&block[..*end]).is_ok()).collect();
    assert_eq!(ends, [0, 1, 6, 11]);
    let expected = [line(":method", "GET"), line("a", "b"), line("a", "a")];
    assert_eq!(decoded(&block[..11]).unwrap(), expected);
}

#[test]
fn field_lines_before_a_mistake_are_given() {
    let mut given = 0;
    assert_eq!(Decoder::new(4096).decode(b"\x82\x84\x80", |_, _| given += 1), Err(Malformed));
    assert_eq!(given, 2);
}

#[test]
fn a_table_may_change_its_size_a_few_times_in_a_block() {
    assert_eq!(decoded(b"\x20\x20\x20\x20\x82"), Ok(vec![line(":method", "GET")]));
}

#[test]
fn a_mistake_can_be_shown() {
    assert_eq!(Malformed.to_string(), "a field block is not valid HPACK");
}

#[test]
fn an_empty_block_says_nothing() {
    assert_eq!(decoded(b""), Ok(Vec::new()));
    assert_eq!(decoded(b"\x20"), Ok(Vec::new()));
}

#[test]
fn empty_strings_are_read() {
    let expected = [line("", ""), line("", ""), line("age", "")];
    assert_eq!(decoded(b"\x00\x00\x00\x40\x80\x80\x0f\x06\x80").unwrap(), expected);
}

#[test]
fn integers_are_those_of_appendix_c() {
    let read = |block: &[u8], prefix_bits| {
        let mut input = Input { rest: block };
        input.integer(prefix_bits).map(|value| (value, input.rest.len()))
    };
    assert_eq!(read(&[0b1110_1010, 1], 5), Some((10, 1)));
    assert_eq!(read(&[0b1111_1111, 154, 10, 1], 5), Some((1337, 1)));
    assert_eq!(read(&[31, 0], 5), Some((31, 0)));
    assert_eq!(read(&[0x7f, 0x81, 0xff, 0xff, 0x7f], 7), Some((1 << 28, 0)));
    assert_eq!(read(&[0x7f, 0x80, 0x80, 0x80, 0x80, 0x00], 7), Some((127, 0)));
}

#[test]
fn integers_that_are_too_large_or_too_long_are_refused() {
    let read = |block: &[u8]| Input { rest: block }.integer(7);
    assert_eq!(read(&[0x7f, 0x82, 0xff, 0xff, 0x7f]), None);
    assert_eq!(read(&[0x7f, 0xff, 0xff, 0xff, 0xff, 0x7f]), None);
    assert_eq!(read(&[0x7f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00]), None);
    assert_eq!(read(&[0x7f, 0x80, 0x80]), None);
    assert_eq!(read(&[]), None);
}

#[test]
fn the_oldest_entries_go_first() {
    let mut decoder = Decoder::new(100);
    for name in ["a", "b", "c"] {
        decode(&mut decoder, &inserting(name, "")).unwrap();
    }
    assert_eq!(names(&mut decoder), "c b a");
    // 33 bytes each: a fourth takes the place of the first, a larger one that of two.
    decode(&mut decoder, &inserting("d", "")).unwrap();
    assert_eq!(names(&mut decoder), "d c b");
    decode(&mut decoder, &inserting("e", "ee")).unwrap();
    assert_eq!(names(&mut decoder), "e d");
}

#[test]
fn an_entry_as_large_as_the_table_is_all_of_it() {
    let mut decoder = Decoder::new(40);
    decode(&mut decoder, &inserting("a", "")).unwrap();
    decode(&mut decoder, &inserting("name", "four")).unwrap();
    assert_eq!(table(&mut decoder), [line("name", "four")]);
}

#[test]
fn an_entry_larger_than_the_table_empties_it_and_is_given() {
    let mut decoder = Decoder::new(40);
    decode(&mut decoder, &inserting("a", "")).unwrap();
    let given = decode(&mut decoder, &inserting("name", "fiver"));
    assert_eq!(given.unwrap(), [line("name", "fiver")]);
    assert_eq!(table(&mut decoder), []);
    decode(&mut decoder, &inserting("b", "")).unwrap();
    assert_eq!(names(&mut decoder), "b");
}

#[test]
fn a_name_may_come_from_an_entry_that_goes() {
    // The name of the oldest entry, which the new one replaces (§4.4).
    let mut decoder = Decoder::new(70);
    decode(&mut decoder, &inserting("old", "")).unwrap();
    decode(&mut decoder, &inserting("mid", "")).unwrap();
    assert_eq!(decode(&mut decoder, b"\x7f\x00\x01v").unwrap(), [line("old", "v")]);
    assert_eq!(table(&mut decoder), [line("old", "v")]);
    // The only entry, and one that is larger than the table.
    let block = [b"\x7e\x7f\x00".as_slice(), &[b'v'; 127]].concat();
    assert_eq!(decode(&mut decoder, &block).unwrap(), [line("old", &"v".repeat(127))]);
    assert_eq!(table(&mut decoder), []);
}

#[test]
fn a_smaller_table_evicts_and_a_larger_one_has_room_again() {
    let mut decoder = Decoder::new(4096);
    for name in ["a", "b", "c"] {
        decode(&mut decoder, &inserting(name, "")).unwrap();
    }
    // 66 bytes.
    decode(&mut decoder, b"\x3f\x23").unwrap();
    assert_eq!(names(&mut decoder), "c b");
    // Nothing, and 4,096 again, in one block.
    decode(&mut decoder, b"\x20\x3f\xe1\x1f").unwrap();
    assert_eq!(names(&mut decoder), "");
    decode(&mut decoder, &inserting("d", "")).unwrap();
    assert_eq!(names(&mut decoder), "d");
}

#[test]
fn a_table_of_nothing_keeps_nothing() {
    let mut decoder = Decoder::new(0);
    assert_eq!(decode(&mut decoder, &inserting("", "")).unwrap(), [line("", "")]);
    assert_eq!(table(&mut decoder), []);
    assert_eq!(decode(&mut decoder, b"\x21"), Err(Malformed));
}

/// Blocks that are not all nonsense: bytes that begin a representation, and short strings.
fn blocks() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let piece = prop_oneof![
        3 => any::<u8>().prop_map(|index| vec![0x80 | index]),
        3 => ("[a-c]{0,3}", "[a-z]{0,60}").prop_map(|(name, value)| inserting(&name, &value)),
        2 => (0x3e_u8..0x48, "[a-z]{0,9}").prop_map(|(index, value)| {
            [&[0x40 | index, value.len() as u8], value.as_bytes()].concat()
        }),
        1 => (0x20_u8..0x40).prop_map(|size| vec![size]),
        1 => proptest::collection::vec(any::<u8>(), 0..20),
    ];
    let block = proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat());
    proptest::collection::vec(block, 1..12)
}

proptest! {
    #[test]
    fn any_blocks_are_survived_and_give_no_more_than_the_bound(
        table_bytes_max in 0_usize..300,
        blocks in blocks(),
    ) {
        let mut decoder = Decoder::new(table_bytes_max);
        for block in blocks {
            let mut lines = 0;
            let mut bytes = 0;
            let outcome = decoder.decode(&block, |name, value| {
                lines += 1;
                bytes += name.len() + value.len();
            });
            prop_assert!(lines <= block.len());
            prop_assert!(bytes <= block.len() * (table_bytes_max + 32));
            prop_assert!(size(&table(&mut decoder)) <= table_bytes_max);
            if outcome.is_err() {
                break;
            }
        }
    }
}

mod model;
