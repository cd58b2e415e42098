//! The ends of a connection.

use super::client::*;
use crate::h2::connection::*;
use crate::h2::frame::*;

const PROTOCOL: ErrorCode = ErrorCode::PROTOCOL_ERROR;
const SIZE: ErrorCode = ErrorCode::FRAME_SIZE_ERROR;
const FLOW: ErrorCode = ErrorCode::FLOW_CONTROL_ERROR;

fn assert_ends(mut connection: Connection, said: &[u8], code: ErrorCode, last: u32, what: &str) {
    let frames = answer(&mut connection, said);
    assert_eq!(connection.end(), Some(ConnectionEnd::Error(code)), "{what}");
    assert_eq!(goaways(&frames), [(last, code)], "{what}");
    let after =
        answer(&mut connection, &[request(99, 1, &[]), frame(PING, 0, 0, b"unheard!")].concat());
    assert!(after.is_empty(), "{what}");
    assert!(connection.next_request().is_none_or(|it| it.stream != 99), "{what}");
}

#[test]
fn what_is_no_preface_ends_the_connection() {
    for said in [&b"GET / HTTP/1.1\r\n"[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rX", b"\x16\x03\x01"] {
        assert_ends(Connection::new(SETTINGS_USED), said, PROTOCOL, 0, "preface");
    }
}

#[test]
fn nothing_comes_before_settings() {
    for first in [frame(PING, 0, 0, &[0; 8]), request(1, 1, &[]), frame(0xfe, 0, 0, b"")] {
        let said = [PREFACE.to_vec(), first].concat();
        assert_ends(Connection::new(SETTINGS_USED), &said, PROTOCOL, 0, "first frame");
    }
}

#[test]
fn frames_that_cannot_be_end_the_connection() {
    let table: &[(&str, Vec<u8>, ErrorCode)] = &[
        ("too long", frame(0xfe, 0, 0, &[0; 16_385]), SIZE),
        ("long DATA", data(1, 0, 16_385), SIZE),
        ("RST of 3", frame(RST_STREAM, 0, 1, &[0; 3]), SIZE),
        ("RST of 5", frame(RST_STREAM, 0, 1, &[0; 5]), SIZE),
        ("SETTINGS of 5", frame(SETTINGS, 0, 0, &[0; 5]), SIZE),
        ("SETTINGS ACK of 6", frame(SETTINGS, ACK, 0, &[0; 6]), SIZE),
        ("PING of 7", frame(PING, 0, 0, &[0; 7]), SIZE),
        ("PING of 0", frame(PING, 0, 0, &[]), SIZE),
        ("GOAWAY of 7", frame(GOAWAY, 0, 0, &[0; 7]), SIZE),
        ("WINDOW_UPDATE of 3", frame(WINDOW_UPDATE, 0, 0, &[0; 3]), SIZE),
        ("WINDOW_UPDATE of 5", frame(WINDOW_UPDATE, 0, 1, &[0; 5]), SIZE),
        ("padded DATA of 0", frame(DATA, PADDED, 1, &[]), SIZE),
        ("DATA on 0", data(0, 0, 1), PROTOCOL),
        ("HEADERS on 0", request(0, 0, &[]), PROTOCOL),
        ("PRIORITY on 0", frame(PRIORITY, 0, 0, &[0; 5]), PROTOCOL),
        ("RST on 0", rst(0), PROTOCOL),
        ("SETTINGS on 1", frame(SETTINGS, 0, 1, &[]), PROTOCOL),
        ("PRIORITY_UPDATE on 1", frame(PRIORITY_UPDATE, 0, 1, &[0, 0, 0, 1]), PROTOCOL),
        ("PRIORITY_UPDATE of 3", frame(PRIORITY_UPDATE, 0, 0, &[0; 3]), SIZE),
        ("PRIORITY_UPDATE of 0", frame(PRIORITY_UPDATE, 0, 0, &[]), SIZE),
        ("PRIORITY_UPDATE for 0", priority_update(0, "u=1"), PROTOCOL),
        ("PRIORITY_UPDATE for a push", priority_update(2, "u=1"), PROTOCOL),
        ("PING on 1", frame(PING, 0, 1, &[0; 8]), PROTOCOL),
        ("GOAWAY on 1", frame(GOAWAY, 0, 1, &[0; 8]), PROTOCOL),
        ("PUSH_PROMISE", frame(PUSH_PROMISE, END_HEADERS, 1, &[0; 8]), PROTOCOL),
        ("HEADERS on 2", request(2, 0, &[]), PROTOCOL),
        ("DATA on idle", data(3, 0, 1), PROTOCOL),
        ("DATA on even", data(2, 0, 1), PROTOCOL),
        ("RST on idle", rst(3), PROTOCOL),
        ("RST on even", rst(2), PROTOCOL),
        ("WINDOW_UPDATE on idle", window_update(3, 1), PROTOCOL),
        ("CONTINUATION of nothing", frame(CONTINUATION, END_HEADERS, 1, &[]), PROTOCOL),
        ("DATA of padding alone", frame(DATA, PADDED, 1, &[1]), PROTOCOL),
        ("DATA with too much padding", frame(DATA, PADDED, 1, &[9, 0, 0]), PROTOCOL),
        ("HEADERS with too much padding", frame(HEADERS, PADDED | 4, 3, &[9, 0x82]), PROTOCOL),
        ("HEADERS without its padding", frame(HEADERS, PADDED | 4, 3, &[]), PROTOCOL),
        ("HEADERS without its priority", frame(HEADERS, HAS_PRIORITY | 4, 3, &[0; 4]), PROTOCOL),
        ("no HPACK", frame(HEADERS, END_HEADERS, 3, &[0x80]), ErrorCode::COMPRESSION_ERROR),
        ("no HPACK in trailers", frame(HEADERS, 5, 1, &[0xff]), ErrorCode::COMPRESSION_ERROR),
        (
            "a table too large",
            frame(HEADERS, 5, 3, &[0x3f, 0xe2, 0x1f]),
            ErrorCode::COMPRESSION_ERROR,
        ),
        ("WINDOW_UPDATE of nothing", window_update(0, 0), PROTOCOL),
        ("WINDOW_UPDATE of nothing in a stream", window_update(1, 0), PROTOCOL),
        ("a window too large", window_update(0, 0x7fff_ffff), FLOW),
        ("ENABLE_PUSH of 2", settings(&[(ENABLE_PUSH, 2)]), PROTOCOL),
        ("ENABLE_CONNECT_PROTOCOL of 2", settings(&[(ENABLE_CONNECT_PROTOCOL, 2)]), PROTOCOL),
        ("NO_RFC7540_PRIORITIES of 2", settings(&[(NO_RFC7540_PRIORITIES, 2)]), PROTOCOL),
        ("NO_RFC7540_PRIORITIES later", settings(&[(NO_RFC7540_PRIORITIES, 1)]), PROTOCOL),
        ("small frames", settings(&[(MAX_FRAME_SIZE, 16_383)]), PROTOCOL),
        ("large frames", settings(&[(MAX_FRAME_SIZE, 1 << 24)]), PROTOCOL),
        ("a large window for all", settings(&[(INITIAL_WINDOW_SIZE, 1 << 31)]), FLOW),
        (
            "a window that becomes too large",
            [window_update(1, 1), settings(&[(INITIAL_WINDOW_SIZE, 0x7fff_ffff)])].concat(),
            FLOW,
        ),
    ];
    for (what, said, code) in table {
        assert_ends(with_request(&[]), said, *code, 1, what);
    }
    let highest =
        settings(&[(INITIAL_WINDOW_SIZE, 0x7fff_ffff), (MAX_FRAME_SIZE, (1 << 24) - 1), (7, 9)]);
    let mut connection = with_request(&[]);
    assert_eq!(answer(&mut connection, &highest).len(), 1);
    assert_eq!(connection.end(), None);
}

#[test]
fn more_than_the_window_of_the_connection_ends_it() {
    let narrow =
        Settings { connection_window_bytes: 65_535, stream_window_bytes: 1 << 20, ..SETTINGS_USED };
    let mut connection = begun_with(narrow);
    say(&mut connection, &request(1, 0, &[]));
    (0..4).for_each(|_| say(&mut connection, &data(1, 0, 16_383)));
    say(&mut connection, &data(1, 0, 3));
    assert_eq!((connection.end(), connection.shut_ticks(5)), (None, Some(5)));
    assert_ends(connection, &data(1, 0, 1), FLOW, 1, "a byte too many");
}

#[test]
fn nothing_comes_between_the_frames_of_a_block() {
    let open = frame(HEADERS, END_STREAM, 3, &request_block(&[])[..9]);
    for (what, between) in [
        ("another stream", frame(CONTINUATION, END_HEADERS, 1, &[])),
        ("PING", frame(PING, 0, 0, &[0; 8])),
        ("DATA", data(1, 0, 1)),
        ("HEADERS", request(3, 0, &[])),
        ("RST", rst(3)),
        ("an unknown kind", frame(0xfe, 0, 0, &[])),
    ] {
        assert_ends(with_request(&[]), &[open.clone(), between].concat(), PROTOCOL, 1, what);
    }
}

#[test]
fn fields_behind_the_end_of_a_forgotten_stream_end_the_connection() {
    for stream in [1, 3] {
        let mut connection = begun();
        say(&mut connection, &[request(1, END_STREAM, &[]), request(5, END_STREAM, &[])].concat());
        connection.send_head(1, 200, b"", true).unwrap();
        connection.release(1);
        taken(&mut connection);
        assert_ends(connection, &request(stream, 1, &[]), ErrorCode::STREAM_CLOSED, 5, "forgotten");
    }
}
