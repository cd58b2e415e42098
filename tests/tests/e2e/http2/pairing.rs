//! Two things of one connection that come together: in one read, half, at a limit, or while something else is under way.

use std::io::Read;

use super::*;

const BYTES: usize = 100_000;

fn setup() -> Setup {
    over_http2().without_memory().sizes(&[10, BYTES])
}

fn expect_served(frames: &mut Frames, stream: u32) {
    frames.send(&get(stream, "/10"));
    assert_eq!(frames.body(stream), content(10), "stream {stream}");
}

#[test]
fn a_window_that_shrinks_under_a_body_holds_back_what_it_no_longer_has_room_for() {
    let kettle = Kettle::start(setup());
    let mut frames = Frames::connect(&kettle, &[]);
    frames.send(&get(1, "/100000"));
    let mut body = Vec::new();
    let mut receive = |frames: &mut Frames, bytes| {
        while body.len() < bytes {
            body.extend(frames.next_of(DATA).payload);
        }
        body.len()
    };
    assert_eq!(receive(&mut frames, 65_535), 65_535);
    // The window of the stream is now less than nothing, by all that it has had.
    frames.send(&[initial_window(0), update(0, 1 << 20), update(1, 65_535 + 1_000)].concat());
    assert_eq!(receive(&mut frames, 66_535), 66_535);
    // A frame too many would be lost with this, and be missing.
    frames.ping();
    frames.send(&update(1, 1 << 20));
    let _ = receive(&mut frames, BYTES);
    assert_same(&body, &content(BYTES), "the body");
    assert!(kettle.entry("/100000").is_complete());
}

#[test]
fn what_comes_in_one_read_with_its_end_leaves_the_others_alone() {
    let (_servers, kettle, mut frames) = connected(setup());
    let reset = |stream| cancel(stream);
    // Priorities of streams that nobody has opened, by RFC 7540 and RFC 9218, and frames of a kind nobody knows.
    let priorities = [
        frame(PRIORITY, 0, 99, &[0, 0, 0, 101, 16]),
        frame(0x10, 0, 0, b"\0\0\0\x65u=1"),
        frame(0xfa, 0, 0, b"x"),
    ];
    let all = [get(1, "/100000"), reset(1), post(3, "/app/x"), reset(3), priorities.concat()];
    frames.send(&[all.concat(), get(5, "/10")].concat());
    assert_eq!(frames.body(5), content(10));
    frames.ping();
    frames.send(&update(7, 0));
    // A stream that nobody opened.
    assert_eq!(frames.end(), (vec![PROTOCOL_ERROR], End::Orderly));
    drop(frames);
    kettle.wait_until_idle();
}

#[test]
fn a_client_that_says_goodbye_gets_what_it_asked_for() {
    let kettle = Kettle::start(setup());
    let mut frames = Frames::connect(&kettle, &[]);
    let goodbye = frame(GOAWAY, 0, 0, &[0; 8]);
    frames.send(&[get(1, "/100000"), goodbye].concat());
    assert_same(&frames.body(1), &content(BYTES), "the body");
    assert_eq!(frames.end(), (vec![NO_ERROR], End::Orderly));
    assert!(kettle.entry("/100000").is_complete());
}

#[test]
fn a_length_that_the_body_does_not_have_ends_the_stream_and_reaches_no_backend_as_whole() {
    let (servers, kettle, mut frames) = connected(setup());
    let five = [("content-length", "5")];
    frames.send(&asking(1, "GET", "/app/none", &five));
    frames.expect_reset(1, PROTOCOL_ERROR);
    for (stream, body) in [(3, &b"abc"[..]), (5, b"abcdefg")] {
        frames.send(&posting(stream, "/app/x", &five));
        let mut server = servers.accept_request();
        frames.send(&frame(DATA, END_STREAM, stream, body));
        frames.expect_reset(stream, PROTOCOL_ERROR);
        assert!(read_to_end(&mut server).0.len() < 5);
        assert!(!kettle.entry("/app/x").is_complete());
    }
    expect_served(&mut frames, 7);
}

