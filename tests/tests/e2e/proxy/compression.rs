//! Backends' responses that are compressed on their way, and those that are not.

use std::io::{Read as _, Write as _};

use flate2::read::GzDecoder;

use super::*;
use crate::http2::frames::{self, *};

const GZIP: &str = "Accept-Encoding: br;q=0.5, gzip\r\n";
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";

fn text() -> String {
    (0..4_000).map(|number| format!("line {number}\n")).collect()
}

fn start(servers: &Backend, route: &str) -> Kettle {
    let setup = before(&format!("compress = [\"gzip\"]\n{route}"), "", &[servers.address()]);
    Kettle::start(setup.listener("http2 = true"))
}

/// As far as it can be unpacked.
fn unpacked(coded: &[u8]) -> String {
    let mut plain = Vec::new();
    let mut piece = [0; 1_000];
    let mut decoder = GzDecoder::new(coded);
    while let Ok(bytes @ 1..) = decoder.read(&mut piece) {
        plain.extend_from_slice(&piece[..bytes]);
    }
    String::from_utf8(plain).unwrap()
}

fn whole(coded: &[u8]) -> String {
    let mut plain = String::new();
    GzDecoder::new(coded).read_to_string(&mut plain).unwrap();
    plain
}

/// One chunk; empty is the last. The end of its data's line comes with the next.
fn chunk(client: &mut Client) -> Vec<u8> {
    let mut size = line(client);
    if size.is_empty() {
        size = line(client);
    }
    client.receive_exactly(usize::from_str_radix(&size, 16).unwrap())
}

fn ask(
    kettle: &Kettle,
    server: &mut Option<TcpStream>,
    servers: &Backend,
    (method, fields): (&str, &str),
    response: &str,
) -> (String, Response) {
    let mut client = kettle.ask(&request(method, "/app", fields));
    let asked = answer(servers.asked(server), response);
    let has_body = method != "HEAD" && !response.starts_with("HTTP/1.1 304");
    (asked, if has_body { any_response(&mut client) } else { client.response_head() })
}

#[test]
fn each_piece_can_be_unpacked_before_the_next_is_sent() {
    let servers = Backend::listen();
    let kettle = start(&servers, "");
    let mut client = kettle.ask(&request("GET", "/app", GZIP));
    let mut server = servers.accept_request();
    server.write_all(format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n").as_bytes()).unwrap();
    let response = client.response_head();
    assert_eq!(response.header("content-encoding"), Some("gzip"));
    let mut coded = Vec::new();
    let mut plain = String::new();
    for piece in ["first", "s", "third, and longer"] {
        server.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes()).unwrap();
        plain += piece;
        while unpacked(&coded) != plain {
            coded.extend(chunk(&mut client));
        }
    }
    server.write_all(b"0\r\n\r\n").unwrap();
    loop {
        match chunk(&mut client) {
            last if last.is_empty() => break,
            piece => coded.extend(piece),
        }
    }
    assert_eq!(whole(&coded), plain);
    assert!(kettle.entry("/app").is_complete());

    let mut frames = Frames::connect(&kettle, &[]);
    let fields = frames::fields("GET", "/app/2", &[("accept-encoding", "gzip")]);
    frames.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &fields));
    let mut server = Some(server);
    let server = servers.asked(&mut server);
    read_head(server);
    // By its length, which is that of the plain form.
    server.write_all(format!("{HEAD}Content-Length: 300\r\n\r\n").as_bytes()).unwrap();
    frames.next_of(HEADERS);
    let mut coded = Vec::new();
    let mut plain = String::new();
    for piece in ["a".repeat(100), "b".repeat(200)] {
        server.write_all(piece.as_bytes()).unwrap();
        plain += &piece;
        while unpacked(&coded) != plain {
            coded.extend(frames.next_of(DATA).payload);
        }
    }
    coded.extend(frames.body(1));
    assert_eq!(whole(&coded), plain);
}

