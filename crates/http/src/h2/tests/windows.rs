//! Windows in both directions: what is taken from them comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use proptest::collection::vec;
use proptest::prelude::*;

use super::client::*;
use crate::h2::connection::*;
use crate::h2::frame::*;
use crate::h2::stream::Window;
use crate::h2::*;

#[test]
fn whatever_becomes_of_a_body_the_window_of_the_connection_comes_back() {
    type Act = fn(&mut Connection);
    let acts: [(&str, Act); 9] = [
        ("read", |it| assert!(read(it, 1) > 0)),
        ("reset", |it| it.reset(1, ErrorCode::CANCEL)),
        ("released", |it| it.release(1)),
        ("answered and released", |it| {
            it.send_head(1, 200, b"", true).unwrap();
            it.release(1);
        }),
        ("taken back", |it| say(it, &rst(1))),
        ("taken back and released", |it| {
            say(it, &rst(1));
            it.release(1);
        }),
        ("ended and released", |it| {
            say(it, &data(1, END_STREAM, 200));
            it.send_head(1, 200, b"", true).unwrap();
            it.release(1);
        }),
        ("wrong", |it| say(it, &data(1, 0, 300))),
        ("wrong at its end", |it| say(it, &padded(1, END_STREAM, 1, 9))),
    ];
    for (what, act) in acts {
        let mut connection = with_request(&[("content-length", "600")]);
        say(
            &mut connection,
            &[data(1, 0, 300), padded(1, 0, 100, 50), padded(1, 0, 0, 9)].concat(),
        );
        act(&mut connection);
        say(&mut connection, &[data(1, 0, 10), padded(1, 0, 10, 10)].concat());
        connection.release(1);
        assert_eq!(connection.end(), None, "{what}");
        assert_eq!(window_bytes(&connection), 70_000, "{what}");
    }
}

#[test]
fn what_was_given_out_takes_room_until_the_next_is_asked_for() {
    let mut connection = with_request(&[]);
    let given = |it: &mut Connection| {
        say(it, &data(1, 0, 1_000));
        matches!(incoming(it, 1), Poll::Ready(Ok(Incoming::Data(data))) if data.len() == 1_000)
    };
    assert!(given(&mut connection));
    assert_eq!((opened(&taken(&mut connection), 1), window_bytes(&connection)), (0, 69_000));
    assert!(incoming(&mut connection, 1).is_pending());
    assert_eq!((opened(&taken(&mut connection), 1), window_bytes(&connection)), (1_000, 70_000));
    // Or nobody serves it any more.
    for act in [
        |it: &mut Connection| it.release(1),
        |it: &mut Connection| it.reset(1, ErrorCode::CANCEL),
        |it: &mut Connection| say(it, &rst(1)),
    ] {
        let mut connection = with_request(&[]);
        assert!(given(&mut connection));
        act(&mut connection);
        assert_eq!(window_bytes(&connection), 70_000);
        connection.release(1);
        assert_eq!(window_bytes(&connection), 70_000);
    }
}

#[test]
fn a_stream_that_ends_in_the_middle_of_a_frame_keeps_nothing() {
    for cut in 1..40 {
        for act in [
            |it: &mut Connection| it.reset(1, ErrorCode::CANCEL),
            |it: &mut Connection| it.release(1),
        ] {
            let mut connection = with_request(&[]);
            let said = padded(1, 0, 20, 10);
            let (front, rest) = said.split_at(cut);
            say(&mut connection, front);
            act(&mut connection);
            say(&mut connection, rest);
            connection.release(1);
            assert_eq!((connection.end(), window_bytes(&connection)), (None, 70_000), "{cut}");
        }
    }
}

