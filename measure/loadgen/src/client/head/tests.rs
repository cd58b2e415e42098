use proptest::prelude::*;

use super::*;

fn read(bytes: &[u8]) -> Result<Option<(Head, usize)>, Failure> {
    HeadReader::default().take(bytes, false)
}

/// Returns what a reader makes of the pieces, with the bytes of the head counted over all of them.
fn read_pieces(pieces: &[&[u8]]) -> Result<Option<(Head, usize)>, Failure> {
    let mut reader = HeadReader::default();
    let mut earlier_bytes = 0;
    for piece in pieces {
        if let Some((head, bytes)) = reader.take(piece, false)? {
            assert!(!reader.has_begun());
            return Ok(Some((head, earlier_bytes + bytes)));
        }
        earlier_bytes += piece.len();
    }
    Ok(None)
}

#[test]
fn a_head_tells_length_and_end_and_leaves_the_body() {
    let bytes = b"HTTP/1.1 200 OK\r\nServer: x\r\ncontent-LENGTH: 12\r\n\r\nbody";
    let head = Head { body_bytes: 12, is_last: false };
    assert_eq!(read(bytes), Ok(Some((head, bytes.len() - 4))));
}

#[test]
fn the_last_response_of_a_connection_is_known() {
    let cases = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: foo, Close\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", true),
    ];
    for (text, is_last) in cases {
        let (head, _) = read(text.as_bytes()).unwrap().unwrap();
        assert_eq!(head.is_last, is_last, "{text:?}");
    }
}

#[test]
fn interim_responses_are_passed_over() {
    let bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n\
        HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
    let head = Head { body_bytes: 1, is_last: false };
    assert_eq!(read(bytes), Ok(Some((head, bytes.len()))));
}

#[test]
fn what_cannot_be_a_right_response_is_told_apart() {
    let cases = [
        ("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", Failure::WrongStatus(500)),
        ("HTTP/1.1 206 Part\r\nContent-Length: 0\r\n\r\n", Failure::WrongStatus(206)),
        ("HTTP/1.1 200 OK\r\n\r\n", Failure::NoLength),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Failure::Chunked),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Failure::BadHead),
        ("HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n", Failure::BadHead),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", Failure::BadHead),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", Failure::BadHead),
        ("SSH-2.0-OpenSSH\r\n\r\n", Failure::BadHead),
    ];
    for (text, failure) in cases {
        assert_eq!(read(text.as_bytes()), Err(failure), "{text:?}");
    }
}

#[test]
fn a_head_without_an_end_is_bounded() {
    let mut long = b"HTTP/1.1 200 OK\r\nX: ".to_vec();
    long.resize(HEAD_BYTES_MAX + 1_000, b'x');
    assert_eq!(read(&long), Err(Failure::HeadTooLong));
    let pieces: Vec<&[u8]> = long.chunks(1_000).collect();
    assert_eq!(read_pieces(&pieces), Err(Failure::HeadTooLong));
    assert_eq!(read(b"HTTP/1.1 100 Continue\r\n\r\n"), Ok(None));
}

fn any_head() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just("Content-Length: 5\r\n".to_owned()),
        Just("Connection: close\r\n".to_owned()),
        Just("Transfer-Encoding: chunked\r\n".to_owned()),
        Just("HTTP/1.1 100 Continue\r\n".to_owned()),
        Just("\r\n".to_owned()),
        "[a-zA-Z]{1,8}: [ -~]{0,20}\r\n",
        "[ -~]{0,10}",
    ];
    let start = prop_oneof![
        Just("HTTP/1.1 200 OK\r\n".to_owned()),
        Just("HTTP/1.1 103 Wait\r\n\r\nHTTP/1.1 200 OK\r\n".to_owned()),
        "HTTP/1.[01] [0-9]{3} [a-z]{0,5}\r\n",
        "[ -~]{0,10}\r\n",
    ];
    (start, proptest::collection::vec(line, 0..6), proptest::bool::ANY).prop_map(
        |(start, lines, is_ended)| {
            let end = if is_ended { "\r\n" } else { "" };
            (start + &lines.concat() + end).into_bytes()
        },
    )
}

proptest! {
    #[test]
    fn however_a_head_is_cut_it_says_the_same(bytes in any_head(), cuts in any_cuts()) {
        prop_assert_eq!(read_pieces(&cut(&bytes, &cuts)), read(&bytes));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>, cuts in any_cuts()) {
        prop_assert_eq!(read_pieces(&cut(&bytes, &cuts)), read(&bytes));
    }
}

fn any_cuts() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(1..40_usize, 1..8)
}

/// The bytes in pieces of these lengths, over and over.
fn cut<'b>(bytes: &'b [u8], lengths: &[usize]) -> Vec<&'b [u8]> {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    for length in lengths.iter().cycle() {
        let (piece, after) = rest.split_at(rest.len().min(*length));
        pieces.push(piece);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    pieces
}

#[test]
fn a_connection_that_is_to_change_its_protocol_wants_101() {
    let changed = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x82\x01a";
    let whole = HeadReader::default().take(changed, true).unwrap().unwrap();
    assert_eq!(whole, (Head { body_bytes: 0, is_last: false }, changed.len() - 3));
    // Elsewhere it is an interim response, and 200 is no change.
    assert_eq!(HeadReader::default().take(&changed[..changed.len() - 3], false), Ok(None));
    let refused = HeadReader::default().take(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true);
    assert_eq!(refused, Err(Failure::WrongStatus(200)));
}
