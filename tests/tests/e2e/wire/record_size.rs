//! Records are as large as they can be: a head and a small body share one, a large body fills them.

use kettle_tests::record::whole_records;

use super::*;

#[test]
fn a_head_and_a_small_body_share_one_record() {
    // From memory and from a file.
    for hot_file in ["hot_file = 0", "hot_file = 65536"] {
        let setup = Setup::paths(paths_here()).set("limits", hot_file).sizes(&[1, 1_000, 16_000]);
        let kettle = Kettle::start(setup.set("tls", "tickets = 0"));
        for (path, suite) in paths_and_versions() {
            let mut client = kettle.connect_by(path, suite);
            for bytes in [1, 1_000, 16_000] {
                let response = sizes_of_response(&mut client, suite, &format!("/{bytes}"), "");
                assert_eq!(response.records, [response.head_bytes + bytes], "{path} {hot_file}");
            }
        }
    }
}

#[test]
fn a_response_without_a_body_is_one_record() {
    let setup = Setup::paths(paths_here()).sizes(&[0]);
    let kettle = Kettle::start(setup.set("tls", "tickets = 0"));
    for path in paths_here() {
        let mut client = kettle.connect_by(path, TLS13_AES_128);
        let response = sizes_of_response(&mut client, TLS13_AES_128, "/0", "");
        assert_eq!(response.records, [response.head_bytes], "{path}");
    }
}

#[test]
fn a_large_body_fills_its_records() {
    let bytes = 3 * 1_024 * 1_024 + 12_345;
    let kettle = Kettle::start(
        Setup::paths(paths_here()).sizes(&[bytes]).without_memory().set("tls", "tickets = 0"),
    );
    for (path, suite) in paths_here().iter().cycle().zip(SUITES) {
        let mut client = kettle.connect_by(path, suite);
        let response = sizes_of_response(&mut client, suite, &format!("/{bytes}"), "");
        assert_filled(&response, 0, bytes, path);
    }
}

#[test]
fn a_range_fills_its_records_whatever_its_borders() {
    let kettle = Kettle::start(
        Setup::paths(paths_here()).sizes(&[300_000]).without_memory().set("tls", "tickets = 0"),
    );
    for path in paths_here() {
        let mut client = kettle.connect_by(path, TLS13_AES_128);
        let range = "Range: bytes=16383-216383\r\n";
        let response = sizes_of_response(&mut client, TLS13_AES_128, "/300000", range);
        assert_filled(&response, 16_383, 200_001, path);
    }
}

/// The head shares the first record, and all that follow are full but the last. Sendfile begins the second one where a
/// page of the file begins, the other paths fill the first one too.
fn assert_filled(response: &Sizes, body_start: usize, body_bytes: usize, path: &str) {
    let total = response.head_bytes + body_bytes;
    let first = response.records[0];
    if path == "auto" || path == "kernel-sendfile" {
        assert!(response.head_bytes < first && first <= 16_384, "{path}: {first}");
        assert_eq!((body_start + first - response.head_bytes) % 4_096, 0, "{path}: {first}");
    } else {
        assert_eq!(first, 16_384, "{path}");
    }
    let mut expected = vec![first];
    expected.resize(1 + (total - first) / 16_384, 16_384);
    expected.push((total - first) % 16_384);
    assert_eq!(response.records, expected, "{path}");
}

/// The lengths of a response's head and of the content of its records.
struct Sizes {
    head_bytes: usize,
    records: Vec<usize>,
}

fn sizes_of_response(client: &mut Client, suite: Suite, target: &str, headers: &str) -> Sizes {
    let before = client.wire.received.len();
    let response = client.exchange(&request("GET", target, headers));
    let (records, _) = whole_records(&client.wire.received[before..]);
    let records = records.iter().map(|record| record.content_bytes(suite.overhead_bytes));
    Sizes { head_bytes: response.head.len(), records: records.collect() }
}
