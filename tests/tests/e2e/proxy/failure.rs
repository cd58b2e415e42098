//! Servers that do not do what they should: what the client gets, what the log says, and that nobody takes a part for the whole.

use super::*;

#[test]
fn malformed_responses_are_a_502_and_their_connection_is_closed() {
    let (backend, kettle) = started("", "");
    let mut client = Dialer::default().connect(kettle.address());
    for (response, reason) in [
        ("SSH-2.0-OpenSSH_10\r\n", "status_line"),
        ("HTTP/2.0 200 OK\r\n\r\n", "status_line"),
        ("\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64", "http2_server"),
        ("HTTP/1.1 099 OK\r\n\r\n", "status"),
        ("HTTP/1.1 200 OK\n\n", "status_line"),
        ("HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n", "field_name"),
        ("HTTP/1.1 200 OK\r\nA: b\rSet-Cookie: c\r\n\r\n", "field_value"),
        ("HTTP/1.1 200 OK\r\nA: b\0\r\n\r\n", "field_value"),
        ("HTTP/1.1 200 OK\r\nA b\r\n\r\n", "field_name"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "content_length_repeated",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "transfer_encoding_with_content_length",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "transfer_coding_unsupported",
        ),
        (
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "transfer_encoding_in_http_1_0",
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            "unasked_upgrade",
        ),
    ] {
        client.send(&get("/app")).unwrap();
        let mut server = backend.accept();
        answer(&mut server, response);
        let status = client.response().status;
        assert_eq!(status, 502, "{response:?}");
        assert_eq!(kettle.entry("/app").text("upstream_failure"), reason, "{response:?}");
        assert_eq!(read_to_end(&mut server).0, b"", "{response:?}");
    }
}

#[test]
fn a_response_in_single_bytes_is_the_same() {
    let (backend, kettle) = started("", "");
    let mut client = kettle.ask(&get("/app"));
    let mut server = backend.accept_request();
    for byte in ok("bytes").bytes() {
        server.write_all(&[byte]).unwrap();
    }
    assert_eq!(client.response().body, b"bytes");
}

#[test]
fn a_body_that_ends_early_is_cut_without_a_close_notify() {
    for (response, end_of_last) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", &b"half"[..]),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", b"4\r\nhalf"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n", b"4\r\nhalf"),
    ] {
        let (backend, kettle) = started("", "");
        let mut client = kettle.ask(&get("/app"));
        let mut server = backend.accept();
        answer(&mut server, response);
        drop(server);
        assert_eq!(client.response_head().status, 200);
        assert_eq!(client.end(), End::Cut);
        assert_eq!(client.beyond(), end_of_last, "no last chunk, no more data");
        let entry = kettle.entry("/app");
        assert!(!entry.is_complete());
        assert!(!entry.text("upstream_failure").is_empty());
    }
}

#[test]
fn a_head_reaches_the_client_also_where_the_servers_end_comes_with_it() {
    for path in ["user", "kernel-write", "kernel-sendfile"] {
        let backend = Backend::listen();
        let setup = before("", "", &[backend.address()]);
        let kettle = Kettle::start(setup.listener(&format!("path = \"{path}\"")));
        for (version, coding) in [
            ("1.1", "Content-Length: 100"),
            ("1.1", "Content-Length: 100000"),
            ("1.1", "Transfer-Encoding: chunked"),
            ("1.0", "Content-Length: 100"),
        ] {
            let mut client = Dialer::default().connect(kettle.address());
            let order = format!(
                "POST /app HTTP/{version}\r\nHost: localhost\r\nContent-Length: 5\r\n\r\norder"
            );
            client.send(order.as_bytes()).unwrap();
            let mut server = backend.accept_request();
            assert_eq!(read_exactly(&mut server, 5), b"order");
            // The end goes out with the head.
            rustix::net::sockopt::set_tcp_cork(&server, true).unwrap();
            server.write_all(format!("HTTP/1.1 200 OK\r\n{coding}\r\n\r\n").as_bytes()).unwrap();
            drop(server);
            assert_eq!(client.response_head().status, 200, "{path} {version} {coding}");
            assert_eq!((client.end(), &**client.beyond()), (End::Cut, &b""[..]));
            let entry = kettle.entry("/app");
            let bytes = ["bytes_sent", "body_bytes"].map(|word| entry.number(word));
            assert!(bytes[0] > 0 && bytes[1] == 0, "{bytes:?}");
        }
    }
}

