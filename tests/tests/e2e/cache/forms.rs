//! Compressed forms that are kept beside the objects that they were made of.

use std::io::{Read as _, Write as _};

use flate2::read::GzDecoder;

use super::*;
use crate::proxy::any_response;

const COMPRESS: &str = "compress = [\"gzip\"]";
const GZIP: &str = "Accept-Encoding: gzip\r\n";

fn text(lines: u32) -> String {
    (0..lines).map(|number| format!("line {number}\n")).collect()
}

fn unpacked(response: &Response) -> String {
    assert_eq!(response.header("content-encoding"), Some("gzip"));
    let mut plain = String::new();
    GzDecoder::new(response.body.as_slice()).read_to_string(&mut plain).unwrap();
    plain
}

fn ask(cached: &Cached, fields: &str) -> Response {
    let mut client = cached.kettle.ask(&request("GET", "/app/x", fields));
    any_response(&mut client)
}

/// The response from the form: it has a length.
fn of_form(cached: &Cached, text: &str) -> Response {
    let mut last = None;
    wait_until("a form", || {
        let response = ask(cached, GZIP);
        assert_eq!(unpacked(&response), text);
        let has_form = response.header("content-length").is_some();
        last = Some(response);
        has_form
    });
    last.unwrap()
}

fn fill(cached: &Cached, fields: &str, text: &str) {
    let mut client = cached.kettle.ask(&request("GET", "/app/x", ""));
    let fields = format!("Content-Type: text/html\r\nETag: \"a\"\r\n{fields}");
    answer(&mut cached.backend.accept(), &ok(&fields, text));
    assert_eq!(any_response(&mut client).body, text.as_bytes());
    cached.wait_until_kept("/app/x");
}

const FRESH: &str = "Cache-Control: max-age=1000\r\nConnection: close\r\n";

#[test]
fn a_form_is_made_once_and_there_after_a_restart() {
    // In memory, and in its file.
    for lines in [1_000, 60_000] {
        let text = text(lines);
        let folder = TempDir::new().unwrap();
        let kept = folder.path().to_owned();
        let setup = || Setup::default().listener("http2 = true");
        let cached = Cached::in_folder(folder, setup(), COMPRESS, "", "");
        fill(&cached, FRESH, &text);
        let coded = of_form(&cached, &text);
        assert!(coded.body.len() < text.len() / 3);
        assert_eq!(
            (coded.header("etag"), coded.header("vary")),
            (Some("W/\"a\""), Some("accept-encoding"))
        );
        assert_hit(&coded);
        let head = cached.ask("HEAD", "/app/x", GZIP);
        assert_eq!(head.header("content-length"), coded.header("content-length"));
        let part = ask(&cached, &[GZIP, "Range: bytes=5-9\r\n"].concat());
        assert_eq!((part.status, part.body.as_slice()), (206, &text.as_bytes()[5..10]));
        assert_eq!(ask(&cached, "").body, text.as_bytes());
        cached.wait_for_objects(2);
        let Cached { kettle, folder, .. } = cached;
        drop(kettle);
        let cached = Cached::in_folder(folder, setup(), COMPRESS, "", "");
        assert_eq!(of_form(&cached, &text).body, coded.body);
        cached.wait_for_objects(2);
        cached.purge(&["https://localhost/app/x"]);
        cached.wait_for_objects(0);
        assert!(kept.exists());
        fill(&cached, FRESH, &text.replace("line", "LINE"));
        assert_eq!(unpacked(&ask(&cached, GZIP)), text.replace("line", "LINE"));
    }
}

/// Asks for what is validated each time; the backend has this text under this tag.
fn ask_through(cached: &Cached, etag: &str, text: &str) -> Response {
    let mut client = cached.kettle.ask(&request("GET", "/app/x", GZIP));
    let mut server = cached.backend.accept();
    let said = format!("Cache-Control: no-cache\r\nETag: {etag}\r\nConnection: close\r\n");
    let response = match read_head(&mut server).contains(&format!("if-none-match: {etag}\r\n")) {
        true => format!("HTTP/1.1 304 Not Modified\r\n{said}\r\n"),
        false => ok(&format!("{said}Content-Type: text/html\r\n"), text),
    };
    server.write_all(response.as_bytes()).unwrap();
    let response = any_response(&mut client);
    assert_eq!(unpacked(&response), text);
    response
}

#[test]
fn what_was_validated_or_replaced_has_a_form_of_its_own() {
    let cached = Cached::of_route(COMPRESS);
    let old = text(1_000);
    for (etag, text) in [("\"a\"", old.clone()), ("\"b\"", old.replace("line", "LINE"))] {
        wait_until("a form", || {
            ask_through(&cached, etag, &text).header("content-length").is_some()
        });
    }
    cached.wait_for_objects(2);
}

#[test]
fn a_text_that_a_coding_makes_no_smaller_goes_out_as_it_is() {
    let cached = Cached::of_route(COMPRESS);
    let mut state = 1_u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    let body: Vec<u8> = std::iter::repeat_with(&mut random).take(600).collect();
    let mut client = cached.kettle.ask(&request("GET", "/app/x", ""));
    let head = ok_head(&format!("Content-Type: text/html\r\n{FRESH}"), 600);
    let mut server = cached.backend.accept();
    answer(&mut server, &head);
    server.write_all(&body).unwrap();
    assert_eq!(any_response(&mut client).body, body);
    cached.wait_until_kept("/app/x");
    wait_until("the plain form", || {
        let response = ask(&cached, GZIP);
        assert_eq!(response.header("vary"), Some("accept-encoding"));
        response.header("content-encoding").is_none() && response.body == body
    });
}
