//! Tests whether a listener offers HTTP/2 whose configuration leaves that open.

use super::*;

const SENDFILE: &str = "path = \"kernel-sendfile\"";

fn open(listener: &str) -> Setup {
    Setup::default().bare_listener(listener).file("www/a", "content")
}

/// The version that curl speaks when it is given these words.
fn spoken(kettle: &Kettle, words: &[&str]) -> String {
    let said = kettle.curl(&[&["--write-out", " %{http_version}"], words].concat(), "/a").succeed();
    said.strip_prefix("content ").unwrap().to_owned()
}

#[test]
fn it_is_offered_and_forced_on_nobody() {
    let kettle = Kettle::start(open(""));
    assert_eq!(spoken(&kettle, &[]), "2");
    assert_eq!(spoken(&kettle, &["--http1.1"]), "1.1");
    assert_eq!(spoken(&kettle, &["--no-alpn"]), "1.1");
}

#[test]
fn sendfile_that_is_asked_for_is_not_taken_away() {
    for (listener, site, version) in [
        (SENDFILE, "", "1.1"),
        ("", SENDFILE, "1.1"),
        ("path = \"kernel-sendfile\"\nhttp2 = true", "", "2"),
        ("http2 = true", SENDFILE, "2"),
        ("path = \"kernel-write\"", "", "2"),
        ("http2 = false", "", "1.1"),
    ] {
        let kettle = Kettle::start(open(listener).site(site));
        assert_eq!(spoken(&kettle, &[]), version, "{listener}, {site}");
    }
}

#[test]
fn a_reload_that_changes_what_is_offered_sends_clients_elsewhere() {
    let kettle = Kettle::start(open("path = \"auto\""));
    let mut frames = Frames::connect(&kettle, &[]);
    frames.send(&get(1, "/a"));
    assert_eq!(frames.body(1), b"content");
    // The default, written.
    kettle.reload_with("path = \"auto\"", "path = \"auto\"\nhttp2 = true");
    frames.send(&get(3, "/a"));
    loop {
        let frame = frames.next().unwrap();
        assert_ne!(frame.kind, GOAWAY);
        if frame.kind == DATA && frame.flags & END_STREAM != 0 {
            break;
        }
    }
    // A site asks for sendfile, and the listener leaves it open.
    kettle.folder.change_config("\nhttp2 = true", "");
    kettle.folder.change_config(
        "names = [\"localhost\"]",
        "names = [\"localhost\"]\npath = \"kernel-sendfile\"",
    );
    let _ = kettle.ctl(&["reload"]).succeed();
    frames.send(&get(5, "/a"));
    assert_eq!(code(&frames.next_of(GOAWAY).payload[4..]), NO_ERROR);
    assert_eq!(frames.body(5), b"content");
    assert_eq!(spoken(&kettle, &[]), "1.1");
}
