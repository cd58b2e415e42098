//! Streams beside one another, deadlines, and the end of a connection.

use std::fs::File;
use std::time::{Duration, Instant};

use kettle_tests::certificate::ClientAuthority;

use super::*;

fn setup() -> Setup {
    over_http2().without_memory().sizes(&[10, 1 << 20])
}

#[test]
fn a_small_response_does_not_wait_for_a_large_one() {
    let kettle = Kettle::start(setup());
    let mut frames = Frames::connect(&kettle, &[]);
    // The window of the connection is used up by the first: what it leaves is for the second.
    frames.send(&[get(1, "/1048576"), get(3, "/10")].concat());
    frames.send(&update(0, 1_000));
    loop {
        let frame = frames.next_of(DATA);
        if frame.stream == 3 {
            assert_eq!(frame.payload, content(10));
            break;
        }
    }
}

#[test]
fn a_client_that_never_opens_the_window_loses_its_stream() {
    let kettle = Kettle::start(setup().set("limits", "write_timeout = \"1s\""));
    let mut frames = Frames::connect(&kettle, &[(INITIAL_WINDOW_SIZE, 0)]);
    frames.send(&get(1, "/1048576"));
    assert_eq!(code(&frames.next_of(RST_STREAM).payload), CANCEL);
    assert!(!kettle.entry("/1048576").is_complete());
    kettle.wait_for_status("/total/http2_refused/stalled", 1);
    frames.ping();
}

#[test]
fn a_client_that_takes_nothing_is_cut_and_holds_little_memory() {
    let setup = setup().set("limits", "write_timeout = \"1s\"").set("server", "dumpable = true");
    let kettle = Kettle::start(setup.sizes(&[30 << 20]));
    let before = kettle.memory_bytes();
    let dialer = Dialer::default().reading_slowly();
    let mut frames = Frames::begin(dialer, &kettle, &[(INITIAL_WINDOW_SIZE, WINDOW_MAX)]);
    frames.send(&update(0, WINDOW_MAX - 65_535));
    for stream in 0..100 {
        frames.send(&get(2 * stream + 1, "/31457280"));
    }
    kettle.wait_for_status("/total/http2_refused/blocked", 1);
    kettle.assert_grown_below(before, 16 << 20);
    assert_eq!(frames.end().1, End::Cut);
    assert!(!kettle.entry("/31457280").is_complete());
}

/// 100 requests for a file, on a connection whose streams have no room: each is under way once its head is there.
fn hundred_without_room(kettle: &Kettle, target: &str) -> Frames {
    let mut frames = Frames::connect(kettle, &[(INITIAL_WINDOW_SIZE, 0)]);
    for stream in 0..100 {
        frames.send(&get(2 * stream + 1, target));
        let _ = frames.next_of(HEADERS);
    }
    frames
}

#[test]
fn a_file_that_memory_has_no_room_for_is_not_there_once_for_each_stream() {
    let setup = setup().set("limits", "hot_file = \"1MiB\"").set("limits", "hot_memory = \"1MiB\"");
    let kettle = Kettle::start(setup.set("server", "dumpable = true"));
    let before = kettle.memory_bytes();
    let _frames = hundred_without_room(&kettle, "/1048576");
    kettle.assert_grown_below(before, 16 << 20);
}

#[test]
fn streams_without_room_hold_no_more_files_than_there_are_for_responses() {
    let setup = setup().set("server", "dumpable = true").set("server", "workers = 1");
    let setup = setup.set("limits", "open_files = 0").set("limits", "connections_per_worker = 8");
    let kettle = Kettle::start(setup);
    let before = kettle.open_descriptors();
    let frames = hundred_without_room(&kettle, "/1048576");
    let grown = kettle.open_descriptors().saturating_sub(before);
    assert!((64..80).contains(&grown), "{grown} descriptors for one connection");
    assert_eq!(kettle.connect(TLS13_AES_128).get("/1048576").status, 503);
    drop(frames);
    kettle.wait_until_idle();
    assert_eq!(kettle.connect(TLS13_AES_128).get("/1048576").status, 200);
}

