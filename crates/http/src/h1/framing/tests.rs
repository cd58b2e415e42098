//! The framing rules of RFC 9112 §6 as a table, and the reader that follows them.

use proptest::prelude::*;

use super::*;
use crate::sample::{get, head};
use RequestError::*;

/// Field lines besides Host, and the framing they give.
const CASES: &[(&str, Result<BodyFraming, RequestError>)] = &[
    ("", Ok(BodyFraming::None)),
    ("Content-Length: 0\r\n", Ok(BodyFraming::Length(0))),
    ("content-length:5\r\n", Ok(BodyFraming::Length(5))),
    ("Content-Length: 007\r\n", Ok(BodyFraming::Length(7))),
    ("Content-Length: 9223372036854775808\r\n", Ok(BodyFraming::Length(1 << 63))),
    ("Content-Length: 18446744073709551615\r\n", Ok(BodyFraming::Length(u64::MAX))),
    ("Content-Length: 18446744073709551616\r\n", Err(ContentLengthInvalid)),
    ("Content-Length: 99999999999999999999999\r\n", Err(ContentLengthInvalid)),
    ("Content-Length:\r\n", Err(ContentLengthInvalid)),
    ("Content-Length: +5\r\n", Err(ContentLengthInvalid)),
    ("Content-Length: -5\r\n", Err(ContentLengthInvalid)),
    ("Content-Length: 5,5\r\n", Err(ContentLengthInvalid)),
    ("Content-Length: 5, 5\r\n", Err(ContentLengthInvalid)),
    ("Content-Length: 5 5\r\n", Err(ContentLengthInvalid)),
    ("Content-Length: 0x5\r\n", Err(ContentLengthInvalid)),
    ("Content-Length: 5.0\r\n", Err(ContentLengthInvalid)),
    ("Content-Length: \u{665}\r\n", Err(ContentLengthInvalid)),
    ("Content-Length: 5\r\nContent-Length: 5\r\n", Err(ContentLengthRepeated)),
    ("Content-Length: 5\r\nContent-Length: 6\r\n", Err(ContentLengthRepeated)),
    ("Content_Length: 5\r\n", Ok(BodyFraming::None)),
    ("Transfer-Encoding: chunked\r\n", Ok(BodyFraming::Chunked)),
    ("Transfer-Encoding: CHUNKED\r\n", Ok(BodyFraming::Chunked)),
    ("Transfer-Encoding: \t chunked \t\r\n", Ok(BodyFraming::Chunked)),
    ("Transfer-Encoding: ,chunked,\r\n", Ok(BodyFraming::Chunked)),
    ("Transfer-Encoding:\r\n", Err(TransferEncodingInvalid)),
    ("Transfer-Encoding: identity\r\n", Err(TransferEncodingInvalid)),
    ("Transfer-Encoding: gzip\r\n", Err(TransferEncodingInvalid)),
    ("Transfer-Encoding: xchunked\r\n", Err(TransferEncodingInvalid)),
    ("Transfer-Encoding: chunked;a=b\r\n", Err(TransferEncodingInvalid)),
    ("Transfer-Encoding: \"chunked\"\r\n", Err(TransferEncodingInvalid)),
    ("Transfer-Encoding: chunked, identity\r\n", Err(TransferEncodingInvalid)),
    ("Transfer-Encoding: chunked, chunked\r\n", Err(TransferEncodingInvalid)),
    ("Transfer-Encoding: gzip, chunked\r\n", Err(TransferCodingUnsupported)),
    ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", Err(TransferCodingUnsupported)),
    ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", Err(TransferEncodingInvalid)),
    ("Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n", Err(TransferEncodingInvalid)),
    ("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", Err(TransferEncodingWithContentLength)),
    ("Content-Length: x\r\nTransfer-Encoding: chunked\r\n", Err(TransferEncodingWithContentLength)),
];

#[test]
fn framing_follows_the_table() {
    for (lines, expected) in CASES {
        let request = get(lines);
        assert_eq!(body_framing(&head(&request)), *expected, "{lines:?}");
    }
}

