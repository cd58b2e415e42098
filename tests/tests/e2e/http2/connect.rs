//! WebSocket over HTTP/2: extended CONNECT (RFC 8441), and the tunnel that a stream becomes.

use std::io::Read;
use std::time::Instant;

use kettle_tests::websocket::agreement;

use super::*;

const ENABLE_CONNECT_PROTOCOL: [u8; 6] = [0, 8, 0, 0, 0, 1];

fn setup(servers: &Backend, settings: &str) -> Setup {
    let route = |path: &str, more: &str| {
        format!("[[site.route]]\nprefix = \"{path}\"\nbackend = \"app\"\n{more}\n")
    };
    let setup = over_http2().sizes(&[10]);
    let setup = setup.more(&route("/app", "websocket = true")).more(&route("/plain", ""));
    let setup = setup.more(&route("/kept", "cache = { store = \"main\" }"));
    let setup = setup.more("[[cache]]\nname = \"main\"\ndirectory = \"kept\"\n");
    let guarded = route("/guarded", "websocket = true\ndeny = [\"0.0.0.0/0\"]");
    let setup = setup.more(&route("/denied", "websocket = true\ndeny_files = [\".*\"]"));
    let rate = "websocket = true\nrate_limit = { requests = 100, period = \"1s\", burst = 100, concurrent = 1 }";
    let setup = setup.file("kept/.keep", "").more(&route("/limited", rate));
    setup.more(&guarded).more(&backend("app", settings, &[servers.address()]))
}

/// Servers behind all these routes, and a client before them.
fn start() -> (Backend, Kettle, Frames) {
    let servers = Backend::listen();
    let kettle = Kettle::start(setup(&servers, ""));
    let frames = Frames::connect(&kettle, &[]);
    (servers, kettle, frames)
}

/// A request for a tunnel, whose stream stays open.
fn connect(stream: u32, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let more = [&[(":protocol", "websocket")], more].concat();
    frame(HEADERS, END_HEADERS, stream, &fields("CONNECT", path, &more))
}

/// Takes a request for a tunnel, and returns its head.
fn asked(servers: &Backend) -> (TcpStream, String) {
    let mut server = servers.accept();
    let head = String::from_utf8(read_until(&mut server, b"\r\n\r\n")).unwrap();
    (server, head)
}

/// A tunnel that stands.
fn standing(frames: &mut Frames, servers: &Backend, stream: u32) -> TcpStream {
    frames.send(&connect(stream, "/app/ws", &[]));
    let (mut server, head) = asked(servers);
    server.write_all(agreement(&head).as_bytes()).unwrap();
    let head = frames.next_of(HEADERS);
    assert_eq!((head.stream, head.flags & END_STREAM, head.payload[0]), (stream, 0, OK));
    server
}

fn data(stream: u32, payload: &[u8]) -> Vec<u8> {
    frame(DATA, 0, stream, payload)
}

/// The next data, without the end.
fn said(frames: &mut Frames, stream: u32) -> Vec<u8> {
    let data = frames.next_of(DATA);
    assert_eq!((data.stream, data.flags & END_STREAM), (stream, 0));
    data.payload
}

fn assert_ended(frames: &mut Frames, stream: u32) {
    let last = frames.next_of(DATA);
    assert_eq!((last.stream, last.flags, last.payload.len()), (stream, END_STREAM, 0));
}

