//! Each request is answered over HTTP/2 as it is over HTTP/1.1.

use super::*;

const MAX_FRAME_SIZE: u16 = 5;

/// Asks over both protocols, and for the same status, fields, body and line of the log. `PROTO` in a target is another word for
/// each: what one has asked for is new to the other. Gives the last status, and what was said.
pub fn assert_alike(kettle: &Kettle, words: &[&str], target: &str) -> (String, String) {
    let [old, new] = [("--http1.1", "HTTP/1.1", "word1"), ("--http2", "HTTP/2", "word2")].map(
        |(protocol, version, word)| {
            let words = [&[protocol, "--include"], words].concat();
            let target = target.replace("PROTO", word);
            let output = kettle.curl(&words, &target).input("streamed").output().stdout;
            let text = String::from_utf8_lossy(&output).replace(word, "PROTO");
            let (status, said) = normal(&text, version);
            // A text that is no request has no target that all agree on.
            let log = if ["400", "414"].contains(&&*status) {
                String::new()
            } else {
                logged(kettle, &target)
            };
            (status, said, log)
        },
    );
    assert!(old == new, "{words:?} {target}:\n{old:.900?}\n{new:.900?}");
    (new.0, new.1)
}

/// The last status, and all without what is the protocol's or the moment's.
fn normal(text: &str, version: &str) -> (String, String) {
    // Each multipart body has its own.
    let boundary = text.split_once("boundary=").and_then(|(_, rest)| rest.split("\r\n").next());
    let text = boundary.map_or(text.to_owned(), |boundary| text.replace(boundary, "BOUNDARY"));
    let mut rest = text.as_str();
    let mut status = String::new();
    let mut said = String::new();
    while let Some(head) = rest.strip_prefix(version) {
        let (head, after) = head.split_once("\r\n\r\n").unwrap();
        let (first, fields) = head.split_once("\r\n").unwrap_or((head, ""));
        status = first.trim().split(' ').next().unwrap().to_owned();
        let fields = fields.lines().filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            let value = value.split_once("; ttl=").map_or(value, |(before, _)| before);
            let name = name.to_ascii_lowercase();
            (!OF_PROTOCOL_OR_MOMENT.contains(&name.as_str())).then(|| format!("{name}:{value}"))
        });
        let mut fields: Vec<_> = fields.collect();
        // Among fields of different names no order means anything.
        fields.sort_by(|one, other| one.split(':').next().cmp(&other.split(':').next()));
        said += &format!("{status}\n{}\n\n", fields.join("\n"));
        rest = after;
    }
    (status, said + &unnamed(rest))
}

/// A built-in error page without the name of its request.
fn unnamed(body: &str) -> String {
    match body.split_once("<small>Request ") {
        Some((before, rest)) => format!("{before}{}", rest.get(REQUEST_ID_BYTES..).unwrap()),
        None => body.to_owned(),
    }
}

const REQUEST_ID_BYTES: usize = 16;

/// `ann` with the password `secret`.
const ANN: &str = "ann:$2y$05$KBCwKxOzLha2MUDgW0PjXeGy8zDyKFegpVV4y0qPBUgij10WNyKY6\n";

fn logged(kettle: &Kettle, target: &str) -> String {
    let entry = kettle.entry(target);
    let words = ["method", "host", "refused", "cache", "backend", "upstream_failure"];
    let words = words.map(|name| entry.text(name).to_owned());
    let numbers = ["status", "body_bytes"].map(|name| entry.number(name));
    format!("{words:?} {numbers:?} {}", entry.is_complete())
}

const OF_PROTOCOL_OR_MOMENT: [&str; 5] =
    ["date", "connection", "keep-alive", "transfer-encoding", "age"];

