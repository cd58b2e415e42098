//! Loads of `kettle bench load` on a kettle.

use serde_json::Value;

use super::*;

fn server() -> Kettle {
    Kettle::start(Setup::path("user").file("www/page.html", b"hello"))
}

/// `kettle bench load`. Words say after how many requests it ends: how many a second there are is the machine's business.
fn tool(kettle: &Kettle, target: &str, words: &[&str]) -> Tool {
    let url = kettle.url(target);
    let address = kettle.address().to_string();
    let patience = format!("{}s", patience().as_secs());
    Tool::kettle(["bench", "load", &url, "--connect", &address, "--timeout", &patience]).args(words)
}

fn load(kettle: &Kettle, words: &[&str]) -> Value {
    serde_json::from_str(&tool(kettle, "/page.html", words).args(["--json"]).succeed()).unwrap()
}

fn number(report: &Value, pointer: &str) -> u64 {
    report.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer}: {report}"))
}

#[test]
fn a_closed_load_keeps_its_connections() {
    let kettle = server();
    let report = load(&kettle, &["--connections", "3", "--requests", "30"]);
    assert_eq!(number(&report, "/succeeded"), 30, "{report}");
    assert_eq!(report["failures"], serde_json::json!({}));
    // They were opened before counting began.
    assert_eq!(number(&report, "/handshakes/full"), 0, "{report}");
    assert_eq!(number(&report, "/body_bytes"), 5 * number(&report, "/succeeded"));
    assert!(report["latency_histogram"].is_string());
}

#[test]
fn over_http2_requests_at_once_are_one_transaction() {
    let setup = Setup::default().listener("http2 = true").file("www/page.html", "hello");
    let kettle = Kettle::start(setup);
    let plan = ["--connections", "2", "--requests", "20", "--http", "2", "--at-once", "10"];
    let report = load(&kettle, &plan);
    assert_eq!(number(&report, "/succeeded"), 20, "{report}");
    assert_eq!(report["failures"], serde_json::json!({}));
    assert_eq!(number(&report, "/body_bytes"), 10 * 5 * number(&report, "/succeeded"));
    assert_eq!(kettle.status("/total/http2_streams"), 200);
    assert_eq!(kettle.entry("/page.html").text("version"), "HTTP/2.0");
    // A server that does not speak it is named.
    tool(&server(), "/page.html", &["--requests", "1", "--http", "2"]).fail("HTTP/2");
}

#[test]
fn an_open_load_begins_what_is_due() {
    let kettle = server();
    let report = load(&kettle, &["--rate", "20", "--seconds", "1s"]);
    assert_eq!(number(&report, "/attempted"), 20);
}

#[test]
fn sessions_are_resumed_as_planned() {
    let kettle = server();
    for words in [&["--tls", "1.3"][..], &["--tls", "1.2"]] {
        let plan = ["--requests-per-connection", "1", "--connections-per-session", "4"];
        // Three whole sessions.
        let client = ["--connections", "1", "--requests", "12"];
        let report = load(&kettle, &[&plan[..], &client, words].concat());
        assert_eq!(number(&report, "/handshakes/full"), 3, "{report}");
        assert_eq!(number(&report, "/handshakes/by_ticket"), 9, "{report}");
        assert_eq!(number(&report, "/handshakes/not_resumed"), 0, "{report}");
    }
}

#[test]
fn people_get_a_summary_and_failures_by_reason() {
    let kettle = server();
    let text = tool(&kettle, "/page.html", &["-n", "12"]).succeed();
    assert!(text.contains("12 requests in ") && text.contains("99.9 %"), "{text}");
    let why = "FAILED      12: the status is 404, not 200 (12 times)";
    tool(&kettle, "/nothing.html", &["-n", "12"]).fail(why);
}

#[test]
fn a_server_of_another_version_is_told_apart_from_one_that_is_broken() {
    let setup = Setup::path("user").file("www/page.html", b"hello");
    let kettle = Kettle::start(setup.set("tls", "versions = [\"tls1.2\"]"));
    tool(&kettle, "/page.html", &["-n", "1"]).fail("but TLS 1.2: add --tls 1.2");
    let new_ones = ["-n", "2", "--requests-per-connection", "1"];
    let ended = tool(&kettle, "/page.html", &new_ones).output();
    assert!(ended.text().contains("but TLS 1.2: add --tls 1.2"), "{}", ended.text());
    let _ = tool(&kettle, "/page.html", &["-n", "1", "--tls", "1.2"]).succeed();
}

#[test]
fn a_ramp_says_where_it_broke() {
    let kettle = server();
    let broken = tool(&kettle, "/nothing.html", &["--ramp", "5..20", "--seconds", "2s"]).output();
    assert!(broken.text().contains("The ramp broke in second 1 at "), "{}", broken.text());
}

#[test]
fn nobody_there_is_an_error_with_the_address() {
    let words = ["bench", "load", "https://127.0.0.1:1/", "-n", "1"];
    Tool::kettle(words).fail("127.0.0.1:1");
}
