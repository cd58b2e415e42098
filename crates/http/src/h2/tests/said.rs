//! The frames of a server in a stream.

use std::task::Poll;

use super::client::*;
use crate::h2::connection::*;
use crate::h2::frame::*;
use crate::h2::hpack::Decoder;
use crate::h2::*;

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn a_head_is_its_status_and_the_fields_that_are_not_about_a_connection() {
    let mut connection = with_request(&[]);
    let lines =
        b"HTTP/1.1 200 OK\r\nServer: k\r\nconnection: close\r\nKeep-Alive: x\r\nUPGRADE: h\r\n\
        proxy-connection: a\r\ntransfer-encoding: chunked\r\nx-Y:  a: b \r\nempty:\r\n\r\n";
    connection.send_head(1, 200, lines, false).unwrap();
    let frames = taken(&mut connection);
    assert_eq!((frames.len(), frames[0].kind, frames[0].flags), (1, HEADERS, END_HEADERS));
    let expected =
        [pair(":status", "200"), pair("server", "k"), pair("x-y", "a: b"), pair("empty", "")];
    assert_eq!(fields(&mut Decoder::new(0), &frames[0].payload), expected);
}

#[test]
fn interim_heads_come_before_the_head_and_trailers_behind_the_body() {
    let mut connection = with_request(&[]);
    connection.send_head(1, 103, b"link: a\r\n", false).unwrap();
    connection.send_head(1, 100, b"", false).unwrap();
    connection.send_head(1, 200, b"", false).unwrap();
    let head = connection.data_head(1, 5, false).unwrap();
    assert_eq!(head, [0, 0, 5, DATA, 0, 0, 0, 0, 1]);
    connection.send_trailers(1, b"a: b\r\n").unwrap();
    let frames = taken(&mut connection);
    let flags: Vec<_> = frames.iter().map(|frame| (frame.kind, frame.flags)).collect();
    assert_eq!(flags, [(HEADERS, 4), (HEADERS, 4), (HEADERS, 4), (HEADERS, 5)]);
    let mut decoder = Decoder::new(0);
    let blocks: Vec<_> = frames.iter().map(|it| fields(&mut decoder, &it.payload)).collect();
    assert_eq!(blocks[0], [pair(":status", "103"), pair("link", "a")]);
    assert_eq!(blocks[3], [pair("a", "b")]);
    for said in [
        connection.send_head(1, 200, b"", true),
        connection.send_trailers(1, b""),
        connection.data_head(1, 0, true).map(drop),
    ] {
        assert_eq!(said, Err(ErrorCode::INTERNAL_ERROR));
    }
    assert_eq!(taken(&mut connection), []);
}

#[test]
fn an_end_is_one_of_a_head_or_of_a_frame_without_data() {
    let mut connection = begun();
    say(&mut connection, &[request(1, 1, &[]), request(3, 1, &[])].concat());
    connection.send_head(1, 304, b"", true).unwrap();
    connection.send_head(3, 200, b"", false).unwrap();
    assert_eq!(connection.data_head(3, 0, true), Ok([0, 0, 0, DATA, END_STREAM, 0, 0, 0, 3]));
    assert_eq!(taken(&mut connection)[0].flags, END_HEADERS | END_STREAM);
    [1, 3].into_iter().for_each(|stream| connection.release(stream));
    assert_eq!(taken(&mut connection), []);
}

#[test]
fn a_head_that_is_longer_than_a_frame_is_continued() {
    for bytes in [16_371, 16_372, 16_373, 40_000] {
        let mut connection = with_request(&[]);
        say(&mut connection, &settings(&[(HEADER_TABLE_SIZE, 0)]));
        taken(&mut connection);
        let value = "v".repeat(bytes);
        connection.send_head(1, 200, format!("a: {value}\r\n").as_bytes(), true).unwrap();
        let frames = taken(&mut connection);
        assert!(frames.iter().all(|frame| frame.payload.len() <= 16_384 && frame.stream == 1));
        let last = frames.len() - 1;
        for (place, frame) in frames.iter().enumerate() {
            let end = if place == last { END_HEADERS } else { 0 };
            let expected =
                if place == 0 { (HEADERS, END_STREAM | end) } else { (CONTINUATION, end) };
            assert_eq!((frame.kind, frame.flags), expected);
        }
        let block: Vec<_> = frames.into_iter().flat_map(|frame| frame.payload).collect();
        assert_eq!(last, (block.len() - 1) / 16_384);
        assert_eq!(
            fields(&mut Decoder::new(4_096), &block),
            [pair(":status", "200"), pair("a", &value)]
        );
    }
}

