//! Loads of `kettle bench load` on a kettle.

use kettle_tests::kettle::Kettle;
use kettle_tests::setup::Setup;
use kettle_tests::tool::Tool;
use serde_json::Value;

fn server() -> Kettle {
    Kettle::start(Setup::path("user").file("www/page.html", b"hello"))
}

/// `kettle bench load`, for a second unless the words say otherwise.
fn tool(kettle: &Kettle, target: &str, words: &[&str]) -> Tool {
    let (url, address) = (kettle.url(target), kettle.address().to_string());
    let tool = Tool::kettle(["bench", "load", &url, "--connect", &address]).args(words);
    if words.contains(&"--seconds") { tool } else { tool.args(["--seconds", "1"]) }
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
    let report = load(&kettle, &["--connections", "3"]);
    assert!(number(&report, "/succeeded") > 3, "{report}");
    assert_eq!(report["failures"], serde_json::json!({}));
    // They were opened before counting began.
    assert_eq!(number(&report, "/handshakes/full"), 0, "{report}");
    assert_eq!(number(&report, "/body_bytes"), 5 * number(&report, "/succeeded"));
    assert!(report["latency_histogram"].is_string());
}

#[test]
fn an_open_load_begins_what_is_due() {
    let kettle = server();
    let report = load(&kettle, &["--rate", "20"]);
    assert_eq!(number(&report, "/attempted"), 20);
}

#[test]
fn sessions_are_resumed_as_planned() {
    let kettle = server();
    for words in [&["--tls", "1.3"][..], &["--tls", "1.2"]] {
        let plan = ["--requests-per-connection", "1", "--connections-per-session", "4"];
        // An emulated machine makes some five handshakes a second, which must be enough for whole sessions.
        let client = ["--connections", "1", "--seconds", "4"];
        let report = load(&kettle, &[&plan[..], &client, words].concat());
        assert!(number(&report, "/handshakes/by_ticket") > 0, "{report}");
        assert_eq!(number(&report, "/handshakes/not_resumed"), 0, "{report}");
    }
}

#[test]
fn people_get_a_summary_and_failures_by_reason() {
    let kettle = server();
    let text = tool(&kettle, "/page.html", &[]).succeed();
    assert!(text.contains("requests in 1.00 s") && text.contains("99.9 %"), "{text}");
    let ended = tool(&kettle, "/nothing.html", &[]).output();
    assert!(!ended.status.success());
    assert!(ended.text().contains("FAILED"), "{}", ended.text());
}

#[test]
fn nobody_there_is_an_error_with_the_address() {
    let words = ["bench", "load", "https://127.0.0.1:1/", "--seconds", "1"];
    let ended = Tool::kettle(words).output();
    assert!(!ended.status.success());
    assert!(ended.stderr.contains("127.0.0.1:1"), "{}", ended.stderr);
}