#[test]
fn both_sides_speak_until_each_has_ended() {
    let (servers, kettle, mut frames) = start();
    let settings = frames.next_of(SETTINGS).payload;
    assert!(settings.chunks(6).any(|it| it == ENABLE_CONNECT_PROTOCOL), "{settings:?}");
    let own = [("sec-websocket-version", "13"), ("sec-websocket-key", "mine"), ("origin", "o")];
    for (stream, is_client_first) in [(1, true), (3, false)] {
        frames.send(&connect(stream, "/app/ws?a=b", &own));
        let (mut server, head) = asked(&servers);
        assert!(head.starts_with("GET /app/ws?a=b HTTP/1.1\r\nhost: localhost\r\n"), "{head}");
        assert!(head.contains("connection: upgrade\r\nupgrade: websocket\r\n"), "{head}");
        assert!(head.contains("sec-websocket-version: 13\r\norigin: o\r\n"), "{head}");
        assert!(!head.contains("mine") && head.matches("sec-websocket-key").count() == 1, "{head}");
        server.write_all(agreement(&head).as_bytes()).unwrap();
        let head = frames.next_of(HEADERS);
        assert_eq!((head.flags & END_STREAM, head.payload[0]), (0, OK));
        let fields = String::from_utf8_lossy(&head.payload).into_owned();
        assert!(!fields.contains("content-length") && !fields.contains("accept"), "{fields}");
        let entry = kettle.entry("/app/ws?a=b");
        assert_eq!((entry.number("status"), entry.text("version")), (200, "HTTP/2.0"));
        frames.send(&data(stream, b"ping"));
        assert_eq!(read_exactly(&mut server, 4), b"ping");
        server.write_all(b"pong").unwrap();
        assert_eq!(said(&mut frames, stream), b"pong");
        // A side that has ended still hears the other.
        let end = frame(DATA, END_STREAM, stream, b"bye");
        if is_client_first {
            frames.send(&end);
            assert_eq!(read_to_end(&mut server).0, b"bye");
            server.write_all(b"more").unwrap();
            assert_eq!(said(&mut frames, stream), b"more");
            drop(server);
            assert_ended(&mut frames, stream);
        } else {
            server.shutdown(std::net::Shutdown::Write).unwrap();
            assert_ended(&mut frames, stream);
            frames.send(&end);
            assert_eq!(read_to_end(&mut server).0, b"bye");
        }
        let tunnel = kettle.tunnel();
        let expected = if is_client_first { "client_closed" } else { "backend_closed" };
        assert_eq!((tunnel.text("backend"), tunnel.text("end")), ("app", expected));
    }
    frames.ping();
}

#[test]
fn a_tunnel_is_in_the_log_of_its_site() {
    let servers = Backend::listen();
    let kettle = Kettle::start(setup(&servers, "").site("access_log = \"site.log\""));
    let mut frames = Frames::connect(&kettle, &[]);
    drop(standing(&mut frames, &servers, 1));
    assert_ended(&mut frames, 1);
    frames.send(&frame(DATA, END_STREAM, 1, b""));
    let path = kettle.folder.path("site.log");
    let deadline = Instant::now() + patience();
    // A line for the request, and one for the tunnel.
    let text = loop {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if text.lines().count() == 2 {
            break text;
        }
        assert!(Instant::now() < deadline, "{text}");
        std::thread::yield_now();
    };
    assert!(text.contains("\"end\":"), "{text}");
}

#[test]
fn what_comes_too_early_is_not_lost() {
    let (servers, _kettle, mut frames) = start();
    let early = frame(DATA, END_STREAM, 1, b"early");
    frames.send(&[connect(1, "/app/ws", &[]), early].concat());
    let (mut server, head) = asked(&servers);
    server.write_all(format!("{}first", agreement(&head)).as_bytes()).unwrap();
    assert_eq!(frames.next_of(HEADERS).payload[0], OK);
    assert_eq!(said(&mut frames, 1), b"first");
    assert_eq!(read_to_end(&mut server).0, b"early");
    drop(server);
    assert_ended(&mut frames, 1);
    // A client that has nothing to say at all.
    let head = fields("CONNECT", "/app/ws", &[(":protocol", "websocket")]);
    frames.send(&frame(HEADERS, END_HEADERS | END_STREAM, 3, &head));
    let (mut server, head) = asked(&servers);
    server.write_all(format!("{}only", agreement(&head)).as_bytes()).unwrap();
    assert_eq!(read_to_end(&mut server).0, b"");
    drop(server);
    assert_eq!(frames.body(3), b"only");
}

/// A tunnel whose server has not agreed yet reads nothing, as one that stalls.
#[test]
fn many_small_messages_wait_for_a_server_that_is_busy() {
    let (servers, _kettle, mut frames) = start();
    // Larger windows count from then on.
    frames.acknowledge();
    frames.send(&connect(1, "/app/ws", &[]));
    let (mut server, head) = asked(&servers);
    let messages = content(5_000 * 20);
    let sent: Vec<u8> = messages.chunks(20).flat_map(|message| data(1, message)).collect();
    frames.send(&sent);
    frames.ping();
    server.write_all(agreement(&head).as_bytes()).unwrap();
    assert_same(&read_exactly(&mut server, messages.len()), &messages, "messages");
    // Those that have been read count no more.
    for _ in 0..4 {
        frames.send(&sent);
        assert_same(&read_exactly(&mut server, messages.len()), &messages, "more messages");
    }
    frames.ping();
}

