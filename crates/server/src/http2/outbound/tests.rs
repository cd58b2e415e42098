use std::task::{Context, Waker};

use super::*;
use crate::http2::frame_heads::CONTINUATION;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn has_it_all(stream: &OutboundStream) -> Option<bool> {
    match stream.poll_sent(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(has) => Some(has),
        Poll::Pending => None,
    }
}

#[test]
fn a_stream_is_sent_when_the_kernel_has_the_record_of_its_last_frame() {
    let outbound = Rc::new(Outbound::default());
    let [one, three] = [1, 3].map(|number| outbound.follow(number));
    let frames =
        [frame(HEADERS, 4, 1, b"x"), frame(DATA, 0, 1, &[7; 100]), frame(DATA, 1, 1, &[7; 50])];
    let bytes = frames.concat();
    // In two records, the second of which begins in the middle of the last frame.
    outbound.sealed(&[&bytes[..50], &bytes[50..150]], 180);
    assert_eq!((one.sealed_bytes(), one.sent_bytes()), (122, 0));
    outbound.sealed(&[&bytes[150..]], 60);
    outbound.sealed(&[&frame(HEADERS, 5, 3, b"y")], 40);
    assert_eq!((one.sealed_bytes(), one.sent_bytes()), (150, 0));
    for (queued_bytes, sent_bytes, done) in [
        (101, 0, (None, None)),
        (100, 122, (None, None)),
        (41, 122, (None, None)),
        (40, 150, (Some(true), None)),
        (0, 150, (Some(true), Some(true))),
    ] {
        outbound.sent(queued_bytes);
        assert_eq!(one.sent_bytes(), sent_bytes, "{queued_bytes}");
        assert_eq!((has_it_all(&one), has_it_all(&three)), done, "{queued_bytes}");
    }
}

#[test]
fn what_is_not_sent_at_the_end_never_is() {
    let outbound = Rc::new(Outbound::default());
    let [one, three] = [1, 3].map(|number| outbound.follow(number));
    outbound.sealed(&[&frame(DATA, 1, 1, b"x")], 32);
    outbound.sent(0);
    outbound.sealed(&[&frame(DATA, 1, 3, b"x")], 32);
    outbound.close();
    assert_eq!((has_it_all(&one), has_it_all(&three)), (Some(true), Some(false)));
}

#[test]
fn heads_of_streams_that_nobody_serves_are_the_library_s_own() {
    let outbound = Rc::new(Outbound::default());
    let one = outbound.follow(1);
    let frames = [
        frame(HEADERS, 0, 1, b"x"),
        frame(CONTINUATION, 4, 1, b"x"),
        frame(HEADERS, 5, 3, b""),
        frame(0x3, 0, 5, &[0; 4]),
    ];
    outbound.sealed(&[&frames.concat()], 100);
    assert_eq!((outbound.take_foreign(), outbound.take_foreign()), (1, 0));
    drop(one);
    outbound.sealed(&[&frame(HEADERS, 5, 1, b"x")], 100);
    assert_eq!(outbound.take_foreign(), 1);
}

#[test]
fn the_window_for_bodies_is_what_was_given_less_what_came() {
    let outbound = Rc::new(Outbound::default());
    let update = frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0x01, 0x02]);
    // That of a stream is not that of the connection.
    let own = frame(WINDOW_UPDATE, 0, 1, &[0, 1, 0, 0]);
    for piece in [update, own].concat().chunks(2) {
        outbound.sealed(&[piece], 30);
    }
    outbound.received(65_535 + 0x101, 7);
    assert_eq!(outbound.shut_ticks(8), None);
    outbound.received(1, 9);
    assert_eq!(outbound.shut_ticks(10), Some(10));
    outbound.sealed(&[&frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])], 30);
    // It was shut until a moment between these two looks.
    assert_eq!(outbound.shut_ticks(20), Some(20));
    assert_eq!(outbound.shut_ticks(30), Some(20));
}