#[test]
fn windows_open_when_half_of_them_is_used_up() {
    let mut connection = with_request(&[]);
    say(&mut connection, &data(1, 0, 300));
    assert_eq!(read(&mut connection, 1), 300);
    assert_eq!(opened(&taken(&mut connection), 1), 0);
    say(&mut connection, &data(1, 0, 200));
    assert_eq!(read(&mut connection, 1), 200);
    assert_eq!(opened(&taken(&mut connection), 1), 500);
    // All of it can be used.
    assert_eq!(resets(&answer(&mut connection, &data(1, 0, 1_000))), []);
    assert_eq!(
        resets(&answer(&mut connection, &data(1, 0, 1))),
        [(1, ErrorCode::FLOW_CONTROL_ERROR)]
    );
    // A third that is gone is half of what is left.
    for (bytes, expected) in [(299, 0), (300, 300)] {
        let mut connection = begun_with(Settings { stream_window_bytes: 900, ..SETTINGS_USED });
        say(&mut connection, &[request(1, 0, &[]), data(1, 0, bytes)].concat());
        assert_eq!(read(&mut connection, 1), bytes);
        assert_eq!(opened(&taken(&mut connection), 1), expected);
    }
}

/// A task that waits for a body looks once a second, and must not take a client for slow that had no window in between.
#[test]
fn a_window_that_was_shut_and_opened_again_is_told_of_once() {
    let narrow =
        Settings { connection_window_bytes: 65_535, stream_window_bytes: 1 << 20, ..SETTINGS_USED };
    let mut connection = begun_with(narrow);
    say(&mut connection, &[request(1, 0, &[]), data(1, 0, 15)].concat());
    assert_eq!(connection.shut_ticks(3), None);
    (0..4).for_each(|_| say(&mut connection, &data(1, 0, 16_380)));
    assert_eq!(read(&mut connection, 1), 65_535);
    assert_eq!([5, 9].map(|ticks| connection.shut_ticks(ticks)), [Some(5); 2]);
}

#[test]
fn a_window_opens_when_what_is_gone_is_half_of_what_is_left() {
    let mut window = Window::new(999);
    assert!(window.take(333));
    assert_eq!([window.release(332), window.release(1)], [None, Some(333)]);
}

#[test]
fn the_first_words_open_the_window_of_the_connection() {
    for (bytes, more) in [(70_000, 70_000 - 65_535), (65_535, 0)] {
        let settings_used = Settings { connection_window_bytes: bytes, ..SETTINGS_USED };
        let frames = taken(&mut Connection::new(settings_used));
        assert_eq!((frames[0].kind, opened(&frames, 0)), (SETTINGS, more));
        assert_eq!(frames.len(), if more > 0 { 2 } else { 1 });
    }
}

#[test]
fn room_is_what_both_windows_have() {
    let mut connection = with_request(&[]);
    assert_eq!(connection.room(1), Ok(Room::Bytes(65_535)));
    connection.data_head(1, 65_535, false).unwrap();
    assert_eq!(connection.room(1), Ok(Room::StreamShut));
    say(&mut connection, &window_update(1, 10));
    assert_eq!(connection.room(1), Ok(Room::ConnectionShut));
    say(&mut connection, &window_update(0, 4));
    assert_eq!(connection.room(1), Ok(Room::Bytes(4)));
    // A stream that is gone takes nothing.
    say(&mut connection, &[request(3, END_STREAM, &[]), rst(1)].concat());
    assert_eq!(connection.data_head(1, 4, false), Err(ErrorCode::CANCEL));
    connection.release(1);
    assert_eq!(connection.data_head(1, 4, false), Err(ErrorCode::CANCEL));
    assert_eq!(connection.room(3), Ok(Room::Bytes(4)));
}

/// The event between a look at the windows and what is sent for it.
#[derive(Clone, Debug)]
enum Between {
    Settings(u32),
    Update(u32, u32),
    Look(u32),
    Send(u32, bool),
}

fn between() -> impl Strategy<Value = Between> {
    let stream = || prop_oneof![Just(1_u32), Just(3)];
    prop_oneof![
        (0_u32..3_000).prop_map(Between::Settings),
        (prop_oneof![Just(0), stream()], 1_u32..3_000).prop_map(|it| Between::Update(it.0, it.1)),
        stream().prop_map(Between::Look),
        (stream(), any::<bool>()).prop_map(|it| Between::Send(it.0, it.1)),
    ]
}

