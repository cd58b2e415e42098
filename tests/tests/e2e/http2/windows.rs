//! Windows: what a client takes back, what it never opens, and what we keep shut ourselves.

use std::io::sink;

use super::*;

const FLOW_CONTROL_ERROR: u32 = 3;

const ROUTE: &str =
    "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\nrequest_buffering = \"off\"\n";

/// Opens the window of the connection as far as it goes.
fn open_connection(frames: &mut Frames) {
    frames.send(&update(0, WINDOW_MAX - 65_535));
}

#[test]
fn streams_whose_window_is_taken_back_end_though_their_files_were_read_already() {
    let patience = scaled(4, 20);
    let setup = over_http2().without_memory();
    let setup = setup.sizes(&[30 << 20, 32_000]);
    let kettle = Kettle::start(setup.set("limits", &format!("write_timeout = \"{patience}s\"")));
    let dialer = Dialer::default().reading_slowly();
    let mut frames = Frames::begin(dialer, &kettle, &[(INITIAL_WINDOW_SIZE, WINDOW_MAX)]);
    open_connection(&mut frames);
    // More than the sockets hold: what is asked for now waits in the server.
    frames.send(&get(1, "/31457280"));
    kettle.wait_for_status("/total/http2_streams", 1);
    let small: Vec<u32> = (1..=11).map(|number| 2 * number + 1).collect();
    let requests: Vec<u8> = small.iter().flat_map(|stream| get(*stream, "/32000")).collect();
    // By the time there is room for their bodies, there is no window any more.
    frames.send(&[requests, initial_window(0)].concat());
    kettle.wait_for_status("/total/http2_streams", 12);
    let mut ended = Vec::new();
    while ended.len() < 12 {
        let frame = frames.next().expect("the connection goes on");
        match frame.kind {
            RST_STREAM => {
                assert_eq!(code(&frame.payload), CANCEL);
                ended.push(frame.stream);
            }
            DATA if frame.flags & END_STREAM != 0 => ended.push(frame.stream),
            _ => {}
        }
    }
    assert_ne!(kettle.status("/total/http2_refused/stalled"), 0);
    // The room that they held is there for others.
    frames.send(&initial_window(WINDOW_MAX));
    frames.send(&get(101, "/32000"));
    assert_same(&frames.body(101), &content(32_000), "afterwards");
}

/// A server whose route `/slow` passes on one request at a time: the bodies of others are not read.
fn one_at_a_time(slow: &Backend, quick: &Backend) -> Setup {
    Setup::default()
        .listener("http2 = true")
        .more("[[site.route]]\nprefix = \"/slow\"\nbackend = \"slow\"\nrequest_buffering = \"off\"\n")
        .more("[[site.route]]\nprefix = \"/quick\"\nbackend = \"quick\"\nrequest_buffering = \"off\"\n")
        .more(&backend("quick", "", &[quick.address()]))
        .more(&backend("slow", "queue_timeout = \"5m\"", &[slow.address()]))
        .more("connections = 1\n")
}

/// A client that knows the windows of its streams: without that they are the protocol's own.
fn connect_to(kettle: &Kettle) -> Frames {
    let mut frames = Frames::connect(kettle, &[]);
    frames.acknowledge();
    frames
}

/// Sends as much of a body as the window of its stream has room for.
fn fill_window(frames: &mut Frames, stream: u32) {
    frames.send(&post(stream, "/slow/more"));
    for _ in 0..16 {
        frames.send(&frame(DATA, 0, stream, &[b'x'; 16_384]));
    }
}

#[test]
fn what_no_window_has_room_for_ends_its_stream_or_the_connection() {
    let [slow, quick] = [Backend::listen(), Backend::listen()];
    let kettle = Kettle::start(one_at_a_time(&slow, &quick));
    let [mut one, mut all] = [(); 2].map(|()| connect_to(&kettle));
    one.send(&get(1, "/slow/first"));
    let mut first = slow.accept_request();
    fill_window(&mut one, 3);
    one.ping();
    one.send(&frame(DATA, 0, 3, b"x"));
    one.expect_reset(3, FLOW_CONTROL_ERROR);
    // Four windows of streams are that of a connection.
    for stream in [1, 3, 5, 7] {
        fill_window(&mut all, stream);
    }
    all.ping();
    all.send(&[post(9, "/slow/more"), frame(DATA, 0, 9, b"x")].concat());
    assert_eq!(all.end().0, [FLOW_CONTROL_ERROR]);
    one.answered(&mut first, 1, "ok");
}

