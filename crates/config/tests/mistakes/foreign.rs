//! What people write who come from another server, a shell or a word processor.

use crate::{Row, assert_found};

#[test]
fn numbers_that_are_left_to_the_server_are_left_out() {
    assert_found(LEFT_OUT);
}

const LEFT_OUT: &[Row] = &[
    (
        "[server]
workers = \"auto\"",
        "kettle.toml:2:11: `workers` takes no \"auto\"
 2 | workers = \"auto\"
   |           ^^^^^^
help: remove the line; without it: one per CPU the process may use, by its processor mask and its control groups' `cpu.max`",
    ),
    (
        "[limits]
open_files = \"default\"",
        "kettle.toml:2:14: `open_files` takes no \"default\"
 2 | open_files = \"default\"
   |              ^^^^^^^^^
help: remove the line; without it, it is 1024",
    ),
];

#[test]
fn settings_of_other_servers_are_said_with_what_they_are_here() {
    assert_found(SETTINGS);
}

const SETTINGS: &[Row] = &[
    (
        "[[listener]]
address = \"0.0.0.0:443\"
http3 = true
root = \"/srv\"
certificate = \"a.pem\"",
        "kettle.toml:3:1: `http3` is not a setting of [[listener]]
 3 | http3 = true
   | ^^^^^
help: remove it, it is not here: HTTP/1.1 and HTTP/2 are spoken, and every client takes one of them
kettle.toml:4:1: `root` is not a setting of [[listener]]
 4 | root = \"/srv\"
   | ^^^^
help: write it below [[site.route]]
kettle.toml:5:15: only a [[listener]] with kind = \"tls\" uses `certificate`
 5 | certificate = \"a.pem\"
   |               ^^^^^^^
help: remove it here, or write it below [[site]]",
    ),
    (
        "listen = \":443\"",
        "kettle.toml:1:1: `listen` is not a setting of the top level
 1 | listen = \":443\"
   | ^^^^^^
help: write it below [metrics], or `address` below [[listener]] or [[backend.server]]",
    ),
    (
        "[log]
level = \"notice\"
format = \"common\"",
        "kettle.toml:2:9: `level` takes one of \"error\", \"warn\", \"info\", \"debug\", \"trace\"
 2 | level = \"notice\"
   |         ^^^^^^^^
help: write \"info\"
kettle.toml:3:10: `format` takes one of \"json\", \"combined\", \"combined-plain\", \"short\"
 3 | format = \"common\"
   |          ^^^^^^^^
help: write \"combined\"",
    ),
    (
        "[tls]
versions = [\"TLSv1.1\"]",
        "kettle.toml:2:13: `versions` takes one of \"tls1.2\", \"tls1.3\"
 2 | versions = [\"TLSv1.1\"]
   |             ^^^^^^^^^
help: it is not here: TLS 1.2 and TLS 1.3 are spoken; what is older is broken (RFC 8996)",
    ),
];

#[test]
fn curly_quotes_are_replaced_and_not_quoted() {
    assert_found(CURLY_QUOTES);
}

const CURLY_QUOTES: &[Row] = &[
    (
        "[server]
user = “www”",
        "kettle.toml:2:8: curly quotes are no quotes of TOML
 2 | user = “www”
   |        ^^^^^
help: write \"www\"",
    ),
    (
        "[[site]]
names = [‘a’, “b”]",
        "kettle.toml:2:9: curly quotes are no quotes of TOML
 2 | names = [‘a’, “b”]
   |         ^^^^^^^^^^
help: write [\"a\", \"b\"]",
    ),
];

#[test]
fn a_part_above_its_table_is_said_once() {
    assert_found(PARTS_ABOVE);
}

const PARTS_ABOVE: &[Row] = &[(
    "[[site.route]]
root = \"/srv\"
[[site]]
names = [\"a\"]
self_signed = true",
    "kettle.toml:3:1: [[site]] stands below [[site.route]], which is a part of it
 3 | [[site]]
   | ^^^^^^^^
help: move [[site]] and its settings above [[site.route]]",
)];

#[test]
fn variables_are_not_filled_in() {
    assert_found(VARIABLES);
}

const VARIABLES: &[Row] = &[(
    "[[listener]]
address = \"$IP:443\"",
    "kettle.toml:2:11: `address` takes an IP address and a port
 2 | address = \"$IP:443\"
   |           ^^^^^^^^^
help: write the value itself: variables such as `$IP` are not filled in",
)];

const NO_PATTERNS: &str = "write the beginning that all its paths have; `from` of a redirect or a rewrite and \
                           `cache_control` take patterns, and %2A is a `*` itself";

/// A prefix and the help that it gets, or how it is kept.
#[test]
fn a_prefix_is_no_pattern() {
    let parse = |prefix: &str| {
        let text = format!(
            "[[listener]]\naddress = \"127.0.0.1:443\"\n[[site]]\nnames = [\"a\"]\nself_signed = true\n\
             [[site.route]]\nprefix = '{prefix}'\ndeny = [\"0.0.0.0/0\"]\n"
        );
        kettle_config::parse(&text, std::path::Path::new("kettle.toml"))
    };
    for (prefix, help) in [
        ("~ \\.php$", NO_PATTERNS),
        ("~* \\.(gif|jpg)$", NO_PATTERNS),
        ("/\\.", NO_PATTERNS),
        ("/*.php", NO_PATTERNS),
        ("/a/*/b", NO_PATTERNS),
        ("/(admin|secret)", NO_PATTERNS),
        ("/admin$", NO_PATTERNS),
        ("^/(admin)", NO_PATTERNS),
        ("*.php", NO_PATTERNS),
        ("^/admin", "write \"/admin\""),
        ("^~ /images/", "write \"/images/\""),
        ("= /status", "write \"/status\""),
        ("/images/**", "write \"/images/\""),
        ("/images/*", "write \"/images/\""),
        ("admin", "write \"/admin\""),
        ("/a%2Fb", "write the character itself in place of each %XX"),
        ("/100%", "write the character itself in place of each %XX"),
    ] {
        let found = parse(prefix).unwrap_err();
        let helps: Vec<&str> = found.iter().filter_map(|it| it.help.as_deref()).collect();
        assert_eq!(helps, [help], "{prefix}");
    }
    for (written, kept) in [
        ("/~alice", "/~alice"),
        ("/odata/$metadata", "/odata/$metadata"),
        ("/a.b-c_d", "/a.b-c_d"),
        ("/a%2Ab", "/a*b"),
        ("/%28x%29%7C%5E%5C%24", "/(x)|^\\$"),
        ("/100%25", "/100%"),
    ] {
        assert_eq!(parse(written).unwrap().sites[0].routes[0].prefix, kept, "{written}");
        let again = parse(&kettle_config::written_prefix(kept)).unwrap();
        assert_eq!(again.sites[0].routes[0].prefix, kept, "{written}");
    }
}

#[test]
fn a_value_that_names_a_variable_is_a_warning() {
    let text = "[[listener]]\naddress = \"127.0.0.1:443\"\n[[site]]\nnames = [\"a\"]\nself_signed = true\n\
                [site.headers]\nX-A = \"$host\"\nX-B = \"5 $\"\n[[site.route]]\nredirect = [{ to = \"https://b.example/$1\" }]\n";
    let config = kettle_config::parse(text, std::path::Path::new("kettle.toml")).unwrap();
    let found = kettle_config::advice(&config);
    let said: Vec<(usize, usize, &str)> =
        found.iter().map(|it| (it.line, it.column, it.message.as_str())).collect();
    assert_eq!(
        said,
        [(7, 7, "`$host` stands for itself here"), (10, 20, "`$1` stands for itself here")]
    );
    assert!(
        found[1].help.as_deref().is_some_and(|help| help.ends_with("is `{1}`")),
        "{:?}",
        found[1]
    );
}