#[test]
fn a_silent_server_is_a_504_before_the_head_and_a_cut_after_it() {
    let (backend, kettle) = started("timeout = \"50ms\"", "");
    let mut client = kettle.ask(&get("/app/head"));
    let mut server = backend.accept_request();
    assert_eq!(client.response().status, 504);
    assert_eq!(kettle.entry("/app/head").text("upstream_failure"), "timeout");
    assert_eq!(read_to_end(&mut server).0, b"");
    client.send(&get("/app/body")).unwrap();
    let mut server = backend.accept();
    answer(&mut server, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    assert_eq!(client.response_head().status, 200);
    assert_eq!(client.end(), End::Cut);
    assert_eq!(kettle.entry("/app/body").text("upstream_failure"), "timeout");
}

#[test]
fn nobody_there_is_a_502_and_the_next_server_is_asked_first() {
    let closed = TcpListener::bind((unused_ip(), 0)).unwrap().local_addr().unwrap();
    let kettle = Kettle::start(before("", "", &[closed]));
    let mut client = Dialer::default().connect(kettle.address());
    assert_eq!(client.get("/app").status, 502);
    assert_eq!(kettle.entry("/app").text("upstream_failure"), "refused");
    drop(kettle);
    let backend = Backend::listen();
    let servers = [closed, backend.address()];
    let kettle = Kettle::start(before("", "balance = \"first\"", &servers));
    let mut client = kettle.ask(&get("/app"));
    answer(&mut backend.accept(), &ok("second"));
    assert_eq!(client.response().body, b"second");
}

#[test]
fn a_full_queue_is_a_503() {
    let backend = Backend::listen();
    let settings = format!(
        "queue = 0\n[[backend.server]]\naddress = \"{}\"\nconnections = 1\n",
        backend.address()
    );
    let kettle = Kettle::start(before("", &settings, &[]));
    let mut first = kettle.ask(&get("/app/first"));
    let mut server = backend.accept();
    let mut second = Dialer::default().connect(kettle.address());
    let refused = second.get("/app/second");
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert_eq!(kettle.entry("/app/second").text("upstream_failure"), "queue_full");
    answer(&mut server, &ok("first"));
    assert_eq!(first.response().body, b"first");
}

#[test]
fn a_client_that_goes_takes_its_request_along() {
    let (backend, kettle) = started("", "");
    // Before the head, and within the body.
    for response in ["", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"] {
        let mut client = kettle.ask(&get("/app"));
        let mut server = backend.accept();
        answer(&mut server, response);
        if !response.is_empty() {
            assert_eq!(client.response_head().status, 200);
        }
        client.wire.reset();
        assert_eq!(read_to_end(&mut server).0, b"");
        assert!(!kettle.entry("/app").is_complete());
    }
}

#[test]
fn a_client_that_has_sent_much_ahead_and_goes_is_noticed_too() {
    let (backend, kettle) = started("", "");
    let behind = [request("POST", "/app/behind", "Content-Length: 4000\r\n"), vec![b'x'; 4_000]];
    let all = [get("/app"), behind.concat().repeat(8)].concat();
    let goes = kettle.ask(&all);
    let mut server = backend.accept_request();
    goes.wire.socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(kettle.entry("/app").text("upstream_failure"), "client_gone");
    assert_eq!(read_to_end(&mut server).0, b"");
    // One that says goodbye waits for all its answers.
    let mut stays = kettle.ask(&all);
    let mut server = backend.accept_request();
    stays.say_goodbye();
    server.write_all(ok("first").as_bytes()).unwrap();
    assert_eq!(stays.response().body, b"first");
    for _ in 0..8 {
        read_head(&mut server);
        assert_eq!(read_exactly(&mut server, 4_000), vec![b'x'; 4_000]);
        server.write_all(ok("next").as_bytes()).unwrap();
        assert_eq!(stays.response().body, b"next");
    }
}

#[test]
fn a_pipelined_request_waits_for_its_turn() {
    let backend = Backend::listen();
    let kettle = Kettle::start(before("", "", &[backend.address()]).file("www/file", "here"));
    let both = [get("/app/1"), get("/file"), request("HEAD", "/app/2", ""), get("/app/3")].concat();
    let mut client = kettle.ask(&both);
    let mut server = backend.accept();
    assert!(answer(&mut server, &ok("one")).starts_with("GET /app/1 "));
    assert_eq!(client.response().body, b"one");
    assert_eq!(client.response().body, b"here");
    assert!(answer(&mut server, &ok("")).starts_with("HEAD /app/2 "));
    assert_eq!(client.response_head().status, 200);
    assert!(answer(&mut server, &ok("three")).starts_with("GET /app/3 "));
    assert_eq!(client.response().body, b"three");
}

#[test]
fn a_server_that_only_announces_is_a_502() {
    let (backend, kettle) = started("", "");
    let mut client = kettle.ask(b"GET /app HTTP/1.0\r\nHost: localhost\r\n\r\n");
    answer(&mut backend.accept(), &"HTTP/1.1 102 Processing\r\n\r\n".repeat(40));
    assert_eq!(client.response().status, 502);
    assert_eq!(kettle.entry("/app").text("upstream_failure"), "too_many_interim");
}

#[test]
fn the_sites_own_page_says_that_nobody_answers() {
    let closed = TcpListener::bind((unused_ip(), 0)).unwrap().local_addr().unwrap();
    let setup = before("", "", &[closed]).file("sorry.html", "sorry");
    let kettle = Kettle::start(setup.site("error_pages = { 502 = \"sorry.html\" }"));
    let mut client = Dialer::default().connect(kettle.address());
    let response = client.get("/app");
    assert_eq!((response.status, &*response.body), (502, &b"sorry"[..]));
}

#[test]
fn a_server_that_stops_waits_for_what_is_under_way() {
    let (backend, mut kettle) = started("", "");
    let mut client = kettle.ask(&get("/app"));
    let mut server = backend.accept_request();
    kettle.signal(rustix::process::Signal::TERM);
    kettle.messages().wait_for("finishing requests in flight");
    server.write_all(ok("last").as_bytes()).unwrap();
    assert_eq!(client.response().body, b"last");
    assert_eq!(client.end(), End::Orderly);
    assert!(kettle.ended().status.success());
}

#[test]
fn keys_change_in_the_middle_of_a_body() {
    let (backend, kettle) = started("", "");
    let mut client = Dialer::suite(kettle_tests::suite::TLS13_AES_128).connect(kettle.address());
    client.send(&get("/app")).unwrap();
    let mut server = backend.accept();
    answer(&mut server, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf");
    assert_eq!(client.response_head().status, 200);
    assert_eq!(client.receive_exactly(4), b"half");
    client.update_keys();
    server.write_all(b"rest").unwrap();
    assert_eq!(client.receive_exactly(4), b"rest");
    passes(&mut client, &mut server, "/app", "next");
}

#[test]
fn what_a_server_says_without_end_has_an_end() {
    let interim = "HTTP/1.1 102 Processing\r\n\r\n".repeat(33);
    let members = vec!["a"; 33].join(",");
    let options = format!("HTTP/1.1 200 OK\r\nConnection: {members}\r\nContent-Length: 0\r\n\r\n");
    for (method, fields, response, reason) in [
        ("POST", "Content-Length: 5\r\n", &interim, "too_many_interim"),
        ("POST", "Content-Length: 5\r\nExpect: 100-continue\r\n", &interim, "too_many_interim"),
        ("GET", "", &options, "connection"),
    ] {
        let (backend, kettle) = started("", "");
        let mut client = kettle.ask(&request(method, "/app", fields));
        answer(&mut backend.accept(), response);
        assert_eq!(client.response().status, 502, "{fields}");
        assert_eq!(kettle.entry("/app").text("upstream_failure"), reason, "{fields}");
    }
}

/// They waited for as long as the server might take to drain.
#[test]
fn who_waits_for_a_server_when_the_time_to_drain_is_over_is_told_so() {
    let backend = Backend::listen();
    let setup = before("timeout = \"5m\"", "", &[backend.address()]).listener("http2 = true");
    let mut kettle = Kettle::start(setup.set("server", "drain_timeout = \"1s\""));
    let words = ["--write-out", "%{http_code} %{http_version}", "--output", "/dev/null"];
    let clients = ["1.1", "2"].map(|version| {
        let by = format!("--http{version}");
        let client =
            kettle.curl(&[&[&*by], &words[..]].concat(), &format!("/app/{version}")).start();
        let server = backend.accept_request();
        (client, server, version)
    });
    kettle.signal(Signal::TERM);
    assert!(kettle.ended().status.success());
    for (client, _server, version) in clients {
        assert_eq!(client.finish().text(), format!("504 {version}"));
        let entry = kettle.entry(&format!("/app/{version}"));
        assert_eq!(entry.text("upstream_failure"), "stopping");
    }
}