#[test]
fn windows_grow_for_a_client_that_is_far_away_while_the_server_takes_what_comes() {
    let servers = Backend::listen();
    let route =
        "[[site.route]]\nprefix = \"/up\"\nbackend = \"app\"\nrequest_buffering = \"off\"\n";
    let setup = over_http2().more(route);
    let kettle = Kettle::start(setup.more(&backend("app", "", &[servers.address()])));
    // Each time what it sent is taken at another moment.
    let grown = (0..UPLOADS).filter(|_| {
        let servers = &servers;
        std::thread::scope(|threads| {
            let reader = threads.spawn(move || std::io::copy(&mut servers.accept(), &mut sink()));
            let has_grown = upload_from_far_away(&kettle);
            assert!(reader.join().unwrap().is_ok_and(|bytes| bytes >= 256 << 10));
            has_grown
        })
    });
    // On one busy processor all three may run in step, each burst be there at once, and the server seem to be behind.
    assert!(grown.count() >= UPLOADS / 2);
}

const UPLOADS: usize = 100;

/// Returns true if its window has grown before it has sent 64 MiB.
fn upload_from_far_away(kettle: &Kettle) -> bool {
    let mut frames = connect_to(kettle);
    frames.send(&post(1, "/up"));
    let mut stream = 256_i64 << 10;
    let mut all = 65_535_i64;
    let mut sent_bytes = 0;
    // It sends all that it may before it answers: so does a client that is far away.
    while stream.max(0) < 1 << 20 {
        if sent_bytes > 64 << 20 {
            return false;
        }
        let frame_bytes = stream.min(all).clamp(0, 16_384);
        sent_bytes += frame_bytes;
        if frame_bytes > 0 {
            frames.send(&frame(DATA, 0, 1, &vec![b'x'; frame_bytes.try_into().unwrap()]));
            (stream, all) = (stream - frame_bytes, all - frame_bytes);
            continue;
        }
        let said = frames.next().expect("the connection goes on");
        match (said.kind, said.stream) {
            (WINDOW_UPDATE, 0) => all += i64::from(code(&said.payload)),
            (WINDOW_UPDATE, _) => stream += i64::from(code(&said.payload)),
            (PING, _) if said.flags & ACK == 0 => {
                frames.send(&frame(PING, ACK, 0, &said.payload));
            }
            // Nobody has answered.
            (HEADERS | RST_STREAM, _) => panic!("the body was given up: {said:?}"),
            _ => {}
        }
    }
    true
}

#[test]
fn a_client_is_not_told_that_it_was_slow_when_it_had_no_window() {
    let [slow, quick] = [Backend::listen(), Backend::listen()];
    let setup = one_at_a_time(&slow, &quick).set("limits", "request_timeout = \"1s\"");
    let kettle = Kettle::start(setup);
    let mut frames = connect_to(&kettle);
    frames.send(&get(1, "/slow/first"));
    let mut first = slow.accept_request();
    // Four that nobody reads, since they wait for their turn, take all the window of the connection.
    for stream in [3, 5, 7, 9] {
        fill_window(&mut frames, stream);
    }
    frames.send(&post(11, "/quick/x"));
    let mut other = quick.accept_request();
    // A client that has a window and sends nothing is told, after as long a time.
    let mut idle = Frames::connect(&kettle, &[]);
    idle.send(&post(1, "/quick/y"));
    let _ = idle.next_of(HEADERS);
    assert_eq!(kettle.entry("/quick/y").number("status"), 408);
    for stream in [3, 5, 7, 9] {
        frames.send(&cancel(stream));
    }
    // Data that is sent before there is room for it again would be an error of the connection.
    let mut room = 65_535 - 4 * 16 * 16_384_i64;
    while room <= 0 {
        let update = frames.next_of(WINDOW_UPDATE);
        room += if update.stream == 0 { i64::from(code(&update.payload)) } else { 0 };
    }
    frames.send(&frame(DATA, END_STREAM, 11, b"late"));
    assert_eq!(read_until(&mut other, b"0\r\n\r\n"), b"4\r\nlate\r\n0\r\n\r\n");
    frames.answered(&mut other, 11, "ok");
    first.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
    assert_eq!(kettle.entry("/slow/first").number("status"), 204);
}

