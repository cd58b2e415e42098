//! Headers that are taken from servers and from nobody else, row by row of the table in docs/proxy.md.

use super::*;
use crate::http2::frames::{self, *};

/// A row, an answer that it is about, and what a client gets of that. Over HTTP/2 the status is the last of the head's first field.
const CASES: &[(&str, &str, u16, &str)] = &[
    ("no space behind the status", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", 200, "ok"),
    (
        "other bytes than ASCII in the reason",
        "HTTP/1.1 200 \u{e9}t\u{e9}\r\nContent-Length: 2\r\n\r\nok",
        200,
        "ok",
    ),
    ("a minor version above 1", "HTTP/1.2 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok"),
    ("a status from 600 to 999", "HTTP/1.1 600 A\r\nContent-Length: 2\r\n\r\nok", 600, "ok"),
    ("a status from 600 to 999", "HTTP/1.1 700 B\r\nContent-Length: 2\r\n\r\nok", 700, "ok"),
    (
        "a status from 600 to 999",
        "HTTP/1.1 999 C\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        999,
        "ok",
    ),
    (
        "white space at the end of a chunk line",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2   \r\nok\r\n0 \t\r\n\r\n",
        200,
        "ok",
    ),
    (
        "white space at the end of a chunk line",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b \r\nok\r\n0;a \r\n\r\n",
        200,
        "ok",
    ),
    (
        "a body announced for a 204 or a 304",
        "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n",
        204,
        "",
    ),
    (
        "bytes behind the response",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok, and more",
        200,
        "ok",
    ),
    (
        "a `Date` that is none",
        "HTTP/1.1 200 OK\r\nDate: today\r\nContent-Length: 2\r\n\r\nok",
        200,
        "ok",
    ),
];

/// The row that `websocket` is about.
const LENGTH_OF_101: &str = "`Content-Length` in a 101, and in the request for it";

#[test]
fn each_row_is_so_over_both_versions() {
    let backend = Backend::listen();
    let setup = before("", "keep_alive = 0", &[backend.address()]).listener("http2 = true");
    let kettle = Kettle::start(setup);
    for &(row, answered, status, body) in CASES {
        let mut client = kettle.ask(&request("GET", "/app", ""));
        let mut server = backend.accept_request();
        server.write_all(answered.as_bytes()).unwrap();
        let response = any_response(&mut client);
        assert_eq!((response.status, &*response.body), (status, body.as_bytes()), "{row}");
        let date = response.header("date").unwrap();
        assert!(date.ends_with(" GMT"), "{row}: {date}");
        assert_eq!(kettle.entry("/app").number("status"), u64::from(status), "{row}");
        let mut frames = Frames::connect(&kettle, &[]);
        frames.send(&frames::get(1, "/app"));
        let mut server = backend.accept_request();
        server.write_all(answered.as_bytes()).unwrap();
        let head = frames.next_of(HEADERS);
        if status >= 600 {
            // A literal whose name is that of the static table.
            let digits = status.to_string();
            let block = String::from_utf8_lossy(&head.payload).into_owned();
            assert!(block.contains(&digits), "{row}: {block}");
        }
        if head.flags & END_STREAM == 0 {
            assert_eq!(frames.body(1), body.as_bytes(), "{row}");
        }
        assert_eq!(kettle.entry("/app").number("status"), u64::from(status), "{row}");
    }
}

#[test]
fn a_length_of_zero_is_no_body_of_a_change_of_protocol() {
    let (backend, kettle) = started("websocket = true", "");
    let asking = "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n";
    let mut client = kettle.ask(&[&request("GET", "/app", asking)[..], b"early"].concat());
    let mut server = backend.accept();
    let head = read_head(&mut server);
    assert!(head.contains("connection: upgrade\r\n") && !head.contains("content-length"), "{head}");
    let agreed = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n";
    server.write_all(agreed.as_bytes()).unwrap();
    let response = client.response_head();
    assert_eq!((response.status, response.header("content-length")), (101, None));
    assert_eq!(read_until(&mut server, b"early"), b"early");
    server.write_all(b"late").unwrap();
    assert_eq!(client.receive_exactly(4), b"late");
    // A body is none of it.
    for fields in ["Content-Length: 1\r\n", "Transfer-Encoding: chunked\r\n"] {
        let asking = asking.replace("Content-Length: 0\r\n", fields);
        let mut client = kettle.ask(&[&request("GET", "/app", &asking)[..], b"0\r\n\r\n"].concat());
        let mut server = backend.accept();
        let head = read_head(&mut server);
        assert!(!head.contains("upgrade"), "{head}");
        drop(server);
        assert_eq!(client.response_head().status, 502);
    }
}

/// Of clients nothing of it is taken.
#[test]
fn clients_are_refused_what_servers_may_send() {
    let (backend, kettle) = started("", "");
    for line in ["2 ", "2\t", "2;a "] {
        let head = request("POST", "/app", "Transfer-Encoding: chunked\r\n");
        let body = format!("{line}\r\nok\r\n0\r\n\r\n");
        let mut client = kettle.ask(&[&head[..], body.as_bytes()].concat());
        assert_eq!(client.response().status, 400, "{line:?}");
        // In a part of its own it comes when a server is there already.
        let mut client = kettle.ask(&head);
        let mut server = backend.accept_request();
        client.send(body.as_bytes()).unwrap();
        assert_eq!(client.response().status, 400, "{line:?}");
        assert_eq!(read_to_end(&mut server).0, b"", "{line:?}");
    }
}

#[test]
fn the_table_has_these_rows_and_no_others() {
    let page = include_str!("../../../../docs/proxy.md");
    let table = page.split("## What is lenient towards servers").nth(1).unwrap();
    let rows = table.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let rows: Vec<_> =
        rows.filter_map(|line| line.split(" | ").next()?.strip_prefix("| ")).collect();
    let mut tested: Vec<_> = CASES.iter().map(|case| case.0).collect();
    tested.dedup();
    tested.push(LENGTH_OF_101);
    assert_eq!(rows, tested);
}
