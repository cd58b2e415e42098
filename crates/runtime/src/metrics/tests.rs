use std::time::Duration;

use kettle_tls::stream::KeyChanges;
use kettle_tls::{Cipher, Resumption, Session, TicketEpoch, Version};

use super::counter::{Labelled, OTHER, Shape};
use super::{Metrics, Numbers, WorkerMetrics, render};
use crate::tx_path::{Reason, TxPath};

fn session() -> Session {
    Session {
        version: Version::Tls13,
        cipher: Cipher::Aes128Gcm,
        suite: "TLS13_AES_128_GCM_SHA256",
        group: "X25519MLKEM768",
        resumed: Resumption::Full,
        server_name: None,
        alpn: None,
        is_certificate_asked: false,
        peer: None,
        ticket_epoch: Some(TicketEpoch::Previous),
        audience: None,
    }
}

fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|candidate| candidate == line)
}

#[test]
fn workers_are_added_up() {
    let metrics = Metrics::new(2);
    for worker in metrics.workers() {
        worker.connection_opened();
        worker.handshake_finished(&session(), Duration::from_millis(2));
        worker.response(TxPath::KernelSendfile, 200, 70_000, Duration::from_millis(3));
        worker.refused("ulp_missing");
    }
    let total = metrics.total();
    assert_eq!(total.connections.now(), 2);
    assert_eq!(total.handshakes.get(&vec!["TLSv1.3", "full"]), Some(&2));
    assert_eq!(total.responses.get(&("kernel-sendfile", 200)), Some(&2));
    assert_eq!(total.response_bytes, [0, 0, 140_000, 0, 0]);
    assert_eq!(total.refused.get(&vec!["ulp_missing"]), Some(&2));
    assert_eq!(total.request_durations.count(), 2);
}

#[test]
fn every_counter_appears_in_the_text() {
    let metrics = Metrics::new(1);
    let worker = &metrics.workers()[0];
    worker.connection_opened();
    worker.connection_rejected("connection_limit");
    worker.handshake_finished(&session(), Duration::from_micros(700));
    worker.handshake_failed("timeout");
    worker.response(TxPath::User, 404, 321, Duration::from_micros(90));
    worker.response_truncated();
    worker.not_preferred(Reason::KillSwitch);
    worker.switched();
    worker.refused("cipher_missing");
    worker.keys_changed(KeyChanges { received: 1, sent: 2, kernel: 1, refused: None });
    worker.open_files(7);
    worker.cache_hit();
    worker.cache_miss();
    worker.stall(Duration::from_millis(1_500));
    let _ = kettle_kernel::bug!("the test wants one");
    let text = render(&metrics, Duration::from_secs(61)).unwrap();
    for line in [
        "kettle_uptime_seconds 61",
        "kettle_workers 1",
        "kettle_connections_total 1",
        "kettle_connections_open 1",
        "kettle_connections_rejected_total{reason=\"connection_limit\"} 1",
        "kettle_handshakes_total{version=\"TLSv1.3\",resumption=\"full\"} 1",
        "kettle_ticket_epochs_total{outcome=\"previous\"} 1",
        "kettle_handshake_suites_total{suite=\"TLS13_AES_128_GCM_SHA256\"} 1",
        "kettle_handshake_groups_total{group=\"X25519MLKEM768\"} 1",
        "kettle_handshakes_failed_total{reason=\"timeout\"} 1",
        "kettle_responses_total{path=\"user\",status=\"404\"} 1",
        "kettle_response_bytes_total{path=\"user\"} 321",
        "kettle_responses_truncated_total 1",
        "kettle_responses_not_preferred_total{reason=\"kill_switch\"} 1",
        "kettle_switches_total 1",
        "kettle_refusals_total{reason=\"cipher_missing\"} 1",
        "kettle_key_updates_total{direction=\"rx\"} 1",
        "kettle_key_updates_total{direction=\"tx\"} 2",
        "kettle_kernel_rekeys_total 1",
        "kettle_open_files 7",
        "kettle_file_lookups_total{outcome=\"hit\"} 1",
        "kettle_file_lookups_total{outcome=\"miss\"} 1",
        "kettle_worker_stalls_total 1",
        "kettle_worker_stalled_seconds_total 1.5",
        "kettle_reloads_total{outcome=\"refused\"} 0",
        "kettle_bugs_total{file=\"crates/runtime/src/metrics/tests.rs\"} 1",
        "kettle_access_log_lines_dropped_total 0",
        "kettle_request_duration_seconds_bucket{le=\"0.0001\"} 1",
        "# TYPE kettle_responses counter",
    ] {
        assert!(has_line(&text, line), "missing {line} in\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn histogram_buckets_are_cumulative_and_bounds_inclusive() {
    let metrics = Metrics::new(1);
    let worker = &metrics.workers()[0];
    for duration in
        [Duration::from_micros(100), Duration::from_micros(101), Duration::from_secs(90)]
    {
        worker.response(TxPath::User, 200, 0, duration);
    }
    let text = render(&metrics, Duration::ZERO).unwrap();
    for line in [
        "kettle_request_duration_seconds_bucket{le=\"0.0001\"} 1",
        "kettle_request_duration_seconds_bucket{le=\"0.00025\"} 2",
        "kettle_request_duration_seconds_bucket{le=\"60.0\"} 2",
        "kettle_request_duration_seconds_bucket{le=\"+Inf\"} 3",
        "kettle_request_duration_seconds_count 3",
    ] {
        assert!(has_line(&text, line), "missing {line} in\n{text}");
    }
}

#[test]
fn labels_beyond_the_room_are_counted_as_other() {
    let counter = Labelled::<1, 2>::default();
    for label in ["a", "b", "c", "a", "d"] {
        counter.add_one([label]);
    }
    assert_eq!(counter.read(), [(vec!["a"], 2), (vec!["b"], 1), (vec![OTHER], 2)].into());
}

#[test]
fn a_label_that_is_the_word_for_the_rest_is_added_to_it() {
    let counter = Labelled::<1, 2>::default();
    for label in [OTHER, "a", "b"] {
        counter.add_one([label]);
    }
    assert_eq!(counter.read(), [(vec![OTHER], 2), (vec!["a"], 1)].into());
}

#[test]
fn status_outside_the_range_counts_bytes_only() {
    let worker = WorkerMetrics::default();
    worker.response(TxPath::User, 99, 5, Duration::ZERO);
    worker.response(TxPath::User, 1_000, 5, Duration::ZERO);
    worker.response(TxPath::User, 999, 5, Duration::ZERO);
    let numbers = Numbers::of(&worker);
    assert_eq!(numbers.responses.len(), 1);
    assert_eq!(numbers.response_bytes, [15, 0, 0, 0, 0]);
}
