//! The beginning of a connection: what comes with the end of the handshake, and what was not agreed on.

use rustls::ClientConnection;

use super::*;

const BYTES: usize = 70_000;

fn setup() -> Setup {
    over_http2().sizes(&[10, BYTES])
}

/// A client that offers HTTP/2 and has said nothing yet.
fn unbegun(kettle: &Kettle) -> Frames {
    Frames { client: Dialer::suite(TLS13_AES_128).alpn(&["h2"]).begin(kettle.address()) }
}

/// All that a client says who asks for two files and has room for both.
fn said() -> Vec<u8> {
    let [one, all] = [3, 0].map(|stream| update(stream, 70_000));
    let requests = [get(1, "/10"), get(3, "/70000"), one, all].concat();
    [PREFACE, &frame(SETTINGS, 0, 0, &[]), &requests].concat()
}

/// Reads both files, in any order.
fn expect_both(frames: &mut Frames, what: &str) {
    let bodies = frames.bodies([1, 3]);
    assert_eq!(bodies[0], content(10), "{what}");
    assert_same(&bodies[1], &content(BYTES), what);
}

#[test]
fn what_comes_with_the_last_message_of_the_handshake_is_not_lost() {
    for tickets in [0, 2] {
        let kettle = Kettle::start(setup().set("tls", &format!("tickets = {tickets}")));
        let all = said();
        let preface_bytes = PREFACE.len() + 9;
        // Cut at each byte of what is said first, and behind it in the middle of a frame, and of none.
        for cut in (0..=preface_bytes).chain([preface_bytes + 5, preface_bytes + 30, all.len()]) {
            let mut frames = unbegun(&kettle);
            let (front, rest) = all.split_at(cut);
            frames.client.finish_handshake_with(front);
            frames.send(rest);
            expect_both(&mut frames, &format!("{tickets} tickets, cut at {cut}"));
        }
    }
}

#[test]
fn keys_and_ends_that_come_with_all_that_is_asked_for() {
    for tickets in [0, 2] {
        let kettle = Kettle::start(setup().set("tls", &format!("tickets = {tickets}")));
        let all = said();
        for (with_key, with_end) in [(true, false), (false, true), (true, true)] {
            // All in one write: with the handshake's last message, then behind it, with a new key in the middle of a frame.
            for (is_begun, at) in [(false, all.len()), (true, 0), (true, 36), (true, all.len())] {
                let what = format!("{tickets} tickets, {with_key} {with_end}, {is_begun} at {at}");
                let mut frames = unbegun(&kettle);
                if is_begun {
                    frames.client.finish_handshake_with(b"");
                }
                let (front, rest) = all.split_at(at);
                let behind = |tls: &mut ClientConnection| {
                    if with_key {
                        tls.refresh_traffic_keys().unwrap();
                    }
                    tls.writer().write_all(rest).unwrap();
                    if with_end {
                        tls.send_close_notify();
                    }
                };
                if is_begun {
                    frames.client.tls.writer().write_all(front).unwrap();
                    behind(&mut frames.client.tls);
                    frames.send(b"");
                } else {
                    frames.client.finish_handshake_and(front, behind);
                }
                expect_both(&mut frames, &what);
                if with_end {
                    assert_eq!(frames.end(), (vec![NO_ERROR], End::Orderly), "{what}");
                }
            }
        }
        kettle.wait_until_idle();
    }
}

#[test]
fn whoever_speaks_another_protocol_than_was_agreed_on_is_told() {
    let kettle = Kettle::start(setup());
    let http1 = kettle_tests::http::get("/10");
    for said in [&http1[..], b"PUT / HTTP/1.1\r\n", b"\r\n"] {
        let mut frames = unbegun(&kettle);
        frames.client.finish_handshake_with(said);
        assert_eq!(frames.end(), (vec![PROTOCOL_ERROR], End::Orderly));
    }
    kettle.wait_for_status("/total/http2_refused/protocol_error", 3);
    for offer in [&["http/1.1"][..], &[]] {
        let mut client = Dialer::default().alpn(offer).connect(kettle.address());
        client.send(&said()).unwrap();
        assert_eq!(client.response().status, 505);
        assert_eq!(client.end(), End::Orderly);
    }
}

#[test]
fn a_client_that_says_no_settings_is_closed() {
    let kettle = Kettle::start(setup().set("limits", "request_timeout = \"1s\""));
    for said in [&b""[..], &PREFACE[..1], PREFACE, &said()[..PREFACE.len() + 8]] {
        let mut frames = unbegun(&kettle);
        frames.client.finish_handshake_with(said);
        assert_eq!(frames.end(), (vec![NO_ERROR], End::Orderly), "{}", said.len());
    }
    // Nothing of what is asked for before is answered.
    let mut frames = unbegun(&kettle);
    frames.client.finish_handshake_with(&[PREFACE, &get(1, "/10")].concat());
    assert_eq!(frames.end(), (vec![PROTOCOL_ERROR], End::Orderly));
    kettle.wait_until_idle();
}

/// None of them is among those that TLS 1.2 may not be used with (RFC 9113 §9.2.2).
#[test]
fn each_suite_there_is_carries_it() {
    let kettle = Kettle::start(setup());
    for suite in SUITES {
        let mut frames = Frames::begin(Dialer::suite(suite), &kettle, &[]);
        frames.send(&get(1, "/70000"));
        assert_same(&frames.body(1), &content(BYTES), suite.name);
        let entry = kettle.entry("/70000");
        assert_eq!((entry.text("version"), entry.text("suite")), ("HTTP/2.0", suite.name));
    }
}