#[test]
fn two_requests_in_one_read_with_room_for_one() {
    let kettle = Kettle::start(setup());
    let mut frames = Frames::connect(&kettle, &[(INITIAL_WINDOW_SIZE, 0)]);
    let requests: Vec<u8> = (0..127).flat_map(|number| get(2 * number + 1, "/100000")).collect();
    frames.send(&requests);
    kettle.wait_for_status("/total/http2_streams", 127);
    frames.send(&[get(255, "/100000"), get(257, "/100000")].concat());
    frames.expect_reset(257, REFUSED_STREAM);
    frames.send(&cancel(1));
    frames.ping();
    frames.send(&[initial_window(65_535), get(259, "/10")].concat());
    while frames.next_of(HEADERS).stream != 259 {}
}

#[test]
fn fields_behind_a_body_end_it() {
    let (servers, kettle, mut frames) = connected(setup());
    let trailer = |name: &str| {
        let lengths = [0, u8::try_from(name.len()).unwrap()];
        [&lengths[..], name.as_bytes(), &[1, b'1']].concat()
    };
    let ask = |frames: &mut Frames, stream, name: &str| {
        frames.send(&post(stream, "/app/x"));
        frames.send(&frame(DATA, 0, stream, b"body"));
        let mut server = servers.accept();
        assert_eq!(read_until(&mut server, b"\r\nbody\r\n").last(), Some(&b'\n'));
        frames.send(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &trailer(name)));
        server
    };
    let mut server = ask(&mut frames, 1, "x-trailer");
    assert_eq!(read_until(&mut server, b"\r\n\r\n"), b"0\r\nx-trailer: 1\r\n\r\n");
    server.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").unwrap();
    drop(server);
    assert_eq!(kettle.entry("/app/x").number("status"), 204);
    // Fields about a connection are malformed here too. (The library lets `:path` pass, and drops it.)
    let mut server = ask(&mut frames, 3, "connection");
    assert_eq!(read_to_end(&mut server).0, b"");
    assert!(!kettle.entry("/app/x").is_complete());
    frames.expect_reset(3, PROTOCOL_ERROR);
}

#[test]
fn a_key_may_change_in_the_middle_of_a_frame() {
    let kettle = Kettle::start(setup());
    let mut frames = Frames::begin(Dialer::suite(TLS13_AES_128), &kettle, &[]);
    for (stream, at) in [(1, 4), (3, 9), (5, 20), (7, 1)] {
        let request = get(stream, "/100000");
        let (front, back) = request.split_at(at);
        // All in one write, and with an answer that has to change its key.
        frames.client.tls.writer().write_all(front).unwrap();
        frames.client.tls.refresh_traffic_keys().unwrap();
        frames.send(back);
        assert_same(&frames.body(stream), &content(BYTES), &format!("cut at {at}"));
    }
}

#[test]
fn half_a_frame_and_the_end_of_the_connection() {
    let servers = Backend::listen();
    let kettle = Kettle::start(passing(setup(), "", &servers));
    for behind in [&frame(DATA, END_STREAM, 1, b"body")[..11], &[], &get(3, "/10")[..12]] {
        let mut frames = Frames::connect(&kettle, &[]);
        frames.send(&post(1, "/app/x"));
        let mut server = servers.accept_request();
        frames.send(behind);
        frames.client.close_sending();
        // Not the end of the chunks, which would say that it is whole.
        let (body, _) = read_to_end(&mut server);
        assert!(!body.ends_with(b"0\r\n\r\n"), "{}", body.escape_ascii());
        assert!(!kettle.entry("/app/x").is_complete());
        let _ = frames.end();
        kettle.wait_until_idle();
    }
}

/// As over HTTP/1.1, whatever is not whole behind it.
#[test]
fn a_request_in_front_of_half_a_frame_and_a_close_notify_is_answered() {
    let kettle = Kettle::start(setup());
    for behind in [&get(3, "/10")[..12], &get(3, "/10")[..4], &post(3, "/10"), &update(0, 9)[..12]]
    {
        for is_at_once in [true, false] {
            let mut frames = Frames::connect(&kettle, &[]);
            if is_at_once {
                let said = [&get(1, "/10"), behind].concat();
                frames.client.tls.writer().write_all(&said).unwrap();
            } else {
                frames.send(&get(1, "/10"));
                frames.send(behind);
            }
            frames.client.close_sending();
            let mut body = Vec::new();
            loop {
                let frame = frames.next().expect("the stream ends first");
                if (frame.stream, frame.kind) == (1, DATA) {
                    body.extend(frame.payload);
                    if frame.flags & END_STREAM != 0 {
                        break;
                    }
                }
            }
            assert_eq!(body, content(10));
            assert_eq!(frames.end(), (vec![NO_ERROR], End::Orderly), "{behind:?}");
        }
    }
    kettle.wait_until_idle();
}

