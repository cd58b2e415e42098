//! The access log, where a file takes it.

use std::fs;

use kettle_tests::http::{Connection, request};
use kettle_tests::kettle::Kettle;
use kettle_tests::setup::Setup;
use kettle_tests::suite::TLS13_AES_128;

#[test]
fn a_log_file_that_was_moved_away_is_opened_anew_on_request() {
    let mut kettle = Kettle::start(logging("json"));
    let mut client = kettle.connect(TLS13_AES_128);
    client.get("/a?before");
    let log = kettle.folder.path("access.log");
    fs::rename(&log, kettle.folder.path("access.log.1")).unwrap();
    let _ = kettle.ctl(&["reopen"]).succeed();
    client.get("/a?after");
    let _ = kettle.ctl(&["stop"]).succeed();
    let _ = kettle.ended();
    let [old, new] = ["access.log.1", "access.log"]
        .map(|name| fs::read_to_string(kettle.folder.path(name)).unwrap());
    assert!(old.contains("/a?before") && !old.contains("/a?after"), "{old}");
    assert!(new.contains("/a?after") && !new.contains("/a?before"), "{new}");
}

#[test]
fn the_combined_format_ends_with_the_path_and_cannot_be_forged() {
    let mut kettle = Kettle::start(logging("combined"));
    let mut client = kettle.connect(TLS13_AES_128);
    let fields = "User-Agent: evil\" 200 \\ \u{7f}\r\n".replace('\u{7f}', "\t");
    client.send(&request("GET", "/a", &fields)).unwrap();
    assert_eq!(client.response().status, 200);
    let _ = kettle.ctl(&["stop"]).succeed();
    let _ = kettle.ended();
    let text = fs::read_to_string(kettle.folder.path("access.log")).unwrap();
    assert_eq!(text.lines().count(), 1);
    assert!(text.starts_with("127.") && text.contains("\"GET /a HTTP/1.1\" 200 7 "), "{text}");
    assert!(text.contains(" path=user ") && text.contains(" tls=TLSv1.3 "), "{text}");
    assert!(!text.contains("evil\" 200"), "{text}");
}

fn logging(format: &str) -> Setup {
    Setup::path("user")
        .file("www/a", "content")
        .set("log", "access = \"access.log\"")
        .set("log", &format!("format = {format:?}"))
}
