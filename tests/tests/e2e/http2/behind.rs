//! Routes with a backend, whose answers are kept or not: each request is answered over HTTP/2 as it is over HTTP/1.1, and the
//! backend is asked the same.

use super::same::assert_alike;
use super::*;

/// Answers by the last word of the path for as long as anybody asks.
fn serve(mut socket: TcpStream) {
    while socket.peek(&mut [0]).is_ok_and(|bytes| bytes > 0) {
        let head = String::from_utf8(read_until(&mut socket, b"\r\n\r\n")).unwrap();
        let body = request_body(&mut socket, &head);
        let is_head = head.starts_with("HEAD ");
        let target = head.split(' ').nth(1).unwrap();
        let word = target.rsplit('/').next().unwrap();
        let closes = word == "close";
        let mut response = response(word, &head, &body);
        if is_head {
            let end = response.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
            response.truncate(end + 4);
        }
        if socket.write_all(&response).is_err() || closes {
            return;
        }
    }
}

fn request_body(socket: &mut TcpStream, head: &str) -> Vec<u8> {
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    if let Some(length) = length {
        return read_exactly(socket, length.parse().unwrap());
    }
    let mut body = Vec::new();
    while head.contains("transfer-encoding: chunked") {
        let size = String::from_utf8(read_until(socket, b"\r\n")).unwrap();
        let bytes = usize::from_str_radix(size.trim_end(), 16).unwrap();
        body.extend(&read_exactly(socket, bytes + 2)[..bytes]);
        if bytes == 0 {
            break;
        }
    }
    body
}

fn response(word: &str, head: &str, body: &[u8]) -> Vec<u8> {
    let with_length = |first: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 {first}\r\nContent-Length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    };
    match word {
        "big" => with_length("200 OK\r\nX-App: a\r\nX-App: b", &content(200_000)),
        "chunked" => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n\
            5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n"
            .to_vec(),
        "close" => b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nall".to_vec(),
        "204" => b"HTTP/1.1 204 No Content\r\nX-App: 1\r\n\r\n".to_vec(),
        "304" => b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n".to_vec(),
        "404" => with_length("404 Not Found\r\nCache-Control: max-age=100", b"none"),
        "500" => with_length("500 Oh\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5", b"no"),
        "206" => with_length("206 Part\r\nContent-Range: bytes 0-1/9", b"ab"),
        "away" => {
            with_length("302 Found\r\nLocation: /x\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2", b"")
        }
        "hints" => {
            let hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n".to_vec();
            [hints, with_length("200 OK", b"ok")].concat()
        }
        "bad" => b"nonsense\r\n\r\n".to_vec(),
        "kept" => with_length(
            "200 OK\r\nCache-Control: max-age=1000\r\nETag: \"v1\"\r\n\
             Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
            b"0123456789",
        ),
        _ => {
            // Only HTTP/1.1 has names in upper case.
            let lines = head.to_ascii_lowercase();
            // Each request has a name of its own.
            let lines = lines.lines().filter(|line| !line.starts_with("x-request-id: "));
            let mut lines: Vec<_> = lines.map(str::to_owned).collect();
            lines.sort_unstable();
            with_length("200 OK", &[lines.join("\n").as_bytes(), body].concat())
        }
    }
}

fn start() -> Kettle {
    let address = Backend::serving(serve);
    let route = "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\nrequest_body = \"1 KiB\"\nearly_hints = \"all\"\n";
    let kept = "[[site.route]]\nprefix = \"/kept\"\nbackend = \"app\"\nearly_hints = \"all\"\n\
                [site.route.cache]\nstore = \"main\"\n[[cache]]\nname = \"main\"\ndirectory = \"kept\"\n";
    let setup = over_http2().more(route).file("kept/.keep", "");
    Kettle::start(setup.more(kept).more(&backend("app", "", &[address])))
}