#[test]
fn a_client_that_speaks_of_its_table_is_told_once_that_it_is_not_used() {
    let mut connection = with_request(&[]);
    say(&mut connection, &settings(&[(HEADER_TABLE_SIZE, 100), (HEADER_TABLE_SIZE, 9_000)]));
    taken(&mut connection);
    for _ in 0..2 {
        connection.send_head(1, 100, b"", false).unwrap();
    }
    let first: Vec<_> = taken(&mut connection).iter().map(|frame| frame.payload[0]).collect();
    assert_eq!(first[0], 0x20);
    assert_ne!(first[1], 0x20);
    // Nothing, and more again before it is told: the smallest counts (RFC 7541 §4.2).
    let again = [settings(&[(HEADER_TABLE_SIZE, 0)]), settings(&[(HEADER_TABLE_SIZE, 4_096)])];
    say(&mut connection, &again.concat());
    taken(&mut connection);
    for is_end in [false, true] {
        let status = if is_end { 200 } else { 100 };
        connection.send_head(1, status, b"a: b\r\n", is_end).unwrap();
    }
    let blocks: Vec<_> = taken(&mut connection).into_iter().map(|frame| frame.payload).collect();
    assert_eq!((blocks[0][0], blocks[1][0] & 0xe0 == 0x20), (0x20, false));
    let mut decoder = Decoder::new(4_096);
    for (block, status) in blocks.iter().zip(["100", "200"]) {
        assert_eq!(fields(&mut decoder, block), [pair(":status", status), pair("a", "b")]);
    }
}

#[test]
fn the_first_words_are_the_settings() {
    let frames = taken(&mut Connection::new(SETTINGS_USED));
    let values: Vec<_> = frames[0].payload.chunks(6).map(|it| (it[1], number(&it[2..]))).collect();
    assert_eq!(values, [(3, 4), (4, 1_000), (6, 1_000), (8, 1), (9, 1)]);
}

#[test]
fn settings_and_pings_are_answered_in_their_order() {
    let mut connection = begun();
    let said =
        [frame(PING, 0, 0, b"12345678"), settings(&[(4, 5)]), frame(PING, 0, 0, b"abcdefgh")];
    let frames = answer(&mut connection, &said.concat());
    let kinds: Vec<_> = frames.iter().map(|it| (it.kind, it.flags, &it.payload[..])).collect();
    assert_eq!(
        kinds,
        [(PING, ACK, &b"12345678"[..]), (SETTINGS, ACK, b""), (PING, ACK, b"abcdefgh")]
    );
}

#[test]
fn a_body_is_read_to_its_trailers() {
    let mut connection = with_request(&[]);
    assert!(!connection.has_body_begun(1));
    assert_eq!(incoming(&mut connection, 1), Poll::Pending);
    say(&mut connection, &[data(1, 0, 2), padded(1, 0, 3, 9)].concat());
    assert!(connection.has_body_begun(1));
    say(&mut connection, &frame(HEADERS, 5, 1, &block(&[("a", "b")])));
    assert_eq!(incoming(&mut connection, 1), Poll::Ready(Ok(Incoming::Data(b"ddddd".to_vec()))));
    let end = |lines: &[u8]| Poll::Ready(Ok(Incoming::End(Ok(lines.to_vec()))));
    assert_eq!(incoming(&mut connection, 1), end(b"a: b\r\n"));
    assert_eq!(incoming(&mut connection, 1), end(b""));
    connection.release(1);
    assert_eq!(incoming(&mut connection, 1), Poll::Ready(Err(ErrorCode::CANCEL)));
}

#[test]
fn a_request_whose_end_is_here_behind_its_head_has_no_body() {
    let trailers = frame(HEADERS, END_HEADERS | END_STREAM, 1, &block(&[("a", "b")]));
    for (said, later, is_whole) in [
        (vec![data(1, END_STREAM, 0)], None, true),
        (vec![data(1, 0, 0), data(1, END_STREAM, 0)], None, true),
        // Padding is nothing of a body.
        (vec![padded(1, END_STREAM, 0, 9)], None, true),
        (vec![], Some(data(1, END_STREAM, 0)), false),
        (vec![data(1, 0, 0)], None, false),
        (vec![data(1, 0, 1)], None, false),
        (vec![data(1, END_STREAM, 1)], None, false),
        (vec![trailers], None, false),
        (vec![data(1, END_STREAM, 0), rst(1)], None, false),
    ] {
        let mut connection = begun();
        let case = format!("{said:?} {later:?}");
        say(&mut connection, &[request(1, 0, &[]), said.concat()].concat());
        assert_eq!(connection.next_request().unwrap().is_whole, is_whole, "{case}");
        let has_end_only = later.is_some();
        assert!(!has_end_only || !connection.has_body_begun(1));
        say(&mut connection, &later.unwrap_or_default());
        assert!(!has_end_only || connection.has_body_begun(1), "no body will come any more");
    }
}

#[test]
fn a_client_is_in_the_middle_of_fields_until_their_last_byte() {
    let mut connection = begun();
    let whole = request(1, END_STREAM, &[]);
    let (front, rest) = whole.split_at(whole.len() - 1);
    let open = frame(HEADERS, 0, 3, &request_block(&[]));
    let close = frame(CONTINUATION, END_HEADERS, 3, &[]);
    for (said, is_inside) in [(front, true), (rest, false), (&open, true), (&close, false)] {
        say(&mut connection, said);
        let stream = if said == front { 1 } else { 3 };
        assert_eq!(connection.stream_in_fields(), is_inside.then_some(stream));
    }
}