/// A message that nobody reads takes the memory of its bytes, however small the frames are that it comes in.
#[test]
fn small_messages_that_nobody_reads_hold_no_more_than_their_bytes() {
    let servers = Backend::listen();
    let kettle = Kettle::start(setup(&servers, "").set("server", "dumpable = true"));
    let mut frames = Frames::connect(&kettle, &[]);
    frames.send(&connect(1, "/app/ws", &[]));
    let (mut server, head) = asked(&servers);
    let before = kettle.memory_bytes();
    frames.send(&data(1, b"x").repeat(200_000));
    frames.ping();
    kettle.assert_grown_below(before, 4 << 20);
    server.write_all(agreement(&head).as_bytes()).unwrap();
    assert_eq!(read_exactly(&mut server, 200_000), vec![b'x'; 200_000]);
}

#[test]
fn nothing_but_the_servers_own_101_makes_a_tunnel() {
    let (servers, kettle, mut frames) = start();
    let plain = |first: &str| format!("HTTP/1.1 {first}\r\nContent-Length: 2\r\n\r\nno");
    for (number, (answer, status)) in [
        (Ok(plain("200 OK")), 502),
        (Ok(plain("204 No Content").replace("Content-Length: 2\r\n", "").replace("no", "")), 502),
        (Ok(plain("302 Found\r\nLocation: /x")), 302),
        (Ok(plain("404 Not Found")), 404),
        (Ok(plain("426 Upgrade Required")), 426),
        (Err(("Sec-WebSocket-Accept: ", "Sec-WebSocket-Accept: A")), 502),
        (Err(("Sec-WebSocket-Accept: ", "X: ")), 502),
        (Err(("Upgrade: WebSocket", "Upgrade: h2c")), 502),
        (Err(("Connection: Upgrade\r\n", "")), 502),
    ]
    .into_iter()
    .enumerate()
    {
        let stream = u32::try_from(2 * number + 1).unwrap();
        let target = format!("/app/{number}");
        let sent = [connect(stream, &target, &[]), data(stream, b"GET /app/hidden HTTP/1.1\r\n")];
        frames.send(&sent.concat());
        let (mut server, head) = asked(&servers);
        let answer = answer.unwrap_or_else(|(from, to)| agreement(&head).replace(from, to));
        server.write_all(answer.as_bytes()).unwrap();
        let response = frames.next_of(HEADERS);
        assert_eq!(response.stream, stream);
        assert_ne!(response.payload[0], OK, "{answer}");
        assert_eq!(kettle.entry(&target).number("status"), status, "{answer}");
        // Nothing that the client said is for this server.
        assert_eq!(read_to_end(&mut server).0, b"", "{answer}");
    }
    frames.ping();
}

#[test]
fn what_leads_to_no_tunnel_is_refused_by_status() {
    let (_servers, kettle, mut frames) = start();
    for (stream, target, status) in [
        (1, "/plain/1", 501),
        (3, "/10", 501),
        (5, "/guarded/1", 403),
        (7, "/nothing", 501),
        (9, "/kept/1", 501),
        (11, "/denied/.1", 403),
    ] {
        frames.send(&connect(stream, target, &[]));
        assert_eq!(frames.next_of(HEADERS).stream, stream);
        assert_eq!(kettle.entry(target).number("status"), status, "{target}");
    }
    let unknown = fields("CONNECT", "/app/udp", &[(":protocol", "connect-udp")]);
    frames.send(&frame(HEADERS, END_HEADERS, 101, &unknown));
    while frames.next_of(HEADERS).stream != 101 {}
    let other = fields("GET", "/app/get", &[(":protocol", "websocket")]);
    frames.send(&frame(HEADERS, END_HEADERS, 103, &other));
    frames.send(&connect(105, "/app/length", &[("content-length", "5")]));
    for stream in [103, 105] {
        loop {
            let reset = frames.next_of(RST_STREAM);
            if reset.stream == stream {
                break assert_eq!(code(&reset.payload), PROTOCOL_ERROR);
            }
        }
    }
    frames.ping();
}

