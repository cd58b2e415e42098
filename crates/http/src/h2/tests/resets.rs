//! Frames that end a stream, and leave the others as they are.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Context;

use super::client::*;
use super::priorities::Woken;
use crate::h2::connection::*;
use crate::h2::frame::*;
use crate::h2::*;

type Lines = Vec<(&'static str, &'static str)>;

const PROTOCOL: ErrorCode = ErrorCode::PROTOCOL_ERROR;
const CLOSED: ErrorCode = ErrorCode::STREAM_CLOSED;

#[test]
fn what_is_wrong_in_a_stream_ends_that_one() {
    let length = |bytes: &'static str| vec![("content-length", bytes)];
    let trailers = |flags: u8, lines: &[(&str, &str)]| frame(HEADERS, 4 | flags, 1, &block(lines));
    let circular = |stream, kind, flags, rest: Vec<u8>| {
        frame(kind, flags, stream, &[vec![0x80, 0, 0, 1, 7], rest].concat())
    };
    let table: Vec<(&str, Lines, Vec<u8>, ErrorCode)> = vec![
        ("too long", length("3"), data(1, 0, 4), PROTOCOL),
        ("too long with padding", length("3"), padded(1, 0, 4, 9), PROTOCOL),
        ("too long at last", length("3"), [data(1, 0, 2), data(1, 1, 2)].concat(), PROTOCOL),
        ("too short", length("3"), data(1, END_STREAM, 2), PROTOCOL),
        ("too short for all its padding", length("3"), padded(1, END_STREAM, 2, 1), PROTOCOL),
        ("nothing", length("3"), data(1, END_STREAM, 0), PROTOCOL),
        (
            "too short with trailers",
            length("3"),
            [data(1, 0, 2), trailers(1, &[("a", "b")])].concat(),
            PROTOCOL,
        ),
        ("trailers without the end", vec![], trailers(0, &[("a", "b")]), PROTOCOL),
        ("trailers with a path", vec![], trailers(1, &[(":path", "/")]), PROTOCOL),
        ("trailers with a connection", vec![], trailers(1, &[("connection", "b")]), PROTOCOL),
        (
            "trailers that depend on themselves",
            vec![],
            circular(1, HEADERS, 0x25, vec![]),
            PROTOCOL,
        ),
        ("PRIORITY on itself", vec![], circular(1, PRIORITY, 0, vec![]), PROTOCOL),
        (
            "PRIORITY of 4",
            vec![],
            frame(PRIORITY, 0, 1, &[0, 0, 0, 1]),
            ErrorCode::FRAME_SIZE_ERROR,
        ),
        ("PRIORITY of 6", vec![], frame(PRIORITY, 0, 1, &[0; 6]), ErrorCode::FRAME_SIZE_ERROR),
        ("DATA behind the end", vec![], [data(1, 1, 1), data(1, 0, 1)].concat(), CLOSED),
        ("HEADERS behind the end", vec![], [data(1, 1, 1), trailers(1, &[])].concat(), CLOSED),
        (
            "trailers behind trailers",
            vec![],
            [trailers(1, &[("a", "b")]), trailers(1, &[("a", "b")])].concat(),
            CLOSED,
        ),
        ("DATA behind its own RST", vec![], [rst(1), data(1, 0, 1)].concat(), CLOSED),
        ("HEADERS behind its own RST", vec![], [rst(1), trailers(1, &[])].concat(), CLOSED),
        ("beyond its window", vec![], data(1, 0, 1_001), ErrorCode::FLOW_CONTROL_ERROR),
        (
            "beyond its window with padding",
            vec![],
            padded(1, 0, 900, 100),
            ErrorCode::FLOW_CONTROL_ERROR,
        ),
        (
            "a window too large",
            vec![],
            window_update(1, 0x7fff_ffff),
            ErrorCode::FLOW_CONTROL_ERROR,
        ),
    ];
    for (what, more, said, code) in table {
        let mut connection = with_request(&more);
        say(&mut connection, &request(3, 0, &[]));
        let frames = answer(&mut connection, &said);
        assert_eq!(resets(&frames), [(1, code)], "{what}");
        assert_eq!((connection.end(), goaways(&frames)), (None, vec![]), "{what}");
        assert_eq!(connection.send_head(1, 200, b"", true), Err(ErrorCode::CANCEL), "{what}");
        say(&mut connection, &data(3, 0, 7));
        assert_eq!(read(&mut connection, 3), 7, "{what}");
        assert_eq!(connection.send_head(3, 200, b"", true), Ok(()), "{what}");
    }
}

#[test]
fn a_length_that_is_right_is_no_mistake() {
    let trailers = frame(HEADERS, 5, 1, &block(&[("a", "b")]));
    for said in [
        data(1, END_STREAM, 3),
        padded(1, END_STREAM, 3, 9),
        [padded(1, 0, 1, 0), data(1, 0, 2), data(1, END_STREAM, 0)].concat(),
        [data(1, 0, 3), trailers].concat(),
    ] {
        let mut connection = with_request(&[("content-length", "3")]);
        assert_eq!(resets(&answer(&mut connection, &said)), []);
        assert_eq!(read(&mut connection, 1), 3);
    }
}