#[test]
fn a_connection_with_nothing_to_do_is_closed_with_a_goodbye() {
    let kettle = Kettle::start(setup().set("limits", "idle_timeout = \"1s\""));
    let mut frames = Frames::connect(&kettle, &[]);
    frames.send(&get(1, "/10"));
    assert_eq!(frames.end(), (vec![NO_ERROR], End::Orderly));
}

/// Clients that keep connections for later must not keep others out for as long as `idle_timeout` says.
#[test]
fn a_full_server_ends_what_is_idle_for_the_longest_and_no_request() {
    let setup = setup().set("limits", "connections_per_worker = 3");
    let setup =
        setup.set("limits", "idle_timeout = \"1h\"").set("limits", "request_timeout = \"10m\"");
    let kettle = Kettle::start(setup.set("server", "workers = 1"));
    let mut busy = kettle.connect(TLS13_AES_128);
    let request = request("GET", "/10", "");
    busy.send(&request[..10]).unwrap();
    let mut idle = kettle.connect(TLS13_AES_128);
    assert_eq!(idle.get("/10").status, 200);
    let mut http2 = Frames::connect(&kettle, &[]);
    http2.send(&asking(1, "GET", "/10", &[]));
    // Each finds the room of one that was there before it.
    let mut newcomers = Vec::new();
    for _ in 0..2 {
        let mut newcomer = kettle.connect(TLS13_AES_128);
        assert_eq!(newcomer.get("/10").body, content(10));
        newcomers.push(newcomer);
    }
    assert_eq!(idle.end(), End::Orderly);
    assert_eq!(http2.end(), (vec![NO_ERROR], End::Orderly));
    busy.send(&request[10..]).unwrap();
    assert_eq!(busy.response().body, content(10));
    for newcomer in &mut newcomers {
        assert_eq!(newcomer.get("/10").body, content(10));
    }
}

#[test]
fn a_connection_that_is_asked_something_time_and_again_is_not_idle() {
    let setup = setup().set("limits", "idle_timeout = \"1s\"");
    let kettle = Kettle::start(setup.set("limits", "requests_per_connection = 4_000_000"));
    let mut frames = Frames::connect(&kettle, &[]);
    let begun = Instant::now();
    let mut stream = 1;
    while begun.elapsed() < Duration::from_secs(4) {
        frames.send(&asking(stream, "HEAD", "/10", &[]));
        assert_eq!(frames.next_of(HEADERS).stream, stream);
        stream += 2;
    }
}

#[test]
fn a_client_that_never_asks_is_closed() {
    let kettle = Kettle::start(setup().set("limits", "request_timeout = \"1s\""));
    assert_eq!(Frames::connect(&kettle, &[]).end(), (vec![NO_ERROR], End::Orderly));
    // Nor does one that begins and never ends.
    let mut frames = Frames::connect(&kettle, &[]);
    frames.send(&frame(HEADERS, END_STREAM, 1, &fields("GET", "/10", &[])));
    assert_eq!(frames.end(), (vec![NO_ERROR], End::Orderly));
}

#[test]
fn fields_without_an_end_are_cut_whatever_else_is_under_way() {
    let seconds = scaled(2, 10);
    let setup = setup().set("limits", &format!("request_timeout = \"{seconds}s\""));
    let setup = setup.set("limits", "requests_per_connection = 4_000_000");
    let kettle = Kettle::start(setup.set("limits", "write_timeout = \"1h\""));
    let mut frames = Frames::connect(&kettle, &[(INITIAL_WINDOW_SIZE, 0)]);
    frames.send(&get(1, "/1048576"));
    frames.next_of(HEADERS);
    // Each has its own time, though some are always on their way.
    let started = Instant::now();
    let mut stream = 3;
    let mut rest = Vec::new();
    while started.elapsed() < Duration::from_secs(2 * seconds) {
        let mut next = asking(stream, "HEAD", "/10", &[]);
        let behind = next.split_off(12);
        rest.extend(next);
        frames.send(&rest);
        rest = behind;
        if stream > 3 {
            assert_eq!(frames.next_of(HEADERS).stream, stream - 2);
        }
        stream += 2;
    }
    assert_eq!(frames.end(), (vec![NO_ERROR], End::Orderly));
    kettle.wait_until_idle();
}