#[test]
fn a_cut_on_one_side_is_a_cut_on_the_other() {
    let (servers, kettle, mut frames) = start();
    let mut server = standing(&mut frames, &servers, 1);
    frames.send(&[data(1, b"last"), cancel(1)].concat());
    let mut received = [0; 5];
    while server.read(&mut received).is_ok_and(|bytes| bytes > 0) {}
    assert_eq!(kettle.tunnel().text("end"), "client_reset");
    // Also where it had ended its own side before.
    let mut server = standing(&mut frames, &servers, 3);
    frames.send(&frame(DATA, END_STREAM, 3, b""));
    assert_eq!(read_to_end(&mut server).0, b"");
    frames.send(&cancel(3));
    assert_eq!(kettle.tunnel().text("end"), "client_reset");
    let server = standing(&mut frames, &servers, 5);
    reset(server);
    frames.expect_reset(5, CANCEL);
    assert_eq!(kettle.tunnel().text("end"), "backend_reset");
    frames.ping();
}

#[test]
fn what_came_before_a_cut_arrives() {
    let (servers, kettle, mut frames) = start();
    let mut server = standing(&mut frames, &servers, 1);
    // So that kettle finds all of it and the reset at once.
    kettle.signal(Signal::STOP);
    let sent = content(40_000);
    server.write_all(&sent).unwrap();
    reset(server);
    kettle.signal(Signal::CONT);
    let mut received = Vec::new();
    loop {
        let next = frames.next().expect("the stream alone is reset");
        match next.kind {
            DATA => received.extend(next.payload),
            RST_STREAM => break assert_eq!(code(&next.payload), CANCEL),
            _ => {}
        }
    }
    assert_same(&received, &sent, "before the reset");
}

#[test]
fn a_client_that_is_gone_takes_its_tunnels_along() {
    let (servers, kettle, mut frames) = start();
    let mut both = [1, 3].map(|stream| standing(&mut frames, &servers, stream));
    let shown = kettle.ctl(&["tunnels", "--json"]).succeed();
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["open"], 2);
    frames.client.wire.reset();
    for server in &mut both {
        while server.read(&mut [0]).is_ok_and(|bytes| bytes > 0) {}
        assert_eq!(kettle.tunnel().text("end"), "client_reset");
    }
    kettle.wait_until_idle();
}

#[test]
fn much_flows_both_ways_and_no_more_than_windows_let_through() {
    let (servers, _kettle, mut frames) = start();
    frames.acknowledge();
    let mut server = standing(&mut frames, &servers, 1);
    let body = content(1 << 20);
    let sent = body.clone();
    let mut writing = server.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        writing.write_all(&sent).unwrap();
        writing.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let upload = content(200_000);
    for piece in upload.chunks(16_384) {
        frames.send(&data(1, piece));
    }
    assert_same(&frames.body(1), &body, "to the client");
    sending.join().unwrap();
    frames.send(&frame(DATA, END_STREAM, 1, b""));
    assert_same(&read_to_end(&mut server).0, &upload, "to the server");
}

#[test]
fn a_tunnel_whose_window_stays_shut_is_idle() {
    let servers = Backend::listen();
    let kettle = Kettle::start(setup(&servers, "idle_timeout = \"1s\""));
    let mut frames = Frames::connect(&kettle, &[(INITIAL_WINDOW_SIZE, 0)]);
    let mut server = standing(&mut frames, &servers, 1);
    server.write_all(b"nobody takes this").unwrap();
    frames.expect_reset(1, CANCEL);
    while server.read(&mut [0]).is_ok_and(|bytes| bytes > 0) {}
    assert_eq!(kettle.tunnel().text("end"), "idle");
    frames.ping();
}

