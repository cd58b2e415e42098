//! Right answers are counted, all of them and nothing else.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kettle_loadgen::client;
use kettle_loadgen::load::{Arrivals, End, Load, LoadModel, Reuse};

use crate::server::Answer;
use crate::setup::{cpu, plain_requests, plain_server, requests, run, server};

#[test]
fn every_right_answer_is_counted_once() {
    let server = server(|_| Answer::Right);
    let load = requests(&server, 4, 500);
    let outcome = run(&load);
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    assert_eq!(outcome.attempted, 500);
    assert_eq!(outcome.succeeded, server.given("right"));
    assert_eq!(outcome.succeeded, 500);
    assert_eq!(outcome.body_bytes, 500 * 1_024);
    assert_eq!(outcome.latency.len(), 500);
    assert_eq!(outcome.first_byte.len(), 500);
    assert_eq!(server.connections(), 4);
    let by_second: u64 = outcome.seconds.iter().map(|second| second.succeeded).sum();
    assert_eq!(by_second, 500);
    assert_eq!(outcome.check_mix(&load), Ok(()));
}

#[test]
fn plain_http_is_measured_too() {
    let server = plain_server(|_| Answer::Right);
    let load = plain_requests(&server, 2, 100);
    let outcome = run(&load);
    assert_eq!((outcome.succeeded, outcome.failures.len()), (100, 0));
    assert_eq!(outcome.handshakes.full, 0);
    assert_eq!(outcome.check_mix(&load), Ok(()));
}

#[test]
fn connections_end_after_their_requests() {
    // Each client makes whole connections but for its last.
    for (clients, most) in [(1, 20), (2, 22)] {
        let server = server(|_| Answer::Right);
        let mut load = requests(&server, clients, 60);
        load.reuse = Reuse { requests_per_connection: Some(3), connections_per_session: 1 };
        let outcome = run(&load);
        assert_eq!((outcome.succeeded, outcome.failures.len()), (60, 0));
        assert!((20..=most).contains(&server.connections()), "{}", server.connections());
        assert_eq!(outcome.handshakes.full, server.connections());
    }
}

#[test]
fn threads_share_connections_and_requests() {
    // A thread without a connection waits for the others.
    for (threads, connections) in [(2, 5), (3, 1)] {
        let server = plain_server(|_| Answer::Right);
        let cpus = vec![cpu(); threads];
        let outcome = run(&Load { cpus, ..plain_requests(&server, connections, 20) });
        assert_eq!((outcome.succeeded, server.connections()), (20, u64::from(connections)));
        assert_eq!(outcome.thread_busy.len(), threads);
    }
}

#[test]
fn connections_come_from_as_many_addresses_as_asked() {
    let server = plain_server(|_| Answer::Right);
    let reuse = Reuse { requests_per_connection: Some(1), connections_per_session: 1 };
    run(&Load { reuse, sources: 3, ..plain_requests(&server, 1, 20) });
    let peers: BTreeSet<String> = server.peers().iter().map(ToString::to_string).collect();
    assert_eq!(peers, ["127.0.0.2", "127.0.0.3", "127.0.0.4"].map(String::from).into());
}

#[test]
fn idle_connections_are_there_while_the_caller_measures() {
    let server = plain_server(|_| Answer::Right);
    let model = LoadModel::Idle { connections: 40, requests: 2 };
    let load = Load { model, ..plain_requests(&server, 1, 20) };
    let (outcome, there) = client::hold(&load, || server.connections()).unwrap();
    assert_eq!(there, 40);
    assert_eq!((outcome.succeeded, outcome.failures.len()), (80, 0));
}

#[test]
fn stopping_early_keeps_what_was_measured() {
    let server = plain_server(|_| Answer::Right);
    let end = End::After(Duration::from_secs(60));
    let stop = AtomicBool::new(false);
    let reports = Cell::new(0);
    let load = Load { end, ..plain_requests(&server, 1, 0) };
    let outcome = client::run_with(&load, &stop, &mut |progress| {
        reports.set(reports.get() + 1);
        if progress.succeeded > 100 {
            stop.store(true, Ordering::Relaxed);
        }
    })
    .unwrap();
    assert!(outcome.succeeded > 100 && outcome.elapsed < Duration::from_secs(50));
    assert!(reports.get() > 0);
}