proptest! {
    #[test]
    fn no_data_goes_beyond_the_windows_whatever_the_client_says_after_they_were_looked_at(
        acts in vec(between(), 0..100),
    ) {
        let mut connection = with_request(&[]);
        say(&mut connection, &request(3, END_STREAM, &[]));
        // As the client counts: its windows, and what it was told of each stream's last.
        let mut initial = 65_535_i64;
        let mut all = 65_535_i64;
        let mut windows = [65_535_i64; 2];
        let mut looked = [0_usize; 2];
        for act in acts {
            match act {
                Between::Settings(bytes) => {
                    say(&mut connection, &settings(&[(INITIAL_WINDOW_SIZE, bytes)]));
                    windows = windows.map(|window| window + i64::from(bytes) - initial);
                    initial = bytes.into();
                }
                Between::Update(stream, more) => {
                    say(&mut connection, &window_update(stream, more));
                    match stream {
                        0 => all += i64::from(more),
                        _ => windows[stream as usize / 2] += i64::from(more),
                    }
                }
                Between::Look(stream) => {
                    looked[stream as usize / 2] = match connection.room(stream) {
                        Ok(Room::Bytes(bytes)) => bytes,
                        _ => 0,
                    };
                }
                Between::Send(stream, is_half) => {
                    let place = stream as usize / 2;
                    let bytes = looked[place] / if is_half { 2 } else { 1 };
                    let open = all.min(windows[place]);
                    let is_sent = connection.data_head(stream, bytes, false).is_ok();
                    prop_assert_eq!(is_sent, bytes == 0 || bytes as i64 <= open);
                    if is_sent {
                        all -= bytes as i64;
                        windows[place] -= bytes as i64;
                    }
                }
            }
        }
    }
}

#[test]
fn a_window_can_be_less_than_nothing_until_it_opens_again() {
    let mut connection = with_request(&[]);
    connection.data_head(1, 1_000, false).unwrap();
    say(&mut connection, &settings(&[(INITIAL_WINDOW_SIZE, 900)]));
    assert_eq!(connection.room(1), Ok(Room::StreamShut));
    // An end needs no window.
    assert!(connection.data_head(1, 0, false).is_ok());
    say(&mut connection, &window_update(1, 100));
    assert_eq!(connection.room(1), Ok(Room::StreamShut));
    say(&mut connection, &window_update(1, 1));
    assert_eq!(connection.room(1), Ok(Room::Bytes(1)));
    say(&mut connection, &settings(&[(INITIAL_WINDOW_SIZE, 0), (INITIAL_WINDOW_SIZE, 65_535)]));
    assert_eq!(connection.room(1), Ok(Room::Bytes(64_535)));
    say(&mut connection, &[settings(&[(INITIAL_WINDOW_SIZE, 5)]), request(3, 1, &[])].concat());
    assert_eq!(connection.room(3), Ok(Room::Bytes(5)));
}

#[test]
fn a_window_holds_as_much_as_there_can_be_and_no_byte_more() {
    const MOST: u32 = 0x7fff_ffff;
    let grown = [window_update(1, 1), settings(&[(INITIAL_WINDOW_SIZE, MOST - 1)])].concat();
    let own = settings(&[(INITIAL_WINDOW_SIZE, MOST)]);
    let overflow = (1, ErrorCode::FLOW_CONTROL_ERROR);
    // Each fills a window to the brim; a stream's error is its own.
    for (full, more, reset) in [
        (window_update(0, MOST - 65_535), window_update(0, 1), None),
        (window_update(1, MOST - 65_535), window_update(1, 1), Some(overflow)),
        (own, window_update(1, 1), Some(overflow)),
        (grown, window_update(1, 1), Some(overflow)),
    ] {
        let mut connection = with_request(&[]);
        assert_eq!((resets(&answer(&mut connection, &full)), connection.end()), (vec![], None));
        let mut in_one_read = with_request(&[]);
        let said = answer(&mut in_one_read, &[full, more.clone()].concat());
        let later = answer(&mut connection, &more);
        assert_eq!(resets(&said), resets(&later));
        assert_eq!(
            (resets(&later), connection.end()),
            match reset {
                Some(reset) => (vec![reset], None),
                None => (vec![], Some(ConnectionEnd::Error(ErrorCode::FLOW_CONTROL_ERROR))),
            }
        );
    }
    // Less than nothing, and all that there can be behind it.
    let mut connection = with_request(&[]);
    connection.data_head(1, 65_535, false).unwrap();
    let shrunk = [settings(&[(INITIAL_WINDOW_SIZE, 0)]), window_update(1, MOST)].concat();
    assert_eq!(resets(&answer(&mut connection, &shrunk)), []);
    assert_eq!(connection.room(1), Ok(Room::ConnectionShut));
    assert_eq!(resets(&answer(&mut connection, &window_update(1, 65_535))), []);
    assert_eq!(resets(&answer(&mut connection, &window_update(1, 1))), [overflow]);
}

