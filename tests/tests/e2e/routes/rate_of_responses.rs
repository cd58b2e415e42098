//! Responses that go no faster than `limit_rate` says: by both protocols, from files and from backends.

use std::io::{Read as _, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;

use super::*;

/// Bytes of each body.
const BYTES: usize = 96 * 1_024;
/// At 64 KiB a second, without the half second that may be ahead.
const AT_LEAST: Duration = Duration::from_millis(1_000);

/// Files that are kept in memory and others, and backends that answer by a length and in chunks. Stored responses may be compressed.
fn start(rate: &str, more: &str) -> Kettle {
    let route = |place: &str, answer: &str| {
        format!("[[site.route]]\nprefix = \"/{place}\"\n{answer}\n{rate}\n")
    };
    let body = body();
    let answers = [
        format!("Content-Length: {BYTES}\r\n\r\n{body}"),
        format!("Transfer-Encoding: chunked\r\n\r\n{BYTES:x}\r\n{body}\r\n0\r\n\r\n"),
        format!(
            "Content-Type: text/html\r\nCache-Control: max-age=99\r\nContent-Length: {}\r\n\r\n{}",
            digits().len(),
            digits(),
        ),
    ];
    let servers = answers.map(|answer| {
        let servers = Backend::listen();
        servers.answer_all(&format!("HTTP/1.1 200 OK\r\n{answer}"));
        servers.address()
    });
    let setup = Setup::default()
        .listener("http2 = true")
        .set("limits", "hot_file = \"100 KiB\"")
        .set("server", more)
        .file("www/small/file", body.as_bytes())
        .file("www/large/file", content(2 * BYTES))
        .more(&route("small", "root = \"www/small\""))
        .more(&route("large", "root = \"www/large\""))
        .more(&route("length", "backend = \"length\""))
        .more(&route("chunks", "backend = \"chunks\""))
        .more(&backend("length", "", &servers[..1]))
        .more(&route("coded", "backend = \"digits\"\ncompress = [\"gzip\"]"))
        .more(&route(
            "stored",
            "backend = \"digits\"\ncompress = [\"gzip\"]\ncache = { store = \"main\" }",
        ))
        .more("[[cache]]\nname = \"main\"\ndirectory = \"kept\"\n")
        .file("kept/.keep", "")
        .more(&backend("chunks", "", &servers[1..2]))
        .more(&backend("digits", "", &servers[2..]));
    Kettle::start(setup)
}

fn body() -> String {
    "0123456789abcdef".repeat(BYTES / 16)
}

/// A text that is longer than [`BYTES`] when it is compressed, too.
fn digits() -> String {
    content(BYTES + BYTES / 4).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn expected(target: &str) -> Vec<u8> {
    match target {
        "/stored/x" | "/coded/x" => digits().into_bytes(),
        "/large/file" => content(2 * BYTES),
        _ => body().into_bytes(),
    }
}

#[test]
fn a_response_takes_its_time_whatever_it_is_made_from() {
    let kettle = start("limit_rate = \"64 KiB\"", "");
    // All at a time: each has the rate for itself.
    thread::scope(|scope| {
        for protocol in ["--http1.1", "--http2"] {
            for target in ["/small/file", "/large/file", "/length/x", "/chunks/x"] {
                let curl = kettle.curl(&[protocol], target);
                scope.spawn(move || {
                    let begun = Instant::now();
                    let got = curl.output().stdout;
                    let took = begun.elapsed();
                    let expected = expected(target);
                    assert_same(&got, &expected, target);
                    let least = AT_LEAST * u32::try_from(expected.len() / BYTES).unwrap();
                    assert!(took >= least, "{protocol} {target}: {took:?}");
                });
            }
        }
    });
}

/// Of those that are stored the first are sent while they come, and the next from a file.
#[test]
fn what_is_stored_and_what_is_compressed_takes_its_time() {
    let kettle = start("limit_rate = \"64 KiB\"", "");
    let all = ["/stored/x", "/coded/x", "/large/file"];
    for targets in [&all[..], &all[..1]] {
        thread::scope(|scope| {
            for protocol in ["--http1.1", "--http2"] {
                for (target, is_coded) in targets.iter().flat_map(|it| [(*it, false), (*it, true)])
                {
                    // Of a file, two parts.
                    let wish = match (target, is_coded) {
                        ("/large/file", true) => "Range: bytes=0-59999,90000-149999",
                        (_, true) => "Accept-Encoding: gzip",
                        (_, false) => "Accept: */*",
                    };
                    let curl = kettle.curl(&[protocol, "-H", wish], target);
                    scope.spawn(move || {
                        let begun = Instant::now();
                        let got = curl.output().stdout;
                        let took = begun.elapsed();
                        assert!(took >= AT_LEAST, "{protocol} {target} {wish}: {took:?}");
                        if wish.starts_with("Accept-Encoding") {
                            let mut plain = Vec::new();
                            GzDecoder::new(&*got).read_to_end(&mut plain).unwrap();
                            assert_same(&plain, &expected(target), target);
                        }
                        assert!(got.len() > BYTES, "{target} {wish}: {}", got.len());
                    });
                }
            }
        });
    }
}

/// At a byte a second no more than what is free would ever come.
#[test]
fn what_is_free_comes_at_once_and_the_rest_ends_with_the_server() {
    let rate = format!("limit_rate = 1\nlimit_rate_after = {BYTES}");
    let mut kettle = start(&rate, "drain_timeout = \"1s\"");
    for protocol in ["--http1.1", "--http2"] {
        for target in ["/small/file", "/length/x", "/chunks/x"] {
            let got = kettle.curl(&[protocol], target).output().stdout;
            assert_same(&got, &expected(target), target);
        }
    }
    // A client that is never kept waiting for its socket has no more time than others when the server stops.
    let mut client = kettle.ask(&get("/large/file"));
    assert_eq!(client.response_head().announced_bytes(), 2 * BYTES);
    let _ = client.receive_exactly(BYTES + 1);
    kettle.stop();
    assert_ne!(client.end(), End::Orderly);
}

/// A rate that is less than what clients have to take, and a backend that is kept waiting by it.
#[test]
fn no_client_is_too_slow_because_its_response_is() {
    let servers = Backend::listen();
    let settings = "limit_rate = 100\nlimit_rate_after = 9\n";
    let limits = "write_timeout = \"1s\"";
    let setup = Setup::default()
        .set("limits", limits)
        .more(&format!("[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\n{settings}"));
    let kettle = Kettle::start(setup.more(&backend("app", "", &[servers.address()])));
    let mut client = kettle.ask(&get("/app/x"));
    let body = "x".repeat(409);
    let response = format!("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{body}");
    let mut server = servers.accept();
    answer(&mut server, &response);
    let begun = Instant::now();
    let got = client.response_head();
    assert_eq!(got.announced_bytes(), 500);
    assert_eq!(client.receive_exactly(409), body.as_bytes());
    assert!(begun.elapsed() >= Duration::from_millis(3_500), "{:?}", begun.elapsed());
    server.write_all(&[b'y'; 91]).unwrap();
    assert_eq!(client.receive_exactly(91), [b'y'; 91]);
    assert!(kettle.entry("/app/x").is_complete());
}

/// In portions, and by the kernel all the same.
#[test]
fn the_kernel_sends_what_has_a_rate() {
    if !kernel_tls_or_skip() {
        return;
    }
    let kettle = start("limit_rate = \"256 KiB\"", "");
    for suite in ONE_OF_EACH_VERSION {
        let mut client = Dialer::suite(suite).connect(kettle.address());
        for (target, path) in [("/large/file", "kernel-sendfile"), ("/length/x", "kernel-splice")] {
            assert_same(&client.get(target).body, &expected(target), target);
            assert_eq!(kettle.entry(target).path(), path);
        }
    }
}
