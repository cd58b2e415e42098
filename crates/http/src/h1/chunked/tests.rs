//! The chunked coding as a table of raw bytes, cut at every byte and at every pair of bytes.

use proptest::prelude::*;

use super::*;

/// Bytes, and the data and the total length of the body they hold.
const COMPLETE: &[(&[u8], u64, usize)] = &[
    (b"0\r\n\r\n", 0, 5),
    (b"3\r\nabc\r\n0\r\n\r\nGET", 3, 13),
    (b"00000000000000003\r\nabc\r\n000\r\n\r\n", 3, 31),
    (b"A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", 20, 35),
    (b"3;a\r\nabc\r\n0;b=c;d=\"e f\"\r\n\r\n", 3, 27),
    (b"3 \t;a=b\r\nabc\r\n0\r\n\r\n", 3, 19),
    (b"3;a;b;c=d\r\nabc\r\n0\r\n\r\n", 3, 21),
    (b"3 ; a = b ; c \t; d=\t\"\"\r\nabc\r\n0\r\n\r\n", 3, 34),
    (b"0;a=\"\\\"\\;\\\\\t\xff\" ;b\r\n\r\n", 0, 21),
    (b"0;!#$%&'*+-.^_`|~=0\r\n\r\n", 0, 23),
    (b"1\r\n\r\r\n1\r\n\n\r\n0\r\n\r\n", 2, 17),
    (b"0\r\nA: b\r\nC:\r\n\r\n", 0, 15),
];

const REFUSED: &[(&[u8], RequestError)] = &[
    (b"\r\n", RequestError::ChunkSize),
    (b";a\r\n", RequestError::ChunkSize),
    (b" 3\r\n", RequestError::ChunkSize),
    (b"g\r\n", RequestError::ChunkSize),
    (b"+3\r\n", RequestError::ChunkSize),
    (b"-3\r\n", RequestError::ChunkSize),
    (b"0x3\r\n", RequestError::ChunkSize),
    (b"3_0\r\n", RequestError::ChunkSize),
    (b"3\n", RequestError::ChunkSize),
    (b"10000000000000000\r\n", RequestError::ChunkSize),
    (b"fffffffffffffffff\r\n", RequestError::ChunkSize),
    (b"1\r\na\r\nffffffffffffffff\r\n", RequestError::ChunkSize),
    (b"3\rabc", RequestError::ChunkExtension),
    (b"3 \r\n", RequestError::ChunkExtension),
    (b"3 a\r\n", RequestError::ChunkExtension),
    (b"3;a\n", RequestError::ChunkExtension),
    (b"3;\r\n", RequestError::ChunkExtension),
    (b"3;;a\r\n", RequestError::ChunkExtension),
    (b"3;a;\r\n", RequestError::ChunkExtension),
    (b"3;=b\r\n", RequestError::ChunkExtension),
    (b"3;a=\r\n", RequestError::ChunkExtension),
    (b"3;a=;b\r\n", RequestError::ChunkExtension),
    (b"3;a==b\r\n", RequestError::ChunkExtension),
    (b"3;a=b=c\r\n", RequestError::ChunkExtension),
    (b"3;a \r\n", RequestError::ChunkExtension),
    (b"3;a=b \r\n", RequestError::ChunkExtension),
    (b"3;a b\r\n", RequestError::ChunkExtension),
    (b"3;a=b c\r\n", RequestError::ChunkExtension),
    (b"3;a,b\r\n", RequestError::ChunkExtension),
    (b"3;\xff\r\n", RequestError::ChunkExtension),
    (b"3;a=\xff\r\n", RequestError::ChunkExtension),
    (b"3;a=\"b\r\n", RequestError::ChunkExtension),
    (b"3;a=\"b\\\r\n", RequestError::ChunkExtension),
    (b"3;a=\"b\"c\r\n", RequestError::ChunkExtension),
    (b"3;a=\"\x7f\"\r\n", RequestError::ChunkExtension),
    (b"3;a=b\"c\"\r\n", RequestError::ChunkExtension),
    (b"3;a\rb", RequestError::ChunkExtension),
    (b"3;a\0\r\n", RequestError::ChunkExtension),
    (b"3\r\nabcd", RequestError::ChunkEnd),
    (b"3\r\nabc\n", RequestError::ChunkEnd),
    (b"3\r\nabc\r\r", RequestError::ChunkEnd),
    (b"3\r\nabc0\r\n\r\n", RequestError::ChunkEnd),
    (b"0\r\n\n", RequestError::Trailer),
    (b"0\r\n\r\r", RequestError::Trailer),
    (b"0\r\n: a\r\n\r\n", RequestError::Trailer),
    (b"0\r\nA : b\r\n\r\n", RequestError::Trailer),
    (b"0\r\nA: b\r\n c\r\n\r\n", RequestError::Trailer),
    (b"0\r\nA: b\n\r\n", RequestError::Trailer),
    (b"0\r\nA: \0\r\n\r\n", RequestError::Trailer),
    (b"0\r\nGET / HTTP/1.1\r\n\r\n", RequestError::Trailer),
];

/// Reads the pieces one after the other: data and total, or `None` if the body has not ended.
fn read(pieces: &[&[u8]]) -> Result<Option<(u64, usize)>, RequestError> {
    let mut reader = ChunkedReader::default();
    let mut total = 0;
    for piece in pieces {
        let taken = reader.consume(piece)?;
        assert!(taken == piece.len() || reader.is_done());
        total += taken;
    }
    Ok(reader.is_done().then_some((reader.data_bytes(), total)))
}