/// A frame has room for 2,730 of them: only the largest and the last are looked at.
#[test]
fn the_last_window_of_a_frame_counts_and_none_before_it_may_be_too_large() {
    const MOST: u32 = 0x7fff_ffff;
    let window = |bytes: u32| (INITIAL_WINDOW_SIZE, bytes);
    let wrong = (ENABLE_PUSH, 2);
    let error = |code| Some(ConnectionEnd::Error(code));
    let overflow = error(ErrorCode::FLOW_CONTROL_ERROR);
    let mut many: Vec<_> = (1..2_730).map(|place| window(place % 7 * 9_000)).collect();
    many.push(window(500));
    for (said, end) in [
        (many, None),
        (vec![window(70_000), window(0), window(500)], None),
        (vec![window(MOST - 50), window(500)], None),
        (vec![window(MOST - 49), window(500)], overflow),
        (vec![window(500), window(MOST + 1), window(500)], overflow),
        // The first error is told.
        (vec![window(MOST - 49), window(500), wrong], overflow),
        (vec![window(MOST - 50), wrong, window(MOST)], error(ErrorCode::PROTOCOL_ERROR)),
    ] {
        let mut connection = with_request(&[]);
        say(&mut connection, &[request(3, END_STREAM, &[]), window_update(3, 50)].concat());
        say(&mut connection, &settings(&said));
        assert_eq!(connection.end(), end, "{said:?}");
        if end.is_none() {
            say(&mut connection, &request(5, END_STREAM, &[]));
            for (stream, bytes) in [(1, 500), (3, 550), (5, 500)] {
                assert_eq!(connection.room(stream), Ok(Room::Bytes(bytes)));
            }
        }
    }
}

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn whoever_waits_is_woken_by_what_the_client_says() {
    type Act = fn(&mut Connection);
    let acts: [(&str, Act); 9] = [
        ("data", |it| say(it, &data(1, 0, 1))),
        ("the end", |it| say(it, &data(1, END_STREAM, 0))),
        ("trailers", |it| say(it, &frame(HEADERS, 5, 1, &block(&[("a", "b")])))),
        ("taken back", |it| say(it, &rst(1))),
        ("its window", |it| say(it, &window_update(1, 1))),
        ("all windows", |it| say(it, &settings(&[(INITIAL_WINDOW_SIZE, 70_000)]))),
        ("wrong", |it| say(it, &data(1, 0, 2_000))),
        ("the end of the connection", |it| say(it, &frame(PING, 0, 1, b"wrong..."))),
        ("closed", |it| it.close(ErrorCode::NO_ERROR)),
    ];
    for (what, act) in acts {
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        let mut connection = with_request(&[]);
        assert_eq!(connection.poll_incoming(1, &mut context), Poll::Pending);
        assert_eq!(connection.poll_reset(1, &mut context), Poll::Pending);
        connection.wait(1, &context);
        act(&mut connection);
        assert_eq!(count.0.load(Ordering::Relaxed), 1, "{what}");
    }
}
