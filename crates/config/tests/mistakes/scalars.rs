//! Numbers, sizes, durations, words and flags.

use crate::{Row, assert_found};

#[test]
fn numbers_are_bounded_and_unquoted() {
    assert_found(NUMBERS_ARE_BOUNDED_AND_UNQUOTED);
}

const NUMBERS_ARE_BOUNDED_AND_UNQUOTED: &[Row] = &[
    (
        r#"[server]
workers = "4""#,
        r#"kettle.toml:2:11: `workers` takes a whole number of workers from 1 to 1024, not a string
 2 | workers = "4"
   |           ^^^
help: write 4"#,
    ),
    (
        "[server]
workers = 0",
        "kettle.toml:2:11: `workers` takes a whole number of workers from 1 to 1024
 2 | workers = 0
   |           ^
help: write 1",
    ),
    (
        "[server]
workers = 2000",
        "kettle.toml:2:11: `workers` takes a whole number of workers from 1 to 1024
 2 | workers = 2000
   |           ^^^^
help: write 1024",
    ),
    (
        "[server]
workers = -3",
        "kettle.toml:2:11: `workers` takes a whole number of workers from 1 to 1024
 2 | workers = -3
   |           ^^
help: write 1",
    ),
    (
        "[server]
workers = 2.5",
        "kettle.toml:2:11: `workers` takes a whole number of workers from 1 to 1024, not a decimal number
 2 | workers = 2.5
   |           ^^^
help: write 2",
    ),
    (
        "[tls]
tickets = 0x10",
        "kettle.toml:2:11: `tickets` takes a whole number of tickets from 0 to 8
 2 | tickets = 0x10
   |           ^^^^
help: write 8",
    ),
    (
        "[limits]
open_files = 99999999999999999999",
        "kettle.toml:2:14: `open_files` takes a whole number of files from 0 to 1048576
 2 | open_files = 99999999999999999999
   |              ^^^^^^^^^^^^^^^^^^^^
help: write 1048576",
    ),
    (
        "[limits]
headers = 5",
        "kettle.toml:2:11: `headers` takes a whole number of headers from 8 to 128
 2 | headers = 5
   |           ^
help: write 8",
    ),
    (
        r#"[[listener]]
backlog = 0
address = "0.0.0.0:1""#,
        "kettle.toml:2:11: `backlog` takes a whole number of connections from 1 to 65535
 2 | backlog = 0
   |           ^
help: write 1",
    ),
];

#[test]
fn sizes_have_a_known_unit_and_bounds() {
    assert_found(SIZES_HAVE_A_KNOWN_UNIT_AND_BOUNDS);
}

const SIZES_HAVE_A_KNOWN_UNIT_AND_BOUNDS: &[Row] = &[
    (
        r#"[limits]
head = "16k""#,
        r#"kettle.toml:2:8: `head` takes a size from 1 KiB to 64 KiB
 2 | head = "16k"
   |        ^^^^^
help: write "16 KiB""#,
    ),
    (
        r#"[limits]
head = "16 KB""#,
        r#"kettle.toml:2:8: `head` takes a size from 1 KiB to 64 KiB
 2 | head = "16 KB"
   |        ^^^^^^^
help: write "16 KiB""#,
    ),
    (
        "[limits]
head = 100",
        r#"kettle.toml:2:8: `head` takes a size from 1 KiB to 64 KiB
 2 | head = 100
   |        ^^^
help: write "1 KiB""#,
    ),
    (
        r#"[limits]
head = "2 MiB""#,
        r#"kettle.toml:2:8: `head` takes a size from 1 KiB to 64 KiB
 2 | head = "2 MiB"
   |        ^^^^^^^
help: write "64 KiB""#,
    ),
    (
        r#"[limits]
head = "large""#,
        r#"kettle.toml:2:8: `head` takes a size from 1 KiB to 64 KiB
 2 | head = "large"
   |        ^^^^^^^
help: write "16 KiB""#,
    ),
    (
        "[limits]
head = true",
        r#"kettle.toml:2:8: `head` takes a size from 1 KiB to 64 KiB, not true or false
 2 | head = true
   |        ^^^^
help: write "16 KiB""#,
    ),
    (
        "[limits]
body_discard = -1",
        "kettle.toml:2:16: `body_discard` takes a size from 0 B to 1 GiB
 2 | body_discard = -1
   |                ^^
help: write 0",
    ),
    (
        r#"[limits]
body_discard = "99999999999999999 GiB""#,
        r#"kettle.toml:2:16: `body_discard` takes a size from 0 B to 1 GiB
 2 | body_discard = "99999999999999999 GiB"
   |                ^^^^^^^^^^^^^^^^^^^^^^^
help: write "1 GiB""#,
    ),
];