#[test]
fn a_transfer_coding_in_http_1_0_is_refused() {
    let request = head(b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_eq!(body_framing(&request), Err(TransferEncodingInHttp10));
}

#[test]
fn no_body_is_done_before_it_begins() {
    let mut reader = BodyReader::new(BodyFraming::None);
    assert!(reader.is_done());
    assert_eq!(reader.consume(b"GET"), Ok(Consumed { bytes: 0, done: true }));
}

#[test]
fn a_framing_is_empty_where_no_byte_comes() {
    for (framing, expected) in [
        (BodyFraming::None, true),
        (BodyFraming::Length(0), true),
        (BodyFraming::Length(1), false),
        (BodyFraming::Chunked, false),
    ] {
        assert_eq!(framing.is_empty(), expected, "{framing:?}");
    }
}

#[test]
fn a_length_takes_its_bytes_and_leaves_the_next_request() {
    let mut reader = BodyReader::new(BodyFraming::Length(5));
    assert_eq!(reader.consume(b"he"), Ok(Consumed { bytes: 2, done: false }));
    assert!(!reader.is_done());
    assert_eq!(reader.consume(b""), Ok(Consumed { bytes: 0, done: false }));
    assert_eq!(reader.consume(b"lloGET"), Ok(Consumed { bytes: 3, done: true }));
    assert_eq!(reader.consume(b"GET"), Ok(Consumed { bytes: 0, done: true }));
    assert!(reader.is_done());
    assert_eq!(reader.total_bytes(), 5);
}

#[test]
fn the_longest_length_does_not_overflow() {
    let mut reader = BodyReader::new(BodyFraming::Length(u64::MAX));
    assert_eq!(reader.consume(b"abc"), Ok(Consumed { bytes: 3, done: false }));
}

#[test]
fn chunks_leave_the_next_request() {
    let mut reader = BodyReader::new(BodyFraming::Chunked);
    let input = b"3\r\nabc\r\n0\r\n\r\nGET";
    assert!(!reader.is_done());
    let consumed = Consumed { bytes: input.len() - 3, done: true };
    assert_eq!(reader.consume(input), Ok(consumed));
    assert!(reader.is_done());
    assert_eq!(reader.total_bytes(), 13);
}

#[test]
fn trailers_are_there_when_the_body_has_ended() {
    let mut reader = BodyReader::new(BodyFraming::Chunked);
    reader.consume(b"0\r\na: b\r\n\r\n").unwrap();
    assert_eq!(reader.trailers(), b"a: b\r\n");
    assert_eq!(BodyReader::new(BodyFraming::Length(5)).trailers(), b"");
}

/// A limit is for what the body holds, however a client cuts it; only chunk lines without end count, too.
#[test]
fn a_body_is_as_long_as_its_data() {
    let pieces_of = |input: &[u8], bytes_max| {
        let mut reader = BodyReader::new(BodyFraming::Chunked);
        let mut rest = input;
        while !reader.is_done() && !reader.is_longer_than(bytes_max) {
            let Piece { coding_bytes, data_bytes } = reader.next_piece(rest).unwrap();
            rest = &rest[coding_bytes + data_bytes..];
        }
        reader.is_longer_than(bytes_max)
    };
    let single = [b"1\r\nx\r\n".repeat(1_000), b"0\r\n\r\n".to_vec()].concat();
    let whole = [&b"3e8\r\n"[..], &[b'x'; 1_000], b"\r\n0\r\n\r\n"].concat();
    for input in [&single, &whole] {
        assert_eq!([1_000, 999].map(|bytes_max| pieces_of(input, bytes_max)), [false, true]);
    }
    let extended = [format!("1;{}\r\nx\r\n", "e".repeat(90)).repeat(1_000), "0\r\n\r\n".into()];
    assert!(pieces_of(extended.concat().as_bytes(), 1_000));
    let mut reader = BodyReader::new(BodyFraming::Chunked);
    let line = format!("1;{}\r\nx\r\n", "e".repeat(57));
    reader.consume(line.repeat(1_024).as_bytes()).unwrap();
    assert_eq!((reader.total_bytes(), reader.is_longer_than(0)), (64 * 1_024, false));
    reader.consume(b"1").unwrap();
    assert!(reader.is_longer_than(0));
}

#[test]
fn chunks_end_at_once_or_with_the_next() {
    let written = |is_chunked| {
        let mut writer = BodyWriter::new(is_chunked);
        let mut out = Vec::new();
        writer.write_piece(&mut out, &[b'a'; 17]);
        writer.write_piece(&mut out, b"");
        let at_once = String::from_utf8(std::mem::take(&mut out)).unwrap();
        writer.begin_piece(&mut out, 1);
        out.push(b'b');
        writer.begin_piece(&mut out, 0);
        writer.begin_piece(&mut out, 2);
        out.extend(b"cd");
        let with_next = String::from_utf8(std::mem::take(&mut out)).unwrap();
        writer.end(&mut out, b"x: 1\r\n");
        [at_once, with_next, String::from_utf8(out).unwrap()]
    };
    let a = "a".repeat(17);
    let chunked =
        [format!("11\r\n{a}\r\n"), "1\r\nb\r\n2\r\ncd".into(), "\r\n0\r\nx: 1\r\n\r\n".into()];
    assert_eq!(written(true), chunked);
    assert_eq!(written(false), [a, "bcd".into(), String::new()]);
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_it_was(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..10)) {
        let mut writer = BodyWriter::new(true);
        let mut written = Vec::new();
        pieces.iter().for_each(|piece| writer.write_piece(&mut written, piece));
        writer.end(&mut written, b"x: 1\r\n");
        let mut reader = BodyReader::new(BodyFraming::Chunked);
        let mut data = Vec::<u8>::new();
        let mut rest = &written[..];
        while !reader.is_done() {
            let Piece { coding_bytes, data_bytes } = reader.next_piece(rest).unwrap();
            data.extend_from_slice(&rest[coding_bytes..coding_bytes + data_bytes]);
            rest = &rest[coding_bytes + data_bytes..];
        }
        prop_assert_eq!(data, pieces.concat());
        prop_assert!(rest.is_empty());
        prop_assert_eq!(reader.trailers(), b"x: 1\r\n");
    }

    #[test]
    fn a_length_is_taken_exactly_however_it_is_cut(length in 0_u64..200, cuts in proptest::collection::vec(0_usize..40, 1..20)) {
        let mut reader = BodyReader::new(BodyFraming::Length(length));
        let mut taken = 0;
        for cut in cuts {
            let consumed = reader.consume(&vec![b'x'; cut]).unwrap();
            taken += consumed.bytes as u64;
            prop_assert_eq!(consumed.done, taken == length);
            prop_assert!(consumed.bytes == cut || consumed.done);
        }
        prop_assert_eq!(reader.total_bytes(), taken);
    }
}
