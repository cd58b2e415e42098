//! All mistakes of a file are found at once, in the order of the file.

use std::path::Path;

use crate::shown;

const MANY: &str = r#"
[server]
workers = "4"
usr = "nobody"

[tls]
versions = ["tls1.2"]
suites = []
groups = ["x25519mlkem768", "p256"]

[[listener]]
address = ":443"
path = "kernel"

[[site]]
names = ["Example.org", "https://foo.org/"]
headers = { Date = "x" }
error_pages = { 200 = "x" }

[[site.route]]
root = 17

[[site]]
names = ["example.org"]
certificate = [{ chain = "c.pem" }]

[[site.route]]
rooot = "www"
"#;

#[test]
fn every_mistake_is_found_in_the_order_of_the_file() {
    let diagnostics = kettle_config::parse(MANY, Path::new("kettle.toml")).unwrap_err();
    let places: Vec<(usize, usize)> =
        diagnostics.iter().map(|diagnostic| (diagnostic.line, diagnostic.column)).collect();
    let expected = [
        (3, 11),
        (4, 1),
        (8, 10),
        (9, 11),
        (9, 29),
        (12, 11),
        (13, 8),
        (16, 10),
        (16, 25),
        (17, 13),
        (18, 17),
        (21, 8),
        (24, 10),
        (25, 16),
        (28, 1),
    ];
    assert_eq!(places, expected);
}

#[test]
fn the_offending_text_is_that_of_the_file() {
    let diagnostics = kettle_config::parse(MANY, Path::new("kettle.toml")).unwrap_err();
    let offending: Vec<&str> =
        diagnostics.iter().map(|diagnostic| diagnostic.offending.as_str()).collect();
    let expected = [
        "\"4\"",
        "usr",
        "[]",
        "\"x25519mlkem768\"",
        "\"p256\"",
        "\":443\"",
        "\"kernel\"",
        "\"Example.org\"",
        "\"https://foo.org/\"",
        "Date",
        "200",
        "17",
        "\"example.org\"",
        "{ chain = \"c.pem\" }",
        "rooot",
    ];
    assert_eq!(offending, expected);
}

#[test]
fn every_finding_says_what_to_do() {
    let diagnostics = kettle_config::parse(MANY, Path::new("kettle.toml")).unwrap_err();
    assert!(diagnostics.iter().all(|diagnostic| diagnostic.help.is_some()));
}

#[test]
fn a_syntax_error_hides_no_mistake_in_another_setting() {
    let broken = "[server]\nuser = nobody\nworkers = 0\n[tls]\ntickets = 9\n";
    let places: Vec<String> = shown(broken)
        .lines()
        .filter(|line| line.starts_with("kettle"))
        .map(str::to_owned)
        .collect();
    assert_eq!(places.len(), 3, "{places:?}");
}

#[test]
fn a_syntax_error_makes_nothing_called_missing() {
    let broken = "[[site]]\nnames = [\"a\"]\nself_signed = true\n[[site.route]]\nroot = /srv\n";
    assert_eq!(shown(broken).matches("kettle.toml:").count(), 1);
}

#[test]
fn windows_line_ends_and_tabs_keep_the_caret_in_place() {
    let shown = shown("[server]\r\n\tworkers = 0\r\n");
    let expected = "kettle.toml:2:12: `workers` takes a whole number of workers from 1 to 1024\n \
                    2 | \tworkers = 0\n   | \t          ^\nhelp: write 1";
    assert_eq!(shown, expected);
}

#[test]
fn a_long_line_is_cut_around_the_caret() {
    let line = format!("[limits]\nheaders = {}7 # {}", " ".repeat(200), "x".repeat(200));
    let shown = shown(&line);
    let widest = shown.lines().map(|line| line.chars().count()).max();
    assert!(widest < Some(130), "{shown}");
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[1].find('7'), lines[2].find('^'), "{shown}");
}

#[test]
fn bytes_that_are_no_text_have_a_place() {
    let text = b"[server]\n# caf\xc3\xa9\nuser = \"caf\xe9\"\n";
    let diagnostics = kettle_config::parse_bytes(text, Path::new("kettle.toml")).unwrap_err();
    let shown: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    let expected = "kettle.toml:3:12: the file is not UTF-8: here stands the byte 0xe9
 3 | user = \"caf\u{fffd}\"
   |            ^
help: save the file as UTF-8 in your editor";
    assert_eq!(shown, [expected]);
}
