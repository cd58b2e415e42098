//! Frames that are of no effect, and cost their client nothing.

use super::client::*;
use crate::h2::frame::*;

#[test]
fn frames_that_were_on_their_way_to_a_stream_that_was_reset_are_ignored() {
    for is_released in [false, true] {
        let mut connection = with_request(&[("content-length", "5")]);
        connection.reset(1, ErrorCode::CANCEL);
        if is_released {
            connection.release(1);
        }
        assert_eq!(resets(&taken(&mut connection)), [(1, ErrorCode::CANCEL)]);
        let late = [
            data(1, 0, 900),
            padded(1, 0, 900, 9),
            window_update(1, 7),
            frame(HEADERS, 5, 1, &block(&[("a", "b")])),
            rst(1),
            data(1, 0, 9),
        ];
        assert_eq!(resets(&answer(&mut connection, &late.concat())), []);
        assert_eq!(connection.end(), None);
    }
}

#[test]
fn windows_and_resets_of_streams_that_are_over_are_ignored() {
    let mut connection = begun();
    say(&mut connection, &request(1, END_STREAM, &[]));
    connection.send_head(1, 200, b"", true).unwrap();
    for is_released in [false, true] {
        if is_released {
            connection.release(1);
        }
        taken(&mut connection);
        let late = [window_update(1, 7), rst(1), window_update(1, 7), rst(1)].concat();
        assert_eq!(answer(&mut connection, &late), []);
        assert_eq!(connection.end(), None);
    }
}

#[test]
fn priorities_and_frames_that_nobody_knows_may_be_about_anything() {
    let mut connection = with_request(&[]);
    for stream in [1, 2, 3, 0x7fff_fffe] {
        assert_eq!(answer(&mut connection, &frame(PRIORITY, 0xff, stream, &[0, 0, 0, 9, 1])), []);
    }
    for stream in [0, 1, 2, 9] {
        assert_eq!(answer(&mut connection, &frame(0xfe, 0xff, stream, &[7; 300])), []);
    }
    assert_eq!(connection.end(), None);
}

#[test]
fn a_priority_that_is_wrong_about_a_stream_to_come_does_not_spoil_it() {
    let mut connection = begun();
    say(&mut connection, &frame(PRIORITY, 0, 5, &[0, 0, 0, 5, 1]));
    say(&mut connection, &request(5, END_STREAM, &[]));
    assert_eq!(connection.next_request().unwrap().outcome, Ok(()));
    connection.send_head(5, 200, b"", true).unwrap();
    connection.release(5);
    taken(&mut connection);
    let late = answer(&mut connection, &data(5, 0, 1));
    assert_eq!(resets(&late), [(5, ErrorCode::STREAM_CLOSED)]);
}

#[test]
fn the_highest_bit_of_a_stream_and_flags_that_nobody_knows_mean_nothing() {
    let mut connection = begun();
    let mut said = request(1, END_STREAM | 0x82, &[]);
    said[5] |= 0x80;
    assert_eq!(answer(&mut connection, &said), []);
    assert_eq!(connection.next_request().unwrap().stream, 1);
}

#[test]
fn fields_of_ignored_streams_are_unpacked_for_those_that_follow() {
    let mut connection = with_request(&[]);
    connection.reset(1, ErrorCode::CANCEL);
    // A field that is kept, in fields that nobody wants.
    say(&mut connection, &frame(HEADERS, 5, 1, b"\x40\x01x\x01y"));
    say(&mut connection, &frame(HEADERS, 5, 3, &[request_block(&[]), vec![0xbe]].concat()));
    let text = connection.next_request().unwrap().text;
    assert!(text.lines.ends_with(b"x: y\r\n"));
}

#[test]
fn acknowledgements_are_not_answered() {
    let mut connection = begun();
    let said = [frame(SETTINGS, ACK, 0, &[]), frame(PING, ACK, 0, b"anything")].concat();
    assert_eq!(answer(&mut connection, &said), []);
}
