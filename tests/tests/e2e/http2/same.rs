//! Each request is answered over HTTP/2 as it is over HTTP/1.1.

use kettle_tests::content::{assert_same, content};
use kettle_tests::environment::paths_here;
use kettle_tests::kettle::Kettle;
use kettle_tests::setup::Setup;

/// Asks over both protocols, and for the same status, fields and body.
fn assert_alike(kettle: &Kettle, words: &[&str], target: &str) -> String {
    let [old, new] = ["--http1.1", "--http2"].map(|protocol| {
        let words = [&[protocol, "--include"], words].concat();
        let said =
            String::from_utf8_lossy(&kettle.curl(&words, target).output().stdout).into_owned();
        // Each multipart body has its own.
        let boundary = said.split_once("boundary=").and_then(|(_, rest)| rest.split("\r\n").next());
        let said = boundary.map_or(said.clone(), |boundary| said.replace(boundary, "BOUNDARY"));
        let (head, body) = said.split_once("\r\n\r\n").unwrap_or((&said, ""));
        let (first, fields) = head.split_once("\r\n").unwrap();
        let fields = fields.lines().filter(|line| {
            let name = line.split(':').next().unwrap_or_default();
            !["date", "connection", "keep-alive"].contains(&name)
        });
        let status = first.split(' ').nth(1).unwrap().to_owned();
        let version = first.split(' ').next().unwrap().to_owned();
        (version, format!("{status}\n{}\n\n{body}", fields.collect::<Vec<_>>().join("\n")))
    });
    assert_eq!((old.0.as_str(), new.0.as_str()), ("HTTP/1.1", "HTTP/2"), "{words:?} {target}");
    assert!(old.1 == new.1, "{words:?} {target}:\n{:.500}\n{:.500}", old.1, new.1);
    new.1
}

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
        let said = assert_alike(&kettle, words, target);
        let found = said.lines().next().unwrap();
        assert_eq!(found, status, "{words:?} {target}");
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
    }
}

#[test]
fn the_log_and_the_metrics_say_what_went_over_it_and_where_it_was_encrypted() {
    let kettle = Kettle::start(Setup::default().listener("http2 = true").sizes(&[100, 1 << 20]));
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