#[test]
fn durations_have_a_unit_and_bounds() {
    assert_found(DURATIONS_HAVE_A_UNIT_AND_BOUNDS);
}

const DURATIONS_HAVE_A_UNIT_AND_BOUNDS: &[Row] = &[
    (
        "[limits]
idle_timeout = 75",
        r#"kettle.toml:2:16: `idle_timeout` takes a duration from 1s to 1h, with its unit
 2 | idle_timeout = 75
   |                ^^
help: write "75s""#,
    ),
    (
        r#"[limits]
idle_timeout = "75""#,
        r#"kettle.toml:2:16: `idle_timeout` takes a duration from 1s to 1h
 2 | idle_timeout = "75"
   |                ^^^^
help: write "75s""#,
    ),
    (
        r#"[limits]
idle_timeout = "2d""#,
        r#"kettle.toml:2:16: `idle_timeout` takes a duration from 1s to 1h
 2 | idle_timeout = "2d"
   |                ^^^^
help: write "1h""#,
    ),
    (
        r#"[limits]
idle_timeout = "10ms""#,
        r#"kettle.toml:2:16: `idle_timeout` takes a duration from 1s to 1h
 2 | idle_timeout = "10ms"
   |                ^^^^^^
help: write "1s""#,
    ),
    (
        r#"[limits]
idle_timeout = "30s1m""#,
        r#"kettle.toml:2:16: `idle_timeout` takes a duration from 1s to 1h
 2 | idle_timeout = "30s1m"
   |                ^^^^^^^
help: write "75s""#,
    ),
    (
        r#"[limits]
idle_timeout = "soon""#,
        r#"kettle.toml:2:16: `idle_timeout` takes a duration from 1s to 1h
 2 | idle_timeout = "soon"
   |                ^^^^^^
help: write "75s""#,
    ),
    (
        r#"[limits]
idle_timeout = ["1s"]"#,
        r#"kettle.toml:2:16: `idle_timeout` takes a duration from 1s to 1h, not a list
 2 | idle_timeout = ["1s"]
   |                ^^^^^^
help: write "75s""#,
    ),
    (
        "[tls]
handshake_timeout = 99999999999",
        r#"kettle.toml:2:21: `handshake_timeout` takes a duration from 100ms to 5m, with its unit
 2 | handshake_timeout = 99999999999
   |                     ^^^^^^^^^^^
help: write "5m""#,
    ),
];

#[test]
fn words_are_guessed() {
    assert_found(WORDS_ARE_GUESSED);
}

const WORDS_ARE_GUESSED: &[Row] = &[
    (
        r#"[log]
level = "warning""#,
        r#"kettle.toml:2:9: `level` takes one of "error", "warn", "info", "debug", "trace"
 2 | level = "warning"
   |         ^^^^^^^^^
help: write "warn""#,
    ),
    (
        r#"[log]
format = "apache""#,
        r#"kettle.toml:2:10: `format` takes one of "json", "combined", "combined-plain", "short"
 2 | format = "apache"
   |          ^^^^^^^^
help: write "combined""#,
    ),
    (
        "[log]
format = 1",
        r#"kettle.toml:2:10: `format` takes one of "json", "combined", "combined-plain", "short", not a whole number
 2 | format = 1
   |          ^
help: write "json""#,
    ),
    (
        r#"[[listener]]
address = "0.0.0.0:443"
path = "kernel_sendfile""#,
        r#"kettle.toml:3:8: `path` takes one of "auto", "user", "kernel-write", "kernel-sendfile"
 3 | path = "kernel_sendfile"
   |        ^^^^^^^^^^^^^^^^^
help: write "kernel-sendfile""#,
    ),
    (
        r#"[[listener]]
address = "0.0.0.0:443"
kind = "htps""#,
        r#"kettle.toml:3:8: `kind` takes one of "https", "http", "redirect", "tls", "tcp", "passthrough"
 3 | kind = "htps"
   |        ^^^^^^
help: write "https""#,
    ),
    (
        r#"[tls]
versions = ["TLSv1.3"]"#,
        r#"kettle.toml:2:13: `versions` takes one of "tls1.2", "tls1.3"
 2 | versions = ["TLSv1.3"]
   |             ^^^^^^^^^
help: write "tls1.3""#,
    ),
    (
        r#"[tls]
suites = ["aes128-gcm"]"#,
        r#"kettle.toml:2:11: `suites` takes one of "aes-128-gcm", "aes-256-gcm", "chacha20-poly1305"
 2 | suites = ["aes128-gcm"]
   |           ^^^^^^^^^^^^
help: write "aes-128-gcm""#,
    ),
];

