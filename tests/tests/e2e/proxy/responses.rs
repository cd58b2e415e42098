//! Responses that are taken at their server's speed, whatever time their clients take.

use kettle_tests::application::{asked, end, output};

use super::*;
use crate::http2::frames::{self, DATA, END_STREAM, Frames, frame};

/// More than sockets hold on their way.
const BYTES: usize = 20 << 20;

const STORING: &str = "response_buffering = true";

fn start(route: &str, settings: &str, backend: &Backend) -> Kettle {
    let setup = before(route, settings, &[backend.address()]);
    Kettle::start(setup.listener("http2 = true").set("limits", "write_timeout = \"60s\""))
}

/// A client that takes nothing until it reads.
fn slow_client(kettle: &Kettle, head: &[u8]) -> Client {
    let mut client = Dialer::default().reading_slowly().connect(kettle.address());
    client.send(head).unwrap();
    client
}

/// Takes the next request, and sends what no socket holds.
fn send_all(backend: &Backend, head: &str, body: &[u8]) -> TcpStream {
    let mut server = backend.accept();
    server.set_write_timeout(Some(patience())).unwrap();
    read_head(&mut server);
    server.write_all(head.as_bytes()).unwrap();
    server.write_all(body).expect("the body is taken though its client takes nothing");
    server
}