#[test]
fn files_conditions_ranges_and_errors() {
    let setup = Setup::default()
        .listener("http2 = true")
        .site("headers = { X-Site = \"yes\" }")
        .route("precompressed = [\"gzip\"]\nlisting = true")
        .file("www/a.html", "0123456789")
        .file("www/a.html.gz", "packed")
        .file("www/empty", "")
        .file("www/folder/b", "b")
        .sizes(&[20_000]);
    let kettle = Kettle::start(setup);
    for (words, target, status) in [
        (&[][..], "/a.html", "200"),
        (&["--head"], "/a.html", "200"),
        (&["-H", "accept-encoding: gzip"], "/a.html", "200"),
        (&[], "/empty", "200"),
        (&["--range", "3-5"], "/a.html", "206"),
        (&["--range", "0-1,8-"], "/20000", "206"),
        (&["--range", "90-"], "/a.html", "416"),
        (&["-H", "if-none-match: *"], "/a.html", "304"),
        (&["-H", "if-match: \"other\""], "/a.html", "412"),
        (&[], "/folder", "301"),
        (&[], "/folder/", "200"),
        (&["-H", "accept: application/json"], "/folder/", "200"),
        (&[], "/missing", "404"),
        (&["--head"], "/missing", "404"),
        (&[], "/../etc/passwd", "400"),
        (&["--request", "OPTIONS"], "/a.html", "204"),
        (&["--data", "x"], "/a.html", "405"),
        (&["--request", "DELETE"], "/a.html", "405"),
        (&["-H", "host: elsewhere.example"], "/a.html", "421"),
    ] {
        assert_eq!(assert_alike(&kettle, words, target).0, status, "{words:?} {target}");
    }
}

#[test]
fn slashes_in_a_row_are_refused_where_a_site_says_so() {
    let setup = over_http2().file("www/b.html", "b");
    let kettle = Kettle::start(setup.site("refuse_double_slashes = true"));
    for (target, status) in [
        ("//b.html", "400"),
        ("/a//b.html", "400"),
        ("/%2Fb.html", "400"),
        ("/a%2f/b.html", "400"),
        ("/b.html//", "400"),
        ("/b.html?//", "200"),
        ("/b.html", "200"),
    ] {
        assert_eq!(assert_alike(&kettle, &[], target).0, status, "{target}");
    }
}

#[test]
fn rules_of_routes_and_limits() {
    let setup = Setup::default()
        .listener("http2 = true")
        .site("error_pages = { 404 = \"sorry.html\" }")
        .route("redirect = [{ from = \"/old/**\", to = \"/new/{1}\", status = 301 }]")
        .route("rewrite = [{ from = \"/hidden/*\", to = \"/new/{1}\" }]")
        .route("compress = [\"gzip\"]")
        .route("cors = { origins = [\"https://other.example\"] }")
        .more("[[site.route]]\nprefix = \"/in\"\nroot = \"www\"\n")
        .more("basic_auth = { users = \"users\", realm = \"staff\" }\n")
        .more("[[site.route]]\nprefix = \"/no\"\nroot = \"www\"\ndeny = [\"0.0.0.0/0\"]\n")
        .more("[[site.route]]\nprefix = \"/spa\"\nroot = \"www\"\nfallback = \"/new/b\"\n")
        .file("users", ANN)
        .file("sorry.html", "sorry")
        .file("www/new/b", "0123456789")
        .file("www/a.txt", "a line of text\n".repeat(500));
    let kettle = Kettle::start(setup);
    let long = format!("/{}", "x".repeat(9_000));
    for (words, target, status) in [
        (&[][..], "/old/b?x=y", "301"),
        (&[], "/hidden/b", "200"),
        (&["--range", "2-3"], "/hidden/b", "206"),
        (&["-H", "accept-encoding: gzip", "--head"], "/a.txt", "200"),
        (&["-H", "accept-encoding: gzip;q=0"], "/a.txt", "200"),
        (&["-H", "accept-encoding: gzip", "--range", "0-1"], "/a.txt", "206"),
        (&["-H", "if-modified-since: Fri, 01 Jan 2100 00:00:00 GMT"], "/new/b", "304"),
        (&["-H", "if-unmodified-since: Sun, 06 Nov 1994 08:49:37 GMT"], "/new/b", "412"),
        (&["-H", "if-range: \"other\"", "--range", "0-1"], "/new/b", "200"),
        (&["-H", "range: lines=1-2"], "/new/b", "200"),
        (&["-H", "origin: https://other.example"], "/new/b", "200"),
        (
            &[
                "-H",
                "origin: https://other.example",
                "-H",
                "access-control-request-method: GET",
                "--request",
                "OPTIONS",
            ],
            "/new/b",
            "204",
        ),
        (&[], "/in/a.txt", "401"),
        (&["--user", "ann:wrong", "--head"], "/in/a.txt", "401"),
        (&["--data", "body"], "/in/a.txt", "401"),
        (&[], "/no/a.txt", "403"),
        (&[], "/spa/x", "200"),
        (&[], "/missing", "404"),
        (&["--head"], "/missing", "404"),
        (&["--request", "BREW"], "/new/b", "405"),
        (&["--request", "TRACE"], "/new/b", "405"),
        (&["-H", "expect: other"], "/new/b", "200"),
        (&["-H", "expect:", "--upload-file", "-"], "/new/b", "405"),
        (&["--data", "x"], "/new/b", "405"),
        (&[], "/new/%zz", "400"),
        (&[], "/new/b%00", "400"),
        (&[], &long, "414"),
        (&["--head"], &long, "414"),
    ] {
        assert_eq!(assert_alike(&kettle, words, target).0, status, "{words:?} {target:.100}");
    }
}

