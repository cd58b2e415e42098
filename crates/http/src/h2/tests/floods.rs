//! The acts that a client may do so often and no more.

use super::client::*;
use crate::h2::frame::*;
use crate::h2::*;

fn assert_flood(
    mut connection: Connection,
    count_max: usize,
    word: &'static str,
    mut next: impl FnMut(usize) -> Vec<u8>,
) {
    for place in 0..count_max {
        say(&mut connection, &next(place));
        assert_eq!(connection.end(), None, "{word} {place}");
    }
    say(&mut connection, &next(count_max));
    assert_eq!(connection.end(), Some(ConnectionEnd::Flood(word)));
    let before = connection.output().len();
    say(&mut connection, &next(count_max + 1));
    assert_eq!(connection.output().len(), before);
}

fn stream(place: usize) -> u32 {
    2 * u32::try_from(place).unwrap() + 1
}

#[test]
fn every_frame_that_costs_nothing_has_its_limit() {
    let ping = |_| frame(PING, 0, 0, &[0; 8]);
    assert_flood(begun(), 1_000, "ping_flood", ping);
    // The one of the preface counts.
    assert_flood(begun(), 99, "settings_flood", |_| settings(&[]));
    assert_flood(begun(), 1_000, "window_update_flood", |_| window_update(0, 1));
    assert_flood(begun(), 1_000, "priority_flood", |_| frame(PRIORITY, 0, 3, &[0; 5]));
    assert_flood(with_request(&[]), 1_002, "priority_flood", |_| frame(0xfe, 0, 3, &[]));
    assert_flood(with_request(&[]), 100, "small_data_flood", |_| data(1, 0, 0));
    assert_flood(with_request(&[]), 100, "small_data_flood", |_| padded(1, 0, 0, 0));
    assert_flood(with_request(&[]), 100, "small_data_flood", |_| padded(1, 0, 0, 200));
    let mut connection = with_request(&[]);
    (0..300).for_each(|_| say(&mut connection, &padded(1, 0, 1, 0)));
    assert_eq!(connection.end(), None);
}

/// It may give back the window of the stream and that of the connection.
#[test]
fn each_data_frame_that_a_client_is_sent_allows_it_two_windows() {
    let mut connection = with_request(&[]);
    for bytes in [1, 1, 1, 0, 0, 0, 0, 0] {
        connection.data_head(1, bytes, false).unwrap();
    }
    assert_flood(connection, 1_006, "window_update_flood", |_| window_update(0, 1));
}

#[test]
fn pings_between_requests_are_pings_all_the_same() {
    let mut connection = begun();
    for place in 0..1_001 {
        assert_eq!(connection.end(), None, "{place}");
        let said = [request(stream(place), END_STREAM, &[]), frame(PING, 0, 0, &[0; 8])];
        say(&mut connection, &said.concat());
        // Each is served before the next.
        assert_eq!(connection.next_request().unwrap().stream, stream(place));
        let is_over = connection.end().is_some();
        assert_eq!(connection.send_head(stream(place), 200, b"", true), Ok(()));
        assert_eq!(taken(&mut connection).len(), if is_over { 1 } else { 2 });
        connection.release(stream(place));
    }
    assert_eq!(connection.end(), Some(ConnectionEnd::Flood("ping_flood")));
}

#[test]
fn requests_that_are_taken_back_are_counted() {
    let next = |place| [request(stream(place), 1, &[]), rst(stream(place))].concat();
    assert_flood(begun(), 256, "rapid_reset", next);
    // A frame that is no request makes up for nothing.
    let mut connection = begun();
    say(&mut connection, &request(1, 0, &[]));
    connection.reset(1, ErrorCode::CANCEL);
    let late = frame(HEADERS, 5, 1, &block(&[("a", "b")])).repeat(500);
    say(&mut connection, &late);
    let next = |place| [request(stream(place + 1), 1, &[]), rst(stream(place + 1))].concat();
    assert_flood(connection, 257, "rapid_reset", next);
}