#[test]
fn the_warm_up_is_left_out() {
    let server = server(|_| Answer::Right);
    let mut load = requests(&server, 2, 0);
    load.warm_up = Duration::from_millis(400);
    load.end = End::After(Duration::from_millis(800));
    let outcome = run(&load);
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    assert!(outcome.succeeded > 0 && outcome.succeeded < server.requests());
    assert_eq!(outcome.latency.len(), outcome.succeeded);
    assert_eq!(outcome.elapsed, Duration::from_millis(400));
}

#[test]
fn what_is_due_is_begun_even_if_nothing_is_answered_in_time() {
    let server = server(|_| Answer::After(Duration::from_millis(300)));
    let mut load = requests(&server, 1, 0);
    let arrivals = Arrivals::Constant { per_second: 50.0 };
    load.model = LoadModel::Open { arrivals, transactions_max: 1_000 };
    load.end = End::After(Duration::from_secs(2));
    let outcome = run(&load);
    assert!((99..=101).contains(&outcome.attempted), "{}", outcome.attempted);
    assert_eq!(outcome.succeeded, outcome.attempted, "{:?}", outcome.failures);
}

#[test]
fn an_open_load_begins_every_transaction_that_is_due() {
    let server = plain_server(|_| Answer::Right);
    let arrivals = Arrivals::Constant { per_second: 200.0 };
    let model = LoadModel::Open { arrivals, transactions_max: 100 };
    let end = End::After(Duration::from_millis(1_500));
    let warm_up = Duration::from_millis(500);
    let outcome = run(&Load { model, end, warm_up, ..plain_requests(&server, 1, 0) });
    assert_eq!((outcome.attempted, outcome.succeeded), (200, 200));
    assert_eq!(outcome.elapsed, Duration::from_secs(1));
    assert_eq!(outcome.seconds.len(), 1);
    assert_eq!(outcome.seconds[0].succeeded, 200);
}

/// The server answers at most a hundred times a second, one request after the other.
#[test]
fn answers_behind_the_end_are_no_part_of_the_rate() {
    static TURN: Mutex<()> = Mutex::new(());
    let server = plain_server(|_| {
        let _turn = TURN.lock().unwrap();
        std::thread::park_timeout(Duration::from_millis(10));
        Answer::Right
    });
    let end = End::After(Duration::from_secs(1));
    let arrivals = Arrivals::Constant { per_second: 200.0 };
    let open = LoadModel::Open { arrivals, transactions_max: 200 };
    for model in [open, LoadModel::Closed { connections: 60 }] {
        let outcome = run(&Load { model, end, ..plain_requests(&server, 1, 0) });
        assert_eq!(outcome.elapsed, Duration::from_secs(1), "{model:?}");
        assert!(outcome.delivered.answers <= 100, "{model:?}: {:?}", outcome.delivered);
        assert!(outcome.late_answers > 0, "{model:?}");
        assert_eq!(outcome.delivered.answers + outcome.late_answers, outcome.succeeded);
        assert_eq!(outcome.delivered.body_bytes, outcome.delivered.answers * 1_024);
    }
}

#[test]
fn progress_is_told_at_the_end_of_the_warm_up_and_at_the_end() {
    let server = plain_server(|_| Answer::Right);
    let warm_up = Duration::from_millis(50);
    let length = Duration::from_millis(700);
    let mut told = Vec::new();
    let load = Load { end: End::After(length), warm_up, ..plain_requests(&server, 1, 0) };
    client::run(&load, &mut |progress| told.push(progress.elapsed)).unwrap();
    let first = |edge| told.iter().find(|elapsed| **elapsed >= edge);
    // Without the edges, it is told twice a second.
    assert!(
        first(warm_up).is_some_and(|elapsed| *elapsed < Duration::from_millis(500)),
        "{told:?}"
    );
    assert!(first(length).is_some(), "{told:?}");
}
