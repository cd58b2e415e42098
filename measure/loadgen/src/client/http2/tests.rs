use super::*;

fn answer(stream: u32, fields: &[u8], body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame(&mut out, HEADERS, END_HEADERS, stream, fields);
    frame(&mut out, DATA, 0, stream, body);
    frame(&mut out, DATA, END_STREAM, stream, b"");
    out
}

fn asked(requests: u32) -> Http2 {
    let mut http2 = Http2::default();
    let sent = http2.ask("localhost", &[], (0..requests).map(|number| format!("/{number}")));
    assert!(sent.starts_with(PREFACE));
    http2
}

#[test]
fn answers_are_whole_in_whatever_pieces_they_come() {
    let mut bytes = Vec::new();
    frame(&mut bytes, SETTINGS, 0, 0, &[0; 6]);
    frame(&mut bytes, PING, 0, 0, b"12345678");
    bytes.extend(answer(1, &[0x20, 0x88, 0x40], b"one"));
    bytes.extend(answer(3, &[0x88], b"three"));
    for piece_bytes in 1..bytes.len() {
        let mut http2 = asked(2);
        let mut body = Vec::new();
        for piece in bytes.chunks(piece_bytes) {
            assert!(!http2.is_complete());
            http2.take(piece, &mut |data| body.extend_from_slice(data)).unwrap();
        }
        assert!(http2.is_complete() && !http2.is_leaving);
        assert_eq!(body, b"onethree");
        let mut due = Vec::new();
        frame(&mut due, SETTINGS, ACK, 0, &[]);
        frame(&mut due, PING, ACK, 0, b"12345678");
        assert!(http2.ask("h", &[], ["/".to_owned()].into_iter()).starts_with(&due));
    }
}

#[test]
fn what_is_not_right_is_a_failure_of_its_own() {
    let mut reset = Vec::new();
    frame(&mut reset, RST_STREAM, 0, 1, &[0; 4]);
    let mut padded = Vec::new();
    frame(&mut padded, DATA, PADDED, 1, &[0; 4]);
    let twice = [answer(1, &[0x88], b""), answer(1, &[0x88], b"")].concat();
    for (bytes, failure) in [
        (answer(1, &[0x8d], b""), Failure::WrongStatus(404)),
        (answer(1, &[0x08, 3, b'4', b'1', b'8'], b""), Failure::WrongStatus(0)),
        (reset, Failure::Reset),
        (padded, Failure::BadHead),
        (twice, Failure::Excess),
    ] {
        assert_eq!(asked(1).take(&bytes, &mut |_| {}), Err(failure));
    }
}

#[test]
fn long_targets_say_how_long_they_are() {
    for (bytes, length) in [(126, vec![126]), (127, vec![127, 0]), (300, vec![127, 0xad, 1])] {
        let mut out = Vec::new();
        field(&mut out, 4, &vec![b'x'; bytes]);
        assert_eq!(out[1..=length.len()], length);
        assert_eq!(out.len(), 1 + length.len() + bytes);
    }
}

#[test]
fn a_header_of_the_operator_goes_with_each_request() {
    let headers = [("Accept-Encoding".to_owned(), "gzip".to_owned())];
    let sent = Http2::default().ask("h", &headers, ["/a".to_owned(), "/b".to_owned()].into_iter());
    let field = b"\0\x0faccept-encoding\x04gzip";
    assert_eq!(sent.windows(field.len()).filter(|part| part == field).count(), 2);
}
