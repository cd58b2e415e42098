//! Requests that cost a client little and a server much end the connection, are counted, and leave others alone.

use super::*;

fn start() -> Kettle {
    Kettle::start(over_http2().file("www/a", "content"))
}

/// Sends this, and expects to be told to calm down; `reason` is counted, and others are served.
fn assert_refused(kettle: &Kettle, flood: &[u8], reason: &str) {
    let mut frames = Frames::connect(kettle, &[]);
    frames.send(flood);
    assert_eq!(frames.end(), (vec![ENHANCE_YOUR_CALM], End::Orderly), "{reason}");
    kettle.wait_for_status(&format!("/total/http2_refused/{reason}"), 1);
    assert_eq!(kettle.connect(TLS13_AES_128).get("/a").body, b"content");
}

/// The odd numbers that streams have.
fn streams(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|number| 2 * number + 1)
}

/// One of each reason; the tables of `kettle_http` have all that leads to them.
#[test]
fn floods_are_refused_and_counted_by_their_reason() {
    let taken_back = |stream| [get(stream, "/a"), cancel(stream)].concat();
    let malformed = fields("GET", "/a", &[("connection", "close")]);
    let begun = frame(HEADERS, END_STREAM, 1, &fields("GET", "/a", &[]));
    for (flood, reason) in [
        (streams(300).flat_map(taken_back).collect(), "rapid_reset"),
        (
            streams(250)
                .flat_map(|it| frame(HEADERS, END_HEADERS | END_STREAM, it, &malformed))
                .collect(),
            "made_you_reset",
        ),
        (streams(1_000).flat_map(|stream| post(stream, "/a")).collect(), "made_you_reset"),
        ([begun, frame(CONTINUATION, 0, 1, &[]).repeat(1_000)].concat(), "continuation_flood"),
        (frame(SETTINGS, 0, 0, &[]).repeat(200), "settings_flood"),
        (frame(PING, 0, 0, &[0; 8]).repeat(1_100), "ping_flood"),
        (frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]).repeat(1_100), "window_update_flood"),
        (frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 16]).repeat(1_100), "priority_flood"),
        ([post(1, "/a"), frame(DATA, 0, 1, &[]).repeat(200)].concat(), "small_data_flood"),
    ] {
        let flood: Vec<u8> = flood;
        assert_refused(&start(), &flood, reason);
    }
}

/// As a browser leaves a page that it was still asking for.
#[test]
fn all_that_there_can_be_taken_back_at_once_twice_is_no_flood() {
    let kettle = start();
    let mut frames = Frames::connect(&kettle, &[]);
    let reset = |stream| [get(stream, "/a"), cancel(stream)];
    let mut read: Vec<u8> = streams(256).flat_map(reset).flatten().collect();
    read.extend(get(513, "/a"));
    frames.send(&read);
    assert_eq!(frames.body(513), b"content");
}

#[test]
fn requests_that_have_been_accepted_taken_back_too_often() {
    let kettle = start();
    let mut frames = Frames::connect(&kettle, &[(4, 0)]);
    for stream in streams(257) {
        frames.send(&get(stream, "/a"));
        while frames.next_of(HEADERS).stream != stream {}
        frames.send(&cancel(stream));
    }
    assert_eq!(frames.end(), (vec![ENHANCE_YOUR_CALM], End::Orderly));
    kettle.wait_for_status("/total/http2_refused/rapid_reset", 1);
}

#[test]
fn fields_that_grow_when_they_are_unpacked() {
    let kettle = start();
    // A field that is remembered, of almost all that may be remembered, and named again and again.
    let mut block = fields("GET", "/a", &[]);
    block.extend_from_slice(&[0x40, 1, b'x']);
    // 4,000 as an integer of seven bits and more (RFC 7541 §5.1).
    block.extend_from_slice(&[0x7f, 0xa1, 0x1e]);
    block.extend_from_slice(&[b'y'; 4_000]);
    block.extend_from_slice(&[0xbe; 10_000]);
    let mut frames = Frames::connect(&kettle, &[]);
    frames.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &block));
    let (codes, end) = frames.end();
    assert_eq!((codes, end), (vec![ENHANCE_YOUR_CALM], End::Orderly));
    kettle.wait_for_status("/total/http2_refused/calm", 1);
    assert_eq!(kettle.connect(TLS13_AES_128).get("/a").body, b"content");
}

#[test]
fn what_no_client_may_send_is_counted_by_the_rule_it_breaks() {
    let kettle = start();
    let window = frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]);
    for (sent, code, reason) in [
        (frame(DATA, 0, 1, b"of no request"), 1, "protocol_error"),
        (window, 3, "flow_control_error"),
        (frame(DATA, 0, 1, &[0; 16_385]), 6, "frame_size_error"),
    ] {
        let mut frames = Frames::connect(&kettle, &[]);
        frames.send(&sent);
        assert_eq!(frames.end().0, [code], "{reason}");
        kettle.wait_for_status(&format!("/total/http2_refused/{reason}"), 1);
    }
}