#[test]
fn complete_bodies_end_where_they_end_however_they_are_cut() {
    for (bytes, data, total) in COMPLETE {
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(read(&pieces), Ok(Some((*data, *total))), "{}", bytes.escape_ascii());
            }
        }
        for end in 0..*total {
            assert_eq!(read(&[&bytes[..end]]), Ok(None));
        }
    }
}

#[test]
fn broken_bodies_are_refused_for_their_reason_however_they_are_cut() {
    for (bytes, error) in REFUSED {
        for cut in 0..=bytes.len() {
            let pieces = [&bytes[..cut], &bytes[cut..]];
            assert_eq!(read(&pieces), Err(*error), "{}", bytes.escape_ascii());
        }
    }
}

/// Servers send it; of clients it is refused above.
#[test]
fn white_space_may_end_a_line_of_a_response() {
    for line in ["3 ", "3  \t ", "3;a ", "3;a=b ", "3;a=\"b\" \t", "0003 ;a "] {
        let body = format!("{line}\r\nabc\r\n0 \r\n\r\n");
        for cut in 0..=body.len() {
            let mut reader = ChunkedReader::of_response();
            let taken = reader.consume(&body.as_bytes()[..cut]).unwrap();
            reader.consume(&body.as_bytes()[taken..]).unwrap();
            assert!(reader.is_done() && reader.data_bytes() == 3, "{line:?} cut at {cut}");
        }
        assert!(read(&[body.as_bytes()]).is_err(), "{line:?}");
    }
    for line in [" 3", "3 a", "3 0", "3;", "3; ", "3;a= ", "3;a=\"b", "3 \n", "3 \rx"] {
        let body = format!("{line}\r\nabc\r\n0\r\n\r\n");
        assert!(ChunkedReader::of_response().consume(body.as_bytes()).is_err(), "{line:?}");
    }
    let wide = format!("3{:1$}\r\n", "", CHUNK_LINE_BYTES_MAX);
    let refused = ChunkedReader::of_response().consume(wide.as_bytes());
    assert_eq!(refused, Err(RequestError::ChunkLineTooLong));
}

#[test]
fn the_largest_chunk_size_is_accepted() {
    assert_eq!(read(&[b"ffffffffffffffff\r\nabc"]), Ok(None));
}

#[test]
fn a_chunk_line_of_exactly_the_limit_is_accepted_and_one_byte_more_is_not() {
    let body = |bytes: usize| format!("0;{:a<1$}\r\n\r\n", "", bytes - 4);
    assert!(matches!(read(&[body(CHUNK_LINE_BYTES_MAX).as_bytes()]), Ok(Some(_))));
    let refused = read(&[body(CHUNK_LINE_BYTES_MAX + 1).as_bytes()]);
    assert_eq!(refused, Err(RequestError::ChunkLineTooLong));
}

#[test]
fn the_limit_of_a_chunk_line_is_for_each_line() {
    let body = format!("1;{:a<200}\r\nx\r\n", "").repeat(5) + "0\r\n\r\n";
    assert!(matches!(read(&[body.as_bytes()]), Ok(Some((5, _)))));
}

#[test]
fn endless_zeros_are_not_a_chunk_size() {
    assert_eq!(read(&[[b'0'; 300].as_slice()]), Err(RequestError::ChunkLineTooLong));
}

#[test]
fn trailers_of_exactly_the_limit_are_accepted_and_one_byte_more_are_not() {
    let body = |bytes: usize| format!("0\r\nA:{:b<1$}\r\n\r\n", "", bytes - 6);
    assert!(matches!(read(&[body(TRAILER_BYTES_MAX).as_bytes()]), Ok(Some(_))));
    let refused = read(&[body(TRAILER_BYTES_MAX + 1).as_bytes()]);
    assert_eq!(refused, Err(RequestError::TrailersTooLarge));
}

#[test]
fn trailers_are_kept_line_by_line_however_they_are_cut() {
    let body = b"1\r\nx\r\n0\r\nA: b\r\nC:\r\n\r\nGET ";
    for cut in 0..=body.len() {
        let mut reader = ChunkedReader::new();
        reader.consume(&body[..cut]).unwrap();
        reader.consume(&body[cut..]).unwrap();
        assert_eq!(reader.trailers(), b"A: b\r\nC:\r\n");
    }
}

fn almost_chunked() -> impl Strategy<Value = Vec<u8>> {
    let chunk = prop_oneof![
        6 => (0_usize..40, "(;[a-z=\"; ]{0,5})?").prop_map(|(bytes, extension)| {
            format!("{bytes:x}{extension}\r\n{:x<bytes$}\r\n", "").into_bytes()
        }),
        1 => "[A-Z]{0,3}: [a-z]{0,3}\r\n".prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 0..4),
    ];
    proptest::collection::vec(chunk, 0..6).prop_map(|chunks| {
        let mut body = chunks.concat();
        body.extend_from_slice(b"0\r\n\r\n");
        body
    })
}

proptest! {
    #[test]
    fn any_body_has_one_outcome_however_it_is_cut(body in almost_chunked(), piece_bytes in 1_usize..30) {
        let pieces: Vec<&[u8]> = body.chunks(piece_bytes).collect();
        prop_assert_eq!(read(&pieces), read(&[&body]));
    }

    #[test]
    fn data_never_exceeds_what_was_received(body in almost_chunked()) {
        if let Ok(Some((data, total))) = read(&[&body]) {
            prop_assert!(total <= body.len());
            prop_assert!(data < total as u64);
        }
    }
}
