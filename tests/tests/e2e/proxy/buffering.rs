//! Bodies that are stored before a server gets them: which, how they arrive, and what of them never does.

use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Stdio;

use kettle_tests::mounted::Mounted;
use rustix::process::geteuid;

use super::*;
use crate::http2::frames::{DATA, END_STREAM, Frames, HEADERS, RST_STREAM, frame, post};

const CHUNKED: &str = "Transfer-Encoding: chunked\r\n";

/// A server that stores bodies without a length, as by default.
fn start(route: &str, backend: &Backend) -> Kettle {
    start_with("unknown-length", route, "", backend)
}

fn start_with(buffering: &str, route: &str, limits: &str, backend: &Backend) -> Kettle {
    let setup = before_with(buffering, route, "", &[backend.address()]);
    Kettle::start(setup.listener("http2 = true").set("limits", limits))
}

fn chunks(body: &[u8], bytes: usize) -> Vec<u8> {
    let chunk = |data: &[u8]| [format!("{:x}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat();
    let mut chunks: Vec<u8> = body.chunks(bytes).flat_map(chunk).collect();
    chunks.extend(b"0\r\nX-Trailer: 1\r\n\r\n");
    chunks
}

/// Returns what a server gets as a body of this length.
fn arrived(backend: &Backend, bytes: usize) -> Vec<u8> {
    let mut server = backend.accept();
    let head = read_head(&mut server);
    assert!(head.ends_with(&format!("content-length: {bytes}\r\n\r\n")), "{head}");
    assert!(!head.contains("transfer-encoding") && !head.contains("expect"), "{head}");
    let body = read_exactly(&mut server, bytes);
    let done = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    server.write_all(done.as_bytes()).unwrap();
    body
}

#[test]
fn a_body_without_a_length_arrives_with_one() {
    let backend = Backend::listen();
    let kettle = start("", &backend);
    // Nothing, in memory, and in a file.
    for bytes in [0, 10, 65_536, 300_001] {
        let body = content(bytes);
        let mut client = kettle.ask(&request("POST", "/app", CHUNKED));
        client.send(&chunks(&body, 10_000)).unwrap();
        assert_same(&arrived(&backend, bytes), &body, "over HTTP/1.1");
        assert_eq!(client.response().body, b"ok");
        client.send(&request("POST", "/app", "Content-Length: 3\r\n")).unwrap();
        client.send(b"abc").unwrap();
        assert_eq!(arrived(&backend, 3), b"abc");
        assert_eq!(client.response().body, b"ok");
        // A body of HTTP/2 need not say its length; one of nothing is none.
        let sent = content(bytes.clamp(1, 60_000));
        let mut frames = Frames::connect(&kettle, &[]);
        frames.send(&post(1, "/app"));
        for piece in sent.chunks(16_000) {
            frames.send(&frame(DATA, 0, 1, piece));
        }
        frames.send(&frame(DATA, END_STREAM, 1, b""));
        assert_same(&arrived(&backend, sent.len()), &sent, "over HTTP/2");
        assert_eq!(frames.body(1), b"ok");
    }
}

#[test]
fn no_server_waits_for_a_body_that_is_stored() {
    let backend = Backend::listen();
    let kettle = start("", &backend);
    let mut slow = kettle.ask(&request("POST", "/app/slow", CHUNKED));
    slow.send(b"3\r\nabc\r\n").unwrap();
    // Another request is the first that the server sees.
    let mut client = kettle.ask(&get("/app/quick"));
    let mut server = backend.accept();
    let head = answer(&mut server, &ok("quick"));
    assert!(head.starts_with("GET /app/quick "), "{head}");
    assert_eq!(client.response().body, b"quick");
    slow.send(b"0\r\n\r\n").unwrap();
    let head = read_head(&mut server);
    assert!(head.starts_with("POST /app/slow ") && head.contains("content-length: 3"), "{head}");
    assert_eq!(read_exactly(&mut server, 3), b"abc");
}

#[test]
fn what_breaks_off_or_is_too_long_never_reaches_a_server() {
    let backend = Backend::listen();
    let kettle = start_with("all", "request_body = \"200 KiB\"", "", &backend);
    let mut long = kettle.ask(&request("POST", "/app/long", CHUNKED));
    let _ = long.send(&chunks(&content(204_801), 9_999));
    assert_eq!(long.response().status, 413);
    let mut broken = kettle.ask(&request("POST", "/app/broken", CHUNKED));
    broken.send(b"3\r\nabc\r\nxyz\r\n").unwrap();
    assert_eq!(broken.response().status, 400);
    let mut left = kettle.ask(&request("POST", "/app/left", "Content-Length: 100\r\n"));
    left.send(b"part").unwrap();
    drop(left);
    assert_eq!(kettle.entry("/app/left").number("status"), 400);
    let mut frames = Frames::connect(&kettle, &[]);
    frames.send(&[post(1, "/app/taken"), frame(DATA, 0, 1, b"part")].concat());
    frames.send(&frame(RST_STREAM, 0, 1, &8_u32.to_be_bytes()));
    let entry = kettle.entry("/app/taken");
    assert_eq!((entry.number("status"), entry.text("upstream_failure")), (499, "client_gone"));
    // The whole request is the first that the server sees, with the length that it had.
    let mut client =
        kettle.ask(&request("POST", "/app", "Content-Length: 5\r\nExpect: 100-continue\r\n"));
    assert_eq!(client.response_head().status, 100);
    client.send(b"hello").unwrap();
    assert_eq!(arrived(&backend, 5), b"hello");
    assert_eq!(client.response().body, b"ok");
}

#[test]
fn a_route_may_refuse_bodies_without_a_length() {
    let backend = Backend::listen();
    let kettle = start_with("refuse", "", "", &backend);
    let mut client = kettle.ask(&request("POST", "/app", CHUNKED));
    client.send(b"0\r\n\r\n").unwrap();
    assert_eq!(client.response().status, 411);
    let mut frames = Frames::connect(&kettle, &[]);
    frames.send(&[post(1, "/app/h2"), frame(DATA, END_STREAM, 1, b"abc")].concat());
    assert_eq!(frames.next_of(HEADERS).stream, 1);
    assert_eq!(kettle.entry("/app/h2").number("status"), 411);
    client.send(&request("POST", "/app", "Content-Length: 3\r\n")).unwrap();
    client.send(b"abc").unwrap();
    assert_eq!(arrived(&backend, 3), b"abc");
}

#[test]
fn calls_of_grpc_are_passed_on_as_they_come() {
    let backend = Backend::listen();
    let kettle = start_with("all", "", "", &backend);
    let head = format!("{CHUNKED}Content-Type: Application/gRPC+proto\r\n");
    let mut client = kettle.ask(&request("POST", "/app", &head));
    let mut server = backend.accept();
    let head = read_head(&mut server);
    assert!(head.ends_with("transfer-encoding: chunked\r\n\r\n"), "{head}");
    client.send(b"3\r\nabc\r\n").unwrap();
    assert_eq!(read_exactly(&mut server, 8), b"3\r\nabc\r\n");
}

/// A client says that its call is one of gRPC, and a server may know no body without a length whatever that is.
#[test]
fn what_a_server_may_take_for_its_next_request_is_its_last() {
    for (buffering, is_kept) in [("unknown-length", false), ("all", false), ("off", true)] {
        let backend = Backend::listen();
        let kettle = start_with(buffering, "", "", &backend);
        let mut client = Dialer::default().connect(kettle.address());
        let head = format!("{CHUNKED}Content-Type: application/grpc\r\nTE: trailers\r\n");
        client
            .send(&[&request("POST", "/app", &head)[..], b"3\r\nabc\r\n0\r\n\r\n"].concat())
            .unwrap();
        let mut server = backend.accept();
        let head = read_head(&mut server);
        assert_eq!(head.contains("connection: close, te\r\n"), !is_kept, "{head}");
        assert_eq!(read_exactly(&mut server, 13), b"3\r\nabc\r\n0\r\n\r\n");
        server.write_all(ok("call").as_bytes()).unwrap();
        assert_eq!(client.response().body, b"call");
        client.send(&get("/app")).unwrap();
        let mut next = if is_kept { server } else { backend.accept() };
        let head = answer(&mut next, &ok("next"));
        assert!(head.starts_with("GET /app ") && !head.contains("close"), "{head}");
        assert_eq!(client.response().body, b"next");
    }
}

#[test]
fn what_all_bodies_take_is_bounded_and_free_again() {
    let backend = Backend::listen();
    let kettle = start_with("unknown-length", "", "request_spool = \"600 KiB\"", &backend);
    let body = content(200_000);
    let mut too_long = kettle.ask(&request("POST", "/app", CHUNKED));
    let _ = too_long.send(&chunks(&content(307_201), 10_000));
    assert_eq!(too_long.response().status, 413);
    // One client has half of it. Of two bodies that have no room together one is told so, whichever it is.
    let halves = [190_000, 290_000].map(|bytes| {
        let mut client = kettle.ask(&request("POST", "/app/half", CHUNKED));
        let all = chunks(&content(bytes), 10_000);
        let _ = client.send(&all[..bytes]);
        client
    });
    let entry = kettle.entry("/app/half");
    assert_eq!((entry.number("status"), entry.text("upstream_failure")), (503, "spool_full"));
    drop(halves);
    thread::scope(|threads| {
        threads.spawn(|| assert_same(&arrived(&backend, body.len()), &body, "afterwards"));
        loop {
            let mut client = kettle.ask(&request("POST", "/app", CHUNKED));
            let _ = client.send(&chunks(&body, 10_000));
            let response = client.response();
            if response.status == 200 {
                break;
            }
            assert_eq!((response.status, response.header("retry-after")), (503, Some("1")));
        }
    });
}

#[test]
fn one_client_leaves_room_for_others_and_what_is_stored_is_shown() {
    let backend = Backend::listen();
    let setup = before_with("unknown-length", "", "", &[backend.address()]);
    let listen = unused_address();
    let setup = setup.listener("trusted_proxies = [\"127.0.0.0/8\"]").metrics(listen);
    let kettle = Kettle::start(setup.set("limits", "request_spool = \"300 KiB\""));
    let send = |target: &str, from: &str, body: &[u8]| {
        let head = format!("{CHUNKED}X-Forwarded-For: {from}\r\n");
        let mut client = kettle.ask(&request("POST", target, &head));
        let _ = client.send(body);
        client
    };
    let unfinished = |bytes| {
        let mut body = chunks(&content(bytes), 10_000);
        body.truncate(body.len() - b"0\r\nX-Trailer: 1\r\n\r\n".len());
        body
    };
    for (first, second, other) in
        [("192.0.2.1", "192.0.2.1", "192.0.2.2"), ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1")]
    {
        let stays = send("/app/stays", first, &unfinished(150_000));
        kettle.wait_for_status("/spool/bytes", 150_000);
        let mut refused = send("/app/refused", second, &chunks(&content(10_000), 10_000));
        assert_eq!(refused.response().status, 503);
        assert_eq!(kettle.entry("/app/refused").text("upstream_failure"), "spool_full");
        let mut taken = send("/app/taken", other, &chunks(&content(70_000), 10_000));
        assert_same(&arrived(&backend, 70_000), &content(70_000), "of another client");
        assert_eq!(taken.response().status, 200);
        kettle.wait_for_status("/spool/bytes", 150_000);
        let screen = kettle.ctl(&["status"]).succeed();
        let line = "spool        146.4 KiB of 300.0 KiB stored, 1 bodies in files\n";
        assert!(screen.contains(line), "{screen}");
        let metrics = scrape(listen);
        for line in ["spool_bytes 150000\n", "spool_bytes_max 307200\n", "spool_files 1\n"] {
            assert!(metrics.contains(&format!("\nkettle_{line}")), "{line} {metrics}");
        }
        drop(stays);
        kettle.wait_for_status("/spool/bytes", 0);
    }
}

#[test]
fn a_full_disk_gets_503_and_all_of_it_is_free_again() {
    let folder = TempDir::new().unwrap();
    let mounted = Mounted::at(folder.path().into(), "tmpfs", "size=128k", Stdio::null());
    let Ok(_mounted) = mounted else { return skip("no tmpfs can be mounted here") };
    let backend = Backend::listen();
    let setup = before_with("unknown-length", "", "", &[backend.address()]);
    let directory = format!("state_directory = \"{}\"", folder.path().display());
    let setup = setup.listener("http2 = true").set("server", &directory);
    let kettle = Kettle::start(setup);
    for target in ["/app/one", "/app/two"] {
        let mut client = kettle.ask(&request("POST", target, CHUNKED));
        let _ = client.send(&chunks(&content(600_000), 10_000));
        assert_eq!(client.response().status, 503);
        let entry = kettle.entry(target);
        assert_eq!((entry.number("status"), entry.text("upstream_failure")), (503, "spool_failed"));
    }
    let mut frames = Frames::connect(&kettle, &[]);
    frames.send(&post(1, "/app/http2"));
    for piece in content(240_000).chunks(16_000) {
        frames.send(&frame(DATA, 0, 1, piece));
    }
    let entry = kettle.entry("/app/http2");
    assert_eq!((entry.number("status"), entry.text("upstream_failure")), (503, "spool_failed"));
    kettle.wait_for_status("/spool/bytes", 0);
    assert_eq!(kettle.status("/spool/files"), 0);
    assert_eq!(fs::read_dir(folder.path().join("bodies")).unwrap().count(), 0);
    let said = kettle.messages().text();
    assert_eq!(said.matches("could not be stored").count(), 1, "{said}");
    // Half of it had been written for each, and has room again.
    let mut client = kettle.ask(&request("POST", "/app", CHUNKED));
    client.send(&chunks(&content(130_000), 10_000)).unwrap();
    assert_same(&arrived(&backend, 130_000), &content(130_000), "afterwards");
    assert_eq!(client.response().status, 200);
}

/// nginx makes the folder of its bodies as root, and gives it to its user.
#[test]
fn a_start_as_root_makes_the_folder_of_bodies_for_the_user_that_serves() {
    if !geteuid().is_root() {
        return skip("only root can become somebody else");
    }
    // Each step to it is root's alone.
    let above = tempfile::Builder::new().prefix(".kettle").tempdir_in("/var/lib").unwrap();
    fs::set_permissions(above.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let state = above.path().join("state");
    let backend = Backend::listen();
    let directory = format!("state_directory = \"{}\"", state.display());
    let setup = before_with("all", "", "", &[backend.address()]).set("server", &directory);
    let kettle = Kettle::start(setup.set("server", "user = \"nobody\""));
    let mut client = kettle.ask(&request("POST", "/app", CHUNKED));
    client.send(&chunks(&content(130_000), 10_000)).unwrap();
    assert_same(&arrived(&backend, 130_000), &content(130_000), "stored");
    assert_eq!(client.response().status, 200);
    // One that was there already is not given away, but named.
    chown(&state, Some(0), None).unwrap();
    let said = Tool::kettle(["check", "--config"]).args([kettle.folder.config()]).output();
    assert!(!said.status.success() && said.text().contains("of more than 64 KiB get 503"));
}

/// Servers that pass a body back as it comes begin before they have all of it.
#[test]
fn a_response_that_begins_in_the_middle_of_a_stored_body_gets_the_rest_of_it() {
    let backend = Backend::listen();
    let kettle = start("", &backend);
    let body = content(12 << 20);
    thread::scope(|threads| {
        threads.spawn(|| {
            let mut server = backend.accept();
            let head = read_head(&mut server);
            assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
            let begin = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            server.write_all(begin.as_bytes()).unwrap();
            let mut left = body.len();
            let mut room = vec![0; 65_536];
            while left > 0 {
                let bytes = server.read(&mut room).unwrap();
                server.write_all(&room[..bytes]).unwrap();
                left -= bytes;
            }
        });
        let mut client = kettle.ask(&request("POST", "/app", CHUNKED));
        client.send(&chunks(&body, 60_000)).unwrap();
        assert_same(&any_response(&mut client).body, &body, "came back");
    });
}

#[test]
fn an_answer_that_wants_no_more_of_a_stored_body_is_passed_on() {
    let backend = Backend::listen();
    let kettle = start("", &backend);
    let mut client = kettle.ask(&request("POST", "/app", CHUNKED));
    client.send(&chunks(&content(12 << 20), 60_000)).unwrap();
    let mut server = backend.accept_request();
    server.write_all(b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno").unwrap();
    assert_eq!(client.response().body, b"no");
    let (part, _) = read_to_end(&mut server);
    assert!(part.len() < 12 << 20);
    // The client's connection goes on: its body was read to the end.
    client.send(&get("/app")).unwrap();
    serves(&mut client, &mut backend.accept(), "next");
}