#[test]
fn what_may_not_be_or_is_not_worth_it_is_left_as_it_is() {
    let servers = Backend::listen();
    let kettle = start(&servers, "compress_for_proxies = false");
    let mut server = None;
    let html = "Content-Type: text/html\r\n";
    let long = "x".repeat(300);
    for (why, asks, status, fields, body) in [
        ("events", GZIP, "200", "Content-Type: text/event-stream\r\n", &*long),
        ("no text", GZIP, "200", "Content-Type: image/png\r\n", &*long),
        ("no type", GZIP, "200", "", &*long),
        ("two types", GZIP, "200", "Content-Type: text/html\r\nContent-Type: text/css\r\n", &*long),
        (
            "no-transform",
            GZIP,
            "200",
            "Content-Type: text/html\r\nCache-Control: private, No-Transform\r\n",
            &*long,
        ),
        (
            "coded already",
            GZIP,
            "200",
            "Content-Type: text/html\r\nContent-Encoding: br\r\n",
            &*long,
        ),
        (
            "a part",
            GZIP,
            "206",
            "Content-Type: text/html\r\nContent-Range: bytes 0-299/900\r\n",
            &*long,
        ),
        ("a range asked for", "Accept-Encoding: gzip\r\nRange: bytes=0-\r\n", "200", html, &*long),
        ("a proxy", "Accept-Encoding: gzip\r\nVia: 1.1 cdn\r\n", "200", html, &*long),
        ("not taken", "Accept-Encoding: gzip;q=0\r\n", "200", html, &*long),
        ("not asked for", "", "200", html, &*long),
        ("short", GZIP, "200", html, &long[..255]),
        ("empty", GZIP, "200", html, ""),
    ] {
        let etag = "ETag: \"a\"\r\nAccept-Ranges: bytes\r\n";
        let answer = format!(
            "HTTP/1.1 {status} OK\r\n{fields}{etag}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let (_, response) = ask(&kettle, &mut server, &servers, ("GET", asks), &answer);
        assert_eq!(response.body, body.as_bytes(), "{why}");
        let coding = fields.contains("Encoding").then_some("br");
        assert_eq!(response.header("content-encoding"), coding, "{why}");
        assert_eq!(
            (response.header("etag"), response.header("accept-ranges")),
            (Some("\"a\""), Some("bytes")),
            "{why}"
        );
        // Where another client would get another form, caches are told.
        let varies = fields.starts_with(html)
            && !["no-transform", "coded already", "short", "empty", "two types"].contains(&why);
        assert_eq!(response.header("vary"), varies.then_some("accept-encoding"), "{why}");
    }
}

#[test]
fn the_head_is_that_of_the_compressed_form_to_head_too() {
    let servers = Backend::listen();
    let kettle = start(&servers, "");
    let mut server = None;
    let text = text();
    let said = "ETag: \"a\"\r\nVary: Origin\r\nAccept-Ranges: bytes\r\nContent-MD5: x\r\nDigest: x\r\nRepr-Digest: x\r\n\
                Content-Encoding: identity\r\nSet-Cookie: a=1\r\n";
    for status in ["200 OK", "404 Not Found", "503 Service Unavailable", "201 Created"] {
        for method in ["GET", "HEAD", "POST"] {
            let body = if method == "HEAD" { "" } else { &text };
            let answer = format!(
                "HTTP/1.1 {status}\r\nContent-Type: Text/HTML; charset=x\r\n{said}Content-Length: {}\r\n\r\n{body}",
                text.len()
            );
            let fields =
                [GZIP, if method == "POST" { "Content-Length: 0\r\n" } else { "" }].concat();
            let (asked, response) = ask(&kettle, &mut server, &servers, (method, &fields), &answer);
            assert!(
                asked.to_ascii_lowercase().contains("accept-encoding: br;q=0.5, gzip"),
                "{asked}"
            );
            assert_eq!(response.status.to_string(), status[..3]);
            assert_eq!(response.header("etag"), Some("W/\"a\""), "{method}");
            assert_eq!(response.header("content-encoding"), Some("gzip"), "{method}");
            for gone in ["accept-ranges", "content-md5", "digest", "repr-digest", "content-length"]
            {
                assert_eq!(response.header(gone), None, "{method} {gone}");
            }
            assert!(
                response
                    .head
                    .contains("vary: Origin\r\nset-cookie: a=1\r\nvary: accept-encoding\r\n"),
                "{}",
                response.head
            );
            if method != "HEAD" {
                assert_eq!(whole(&response.body), text);
            }
        }
    }
}

/// A cache that has the compressed form would give it the strong tag of a 304, and put a part of the plain form behind it.
#[test]
fn the_tag_that_was_given_is_asked_about_as_it_is_and_a_304_has_the_same() {
    let servers = Backend::listen();
    let kettle = start(&servers, "");
    let mut server = None;
    let not_modified = "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n";
    for (known, given) in [
        ("W/\"a\"", "W/\"a\""),
        ("\"a\"", "\"a\""),
        ("\"b\", W/\"a\"", "W/\"a\""),
        ("*", "W/\"a\""),
    ] {
        let fields = format!("{GZIP}If-None-Match: {known}\r\n");
        let (asked, response) = ask(&kettle, &mut server, &servers, ("GET", &fields), not_modified);
        assert!(
            asked
                .to_ascii_lowercase()
                .contains(&format!("if-none-match: {}\r\n", known.to_lowercase())),
            "{asked}"
        );
        assert_eq!((response.status, response.header("etag")), (304, Some(given)), "{known}");
        assert_eq!(response.header("vary"), Some("accept-encoding"));
    }
    let fields = "If-None-Match: W/\"a\"\r\n";
    let (_, response) = ask(&kettle, &mut server, &servers, ("GET", fields), not_modified);
    assert_eq!(response.header("etag"), Some("\"a\""), "this client gets the plain form");
}

#[test]
fn what_a_server_does_not_end_has_no_end_for_its_client() {
    let servers = Backend::listen();
    let kettle = start(&servers, "");
    for framing in ["Transfer-Encoding: chunked\r\n\r\n3e8\r\n", "Content-Length: 2000\r\n\r\n"] {
        let cut = format!("{HEAD}{framing}{}", "x".repeat(900));
        let mut client = kettle.ask(&request("GET", "/app", GZIP));
        let mut server = servers.accept_request();
        server.write_all(cut.as_bytes()).unwrap();
        assert_eq!(client.response_head().header("content-encoding"), Some("gzip"));
        let mut coded = Vec::new();
        while unpacked(&coded).len() < 900 {
            coded.extend(chunk(&mut client));
        }
        drop(server);
        assert_eq!(client.end(), End::Cut, "no chunk and no close_notify");
        let entry = kettle.entry("/app");
        assert!(!entry.is_complete());
        assert_eq!(entry.text("upstream_failure"), "closed_early");

        let mut frames = Frames::connect(&kettle, &[]);
        let fields = frames::fields("GET", "/app", &[("accept-encoding", "gzip")]);
        frames.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &fields));
        let mut server = servers.accept_request();
        server.write_all(cut.as_bytes()).unwrap();
        frames.next_of(HEADERS);
        drop(server);
        frames.expect_reset(1, 2);
        assert!(!kettle.entry("/app").is_complete());
    }
}