#[test]
fn a_body_of_any_size_arrives_whole() {
    let sizes = [1, 16_375, 16_376, 65_535, 65_536, 1_000_003];
    for setup in [Setup::default(), Setup::default().without_memory()] {
        let kettle = Kettle::start(setup.listener("http2 = true").sizes(&sizes));
        for bytes in sizes {
            let got = kettle.curl(&["--http2", "--fail"], &format!("/{bytes}")).output();
            assert!(got.status.success(), "{}", got.stderr);
            assert_same(&got.stdout, &content(bytes), &format!("{bytes}"));
        }
        // However large its frames may be.
        let mut frames = Frames::connect(&kettle, &[(MAX_FRAME_SIZE, 1 << 20)]);
        frames.send(&get(1, "/1000003"));
        assert_same(&frames.body(1), &content(1_000_003), "in frames");
    }
}

#[test]
fn a_file_in_memory_is_read_piece_by_piece_and_not_asked_about() {
    let bytes = 10 << 20;
    let setup = over_http2().set("server", "dumpable = true");
    let kettle = Kettle::start(setup.sizes(&[bytes]));
    let words = ["--http2", "--fail", "--output", "/dev/null"];
    let _ = kettle.curl(&words, &format!("/{bytes}")).succeed();
    let before = kettle.reads();
    let _ = kettle.curl(&words, &format!("/{bytes}")).succeed();
    let reads = kettle.reads() - before;
    // Two frames are a piece, and the client's windows may end within one.
    let pieces = bytes as u64 / 32_750;
    assert!(reads < 2 * pieces, "{reads} reads for {pieces} pieces");
}

#[test]
fn the_log_and_the_metrics_say_what_went_over_it_and_where_it_was_encrypted() {
    let kettle = Kettle::start(over_http2().sizes(&[100, 1 << 20]));
    for (target, path) in [("/100", "user"), ("/1048576", "user (http2)")] {
        let words = ["--http2", "--fail", "--output", "/dev/null"];
        let _ = kettle.curl(&words, target).succeed();
        let entry = kettle.entry(target);
        assert_eq!((entry.text("version"), entry.path().as_str()), ("HTTP/2.0", path));
        assert!(entry.is_complete());
        assert_eq!(entry.number("body_bytes"), target[1..].parse::<u64>().unwrap());
    }
    assert_eq!(kettle.status("/total/http2_streams"), 2);
}

#[test]
fn whoever_does_not_offer_it_gets_http_1_1_by_every_path() {
    let listeners = paths_here().iter().map(|path| format!("http2 = true\npath = {path:?}"));
    let setup = listeners.fold(Setup::default(), |setup, listener| setup.listener(&listener));
    let kettle = Kettle::start(setup.sizes(&[1 << 20]));
    for address in &kettle.addresses {
        for (protocol, version) in [("--http1.1", "1.1"), ("--http2", "2")] {
            let words =
                [protocol, "--fail", "--output", "/dev/null", "--write-out", "%{http_version}"];
            assert_eq!(kettle.curl_at(*address, &words, "/1048576").succeed(), version);
        }
    }
}