#[test]
fn flags_are_true_or_false() {
    assert_found(FLAGS_ARE_TRUE_OR_FALSE);
}

const FLAGS_ARE_TRUE_OR_FALSE: &[Row] = &[
    (
        r#"[server]
pin_workers = "on""#,
        r#"kettle.toml:2:15: `pin_workers` takes true or false, not a string
 2 | pin_workers = "on"
   |               ^^^^
help: write true"#,
    ),
    (
        "[server]
pin_workers = 0",
        "kettle.toml:2:15: `pin_workers` takes true or false, not a whole number
 2 | pin_workers = 0
   |               ^
help: write false",
    ),
    (
        r#"[server]
pin_workers = "maybe""#,
        r#"kettle.toml:2:15: `pin_workers` takes true or false, not a string
 2 | pin_workers = "maybe"
   |               ^^^^^^^
help: write true"#,
    ),
];

#[test]
fn lists_are_lists_without_repeats() {
    assert_found(LISTS_ARE_LISTS_WITHOUT_REPEATS);
}

const LISTS_ARE_LISTS_WITHOUT_REPEATS: &[Row] = &[
    (
        r#"[tls]
versions = "tls1.3""#,
        r#"kettle.toml:2:12: `versions` takes a list, not a string
 2 | versions = "tls1.3"
   |            ^^^^^^^^
help: write ["tls1.3"]"#,
    ),
    (
        "[tls]
versions = []",
        r#"kettle.toml:2:12: `versions` needs at least one entry
 2 | versions = []
   |            ^^
help: write ["tls1.2", "tls1.3"]"#,
    ),
    (
        "[tls]
suites = []",
        r#"kettle.toml:2:10: `suites` needs at least one entry
 2 | suites = []
   |          ^^
help: write ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305"]"#,
    ),
    (
        "[tls]
groups = []",
        r#"kettle.toml:2:10: `groups` needs at least one entry
 2 | groups = []
   |          ^^
help: write ["x25519mlkem768", "x25519", "p-256", "p-384"]"#,
    ),
    (
        r#"[tls]
groups = ["x25519", "x25519"]"#,
        r#"kettle.toml:2:21: "x25519" stands twice in `groups`
 2 | groups = ["x25519", "x25519"]
   |                     ^^^^^^^^
help: remove one of both"#,
    ),
    (
        "[tls]
groups = 1",
        r#"kettle.toml:2:10: `groups` takes a list, not a whole number
 2 | groups = 1
   |          ^
help: write ["x25519mlkem768", "x25519", "p-256", "p-384"]"#,
    ),
];

/// One that is empty by default is shown with what may be in it, unless it was turned off.
#[test]
fn a_list_is_shown_as_it_was_most_likely_meant() {
    for (written, help) in [
        ("true", r#"["br", "zstd", "gzip"]"#),
        ("\"on\"", r#"["br", "zstd", "gzip"]"#),
        ("\"gz\"", r#"["gzip"]"#),
        ("\"brotli\"", r#"["br"]"#),
        ("false", "[]"),
    ] {
        let text = format!(
            "[[site]]\nnames = [\"a\"]\nself_signed = true\n\
             [[site.route]]\nroot = \"/srv\"\ncompress = {written}\n"
        );
        let shown = super::shown(&text);
        assert!(shown.ends_with(&format!("\nhelp: write {help}")), "{written}: {shown}");
    }
}
