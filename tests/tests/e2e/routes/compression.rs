//! Texts that are compressed on their way.

use super::*;

/// A library's own window is for streams without an end, and took 10 MB for each of these.
#[test]
fn texts_that_are_compressed_at_the_same_time_take_little_memory() {
    let text =
        |number: usize| format!("{number} the quick brown fox jumps over the dog ").repeat(1_400);
    let texts: Vec<_> = (0..TEXTS).map(text).collect();
    let mut setup = Setup::default().route("compress = [\"br\", \"zstd\", \"gzip\"]");
    for (number, text) in texts.iter().enumerate() {
        setup = setup.file(&format!("www/{number}.txt"), text.as_str());
    }
    let kettle = Kettle::start(setup);
    let before_bytes = kettle.memory_bytes();
    for (coding, is_packed) in [("br", true), ("zstd", true), ("gzip", true), ("identity", false)] {
        let mut clients: Vec<_> = (0..TEXTS).map(|_| kettle.connect(TLS13_AES_128)).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            let coding = format!("Accept-Encoding: {coding}\r\n");
            client.send(&request("GET", &format!("/{number}.txt"), &coding)).unwrap();
        }
        for (client, text) in clients.iter_mut().zip(&texts) {
            let response = client.response();
            assert_eq!(response.status, 200);
            // One that found no place for a while goes out as it is.
            match response.header("content-encoding") {
                Some(used) => {
                    assert!(is_packed && used == coding && response.body.len() < text.len())
                }
                None => assert_same(&response.body, text.as_bytes(), coding),
            }
        }
    }
    // The texts themselves, which stay in memory, are 4 MB of it.
    kettle.assert_grown_below(before_bytes, 24 << 20);
}

const TEXTS: usize = 64;

#[test]
fn curl_unpacks_what_it_gets() {
    let text = "a line of text\n".repeat(500);
    let kettle = Kettle::start(
        Setup::default().file("www/a.txt", text.as_str()).route("compress = [\"gzip\"]"),
    );
    assert_eq!(kettle.curl(&["--compressed", "--fail"], "/a.txt").succeed(), text);
    assert!(kettle.entry("/a.txt").number("body_bytes") < 500);
    assert_eq!(kettle.curl(&["--compressed", "--range", "2-5"], "/a.txt").succeed(), "line");
}

/// A client with a part of the compressed form asks for the rest by the date, which both forms share.
#[test]
fn no_part_of_a_text_follows_a_part_of_its_compressed_form() {
    let text = "a line of text\n".repeat(500);
    let setup = Setup::default().file("www/a.txt", text.as_str());
    let kettle = Kettle::start(setup.route("compress = [\"gzip\"]"));
    let mut client = kettle.connect(TLS13_AES_128);
    let mut ask = |headers: &str| client.exchange(&request("GET", "/a.txt", headers));
    let first = ask("Accept-Encoding: gzip\r\n");
    assert_eq!(first.header("content-encoding"), Some("gzip"));
    let date = first.header("last-modified").unwrap();
    let tag = first.header("etag").unwrap();
    for validator in [date, tag] {
        let rest =
            format!("Accept-Encoding: gzip\r\nRange: bytes=20-\r\nIf-Range: {validator}\r\n");
        let response = ask(&rest);
        assert_eq!((response.status, response.body.len()), (200, text.len()), "{validator}");
    }
    let own = ask("").header("etag").unwrap().to_owned();
    let response = ask(&format!("Range: bytes=20-\r\nIf-Range: {own}\r\n"));
    assert_eq!((response.status, response.body.len()), (206, text.len() - 20));
}