#[test]
fn fields_without_an_end_are_cut_though_their_client_goes_on_taking_little() {
    let setup = setup().set("limits", &format!("request_timeout = \"{}s\"", scaled(2, 10)));
    let setup = setup.set("limits", "write_timeout = \"1h\"").sizes(&[30 << 20]);
    let kettle = Kettle::start(setup);
    let dialer = Dialer::default().reading_slowly();
    let mut frames = Frames::begin(dialer, &kettle, &[(INITIAL_WINDOW_SIZE, WINDOW_MAX)]);
    frames.send(&update(0, WINDOW_MAX - 65_535));
    frames.send(&get(1, "/31457280"));
    frames.send(&frame(HEADERS, END_STREAM, 3, &fields("GET", "/10", &[])));
    while kettle.status("/total/responses_truncated") == 0 {
        frames.next_of(DATA);
    }
    assert_eq!(frames.end(), (vec![NO_ERROR], End::Orderly));
}

#[test]
fn a_body_that_nobody_wants_is_read_past_for_a_time_however_much_comes() {
    let seconds = scaled(2, 10);
    let setup = setup().set("limits", &format!("request_timeout = \"{seconds}s\""));
    let setup = setup.set("limits", "requests_per_connection = 4_000_000");
    let kettle = Kettle::start(setup.set("limits", "body_discard = \"1 GiB\""));
    let mut frames = Frames::connect(&kettle, &[]);
    frames.send(&post(1, "/10"));
    let started = Instant::now();
    let mut stream = 3;
    let mut codes = Vec::new();
    while codes.is_empty() {
        assert!(started.elapsed() < Duration::from_secs(5 * seconds), "it is read on");
        // Seconds' worth of what a body must bring where somebody wants it.
        frames.send(&frame(DATA, 0, 1, &[b'x'; 1_000]));
        frames.send(&asking(stream, "HEAD", "/10", &[]));
        loop {
            let next = frames.next().expect("the connection goes on");
            match next.kind {
                RST_STREAM => codes.push((next.stream, code(&next.payload))),
                HEADERS if next.stream == stream => break,
                _ => {}
            }
        }
        stream += 2;
    }
    assert_eq!(codes, [(1, NO_ERROR)]);
}

#[test]
fn a_file_cut_short_ends_its_stream_with_an_error_and_no_other() {
    let kettle = Kettle::start(setup());
    let mut frames = Frames::connect(&kettle, &[]);
    frames.send(&get(1, "/1048576"));
    let first = frames.next_of(DATA);
    assert_eq!(first.stream, 1);
    let path = kettle.folder.path("www/1048576");
    File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
    let more = (1_u32 << 20).to_be_bytes();
    frames.send(&[frame(WINDOW_UPDATE, 0, 1, &more), frame(WINDOW_UPDATE, 0, 0, &more)].concat());
    assert_eq!(code(&frames.next_of(RST_STREAM).payload), INTERNAL_ERROR);
    assert!(!kettle.entry("/1048576").is_complete());
    kettle.messages().wait_for(&format!("file={path:?}"));
    frames.send(&get(3, "/10"));
    assert_eq!(frames.body(3), content(10));
}

#[test]
fn a_stop_lets_streams_finish_and_says_goodbye() {
    let mut kettle = Kettle::start(setup());
    let mut frames = Frames::connect(&kettle, &[]);
    frames.send(&get(1, "/1048576"));
    let mut body = frames.next_of(DATA).payload;
    kettle.signal(Signal::TERM);
    // Whatever windows there were, they are open again.
    let more = (2_u32 << 20).to_be_bytes();
    frames.send(&[frame(WINDOW_UPDATE, 0, 1, &more), frame(WINDOW_UPDATE, 0, 0, &more)].concat());
    let mut codes = Vec::new();
    let end = loop {
        match frames.next() {
            Ok(frame) if frame.kind == DATA => body.extend(frame.payload),
            Ok(frame) if frame.kind == GOAWAY => codes.push(code(&frame.payload[4..])),
            Ok(frame) if frame.kind == PING && frame.flags == 0 => {
                frames.send(&super::frames::frame(PING, 1, 0, &frame.payload));
            }
            Ok(_) => {}
            Err(end) => break end,
        }
    };
    assert_same(&body, &content(1 << 20), "the body");
    assert!(!codes.is_empty() && codes.iter().all(|code| *code == NO_ERROR), "{codes:?}");
    assert_eq!(end, End::Orderly);
    assert!(kettle.ended().status.success());
}