/// Nor does it cut what its server answers late.
#[test]
fn half_a_request_in_front_of_a_close_notify_cuts_nothing_else() {
    let servers = Backend::listen();
    let kettle =
        Kettle::start(passing(setup(), "", &servers).set("limits", "request_timeout = \"1s\""));
    let mut frames = Frames::connect(&kettle, &[]);
    frames
        .client
        .tls
        .writer()
        .write_all(&[&get(1, "/app/x"), &get(3, "/10")[..12]].concat())
        .unwrap();
    frames.client.say_goodbye();
    let mut server = servers.accept_request();
    // That time is over when others who began later and do nothing are sent away.
    for _ in 0..2 {
        assert_eq!(Frames::connect(&kettle, &[]).end(), (vec![NO_ERROR], End::Orderly));
    }
    frames.answered(&mut server, 1, "body");
    assert_eq!(frames.end(), (vec![NO_ERROR], End::Orderly));
}

#[test]
fn requests_in_front_of_a_close_notify_are_answered() {
    let servers = Backend::listen();
    let kettle = Kettle::start(passing(setup(), "", &servers));
    let requests = [get(1, "/10"), get(3, "/100000"), get(5, "/app/x")].concat();
    let windows = [initial_window(1 << 20), update(0, 1 << 20)].concat();
    for is_at_once in [true, false] {
        let mut frames = Frames::connect(&kettle, &[]);
        frames.client.tls.writer().write_all(&[&windows[..], &requests].concat()).unwrap();
        if !is_at_once {
            frames.send(&[]);
            let _ = frames.next_of(HEADERS);
        }
        frames.client.say_goodbye();
        let mut server = servers.accept_request();
        server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody").unwrap();
        let bodies = frames.bodies([1, 3, 5]);
        assert_eq!((&bodies[0], &*bodies[2]), (&content(10), &b"body"[..]));
        assert_same(&bodies[1], &content(BYTES), "a file");
        assert_eq!(frames.end(), (vec![0], End::Orderly));
        drop(server);
    }
    // Data that its window has no room for can never be sent to it any more.
    let mut frames = Frames::connect(&kettle, &[]);
    frames.client.tls.writer().write_all(&get(1, "/100000")).unwrap();
    frames.client.close_sending();
    let mut body_bytes = 0;
    let mut is_reset = false;
    while !is_reset {
        let frame = frames.next().expect("the stream is reset");
        body_bytes += if frame.kind == DATA { frame.payload.len() } else { 0 };
        is_reset = frame.kind == RST_STREAM;
    }
    assert_eq!(body_bytes, 65_535);
    assert_eq!(frames.end(), (vec![0], End::Orderly));
    // Nothing is waited for of a client that has said nothing else.
    let mut frames = Frames::connect(&kettle, &[]);
    frames.client.close_sending();
    assert_eq!(frames.end(), (vec![0], End::Orderly));
    kettle.wait_until_idle();
}

#[test]
fn a_window_update_of_nothing_ends_the_connection() {
    let kettle = Kettle::start(setup());
    let mut frames = Frames::connect(&kettle, &[]);
    frames.send(&get(1, "/100000"));
    let _ = frames.next_of(DATA);
    frames.send(&update(1, 0));
    // The library takes it for an error of the connection, as it may (RFC 9113 §5.4). A response that is not whole must not look so.
    assert_eq!(frames.end(), (vec![PROTOCOL_ERROR], End::Cut));
    assert!(!kettle.entry("/100000").is_complete());
    // Nor may it where nothing was sent of it yet: the requests came in one read with the error.
    for requests in [&[get(1, "/10")][..], &[get(1, "/10"), get(3, "/10")]] {
        let mut frames = Frames::connect(&kettle, &[]);
        frames.send(&[&requests.concat(), &update(1, 0)[..]].concat());
        assert_eq!(frames.end(), (vec![PROTOCOL_ERROR], End::Cut), "{} requests", requests.len());
        for _ in requests {
            assert!(!kettle.entry("/10").is_complete());
        }
    }
}