#[test]
fn trailers_go_on_but_what_they_say_of_the_plain_bytes() {
    let servers = Backend::listen();
    let kettle = start(&servers, "");
    let mut client = kettle.ask(&request("GET", "/app", &[GZIP, "TE: trailers\r\n"].concat()));
    let mut server = servers.accept();
    let end = "0\r\nX-Sum: 1\r\nContent-Digest: x\r\nETag: \"a\"\r\n\r\n";
    answer(&mut server, &format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n{end}"));
    assert_eq!(client.response_head().header("content-encoding"), Some("gzip"));
    let mut coded = Vec::new();
    loop {
        match chunk(&mut client) {
            last if last.is_empty() => break,
            piece => coded.extend(piece),
        }
    }
    assert_eq!(whole(&coded), "hello");
    assert_eq!((line(&mut client), line(&mut client)), ("x-sum: 1".to_owned(), String::new()));
}

/// Each encoder has its memory as long as its response lasts.
#[test]
fn more_at_once_than_there_is_memory_for_go_out_as_they_are() {
    let servers = Backend::listen();
    let kettle = start(&servers, "");
    let mut open = Vec::new();
    for _ in 0..200 {
        let mut client = kettle.ask(&request("GET", "/app", GZIP));
        let mut server = servers.accept_request();
        server.write_all(format!("{HEAD}Content-Length: 500\r\n\r\n").as_bytes()).unwrap();
        let response = client.response_head();
        open.push((client, server, response.header("content-encoding").is_some()));
    }
    let coded = open.iter().filter(|(.., is_coded)| *is_coded).count();
    // A machine with little memory has less for them.
    assert!((2..200).contains(&coded), "{coded}");
    // A client that leaves gives it back.
    let at = open.iter().position(|(.., is_coded)| *is_coded).unwrap();
    let (client, mut server, _) = open.swap_remove(at);
    drop(client);
    assert_eq!(server.read(&mut [0]).unwrap_or(0), 0);
    let (_, response) = ask(
        &kettle,
        &mut None,
        &servers,
        ("GET", GZIP),
        &format!("{HEAD}Content-Length: 500\r\n\r\n{}", "x".repeat(500)),
    );
    assert_eq!(response.header("content-encoding"), Some("gzip"));
    for (mut client, mut server, is_coded) in open {
        server.write_all(&[b'x'; 500]).unwrap();
        match is_coded {
            true => while !chunk(&mut client).is_empty() {},
            false => assert_eq!(client.receive_exactly(500), [b'x'; 500]),
        }
    }
}

#[test]
fn what_is_kept_is_plain_and_compressed_for_who_takes_that() {
    let servers = Backend::listen();
    let text = text();
    let kept = "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\ncompress = [\"gzip\"]\n[site.route.cache]\nstore = \"main\"\n\
                [[cache]]\nname = \"main\"\ndirectory = \"kept\"\n";
    let setup = Setup::default().listener("http2 = true").more(kept).file("kept/.keep", "");
    let kettle = Kettle::start(setup.more(&backend("app", "", &[servers.address()])));
    let mut server = None;
    let mut ask = |target: &str, method: &str, fields: &str, answers: Option<String>| {
        let mut client = kettle.ask(&request(method, target, fields));
        if let Some(response) = answers {
            answer(servers.asked(&mut server), &response);
        }
        if method == "HEAD" { client.response_head() } else { any_response(&mut client) }
    };
    // One that is answered from memory, and one that is sent while it arrives and from its file later.
    for (target, text) in [("/app/a", text.clone()), ("/app/b", text.repeat(20))] {
        let said = format!(
            "{HEAD}Cache-Control: max-age=99\r\nETag: \"a\"\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        );
        let first = ask(target, "GET", GZIP, Some(said.clone()));
        assert_eq!(
            (first.header("content-encoding"), whole(&first.body)),
            (Some("gzip"), text.clone())
        );
        assert_eq!(
            (first.header("etag"), first.header("vary")),
            (Some("W/\"a\""), Some("accept-encoding"))
        );
        let plain = ask(target, "GET", "", None);
        assert!(plain.body == text.as_bytes() && plain.header("content-encoding").is_none());
        assert_eq!(
            (plain.header("etag"), plain.header("vary")),
            (Some("\"a\""), Some("accept-encoding"))
        );
        for _ in 0..3 {
            let hit = ask(target, "GET", GZIP, None);
            assert!(hit.header("cache-status").unwrap().starts_with("kettle; "));
            assert_eq!(
                (hit.header("content-encoding"), whole(&hit.body)),
                (Some("gzip"), text.clone())
            );
        }
        let head = ask(target, "HEAD", GZIP, None);
        assert_eq!(
            (head.header("content-encoding"), head.header("etag")),
            (Some("gzip"), Some("W/\"a\""))
        );
        let part = ask(target, "GET", &[GZIP, "Range: bytes=5-9\r\n"].concat(), None);
        assert_eq!((part.status, part.body.as_slice()), (206, &text.as_bytes()[5..10]));
        let resumed =
            ask(target, "GET", &[GZIP, "Range: bytes=5-9\r\nIf-Range: W/\"a\"\r\n"].concat(), None);
        assert_eq!((resumed.status, resumed.body.len()), (200, text.len()));
        let mut client =
            kettle.ask(&request("GET", target, &[GZIP, "If-None-Match: W/\"a\"\r\n"].concat()));
        let known = client.response_head();
        assert_eq!((known.status, known.header("etag")), (304, Some("W/\"a\"")));
        let _ = kettle.ctl(&["cache", "purge", &format!("https://localhost{target}")]).succeed();
        let changed = said.replace("line", "LINE");
        let again = ask(target, "GET", GZIP, Some(changed));
        assert_eq!(whole(&again.body), text.replace("line", "LINE"), "{target}");
    }
}