#[test]
fn a_client_is_not_told_that_it_was_slow_when_it_was_not_listened_to() {
    let servers = Backend::listen();
    let long = "long/".repeat(200);
    let away = format!("[[site.route]]\nprefix = \"/away\"\nredirect = [{{ to = \"/{long}\" }}]\n");
    let setup = over_http2().without_memory().sizes(&[30 << 20]);
    let setup = setup.more(ROUTE).more(&away);
    let setup = setup.set("limits", &format!("request_timeout = \"{}s\"", scaled(2, 10)));
    let kettle = Kettle::start(setup.more(&backend("app", "", &[servers.address()])));
    let dialer = Dialer::default().reading_slowly();
    let mut frames = Frames::begin(dialer, &kettle, &[(INITIAL_WINDOW_SIZE, WINDOW_MAX)]);
    open_connection(&mut frames);
    // More than the sockets hold, once it has had its turns.
    frames.send(&get(1, "/31457280"));
    // With a request under way it is not idle, however long its turns take.
    let mut other = Frames::connect(&kettle, &[(INITIAL_WINDOW_SIZE, 1_000)]);
    other.send(&get(1, "/31457280"));
    let _ = other.next_of(HEADERS);
    (0..200).for_each(|_| other.ping());
    // Heads take no window. These are more than is held for a client that takes nothing.
    let requests: Vec<u8> = (1..=100).flat_map(|place| get(2 * place + 3, "/away")).collect();
    frames.send(&[post(3, "/app/x"), requests].concat());
    let mut server = servers.accept_request();
    (0..10).for_each(|_| other.ping());
    frames.send(&frame(DATA, END_STREAM, 3, b"late"));
    // One that is listened to and sends nothing is told, though it began later.
    other.send(&post(3, "/app/y"));
    let _ = other.next_of(HEADERS);
    assert_eq!(kettle.entry("/app/y").number("status"), 408);
    // That of the file is before them.
    (0..=100).for_each(|_| drop(frames.next_of(HEADERS)));
    assert_eq!(read_until(&mut server, b"0\r\n\r\n"), b"4\r\nlate\r\n0\r\n\r\n");
}

#[test]
fn what_a_client_that_went_away_had_is_in_the_log_and_no_more() {
    let setup = over_http2().sizes(&[1 << 20]);
    let kettle = Kettle::start(setup);
    let mut frames = Frames::connect(&kettle, &[(INITIAL_WINDOW_SIZE, 50_000)]);
    frames.send(&get(1, "/1048576"));
    let mut had = 0;
    while had < 50_000 {
        had += frames.next_of(DATA).payload.len();
    }
    drop(frames);
    let entry = kettle.entry("/1048576");
    assert_eq!((entry.number("body_bytes"), entry.is_complete()), (50_000, false));
}

#[test]
fn a_client_that_was_told_to_go_and_does_not_is_left() {
    let setup = over_http2().sizes(&[10, 1 << 20]);
    let kettle = Kettle::start(setup);
    let [mut silent, mut busy] = [(); 2].map(|()| Frames::connect(&kettle, &[]));
    for frames in [&mut silent, &mut busy] {
        frames.send(&get(1, "/10"));
        assert_eq!(frames.body(1), content(10));
    }
    // Its window is used up with this, so it stays under way.
    busy.send(&get(3, "/1048576"));
    kettle.reload_with("http2 = true", "http2 = true\ncrossover = \"1 MiB\"");
    for frames in [&mut silent, &mut busy] {
        frames.send(&get(5, "/10"));
    }
    // One says nothing any more, and does not answer the ping either.
    assert_eq!(silent.end(), (vec![NO_ERROR, NO_ERROR], End::Orderly));
    // By then the other may ask for nothing.
    busy.send(&get(7, "/10"));
    busy.expect_reset(7, REFUSED_STREAM);
    assert_ne!(kettle.status("/total/http2_refused/late"), 0);
}

#[test]
fn listings_that_a_client_does_not_take_are_made_two_at_a_time() {
    let mut setup = over_http2().route("listing = true");
    for number in 0..1_000 {
        // The longest names that there are, and of a page the longest.
        setup = setup.file(&format!("www/long/{number:04}{}", "\"".repeat(251)), "");
    }
    let setup = setup.set("server", "workers = 1").set("server", "dumpable = true");
    let kettle = Kettle::start(setup);
    let mut other = Dialer::default().connect(kettle.address());
    let page = other.get("/long/").body;
    assert!(page.len() > 2 << 20, "{} bytes", page.len());
    let mut frames = Frames::connect(&kettle, &[(INITIAL_WINDOW_SIZE, 0)]);
    let before_bytes = kettle.memory_bytes();
    let streams: Vec<u32> = (0..128).map(|number| 2 * number + 1).collect();
    frames.send(&streams.iter().flat_map(|stream| get(*stream, "/long/")).collect::<Vec<u8>>());
    kettle.wait_for_status("/total/http2_streams", 128);
    // A worker reads folders one behind the other: by now all are read that may be.
    assert!(other.get("/long/").body == page, "another page");
    kettle.assert_grown_below(before_bytes, 32 << 20);
    // A listing that is given up makes room, made or not.
    let given_up = streams.iter().filter(|stream| ![3, 127, 255].contains(*stream));
    let resets = given_up.flat_map(|stream| cancel(*stream));
    frames.send(&resets.collect::<Vec<u8>>());
    open_connection(&mut frames);
    frames.send(&initial_window(WINDOW_MAX));
    for (stream, body) in [3, 127, 255].into_iter().zip(frames.bodies([3, 127, 255])) {
        assert!(body == page, "stream {stream} got {} bytes of {}", body.len(), page.len());
    }
}