/// The priority of a response (RFC 9218 §7.1) tells when its bytes come, not that others wait for its end.
#[test]
fn a_tunnel_of_any_priority_holds_nobody_up_between_its_messages() {
    const FILE_BYTES: usize = 1 << 20;
    let servers = Backend::listen();
    let kettle = Kettle::start(setup(&servers, "").sizes(&[FILE_BYTES]).without_memory());
    let open = |bytes: u32| update(0, bytes);
    for value in ["u=3", "u=0"] {
        // Only the connection's window is ever shut.
        let mut frames = Frames::connect(&kettle, &[(INITIAL_WINDOW_SIZE, 1 << 24)]);
        let mut server = standing(&mut frames, &servers, 1);
        let update = [&1_u32.to_be_bytes()[..], value.as_bytes()].concat();
        frames.send(&frame(PRIORITY_UPDATE, 0, 0, &update));
        frames.send(&get(3, &format!("/{FILE_BYTES}")));
        let mut body = Vec::new();
        while body.len() < 65_535 {
            body.extend(said(&mut frames, 3));
        }
        server.write_all(b"message").unwrap();
        // A little at a time, until the message was there when the window opened.
        let message = loop {
            frames.send(&open(7));
            let data = frames.next_of(DATA);
            if data.stream == 1 {
                break data.payload;
            }
            body.extend(data.payload);
        };
        assert_eq!(message, b"message", "{value}");
        frames.send(&open(65_535));
        body.extend(frames.body(3));
        assert_same(&body, &content(FILE_BYTES), value);
        frames.send(&get(5, "/10"));
        assert_eq!(frames.body(5), content(10), "{value}");
        server.write_all(b"more").unwrap();
        assert_eq!(said(&mut frames, 1), b"more", "{value}");
    }
}

#[test]
fn a_tunnel_is_a_request_of_its_client_until_it_ends() {
    let (servers, kettle, mut frames) = start();
    for (stream, is_reset) in [(1, false), (5, true)] {
        frames.send(&connect(stream, "/limited/ws", &[]));
        let (mut server, head) = asked(&servers);
        server.write_all(agreement(&head).as_bytes()).unwrap();
        assert_eq!(frames.next_of(HEADERS).payload[0], OK);
        frames.send(&get(stream + 2, "/limited/x"));
        assert_eq!(frames.next_of(HEADERS).stream, stream + 2);
        assert_eq!(kettle.entry("/limited/x").number("status"), 429);
        if is_reset {
            frames.send(&cancel(stream));
            assert!(read_to_end(&mut server).1.is_err());
        } else {
            frames.send(&frame(DATA, END_STREAM, stream, b""));
            assert_eq!(read_to_end(&mut server).0, b"");
        }
        drop(server);
        let _ended = kettle.tunnel();
    }
}

#[test]
fn tunnels_outlive_reloads_and_are_waited_for_at_the_end() {
    let servers = Backend::listen();
    let mut kettle = Kettle::start(setup(&servers, ""));
    for is_stop in [false, true] {
        let mut frames = Frames::connect(&kettle, &[]);
        let mut server = standing(&mut frames, &servers, 1);
        if is_stop {
            kettle.signal(Signal::TERM);
        } else {
            kettle.reload_with("http2 = true", "http2 = true\ncrossover = \"1 MiB\"");
        }
        frames.send(&data(1, b"still"));
        assert_eq!(code(&frames.next_of(GOAWAY).payload[4..]), NO_ERROR);
        let ping = frames.next_of(PING).payload;
        frames.send(&frame(PING, ACK, 0, &ping));
        assert_eq!(read_exactly(&mut server, 5), b"still");
        server.write_all(b"here").unwrap();
        assert_eq!(said(&mut frames, 1), b"here");
        frames.send(&frame(DATA, END_STREAM, 1, b""));
        assert_eq!(read_to_end(&mut server).0, b"");
        drop(server);
        assert_ended(&mut frames, 1);
        assert_eq!(kettle.tunnel().text("end"), "client_closed");
        assert_eq!(frames.end().1, End::Orderly);
    }
    assert!(kettle.ended().status.success());
}

/// Its client would take any success for the server's side of its WebSocket.
#[test]
fn no_success_answers_a_request_for_a_tunnel_but_a_tunnel() {
    let servers = Backend::listen();
    let before = "[[site.before]]\nwhen = [{ of = \"{path}\", text = \"/health\" }]\nrespond = { status = 200 }\n";
    let files = "[[site.route]]\nprefix = \"/files\"\nroot = \"www\"\nbackend = \"app\"\nmissing = \"backend\"\nwebsocket = true\n";
    let setup = over_http2().more(&[before, files].concat());
    let setup = setup.file("www/a.txt", "a").more(&backend("app", "", &[servers.address()]));
    let kettle = Kettle::start(setup);
    let mut frames = Frames::connect(&kettle, &[]);
    for (stream, path) in [(1, "/health"), (3, "/files/a.txt")] {
        frames.send(&connect(stream, path, &[]));
        assert_ne!(frames.next_of(HEADERS).payload[0], OK, "{path}");
    }
}