#[test]
fn what_is_passed_on_and_what_comes_back() {
    let kettle = start();
    let large = "y".repeat(2_000);
    for (words, target, status) in [
        (&[][..], "/app/echo?a=b&c", "200"),
        (&["--data", "hello"], "/app/echo", "200"),
        (&["--request", "PATCH", "--data", "hello"], "/app/echo", "200"),
        (&["--request", "DELETE"], "/app//x/../echo", "200"),
        (&["--request", "OPTIONS"], "/app/echo", "200"),
        (&["-H", "expect:", "--upload-file", "-"], "/app/echo", "200"),
        // curl would begin unasked after a second, which is as long as a silent server is waited for.
        (
            &["-H", "expect: 100-continue", "--expect100-timeout", "30", "--data", "hello"],
            "/app/echo",
            "200",
        ),
        (&["-H", "x-forwarded-for: 1.2.3.4", "-H", "te: trailers"], "/app/echo", "200"),
        (&["-H", "cookie: a=1", "-H", "x-a: 1", "-H", "x-a: 2"], "/app/echo", "200"),
        (&["-H", "range: bytes=0-1", "-H", "if-range: x"], "/app/echo", "200"),
        (&["--head"], "/app/big", "200"),
        (&[], "/app/big", "200"),
        (&["-H", "te: trailers"], "/app/chunked", "200"),
        (&["--head"], "/app/chunked", "200"),
        (&[], "/app/close", "200"),
        (&[], "/app/204", "204"),
        (&[], "/app/304", "304"),
        (&[], "/app/404", "404"),
        (&["--head"], "/app/404", "404"),
        (&[], "/app/500", "500"),
        (&["--range", "0-1"], "/app/206", "206"),
        (&[], "/app/away", "302"),
        (&[], "/app/hints", "200"),
        (&[], "/app/bad", "502"),
        (&["--head"], "/app/bad", "502"),
        (&["--data", &large], "/app/echo", "413"),
        (&["-H", "host: elsewhere.example"], "/app/echo", "421"),
    ] {
        assert_eq!(assert_alike(&kettle, words, target).0, status, "{words:?} {target}");
    }
}

#[test]
fn what_is_kept() {
    let kettle = start();
    // An object gets its name after its last byte was sent.
    let wait_until_kept = || {
        for word in ["word1", "word2"] {
            let asked = || kettle.curl(&["--include"], &format!("/kept/{word}/kept")).succeed();
            while !asked().contains("kettle; hit") {}
        }
    };
    let target = "/kept/PROTO/kept";
    assert!(assert_alike(&kettle, &[], target).1.contains("kettle; fwd=uri-miss"));
    wait_until_kept();
    for (words, status) in [
        (&[][..], "200"),
        (&["--head"], "200"),
        (&["--range", "1-3"], "206"),
        (&["--range", "0-1,8-"], "200"),
        (&["--range", "90-"], "416"),
        (&["-H", "if-none-match: \"v1\""], "304"),
        (&["-H", "if-none-match: \"v2\""], "200"),
        (&["-H", "if-modified-since: Sun, 06 Nov 1994 08:49:37 GMT"], "304"),
        (&["-H", "if-range: \"v1\"", "--range", "1-3"], "206"),
        (&["-H", "if-range: \"v2\"", "--range", "1-3"], "200"),
        (&["-H", "cache-control: only-if-cached"], "200"),
    ] {
        let (found, said) = assert_alike(&kettle, words, target);
        assert_eq!(found, status, "{words:?}");
        let is_hit = said.contains("cache-status: kettle; hit");
        assert!(is_hit || status.starts_with("41"), "{words:?}: {said}");
    }
    for (words, target, status) in [
        (&["-H", "authorization: Basic x"][..], "/kept/PROTO/kept", "200"),
        // Its server evaluates it, and this one has no conditions.
        (&["-H", "if-match: \"v2\""], "/kept/PROTO/kept", "200"),
        (&["-H", "cache-control: only-if-cached"], "/kept/PROTO/new", "200"),
        (&["--head"], "/kept/PROTO/chunked", "200"),
        (&["--range", "0-1"], "/kept/PROTO/big", "200"),
        (&[], "/kept/PROTO/404", "404"),
        (&[], "/kept/PROTO/204", "204"),
        (&[], "/kept/PROTO/hints", "200"),
        (&[], "/kept/PROTO/bad", "502"),
        (&["--data", "hello"], "/kept/PROTO/echo", "200"),
        (&["-H", "expect:", "--upload-file", "-"], "/kept/PROTO/echo", "200"),
        (&["--data", "hello"], "/kept/PROTO/kept", "200"),
        (&[], "/kept/PROTO/kept", "200"),
    ] {
        assert_eq!(assert_alike(&kettle, words, target).0, status, "{words:?} {target}");
    }
}
