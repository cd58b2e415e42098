//! Listeners on Unix sockets.

use crate::{Row, assert_found};

#[test]
fn addresses_of_unix_sockets_are_paths_that_can_be_made() {
    let long = format!("/run/{}", "k".repeat(103));
    let exactly = &long[..107];
    for (written, found) in [
        ("unix:/run/kettle/app.sock".to_owned(), None),
        (format!("unix:{exactly}"), None),
        (
            "unix:@app".to_owned(),
            Some((
                "an abstract name has no rights, so that everybody could connect",
                Some("\"unix:/run/kettle/app\""),
            )),
        ),
        (
            "unix:app.sock".to_owned(),
            Some((
                "a Unix socket has a path from the root on",
                Some("\"unix:/run/kettle/app.sock\""),
            )),
        ),
        (
            "unix:./run/app.sock".to_owned(),
            Some(("a Unix socket has a path from the root on", Some("\"unix:/run/app.sock\""))),
        ),
        (
            "/run/app.sock".to_owned(),
            Some(("a path stands behind `unix:`", Some("\"unix:/run/app.sock\""))),
        ),
        (
            "@app".to_owned(),
            Some(("a path stands behind `unix:`", Some("\"unix:/run/kettle/app\""))),
        ),
        ("unix:".to_owned(), Some(("a Unix socket has a path from the root on", None))),
        ("unix:/run/kettle/".to_owned(), Some(("this path is a folder's", None))),
        ("unix:/run/../a".to_owned(), Some(("`..` makes two paths of one", None))),
    ] {
        let written = format!("[[listener]]\naddress = \"{written}\"");
        let Some((why, help)) = found else {
            assert_found(&[(&written, "nothing")]);
            continue;
        };
        let shown = written.lines().last().unwrap();
        let example = "an IP address and a port, or `unix:` and a path, such as \"unix:/run/kettle/app.sock\"";
        let expected = format!(
            "kettle.toml:2:11: `address` takes an IP address and a port, or `unix:` and a path: {why}\n \
             2 | {shown}\n   |           {}\nhelp: write {}",
            "^".repeat(shown.chars().count() - 10),
            help.unwrap_or(example),
        );
        assert_found(&[(&written, &expected)]);
    }
    let long = crate::shown(&format!("[[listener]]\naddress = \"unix:{long}\""));
    assert!(long.contains("the path of a Unix socket has 107 bytes at most\n"), "{long}");
}

#[test]
fn what_is_about_unix_sockets_stands_at_none_else() {
    assert_found(ABOUT_UNIX_SOCKETS);
}

const ABOUT_UNIX_SOCKETS: &[Row] = &[
    (
        r#"[[listener]]
address = "127.0.0.1:1"
mode = "0660""#,
        r#"kettle.toml:3:8: `mode` is about the file of a Unix socket, and this is none
 3 | mode = "0660"
   |        ^^^^^^
help: remove it, or write address = "unix:/run/kettle/app.sock""#,
    ),
    (
        r#"[[listener]]
address = "127.0.0.1:1"
owner = "www-data""#,
        r#"kettle.toml:3:9: `owner` is about the file of a Unix socket, and this is none
 3 | owner = "www-data"
   |         ^^^^^^^^^^
help: remove it, or write address = "unix:/run/kettle/app.sock""#,
    ),
    (
        r#"[[listener]]
address = "127.0.0.1:1"
accept_proxy = ["unix:"]"#,
        r#"kettle.toml:3:16: "unix:" is who connects to a Unix socket, and this is none
 3 | accept_proxy = ["unix:"]
   |                ^^^^^^^^^
help: write networks, or remove it"#,
    ),
    (
        r#"[[listener]]
address = "unix:/run/a"
accept_proxy = ["unix:", "10.0.0.0/8"]"#,
        r#"kettle.toml:3:16: nobody connects to a Unix socket from a network
 3 | accept_proxy = ["unix:", "10.0.0.0/8"]
   |                ^^^^^^^^^^^^^^^^^^^^^^^
help: write ["unix:"]"#,
    ),
    (
        r#"[[listener]]
address = "unix:/run/a"
trusted_proxies = ["unix:", "10.0.0.0/8"]
accept_proxy = ["unix:"]
mode = "600"
owner = "www-data"
group = "www-data""#,
        "nothing",
    ),
    (
        r#"[[listener]]
address = "unix:/run/a"
trusted_proxies = ["unix:/run/a"]"#,
        r#"kettle.toml:3:20: `trusted_proxies` takes a network: it is for the listener's own socket, without a path
 3 | trusted_proxies = ["unix:/run/a"]
   |                    ^^^^^^^^^^^^^
help: write "unix:""#,
    ),
];

#[test]
fn the_rights_of_a_socket_let_somebody_connect() {
    for (mode, why) in [
        ("0660", None),
        ("666", None),
        ("0200", None),
        ("0440", Some("nobody could connect")),
        ("rw-rw----", Some("these are no rights")),
        ("0880", Some("these are no rights")),
        ("04660", Some("these are no rights")),
    ] {
        let written = format!("[[listener]]\naddress = \"unix:/run/a\"\nmode = \"{mode}\"");
        let expected = match why {
            None => "nothing".to_owned(),
            Some(why) => format!(
                "kettle.toml:3:8: `mode` takes three octal digits, with or without a zero before them: {why}\n \
                 3 | mode = \"{mode}\"\n   |        {}\nhelp: write three octal digits, with or without a zero before them, such as \"0660\"",
                "^".repeat(mode.len() + 2)
            ),
        };
        assert_found(&[(&written, &expected)]);
    }
}

#[test]
fn a_path_is_listened_on_once_and_leads_to_nobody_else() {
    assert_found(ONE_PATH);
}

const ONE_PATH: &[Row] = &[
    (
        r#"[[listener]]
address = "unix:/run/a"
[[listener]]
address = "unix:/run//./a""#,
        r#"kettle.toml:4:11: line 2 listens on unix:/run/a already
 4 | address = "unix:/run//./a"
   |           ^^^^^^^^^^^^^^^^
help: remove one of both, or write another path"#,
    ),
    (
        r#"[admin]
socket = "/run/a"
[[listener]]
address = "unix:/run/a""#,
        r#"kettle.toml:2:10: line 4 listens on unix:/run/a already
 2 | socket = "/run/a"
   |          ^^^^^^^^
help: write another path"#,
    ),
    (
        r#"[[listener]]
address = "unix:/run/a"
kind = "tcp"
backend = "app"
[[backend]]
name = "app"
[[backend.server]]
address = "unix:/run/a""#,
        r#"kettle.toml:8:11: line 2 listens on unix:/run/a and carries connections to this server: they would come back
 8 | address = "unix:/run/a"
   |           ^^^^^^^^^^^^^
help: write the address of another server, or another port"#,
    ),
];