#[test]
fn a_reload_that_changes_the_listener_sends_its_clients_elsewhere() {
    let kettle = Kettle::start(setup());
    let mut frames = Frames::connect(&kettle, &[]);
    frames.send(&get(1, "/10"));
    assert_eq!(frames.body(1), content(10));
    kettle.reload_with("http2 = true", "http2 = true\ncrossover = \"1 MiB\"");
    frames.send(&get(3, "/10"));
    assert_eq!(code(&frames.next_of(GOAWAY).payload[4..]), NO_ERROR);
    assert_eq!(frames.body(3), content(10));
}

#[test]
fn a_request_in_the_same_moment_as_a_reload_is_answered() {
    let crossover = |number| format!("crossover = \"{number} MiB\"");
    let listener = format!("http2 = true\n{}", crossover(1));
    let kettle = Kettle::start(Setup::default().listener(&listener).sizes(&[10]));
    let request = fields("GET", "/10", &[]);
    let (front, rest) = request.split_at(20);
    for number in 1..10 {
        let mut frames = Frames::connect(&kettle, &[]);
        frames.ping();
        frames.send(&frame(HEADERS, END_STREAM, 1, front));
        // So that kettle finds both at once.
        kettle.signal(Signal::STOP);
        kettle.folder.change_config(&crossover(number), &crossover(number + 1));
        kettle.signal(Signal::HUP);
        frames.send(&frame(CONTINUATION, END_HEADERS, 1, rest));
        frames.send(&get(3, "/10"));
        kettle.signal(Signal::CONT);
        // If the request was first, the next one is told.
        let mut asked = 2;
        let mut answered = 0;
        let mut codes = Vec::new();
        while answered < asked || codes.is_empty() {
            if answered == asked {
                frames.send(&get(2 * asked + 1, "/10"));
                asked += 1;
            }
            let frame = frames.next().expect("all are answered, and a goodbye is said");
            match frame.kind {
                DATA => {
                    assert_eq!((frame.payload, frame.flags), (content(10), END_STREAM));
                    answered += 1;
                }
                GOAWAY => codes.push(code(&frame.payload[4..])),
                kind => assert_ne!(kind, RST_STREAM),
            }
        }
        assert_eq!(codes, [NO_ERROR]);
    }
}

#[test]
fn a_session_from_before_certificates_were_asked_for_is_sent_away() {
    let authority = ClientAuthority::new("clients");
    let silent = "self_signed = false";
    let asks = "client_auth = { roots = \"clients.pem\" }";
    let kettle = Kettle::start(setup().file("clients.pem", authority.pem()).site(silent));
    for is_asking in [false, true] {
        let mut frames = Frames::connect(&kettle, &[]);
        frames.send(&get(1, "/10"));
        assert_eq!(frames.body(1), content(10));
        // A reload that changes nothing for it, and one that does.
        let after = if is_asking { asks } else { "self_signed = false # the same" };
        kettle.reload_with(silent, after);
        let target = format!("/10?{is_asking}");
        frames.send(&get(3, &target));
        let status = kettle.entry(&target).number("status");
        assert_eq!(status, if is_asking { 421 } else { 200 });
    }
}

#[test]
fn fields_that_nobody_looks_at_are_answered_with_the_sites_page_and_logged() {
    let page = setup().file("431.html", "too many").site("error_pages.431 = \"431.html\"");
    let kettle = Kettle::start(page);
    let mut frames = Frames::connect(&kettle, &[]);
    let mut block = fields("GET", "/10", &[]);
    let long = "y".repeat(100);
    for _ in 0..200 {
        block.extend([[0, 1, b'x', 100].as_slice(), long.as_bytes()].concat());
    }
    let (front, back) = block.split_at(16_000);
    frames.send(&frame(HEADERS, END_STREAM, 1, front));
    frames.send(&frame(CONTINUATION, END_HEADERS, 1, back));
    let answer = frames.next_of(HEADERS);
    assert_eq!(answer.stream, 1);
    assert_eq!(frames.body(1), b"too many");
    assert_eq!(kettle.entry("").number("status"), 431);
    assert_eq!(kettle.status("/total/http2_refused/fields_too_large"), 1);
    frames.ping();
}
