//! Ends that were announced, by either side.

use super::client::*;
use crate::h2::connection::LEAVING_PING;
use crate::h2::frame::*;

#[test]
fn a_client_is_asked_whether_it_knows_before_requests_are_refused() {
    let mut connection = with_request(&[]);
    connection.leave();
    connection.leave();
    let frames = taken(&mut connection);
    assert_eq!(goaways(&frames), [(STREAM_MAX, ErrorCode::NO_ERROR)]);
    assert_eq!((frames.len(), frames[1].kind, frames[1].flags), (2, PING, 0));
    assert!(!connection.is_left());
    // It was on its way. Another ping's answer is none.
    let said = [request(3, 1, &[]), frame(PING, ACK, 0, b"another.")].concat();
    assert_eq!(answer(&mut connection, &said), []);
    assert_eq!(connection.next_request().unwrap().stream, 3);
    let known = frame(PING, ACK, 0, LEAVING_PING);
    let frames = answer(&mut connection, &[known.clone(), known, request(5, 1, &[])].concat());
    assert_eq!(goaways(&frames), [(3, ErrorCode::NO_ERROR)]);
    assert_eq!(resets(&frames), [(5, ErrorCode::REFUSED_STREAM)]);
    assert!(connection.is_left() && connection.next_request().is_none());
    connection.send_head(1, 200, b"", true).unwrap();
    connection.close(ErrorCode::NO_ERROR);
    connection.close(ErrorCode::INTERNAL_ERROR);
    // The one that was refused was not served.
    assert_eq!(goaways(&taken(&mut connection)), [(3, ErrorCode::NO_ERROR)]);
}

#[test]
fn an_answer_that_nobody_asked_for_is_none() {
    let mut connection = begun();
    assert_eq!(answer(&mut connection, &frame(PING, ACK, 0, LEAVING_PING)), []);
    assert!(!connection.is_left());
}

#[test]
fn a_client_that_leaves_is_served_what_it_asked_for() {
    let mut connection = with_request(&[]);
    assert!(!connection.is_left_by_client());
    assert_eq!(answer(&mut connection, &frame(GOAWAY, 0, 0, b"\0\0\0\0\0\0\0\0why")), []);
    assert!(connection.is_left_by_client());
    assert_eq!(connection.send_head(1, 200, b"", true), Ok(()));
    // It may say so again, and what it asks for between is served: only pushes were announced to end (RFC 9113 §6.8).
    taken(&mut connection);
    let goodbye = frame(GOAWAY, 0, 0, &[0; 8]);
    let said = [goodbye.clone(), request(3, END_STREAM, &[]), goodbye].concat();
    assert_eq!((answer(&mut connection, &said), connection.end()), (vec![], None));
    assert_eq!(connection.next_request().unwrap().stream, 3);
}

#[test]
fn nothing_is_said_or_heard_behind_the_last_word() {
    for is_abandoned in [false, true] {
        let mut connection = with_request(&[]);
        say(&mut connection, &data(1, 0, 9));
        if is_abandoned {
            connection.abandon()
        } else {
            connection.close(ErrorCode::NO_ERROR)
        }
        assert_eq!(taken(&mut connection).len(), usize::from(!is_abandoned));
        assert_eq!(connection.send_head(1, 200, b"", true), Err(ErrorCode::CANCEL));
        assert_eq!(connection.data_head(1, 0, true), Err(ErrorCode::CANCEL));
        assert_eq!(connection.room(1), Err(ErrorCode::CANCEL));
        assert_eq!(incoming(&mut connection, 1), std::task::Poll::Ready(Err(ErrorCode::CANCEL)));
        connection.leave();
        connection.reset(1, ErrorCode::CANCEL);
        connection.release(1);
        assert_eq!(
            answer(&mut connection, &[frame(PING, 0, 0, &[0; 8]), request(3, 1, &[])].concat()),
            []
        );
        assert!(connection.next_request().is_none());
    }
}

#[test]
fn a_block_of_fields_is_known_from_its_head_to_its_end() {
    let mut connection = begun();
    let said = [
        frame(HEADERS, 0, 1, &request_block(&[])),
        frame(CONTINUATION, END_HEADERS, 1, &[]),
        data(1, END_STREAM, 3),
        frame(0xfe, 0, 0, b""),
    ];
    for bytes in said {
        for (place, byte) in bytes.iter().enumerate() {
            say(&mut connection, &[*byte]);
            let is_last = place + 1 == bytes.len();
            let is_block = bytes[3] == HEADERS && is_last;
            let is_continued = bytes[3] == CONTINUATION && !is_last;
            // A head of nine bytes says that they begin.
            let is_begun = bytes[3] == HEADERS && place >= 8 && !is_last;
            let is_in_fields = is_block || is_begun || is_continued;
            assert_eq!(connection.stream_in_fields(), is_in_fields.then_some(1));
        }
    }
    assert_eq!(connection.end(), None);
}

#[test]
fn what_is_not_whole_at_the_clients_end_is_reset_and_nothing_else() {
    let mut connection = begun();
    say(&mut connection, &request(1, END_STREAM, &[]));
    say(&mut connection, &[request(3, 0, &[]), request(5, 0, &[])].concat());
    connection.send_head(5, 200, b"", true).unwrap();
    // Half a frame.
    say(&mut connection, &request(7, END_STREAM, &[])[..12]);
    taken(&mut connection);
    connection.end_input();
    let said = taken(&mut connection);
    assert_eq!(resets(&said), [(3, ErrorCode::CANCEL), (5, ErrorCode::NO_ERROR)]);
    assert_eq!(incoming(&mut connection, 3), std::task::Poll::Ready(Err(ErrorCode::CANCEL)));
    assert_eq!(connection.send_head(1, 200, b"", true), Ok(()));
}