#[test]
fn a_reload_lets_a_hundred_streams_go_on_to_their_ends() {
    let kettle = Kettle::start(setup());
    let mut frames = Frames::connect(&kettle, &[(INITIAL_WINDOW_SIZE, 1_000)]);
    frames.send(&update(0, 0x7fff_ffff - 65_535));
    let streams = || (0..100).map(|number| 2 * number + 1);
    frames.send(&streams().flat_map(|stream| get(stream, "/100000")).collect::<Vec<u8>>());
    let mut bodies = vec![Vec::new(); 100];
    let mut ended = 0;
    while bodies.iter().any(|body| body.len() < 1_000) {
        let data = frames.next_of(DATA);
        bodies[data.stream as usize / 2].extend(data.payload);
    }
    kettle.reload_with("http2 = true", "http2 = true\ncrossover = \"1 MiB\"");
    frames.send(&initial_window(1 << 20));
    while ended < 100 {
        let frame = frames.next().expect("all streams end first");
        match frame.kind {
            DATA => {
                bodies[frame.stream as usize / 2].extend(frame.payload);
                ended += usize::from(frame.flags & END_STREAM != 0);
            }
            // It asks whether the goodbye has arrived.
            PING => frames.send(&super::frames::frame(PING, ACK, 0, &frame.payload)),
            kind => assert_ne!(kind, RST_STREAM),
        }
    }
    assert!(bodies.iter().all(|body| *body == content(BYTES)));
    assert_eq!(frames.end().1, End::Orderly);
    assert_eq!(kettle.connect(TLS13_AES_128).get("/10").body, content(10));
}

#[test]
fn a_stop_does_not_wait_for_streams_without_end() {
    let servers = Backend::listen();
    let setup = passing(setup(), "", &servers);
    let mut kettle = Kettle::start(setup.set("server", "drain_timeout = \"1s\""));
    let mut frames = Frames::connect(&kettle, &[(INITIAL_WINDOW_SIZE, 1_000)]);
    frames.send(&[get(1, "/100000"), post(3, "/app/x")].concat());
    let mut server = servers.accept_request();
    assert_eq!(frames.next_of(DATA).payload.len(), 1_000);
    kettle.signal(Signal::TERM);
    let (codes, end) = frames.end();
    assert!(codes.iter().all(|code| *code == NO_ERROR), "{codes:?}");
    assert_ne!(end, End::Open);
    assert!(kettle.ended().status.success());
    assert_eq!(server.read(&mut [0]).unwrap_or(0), 0);
}

#[test]
fn an_upload_that_was_answered_early_does_not_cut_others_at_a_close_notify() {
    let (servers, _kettle, mut frames) = connected(setup());
    frames.send(&posting(1, "/10", &[("content-length", "100000000")]));
    frames.expect_reset(1, NO_ERROR);
    frames.send(&get(3, "/app/x"));
    let mut server = servers.accept_request();
    frames.client.say_goodbye();
    frames.answered(&mut server, 3, "body");
    assert_eq!(frames.end(), (vec![NO_ERROR], End::Orderly));
}

#[test]
fn a_reload_lets_an_upload_go_on_to_its_end() {
    let (servers, kettle, mut frames) = connected(setup());
    let data = |flags, text: &[u8]| frame(DATA, flags, 1, text);
    frames.send(&[post(1, "/app/x"), data(0, b"one")].concat());
    let mut server = servers.accept();
    drop(read_until(&mut server, b"\r\none\r\n"));
    kettle.reload_with("http2 = true", "http2 = true\ncrossover = \"1 MiB\"");
    frames.send(&data(0, b"two"));
    assert_eq!(code(&frames.next_of(GOAWAY).payload[4..]), NO_ERROR);
    let ping = frames.next_of(PING).payload;
    frames.send(&[frame(PING, ACK, 0, &ping), data(END_STREAM, b"three")].concat());
    let rest = read_until(&mut server, b"0\r\n\r\n");
    assert_eq!(rest, b"3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n");
    frames.answered(&mut server, 1, "body");
    assert_eq!(frames.end().1, End::Orderly);
}
