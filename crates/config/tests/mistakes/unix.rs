//! Listeners on Unix sockets.

use crate::shown as found_in;

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
            assert_eq!(found_in(&written), "nothing");
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
        assert_eq!(found_in(&written), expected);
    }
    let long = found_in(&format!("[[listener]]\naddress = \"unix:{long}\""));
    assert!(long.contains("the path of a Unix socket has 107 bytes at most\n"), "{long}");
}

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
        assert_eq!(found_in(&written), expected);
    }
}
