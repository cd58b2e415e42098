//! Broken TOML, and what is still found around it.

use crate::{Row, assert_found};

#[test]
fn headers_are_closed() {
    assert_found(HEADERS_ARE_CLOSED);
}

const HEADERS_ARE_CLOSED: &[Row] = &[
    (
        "[server
workers = 4
[tls]
tickets = 9",
        "kettle.toml:1:1: this is no header of a table
 1 | [server
   | ^^^^^^^
help: write [server]
kettle.toml:4:11: `tickets` takes a whole number of tickets from 0 to 8
 4 | tickets = 9
   |           ^
help: write 8",
    ),
    (
        r#"[[site]
names = ["a"]"#,
        "kettle.toml:1:1: this is no header of a table
 1 | [[site]
   | ^^^^^^^
help: write [[site]]",
    ),
    (
        r#"[site.route
root = "/srv""#,
        "kettle.toml:1:1: this is no header of a table
 1 | [site.route
   | ^^^^^^^^^^^
help: write [[site.route]]",
    ),
];

#[test]
fn texts_are_quoted() {
    assert_found(TEXTS_ARE_QUOTED);
}

const TEXTS_ARE_QUOTED: &[Row] = &[
    (
        "[server]
user = nobody",
        r#"kettle.toml:2:8: a text must stand in quotes
 2 | user = nobody
   |        ^^^^^^
help: write "nobody""#,
    ),
    (
        r#"[server]
user = "nobody"#,
        r#"kettle.toml:2:8: a text must stand in quotes
 2 | user = "nobody
   |        ^^^^^^^
help: write "nobody""#,
    ),
    (
        r#"[server]
user = nobody""#,
        r#"kettle.toml:2:8: a text must stand in quotes
 2 | user = nobody"
   |        ^^^^^^^
help: write "nobody""#,
    ),
    (
        "[log]
access = /var/log/a.log # here",
        r#"kettle.toml:2:10: a text must stand in quotes
 2 | access = /var/log/a.log # here
   |          ^^^^^^^^^^^^^^
help: write "/var/log/a.log""#,
    ),
    (
        "[limits]
idle_timeout = 10s",
        r#"kettle.toml:2:16: a text must stand in quotes
 2 | idle_timeout = 10s
   |                ^^^
help: write "10s""#,
    ),
    (
        r#"[log]
access = """
foo"#,
        r#"kettle.toml:2:10: this text is not closed
 2 | access = """
   |          ^^^
help: write """ at its end"#,
    ),
    (
        "[server]
pin_workers = yes",
        "kettle.toml:2:15: a text must stand in quotes
 2 | pin_workers = yes
   |               ^^^
help: write true",
    ),
];

#[test]
fn lists_are_closed() {
    assert_found(LISTS_ARE_CLOSED);
}

const LISTS_ARE_CLOSED: &[Row] = &[
    (
        r#"[tls]
groups = ["x25519"
tickets = 9
versions = ["tls1.2",
[limits]
headers = 1"#,
        r#"kettle.toml:2:10: this `[` is not closed
 2 | groups = ["x25519"
   |          ^
help: write ] at the end of the value
kettle.toml:3:11: `tickets` takes a whole number of tickets from 0 to 8
 3 | tickets = 9
   |           ^
help: write 8
kettle.toml:4:12: this `[` is not closed
 4 | versions = ["tls1.2",
   |            ^
help: write ] at the end of the value
kettle.toml:6:11: `headers` takes a whole number of headers from 8 to 128
 6 | headers = 1
   |           ^
help: write 8"#,
    ),
    (
        r#"[tls]
groups = ["x25519", "p-256""#,
        r#"kettle.toml:2:10: this `[` is not closed
 2 | groups = ["x25519", "p-256"
   |          ^
help: write ] at the end of the value"#,
    ),
];

#[test]
fn nothing_stands_twice() {
    assert_found(NOTHING_STANDS_TWICE);
}

const NOTHING_STANDS_TWICE: &[Row] = &[
    (
        "[server]
workers = 2
workers = 3",
        "kettle.toml:3:1: `workers` is set above already
 3 | workers = 3
   | ^^^^^^^
help: remove one of both",
    ),
    (
        "[server]
[server]
workers = 3",
        "kettle.toml:2:1: [server] stands above already
 2 | [server]
   | ^^^^^^^^
help: write its settings there",
    ),
    (
        r#"#alone
[listener]
address = "0.0.0.0:1"
[listener]
address = "0.0.0.0:2""#,
        "kettle.toml:2:1: there may be several [listener], so its header has two brackets
 2 | [listener]
   | ^^^^^^^^^^
help: write [[listener]]
kettle.toml:4:1: there may be several [listener], each with two brackets
 4 | [listener]
   | ^^^^^^^^^^
help: write [[listener]]",
    ),
];

#[test]
fn other_errors_have_a_place() {
    assert_found(OTHER_ERRORS_HAVE_A_PLACE);
}

const OTHER_ERRORS_HAVE_A_PLACE: &[Row] = &[
    (
        "[server]
workers =",
        "kettle.toml:2:1: no value follows this key
 2 | workers =
   | ^^^^^^^^^
help: write a value, or remove the line",
    ),
    (
        "[server]
wor kers = 2",
        "kettle.toml:2:5: this is not valid TOML: key with no value, expected `=`
 2 | wor kers = 2
   |     ^
help: write one `key = value` a line",
    ),
    (
        "[server]
workers 2",
        "kettle.toml:2:9: this is not valid TOML: key with no value, expected `=`
 2 | workers 2
   |         ^
help: write one `key = value` a line",
    ),
    (
        "workers = 2 3",
        r#"kettle.toml:1:11: a text must stand in quotes
 1 | workers = 2 3
   |           ^^^
help: write "2 3""#,
    ),
    (
        "= 2",
        "kettle.toml:1:1: this is not valid TOML: unquoted keys cannot be empty, expected letters, numbers, `-`, `_`
 1 | = 2
   | ^
help: write one `key = value` a line",
    ),
    (
        "\u{1}",
        "kettle.toml:1:1: this is not valid TOML: invalid unquoted key, expected letters, numbers, `-`, `_`
 1 | �
   | ^
help: write one `key = value` a line",
    ),
    (
        r#"[server]
user = "\q""#,
        r#"kettle.toml:2:10: this is not valid TOML: missing escaped value, expected `b`, `e`, `f`, `n`, `r`, `\`, `"`, `x`, `u`, `U`
 2 | user = "\q"
   |          ^
help: write \\ for a backslash, or put the text in single quotes"#,
    ),
    (
        "[limits]
head = 1__6",
        r#"kettle.toml:2:8: a text must stand in quotes
 2 | head = 1__6
   |        ^^^^
help: write "1__6""#,
    ),
];

#[test]
fn bytes_that_are_no_text_have_a_place() {
    let text = b"[server]\n# caf\xc3\xa9\nuser = \"caf\xe9\"\n";
    let diagnostics =
        kettle_config::parse_bytes(text, std::path::Path::new("kettle.toml")).unwrap_err();
    let shown: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    let expected = "kettle.toml:3:12: the file is not UTF-8: here stands the byte 0xe9
 3 | user = \"caf\u{fffd}\"
   |            ^
help: save the file as UTF-8 in your editor";
    assert_eq!(shown, [expected]);
}