#[test]
fn streams_that_had_to_be_reset_are_counted() {
    let of = |wrong: fn(u32) -> Vec<u8>| {
        move |place| [request(stream(place), 0, &[]), wrong(stream(place))].concat()
    };
    for wrong in [
        (|stream| data(stream, 0, 1_001)) as fn(u32) -> Vec<u8>,
        |stream| window_update(stream, 0x7fff_ffff),
        |stream| frame(PRIORITY, 0, stream, &stream.to_be_bytes()),
        |stream| frame(HEADERS, END_HEADERS, stream, &[]),
        |stream| [data(stream, 1, 1), data(stream, 0, 1)].concat(),
    ] {
        assert_flood(begun(), 200, "made_you_reset", of(wrong));
    }
    let mut connection = begun();
    (0..4).for_each(|place| say(&mut connection, &request(stream(place), 0, &[])));
    assert_flood(connection, 200, "made_you_reset", |place| request(stream(place + 4), 1, &[]));
    // A stream that is over takes one RST, and ignores what comes then.
    let mut connection = begun();
    say(&mut connection, &request(1, 1, &[]));
    connection.release(1);
    let late = (0..300).flat_map(|_| data(1, 0, 9)).collect::<Vec<_>>();
    say(&mut connection, &late);
    assert_eq!((connection.end(), connection.left_behind.len()), (None, 1));
}

#[test]
fn streams_left_behind_are_remembered_once_and_not_without_end() {
    let mut connection = begun_with(Settings { streams_max: 1_000, ..SETTINGS_USED });
    for place in 0..600 {
        say(&mut connection, &request(stream(place), 0, &[]));
        connection.next_request();
        connection.reset(stream(place), ErrorCode::CANCEL);
        connection.release(stream(place));
        connection.reset(stream(place), ErrorCode::CANCEL);
    }
    assert_eq!((connection.left_behind.len(), connection.end()), (256, None));
    assert!(connection.streams.is_empty() && connection.streams.capacity() == 4);
    (600..605).for_each(|place| say(&mut connection, &request(stream(place), 1, &[])));
    (600..605).for_each(|place| connection.release(stream(place)));
    assert_eq!(connection.streams.capacity(), 0);
}

#[test]
fn what_the_client_has_nothing_more_to_send_of_is_not_remembered() {
    let mut connection = begun();
    say(&mut connection, &[request(1, END_STREAM, &[]), request(3, 0, &[]), rst(3)].concat());
    connection.reset(1, ErrorCode::CANCEL);
    // It goes on all the same, and is told of that.
    let frames = answer(&mut connection, &data(3, 0, 1));
    assert_eq!(resets(&frames), [(1, ErrorCode::CANCEL), (3, ErrorCode::STREAM_CLOSED)]);
    assert_eq!((connection.left_behind.len(), connection.end()), (0, None));
}

#[test]
fn blocks_without_end_are_no_fields() {
    let begin = frame(HEADERS, END_STREAM, 1, &request_block(&[]));
    let mut connection = begun();
    say(&mut connection, &begin);
    assert_flood(connection, 31, "continuation_flood", |_| frame(CONTINUATION, 0, 1, &[]));
    // Four heads of the longest, as they are packed.
    let left = 4_000 - request_block(&[]).len();
    for (bytes, end) in [(left, None), (left + 1, Some(ConnectionEnd::Flood("continuation_flood")))]
    {
        let mut connection = begun();
        say(&mut connection, &begin);
        say(&mut connection, &frame(CONTINUATION, 0, 1, &vec![0; bytes]));
        assert_eq!(connection.end(), end);
        assert_eq!(connection.block.is_none(), end.is_some());
    }
}

#[test]
fn a_small_block_that_stands_for_much_ends_the_connection() {
    let field = [&b"\x40\x01x\x7f\xe9\x06"[..], &[b'v'; 1_000]].concat();
    for is_trailer in [false, true] {
        let mut connection = with_request(&[]);
        let stream = if is_trailer { 1 } else { 3 };
        let front = if is_trailer { vec![] } else { request_block(&[]) };
        let bomb = [front, field.clone(), vec![0xbe; 20]].concat();
        say(&mut connection, &frame(HEADERS, 5, stream, &bomb));
        assert_eq!(connection.end(), Some(ConnectionEnd::Flood("calm")), "{is_trailer}");
    }
}

#[test]
fn fields_that_are_too_many_for_a_trailer_section_are_said_to_be() {
    let mut connection = begun_with(Settings { head_bytes_max: 16_384, ..SETTINGS_USED });
    say(&mut connection, &request(1, 0, &[]));
    let field = [&b"\x40\x01x\x7f\xe9\x06"[..], &[b'v'; 1_000]].concat();
    say(&mut connection, &frame(HEADERS, 5, 1, &[field, vec![0xbe; 100]].concat()));
    let incoming = incoming(&mut connection, 1);
    let too_large = Err(crate::error::RequestError::TrailersTooLarge);
    assert_eq!(incoming, std::task::Poll::Ready(Ok(Incoming::End(too_large))));
    assert_eq!(connection.end(), None);
}
