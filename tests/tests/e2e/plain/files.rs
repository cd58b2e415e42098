//! Content is sent by the ways of the kernel, and ends as plain HTTP ends.

use std::time::{Duration, Instant};

use super::*;

/// Less than what goes by sendfile, that, and more than a socket takes at once.
const SIZES: [usize; 4] = [0, 1_000, 100_000, 8_000_000];

#[test]
fn memory_is_written_and_files_are_sent_by_the_kernel() {
    for setup in [plain(""), plain("").without_memory()] {
        let kettle = Kettle::start(setup.sizes(&SIZES));
        let mut client = Wire::connect(kettle.addresses[1]);
        for bytes in SIZES {
            let target = format!("/{bytes}");
            let response = client.get(&target);
            assert_eq!((response.status, response.body == content(bytes)), (200, true), "{bytes}");
            let entry = kettle.entry(&target);
            assert_eq!(entry.text("path"), "plain");
            assert!(!entry.has("tls_version"), "{entry:?}");
            assert!(entry.is_complete());
            match bytes < 16_384 {
                true => assert!(!entry.has("reason"), "{entry:?}"),
                false => assert_eq!(entry.text("reason"), "sendfile"),
            }
        }
        // One connection carried them all, and a part and a head besides.
        client.send(&request("GET", "/8000000", "Range: bytes=7999990-\r\n")).unwrap();
        let part = client.response();
        assert_eq!((part.status, part.body), (206, content(8_000_000)[7_999_990..].to_vec()));
        client.send(&request("HEAD", "/100000", "")).unwrap();
        assert_eq!(client.response_head().announced_bytes(), 100_000);
        assert_eq!(client.get("/1000").status, 200);
    }
}

/// A copy costs sendfile's client more than it saves, and TLS has to make one.
#[test]
fn small_files_come_from_the_page_cache_and_stay_in_memory_for_tls() {
    let setup = plain("").set("limits", "revalidate = \"1h\"").sizes(&[16_384, 20_000, 65_536]);
    let kettle = Kettle::start(setup);
    let mut over_tls = kettle.connect(ONE_OF_EACH_VERSION[0]);
    let mut client = Wire::connect(kettle.addresses[1]);
    let mut tag = None;
    for (number, bytes) in [16_384, 20_000, 65_536].repeat(3).into_iter().enumerate() {
        let target = format!("/{bytes}?{number}");
        let copied = over_tls.get(&format!("/{bytes}"));
        let sent = client.get(&target);
        assert!(copied.body == content(bytes) && sent.body == content(bytes), "{target}");
        assert_eq!(copied.header("etag"), sent.header("etag"));
        tag = sent.header("etag").map(str::to_owned);
        let is_by_sendfile = kettle.entry(&target).text("reason") == "sendfile";
        assert_eq!(is_by_sendfile, bytes > 16_384, "{target}");
    }
    // Written to in its place: a tag is that of the bytes behind it, for all who ask from then on.
    let other = vec![b'x'; 65_536];
    kettle.folder.write("www/65536", &other);
    for changed in [client.get("/65536"), over_tls.get("/65536")] {
        assert!(changed.body == other && changed.header("etag").map(str::to_owned) != tag);
    }
}

/// As `nc -N` and old probes do: what was asked for is answered, also behind the end of what they say.
#[test]
fn a_client_that_ends_its_side_behind_its_request_is_answered() {
    let kettle = Kettle::start(plain("").sizes(&SIZES));
    let mut client = Wire::connect(kettle.addresses[1]);
    let twice = [request("GET", "/8000000", ""), request("GET", "/1000", "")].concat();
    client.send(&twice).unwrap();
    client.socket.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(client.response().body == content(8_000_000));
    assert!(client.response().body == content(1_000));
    let mut rest = Vec::new();
    client.socket.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"");
}

#[test]
fn what_is_no_request_is_refused_and_closed() {
    let kettle = Kettle::start(plain(""));
    for (said, status) in [
        // A ClientHello.
        (&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03aaaaaaaaaaaaaaaaaaaaa\r\n\r\n"[..], 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    ] {
        let mut client = Wire::connect(kettle.addresses[1]);
        client.send(said).unwrap();
        assert_eq!(client.response().status, status, "{}", said.escape_ascii());
        client.assert_not_reset();
        client.read_to_end();
    }
}

#[test]
fn browsers_are_never_told_to_use_https_only() {
    let hsts = "headers = { Strict-Transport-Security = \"max-age=1\", X-Other = \"a\" }";
    let kettle = Kettle::start(plain("").site(hsts).sizes(&SIZES));
    let response = Wire::connect(kettle.addresses[1]).get("/1000");
    assert_eq!(response.header("strict-transport-security"), None);
    assert_eq!(response.header("x-other"), Some("a"));
    let over_tls = kettle.connect(ONE_OF_EACH_VERSION[0]).get("/1000");
    assert_eq!(over_tls.header("strict-transport-security"), Some("max-age=1"));
}

#[test]
fn http2_is_spoken_with_those_that_begin_with_it() {
    // On a busy machine each piece of the preface takes long.
    let setup = plain("http2 = true").set("limits", "request_timeout = \"10m\"");
    let kettle = Kettle::start(setup.sizes(&SIZES));
    let address = kettle.addresses[1];
    for bytes in SIZES {
        let target = format!("/{bytes}");
        let url = format!("http://{address}{target}");
        let words = ["--silent", "--http2-prior-knowledge", "--header", "Host: localhost", &url];
        let got = Tool::new("curl").args(words).output();
        assert!(got.status.success() && got.stdout == content(bytes), "{bytes}");
        let entry = kettle.entry(&target);
        assert_eq!((entry.text("path"), entry.text("version")), ("plain", "HTTP/2.0"));
    }
    // The same port, and a method that begins as the preface does; then the preface in pieces.
    let mut client = Wire::connect(address);
    for piece in ["P", "UT /1000 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"] {
        client.send(piece.as_bytes()).unwrap();
        client.wait_until_read();
    }
    assert_eq!(client.response().status, 405);
    let mut client = Wire::connect(address);
    for byte in b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0" {
        client.socket.write_all(&[*byte]).unwrap();
        client.wait_until_read();
    }
    let mut settings = [0; 9];
    client.socket.read_exact(&mut settings).unwrap();
    assert_eq!(settings[3], 4, "SETTINGS");
}

#[test]
fn the_first_request_has_its_time_once_though_it_may_be_one_of_http2() {
    let seconds = scaled(3, 10);
    let timeout = format!("request_timeout = \"{seconds}s\"");
    let kettle = Kettle::start(plain("http2 = true").set("limits", &timeout));
    for begun in ["", "PRI * HT"] {
        let mut client = Wire::connect(kettle.addresses[1]);
        client.send(begun.as_bytes()).unwrap();
        let began = Instant::now();
        client.read_to_end();
        assert!(began.elapsed() < Duration::from_secs(2 * seconds), "{begun:?}");
    }
}