#[test]
fn a_request_that_is_none_is_said_to_be_none() {
    let circular = [&[0, 0, 0, 1, 7][..], &request_block(&[])].concat();
    for (what, said) in [
        ("no fields", frame(HEADERS, 5, 1, &[])),
        (
            "an upper-case name",
            frame(HEADERS, 5, 1, &[&request_block(&[])[..], b"\0\x01A\x01b"].concat()),
        ),
        ("depends on itself", frame(HEADERS, 5 | HAS_PRIORITY, 1, &circular)),
        ("a length and no body", request(1, END_STREAM, &[("content-length", "1")])),
    ] {
        let mut connection = begun();
        say(&mut connection, &said);
        let request = connection.next_request().unwrap();
        assert_eq!((request.outcome, request.stream), (Err(FieldsError::Malformed), 1), "{what}");
        assert!(connection.next_request().is_none());
        connection.reset(1, PROTOCOL);
        connection.release(1);
        assert_eq!(resets(&taken(&mut connection)), [(1, PROTOCOL)], "{what}");
    }
    let mut connection = begun();
    say(&mut connection, &request(1, END_STREAM, &[("a", &"b".repeat(1_000))]));
    assert_eq!(connection.next_request().unwrap().outcome, Err(FieldsError::TooLarge));
}

#[test]
fn more_streams_than_there_may_be_are_refused() {
    let mut connection = begun();
    (0..4).for_each(|place| say(&mut connection, &request(2 * place + 1, 0, &[])));
    let refused = [(9, ErrorCode::REFUSED_STREAM)];
    assert_eq!(resets(&answer(&mut connection, &request(9, 0, &[]))), refused);
    assert_eq!(std::iter::from_fn(|| connection.next_request()).count(), 4);
    // The frames of it on their way are expected.
    assert_eq!(resets(&answer(&mut connection, &data(9, 1, 10))), []);
    say(&mut connection, &data(1, END_STREAM, 1));
    connection.send_head(1, 200, b"", true).unwrap();
    assert_eq!(resets(&answer(&mut connection, &request(11, 0, &[]))), []);
    assert_eq!(connection.next_request().unwrap().stream, 11);
    say(&mut connection, &rst(3));
    assert_eq!(resets(&answer(&mut connection, &request(13, 0, &[]))), []);
    assert_eq!(resets(&answer(&mut connection, &request(15, 0, &[]))).len(), 1);
    connection.release(3);
    assert_eq!(connection.end(), None);
}

#[test]
fn who_is_released_before_the_end_is_reset_once() {
    for (is_answered, is_whole, expected) in [
        (true, true, vec![]),
        (true, false, vec![(1, ErrorCode::NO_ERROR)]),
        (false, true, vec![(1, ErrorCode::CANCEL)]),
        (false, false, vec![(1, ErrorCode::CANCEL)]),
    ] {
        let mut connection = begun();
        say(&mut connection, &request(1, u8::from(is_whole), &[]));
        if is_answered {
            connection.send_head(1, 200, b"", true).unwrap();
        }
        connection.release(1);
        connection.release(1);
        assert_eq!(resets(&taken(&mut connection)), expected);
    }
}

#[test]
fn a_window_that_overflowed_is_that_of_its_stream_alone() {
    let mut connection = with_request(&[]);
    say(&mut connection, &window_update(1, 0x7fff_ffff));
    say(
        &mut connection,
        &[window_update(1, 9), settings(&[(INITIAL_WINDOW_SIZE, 65_536)])].concat(),
    );
    assert_eq!(connection.end(), None);
}

#[test]
fn a_stream_that_the_client_took_back_is_not_reset_as_well() {
    let mut connection = with_request(&[]);
    say(&mut connection, &rst(1));
    connection.reset(1, ErrorCode::CANCEL);
    assert_eq!(taken(&mut connection), []);
}

#[test]
fn whoever_waits_for_a_reset_learns_of_it_and_of_the_end_of_the_connection() {
    let woken = Arc::new(Woken::default());
    let waker = Arc::clone(&woken).into();
    let mut context = Context::from_waker(&waker);
    let mut is_reset = |it: &mut Connection| it.poll_reset(1, &mut context).is_ready();
    let mut connection = with_request(&[]);
    assert!(!is_reset(&mut connection));
    connection.wake(1);
    assert!(woken.0.swap(false, Ordering::Relaxed));
    assert!(!is_reset(&mut connection));
    say(&mut connection, &rst(1));
    assert!(woken.0.load(Ordering::Relaxed) && is_reset(&mut connection));
    let mut connection = with_request(&[]);
    connection.abandon();
    assert!(is_reset(&mut connection));
    connection.release(1);
    assert!(is_reset(&mut connection));
}
