//! The numbers that a running server tells.

use super::*;

#[test]
fn the_metrics_endpoint_tells_what_happened() {
    // The port of no listener of any other test.
    let address = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap()
    };
    let setup = Setup::path("kernel-sendfile").sizes(&[70_000]);
    let kettle = Kettle::start(setup.metrics(address));
    for suite in [TLS13_AES_128, TLS13_AES_128, TLS12_AES_128] {
        let mut client = kettle.connect(suite);
        client.get("/70000");
        client.get("/missing");
    }
    assert!(Dialer::default().alpn(&["unknown"]).try_connect(kettle.address()).is_err());
    kettle.wait_until_idle();

    let mut scrape = Wire::connect(address);
    let accept = "Accept: application/openmetrics-text;version=1.0.0";
    let asking = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{accept}\r\n\r\n");
    let response = scrape.exchange(asking.as_bytes());
    assert!(response.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    let text = String::from_utf8(response.body).unwrap();
    let path = if has_kernel_tls() { "kernel-sendfile" } else { "user" };
    let moved = if has_kernel_tls() { 3 } else { 0 };
    for line in [
        "kettle_connections_total 4",
        "kettle_connections_open 0",
        "kettle_handshakes_total{version=\"TLSv1.3\",resumption=\"full\"} 2",
        "kettle_handshakes_total{version=\"TLSv1.2\",resumption=\"full\"} 1",
        &format!("kettle_responses_total{{path=\"{path}\",status=\"200\"}} 3"),
        &format!("kettle_switches_total {moved}"),
        "kettle_responses_truncated_total 0",
        "# EOF",
    ] {
        assert!(text.lines().any(|found| found == line), "no `{line}` in\n{text}");
    }
    assert!(
        text.contains("kettle_handshakes_failed_total{reason=\"no_application_protocol\"} 1"),
        "{text}"
    );

    // A scraper that asks for no format gets the one that every tool reads: no `info`, no end mark.
    let mut scrape = Wire::connect(address);
    let response = scrape.get("/metrics");
    assert_eq!(response.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let plain = String::from_utf8(response.body).unwrap();
    let samples = |text: &str| text.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(samples(&plain), samples(&text));
    assert!(plain.contains("# TYPE kettle_build_info gauge\n"), "{plain}");
    assert!(plain.contains("# TYPE kettle_connections_total counter\n"), "{plain}");
    assert!(!plain.contains("# EOF") && !plain.contains(" info\n"), "{plain}");
}

#[test]
fn the_status_of_ctl_is_for_people_and_for_programs() {
    let kettle = Kettle::start(Setup::path("user").sizes(&[70_000]));
    kettle.connect(TLS13_AES_128).get("/70000");
    // Logged is counted.
    let _ = kettle.entry("/70000");
    let screen = kettle.ctl(&["status"]).succeed();
    assert!(screen.contains("responses    1: 200 1"), "{screen}");
    assert!(screen.contains(&kettle.address().to_string()), "{screen}");
    assert_eq!(kettle.status("/total/responses/user"), 1);
    assert_eq!(kettle.status("/process"), kettle.process());
}