fn in_chunks(body: &[u8]) -> Vec<u8> {
    let chunk = |data: &[u8]| [format!("{:x}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat();
    let mut chunks: Vec<u8> = body.chunks(100_000).flat_map(chunk).collect();
    chunks.extend(b"0\r\nX-Trailer: 1\r\n\r\n");
    chunks
}

#[test]
fn a_server_is_free_before_its_client_takes_anything() {
    let body = content(BYTES);
    let length = format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n");
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (route, head, sent) in [
        ("", &*length, body.clone()),
        ("", chunked, in_chunks(&body)),
        ("limit_rate = \"1 GiB\"", &length, body.clone()),
    ] {
        let backend = Backend::listen();
        let kettle = start(&format!("{STORING}\n{route}"), "", &backend);
        let mut slow = slow_client(&kettle, &request("GET", "/app/slow", "TE: trailers\r\n"));
        let mut server = send_all(&backend, head, &sent);
        // Its connection is kept, and answers another client.
        kettle.wait_for_status("/backends/0/servers/0/connections", 0);
        let mut quick = kettle.ask(&get("/app/quick"));
        assert!(answer(&mut server, &ok("quick")).starts_with("GET /app/quick "));
        assert_eq!(quick.response().body, b"quick");
        assert!(kettle.status("/spool/bytes").as_u64() > Some(1 << 20));
        assert_same(&any_body(&mut slow), &body, route);
        kettle.wait_for_status("/spool/bytes", 0);
        assert_eq!(kettle.status("/spool/files"), 0);
        assert!(kettle.entry("/app/slow").is_complete());
    }
}

/// The body of a response with a length, or in chunks with a trailer.
fn any_body(client: &mut Client) -> Vec<u8> {
    let response = client.response_head();
    if response.header("transfer-encoding").is_none() {
        return client.receive_exactly(BYTES);
    }
    let mut body = Vec::new();
    let mut line = Vec::new();
    loop {
        line.extend(client.receive_exactly(1));
        let Some(size) = line.strip_suffix(b"\r\n") else { continue };
        let size = usize::from_str_radix(std::str::from_utf8(size).unwrap(), 16).unwrap();
        if size == 0 {
            assert_eq!(client.receive_exactly(16), b"x-trailer: 1\r\n\r\n");
            return body;
        }
        body.extend(client.receive_exactly(size));
        assert_eq!(client.receive_exactly(2), b"\r\n");
        line.clear();
    }
}

#[test]
fn programs_are_free_by_default_and_what_they_send_without_a_length_is_whole() {
    let backend = Backend::listen();
    let kettle = start("", "protocol = \"fastcgi\"", &backend);
    let body = content(BYTES);
    let mut slow = slow_client(&kettle, &get("/app/slow"));
    let mut program = backend.accept();
    program.set_write_timeout(Some(patience())).unwrap();
    let _ = asked(&mut program);
    program.write_all(&output(b"Content-Type: a/b\r\n\r\n")).unwrap();
    for piece in body.chunks(60_000) {
        program.write_all(&output(piece)).expect("it is taken at once");
    }
    program.write_all(&[output(b""), end(0)].concat()).unwrap();
    assert_eq!(program.read(&mut [0]).unwrap(), 0, "kettle is done with the program");
    assert_same(&any_response(&mut slow).body, &body, "a program's");
    // One that dies has not sent the whole.
    let mut slow = slow_client(&kettle, &get("/app/cut"));
    let mut program = backend.accept();
    let _ = asked(&mut program);
    program.write_all(&output(b"Content-Type: a/b\r\n\r\n")).unwrap();
    for piece in body.chunks(60_000) {
        program.write_all(&output(piece)).unwrap();
    }
    drop(program);
    let mut received = Vec::new();
    let mut room = vec![0; 65_536];
    let error = loop {
        match slow.receive(&mut room) {
            Ok(bytes) => received.extend_from_slice(&room[..bytes]),
            Err(error) => break error,
        }
        assert!(!received.ends_with(b"\r\n0\r\n\r\n"), "a cut body has no end");
    };
    assert_eq!(end_of(&error), End::Cut);
    assert!(received.len() > BYTES, "{}", received.len());
    let entry = kettle.entry("/app/cut");
    assert!(!entry.is_complete());
    assert_eq!(entry.text("upstream_failure"), "closed_early");
}

#[test]
fn a_client_sees_that_a_stored_body_was_cut() {
    let backend = Backend::listen();
    let kettle = start(STORING, "", &backend);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", BYTES + 1);
    let body = content(BYTES);
    let mut slow = slow_client(&kettle, &get("/app/cut"));
    drop(send_all(&backend, &head, &body));
    kettle.wait_for_status("/spool/files", 1);
    slow.response_head();
    assert_same(&slow.receive_exactly(BYTES), &body, "what came");
    assert_eq!(slow.end(), End::Cut);
    assert_eq!(kettle.entry("/app/cut").text("upstream_failure"), "closed_early");
    kettle.wait_for_status("/spool/bytes", 0);
}

#[test]
fn a_client_that_leaves_frees_its_server_and_all_that_is_stored() {
    let backend = Backend::listen();
    let kettle = start(STORING, "", &backend);
    let slow = slow_client(&kettle, &get("/app/left"));
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 2 * BYTES);
    let mut server = send_all(&backend, &head, &content(BYTES));
    wait_until("it is stored", || kettle.status("/spool/bytes").as_u64() > Some(1 << 20));
    drop(slow);
    // It is told no end of what it has not sent.
    let _ = read_to_end(&mut server);
    kettle.wait_for_status("/spool/bytes", 0);
    assert_eq!(kettle.status("/spool/files"), 0);
    assert!(!kettle.entry("/app/left").is_complete());
}

#[test]
fn what_nobody_asked_to_store_goes_at_the_speed_of_its_client() {
    for (route, field) in [
        ("", ""),
        ("response_buffering = false", "X-Accel-Buffering: yes\r\n"),
        (STORING, "X-Accel-Buffering: no\r\n"),
        (STORING, "Content-Type: text/event-stream; charset=utf-8\r\n"),
    ] {
        let backend = Backend::listen();
        let kettle = start(route, "", &backend);
        let mut slow = slow_client(&kettle, &get("/app"));
        let mut server = backend.accept();
        read_head(&mut server);
        server.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
        let head = format!("HTTP/1.1 200 OK\r\n{field}Content-Length: {BYTES}\r\n\r\n");
        server.write_all(head.as_bytes()).unwrap();
        let body = content(BYTES);
        let mut sent = 0;
        let error = loop {
            match server.write(&body[sent..]) {
                Ok(bytes) => sent += bytes,
                Err(error) => break error,
            }
            assert!(sent < BYTES, "{route} {field}");
        };
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert_eq!(kettle.status("/spool/bytes"), 0);
        server.set_write_timeout(Some(patience())).unwrap();
        thread::scope(|threads| {
            threads.spawn(|| server.write_all(&body[sent..]).unwrap());
            assert_same(&any_response(&mut slow).body, &body, field);
        });
    }
}

/// Each piece is passed on at once, and a server may ask for it itself.
#[test]
fn nothing_is_held_back() {
    let backend = Backend::listen();
    let kettle = start("", "", &backend);
    let mut client = kettle.ask(&get("/app"));
    let mut server = backend.accept();
    read_head(&mut server);
    let head = "HTTP/1.1 200 OK\r\nX-Accel-Buffering: yes\r\nContent-Length: 10\r\n\r\n";
    server.write_all(head.as_bytes()).unwrap();
    assert_eq!(client.response_head().header("x-accel-buffering"), None);
    for piece in [b"first", b"other"] {
        server.write_all(piece).unwrap();
        assert_eq!(client.receive_exactly(5), piece);
    }
    client.send(&request("HEAD", "/app", "")).unwrap();
    let head =
        format!("HTTP/1.1 200 OK\r\nX-Accel-Buffering: yes\r\nContent-Length: {BYTES}\r\n\r\n");
    answer(&mut server, &head);
    assert_eq!(client.response_head().announced_bytes(), BYTES);
}

#[test]
fn where_there_is_no_room_a_client_gets_all_at_its_own_speed() {
    let body = content(BYTES);
    for (section, setting) in
        [("limits", "request_spool = 0"), ("server", "state_directory = \"/proc/no/folder\"")]
    {
        let backend = Backend::listen();
        let setup = before(STORING, "", &[backend.address()]);
        let kettle = Kettle::start(setup.set(section, setting));
        let mut slow = slow_client(&kettle, &get("/app"));
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n");
        thread::scope(|threads| {
            let sending = threads.spawn(|| send_all(&backend, &head, &body));
            assert_same(&any_response(&mut slow).body, &body, setting);
            sending.join().unwrap();
        });
        kettle.wait_for_status("/spool/bytes", 0);
    }
}

/// One connection of HTTP/2 with windows that are shut has all its servers free.
#[test]
fn a_hundred_streams_that_wait_keep_no_server() {
    const STREAMS: usize = 100;
    let backend = Backend::listen();
    let kettle = start(STORING, "queue_timeout = \"60s\"", &backend);
    let body = content(400_000);
    let mut frames = Frames::connect(&kettle, &[]);
    let head =
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    for number in 0..STREAMS {
        let stream = u32::try_from(2 * number + 1).unwrap();
        frames.send(&frames::get(stream, "/app/h2"));
    }
    for _ in 0..STREAMS {
        let mut server = send_all(&backend, &head, &body);
        assert_eq!(server.read(&mut [0]).unwrap(), 0, "all of it was taken");
    }
    let mut bodies = vec![Vec::new(); STREAMS];
    let mut left = STREAMS;
    while left > 0 {
        let data = frames.next_of(DATA);
        bodies[(data.stream as usize - 1) / 2].extend_from_slice(&data.payload);
        left -= usize::from(data.flags & END_STREAM != 0);
        let more = u32::try_from(data.payload.len()).unwrap().to_be_bytes();
        if !data.payload.is_empty() {
            for stream in [0, data.stream] {
                frames.send(&frame(frames::WINDOW_UPDATE, 0, stream, &more));
            }
        }
    }
    for streamed in &bodies {
        assert_same(streamed, &body, "a stream's");
    }
    kettle.wait_for_status("/spool/bytes", 0);
}

#[test]
fn a_process_that_ends_sends_what_is_stored() {
    let backend = Backend::listen();
    let mut kettle = start(STORING, "", &backend);
    let body = content(BYTES);
    let mut slow = slow_client(&kettle, &get("/app"));
    let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {BYTES}\r\n\r\n");
    drop(send_all(&backend, &head, &body));
    let _ = kettle.ctl(&["reload"]).succeed();
    kettle.signal(rustix::process::Signal::TERM);
    assert_same(&any_response(&mut slow).body, &body, "after the end began");
    drop(slow);
    let _ = kettle.ended();
}
